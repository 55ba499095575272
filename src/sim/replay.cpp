// SPDX-License-Identifier: Apache-2.0
#include "src/sim/replay.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/fragmentation.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "src/base/parallel.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/policies/seam/policy_log.hpp"
#include "src/policies/seam/unfinished.hpp"
#include "src/sim/estimate_log.hpp"
#include "src/sim/idle_log.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/run_fields.hpp"
#include "src/sim/slurm_parameters.hpp"
#include "src/sim/stoppable_policy.hpp"
#include "src/world/cluster_reader.hpp"

namespace gpusched {
namespace {

// Of the jobs, numbered from 0 on, whatever is in front of them by now.
Result<MeasureWindow> window_for(const Scenario& scenario, const JobTable& table) {
  MeasureWindow window;
  const auto submits = table.submits().subspan(table.in_front());
  const auto jobs = static_cast<std::uint32_t>(submits.size());
  if (jobs == 0 && runs_without_jobs(scenario)) return window;
  if (scenario.warmup.us != 0 || scenario.measure.us != 0) {
    const auto first_at = [&](Time t) {
      return static_cast<std::uint32_t>(std::lower_bound(submits.begin(), submits.end(), t) - submits.begin());
    };
    const Time begin = submits.front() + scenario.warmup;
    window.first = first_at(begin);
    if (scenario.measure.us != 0) window.count = first_at(later_by(begin, scenario.measure)) - window.first;
  } else {
    window.first = static_cast<std::uint32_t>(std::min<std::uint64_t>(scenario.warmup_jobs, jobs));
    if (scenario.measure_jobs != 0) {
      window.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(scenario.measure_jobs, jobs));
    }
  }
  if (window.first >= window.end(jobs)) {
    const char* const field =
        scenario.warmup.us != 0 || scenario.measure.us != 0 ? "measure.warmup_s" : "measure.warmup_jobs";
    return Unexpected{Error{.message = "no job is left to measure of " + std::to_string(jobs), .field = field}};
  }
  return window;
}

// Takes the first jobs from those that are run.
Result<History> take_history(JobTable& jobs, std::uint64_t count) {
  if (count >= jobs.size()) {
    return Unexpected{Error{
        .message = "expected fewer than the " + std::to_string(jobs.size()) + " jobs of the trace, so that one is run",
        .field = "history_jobs"}};
  }
  const auto first = static_cast<std::uint32_t>(count);
  const JobEnds ends(jobs);
  const PastJobs past = ends.before(JobId{first});
  History history{.jobs = jobs.slice(0, first), .ended = {past.jobs.begin(), past.jobs.end()}};
  jobs = jobs.slice(first, jobs.size() - first);
  return history;
}

// The policies, each with its backfilling.
Result<std::vector<PolicySpec>> specs_of(const Scenario& scenario, const PolicyRegistry& registry) {
  auto specs = parse_contestants(registry, scenario.policies);
  if (!specs) return Unexpected{in_option("policies", specs.error())};
  const auto backfill = default_backfill(registry, scenario.backfill, *specs);
  if (!backfill) return Unexpected{in_option("backfill", backfill.error())};
  if (*backfill) backfill_by_default(registry, **backfill, *specs);
  return specs;
}

// The files that were read besides the trace.
std::vector<std::string> files_of(const Scenario& scenario, const std::vector<PolicySpec>& specs,
                                  const PolicyRegistry& registry) {
  std::vector<std::string> names = files_of(scenario.conditions);
  names.push_back(cluster_without_added(scenario.cluster));
  const std::vector<std::string> of_policies = files_of_policies(specs, registry);
  names.insert(names.end(), of_policies.begin(), of_policies.end());
  return existing_files(names);
}

// Adds what one run finishes to the common count, now and then.
class ProgressWatcher {
 public:
  explicit ProgressWatcher(ReplayProgress& progress) : progress_(&progress) {}

  void observe(const View& view, std::span<const Event>) {
    if (view.finished() >= told_ + 256) tell(view.finished());
  }
  void tell(std::uint32_t finished) {
    progress_->finished_jobs.fetch_add(finished - told_, std::memory_order_relaxed);
    told_ = finished;
  }

