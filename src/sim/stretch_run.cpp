// SPDX-License-Identifier: Apache-2.0
#include "src/sim/stretch_run.hpp"

#include <utility>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/fragmentation.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/policies/seam/unfinished.hpp"
#include "src/sim/site_stretch.hpp"
#include "src/sim/slurm_parameters.hpp"
#include "src/sim/stoppable_policy.hpp"

namespace gpusched {
namespace {

bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(std::memory_order_relaxed); }

// How many jobs wait when each is submitted; those of one instant are submitted one after the other.
class QueueLog {
 public:
  explicit QueueLog(bool kept) : kept_(kept) {}

  void observe(const OracleView& view, std::span<const Event> events) {
    if (!kept_) return;
    if (found_.empty()) found_.resize(view.job_count(), no_index);
    for (const Event& event : events) {
      switch (event.kind) {
        case EventKind::submit:
          if (found_[index(event.job)] == no_index) found_[index(event.job)] = waiting_;  // not of another size
          ++waiting_;
          break;
        case EventKind::retry:
        case EventKind::kill:
        case EventKind::preempt: ++waiting_; break;
        case EventKind::start:
        case EventKind::withdraw: --waiting_; break;
        default: break;
      }
    }
  }
  [[nodiscard]] std::uint32_t found(JobId job) const { return found_[index(job)]; }

 private:
  bool kept_;
  std::vector<std::uint32_t> found_;
  std::uint32_t waiting_ = 0;
};

JobLog job_log(const Engine& engine, const QueueLog& queue, const MeasureWindow& measured) {
  JobLog log;
  const std::uint32_t end = measured.end(engine.jobs().size());
  const Time last_submit = engine.jobs().submit(JobId{end - 1});
  for (std::uint32_t i = measured.first; i < end; ++i) {
    const JobId job{i};
    if (engine.may_be_cancelled(job)) continue;
    const detail::JobOutcome outcome(engine, job);
    log.job.push_back(i - engine.jobs().in_front());
    log.jct_s.push_back(to_seconds(outcome.jct));
    log.wait_s.push_back(to_seconds(outcome.wait));
    log.slowdown.push_back(outcome.bounded_slowdown);
    log.found.push_back(queue.found(job));
    log.censored.push_back(engine.end(job) > last_submit);
  }
  return log;
}

}  // namespace

PolicySpec contestant_spec(const PolicyRegistry& registry, PolicySpec policy, const EvaluationOptions& options,
                           const JobTable& jobs) {
  if (options.backfill) backfill_by_default(registry, *options.backfill, {&policy, 1});
  if (options.slurm) set_slurm_parameters(*options.slurm, jobs, !options.backfill, registry, {&policy, 1});
  return policy;
}

Result<StretchRun> run_stretch(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                               const PolicySpec& policy, const PolicyRegistry& registry, const TraceStretch& stretch,
                               const StretchOptions& how) {
  const JobTable jobs = trace.slice(stretch.first, stretch.warm_up + stretch.jobs);
  if (options.sites != nullptr) {
    return run_at_sites({.jobs = &jobs,
                         .sites = sites_of_slice(*options.sites, stretch.first, jobs),
                         .policy = contestant_spec(registry, policy, options, jobs),
                         .router = routed_policy(policy.text).router,
                         .engine = options.engine,
                         .kill_at_limit = options.conditions.kill_at_limit,
                         .measured = {.first = jobs.in_front() + stretch.warm_up, .count = stretch.jobs}},
                        registry, how);
  }
  const std::uint32_t replicas = jobs.in_front();
  const JobChanges changes = options.conditions.changes.slice(stretch.first, jobs.size() - replicas, replicas);
  const MeasureWindow measured{.first = replicas + stretch.warm_up, .count = stretch.jobs};
  const PolicyContext context{.jobs = &jobs,
                              .cluster = &cluster,
                              .seed = how.seed,
                              .past = how.past,
                              .runtime = &options.conditions.runtime.model,
                              .power = &options.conditions.power.model};
  auto made = make_policy(registry, contestant_spec(registry, policy, options, jobs), context);
  if (!made) return Unexpected{made.error()};
  EngineOptions engine_options = options.engine;
  if (!options.conditions.failures.is_empty()) engine_options.seed = how.seed;
  RunInputs inputs = options.conditions.inputs();
  inputs.changes = &changes;
  inputs.measured = measured;
  Engine engine(jobs, cluster, engine_options, inputs);
  RunLog log(measured);
  FragmentationLog fragmentation(measured);
  QueueLog queue(how.keep_jobs);
  StretchRun run{.clairvoyant = made->clairvoyant(), .metrics = {}};
  StoppablePolicy stoppable(*std::move(made), [&] { return is_set(how.stop); });
  try {
    if (!simulate(engine, stoppable, log, fragmentation, queue)) {
      run.failure = is_set(how.stop) ? "was interrupted" : why_unfinished(engine);
    } else if (const auto fault = fault_of_account(engine, log, measured)) {
      run.failure = "has a wrong account of GPU time: " + *fault;
    } else {
      run.metrics = compute_metrics(engine, log, measured);
      run.metrics->gpu_fragmentation = fragmentation.share();
      run.saturation = find_saturation(engine, log, measured);
      run.left_out = hash_of_left_out(measured.first, measured.end(jobs.size()),
                                      [&](JobId job) { return engine.may_be_cancelled(job); });
      if (how.keep_jobs) run.jobs = job_log(engine, queue, measured);
    }
  } catch (const PolicyFailure& failure) {
    run.failure = failure.why();
  }
  return run;
}

}  // namespace gpusched
