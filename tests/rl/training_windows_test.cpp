// SPDX-License-Identifier: Apache-2.0
#include "src/rl/training_windows.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

#include "src/rl/rollout.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

TEST(TrainingWindows, TheHorizonGrowsToTheWholeWindow) {
  const JobTable jobs = test::some_jobs(1, 50);
  Window window{.jobs = jobs, .first_scored = 10, .history = {}};
  PpoOptions options;
  EXPECT_EQ(horizon_end(options, 0, window), Time::max());
  options.horizon_jobs = 8;
  options.horizon_iterations = 4;
  EXPECT_EQ(horizon_end(options, 0, window), jobs.submit(JobId{17}));
  EXPECT_EQ(horizon_end(options, 1, window), jobs.submit(JobId{25}));
  EXPECT_EQ(horizon_end(options, 3, window), jobs.submit(JobId{41}));
  EXPECT_EQ(horizon_end(options, 4, window), Time::max());
  window.end = jobs.submit(JobId{20});
  EXPECT_EQ(horizon_end(options, 1, window), window.end);
  options.horizon_jobs = 40;
  EXPECT_EQ(horizon_end(options, 0, window), window.end);
}

TEST(TrainingWindows, ClustersAreScaledByNodesOrGpus) {
  const JobTable jobs = test::some_jobs(1, 50);  // up to 4 GPUs
  TrainConfig config;
  config.cluster_scales = {1, 0.5, 1.5};
  auto clusters = training_clusters(config, jobs, Cluster::homogeneous(4, 2));
  ASSERT_TRUE(clusters) << clusters.error().to_string();
  EXPECT_EQ((*clusters)[0].nodes.size(), 4u);
  EXPECT_EQ((*clusters)[1].nodes.size(), 2u);
  EXPECT_EQ((*clusters)[2].nodes.size(), 6u);
  clusters = training_clusters(config, jobs, Cluster::pool(9));
  ASSERT_TRUE(clusters);
  EXPECT_EQ((*clusters)[1].total_gpus(), 5);
  clusters = training_clusters(config, jobs, Cluster::pool(6));
  ASSERT_FALSE(clusters);
  EXPECT_EQ(
      clusters.error().to_string(),
      "windows.cluster_scales: a job of the trace does not fit the cluster at its smallest; expected larger scales");
  for (const Cluster& cluster : {Cluster::homogeneous(4, 8), Cluster::pool(8)}) {
    config.cluster_scales = {1, 0.05};
    clusters = training_clusters(config, jobs, cluster);
    ASSERT_FALSE(clusters);
    EXPECT_EQ(clusters.error().to_string(), "windows.cluster_scales: 0.05 times the cluster is nothing");
  }
  Cluster shared = Cluster::homogeneous(4, 2);
  shared.vcs.push_back({.name = "a"});
  EXPECT_FALSE(training_clusters(config, jobs, shared));
  config.cluster_scales = {1};
  EXPECT_TRUE(training_clusters(config, jobs, shared));
}

// 200 jobs that no two share any value of; job i is i + 1 seconds long.
JobTable unlike_jobs() {
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::string own = std::to_string(i);
    const Time first = whole_seconds(i % 3);  // two attempts where i + 1 is longer
    const std::array<Time, 2> attempts{first, whole_seconds(i + 1) - first};
    builder.add({.id = "job " + own,
                 .submit = whole_seconds(std::int64_t{i} * i),
                 .work = whole_seconds(i + 1),
                 .estimate = whole_seconds(1000 + i),
                 .shape = {.tasks = i + 1, .gpu_milli_per_task = whole_gpu},
                 .user = "user " + own,
                 .group = "group " + own,
                 .vc = "vc " + own,
                 .name = "name " + own,
                 .gpu_spec = i % 2 == 0 ? "T4" : "V100",
                 .family = "family " + own,
                 .status = i % 2 == 0 ? JobStatus::passed : JobStatus::killed,
                 .priority = static_cast<std::int32_t>(i),
                 .deadline = whole_seconds(std::int64_t{i} * i + i),
                 .attempts = attempts});
  }
  return *std::move(builder).build();
}

