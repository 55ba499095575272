// SPDX-License-Identifier: Apache-2.0
/// Jobs of environments as columns: what rewards of one's own are computed from, and what can be looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/learn/env.hpp"
#include "python/bindings/common.hpp"

namespace gpusched::python {

/// One job of an environment at one instant of the episode's clock. Times in seconds, NaN: not yet.
struct JobRow {
  std::uint32_t env = 0;  ///< number of the environment
  std::int64_t job = 0;   ///< number of the job among those of all traces
  double submit_s = 0;    ///< instant of submission
  double start_s = 0;     ///< of its first start
  double end_s = 0;       ///< of its end
  double wait_s = 0;      ///< time in queues so far
  double ran_s = 0;       ///< time on nodes so far
  double gpus = 0;        ///< that it asks for
  double duration_s = 0;  ///< its true run time
};

/// What a step of one environment brought, before another episode begins. Scored jobs alone.
struct StepRows {
  std::vector<JobRow> finished, started, waiting;
  std::vector<std::int64_t> tokens;  ///< token_jobs() of the last observation of an episode that ended
  double now_s = 0;                  ///< the instant on the episode's clock
};

/// The job of a window as a row.
JobRow row_of(const Env& env, std::uint32_t e, std::int64_t first_job, JobId job);

/// Writes what the last step of an environment brought.
void take_rows(const Env& env, std::uint32_t e, std::int64_t first_job, StepRows& rows);

/// The number of the job of each token of the open choice.
void token_jobs(const Env& env, std::int64_t first_job, std::vector<std::int64_t>& jobs);

/// Waiting or running jobs, those of the warm-up too.
std::vector<JobRow> waiting_rows(const Env& env, std::uint32_t e, std::int64_t first_job);
std::vector<JobRow> running_rows(const Env& env, std::uint32_t e, std::int64_t first_job);

/// {column: array} of JobRow's fields.
nb::dict columns_of(std::span<const JobRow> rows);

}  // namespace gpusched::python
