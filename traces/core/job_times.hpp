// SPDX-License-Identifier: Apache-2.0
/// The one check of the times that a log gives of a job: whether it ran at all, for how long, and whether its times can
/// be true. Every reader asks it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Instants that are further apart are hardly of one log.
inline constexpr Time ten_years = whole_seconds(std::int64_t{3652} * 86400);

/// What a log says of a job's times. Instants and spans that it does not say are Time::max().
struct LoggedTimes {
  Time submit{};
  Time start = Time::max(), end = Time::max();
  Time elapsed = Time::max();  ///< the run time, where the log states it
  bool has_start = true;       ///< the log says of jobs when they started: who has no start did not
  bool held_nothing = false;   ///< the log says that the job was given no resources
  bool cancelled = false;      ///< the log says that somebody ended it
  bool waits = false;          ///< the log says that it had not started yet
  bool runs = false;           ///< the log says that it had not ended yet
  bool local = false;          ///< the instants are those of a clock whose zone is not said
};

/// What became of a job.
enum class JobFate : std::uint8_t {
  ran,
  never_ran,    ///< it left the queue without having run: no resources and no time, or no start
  still_waits,  ///< when the log was written
  still_runs,
  bad,  ///< its times cannot be
};

/// Which of the times is meant.
enum class LoggedTime : std::uint8_t { none, start, end };

struct JudgedTimes {
  JobFate fate = JobFate::ran;
  Time start = Time::max();  ///< Time::max(): not recorded
  Time work{};               ///< where it ran
  bool clock_moved = false;  ///< a clock that was put back explains what else could not be
  LoggedTime wrong = LoggedTime::none;
};

/// True for what databases write where a time is not set: 0 where the job was submitted later, a number at the end of
/// 32 bits, or 1970-01-01 of any zone where the job was submitted years later.
bool is_unset_time(Time time, Time submit);

/// True when `later`, read from a clock without a zone after `earlier`, shows less because the clock was put back in
/// between: by at most an hour, in a night of a weekend in the months in which clocks are put back somewhere.
bool clock_was_put_back(Time earlier, Time later);

/// Decides by what the log says. A job ran if it ran for some time or held something; one without a start, or that held
/// nothing (or was cancelled) and ran for no time at all, did not. A start before the submission and an end before the
/// start are bad, unless a clock without a zone was put back in between, or the stated run time tells an hour more.
JudgedTimes judge_times(const LoggedTimes& times);

/// Which instants belong to a log: those within ten years of the middle of its submissions, or within a thousand times
/// their spread (the median distance from the middle), if most of its jobs are.
struct TimeWindow {
  Time first = Time{} - end_of_time, last = Time::max();
  [[nodiscard]] bool holds(Time from, Time until) const { return first <= from && until <= last; }
};

/// The first and the last instant that a log gives of a job.
struct JobSpan {
  Time first{}, last{};
};

/// The window of a log with these jobs: everything, unless some, fewer than half, are far outside. Jobs that are
/// outside have no say in where the window is.
TimeWindow window_of(std::vector<JobSpan> jobs);

}  // namespace gpusched