 private:
  ReplayProgress* progress_;
  std::uint32_t told_ = 0;
};

bool is_stopped(const ReplayProgress& progress) {
  const bool wanted = progress.stop != nullptr && progress.stop->load(std::memory_order_relaxed);
  return wanted || progress.failed.load(std::memory_order_relaxed);
}

PolicyContext context_of(const ReplayInput& input) {
  return {.jobs = &input.trace.jobs,
          .cluster = &input.cluster,
          .seed = input.options.seed,
          .past = input.history.past(),
          .runtime = &input.conditions.runtime.model,
          .power = &input.conditions.power.model};
}

// Passes on to the policy's own log, if it keeps one.
class LogWatcher {
 public:
  explicit LogWatcher(PolicyLog* log) : log_(log) {}
  void observe(const View& view, std::span<const Event> events) {
    if (log_ != nullptr) log_->observe(view, events);
  }

 private:
  PolicyLog* log_;
};

// Passes on to a log, where one is kept.
template <class Log>
class OptionalWatcher {
 public:
  explicit OptionalWatcher(std::optional<Log>& log) : log_(&log) {}
  void observe(const OracleView& view, std::span<const Event> events) {
    if (*log_) (*log_)->observe(view, events);
  }

 private:
  std::optional<Log>* log_;
};

// A policy and what is kept of its run.
struct PreparedRun {
  const PolicySpec* spec = nullptr;
  std::optional<AnyPolicy> policy;
  std::unique_ptr<PolicyLog> log;
  std::optional<AnyDurationEstimator> estimator;  // where estimates are asked for
  std::string run_times = {};                     // known to the policy
};

// What is said of jobs where there are none.
void leave_jobs_out(Metrics& metrics) {
  const Metrics found = std::exchange(metrics, Metrics{});
  metrics.makespan_s = found.makespan_s;
  metrics.last_end_s = found.last_end_s;
  metrics.gpu_utilization = found.gpu_utilization;
  metrics.gpu_allocation = found.gpu_allocation;
  metrics.gpu_overhead = found.gpu_overhead;
  metrics.gpu_lost = found.gpu_lost;
  metrics.gpu_withheld = found.gpu_withheld;
  metrics.goodput = found.goodput;
  metrics.energy_kwh = found.energy_kwh;
  metrics.carbon_kg = found.carbon_kg;
  metrics.cost_usd = found.cost_usd;
  metrics.peak_kw = found.peak_kw;
  metrics.events = found.events;
  metrics.slo_attainment = found.slo_attainment;
  metrics.p99_latency_s = found.p99_latency_s;
  metrics.trial_loss = found.trial_loss;
  metrics.study_span_s = found.study_span_s;
  metrics.study_gpu_hours = found.study_gpu_hours;
  metrics.target_s = found.target_s;
  metrics.targets_met = found.targets_met;
}

PolicyRun run_policy(const ReplayInput& input, PreparedRun prepared, ReplayDetail detail, ReplayProgress& progress) {
  PolicyRun run;
  run.policy = prepared.spec->text;
  run.clairvoyant = prepared.policy->clairvoyant();
  run.run_times = std::move(prepared.run_times);
  if (is_stopped(progress)) {
    run.why_unfinished = "was not begun";
    return run;
  }
  if (detail.decision_times) run.decision_times.emplace();
  StoppablePolicy policy(
      *std::move(prepared.policy), [&] { return is_stopped(progress); }, &run.decision_times);
  // Without jobs, GPU time and energy are counted while replicas run.
  const MeasureWindow window = input.has_jobs() ? input.window : MeasureWindow{};
  RunInputs inputs = input.conditions.inputs();
  inputs.measured = window;
  inputs.keeps_power_levels = detail.timeline && input.conditions.power.is_of_nodes();
  auto engine = std::make_unique<Engine>(input.trace.jobs, input.cluster, input.options, inputs);
  RunLog log(window);
  FragmentationLog fragmentation(window);
  IntervalLog intervals;
  HistoryHash history;
  ProgressWatcher watcher(progress);
  LogWatcher own_log(prepared.log.get());
  EstimateLog estimates(std::move(prepared.estimator), input.trace.jobs.size());
  if (detail.gpu_log) run.gpu_log.emplace();
  OptionalWatcher gpu_log(run.gpu_log);
  if (detail.timeline) run.timeline.emplace();
  OptionalWatcher timeline(run.timeline);
  std::optional<IdleLog> idle_log;
  if (detail.waits) idle_log.emplace(input.cluster, input.window);
  OptionalWatcher idle(idle_log);
  std::optional<WaitLog> wait_log;
  if (detail.explained != no_job) wait_log.emplace(detail.explained, input.cluster);
  OptionalWatcher waits(wait_log);
  const auto begin = std::chrono::steady_clock::now();
  bool finished = false;
  try {
    finished = detail.job_files ? simulate(*engine, policy, log, fragmentation, watcher, intervals, history, own_log,
                                           estimates, gpu_log, timeline, idle, waits)
               : detail.waits   ? simulate(*engine, policy, log, fragmentation, watcher, idle)
                                : simulate(*engine, policy, log, fragmentation, watcher);
  } catch (const PolicyFailure& failure) {
    run.why_unfinished = failure.why();
    return run;
  }
  run.sim_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!finished) {
    run.unfinished = engine->view().job_count() - engine->view().finished();
    run.why_unfinished = is_stopped(progress) ? "was interrupted" : why_unfinished(*engine);
    return run;
  }
  watcher.tell(input.trace.jobs.size());
  if (const auto fault = fault_of_account(*engine, log, window)) {
    run.why_unfinished = "has a wrong account of GPU time: " + *fault;
    return run;
  }
  run.jobs_per_s = run.sim_seconds > 0 ? input.trace.jobs.size() / run.sim_seconds : 0;
  run.metrics = compute_metrics(*engine, log, window);
  if (!input.has_jobs()) leave_jobs_out(run.metrics);
  run.services = service_figures(*engine);
  run.studies = study_figures(*engine);
  if (input.conditions.power.is_of_nodes()) run.power = power_account(*engine);
  run.metrics.gpu_fragmentation = fragmentation.share();
  if (idle_log) run.waits = wait_figures(*engine, *idle_log, input.window);
  if (wait_log) run.explained = std::move(*wait_log).take();
  run.reconfigurations = engine->reconfigurations();
  run.reconfiguration_gpu_hours = to_seconds(engine->reconfiguration_gpu_time()) / 3600;
  if (input.has_jobs()) run.saturation = find_saturation(*engine, log, input.window);
  if (detail.splits) {
    for (std::size_t by = 0; by < std::size(split_names); ++by) {
      run.splits.push_back(split_metrics(*engine, static_cast<SplitBy>(by), input.window));
    }
  }
  if (detail.job_files) {
    run.history_hash = history.value();
    run.intervals = std::move(intervals).take();
    run.estimates = std::move(estimates).take();
    if (prepared.log) {
      prepared.log->end(policy.inner());
      run.log_file = {prepared.log->file_name(), prepared.log->text()};
    }
    run.engine = std::move(engine);
  }
  return run;
}

