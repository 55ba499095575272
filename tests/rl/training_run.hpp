// SPDX-License-Identifier: Apache-2.0
/// A small training run in a folder of its own, which the tests of both methods start from.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "src/rl/trainer.hpp"
#include "tests/learn/learning_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {

class TrainingRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = temporary_.path() + "/run";
    config_.trace = "synthetic";
    config_.env.agenda = {
        .mode = ActionMode::select_blocking, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::fcfs};
    config_.windows = {.jobs = 40, .stride = 20, .train_fraction = 0.6, .validation_fraction = 0.3};
    config_.network = {.kind = NetworkKind::deepsets, .width = 8, .heads = 2, .critic_width = 8, .alpha = 1};
    config_.ppo.windows = 2;
    config_.ppo.group = 2;
    config_.ppo.minibatch = 64;
    config_.ppo.critic_warm_up = 0;
    config_.ppo.validate_every = 2;
  }
  Result<TrainSummary> run(std::uint32_t iterations, const std::string& folder, bool resume = false) {
    config_.ppo.iterations = iterations;
    return train(
        config_, jobs_, cluster_, folder, resume, [](const TrainProgress&) {}, ppo_);
  }

  /// Runs for long in another process, which is killed a while after it has written `file`.
  void run_killed_after(const std::string& file, std::uint32_t iterations) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      static_cast<void>(run(iterations, folder_));
      _exit(0);
    }
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::seconds(300);
    while (!std::filesystem::exists(file) && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(237));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }

  TrainingMethod* ppo_ = nullptr;  ///< for the methods that need none
  JobTable jobs_ = some_jobs(11, 400);
  Cluster cluster_ = Cluster::homogeneous(1, 4);
  TrainConfig config_;
  TempFolder temporary_;
  std::string folder_;
};

}  // namespace gpusched::test
