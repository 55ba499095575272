// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/lwa_protocol.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "src/calibration/profile/measured_csv.hpp"
#include "src/policies/carbon/start_rules.hpp"
#include "src/world/signal_reader.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t slot_min = 30;
constexpr Time half_hour = whole_seconds(slot_min * 60);

// What a job is asked, in the year that begins at `year`.
StartQuestion question_of(const LwaJob& job, Time year) {
  const Time now = year + whole_seconds(job.submit_min * 60), length = whole_seconds(job.duration_min * 60);
  return {.now = now,
          .wait = next_workday_deadline(now + length) - (now + length),
          .length = length,
          .expected = length,
          .step = half_hour,
          .slot = half_hour};
}

Signal::WideInt emitted(const Signal& carbon, const std::vector<RunStretch>& stretches) {
  Signal::WideInt sum = 0;
  for (const RunStretch& stretch : stretches) sum += carbon.integral(stretch.begin, stretch.end);
  return sum;
}

}  // namespace

Result<std::vector<LwaJob>> read_lwa_jobs(const std::string& path) {
  constexpr std::array<MeasuredColumn, 2> columns{{{"submit_min"}, {"duration_min"}}};
  constexpr std::int64_t most_min = 10'000'000, longest_min = 130'000;  // the second: exact products (planned_runs)
  std::vector<LwaJob> jobs;
  const auto read = for_each_measured_cells(path, columns, [&](MeasuredCells& cells) {
    const LwaJob job{cells.count(0, 0, most_min), cells.count(1, slot_min, longest_min)};
    for (const std::size_t which : {0u, 1u}) {
      const std::int64_t minutes = which == 0 ? job.submit_min : job.duration_min;
      if (cells.good() && minutes % slot_min != 0) cells.fail(which, "a multiple of 30 minutes");
    }
    jobs.push_back(job);
  });
  if (!read) return Unexpected{read.error()};
  return jobs;
}

Result<Time> lwa_year(const Signal& carbon) {
  using std::chrono::sys_days;
  if (!carbon.is_empty()) {
    const Time first = carbon.steps().front().time, last = carbon.steps().back().time;
    const std::chrono::sys_time<std::chrono::microseconds> instant{std::chrono::microseconds{first.us}};
    const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(instant)};
    for (const int later : {0, 1}) {
      const sys_days day{(date.year() + std::chrono::years{later}) / std::chrono::January / 1};
      const Time begin = whole_seconds(std::int64_t{day.time_since_epoch().count()} * 86'400);
      if (begin >= first && begin <= last) return begin;
    }
  }
  return unexpected("expected a signal within which a year begins");
}

LwaResult run_lwa(const std::vector<LwaJob>& jobs, const Signal& carbon, Time year, const LwaOptions& options) {
  const Signal samples =
      sampled(carbon, year, std::max(carbon.steps().back().time + half_hour, year + half_hour), half_hour);
  constexpr Forecast none{.kind = Forecast::Kind::perfect};
  Signal::WideInt base = 0, window = 0, slots = 0;
  for (const LwaJob& job : jobs) {
    const StartQuestion question = question_of(job, year);
    base += emitted(samples, planned_runs(StartRule::no_wait, samples, none, question));
    window += emitted(samples, planned_runs(StartRule::lowest_window, samples, options.forecast, question));
    slots += emitted(samples, planned_runs(StartRule::wait_awhile, samples, options.forecast, question));
  }
  const auto saved = [&](Signal::WideInt sum) {
    return base == 0 ? 0 : 100 * static_cast<double>(base - sum) / static_cast<double>(base);
  };
  constexpr double to_kwh = 1.0 / (1000 * 3600 * 1e12), grams_per_tonne = 1e6;
  return {.base_t = static_cast<double>(base) * options.watts * to_kwh / grams_per_tonne,
          .best_window_saved_percent = saved(window),
          .cheapest_slots_saved_percent = saved(slots)};
}

Time lwa_horizon(const std::vector<LwaJob>& jobs, Time year) {
  Time last{};
  for (const LwaJob& job : jobs) {
    const StartQuestion question = question_of(job, year);
    last = std::max(last, question.now + question.length + question.wait - year);
  }
  return last;
}

}  // namespace gpusched
