// SPDX-License-Identifier: Apache-2.0
// Calibration of paired_intervals() on series of which the true difference is known exactly: light and heavy tails,
// neighbours that depend on each other, seeds. tests/support/interval_promise.hpp says what is promised.
//
// GPUSCHED_INTERVAL_SEED and GPUSCHED_INTERVAL_TRIALS repeat it on other draws and more of them; docs/evaluate.md has
// the rows that it prints.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"
#include "tests/support/interval_promise.hpp"

namespace gpusched {
namespace {

struct Sample {
  RunScores ours, theirs;
};

// Gives the scores of so many windows.
using Draw = std::function<Sample(std::size_t, Rng&)>;

// `truth`: of the difference over theirs.
test::IntervalCell cell_of(const std::string& what, double truth, std::size_t windows, const Draw& draw,
                           WindowMean mean = WindowMean::arithmetic) {
  test::IntervalCell cell{.windows = windows, .trials = test::interval_trials(400)};
  for (std::size_t trial = 0; trial < cell.trials; ++trial) {
    Rng rng = Rng(test::interval_seed(5)).split(what).split(windows).split(trial);
    const Sample sample = draw(windows, rng);
    const auto interval = paired_intervals(sample.ours, sample.theirs, 1, rng.split("bootstrap"), 199, mean);
    if (interval) cell.add(interval->relative, truth);
  }
  return cell;
}

// With 10, 20, 40 and 80 windows. `least`: the share of trials that must give an interval with 40 and with 80.
void expect_coverage(const std::string& what, double truth, const std::vector<double>& least, const Draw& draw,
                     WindowMean mean = WindowMean::arithmetic) {
  std::vector<test::IntervalCell> row;
  for (const std::size_t windows : {10, 20, 40, 80}) row.push_back(cell_of(what, truth, windows, draw, mean));
  test::print_row(what, row);
  for (const test::IntervalCell& cell : row) test::expect_promise(what, cell);
  EXPECT_GE(row[2].given_share(), least[0]) << what;
  EXPECT_GE(row[3].given_share(), least[1]) << what;
}

// What one policy gets in every window: by its index.
using Window = std::function<double(std::size_t)>;

Sample single_runs(std::size_t windows, const Window& theirs, const std::function<double(std::size_t, double)>& ours) {
  Sample sample{{std::vector<double>(windows)}, {std::vector<double>(windows)}};
  for (std::size_t w = 0; w < windows; ++w) {
    sample.theirs[0][w] = theirs(w);
    sample.ours[0][w] = ours(w, sample.theirs[0][w]);
  }
  return sample;
}

// A first-order autoregression of variance 1.
std::vector<double> autoregression(std::size_t count, double correlation, Rng& rng) {
  std::vector<double> values(count);
  double value = rng.normal();
  for (double& place : values) {
    place = value;
    value = correlation * value + std::sqrt(1 - correlation * correlation) * rng.normal();
  }
  return values;
}

std::string named(const std::string& what, double number) {
  char text[16];
  std::snprintf(text, sizeof text, " %.1f", number);
  return what + text;
}

TEST(IntervalGrid, LightTailsGetAVerdict) {
  expect_coverage("normal differences", 0.15, {0.7, 0.9}, [](std::size_t windows, Rng& rng) {
    return single_runs(
        windows, [&](std::size_t) { return 20 + rng.normal(); },
        [&](std::size_t, double theirs) { return theirs + 3 + rng.normal(); });
  });
}

// Both policies wait in proportion to the load of a window.
void expect_level_coverage(double sigma, double difference, const std::vector<double>& least,
                           WindowMean mean = WindowMean::arithmetic) {
  const std::string what = named("log-normal level", sigma) + named(", log-difference", difference) +
                           (mean == WindowMean::geometric ? ", geometric means" : "");
  expect_coverage(
      what, std::exp(-difference) - 1, least,
      [=](std::size_t windows, Rng& rng) {
        double level = 0;
        return single_runs(
            windows,
            [&](std::size_t) {
              level = std::exp(sigma * rng.normal());
              return level * std::exp(0.3 * rng.normal());
            },
            [&](std::size_t, double) { return level * std::exp(0.3 * rng.normal() - difference); });
      },
      mean);
}

TEST(IntervalGrid, LevelsThatVary) {
  for (const double difference : {0.0, 0.3}) {
    expect_level_coverage(0.5, difference, {0.7, 0.9});
    expect_level_coverage(1.0, difference, {0.2, 0.4});
    expect_level_coverage(1.5, difference, {0, 0});
    expect_level_coverage(2.0, difference, {0, 0});
    expect_level_coverage(2.5, difference, {0, 0});
  }
}

// What differs by a factor in every window has no heavy tails where each window counts by its ratio.
TEST(IntervalGrid, GeometricMeansTakeLevelsThatVary) {
  for (const double sigma : {1.0, 2.5}) {
    expect_level_coverage(sigma, 0.3, {0.9, 0.9}, WindowMean::geometric);
  }
}

// A difference with one long tail, of neighbours that depend on each other or do not.
void expect_skewed_coverage(double sigma, double correlation, const std::vector<double>& least) {
  const std::string what = named("log-normal difference", sigma) + named(", correlation", correlation);
  expect_coverage(what, 0.2, least, [=](std::size_t windows, Rng& rng) {
    const std::vector<double> normal = autoregression(windows, correlation, rng);
    return single_runs(
        windows, [&](std::size_t) { return 10 + rng.normal(); },
        [&](std::size_t w, double theirs) { return theirs + 2 * std::exp(sigma * normal[w] - sigma * sigma / 2); });
  });
}

TEST(IntervalGrid, SkewedDifferences) {
  expect_skewed_coverage(0.5, 0, {0.7, 0.9});
  expect_skewed_coverage(1.0, 0, {0.2, 0.4});
  expect_skewed_coverage(1.5, 0, {0, 0});
  expect_skewed_coverage(2.0, 0, {0, 0});
  expect_skewed_coverage(0.5, 0.3, {0.6, 0.9});
  expect_skewed_coverage(1.0, 0.3, {0.2, 0.4});
  expect_skewed_coverage(0.5, 0.6, {0.2, 0.6});
}

// Windows side by side, of which the load lasts for several. `hidden`: the share of the variance that does; the rest
// is independent noise.
Draw slow_windows(double correlation, double share) {
  return [=](std::size_t windows, Rng& rng) {
    const std::vector<double> slow = autoregression(windows, correlation, rng);
    return single_runs(
        windows, [&](std::size_t) { return 20 + rng.normal(); },
        [&](std::size_t w, double theirs) {
          return theirs + 2 + std::sqrt(share) * slow[w] + std::sqrt(1 - share) * rng.normal();
        });
  };
}

TEST(IntervalGrid, DependentWindows) {
  const auto expect = [](double correlation, const std::vector<double>& least) {
    expect_coverage(named("autocorrelation", correlation), 0.1, least, slow_windows(correlation, 1));
  };
  expect(0.3, {0.7, 0.9});
  expect(0.5, {0.3, 0.8});
  expect(0.6, {0, 0.6});
  expect(0.7, {0, 0});
  expect(0.8, {0, 0});
  expect(0.9, {0, 0});
}

TEST(IntervalGrid, SlowPartsBeneathNoise) {
  for (const double share : {0.2, 0.3, 0.5}) {
    expect_coverage(named("autocorrelation 0.8 in a share", share), 0.1, {0.6, 0.8}, slow_windows(0.8, share));
  }
}

// Beyond the promise: what the windows do not show. The share of intervals that hold as docs/evaluate.md tells it.
TEST(IntervalGrid, WhatWindowsDoNotShow) {
  struct Limit {
    std::string what;
    double truth;
    Draw draw;
    std::vector<double> hold;  // with 40 and 80 windows
  };
  const auto rare = [](double share) -> Draw {
    return [=](std::size_t windows, Rng& rng) {
      return single_runs(
          windows, [&](std::size_t) { return 20 + rng.normal(); },
          [&](std::size_t, double theirs) {
            return theirs + 1 + rng.normal() + (rng.uniform() < share ? 1 / share : 0);
          });
    };
  };
  const std::vector<Limit> limits{
      {"autocorrelation 0.9 in half of the variance", 0.1, slow_windows(0.9, 0.5), {0.90, 0.90}},
      {"autocorrelation 0.95 in half of the variance", 0.1, slow_windows(0.95, 0.5), {0.83, 0.80}},
      {"half of the difference in one window of 50", 0.1, rare(0.02), {0.58, 0.80}},
  };
  for (const Limit& limit : limits) {
    std::vector<test::IntervalCell> row;
    for (const std::size_t windows : {10, 20, 40, 80}) {
      row.push_back(cell_of(limit.what, limit.truth, windows, limit.draw));
    }
    test::print_row(limit.what, row);
    EXPECT_NEAR(row[2].hold_share(), limit.hold[0], 0.02 + row[2].noise(limit.hold[0])) << limit.what;
    EXPECT_NEAR(row[3].hold_share(), limit.hold[1], 0.02 + row[3].noise(limit.hold[1])) << limit.what;
  }
}

// Runs of one configuration that differ by their seed, `spread` among them, against one run or as many.
void expect_group_coverage(std::size_t runs, std::size_t others, double spread) {
  const std::string what =
      std::to_string(runs) + " seeds against " + std::to_string(others) + named(", spread", spread);
  expect_coverage(what, 0.1, {0.7, 0.9}, [=](std::size_t windows, Rng& rng) {
    std::vector<double> level(windows);
    for (double& value : level) value = 10 + 2 * rng.normal();
    const auto side = [&](std::size_t count, double factor, double own_spread) {
      RunScores scores(count, std::vector<double>(windows));
      for (std::vector<double>& run : scores) {
        const double own = own_spread * rng.normal();
        for (std::size_t w = 0; w < windows; ++w) run[w] = factor * level[w] + own + 0.5 * rng.normal();
      }
      return scores;
    };
    Sample sample;
    sample.ours = side(runs, 1.1, spread);
    sample.theirs = side(others, 1, others == 1 ? 0 : spread);
    return sample;
  });
}

TEST(IntervalGrid, GroupsOfSeeds) {
  for (const double spread : {0.0, 0.5, 3.0}) {
    for (const std::size_t runs : {3, 5, 8}) {
      expect_group_coverage(runs, 1, spread);
      expect_group_coverage(runs, runs, spread);
    }
  }
}

}  // namespace
}  // namespace gpusched
