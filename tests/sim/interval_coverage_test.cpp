// SPDX-License-Identifier: Apache-2.0
// Calibration of the intervals of `evaluate`: trials over windows of whole logs, of which the true difference is known,
// because it is zero (the same policy with two seeds: A/A) or because the whole log was run. A trial sees 10 to 80
// windows, drawn anywhere or side by side in time. tests/support/interval_promise.hpp says what is promised;
// tests/base/interval_grid_test.cpp does the same on series.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"
#include "src/sim/evaluation.hpp"
#include "src/world/fit_to_cluster.hpp"
#include "tests/support/files.hpp"
#include "tests/support/interval_promise.hpp"
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

// Runs of policies over the windows of a log.
std::vector<PolicyScores> scores_of(const JobTable& jobs, const Cluster& cluster, std::uint32_t window_jobs,
                                    const std::string& policies) {
  const EvaluationOptions options{.engine = {.seed = 1}, .windows = {.jobs = window_jobs, .stride = window_jobs}};
  EvaluationProgress progress;
  const auto scores =
      evaluate_policies(jobs, cluster, options, *parse_policy_list(policies), PolicyRegistry::standard(), 2, progress);
  EXPECT_TRUE(scores) << scores.error().to_string();
  return *scores;
}

Columns columns_of(const std::vector<PolicyScores>& scores, const char* figure) {
  std::vector<std::size_t> windows(scores.front().windows.size());
  for (std::size_t w = 0; w < windows.size(); ++w) windows[w] = w;
  Columns columns;
  for (const PolicyScores& own : scores) columns.push_back(own.values(*find_metric(figure), windows));
  return columns;
}

// The windows of a trial: drawn with replacement, or beside each other from a random place.
std::vector<std::size_t> windows_of(std::size_t all, std::size_t count, bool consecutive, Rng& rng) {
  std::vector<std::size_t> windows(count);
  const std::size_t first = rng.below(all);
  for (std::size_t i = 0; i < count; ++i) windows[i] = consecutive ? (first + i) % all : rng.below(all);
  return windows;
}

// One kind of difference on one log.
struct Case {
  std::string what;
  double truth = 0;     // of the difference over theirs
  std::size_t all = 0;  // windows of the log
  bool consecutive = false;
  WindowMean mean = WindowMean::arithmetic;
};

// `least`: the share of trials that must give an interval with 40 windows or more. `draw` gives the values in a
// trial's windows.
template <class Draw>
void expect_coverage(const Case& given, double least, Draw draw) {
  std::vector<test::IntervalCell> row;
  for (const std::size_t count : {10, 20, 40, 80}) {
    test::IntervalCell cell{.windows = count, .trials = test::interval_trials(500)};
    // A known difference side by side: the log holds so many stretches, which all trials share.
    if (given.consecutive && given.truth != 0) cell.different = given.all / count;
    for (std::size_t trial = 0; trial < cell.trials; ++trial) {
      Rng rng = Rng(test::interval_seed(11)).split(given.what).split(count).split(trial);
      const Sample sample = draw(windows_of(given.all, count, given.consecutive, rng), rng);
      const auto interval =
          paired_intervals({sample.ours}, {sample.theirs}, 1, rng.split("bootstrap"), 199, given.mean);
      if (interval) cell.add(interval->relative, given.truth);
    }
    row.push_back(cell);
  }
  test::print_row(given.what, row);
  for (const test::IntervalCell& cell : row) {
    test::expect_promise(given.what, cell);
    if (cell.windows >= least_values) {
      EXPECT_GE(cell.given_share(), least) << given.what << " " << cell.windows;
    }
  }
}

