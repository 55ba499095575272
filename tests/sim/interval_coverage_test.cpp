// SPDX-License-Identifier: Apache-2.0
// Calibration of the intervals of `evaluate`: trials over windows of whole logs, of which the true difference is known,
// because it is zero (the same policy with two seeds: A/A) or because the whole log was run. A trial sees 10 to 80
// windows, drawn anywhere or side by side in time. The share of its verdicts' intervals that hold the truth must be 92
// to 97 % (80 % where fewer than a quarter of the trials give a verdict, which look lighter than the log is); where
// there are too few windows there must be no interval. tests/base/interval_grid_test.cpp does the same on series.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"
#include "src/sim/evaluation.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {
namespace {

// A figure of policies in every window: [policy][window].
using Columns = std::vector<std::vector<double>>;

// What two policies got in the windows of a trial.
struct Sample {
  std::vector<double> ours, theirs;
};

class IntervalCoverage : public testing::Test {
 protected:
  static Columns columns_of(const JobTable& jobs, const Cluster& cluster, std::uint32_t window_jobs,
                            const std::string& policies) {
    const EvaluationOptions options{.engine = {.seed = 1}, .windows = {.jobs = window_jobs, .stride = window_jobs}};
    EvaluationProgress progress;
    const auto scores = evaluate_policies(jobs, cluster, options, *parse_policy_list(policies),
                                          PolicyRegistry::standard(), 2, progress);
    EXPECT_TRUE(scores) << scores.error().to_string();
    std::vector<std::size_t> windows(scores->front().windows.size());
    for (std::size_t w = 0; w < windows.size(); ++w) windows[w] = w;
    Columns columns;
    for (const PolicyScores& own : *scores) columns.push_back(own.values(*find_metric("avg_wait_s"), windows));
    return columns;
  }

  // The windows of a trial: drawn with replacement, or beside each other from a random place.
  static std::vector<std::size_t> windows_of(std::size_t all, std::size_t count, bool consecutive, Rng& rng) {
    std::vector<std::size_t> windows(count);
    const std::size_t first = rng.below(all);
    for (std::size_t i = 0; i < count; ++i) windows[i] = consecutive ? (first + i) % all : rng.below(all);
    return windows;
  }

  // `truth`: of the difference over theirs. `least`: the share of trials that must give a verdict with 40 windows or
  // more. `draw` gives the values in a trial's windows.
  template <class Draw>
  void expect_coverage(const std::string& what, double truth, double least, std::size_t all, bool consecutive,
                       Draw draw) {
    constexpr int trials = 1000;
    int all_given = 0, all_covered = 0;
    for (const std::size_t count : {10, 20, 40, 80}) {
      int given = 0, covered = 0;
      for (int trial = 0; trial < trials; ++trial) {
        Rng rng = Rng(11).split(what).split(count).split(static_cast<std::uint64_t>(trial));
        const Sample sample = draw(windows_of(all, count, consecutive, rng), rng);
        const auto interval = paired_intervals({sample.ours}, {sample.theirs}, 1, rng.split("bootstrap"), 399);
        if (!interval) continue;
        ++given;
        covered += interval->relative.low <= truth && truth <= interval->relative.high ? 1 : 0;
      }
      if (count >= 40) {
        EXPECT_GE(given, least * trials) << what << " " << count;
      }
      if (given < trials / 10) continue;  // no verdict
      all_given += given;
      all_covered += covered;
      const double share = static_cast<double>(covered) / given;
      std::printf("%-44s %3zu windows: %3.0f %% verdicts, %.1f %% hold\n", what.c_str(), count, 100.0 * given / trials,
                  100 * share);
      const double noise = 3 * std::sqrt(0.95 * 0.05 / given);
      EXPECT_GE(share, (given < trials / 4 ? 0.8 : 0.92) - noise) << what << " " << count;
      if (consecutive && truth != 0) continue;  // a log holds few stretches of 80 windows: its own mean is near theirs
      EXPECT_LE(share, 0.97 + noise) << what << " " << count;
    }
    if (all_given == 0) return;
    const double share = static_cast<double>(all_covered) / all_given;
    EXPECT_GE(share, 0.92) << what;
    if (!consecutive || truth == 0) {
      EXPECT_LE(share, 0.98) << what;
    }
  }

  // Columns: one policy with several seeds.
  void expect_null_coverage(const std::string& log, const Columns& columns, double least) {
    for (const bool consecutive : {false, true}) {
      expect_coverage(log + (consecutive ? ", A/A, consecutive" : ", A/A, permuted"), 0, least, columns[0].size(),
                      consecutive, [&](const std::vector<std::size_t>& windows, Rng& rng) {
                        Sample sample;
                        for (const std::size_t w : windows) {
                          const std::size_t one = rng.below(columns.size());
                          const std::size_t other = (one + 1 + rng.below(columns.size() - 1)) % columns.size();
                          sample.ours.push_back(columns[one][w]);
                          sample.theirs.push_back(columns[other][w]);
                        }
                        return sample;
                      });
    }
  }