void expect_is_of(const JobTable& trace, JobId from, const JobTable& jobs, JobId job) {
  EXPECT_EQ(jobs.estimate(job), trace.estimate(from));
  EXPECT_EQ(jobs.shape(job).gpu_milli(), trace.shape(from).gpu_milli());
  EXPECT_EQ(jobs.gpu_specs()[jobs.shape(job).gpu_spec], trace.gpu_specs()[trace.shape(from).gpu_spec]);
  EXPECT_EQ(jobs.users()[jobs.user(job)], trace.users()[trace.user(from)]);
  EXPECT_EQ(jobs.groups()[jobs.group(job)], trace.groups()[trace.group(from)]);
  EXPECT_EQ(jobs.vcs()[jobs.vc(job)], trace.vcs()[trace.vc(from)]);
  EXPECT_EQ(jobs.names()[jobs.name(job)], trace.names()[trace.name(from)]);
  EXPECT_EQ(jobs.families()[jobs.family(job)], trace.families()[trace.family(from)]);
  EXPECT_EQ(jobs.status(job), trace.status(from));
  EXPECT_EQ(jobs.priority(job), trace.priority(from));
  EXPECT_EQ(jobs.deadline(job) - jobs.submit(job), trace.deadline(from) - trace.submit(from));
  ASSERT_EQ(jobs.attempts(job), trace.attempts(from));
  for (std::uint32_t k = 0; k < jobs.attempts(job); ++k)
    EXPECT_EQ(jobs.attempt_work(job, k), trace.attempt_work(from, k));
}

TrainConfig shuffled_config() {
  TrainConfig config;
  config.windows = {.jobs = 20, .warm_up_jobs = 4, .train_fraction = 0.5, .validation_fraction = 0.25};
  config.shuffle.windows = 50;
  config.ppo.validation_windows = 10;
  return config;
}

TEST(TrainingWindows, ShuffledOnesHoldWholeJobsOfTheirPartAlone) {
  const JobTable trace = unlike_jobs();
  const auto windows = training_windows(shuffled_config(), trace);
  ASSERT_TRUE(windows) << windows.error().to_string();
  ASSERT_EQ(windows->train.size(), 50u);
  ASSERT_EQ(windows->validation.size(), 10u);
  const auto drawn_from = [&](std::span<const Window> some, std::uint32_t begin, std::uint32_t end) {
    std::set<std::uint32_t> seen;
    for (const Window& window : some) {
      ASSERT_EQ(window.jobs.size(), 24u);
      EXPECT_EQ(window.first_scored, 4u);
      for (std::uint32_t i = 0; i < window.jobs.size(); ++i) {
        const JobId job{i};
        const auto from = static_cast<std::uint32_t>(to_seconds(window.jobs.work(job))) - 1;
        seen.insert(from);
        expect_is_of(trace, JobId{from}, window.jobs, job);
        const std::uint32_t place = window.start - 4 + i;  // whose submission it has
        EXPECT_TRUE(place >= begin && place < end) << place;
        EXPECT_EQ(window.jobs.submit(job), trace.submit(JobId{place}));
      }
    }
    EXPECT_GE(*seen.begin(), begin);
    EXPECT_LT(*seen.rbegin(), end);
    EXPECT_GT(seen.size(), 0.9 * (end - begin));
  };
  drawn_from(windows->train, 0, 100);
  drawn_from(windows->validation, 100, 150);
}

