// SPDX-License-Identifier: Apache-2.0
// PPO of the networks that need no LibTorch, in every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "src/base/strict_json.hpp"
#include "tests/rl/ppo/ppo_run.hpp"

namespace gpusched {
namespace {

class FusedRun : public test::PpoTrainingRun, public testing::WithParamInterface<NetworkKind> {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    config_.network = {.kind = GetParam(), .critic_width = 8, .alpha = 1};
  }
};

TEST_P(FusedRun, GoesOnBitForBitForAnyNumberOfThreads) {
  ASSERT_TRUE(run(5, folder_ + "_other"));
  config_.threads = 3;
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(5, folder_, true));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
}

TEST_P(FusedRun, LearnsToBeatItsHeuristic) {
  config_.ppo.windows = 4;
  config_.ppo.group = 4;
  config_.ppo.learning_rate = 3e-3;
  const auto summary = run(20, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->device, "cpu");
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
}

TEST_P(FusedRun, Imitates) {
  config_.ppo.windows = 4;
  config_.ppo.group = 4;
  config_.ppo.learning_rate = 1e-2;
  config_.ppo.imitate_iterations = 20;
  config_.ppo.teacher = Heuristic::sjf;
  const auto summary = run(20, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
}

INSTANTIATE_TEST_SUITE_P(Ppo, FusedRun,
                         testing::Values(NetworkKind::kernel, NetworkKind::sc20_kernel, NetworkKind::index),
                         [](const auto& test) {
                           std::string name(name_of(network_kind_names, test.param));
                           std::replace(name.begin(), name.end(), '@', '_');
                           return name;
                         });

}  // namespace
}  // namespace gpusched