// A name that file systems take (most allow 255 bytes), told from others of the same beginning by a hash.
std::string shortened(const std::string& name) {
  constexpr std::size_t most = 120;
  if (name.size() <= most) return name;
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char digits[20];
  std::snprintf(digits, sizeof digits, "~%016llx", static_cast<unsigned long long>(hash));
  return name.substr(0, most) + digits;
}

std::vector<std::string> folder_names(const std::vector<PolicySpec>& specs) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const PolicySpec& spec : specs) {
    std::string base = spec.text;
    if (base.starts_with('.'))
      base.erase(0, std::min(base.find_first_not_of("./"), base.size()));  // a path; not hidden
    for (char& c : base) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (!plain && std::string_view("-_.@=,+").find(c) == std::string_view::npos) c = '_';
    }
    base = shortened(base);
    std::string name = base;
    for (int number = 2; !taken.insert(name).second; ++number) name = base + "-" + std::to_string(number);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

InputRequest input_request(const Scenario& scenario) {
  InputRequest request = common_request(scenario);
  request.trace = scenario.trace;
  request.reading.format = scenario.format;
  request.reading.columns = scenario.columns;
  request.cluster = scenario.cluster;
  return request;
}

Result<ReplayInput> load_replay(const Scenario& scenario, const PolicyRegistry& registry) {
  if (auto specs = specs_of(scenario, registry); !specs) return Unexpected{specs.error()};  // before a trace is read
  auto loaded = load_input(input_request(scenario));
  if (!loaded) return Unexpected{loaded.error()};
  return prepare_replay(scenario, registry, *std::move(loaded));
}

