// SPDX-License-Identifier: Apache-2.0
#include "src/policies/elastic/elasticflow.hpp"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "src/policies/elastic/deadline_plan.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

// Times are whole microseconds, and each change of size rounds one of them: so many changes cannot make a job late.
constexpr Time admission_margin{1000};

// Of running to the end with `tasks` instead of the present size; of a job that has none yet, of its least.
double added_gpu_time(const SizedJob& job, std::uint32_t tasks, double left_s) {
  const auto gpu_s = [&](std::uint32_t size) { return static_cast<double>(job.milli(size)) * left_s / job.rate(size); };
  const auto more = static_cast<double>(std::max<MilliGpu>(job.milli(tasks - job.size), 1));
  return (gpu_s(tasks) - gpu_s(std::max(job.size, job.least))) / more;
}

// A job's next planned size.
struct Growth {
  double cost = 0;
  std::uint32_t at = 0, to = 0;

  // The least cost first, of equals the job listed first.
  friend bool operator<(const Growth& a, const Growth& b) {
    return a.cost > b.cost || (a.cost == b.cost && a.at > b.at);
  }
};

// Algorithm 2: as long as GPUs are free, to the job whose next planned size adds the least GPU time, a GPU. What is too
// much for it once is so for ever.
void give_rest(std::vector<SizedJob>& jobs, MilliGpu free, const OracleView& view) {
  std::priority_queue<Growth> growths;
  const auto offer = [&](std::uint32_t at) {
    const SizedJob& job = jobs[at];
    const std::uint32_t next = next_planned_size(job);
    if (next == job.size || job.milli(next - job.size) > free) return;
    growths.push({added_gpu_time(job, next, to_seconds(view.remaining(job.job))), at, next});
  };
  for (std::uint32_t at = 0; at < jobs.size(); ++at) {
    if (jobs[at].size < jobs[at].most) offer(at);
  }
  while (!growths.empty()) {
    const Growth growth = growths.top();
    growths.pop();
    SizedJob& job = jobs[growth.at];
    if (job.milli(growth.to - job.size) > free) continue;
    free -= job.milli(growth.to - job.size);
    job.size = growth.to;
    offer(growth.at);
  }
}

}  // namespace

void ElasticFlow::decide(const OracleView& view, Decision& decision) {
  kinds_.resize(view.job_count(), Kind::new_here);
  levels_.resize(view.job_count(), 0);
  sized_.observe(view);
  sized_.reset(view);
  admit_new(view);
  MilliGpu free = promise(view).free;
  sized_.give_least_sizes(view, free);
  give_rest(sized_.listed(), free, view);
  sized_.carry_out(view, decision);
}

// Those that it did not start are new to it.
void ElasticFlow::adopt(const View& view) {
  sized_.adopt(view);
  for (const JobId job : view.running()) strangers_.push_back(job);
}

// New jobs one by one, in order of arrival.
void ElasticFlow::admit_new(const OracleView& view) {
  std::vector<QueuePlace> arrived;
  const auto arrive = [&](JobId job) {
    const bool is_here = view.phase(job) == JobPhase::pending || view.phase(job) == JobPhase::running;
    if (!is_here || kinds_[index(job)] != Kind::new_here) return;
    kinds_[index(job)] = Kind::best_effort;
    if (view.deadline(job) != Time::max()) arrived.push_back(view.queue_place(job));
  };
  for (const JobId job : strangers_) arrive(job);
  strangers_.clear();
  for (const Event& event : view.events()) {
    if (enters_queue(event.kind)) arrive(event.job);
  }
  std::sort(arrived.begin(), arrived.end());
  for (const QueuePlace& place : arrived) admit_if_nobody_is_late(view, place.job);
}

void ElasticFlow::admit_if_nobody_is_late(const OracleView& view, JobId job) {
  const std::uint32_t late = promise(view, admission_margin).late;
  std::vector<std::pair<JobId, std::uint32_t>> levels;
  for (const SizedJob& other : sized_.listed()) {
    if (other.pinned) levels.emplace_back(other.job, levels_[index(other.job)]);
  }
  kinds_[index(job)] = Kind::admitted;
  sized_.pin(view, job, true);
  if (promise(view, admission_margin).late == late) return;
  kinds_[index(job)] = Kind::best_effort;
  sized_.pin(view, job, false);
  levels_[index(job)] = 0;
  for (const auto& [other, level] : levels) levels_[index(other)] = level;
}

std::vector<SizedJob*> ElasticFlow::admitted_by_deadline(const View& view) {
  std::vector<SizedJob*> admitted;
  for (SizedJob& job : sized_.listed()) {
    if (job.pinned) admitted.push_back(&job);
  }
  std::stable_sort(admitted.begin(), admitted.end(),
                   [&](const SizedJob* a, const SizedJob* b) { return view.deadline(a->job) < view.deadline(b->job); });
  return admitted;
}

ElasticFlow::Outcome ElasticFlow::promise(const OracleView& view, Time margin) {
  DeadlinePlan plan(view.now(), view.cluster().up_gpus() * whole_gpu);
  Outcome outcome;
  for (SizedJob* job : admitted_by_deadline(view)) {
    std::uint32_t& level = levels_[index(job->job)];
    const DeadlinePlan::Promise promised =
        plan.promise(*job, view.remaining(job->job), view.deadline(job->job) - margin, level);
    job->size = promised.tasks;
    level = promised.level;
    outcome.late += promised.in_time ? 0 : 1;
  }
  outcome.free = plan.free_now();
  return outcome;
}

PolicyInfo elasticflow_info() {
  return {
      .name = "elasticflow",
      .summary = "elastic: who is admitted ends by its deadline, on as few GPUs as that takes; the rest is shared out",
      .source =
          "Gu et al., ElasticFlow, ASPLOS 2023, section 4 (Algorithms 1 and 2; pkusys/ElasticFlow, "
          "scheduler.py); a job that is not admitted is not dropped, it runs on what is left; the rest goes by "
          "GPU time at a constant size, without a new plan for each candidate",
      .complexity = "O(running) an event, O(a^2 log a) where a of the jobs have deadlines and were admitted",
      .make = [](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> {
        return AnyPolicy(ElasticFlow());
      },
      .preemptive = true};
}

}  // namespace gpusched
