// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/lublin_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/nelder_mead.hpp"
#include "traces/synthetic/daily_cycle.hpp"

namespace gpusched {
namespace {

constexpr std::size_t least_fitted_jobs = 100, least_parallel_jobs = 20;
constexpr double least_span_s = 3600;
constexpr double least_probability = 1e-12;  // of a cell: what a model holds impossible costs much, but not everything

struct SeenJob {
  double submit_s = 0;  ///< since a midnight, >= 0
  std::uint64_t size = 1;
  double run_s = 1;
  std::optional<double> asked_s;  ///< requested time
};

std::vector<SeenJob> seen_jobs(const JobTable& jobs, const FitOptions& options) {
  constexpr std::int64_t day_us = 86'400 * microseconds_per_second;
  if (jobs.size() == 0) return {};
  const std::int64_t first = (jobs.submits().front() - options.week_start).us;
  const std::int64_t midnight = first - (first % day_us + day_us) % day_us;
  std::vector<SeenJob> seen;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Time asked = jobs.estimate(job);
    seen.push_back(
        {.submit_s = to_seconds((jobs.submit(job) - options.week_start) - Time{midnight}),
         .size = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(jobs.shape(job).gpu_milli() / whole_gpu)),
         .run_s = std::max(1.0, to_seconds(jobs.work(job))),
         .asked_s = asked == Time::max() ? std::nullopt : std::optional(to_seconds(asked))});
  }
  return seen;
}

double log_likelihood(double jobs, double probability) {
  return jobs > 0 ? jobs * std::log(std::max(probability, least_probability)) : 0;
}

// ---- sizes

double size_log_likelihood(const LublinModel& model, const std::map<std::uint64_t, double>& jobs_of_size) {
  double sum = 0;
  for (const auto& [size, jobs] : jobs_of_size) sum += log_likelihood(jobs, size_probability(model, size));
  return sum;
}

LublinModel with_sizes(LublinModel model, std::span<const double> x) {
  model.serial_prob = x[0];
  model.pow2_prob = x[1];
  model.ulow = x[2];
  model.umed = x[3];
  model.uprob = x[4];
  return model;
}

bool are_sizes(const LublinModel& m) {
  return m.serial_prob >= 0 && m.pow2_prob >= 0 && m.serial_prob + m.pow2_prob <= 1 && m.ulow >= 0 &&
         m.ulow <= m.umed && m.umed <= m.uhi && m.uprob >= 0 && m.uprob <= 1;
}

void fit_sizes(LublinModel& model, const std::vector<SeenJob>& seen) {
  std::map<std::uint64_t, double> jobs_of_size;
  double serial = 0, powers = 0;
  for (const SeenJob& job : seen) {
    jobs_of_size[job.size] += 1;
    serial += job.size == 1;
    powers += job.size > 1 && (job.size & (job.size - 1)) == 0;
  }
  const auto count = static_cast<double>(seen.size());
  const auto cost = [&](const std::vector<double>& x) {
    const LublinModel tried = with_sizes(model, x);
    return are_sizes(tried) ? -size_log_likelihood(tried, jobs_of_size) : INFINITY;
  };
  // The likelihood has a local maximum for many a umed; the best of several beginnings is kept.
  std::vector<double> best;
  for (const double share : {0.3, 0.5, 0.7, 0.85}) {
    const double ulow = std::min(0.9, model.uhi), umed = ulow + share * (model.uhi - ulow);
    std::vector<double> found = nelder_mead(cost, {0.99 * serial / count, 0.98 * powers / count, ulow, umed, share},
                                            {-0.01, -0.02, 0.1, 0.1, 0.05});
    if (best.empty() || cost(found) < cost(best)) best = std::move(found);
  }
  model = with_sizes(model, best);
}

// ---- logarithms of times, counted in cells, since logs have whole seconds and short times are many