Result<ReplayInput> prepare_replay(const Scenario& scenario, const PolicyRegistry& registry, RunInput loaded) {
  ReplayInput input;
  input.trace = std::move(loaded.trace);
  input.cluster = std::move(loaded.cluster);
  input.jobs_outside_vcs = loaded.jobs_outside_vcs;
  input.slurm = std::move(loaded.slurm);
  input.options.placement = loaded.placement;
  TraceReport& report = input.trace.report;
  if (!scenario.manifest_sha256.empty() && scenario.manifest_sha256 != report.sha256) {
    report.notes.push_back(scenario.trace + " is not the trace of the manifest: its SHA-256 differs");
  }
  if (scenario.history_jobs > 0) {
    auto history = take_history(input.trace.jobs, scenario.history_jobs);
    if (!history) return Unexpected{history.error()};
    input.history = *std::move(history);
  }
  if (auto changed = change_runs(input, scenario, registry); !changed) return Unexpected{changed.error()};
  if (scenario.recorded == "show") input.recorded = recorded_waits(input.trace.jobs, input.window);
  auto loaded_speeds = load_speeds_and_power(scenario.conditions, input.trace.jobs, input.cluster, input.conditions);
  if (!loaded_speeds) return Unexpected{loaded_speeds.error()};
  input.files = files_of(scenario, input.specs, registry);
  for (std::string& file : input.slurm.files()) input.files.push_back(std::move(file));
  return input;
}

Result<void> change_runs(ReplayInput& input, const Scenario& scenario, const PolicyRegistry& registry) {
  auto specs = specs_of(scenario, registry);
  if (!specs) return Unexpected{specs.error()};
  input.specs = *std::move(specs);
  set_slurm_parameters(input.slurm, input.trace.jobs, scenario.backfill == "none", registry, input.specs);
  const auto window = window_for(scenario, input.trace.jobs);
  if (!window) return Unexpected{window.error()};
  auto conditions = load_conditions_without_speeds(scenario.conditions, input.trace.jobs, input.cluster, scenario.seed);
  if (!conditions) return Unexpected{conditions.error()};
  input.window = *window;
  input.window.first += input.trace.jobs.in_front();
  conditions->runtime = std::move(input.conditions.runtime);
  conditions->power = std::move(input.conditions.power);
  input.options.preemption = conditions->preemption;
  input.conditions = *std::move(conditions);
  input.options.seed = scenario.seed;
  return {};
}

Result<std::vector<PolicyRun>> run_replay(const ReplayInput& input, const PolicyRegistry& registry,
                                          std::uint64_t threads, ReplayDetail detail, ReplayProgress& progress) {
  std::vector<PreparedRun> prepared;
  const PolicyContext context = context_of(input);
  for (const PolicySpec& spec : input.specs) {
    auto policy = make_policy(registry, spec, context);
    if (!policy) return Unexpected{policy.error()};
    PreparedRun run{.spec = &spec, .policy = *std::move(policy), .log = {}, .estimator = {}};
    run.run_times = known_run_times(registry, spec, input.trace.jobs, run.policy->clairvoyant());
    if (detail.job_files) {
      auto log = registry.make_log(spec, context);
      if (!log) return Unexpected{log.error()};
      run.log = *std::move(log);
      auto estimator = known_estimator(registry, spec, context, run.policy->clairvoyant());
      if (!estimator) return Unexpected{estimator.error()};
      run.estimator = *std::move(estimator);
    }
    prepared.push_back(std::move(run));
  }
  std::vector<PolicyRun> runs(prepared.size());
  const std::vector<std::string> folders = folder_names(input.specs);
  for_each_index(runs.size(), threads, [&](std::size_t i) {
    const RunningWork::Piece piece(progress.running, i);
    PolicyRun& run = runs[i] = run_policy(input, std::move(prepared[i]), detail, progress);
    if (detail.job_files) run.folder = folders[i];
    if (progress.finished && run.why_unfinished.empty()) progress.finished(run);
  });
  return runs;
}

}  // namespace gpusched
