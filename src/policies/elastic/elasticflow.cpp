// SPDX-License-Identifier: Apache-2.0
#include "src/policies/elastic/elasticflow.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/policies/elastic/deadline_plan.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

// Times are whole microseconds, and each change of size rounds one of them: so many changes cannot make a job late.
constexpr Time admission_margin{1000};

std::uint32_t next_size(const SizedJob& job) {
  for (const std::uint32_t tasks : planned_sizes(job)) {
    if (tasks > job.size) return tasks;
  }
  return job.size;
}

// Of running to the end with `tasks` instead of the present size; of a job that has none yet, of its least.
double added_gpu_time(const SizedJob& job, std::uint32_t tasks, double left_s) {
  const auto gpu_s = [&](std::uint32_t size) { return static_cast<double>(job.milli(size)) * left_s / job.rate(size); };
  const auto more = static_cast<double>(std::max<MilliGpu>(job.milli(tasks - job.size), 1));
  return (gpu_s(tasks) - gpu_s(std::max(job.size, job.least))) / more;
}

// Algorithm 2: as long as GPUs are free, to the job whose next planned size adds the least GPU time, a GPU.
void give_rest(std::vector<SizedJob>& jobs, MilliGpu free, const OracleView& view) {
  for (;;) {
    SizedJob* best = nullptr;
    std::uint32_t best_size = 0;
    double least_cost = 0;
    for (SizedJob& job : jobs) {
      const std::uint32_t next = next_size(job);
      if (next == job.size || job.milli(next - job.size) > free) continue;
      const double cost = added_gpu_time(job, next, to_seconds(view.remaining(job.job)));
      if (best != nullptr && cost >= least_cost) continue;
      std::tie(best, best_size, least_cost) = std::tuple(&job, next, cost);
    }
    if (best == nullptr) return;
    free -= best->milli(best_size - best->size);
    best->size = best_size;
  }
}

}  // namespace

void ElasticFlow::decide(const OracleView& view, Decision& decision) {
  kinds_.resize(view.job_count(), Kind::new_here);
  levels_.resize(view.job_count(), 0);
  std::vector<SizedJob> jobs = jobs_to_size(view);
  admit(jobs, view);
  MilliGpu free = promise(jobs, view).free;
  give_least_sizes_to_others(jobs, free);
  give_rest(jobs, free, view);
  give_sizes(jobs, decision);
}

// New jobs one by one, in order of arrival.
void ElasticFlow::admit(std::vector<SizedJob>& jobs, const OracleView& view) {
  for (const SizedJob& job : jobs) {
    Kind& kind = kinds_[index(job.job)];
    if (kind != Kind::new_here) continue;
    kind = Kind::best_effort;
    if (view.deadline(job.job) == Time::max()) continue;
    const std::uint32_t late = promise(jobs, view, admission_margin).late;
    const std::vector<std::uint32_t> levels = levels_;
    kind = Kind::admitted;
    if (promise(jobs, view, admission_margin).late == late) continue;
    kind = Kind::best_effort;
    levels_ = levels;
  }
}

std::vector<SizedJob*> ElasticFlow::admitted_by_deadline(std::vector<SizedJob>& jobs, const OracleView& view) const {
  std::vector<SizedJob*> admitted;
  for (SizedJob& job : jobs) {
    if (kinds_[index(job.job)] == Kind::admitted) admitted.push_back(&job);
  }
  std::stable_sort(admitted.begin(), admitted.end(),
                   [&](const SizedJob* a, const SizedJob* b) { return view.deadline(a->job) < view.deadline(b->job); });
  return admitted;
}

ElasticFlow::Outcome ElasticFlow::promise(std::vector<SizedJob>& jobs, const OracleView& view, Time margin) {
  DeadlinePlan plan(view.now(), view.cluster().up_gpus() * whole_gpu);
  Outcome outcome;
  for (SizedJob& job : jobs) job.size = 0;
  for (SizedJob* job : admitted_by_deadline(jobs, view)) {
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

void ElasticFlow::give_least_sizes_to_others(std::vector<SizedJob>& jobs, MilliGpu& free) const {
  for (SizedJob& job : jobs) {
    if (kinds_[index(job.job)] == Kind::best_effort) give_least_sizes({&job, 1}, free);
  }
}

PolicyInfo elasticflow_info() {
  return {
      .name = "elasticflow",
      .summary = "elastic: who is admitted ends by its deadline, on as few GPUs as that takes; the rest is shared out",
      .source =
          "Gu et al., ElasticFlow, ASPLOS 2023, section 4 (Algorithms 1 and 2; pkusys/ElasticFlow, "
          "scheduler.py); a job that is not admitted is not dropped, it runs on what is left; the rest goes by "
          "GPU time at a constant size, without a new plan for each candidate",
      .complexity = "O(n^2 log n) an event",
      .make = [](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> {
        return AnyPolicy(ElasticFlow());
      },
      .preemptive = true};
}

}  // namespace gpusched
