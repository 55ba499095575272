// SPDX-License-Identifier: Apache-2.0
#include "src/policies/seam/duration_estimator.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/recent_runs.hpp"
#include "src/policies/orders/fifo.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

struct Job {
  std::int64_t submit_s;
  std::int64_t work_s;
  std::uint32_t gpus = 1;
  std::string user = "ann";
  std::string name = "train";
  std::int64_t asked_s = 100;  // -1: nothing
};

JobTable table_of(const std::vector<Job>& rows) {
  JobTableBuilder builder;
  for (const Job& job : rows) {
    builder.add({.submit = whole_seconds(job.submit_s),
                 .work = whole_seconds(job.work_s),
                 .estimate = job.asked_s < 0 ? Time::max() : whole_seconds(job.asked_s),
                 .shape = {.tasks = job.gpus, .gpu_milli_per_task = whole_gpu},
                 .user = job.user,
                 .group = job.user,
                 .name = job.name});
  }
  return *std::move(builder).build();
}

// Asks for an estimate of each job as it arrives, in a cluster where none waits.
class Recorder {
 public:
  Recorder(AnyDurationEstimator estimator, std::vector<double>* estimates)
      : estimator_(std::move(estimator)), estimates_(estimates) {}
  [[nodiscard]] std::string_view name() const { return "recorder"; }
  void decide(const OracleView& view, Decision& decision) {
    estimator_.observe(view);
    for (const Event& event : view.events()) {
      if (event.kind != EventKind::submit) continue;
      estimates_->push_back(to_seconds(estimator_.estimate(view, event.job)));
      decision.start(event.job);
    }
  }

 private:
  AnyDurationEstimator estimator_;
  std::vector<double>* estimates_;
};