class LogCells {
 public:
  /// Ends of cells, ascending from log 0: whole seconds up to 32 s, then sixteenths of the logarithm up to `most`.
  explicit LogCells(double first_end_s, double most) {
    for (double second = first_end_s; second <= 32; second += 1) end_.push_back(std::log(second));
    while (end_.back() + 1.0 / 16 < most) end_.push_back(end_.back() + 1.0 / 16);
    end_.push_back(most);
  }
  [[nodiscard]] std::size_t count() const { return end_.size(); }
  [[nodiscard]] std::size_t cell_of(double log_value) const {
    const auto above = std::upper_bound(end_.begin(), end_.end() - 1, log_value);
    return static_cast<std::size_t>(above - end_.begin());
  }
  /// The probability of each cell, of all that is drawn.
  [[nodiscard]] std::vector<double> probabilities(const GammaDistribution& gamma) const {
    std::vector<double> probability(count());
    double below = 0;
    for (std::size_t cell = 0; cell < count(); ++cell) {
      const double upto = gamma.cdf(end_[cell]);
      probability[cell] = std::max(0.0, upto - below);
      below = upto;
    }
    return probability;
  }

 private:
  std::vector<double> end_;
};

double sum_of(std::span<const double> probabilities) {
  double sum = 0;
  for (const double p : probabilities) sum += p;
  return sum;
}

// The published limit, or above the largest logarithm seen.
double limit_for(double published, double largest) {
  return largest < published ? published : std::min(20.0, std::ceil(largest + 0.5));
}

GammaDistribution gamma_of_moments(double mean, double variance) {
  variance = std::max(variance, 1e-4 * mean * mean);
  return {mean * mean / variance, variance / mean};
}

// ---- run times

LublinModel with_run_times(LublinModel model, std::span<const double> x) {
  model.a1 = std::exp(x[0]);
  model.b1 = std::exp(x[1]);
  model.a2 = std::exp(x[2]);
  model.b2 = std::exp(x[3]);
  model.pb = x[4];
  model.pa = x[5] / static_cast<double>(model.processors);
  return model;
}

bool are_gammas(const LublinModel& m) {
  const auto within = [](double shape, double scale) {
    return shape >= 0.05 && shape <= 2e4 && scale >= 1e-5 && scale <= 100;
  };
  return within(m.a1, m.b1) && within(m.a2, m.b2) && m.a1 * m.b1 < m.a2 * m.b2 && std::abs(m.pb) <= 3 &&
         std::abs(m.pa) <= 1 && within(m.aarr, m.barr) && within(m.anum, m.bnum);
}

/// Jobs by size, then by cell of the run time.
using RunTimeCounts = std::map<std::uint64_t, std::map<std::size_t, double>>;

double run_time_log_likelihood(const LublinModel& model, const LogCells& cells, const RunTimeCounts& counts) {
  const std::vector<double> is_short = cells.probabilities(model.short_runs());
  const std::vector<double> is_long = cells.probabilities(model.long_runs());
  const double all_short = sum_of(is_short), all_long = sum_of(is_long);
  double sum = 0;
  for (const auto& [size, jobs_of_cell] : counts) {
    const double share = model.short_share(static_cast<double>(size));
    // The rest is drawn again.
    const double kept = std::max(share * all_short + (1 - share) * all_long, least_probability);
    for (const auto& [cell, jobs] : jobs_of_cell) {
      sum += log_likelihood(jobs, (share * is_short[cell] + (1 - share) * is_long[cell]) / kept);
    }
  }
  return sum;
}

