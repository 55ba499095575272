// SPDX-License-Identifier: Apache-2.0
/// JobHistory: what an agent's predictions know before a run begins.
#pragma once

#include "gpusched/data/job_table.hpp"
#include "gpusched/learn/service_life.hpp"
#include "gpusched/policy/past_jobs.hpp"
#include "gpusched/policy/runtime_predictor.hpp"

namespace gpusched {

/// Learned from jobs that ended before. Ids are those of the run's JobTable, or of the table that it was sliced from. A
/// value.
struct JobHistory {
  RuntimePredictor run_times;  ///< for RuntimeKnowledge::predicted and user
  ServiceLife life;            ///< for mode preempt

  /// Learns that a job of the trace ran; with `service` for mode preempt too, which takes some 1.5 KB for each kind of
  /// job.
  void learn(const JobTable& trace, JobId job, bool service) {
    run_times.learn(trace.vc(job), trace.shape_id(job), trace.user(job), to_seconds(trace.work(job)));
    if (!service) return;
    const std::int64_t service_us = mul_div(trace.work(job).us, trace.shape(job).gpu_milli(), whole_gpu);
    life.learn({.vc = trace.vc(job), .shape = trace.shape_id(job)}, job, service_us);
  }

  /// What past jobs teach. `half_life_jobs`: of ServiceLife.
  static JobHistory of(const PastJobs& past, bool service, double half_life_jobs = 0) {
    JobHistory history{.run_times = {}, .life = ServiceLife(half_life_jobs)};
    past.for_each([&history, &service](const JobTable& trace, JobId job) { history.learn(trace, job, service); });
    return history;
  }
};

}  // namespace gpusched