// Columns: one policy with several seeds.
void expect_null_coverage(const std::string& log, const Columns& columns, double least,
                          WindowMean mean = WindowMean::arithmetic) {
  for (const bool consecutive : {false, true}) {
    expect_coverage(
        {log + ", A/A, " + (consecutive ? "consecutive" : "permuted"), 0, columns[0].size(), consecutive, mean}, least,
        [&](const std::vector<std::size_t>& windows, Rng& rng) {
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

double mean_of(const std::vector<double>& values, WindowMean mean) {
  return *interquartile_mean_of_runs({values}, mean);
}

void expect_known_coverage(const std::string& what, const std::vector<double>& ours, const std::vector<double>& theirs,
                           bool consecutive, double least, WindowMean mean = WindowMean::arithmetic) {
  const double truth = mean_of(ours, mean) / mean_of(theirs, mean) - 1;
  expect_coverage({what + ", " + (consecutive ? "consecutive" : "permuted"), truth, ours.size(), consecutive, mean},
                  least, [&](const std::vector<std::size_t>& windows, Rng&) {
                    Sample sample;
                    for (const std::size_t w : windows) {
                      sample.ours.push_back(ours[w]);
                      sample.theirs.push_back(theirs[w]);
                    }
                    return sample;
                  });
}

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

TEST(IntervalCoverage, OnLublin1) {
  const std::string path = test::real_trace("swf/lublin_256.swf");
  if (path.empty()) GTEST_SKIP() << "no swf/lublin_256.swf in ../shared/traces or GPUSCHED_TRACES";
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace) << trace.error().to_string();
  const Cluster cluster = Cluster::pool(256);
  expect_null_coverage("Lublin-1, mean wait", columns_of(scores_of(trace->jobs, cluster, 100, noisy), "avg_wait_s"),
                       0.5);
  // 100 windows in all: side by side, all trials would see much the same.
  const Columns orders = columns_of(scores_of(trace->jobs, cluster, 100, "fifo,sjf,saf"), "avg_wait_s");
  expect_known_coverage("Lublin-1, mean wait, sjf against fifo", orders[1], orders[0], false, 0.7);
  expect_known_coverage("Lublin-1, mean wait, saf against sjf", orders[2], orders[1], false, 0.2);
}

// Where a few windows hold most of the waiting, 80 short windows show too little of it. Longer ones do, and so do
// ratios.
TEST(IntervalCoverage, OnAnSp2LikeLog) {
  const JobTable jobs = sp2_like(480'000);
  const auto brief = scores_of(jobs, Cluster::pool(128), 400, "fifo,sjf,saf");
  const Columns waits = columns_of(brief, "avg_wait_s");
  const Columns slowdowns = columns_of(brief, "avg_bounded_slowdown");
  const Columns longer = columns_of(scores_of(jobs, Cluster::pool(128), 2'000, "fifo,sjf,saf"), "avg_wait_s");
  for (const bool consecutive : {false, true}) {
    expect_known_coverage("SP2-like, mean wait, sjf against fifo", waits[1], waits[0], consecutive, 0);
    expect_known_coverage("SP2-like, mean wait, saf against sjf", waits[2], waits[1], consecutive, 0);
    expect_known_coverage("SP2-like, ratio of slowdowns, sjf against fifo", slowdowns[1], slowdowns[0], consecutive,
                          0.7, WindowMean::geometric);
    expect_known_coverage("SP2-like, ratio of slowdowns, saf against sjf", slowdowns[2], slowdowns[1], consecutive, 0,
                          WindowMean::geometric);
  }
  expect_known_coverage("SP2-like, windows of 2,000, mean wait, sjf against fifo", longer[1], longer[0], false, 0.2);
  const auto seeds = scores_of(jobs.slice(0, 160'000), Cluster::pool(128), 400, noisy);
  expect_null_coverage("SP2-like, mean wait", columns_of(seeds, "avg_wait_s"), 0);
  expect_null_coverage("SP2-like, ratio of slowdowns", columns_of(seeds, "avg_bounded_slowdown"), 0,
                       WindowMean::geometric);
}

TEST(IntervalCoverage, OnASyntheticLog) {
  auto model = builtin_model("philly");
  ASSERT_TRUE(model);
  const auto jobs = generate_synthetic(*model, {.jobs = 60'000, .offered_load = 6, .cluster_gpus = 64, .seed = 12});
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const auto fitted = fit_to_cluster({.jobs = *jobs, .report = {}}, Cluster::homogeneous(8, 8), Oversize::drop);
  ASSERT_TRUE(fitted);
  const auto scores = scores_of(fitted->jobs, Cluster::homogeneous(8, 8), 300, "fifo,sjf,las");
  const Columns waits = columns_of(scores, "avg_wait_s");
  const Columns slowdowns = columns_of(scores, "avg_bounded_slowdown");
  // 200 windows in all: side by side, all trials would see much the same.
  expect_known_coverage("synthetic Philly, mean wait, sjf against fifo", waits[1], waits[0], false, 0);
  expect_known_coverage("synthetic Philly, mean wait, las against sjf", waits[2], waits[1], false, 0);
  expect_known_coverage("synthetic Philly, ratio of slowdowns, sjf against fifo", slowdowns[1], slowdowns[0], false,
                        0.7, WindowMean::geometric);
  expect_known_coverage("synthetic Philly, ratio of slowdowns, las against sjf", slowdowns[2], slowdowns[1], false, 0,
                        WindowMean::geometric);
}

}  // namespace
}  // namespace gpusched
