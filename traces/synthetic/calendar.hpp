// SPDX-License-Identifier: Apache-2.0
/// Drawing one entry of a model's calendar: the jobs of one GPU count in one period of a fitted trace.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/synthetic/quantile_table.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {

/// How the jobs of an entry hang together; the functions are borrowed.
struct SessionStyle {
  const QuantileFunction* session_jobs = nullptr;  ///< of the entry's class
  const QuantileFunction* gap_s = nullptr;
  double gap_correlation = 0;
  double run_correlation = 0;
};

/// A job of an entry.
struct CalendarJob {
  double at_s = 0;  ///< since the period began
  double run_s = 0;
  std::uint32_t session = 0;  ///< number within the entry, from 0
};

/// `jobs` jobs of an entry, in no order, within `length_s` seconds. Sessions begin anywhere and end before the period
/// does. Run times are stratified: rank k of n takes the table's k-th n-th, so that together they are the entry's work;
/// who takes which follows from correlated normal scores, so that a session's jobs are alike.
std::vector<CalendarJob> draw_entry(const CalendarEntry& entry, std::uint32_t jobs, double length_s,
                                    const SessionStyle& style, Rng rng);

/// A job as the fit counts it.
struct CalendarInput {
  Time submit{};
  double gpus = 0;
  double run_s = 0;
};

/// The calendar of jobs in order of submission. Precondition: not all submitted at one instant.
Calendar fit_calendar(const std::vector<CalendarInput>& jobs);

}  // namespace gpusched
