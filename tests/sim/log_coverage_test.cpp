// SPDX-License-Identifier: Apache-2.0
// Calibration of what `evaluate --mode log` says: many logs drawn from one process, of which the true effects are known
// because all of them together were run (or are none, because the same policy ran with two seeds: A/A). A trial sees
// one log. Among them are logs on which a policy falls behind or starves jobs. tests/base/interval_grid_test.cpp does
// the same on series.
//
// A row shows the mean number of batches, the share of trials with intervals, the share in which a queue was said to
// grow, and of each effect the share of intervals that hold. docs/evaluate.md has the rows of
//
//     GPUSCHED_INTERVAL_SEED=424242 GPUSCHED_INTERVAL_TRIALS=300 replay_tests --gtest_filter='LogCoverage.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "src/sim/log_evaluation.hpp"
#include "src/world/fit_to_cluster.hpp"
#include "tests/support/files.hpp"
#include "tests/support/interval_promise.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/lublin.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {
namespace {

constexpr std::size_t effects = job_effect_names.size();

// One log with its machines.
struct Log {
  JobTable jobs;
  Cluster cluster;
};

// Runs `policies`, the first of which the others are compared with.
LogEvaluation run(const Log& log, const std::string& policies, const std::vector<double>& starts = {0.05, 0.1}) {
  LogOptions options{.first = 0, .jobs = log.jobs.size()};
  for (const double start : starts) options.starts.push_back(static_cast<std::uint32_t>(start * log.jobs.size()));
  EvaluationProgress progress;
  auto scores = run_log(log.jobs, log.cluster, {.engine = {.seed = 1}, .windows = {}}, options, JobQuantity::jct,
                        *parse_policy_list(policies), PolicyRegistry::standard(), 2, progress);
  EXPECT_TRUE(scores) << scores.error().to_string();
  LogEvaluation evaluation{.log = options, .span_s = 1, .contestants = {}};
  for (LogScores& own : *scores) evaluation.contestants.push_back({own.policy, {std::move(own)}});
  return evaluation;
}

// Trials of one pair of policies.
struct Tally {
  std::size_t trials = 0, given = 0, growing = 0, batches = 0;
  std::array<std::size_t, effects> intervals{}, held{}, told{}, wrong{};

  void add(const LogFindings& findings, std::size_t row, const std::array<double, effects>& truth) {
    ++trials;
    const LogComparison& pair = *findings.comparisons[row];
    const bool grows = !findings.standings[0].grows.empty() || !findings.standings[row].grows.empty();
    growing += grows ? 1 : 0;
    if (grows || !pair.plan.enough()) return;
    ++given;
    batches += pair.plan.count;
    for (std::size_t e = 0; e < effects; ++e) {
      const EffectEstimate& effect = pair.effects[e];
      if (!effect.interval) continue;
      ++intervals[e];
      held[e] += effect.interval->low <= truth[e] && truth[e] <= effect.interval->high ? 1 : 0;
      if (effect.p > 0.05) continue;
      ++told[e];
      wrong[e] += effect.difference() * truth[e] <= 0 ? 1 : 0;
    }
  }

