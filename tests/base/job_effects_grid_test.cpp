// SPDX-License-Identifier: Apache-2.0
// Calibration of job_effects() on series of jobs of which the true effects are known from half a million: run times
// with light and heavy tails, waits that follow a level which lasts for none, twenty or a hundred jobs.
// tests/sim/log_coverage_test.cpp does the same on simulated logs.
//
// GPUSCHED_INTERVAL_SEED and GPUSCHED_INTERVAL_TRIALS repeat it on other draws and more of them. A row shows the mean
// number of batches, the share of trials with intervals, and of each effect the share of intervals that hold.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "src/base/job_effects.hpp"
#include "tests/support/interval_promise.hpp"

namespace gpusched {
namespace {

struct Jobs {
  std::vector<std::vector<double>> ours = std::vector<std::vector<double>>(1), theirs = ours;
  std::vector<double> queue;
};

// The cell of a kind of log.
struct Kind {
  double lasts;       // jobs after which 1/e of the level's logarithm is left; 0: none
  double job_sigma;   // of the logarithm of run times
  double difference;  // of the logarithm of waits
};

Jobs drawn(const Kind& kind, std::size_t count, Rng& rng) {
  Jobs jobs;
  const double kept = kind.lasts > 0 ? std::exp(-1 / kind.lasts) : 0;
  double level = rng.normal();
  for (std::size_t i = 0; i < count; ++i) {
    const double run = rng.lognormal(0, kind.job_sigma);
    jobs.queue.push_back(std::exp(level));
    jobs.ours[0].push_back(run + std::exp(level - kind.difference) * rng.lognormal(0, 0.7));
    jobs.theirs[0].push_back(run + std::exp(level) * rng.lognormal(0, 0.7));
    level = kept * level + std::sqrt(1 - kept * kept) * rng.normal();
  }
  return jobs;
}

using Truths = std::array<double, job_effect_names.size()>;

Truths truths_of(const Kind& kind) {
  Rng rng = Rng(1).split("truth");
  const Jobs jobs = drawn(kind, 500'000, rng);
  const auto all = job_effects({jobs.ours, jobs.theirs}, {.count = 1, .jobs = jobs.queue.size()}, 1, Rng(0));
  Truths truths{};
  for (std::size_t e = 0; e < all.size(); ++e) {
    truths[e] = is_share(all[e].effect) ? all[e].ours - all[e].theirs : all[e].ours / all[e].theirs - 1;
  }
  return truths;
}

void expect_coverage(const Kind& kind, std::size_t jobs_of_log, double least_given) {
  char what[96];
  std::snprintf(what, sizeof what, "%zu jobs, level lasts %.0f, run times sigma %.1f, log-difference %.1f", jobs_of_log,
                kind.lasts, kind.job_sigma, kind.difference);
  const Truths truths = truths_of(kind);
  const std::size_t trials = test::interval_trials(60);
  std::size_t given = 0, batches = 0;
  std::array<std::size_t, job_effect_names.size()> held{};
  for (std::size_t trial = 0; trial < trials; ++trial) {
    Rng rng = Rng(test::interval_seed(5)).split(what).split(trial);
    const Jobs jobs = drawn(kind, jobs_of_log, rng);
    const BatchPlan plan = plan_batches(jobs_of_log, memory_of(jobs.queue));
    if (!plan.enough()) continue;
    ++given;
    batches += plan.count;
    const auto effects = job_effects({jobs.ours, jobs.theirs}, plan, 1, rng.split("batches"), 199);
    for (std::size_t e = 0; e < effects.size(); ++e) {
      const auto& interval = effects[e].interval;
      held[e] += interval && interval->low <= truths[e] && truths[e] <= interval->high ? 1 : 0;
    }
  }
  std::printf("| %s | %zu | %.0f %% |", what, given > 0 ? batches / given : 0,
              100.0 * static_cast<double>(given) / static_cast<double>(trials));
  for (const std::size_t count : held) {
    std::printf(" %.1f %% |", given > 0 ? 100 * static_cast<double>(count) / static_cast<double>(given) : 0.0);
  }
  std::printf("\n");
  EXPECT_GE(static_cast<double>(given), least_given * static_cast<double>(trials)) << what;
  if (given < 20) return;
  // At least 92 % of the intervals hold, up to three standard errors.
  const double noise = 3 * std::sqrt(0.05 * 0.95 / static_cast<double>(given));
  for (std::size_t e = 0; e < held.size(); ++e) {
    EXPECT_GE(static_cast<double>(held[e]) / static_cast<double>(given), 0.92 - noise)
        << what << ": " << job_effect_names[e].name;
  }
}

TEST(JobEffectGrid, HoldsOnSeriesOfJobs) {
  const bool all = test::every_interval_cell();
  for (const double difference : all ? std::vector{0.0, 0.1} : std::vector{0.1}) {
    for (const double sigma : all ? std::vector{0.5, 1.5, 2.5} : std::vector{1.5}) {
      expect_coverage({.lasts = 0, .job_sigma = sigma, .difference = difference}, 5'000, 0.95);
      expect_coverage({.lasts = 20, .job_sigma = sigma, .difference = difference}, 5'000, 0.8);
    }
  }
}

TEST(JobEffectGrid, HoldsWhereTheLevelLasts) {
  expect_coverage({.lasts = 100, .job_sigma = 1.5, .difference = 0.1}, 20'000, 0.5);
}

// Too short for twenty batches in most trials: then there are no intervals rather than wrong ones.
TEST(JobEffectGrid, GivesNoneWhereTheLevelLastsTooLong) {
  expect_coverage({.lasts = 300, .job_sigma = 1.5, .difference = 0.1}, 5'000, 0);
}

}  // namespace
}  // namespace gpusched
