// SPDX-License-Identifier: Apache-2.0
/// A small training run by PPO, and what its checkpoints hold.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "src/base/strict_json.hpp"
#include "src/rl/ppo/checkpoint.hpp"
#include "src/rl/ppo/ppo_trainer.hpp"
#include "tests/rl/training_run.hpp"

namespace gpusched::test {

class PpoTrainingRun : public TrainingRun {
 protected:
  PpoTrainingRun() { ppo_ = train_by_ppo; }

  [[nodiscard]] Checkpoint checkpoint(const std::string& folder) const {
    auto loaded = load_checkpoint(folder + "/checkpoint.bin", config_.network);
    EXPECT_TRUE(loaded) << loaded.error().to_string();
    return *std::move(loaded);
  }

  /// A column of metrics.csv in folder_, a text for each iteration from 0 on.
  [[nodiscard]] std::vector<std::string> column(const std::string& name) const {
    std::istringstream csv(*read_text_file(folder_ + "/metrics.csv"));
    const auto cells = [](const std::string& line) {
      std::vector<std::string> result(1);
      for (const char c : line) {
        if (c == ',') {
          result.emplace_back();
        } else {
          result.back() += c;
        }
      }
      return result;
    };
    std::string line;
    std::getline(csv, line);
    const std::vector<std::string> names = cells(line);
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    EXPECT_LT(at, names.size()) << name;
    std::vector<std::string> values;
    while (std::getline(csv, line)) values.push_back(cells(line).at(at));
    return values;
  }

  static void expect_same(const Checkpoint& a, const Checkpoint& b) {
    EXPECT_EQ(a.iteration, b.iteration);
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.parameters, b.parameters);
    EXPECT_EQ(a.adam.first, b.adam.first);
    EXPECT_EQ(a.adam.second, b.adam.second);
    EXPECT_EQ(a.adam.steps, b.adam.steps);
    EXPECT_EQ(a.adam.policy_steps, b.adam.policy_steps);
    EXPECT_EQ(a.learning_rate, b.learning_rate);
    EXPECT_EQ(a.temperature, b.temperature);
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.return_mean, b.return_mean);
    EXPECT_EQ(a.return_scale, b.return_scale);
    EXPECT_EQ(a.reward_per_s, b.reward_per_s);
    EXPECT_EQ(a.best_iteration, b.best_iteration);
    EXPECT_EQ(a.best_validation, b.best_validation);
    EXPECT_EQ(a.normaliser, b.normaliser);
  }
};

}  // namespace gpusched::test