  // "| lublin, load 0.85: saf against fifo | 61 | 98 % | 0 % | 95.1 % (87 %) | ...": batches, trials with intervals,
  // trials in which a queue grows, intervals that hold and, in brackets, differences that are told.
  void print(const std::string& what) const {
    const auto percent = [](std::size_t part, std::size_t of) {
      return of == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(of);
    };
    std::printf("| %s | %zu | %.0f %% | %.0f %% |", what.c_str(), given > 0 ? batches / given : 0,
                percent(given, trials), percent(growing, trials));
    for (std::size_t e = 0; e < effects; ++e) {
      if (intervals[e] == 0) {
        std::printf(" none |");
      } else {
        std::printf(" %.1f %% (%.0f %%) |", percent(held[e], intervals[e]), percent(told[e], given));
      }
    }
    std::printf("\n");
  }
};

void print_header() {
  std::printf("| trials | batches | with intervals | a queue grows |");
  for (const auto& row : job_effect_names) std::printf(" %s |", std::string(row.name).c_str());
  std::printf("\n");
}

double difference(const EffectEstimate& effect) {
  return is_share(effect.effect) ? effect.ours - effect.theirs : effect.ours / effect.theirs - 1;
}

// The effects of all jobs of all logs together.
std::vector<std::array<double, effects>> truths(const std::vector<LogEvaluation>& trials) {
  const std::size_t rows = trials.front().contestants.size();
  std::vector<std::vector<std::vector<double>>> values(rows, {{}});
  for (const LogEvaluation& trial : trials) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::vector<double>& own = trial.contestants[row].runs.front().run->values;
      values[row][0].insert(values[row][0].end(), own.begin(), own.end());
    }
  }
  std::vector<std::array<double, effects>> result(rows);
  for (std::size_t row = 1; row < rows; ++row) {
    const BatchPlan whole{.count = 1, .jobs = values[0][0].size()};
    const auto all = job_effects({values[row], values[0]}, whole, 1, Rng(0));
    for (std::size_t e = 0; e < effects; ++e) result[row][e] = difference(all[e]);
  }
  return result;
}

LogFindings compared(const LogEvaluation& log, std::uint64_t seed) {
  return compare_logs({log}, {.figure = {}, .seed = seed, .resamples = 499}).front();
}

// At least 92 and at most 98.5 % of the intervals of an effect hold, up to three standard errors; of few, nothing is
// said. Effects on which both policies are nearly alike are held by wide intervals more often.
void expect_promise(const std::string& what, const Tally& tally) {
  SCOPED_TRACE(what);
  for (std::size_t e = 0; e < effects; ++e) {
    if (tally.intervals[e] < 30) continue;
    const auto count = static_cast<double>(tally.intervals[e]);
    const double share = static_cast<double>(tally.held[e]) / count;
    EXPECT_GE(share, 0.92 - 3 * std::sqrt(0.05 * 0.95 / count)) << job_effect_names[e].name;
  }
}

template <class Draw>
void expect_known(const std::string& what, const std::string& policies, Draw draw) {
  std::vector<LogEvaluation> trials;
  for (std::size_t trial = 0; trial < test::interval_trials(40); ++trial) {
    trials.push_back(run(draw(test::interval_seed(1000) + trial), policies));
  }
  const auto truth = truths(trials);
  std::vector<Tally> tallies(truth.size());
  for (std::size_t trial = 0; trial < trials.size(); ++trial) {
    const LogFindings findings = compared(trials[trial], trial);
    for (std::size_t row = 1; row < tallies.size(); ++row) tallies[row].add(findings, row, truth[row]);
  }
  for (std::size_t row = 1; row < tallies.size(); ++row) {
    const std::string name =
        what + ": " + trials.front().contestants[row].name + " against " + trials.front().contestants[0].name;
    tallies[row].print(name);
    expect_promise(name, tallies[row]);
  }
}

Log lublin(std::uint64_t seed, std::uint32_t jobs, double load) {
  auto table = generate_lublin(LublinModel{}, {.jobs = jobs, .offered_load = load, .cluster_gpus = 256, .seed = seed});
  EXPECT_TRUE(table) << table.error().to_string();
  return {*std::move(table), Cluster::pool(256)};
}