void fit_run_times(LublinModel& model, const std::vector<SeenJob>& seen) {
  std::vector<double> logs;
  for (const SeenJob& job : seen) logs.push_back(std::log(job.run_s));
  std::sort(logs.begin(), logs.end());
  model.most_log_run = limit_for(model.most_log_run, std::log(std::exp(logs.back()) + 1));
  const LogCells cells(2, model.most_log_run);  // the first is of 1 s: from e^0 = 1 s on, less than 2 s
  RunTimeCounts counts;
  for (const SeenJob& job : seen) counts[job.size][cells.cell_of(std::log(job.run_s))] += 1;
  const auto cost = [&](const std::vector<double>& x) {
    const LublinModel tried = with_run_times(model, x);
    return are_gammas(tried) ? -run_time_log_likelihood(tried, cells, counts) : INFINITY;
  };
  // Beginnings: the shorter part of the jobs and the longer one, each with its moments.
  std::vector<double> best;
  for (const double part : {0.4, 0.6, 0.8}) {
    const auto cut = static_cast<std::size_t>(part * static_cast<double>(logs.size()));
    const auto moments = [](std::span<const double> values) {
      double mean = 0, variance = 0;
      for (const double value : values) mean += value / static_cast<double>(values.size());
      for (const double value : values)
        variance += (value - mean) * (value - mean) / static_cast<double>(values.size());
      return gamma_of_moments(std::max(mean, 0.1), variance);
    };
    const GammaDistribution first = moments(std::span(logs).first(cut)), second = moments(std::span(logs).subspan(cut));
    const std::vector<double> start{
        std::log(first.shape), std::log(first.scale), std::log(second.shape), std::log(second.scale), part, -0.1};
    if (!std::isfinite(cost(start))) continue;
    std::vector<double> found = nelder_mead(cost, start, {0.2, 0.2, 0.3, 0.3, -0.1, -0.3});
    if (best.empty() || cost(found) < cost(best)) best = std::move(found);
  }
  if (!best.empty()) model = with_run_times(model, best);
}

// ---- requests

// Twice the median of requested time over run time, less 1, as f u has the median f / 2. The most likely f is the
// largest of these ratios, which one short job that asks for a day decides.
void fit_estimate_factor(LublinModel& model, const std::vector<SeenJob>& seen) {
  constexpr double least = 1e-6, most = 1e4;  // 0 would be no requests; the most that check_lublin() takes
  std::vector<double> beyond;
  for (const SeenJob& job : seen) {
    if (job.asked_s) beyond.push_back(*job.asked_s / job.run_s - 1);
  }
  if (beyond.empty()) return;
  const auto middle = beyond.begin() + static_cast<std::ptrdiff_t>(beyond.size() / 2);
  std::nth_element(beyond.begin(), middle, beyond.end());
  model.estimate_factor = std::clamp(2 * *middle, least, most);
}

// ---- arrivals

void fit_cycle(LublinModel& model, const std::vector<SeenJob>& seen) {
  std::array<double, DailyCycle::slots> jobs_of_slot{};
  for (const SeenJob& job : seen) {
    jobs_of_slot[static_cast<std::size_t>(job.submit_s / DailyCycle::slot_s) % DailyCycle::slots] += 1;
  }
  const auto with_cycle = [&](const std::vector<double>& x) {
    LublinModel tried = model;
    tried.anum = std::exp(x[0]);
    tried.bnum = std::exp(x[1]);
    return tried;
  };
  const auto cost = [&](const std::vector<double>& x) {
    const LublinModel tried = with_cycle(x);
    if (!are_gammas(tried) || !DailyCycle::has_weight(tried.slot_counts())) return static_cast<double>(INFINITY);
    const DailyCycle cycle(tried.slot_counts());
    double sum = 0;
    for (std::size_t slot = 0; slot < jobs_of_slot.size(); ++slot) {
      sum -= log_likelihood(jobs_of_slot[slot], cycle.weight(slot) / DailyCycle::slots);
    }
    return sum;
  };
  model = with_cycle(nelder_mead(cost, {std::log(model.anum), std::log(model.bnum)}, {0.3, -0.3}));
}