  void expect_known_coverage(const std::string& what, const std::vector<double>& ours,
                             const std::vector<double>& theirs, bool consecutive, double least) {
    expect_coverage(what + (consecutive ? ", consecutive" : ", permuted"), mean_of(ours) / mean_of(theirs) - 1, least,
                    ours.size(), consecutive, [&](const std::vector<std::size_t>& windows, Rng&) {
                      Sample sample;
                      for (const std::size_t w : windows) {
                        sample.ours.push_back(ours[w]);
                        sample.theirs.push_back(theirs[w]);
                      }
                      return sample;
                    });
  }
};

const char* const noisy =
    "sjf{estimate=noisy},sjf{estimate=noisy,seed=1},sjf{estimate=noisy,seed=2},sjf{estimate=noisy,seed=3},"
    "sjf{estimate=noisy,seed=4},sjf{estimate=noisy,seed=5}";

// 128 processors, bursts of alike jobs, sizes of powers of two, log-normal run times, and a load that follows the day
// and a level that stays for half days, so that neighbouring windows are alike: in the manner of the SP2 logs.
JobTable sp2_like(std::uint32_t count) {
  Rng rng = Rng(5).split("sp2");
  JobTableBuilder builder;
  double now = 0, level = 0, next_level = 0;
  for (std::uint32_t made = 0; made < count;) {
    for (; now >= next_level; next_level += 43'200) level = 0.7 * level + 0.5 * rng.normal();
    const double rate = std::exp(level) * (1 + 0.8 * std::sin(2 * 3.14159265 * now / 86'400));
    now += rng.exponential(135 / rate);
    const auto size = static_cast<std::uint32_t>(1) << std::min(7, static_cast<int>(2.2 * std::abs(rng.normal())));
    const double centre = std::log(1800.0) + 0.9 * rng.normal();
    const auto burst = 1 + static_cast<int>(rng.exponential(1.5));
    for (int i = 0; i < burst && made < count; ++i, ++made) {
      const double run = std::clamp(std::exp(centre + 0.5 * rng.normal()), 1.0, 64'800.0);
      builder.add({.submit = from_seconds(now),
                   .work = from_seconds(run),
                   .shape = {.tasks = size, .gpu_milli_per_task = whole_gpu}});
      now += rng.exponential(60);
    }
  }
  return *std::move(builder).build();
}

TEST_F(IntervalCoverage, OnLublin1) {
  const std::string path = test::real_trace("swf/lublin_256.swf");
  if (path.empty()) GTEST_SKIP() << "no swf/lublin_256.swf in ../shared/traces or GPUSCHED_TRACES";
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace) << trace.error().to_string();
  const Cluster cluster = Cluster::pool(256);
  expect_null_coverage("Lublin-1", columns_of(trace->jobs, cluster, 100, noisy), 0.7);
  // 100 windows in all: side by side, all trials would see much the same.
  const Columns orders = columns_of(trace->jobs, cluster, 100, "fifo,sjf,saf");
  expect_known_coverage("Lublin-1, sjf against fifo", orders[1], orders[0], false, 0.8);
  expect_known_coverage("Lublin-1, saf against sjf", orders[2], orders[1], false, 0.5);
}

// Where a few windows hold most of the waiting, 80 windows show too little of it: no verdict. Verdicts that were given
// on the synthetic log held in 47 to 79 % of trials.
class NoVerdict : public IntervalCoverage {
 protected:
  void expect_no_verdict(const std::string& log, const Columns& orders) {
    for (const bool consecutive : {false, true}) {
      for (std::size_t i = 1; i < orders.size(); ++i) {
        for (const std::size_t count : {10, 20, 40, 80}) {
          int given = 0;
          for (std::uint64_t trial = 0; trial < 500; ++trial) {
            Rng rng = Rng(11).split(log).split(count).split(trial);
            Sample sample;
            for (const std::size_t w : windows_of(orders[0].size(), count, consecutive, rng)) {
              sample.ours.push_back(orders[i][w]);
              sample.theirs.push_back(orders[i - 1][w]);
            }
            given += paired_intervals({sample.ours}, {sample.theirs}, 1, rng.split("bootstrap"), 99) ? 1 : 0;
          }
          std::printf("%s, order %zu, %s, %zu windows: %.1f %% verdicts\n", log.c_str(), i,
                      consecutive ? "consecutive" : "permuted", count, given / 5.0);
          EXPECT_LT(given, 50) << log << " " << i << " " << count;
        }
      }
    }
  }
};

TEST_F(NoVerdict, OnAnSp2LikeLog) {
  const JobTable jobs = sp2_like(480'000);
  expect_no_verdict("SP2-like", columns_of(jobs, Cluster::pool(128), 400, "fifo,sjf,saf"));
  expect_no_verdict("SP2-like, A/A", columns_of(jobs.slice(0, 160'000), Cluster::pool(128), 400, noisy));
}

TEST_F(NoVerdict, OnASyntheticLog) {
  auto model = builtin_model("philly");
  ASSERT_TRUE(model);
  const auto jobs = generate_synthetic(*model, {.jobs = 60'000, .offered_load = 6, .cluster_gpus = 64, .seed = 12});
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const auto fitted = fit_to_cluster({.jobs = *jobs, .report = {}}, Cluster::homogeneous(8, 8), Oversize::drop);
  ASSERT_TRUE(fitted);
  expect_no_verdict("synthetic philly", columns_of(fitted->jobs, Cluster::homogeneous(8, 8), 300, "fifo,sjf,las"));
}

}  // namespace
}  // namespace gpusched
