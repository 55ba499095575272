// SPDX-License-Identifier: Apache-2.0
// Actions that are the weights of an index and hold for a while: in rollouts, in PPO and in the trained policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "src/base/strict_json.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/initial_parameters.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/training_windows.hpp"
#include "tests/rl/ppo/ppo_run.hpp"

namespace gpusched {
namespace {

struct SteeringCase {
  const char* name;
  ActionMode mode;
  NetworkKind kind;
  double hold_s = 0;
  std::uint32_t hold_jobs = 0;
};
void PrintTo(const SteeringCase& of, std::ostream* out) { *out << of.name; }
constexpr SteeringCase steering_cases[] = {{"choices", ActionMode::fit_or_wait, NetworkKind::index, 200},
                                           {"preempt", ActionMode::preempt, NetworkKind::rank, 200},
                                           {"choices_by_jobs", ActionMode::fit_or_wait, NetworkKind::index, 0, 10},
                                           {"preempt_by_jobs", ActionMode::preempt, NetworkKind::rank, 0, 10}};

class Steering : public test::PpoTrainingRun, public testing::WithParamInterface<SteeringCase> {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    config_.env.agenda = {.mode = GetParam().mode, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::fcfs};
    config_.env.weights = {};
    config_.env.weights[reward_jct] = 1;
    config_.network = {.kind = GetParam().kind,
                       .width = 8,
                       .heads = 2,
                       .critic_width = 8,
                       .alpha = 1,
                       .hold_s = GetParam().hold_s,
                       .hold_jobs = GetParam().hold_jobs};
    config_.ppo.windows = 4;
    config_.ppo.group = 4;
    config_.ppo.lambda_time_s = 100;
  }

  [[nodiscard]] TrainedModel some_model() const {
    TrainedModel model{.agenda = config_.env.agenda,
                       .network = config_.network,
                       .normaliser = {},
                       .parameters = test::random_parameters(config_.network, 4)};
    return model;
  }
};

// The policy that simulate() runs acts anew at the same instants, with the same weights, as the episode did.
TEST_P(Steering, ATrainedPolicyDecidesAsInItsEpisodes) {
  const TrainedModel model = some_model();
  const Window window{.jobs = jobs_.slice(0, jobs_.size()), .history = {}};
  Env env(cluster_, config_.env);
  ASSERT_FALSE(env.reset(window).done());
  const Actor actor{&model.network, &model.normaliser, model.parameters};
  const Episode episode = steer_episode(env, actor, Acting::best, Rng(1));
  EXPECT_EQ(test::run(jobs_, cluster_, RlPolicy("x", model, jobs_.works(), false, 0)), test::spans_of(env.engine()));
  // Few steps, of the time or submissions that an action holds for or a little more; and not the same action
  // throughout.
  ASSERT_GT(episode.size(), 10u);
  const auto arrived = [&](std::size_t step) {
    std::uint32_t jobs = 0;
    while (jobs < jobs_.size() && to_seconds(jobs_.submit(JobId{jobs})) <= episode.time_s[step]) ++jobs;
    return jobs;
  };
  for (std::size_t k = 0; k + 1 < episode.size(); ++k) {
    EXPECT_GE(episode.seconds[k], config_.network.hold_s - 1e-6);
    EXPECT_GE(arrived(k + 1), arrived(k) + config_.network.hold_jobs);
  }
  if (config_.network.hold_jobs > 0) {
    EXPECT_GE(episode.size(), jobs_.size() / (3 * config_.network.hold_jobs));
  }
  const std::size_t steered = layout_of(model.network).steered;
  ASSERT_EQ(episode.weights.size(), episode.size() * steered);
  EXPECT_FALSE(std::equal(episode.weights.begin(), episode.weights.begin() + static_cast<std::ptrdiff_t>(steered),
                          episode.weights.end() - static_cast<std::ptrdiff_t>(steered)));
  double reward = 0;
  for (const double own : episode.reward) reward += own;
  EXPECT_NEAR(reward, env.totals()[reward_jct], 1e-9 * std::fabs(reward));
}

TEST_P(Steering, UntrainedItIsItsHeuristic) {
  TrainedModel model = some_model();
  model.parameters = initial_parameters(model.network, Rng(1));
  const Window window{.jobs = jobs_.slice(0, jobs_.size()), .history = {}};
  Env env(cluster_, config_.env);
  for (StepResult result = env.reset(window); !result.done();) result = env.step(Heuristic::fcfs);
  EXPECT_EQ(test::run(jobs_, cluster_, RlPolicy("x", model, jobs_.works(), false, 0)), test::spans_of(env.engine()));
}

// In mode preempt the weights follow the state of the whole cluster, which no other agent of that mode sees.
TEST_P(Steering, SeesTheWholeCluster) {
  // By seconds, so that it also acts while the queue drains: before, the cluster is always full.
  config_.network.hold_s = 200;
  config_.network.hold_jobs = 0;
  const TrainedModel model = some_model();
  const Window window{.jobs = jobs_.slice(0, jobs_.size()), .history = {}};
  Env env(cluster_, config_.env);
  ASSERT_FALSE(env.reset(window).done());
  const Actor actor{&model.network, &model.normaliser, model.parameters};
  const Episode episode = steer_episode(env, actor, Acting::best, Rng(1));
  for (const GlobalFeature feature : {free_fraction, log_queue, log_running, log_queued_work, log_oldest_wait,
                                      log_arrivals_5m, log_arrivals_60m, log_next_end}) {
    std::vector<float> values;
    for (std::size_t k = 0; k < episode.size(); ++k) {
      values.push_back(episode.observation.global[k * global_features + feature]);
      EXPECT_GE(values.back(), 0.0f);
    }
    EXPECT_LT(*std::min_element(values.begin(), values.end()), *std::max_element(values.begin(), values.end()))
        << static_cast<int>(feature);
  }
}

// The densities that acting and learning work out are the same, or the first minibatch would show a divergence.
TEST_P(Steering, APolicyDoesNotDivergeFromItself) {
  config_.ppo.kl_stop = 1e-6;  // what single precision leaves is less
  config_.ppo.critic_warm_up = 0;
  ASSERT_TRUE(run(3, folder_));
  EXPECT_EQ(checkpoint(folder_).adam.policy_steps, 3);
}

TEST_P(Steering, LearnsToBeatItsHeuristic) {
  config_.ppo.learning_rate = 5e-3;
  config_.ppo.validate_every = 5;
  config_.network.deviation = 0.3;
  const auto summary = run(30, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.95 * summary->validation_heuristic);
  EXPECT_TRUE(load_model(folder_));
}

TEST_P(Steering, GoesOnBitForBitForAnyNumberOfThreads) {
  ASSERT_TRUE(run(4, folder_ + "_other"));
  config_.threads = 2;
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(4, folder_, true));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
}

