// SPDX-License-Identifier: Apache-2.0
/// The machine-learning scenario of "Let's Wait Awhile" (Wiesner et al., Middleware 2021, section 5.2;
/// github.com/dos-group/lets-wait-awhile, simulate.py and strategy.py): jobs that may end as late as the next working
/// morning, shifted to where the grid emits least.
///
/// Time is counted in slots of half an hour from the beginning of a year. Quirks, kept:
///  - of a finer series the samples at minutes 0 and 30 hold for half an hour each;
///  - the deadline is that of next_workday_deadline(): a job that would end on a Friday evening ends by Saturday 9:00;
///    the slot that begins at the deadline is not used;
///  - forecast errors are those of a slot, not of a distance.
/// The artifact runs one slot more where two of a job's have the same intensity; here none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/signal.hpp"

namespace gpusched {

/// Of the paper, unless the user says otherwise.
struct LwaOptions {
  double watts = 2036.6;  ///< of a job
  Forecast forecast{.kind = Forecast::Kind::perfect};
};

/// A job in minutes from the beginning of the year, multiples of 30.
struct LwaJob {
  std::int64_t submit_min = 0;
  std::int64_t duration_min = 30;
};

/// Columns submit_min, duration_min. Errors carry file, line and column.
Result<std::vector<LwaJob>> read_lwa_jobs(const std::string& path);

struct LwaResult {
  double base_t = 0;  ///< tonnes emitted without waiting
  double best_window_saved_percent = 0;
  double cheapest_slots_saved_percent = 0;  ///< jobs may be interrupted
};

/// The beginning of the first year that begins within the signal, whose clock counts from 1970-01-01 UTC. Error: none.
Result<Time> lwa_year(const Signal& carbon);

/// Runs the jobs in the year that begins at `year`.
LwaResult run_lwa(const std::vector<LwaJob>& jobs, const Signal& carbon, Time year, const LwaOptions& options);

/// When the last job can end, from the beginning of the year.
Time lwa_horizon(const std::vector<LwaJob>& jobs, Time year);

}  // namespace gpusched