std::vector<double> estimates(const DurationEstimatorOptions& options, const JobTable& jobs) {
  auto made = make_duration_estimator(options, {.jobs = &jobs, .seed = 5});
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  std::vector<double> result;
  Recorder recorder(*made, &result);
  Engine engine(jobs, Cluster::pool(100'000));
  simulate(engine, recorder);
  return result;
}

std::vector<double> estimates(const std::string& estimator, const JobTable& jobs) {
  return estimates(DurationEstimatorOptions{.name = estimator}, jobs);
}

std::vector<double> estimates(const std::string& estimator, const std::vector<Job>& rows) {
  return estimates(estimator, table_of(rows));
}

using Seconds = std::vector<double>;

TEST(DurationEstimator, GivenByTruthOrUser) {
  const std::vector<Job> jobs{{.submit_s = 0, .work_s = 30}, {.submit_s = 1, .work_s = 300}};
  EXPECT_EQ(estimates("exact", jobs), (Seconds{30, 300}));
  EXPECT_EQ(estimates("user", jobs), (Seconds{100, 100}));
  EXPECT_EQ(estimates("requested", jobs), (Seconds{100, 100}));
}

// A job without a request must not be given its true run time: "requested" once did that.
TEST(DurationEstimator, NoRequestIsNoReasonToKnowTheTruth) {
  const std::vector<Job> jobs{{.submit_s = 0, .work_s = 30, .asked_s = -1},
                              {.submit_s = 50, .work_s = 7, .asked_s = -1},
                              {.submit_s = 60, .work_s = 7, .asked_s = 25}};
  const Seconds guessed = estimates("requested", jobs);
  EXPECT_EQ(guessed[0], 3600);        // nothing has finished
  EXPECT_NEAR(guessed[1], 30, 1e-5);  // one job has, alike in everything
  EXPECT_EQ(guessed[2], 25);
  EXPECT_EQ(estimates("user", jobs), (Seconds{365.0 * 86400, 365.0 * 86400, 25}));
}

// log(1 + t) of ann's one-GPU job is a, of bob's two-GPU job b. Each mean weighs its own jobs and 4 of the level above.
TEST(DurationEstimator, HistoryRefinesByShapeAndUser) {
  const std::vector<Job> jobs{{.submit_s = 0, .work_s = 99, .gpus = 1, .user = "ann"},
                              {.submit_s = 0, .work_s = 9, .gpus = 2, .user = "bob"},
                              {.submit_s = 200, .work_s = 1, .gpus = 1, .user = "ann"},
                              {.submit_s = 200, .work_s = 1, .gpus = 4, .user = "cat"}};
  const double a = std::log(100), b = std::log(10), all = (a + b) / 2;
  const double of_vc = (a + b + 4 * all) / 6, of_shape = (a + 4 * of_vc) / 5, of_ann = (a + 4 * of_shape) / 5;
  const Seconds guessed = estimates({.name = "history", .half_life_jobs = 0}, table_of(jobs));
  EXPECT_NEAR(guessed[2], std::exp(of_ann) - 1, 1e-5);
  EXPECT_NEAR(guessed[3], std::exp(of_vc) - 1, 1e-5);
  // With a half-life so long that nothing fades, two more means of ann's one-GPU jobs follow.
  const double of_kind = (a + 4 * of_ann) / 5, of_late = (a + 4 * of_kind) / 5;
  const Seconds recent = estimates({.name = "history", .half_life_jobs = 1e9}, table_of(jobs));
  EXPECT_NEAR(recent[2], std::exp(of_late) - 1, 1e-5);
  EXPECT_NEAR(recent[3], std::exp(of_vc) - 1, 1e-5);
}

// Jobs of one kind, 20 of 10 s and then 20 of 1,000 s: what is guessed follows them, on the scale of logarithms by four
// fifths: 65 % of the mean over a half-life is of the long jobs, and all of that over a tenth of it, which weighs 3.4
// jobs beside 4 of the former.
TEST(DurationEstimator, HistoryForgets) {
  std::vector<Job> jobs;
  for (int i = 0; i < 41; ++i) jobs.push_back({.submit_s = 2000 * i, .work_s = i < 20 ? 10 : 1000});
  const Seconds all = estimates({.name = "history", .half_life_jobs = 0}, table_of(jobs));
  const Seconds recent = estimates({.name = "history", .half_life_jobs = 20}, table_of(jobs));
  EXPECT_NEAR(all[40], std::sqrt(11.0 * 1001) - 1, 1e-4);  // as many of each
  EXPECT_NEAR(recent[20], 10, 0.1);
  EXPECT_NEAR(std::log(recent[40] / 10) / std::log(100), 0.81, 0.01);
  const JobTable table = table_of(jobs);
  EXPECT_EQ(make_duration_estimator({.name = "history", .half_life_jobs = 0.5}, {.jobs = &table}).error().message,
            "half_life_jobs: expected 0 or at least 1 job");
}

// Against the definition, over so many jobs that the weights leave the range of numbers and are made small again.
TEST(RecentRuns, IsTheDefinition) {
  for (const double half_life : {1.0, 7.0, 500.0}) {
    RecentRuns recent(half_life);
    std::vector<double> values;
    Rng rng = Rng(3).split("runs");
    for (int i = 0; i < 3000; ++i) {
      const double seconds = rng.lognormal(5, 2);
      recent.learn(1, 2, 0, seconds);
      values.push_back(std::log1p(seconds));
    }
    double guess = 0;
    for (const auto& [lives, prior] : {std::pair{10.0, 0.0}, {10.0, 4.0}, {10.0, 4.0}, {1.0, 4.0}, {0.1, 4.0}}) {
      double sum = prior * guess, count = prior;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double weight = std::exp2(-static_cast<double>(values.size() - 1 - i) / (lives * half_life));
        sum += weight * values[i];
        count += weight;
      }
      guess = sum / count;
    }
    EXPECT_NEAR(recent.predict_seconds(1, 2, 0), std::expm1(guess), 1e-9 * std::expm1(guess)) << half_life;
    EXPECT_EQ(RecentRuns(half_life).predict_seconds(1, 2, 0), 0);
  }
}

TEST(DurationEstimator, RunningMeans) {
  const std::vector<Job> jobs{{.submit_s = 0, .work_s = 10, .gpus = 1, .user = "ann"},
                              {.submit_s = 20, .work_s = 30, .gpus = 2, .user = "ann"},
                              {.submit_s = 60, .work_s = 1, .gpus = 2, .user = "ann"},
                              {.submit_s = 70, .work_s = 1, .gpus = 2, .user = "bob"}};
  // Nothing known; one of 10 s; ann's mean of 10 and 30 s, or her two-GPU job; bob gets the mean of all.
  EXPECT_EQ(estimates("user-mean", jobs), (Seconds{3600, 10, 20, (10 + 30 + 1) / 3.0 - 2e-6 / 3}));
  EXPECT_EQ(estimates("user-gpu-mean", jobs), (Seconds{3600, 10, 30, (10 + 30 + 1) / 3.0 - 2e-6 / 3}));
  EXPECT_EQ(estimates("group-mean", jobs), estimates("user-mean", jobs));
  EXPECT_EQ(estimates("group-gpu-mean", jobs), estimates("user-gpu-mean", jobs));
}

TEST(DurationEstimator, NameHistory) {
  const std::vector<Job> jobs{{.submit_s = 0, .work_s = 10, .name = "bert-1"},
                              {.submit_s = 20, .work_s = 30, .name = "bert-1"},
                              {.submit_s = 60, .work_s = 50, .name = "bert-1"},
                              {.submit_s = 200, .work_s = 1, .name = "bert-1"},                 // (30 + 50) / 2
                              {.submit_s = 300, .work_s = 1, .name = "bert-77"},                // alike: (50 + 1) / 2
                              {.submit_s = 400, .work_s = 1, .user = "bob", .name = "bert-3"},  // (1 + 1) / 2
                              {.submit_s = 500, .work_s = 9, .user = "bob", .name = "eval"},    // bob's
                              {.submit_s = 600, .work_s = 9, .user = "cat", .name = "plot"}};   // (1 + 9) / 2 of all
  EXPECT_EQ(estimates("name-history", jobs), (Seconds{3600, 10, 20, 40, 25.5, 1, 1, 5}));
}

TEST(DurationEstimator, NoiseIsSeededAndHasTheStatedSpread) {
  std::vector<Job> jobs;
  for (int i = 0; i < 4000; ++i) jobs.push_back({.submit_s = i, .work_s = 1000});
  const Seconds noisy = estimates("noisy", jobs);
  EXPECT_EQ(noisy, estimates("noisy", jobs));
  double sum = 0;
  double squares = 0;
  for (const double s : noisy) {
    sum += std::log(s / 1000);
    squares += std::log(s / 1000) * std::log(s / 1000);
  }
  EXPECT_NEAR(sum / 4000, 0, 4 * 0.5 / std::sqrt(4000));
  EXPECT_NEAR(std::sqrt(squares / 4000), 0.5, 0.03);
}

// An error of e^10 on 30,000 years is more than a clock counts.
TEST(DurationEstimator, NoiseStaysWithinTime) {
  std::vector<Job> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back({.submit_s = i, .work_s = 1'000'000'000'000});
  const Seconds noisy = estimates(DurationEstimatorOptions{.name = "noisy", .noise_sigma = 10}, table_of(jobs));
  for (const double s : noisy) EXPECT_TRUE(s >= 0 && s <= to_seconds(end_of_time)) << s;
}

TEST(DurationEstimator, QuantileRegressionFindsTheConditionalMedian) {
  // Run times are half or twice 100 s x GPUs, half of the jobs each, with noise around; after training the prediction
  // for 8 GPUs must be above that for 1 GPU by about the factor 8, and sit near the middle.
  Rng rng(3);
  std::vector<Job> jobs;
  for (int i = 0; i < 3000; ++i) {
    const auto gpus = std::uint32_t{1} << rng.below(4);
    const double seconds = 100.0 * gpus * rng.lognormal(0, 0.4);
    jobs.push_back({.submit_s = i * 50, .work_s = static_cast<std::int64_t>(seconds), .gpus = gpus});
  }
  const Seconds predicted = estimates("quantile", jobs);
  double below = 0;
  for (std::size_t i = 1000; i < jobs.size(); ++i) below += static_cast<double>(jobs[i].work_s) < predicted[i] ? 1 : 0;
  EXPECT_NEAR(below / 2000, 0.5, 0.05);
  double log_ratio = 0;
  int ones = 0;
  int eights = 0;
  for (std::size_t i = 1000; i < jobs.size(); ++i) {
    if (jobs[i].gpus == 8) log_ratio += std::log(predicted[i]), ++eights;
  }
  log_ratio /= eights;
  double log_one = 0;
  for (std::size_t i = 1000; i < jobs.size(); ++i) {
    if (jobs[i].gpus == 1) log_one += std::log(predicted[i]), ++ones;
  }
  EXPECT_NEAR(log_ratio - log_one / ones, std::log(8.0), 0.3);
}

// No estimate may depend on what lies ahead: run times of jobs that have not finished when the estimate is made.
RC_GTEST_PROP(DurationEstimator, NeverSeesTheFuture, ()) {
  const auto works = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 200)));
  const auto cut = static_cast<std::int64_t>(*rc::gen::inRange<int>(0, static_cast<int>(works.size()) * 10));
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < works.size(); ++i) {
    jobs.push_back({.submit_s = static_cast<std::int64_t>(i) * 10,
                    .work_s = works[i],
                    .gpus = 1 + static_cast<std::uint32_t>(works[i]) % 4,
                    .user = works[i] % 3 == 0 ? "ann" : "bob",
                    .name = "job" + std::to_string(works[i] % 5),
                    .asked_s = i % 2 == 0 ? 100 : -1});
  }
  std::vector<Job> other = jobs;
  for (Job& job : other) {
    if (job.submit_s + job.work_s > cut) job.work_s += 100'000 - job.work_s / 2;
  }
  for (const char* estimator : {"user", "requested", "history", "user-mean", "user-gpu-mean", "group-mean",
                                "group-gpu-mean", "name-history", "quantile"}) {
    const Seconds one = estimates(estimator, jobs);
    const Seconds two = estimates(estimator, other);
    for (std::size_t i = 0; i < jobs.size() && jobs[i].submit_s <= cut; ++i) RC_ASSERT(one[i] == two[i]);
  }
}

TEST(DurationEstimator, OnlyTheTrueOnesAreClairvoyant) {
  const JobTable jobs = table_of({{.submit_s = 0, .work_s = 30}});
  for (const DurationEstimatorInfo& row : duration_estimators()) {
    const auto made = make_duration_estimator({.name = row.name}, {.jobs = &jobs});
    ASSERT_TRUE(made.has_value()) << row.name;
    const bool truth = row.name == "exact" || row.name == "noisy";
    EXPECT_EQ(made->clairvoyant(), truth) << row.name;
  }
}

TEST(DurationEstimator, UnknownNameGetsTheNearest) {
  const JobTable jobs;
  EXPECT_NE(make_duration_estimator({.name = "exakt"}, {.jobs = &jobs}).error().message.find("exact"),
            std::string::npos);
}

}  // namespace
}  // namespace gpusched