void fit_gaps(LublinModel& model, const std::vector<SeenJob>& seen) {
  // Below this a gap of whole seconds says little: one cell.
  constexpr double shortest_s = 8;
  const DailyCycle cycle(model.slot_counts());
  std::vector<double> logs;
  double mean = 0, variance = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    const double gap_s = cycle.weighted_s(seen[i].submit_s) - cycle.weighted_s(seen[i - 1].submit_s);
    logs.push_back(std::log(std::max(gap_s, 0.5 * shortest_s)));
  }
  for (const double value : logs) mean += value / static_cast<double>(logs.size());
  for (const double value : logs) variance += (value - mean) * (value - mean) / static_cast<double>(logs.size());
  model.most_log_gap = limit_for(model.most_log_gap, *std::max_element(logs.begin(), logs.end()));
  const LogCells cells(shortest_s, model.most_log_gap);
  std::vector<double> gaps_of_cell(cells.count());
  for (const double value : logs) gaps_of_cell[cells.cell_of(value)] += 1;
  model.arar = 1;
  const auto with_gaps = [&](const std::vector<double>& x) {
    LublinModel tried = model;
    tried.aarr = std::exp(x[0]);
    tried.barr = std::exp(x[1]);
    return tried;
  };
  const auto cost = [&](const std::vector<double>& x) {
    const LublinModel tried = with_gaps(x);
    if (!are_gammas(tried)) return static_cast<double>(INFINITY);
    const std::vector<double> probability = cells.probabilities(tried.gaps());
    const double kept = std::max(sum_of(probability), least_probability);
    double sum = 0;
    for (std::size_t cell = 0; cell < cells.count(); ++cell) {
      sum -= log_likelihood(gaps_of_cell[cell], probability[cell] / kept);
    }
    return sum;
  };
  const GammaDistribution start = gamma_of_moments(mean, variance);
  model = with_gaps(nelder_mead(cost, {std::log(start.shape), std::log(start.scale)}, {0.2, -0.2}));
}

Result<void> check_fit(const std::vector<SeenJob>& seen, std::uint64_t processors) {
  if (seen.size() < least_fitted_jobs) {
    return unexpected("a fit needs at least " + std::to_string(least_fitted_jobs) + " jobs with GPUs, found " +
                      std::to_string(seen.size()));
  }
  const auto parallel = std::count_if(seen.begin(), seen.end(), [](const SeenJob& job) { return job.size > 1; });
  if (static_cast<std::size_t>(parallel) < least_parallel_jobs) {
    return unexpected("a fit of the model lublin needs at least " + std::to_string(least_parallel_jobs) +
                      " jobs of more than one GPU, found " + std::to_string(parallel));
  }
  if (seen.back().submit_s - seen.front().submit_s < least_span_s) {
    return unexpected("a fit of the model lublin needs submissions over more than an hour");
  }
  for (const SeenJob& job : seen) {
    if (job.size > processors) {
      return unexpected("a job has " + std::to_string(job.size) + " GPUs, more than the machine's " +
                        std::to_string(processors));
    }
  }
  return {};
}

}  // namespace

Result<LublinModel> fit_lublin(const JobTable& jobs, std::uint64_t processors, const FitOptions& options) {
  const std::vector<SeenJob> seen = seen_jobs(fitted_jobs(jobs, options), options);
  if (processors == 0) {
    for (const SeenJob& job : seen) processors = std::max(processors, job.size);
  }
  if (auto good = check_fit(seen, processors); !good) return Unexpected{good.error()};
  LublinModel model;
  model.about = "Fitted to a trace.";
  model.processors = processors;
  model.default_jobs = seen.size();
  model.uhi = std::log2(static_cast<double>(processors));
  fit_sizes(model, seen);
  fit_run_times(model, seen);
  fit_estimate_factor(model, seen);
  fit_cycle(model, seen);
  fit_gaps(model, seen);
  if (auto valid = check_lublin(model); !valid) return unexpected("no model fits: " + valid.error().to_string());
  return model;
}

}  // namespace gpusched
