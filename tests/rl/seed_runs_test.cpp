// SPDX-License-Identifier: Apache-2.0
// Runs of several seeds: each is what one run of that seed is, and what they say together.
#include "src/rl/seed_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"
#include "tests/rl/training_run.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

class SeedRunsTest : public test::TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    config_.network.kind = NetworkKind::index;
    config_.method = Method::cma_es;
    config_.search = {.generations = 3, .population = 4, .windows = 2, .validate_every = 1};
  }

  SeedRuns train_all(const Seeds& seeds, std::uint32_t threads, const std::string& folder, bool resume = false) {
    config_.threads = threads;
    return train_seeds(
        config_, seeds, jobs_, cluster_, folder, resume, [](std::uint64_t, const TrainProgress&) {}, ppo_);
  }

  static std::string files_of(const std::string& folder) {
    std::string all;
    for (const char* name : {"/model.json", "/weights.bin", "/config.json"}) all += test::bytes_of(folder + name);
    return all;
  }
  static std::string weights_of(const std::string& folder, std::uint64_t seed) {
    return test::bytes_of(seed_folder(folder, seed) + "/weights.bin");
  }
};

TEST_F(SeedRunsTest, EachIsTheRunOfThatSeedForAnyNumberOfThreads) {
  const SeedRuns one = train_all({1, 2, 5}, 1, folder_), three = train_all({1, 2, 5}, 3, folder_ + "3");
  EXPECT_EQ(seeds_csv(one), seeds_csv(three));
  EXPECT_EQ(seeds_json(one), seeds_json(three));
  config_.threads = 1;
  for (const std::uint64_t seed : {1, 2, 5}) {
    config_.seed = seed;
    const std::string alone = folder_ + "-alone" + std::to_string(seed);
    ASSERT_TRUE(run(config_.ppo.iterations, alone));
    EXPECT_TRUE(files_of(seed_folder(folder_, seed)) == files_of(alone)) << seed;
    EXPECT_TRUE(files_of(seed_folder(folder_ + "3", seed)) == files_of(alone)) << seed;
  }
  EXPECT_FALSE(weights_of(folder_, 1) == weights_of(folder_, 2));
}

TEST_F(SeedRunsTest, GoOnWhereTheyStopped) {
  const SeedRuns whole = train_all({3, 4}, 1, folder_);
  config_.search.generations = 2;
  train_all({3}, 1, folder_ + "2");
  config_.search.generations = 3;
  const SeedRuns resumed = train_all({3, 4}, 1, folder_ + "2", true);
  EXPECT_EQ(seeds_csv(resumed), seeds_csv(whole));
  EXPECT_TRUE(weights_of(folder_ + "2", 3) == weights_of(folder_, 3));
}

TEST_F(SeedRunsTest, AFailedSeedLeavesTheOthers) {
  std::filesystem::create_directories(folder_);
  std::ofstream(seed_folder(folder_, 2)) << "in the way";
  const SeedRuns runs = train_all({1, 2, 3}, 2, folder_);
  EXPECT_TRUE(runs.runs[0].ended());
  EXPECT_FALSE(runs.runs[1].ended());
  EXPECT_TRUE(runs.runs[2].ended());
  EXPECT_EQ(runs.losses().size(), 2u);
  EXPECT_THAT(seed_table(runs), HasSubstr("seed 2 failed: "));
  EXPECT_THAT(seeds_csv(runs), HasSubstr("\n2,,,,,,,,"));
  const auto json = nlohmann::json::parse(seeds_json(runs));
  EXPECT_TRUE(json["seeds"][1].contains("failure"));
  EXPECT_EQ(json["validation_loss"]["runs"], 2);
}

// Losses 4, 1, 100, 3, 2: mean 22, of the middle half 3.
TEST(SeedTable, GivesTheMeanAndTheInterquartileMean) {
  SeedRuns runs{.folder = "out", .runs = {}};
  std::uint64_t seed = 1;
  for (const double loss : {4.0, 1.0, 100.0, 3.0, 2.0}) {
    runs.runs.push_back({seed++, TrainSummary{.iterations = 9,
                                              .best_iteration = 7,
                                              .best_validation = loss,
                                              .validation_heuristic = 5,
                                              .device = "cpu",
                                              .held_out = {}}});
  }
  EXPECT_THAT(seed_table(runs), HasSubstr("validation loss a job of 5 seeds: mean 22, interquartile mean 3; least of "
                                          "seed 2, rl:out/seed-2\n"));
  const auto json = nlohmann::json::parse(seeds_json(runs));
  EXPECT_EQ(json["validation_loss"]["mean"], 22);
  EXPECT_EQ(json["validation_loss"]["interquartile_mean"], 3);
  EXPECT_EQ(json["validation_loss"]["least_of_seed"], 2);
  EXPECT_THAT(seeds_csv(runs), HasSubstr("\n3,7,9,0,100,5,,,\n"));
}

TEST_F(SeedRunsTest, TheVerdictIsThatOfAllSeedsTogether) {
  config_.env.agenda = {
      .mode = ActionMode::preempt, .knowledge = RuntimeKnowledge::predicted, .heuristic = Heuristic::las};
  config_.network.kind = NetworkKind::rank;
  config_.search = {.generations = 1, .windows = 2};
  config_.windows = {.jobs = 8, .stride = 8, .train_fraction = 0.1, .validation_fraction = 0.1, .history = false};
  config_.test_at_end = true;
  const SeedRuns runs = train_all({1, 2}, 1, folder_);
  ASSERT_TRUE(runs.held_out);
  ASSERT_TRUE(*runs.held_out) << runs.held_out->error().to_string();
  const HeldOut& result = **runs.held_out;
  ASSERT_EQ(result.trained.runs.size(), 2u);
  const std::vector<double> means = result.seed_means();
  ASSERT_EQ(means.size(), 2u);
  // As evaluate's group of the two: the bootstrap draws seeds and windows.
  ASSERT_FALSE(result.rows.empty());
  EXPECT_DOUBLE_EQ(*result.rows.front().agent.mean, (means[0] + means[1]) / 2);
  EXPECT_EQ(result.agent.policy, "2 seeds of " + folder_);
  EXPECT_THAT(seed_table(runs), HasSubstr("interquartile mean of 2 training seeds"));
  EXPECT_FALSE(runs.runs[0].summary->held_out);
  const auto json = nlohmann::json::parse(seeds_json(runs));
  EXPECT_EQ(json["test"]["seeds"].size(), 2u);
  EXPECT_EQ(json["test"]["figure"], "avg_bounded_slowdown");
  EXPECT_EQ(json["test"]["whole_jobs"], 320);
  EXPECT_NE(test::bytes_of(seed_folder(folder_, 1) + "/config.json").find("\"test_at_end\": true"), std::string::npos);
}

}  // namespace
}  // namespace gpusched