TEST_P(Steering, SurvivesBeingKilledAtAnyMoment) {
  config_.ppo.validate_every = 1;
  ASSERT_NO_FATAL_FAILURE(run_killed_after(folder_ + "/checkpoint.bin", 100'000));
  const std::uint32_t reached = checkpoint(folder_).iteration;
  ASSERT_TRUE(run(reached + 1, folder_, true));
  ASSERT_TRUE(run(reached + 1, folder_ + "_other"));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
}

TEST_P(Steering, StaysNearTheStartAsItsPenaltyWants) {
  config_.ppo.learning_rate = 1e-3;
  config_.ppo.adapt_learning_rate = false;
  config_.ppo.kl_stop = 0;
  const auto moved = [&](double weight) {
    config_.ppo.start_kl = weight;
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(run(8, folder_));
    return std::stod(column("start_kl").at(8));
  };
  EXPECT_LT(moved(10), 0.5 * moved(1e-9));
}

// A model that does not steer gives its weights to one that does, which then acts like it.
TEST_P(Steering, StartsFromATrainedModel) {
  TrainedModel model = some_model();
  model.network.hold_s = 0;
  model.network.hold_jobs = 0;
  model.parameters = test::random_parameters(model.network, 9);
  const std::string start = temporary_.path() + "/start";
  ASSERT_TRUE(save_model(model, start));
  const auto windows = training_windows(config_, jobs_);
  ASSERT_TRUE(windows);
  double expected = 0;
  for (const double loss : window_losses(pointers_to(windows->validation), cluster_, config_.env,
                                         {&model.network, &model.normaliser, model.parameters}, Acting::best)) {
    expected += loss / static_cast<double>(windows->validation.size());
  }
  config_.init = start;
  config_.ppo.learning_rate = 1e-9;
  config_.ppo.adapt_learning_rate = false;
  if (GetParam().mode == ActionMode::preempt) {  // else all jobs are ranked anew at times
    config_.network.hold_s = 1e9;
    config_.network.hold_jobs = 0;
  }
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->best_iteration, 0u);
  EXPECT_NEAR(summary->best_validation, expected, 1e-9 * expected);
  config_.env.agenda.knowledge = RuntimeKnowledge::none;
  const auto refused = run(1, folder_ + "_other");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().to_string(),
            start + ": /init: is a model of another env/mode, knowledge, heuristic or choose_nodes");
}

INSTANTIATE_TEST_SUITE_P(Ppo, Steering, testing::ValuesIn(steering_cases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace gpusched
