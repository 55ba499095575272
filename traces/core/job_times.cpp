// SPDX-License-Identifier: Apache-2.0
#include "traces/core/job_times.hpp"

#include <algorithm>
#include <chrono>

namespace gpusched {
namespace {

constexpr Time clock_change = whole_seconds(3600);

// Whether a clock without a zone can have been put back around this reading: clocks are at night, between 23 and 5
// o'clock of a weekend, from February to April in the south and from September to November in the north.
bool is_night_of_change(Time reading) {
  namespace chrono = std::chrono;
  const auto instant = chrono::sys_time<chrono::microseconds>{chrono::microseconds{reading.us}};
  const auto date = chrono::floor<chrono::days>(instant);
  const auto of_day = chrono::duration_cast<chrono::hours>(instant - date).count();
  const unsigned weekday = chrono::weekday{date}.c_encoding();  // 0 is Sunday
  const auto month = static_cast<unsigned>(chrono::year_month_day{date}.month());
  const bool is_season = (month >= 2 && month <= 4) || (month >= 9 && month <= 11);
  const bool is_night = (weekday == 0 && of_day < 5) || (weekday == 6 && (of_day >= 23 || of_day < 1));
  return is_season && is_night;
}

JudgedTimes wrong(LoggedTime which) { return {.fate = JobFate::bad, .wrong = which}; }

}  // namespace

bool is_unset_time(Time time, Time submit) {
  if (time == Time::max()) return true;
  if (time == Time{}) return submit > Time{};
  const Time zones = whole_seconds(14 * 3600);
  if (Time{} - zones <= time && time <= zones) return submit > ten_years;
  if (time == whole_seconds(-1)) return submit >= Time{};
  constexpr std::int64_t unset[] = {0x7FFF'FFFF, 0xFFFF'FFFE, 0xFFFF'FFFF};  // the last two: NO_VAL, INFINITE of Slurm
  return std::any_of(std::begin(unset), std::end(unset), [&](std::int64_t s) { return time == whole_seconds(s); });
}

bool clock_was_put_back(Time earlier, Time later) {
  return later < earlier && earlier - later <= clock_change && is_night_of_change(earlier) && is_night_of_change(later);
}

JudgedTimes judge_times(const LoggedTimes& times) {
  const bool has_end = !is_unset_time(times.end, times.submit);
  const bool states_run = times.elapsed != Time::max();
  JudgedTimes judged{.start = is_unset_time(times.start, times.submit) ? Time::max() : times.start};
  if (times.waits) return {.fate = JobFate::still_waits};
  if (judged.start == Time::max()) {
    if (times.runs) return {.fate = JobFate::still_runs};
    if (states_run && times.elapsed > Time{}) return {.work = times.elapsed};
    if (times.has_start || (states_run && times.held_nothing)) return {.fate = JobFate::never_ran};
    if (states_run) return {.work = times.elapsed};
    if (!has_end) return {.fate = JobFate::still_runs};
    if (times.end < times.submit) return wrong(LoggedTime::end);
    return {.work = times.end - times.submit};
  }
  if (judged.start < times.submit) {
    if (!times.local || !clock_was_put_back(times.submit, judged.start)) return wrong(LoggedTime::start);
    judged.start = times.submit;
    judged.clock_moved = true;
  }
  if (times.runs || (!has_end && !states_run)) {
    judged.fate = JobFate::still_runs;
    return judged;
  }
  judged.work = states_run ? times.elapsed : times.end - times.start;
  if (has_end && times.end < times.start) {
    const bool hour_less = states_run && times.end + clock_change - times.start == times.elapsed;
    if (!times.local || (!hour_less && !clock_was_put_back(times.start, times.end))) return wrong(LoggedTime::end);
    if (!states_run) judged.work += clock_change;
    judged.clock_moved = true;
  }
  if (judged.work == Time{} && (times.held_nothing || times.cancelled)) judged.fate = JobFate::never_ran;
  return judged;
}

TimeWindow window_of(std::vector<JobSpan> jobs) {
  TimeWindow window;
  const std::size_t all = jobs.size();
  for (;;) {
    const std::size_t middle = jobs.size() / 2;
    const auto by_first = [](const JobSpan& a, const JobSpan& b) { return a.first < b.first; };
    std::nth_element(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(middle), jobs.end(), by_first);
    const Time center = jobs[middle].first;
    std::vector<std::int64_t> distances;
    for (const JobSpan& job : jobs)
      distances.push_back(std::max(job.first, center).us - std::min(job.first, center).us);
    std::nth_element(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(middle), distances.end());
    const Time reach = std::max(ten_years, Time{mul_div(distances[middle], 1000, 1)});
    if (reach >= end_of_time) return window;
    const TimeWindow next{.first = center - reach, .last = center + reach};
    std::vector<JobSpan> inside;
    std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(inside),
                 [&](const JobSpan& job) { return next.holds(job.first, job.last); });
    if ((all - inside.size()) * 2 >= all) return {};
    if (inside.size() == jobs.size()) return all == jobs.size() ? TimeWindow{} : next;
    window = next;
    jobs = std::move(inside);
  }
}

}  // namespace gpusched