TEST(LogCoverage, OfOrdersOnLublinLogs) {
  print_header();
  const bool all = test::every_interval_cell();
  for (const double load : all ? std::vector{0.6, 0.8, 0.9} : std::vector{0.8}) {
    expect_known("Lublin, 10,000 jobs, load " + std::to_string(load).substr(0, 3),
                 all ? "fifo,sjf,saf,las" : "fifo,sjf", [&](std::uint64_t seed) { return lublin(seed, 10'000, load); });
  }
}

TEST(LogCoverage, OfBackfillingOnLublinLogs) {
  expect_known("Lublin, 10,000 jobs, load 0.5",
               test::every_interval_cell() ? "fifo+easy,saf+easy,las" : "fifo+easy,saf+easy",
               [&](std::uint64_t seed) { return lublin(seed, 10'000, 0.5); });
  if (!test::every_interval_cell()) return;
  expect_known("Lublin, 20,000 jobs, load 0.8", "fifo+easy,sjf+easy,saf+easy",
               [&](std::uint64_t seed) { return lublin(seed, 20'000, 0.8); });
}

TEST(LogCoverage, OfPoliciesThatFallBehind) {
  expect_known("Lublin, 10,000 jobs, load 1.1", "fifo,sjf,saf",
               [&](std::uint64_t seed) { return lublin(seed, 10'000, 1.1); });
}

TEST(LogCoverage, OfSyntheticPhillyLogs) {
  auto model = builtin_model("philly");
  ASSERT_TRUE(model);
  expect_known("synthetic Philly, 10,000 jobs, load 0.7",
               test::every_interval_cell() ? "fifo,sjf{skip=true},las" : "fifo,las", [&](std::uint64_t seed) -> Log {
                 auto jobs = generate_synthetic(
                     *model, {.jobs = 10'000, .offered_load = 0.7, .cluster_gpus = 192, .seed = seed});
                 EXPECT_TRUE(jobs) << jobs.error().to_string();
                 auto fitted =
                     fit_to_cluster({.jobs = *jobs, .report = {}}, Cluster::homogeneous(24, 8), Oversize::drop);
                 return {fitted->jobs, Cluster::homogeneous(24, 8)};
               });
}

// The same policy with several seeds: nothing differs but by chance.
void expect_alike(const std::string& what, const Log& log, std::size_t seeds) {
  std::string policies;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    policies +=
        (seed == 0 ? "" : ",") + ("sjf{estimate=noisy,noise_sigma=1,skip=true,seed=" + std::to_string(seed) + "}");
  }
  const LogEvaluation all = run(log, policies);
  Tally tally;
  for (std::size_t one = 0; one < seeds; ++one) {
    for (std::size_t other = one + 1; other < seeds; ++other) {
      LogEvaluation pair{.log = all.log, .span_s = all.span_s, .contestants = {}};
      pair.contestants = {all.contestants[one], all.contestants[other]};
      tally.add(compared(pair, one * seeds + other), 1, {});
    }
  }
  tally.print(what + ", A/A");
  expect_promise(what + ", A/A", tally);
}

TEST(LogCoverage, OfOnePolicyOnSharedLogs) {
  struct Case {
    const char* what;
    const char* file;
    Cluster cluster;
    std::uint32_t first, jobs;
  };
  const std::size_t seeds = test::interval_trials(40) >= 300 ? 24 : 8;
  for (const Case& given :
       {Case{"Lublin-1", "swf/lublin_256.swf", Cluster::pool(256), 0, 10'000},
        Case{"HPC2N", "swf/hpc2n_head_alea.swf", Cluster::pool(240), 0, 3'170},
        Case{"NASA on 64 nodes", "swf/NASA-iPSC-1993-3.1-cln.swf.gz", Cluster::pool(64), 0, 18'239},
        Case{"Philly from job 32,215 on", "philly/philly_jobs.csv", Cluster::homogeneous(200, 8), 32'215, 48'324}}) {
    const std::string path = test::real_trace(given.file);
    if (path.empty()) GTEST_SKIP() << "no " << given.file << " in ../shared/traces or GPUSCHED_TRACES";
    auto trace = read_trace(path);
    ASSERT_TRUE(trace) << trace.error().to_string();
    auto fitted = fit_to_cluster(*std::move(trace), given.cluster, Oversize::drop);
    ASSERT_TRUE(fitted);
    const std::uint32_t jobs = std::min(given.jobs, fitted->jobs.size() - given.first);
    expect_alike(given.what, {fitted->jobs.slice(given.first, jobs), given.cluster}, seeds);
  }
}

TEST(LogCoverage, OfOnePolicyOnDrawnLogs) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    expect_alike("Lublin, 10,000 jobs, load 0.9, seed " + std::to_string(seed), lublin(seed, 10'000, 0.9), 6);
  }
}

}  // namespace
}  // namespace gpusched