TEST(TrainingWindows, AShareBeginsWithoutWarmUpJobs) {
  const JobTable jobs = test::some_jobs(5, 200);
  TrainConfig config;
  config.windows = {.jobs = 20,
                    .warm_up_jobs = 10,
                    .stride = 10,
                    .train_fraction = 0.5,
                    .validation_fraction = 0.2,
                    .truncate = true};
  const auto warm = training_windows(config, jobs);
  config.empty_share = 0.5;
  const auto mixed = training_windows(config, jobs);
  ASSERT_TRUE(warm && mixed);
  ASSERT_EQ(warm->train.size(), 8u);
  ASSERT_EQ(mixed->train.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    const Window &window = mixed->train[i], &before = warm->train[i];
    const bool empty = i % 2 == 1;
    EXPECT_EQ(window.first_scored, empty ? 0u : 10u);
    EXPECT_EQ(window.start, before.start);
    EXPECT_EQ(window.jobs.size(), empty ? 20u : 30u);
    EXPECT_EQ(window.jobs.external_id(JobId{window.first_scored}), before.jobs.external_id(JobId{10}));
    EXPECT_EQ(window.end, window.jobs.submits().back());
    EXPECT_EQ(window.end - window.jobs.submit(JobId{window.first_scored}), before.end - before.jobs.submit(JobId{10}));
  }
}

TEST(TrainingWindows, OfTheValidationMayBeLogsOfAnotherLength) {
  const JobTable jobs = test::some_jobs(5, 200);
  TrainConfig config;
  config.windows = {.jobs = 20, .warm_up_jobs = 10, .stride = 10, .train_fraction = 0.5, .validation_fraction = 0.4};
  const auto alike = training_windows(config, jobs);
  config.validation_jobs = 40;
  const auto windows = training_windows(config, jobs);
  ASSERT_TRUE(alike && windows);
  EXPECT_EQ(windows->train.size(), alike->train.size());
  ASSERT_EQ(windows->validation.size(), 2u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const Window& window = windows->validation[i];
    EXPECT_EQ(window.first_scored, 0u);
    EXPECT_EQ(window.start, 100 + 40 * i);
    EXPECT_EQ(window.jobs.size(), 40u);
  }
  config.validation_jobs = 81;
  const auto none = training_windows(config, jobs);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().to_string(),
            "windows/jobs: the validation part has 80 jobs; expected at least the 81 of one window");
}

TEST(TrainingWindows, ShuffledOnesAreDrawnByTheSeed) {
  const JobTable trace = unlike_jobs();
  TrainConfig config = shuffled_config();
  const auto works_of = [&] {
    std::vector<Time> works;
    const auto windows = training_windows(config, trace);
    for (const auto* part : {&windows->train, &windows->validation}) {
      for (const Window& window : *part) {
        works.insert(works.end(), window.jobs.works().begin(), window.jobs.works().end());
      }
    }
    return works;
  };
  const std::vector<Time> works = works_of();
  EXPECT_EQ(works_of(), works);
  config.seed = 2;
  EXPECT_NE(works_of(), works);
}

TEST(TrainingWindows, ShuffledOnesAreStretched) {
  const JobTable trace = unlike_jobs();
  TrainConfig config = shuffled_config();
  config.shuffle.stretch = 0.2;
  config.windows.arrival_scale = 2;
  config.windows.truncate = true;
  const auto windows = training_windows(config, trace);
  double least = 9;
  double most = 0;
  for (const Window& window : windows->train) {
    const JobId first{window.start - 4};
    const Time last = window.jobs.submit(JobId{23});
    EXPECT_EQ(window.end, last);
    EXPECT_EQ(window.jobs.submit(JobId{0}), trace.submit(first));
    const double scale = to_seconds(last - trace.submit(first)) /
                         to_seconds(trace.submit(JobId{window.start + 19}) - trace.submit(first));
    least = std::min(least, scale);
    most = std::max(most, scale);
  }
  EXPECT_NEAR(least, 2 * std::exp(-0.2), 0.08);
  EXPECT_NEAR(most, 2 * std::exp(0.2), 0.08);
}

TEST(TrainingWindows, ShuffledOnesOfAPartThatIsTooShortAreRefused) {
  TrainConfig config = shuffled_config();
  config.windows.jobs = 60;
  const auto windows = training_windows(config, unlike_jobs());
  ASSERT_FALSE(windows);
  EXPECT_EQ(windows.error().to_string(),
            "windows/jobs: the validation part has 50 jobs; expected at least the 64 of one window");
}

}  // namespace
}  // namespace gpusched
