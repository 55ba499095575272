// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/calendar.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace gpusched {
namespace {

// Three hours keep the order in which large jobs came; of 3, 6 and 24 hours only this kept the waits of every stretch
// tried within a factor of 1.5 (docs/generator.md).
constexpr double shortest_period_s = 3 * 3600;
constexpr double most_periods = 4000;          // keeps the model of a trace of years readable
constexpr std::size_t most_exact_values = 33;  // an entry of so many jobs lists their run times

double to_milli(double value) { return std::round(value * 1000) / 1000; }

double normal_cdf(double score) { return 0.5 * std::erfc(-score * 0.70710678118654752); }

// Part of the variance that a session's members share, and their own.
double mixed_score(double correlation, double common, double own) {
  return std::sqrt(correlation) * common + std::sqrt(1 - correlation) * own;
}

// Submissions: sessions with gaps, each wholly within the period, whose end is the next one's first instant.
void place_sessions(std::vector<CalendarJob>& jobs, double length_s, const SessionStyle& style, Rng& rng) {
  std::uint32_t session = 0;
  for (std::size_t first = 0; first < jobs.size(); ++session) {
    const double wanted = std::max(1.0, std::round((*style.session_jobs)(rng.uniform())));
    const auto size = static_cast<std::size_t>(std::min(wanted, static_cast<double>(jobs.size() - first)));
    const double pace = rng.normal();
    double at = 0;
    for (std::size_t i = first; i < first + size; ++i) {
      if (i > first) at += (*style.gap_s)(normal_cdf(mixed_score(style.gap_correlation, pace, rng.normal())));
      jobs[i].at_s = at;
      jobs[i].session = session;
    }
    const double squeeze = at > length_s ? length_s / at : 1;
    const double start = rng.uniform() * (length_s - at * squeeze), last_s = length_s - 1e-6;
    for (std::size_t i = first; i < first + size; ++i) jobs[i].at_s = std::min(start + jobs[i].at_s * squeeze, last_s);
    first += size;
  }
}

void share_out_run_times(std::vector<CalendarJob>& jobs, const CalendarEntry& entry, double correlation, Rng& rng) {
  const std::size_t n = jobs.size();
  std::vector<double> score(n);
  double common = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i == 0 || jobs[i].session != jobs[i - 1].session) common = rng.normal();
    score[i] = mixed_score(correlation, common, rng.normal());
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score[a] < score[b]; });
  const QuantileFunction run_s(entry.run_s);
  const bool as_fitted = n == entry.jobs;
  const bool listed = as_fitted && n <= entry.run_s.value.size();
  double sum = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const double p = listed ? (n == 1 ? 0.0 : static_cast<double>(k) / static_cast<double>(n - 1))
                            : (static_cast<double>(k) + rng.uniform()) / static_cast<double>(n);
    sum += jobs[order[k]].run_s = run_s(p);
  }
  // A table knows its middle better than its ends, where most of the work is.
  const double wanted = entry.work_s * static_cast<double>(n) / static_cast<double>(entry.jobs);
  const bool enough = as_fitted || n > most_exact_values;
  if (!enough || sum <= 0) return;
  for (CalendarJob& job : jobs) job.run_s *= wanted / sum;
}

// Up to most_exact_values observations as they are, more as quantiles.
QuantileTable entry_table(std::vector<double> observed) {
  if (observed.size() > most_exact_values) return quantile_table(std::move(observed));
  std::sort(observed.begin(), observed.end());
  if (observed.size() == 1) observed.push_back(observed.front());
  QuantileTable table;
  for (std::size_t i = 0; i < observed.size(); ++i) {
    table.probability.push_back(static_cast<double>(i) / static_cast<double>(observed.size() - 1));
    table.value.push_back(to_milli(observed[i]));
  }
  return table;
}

}  // namespace

std::vector<CalendarJob> draw_entry(const CalendarEntry& entry, std::uint32_t jobs, double length_s,
                                    const SessionStyle& style, Rng rng) {
  std::vector<CalendarJob> drawn(jobs);
  Rng times = rng.split("times"), runs = rng.split("run times");
  place_sessions(drawn, length_s, style, times);
  share_out_run_times(drawn, entry, style.run_correlation, runs);
  return drawn;
}

Calendar fit_calendar(const std::vector<CalendarInput>& jobs) {
  const Time first = jobs.front().submit;
  Calendar calendar;
  calendar.span_s = to_seconds(jobs.back().submit - first);
  constexpr double hour_s = 3600;
  calendar.period_s = std::max(shortest_period_s, std::ceil(calendar.span_s / most_periods / hour_s) * hour_s);
  std::map<std::pair<std::uint32_t, double>, std::vector<double>> run_s;
  const auto last = static_cast<std::uint32_t>(calendar.periods() - 1);
  for (const CalendarInput& job : jobs) {
    const auto period = static_cast<std::uint32_t>(to_seconds(job.submit - first) / calendar.period_s);
    run_s[{std::min(period, last), job.gpus}].push_back(job.run_s);
  }
  for (auto& [place, values] : run_s) {
    CalendarEntry entry{.period = place.first, .gpus = place.second, .run_s = {}};
    entry.jobs = static_cast<std::uint32_t>(values.size());
    entry.work_s = to_milli(std::accumulate(values.begin(), values.end(), 0.0));
    entry.run_s = entry_table(std::move(values));
    calendar.entries.push_back(std::move(entry));
  }
  return calendar;
}

}  // namespace gpusched
