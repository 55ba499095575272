// SPDX-License-Identifier: Apache-2.0
// Calibration of paired_intervals() on series of which the true difference is known exactly: light and heavy tails,
// neighbours that depend on each other, seeds. Of the trials that give an interval 92 to 97 % must hold the truth, up
// to three standard errors of so many trials; where fewer than one in ten gives one, those are not counted. Where fewer
// than a quarter do, those that do are the ones whose windows look independent by chance, and 80 % must hold.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"

namespace gpusched {
namespace {

struct Sample {
  RunScores ours, theirs;
};

// Gives the scores of so many windows.
using Draw = std::function<Sample(std::size_t, Rng&)>;

// Shares of trials.
struct Shares {
  double given = 0, hold = 0;  // with an interval; of these with the truth in it
  double noise = 0;            // three standard errors of the latter
};

// `truth`: of the difference over theirs.
Shares shares_of(const std::string& what, double truth, std::size_t windows, const Draw& draw) {
  constexpr int trials = 400;
  int given = 0, held = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Rng rng = Rng(5).split(what).split(windows).split(static_cast<std::uint64_t>(trial));
    const Sample sample = draw(windows, rng);
    const auto interval = paired_intervals(sample.ours, sample.theirs, 1, rng.split("bootstrap"), 199);
    if (!interval) continue;
    ++given;
    held += interval->relative.low <= truth && truth <= interval->relative.high ? 1 : 0;
  }
  const Shares shares{static_cast<double>(given) / trials, given > 0 ? static_cast<double>(held) / given : 0,
                      given > 0 ? 3 * std::sqrt(0.95 * 0.05 / given) : 1};
  std::printf("%-44s %3zu windows: %3.0f %% verdicts, %5.1f %% hold\n", what.c_str(), windows, 100 * shares.given,
              100 * shares.hold);
  return shares;
}

// `least`: the share of trials that must give an interval with 10, 20, 40 and 80 windows.
void expect_coverage(const std::string& what, double truth, const std::vector<double>& least, const Draw& draw) {
  std::size_t windows = 10;
  for (const double needed : least) {
    const Shares shares = shares_of(what, truth, windows, draw);
    EXPECT_GE(shares.given, needed) << what << " " << windows;
    if (shares.given >= 0.1) {
      EXPECT_GE(shares.hold, (shares.given < 0.25 ? 0.8 : 0.92) - shares.noise) << what << " " << windows;
      EXPECT_LE(shares.hold, 0.97 + shares.noise) << what << " " << windows;
    }
    EXPECT_TRUE(windows > 10 || shares.given == 0) << what;
    windows *= 2;
  }
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
  expect_coverage("normal differences", 0.15, {0, 0.05, 0.9, 0.95}, [](std::size_t windows, Rng& rng) {
    return single_runs(
        windows, [&](std::size_t) { return 20 + rng.normal(); },
        [&](std::size_t, double theirs) { return theirs + 3 + rng.normal(); });
  });
}

// Both policies wait in proportion to the load of a window.
void expect_level_coverage(double sigma, double difference, const std::vector<double>& least) {
  const std::string what = named("log-normal level", sigma) + named(", log-difference", difference);
  expect_coverage(what, std::exp(-difference) - 1, least, [=](std::size_t windows, Rng& rng) {
    double level = 0;
    return single_runs(
        windows,
        [&](std::size_t) {
          level = std::exp(sigma * rng.normal());
          return level * std::exp(0.3 * rng.normal());
        },
        [&](std::size_t, double) { return level * std::exp(0.3 * rng.normal() - difference); });
  });
}

TEST(IntervalGrid, LevelsThatVary) {
  for (const double difference : {0.0, 0.3}) {
    expect_level_coverage(0.5, difference, {0, 0, 0.8, 0.9});
    expect_level_coverage(1.0, difference, {0, 0, 0.4, 0.4});
    expect_level_coverage(1.5, difference, {0, 0, 0, 0});
  }
}

// So few windows do not show such tails: the intervals held in 85 to 93 % of trials.
TEST(IntervalGrid, HeavyTailsGetNone) {
  for (const double sigma : {2.0, 2.5}) {
    for (const std::size_t windows : {20, 40, 80}) {
      const auto draw = [=](std::size_t count, Rng& rng) {
        double level = 0;
        return single_runs(
            count, [&](std::size_t) { return level = std::exp(sigma * rng.normal()); },
            [&](std::size_t, double) { return level * std::exp(0.3 * rng.normal()); });
      };
      EXPECT_LT(shares_of(named("log-normal level", sigma), 0, windows, draw).given, 0.1);
    }
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
  expect_skewed_coverage(0.5, 0, {0, 0.05, 0.9, 0.95});
  expect_skewed_coverage(1.0, 0, {0, 0, 0.8, 0.9});
  expect_skewed_coverage(1.5, 0, {0, 0, 0, 0});
  expect_skewed_coverage(0.5, 0.3, {0, 0, 0.5, 0.9});
  expect_skewed_coverage(1.0, 0.3, {0, 0, 0.5, 0.9});
  expect_skewed_coverage(0.5, 0.6, {0, 0, 0, 0.6});
}

// Windows side by side, of which the load lasts for several.
TEST(IntervalGrid, DependentWindows) {
  const auto expect = [](double correlation, const std::vector<double>& least) {
    expect_coverage(named("autoregression", correlation), 0.1, least, [=](std::size_t windows, Rng& rng) {
      const std::vector<double> slow = autoregression(windows, correlation, rng);
      return single_runs(
          windows, [&](std::size_t) { return 20 + rng.normal(); },
          [&](std::size_t w, double theirs) { return theirs + 2 + slow[w]; });
    });
  };
  expect(0.3, {0, 0, 0.4, 0.9});
  expect(0.5, {0, 0, 0, 0.8});
  expect(0.7, {0, 0, 0, 0});
}

// Runs of one configuration that differ by their seed, `spread` among them, against one run or as many.
void expect_group_coverage(std::size_t runs, std::size_t others, double spread) {
  const std::string what =
      std::to_string(runs) + " seeds against " + std::to_string(others) + named(", spread", spread);
  expect_coverage(what, 0.1, {0, 0.05, 0.8, 0.9}, [=](std::size_t windows, Rng& rng) {
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
