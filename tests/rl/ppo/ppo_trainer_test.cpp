// SPDX-License-Identifier: Apache-2.0
// PPO from its first iteration to its files and failures.
#include "src/rl/ppo/ppo_trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/initial_parameters.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/training_windows.hpp"
#include "tests/rl/ppo/ppo_run.hpp"

namespace gpusched {
namespace {

class PpoRun : public test::PpoTrainingRun {
 protected:
  void expect_threads_change_nothing() {
    ASSERT_TRUE(run(2, folder_));
    config_.threads = 3;
    ASSERT_TRUE(run(2, folder_ + "_other"));
    expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  }
};

TEST_F(PpoRun, LearnsToBeatItsHeuristic) {
  config_.ppo.windows = 4;
  config_.ppo.group = 4;
  const auto summary = run(25, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
  // The folder holds the model that was best.
  const auto model = load_model(folder_);
  ASSERT_TRUE(model) << model.error().to_string();
  const auto windows = make_windows(jobs_, config_.windows, Split::validation);
  const Actor actor{&model->network, &model->normaliser, model->parameters};
  double slowdown = 0;
  for (const RewardVector& totals :
       evaluate_windows(pointers_to(*windows), cluster_, config_.env, actor, Acting::best, Heuristic::fcfs)) {
    slowdown -= totals[reward_bounded_slowdown] / config_.windows.jobs / static_cast<double>(windows->size());
  }
  EXPECT_NEAR(slowdown, summary->best_validation, 1e-9 * slowdown);
}

TEST_F(PpoRun, LearnsVisiblyOnASyntheticTrace) {
  TrainConfig config;
  config.trace = "synthetic:philly";
  config.cluster = "8x8";
  config.env.agenda = {.mode = ActionMode::select_blocking, .heuristic = Heuristic::fcfs};
  config.windows = {.jobs = 256, .warm_up_jobs = 64, .stride = 64, .train_fraction = 0.55, .validation_fraction = 0.2};
  config.network = {.kind = NetworkKind::sc20_kernel, .alpha = 0.5};
  config.ppo.iterations = 8;
  config.ppo.minibatch = 256;
  config.ppo.critic_warm_up = 0;
  config.ppo.learning_rate = 5e-3;
  config.ppo.desired_kl = 0.03;
  config.ppo.reward_scale = RewardScale::window;
  config.ppo.validate_every = 8;
  config.ppo.validation_windows = 16;
  config.test_at_end = true;
  const auto input = load_train_input(config);
  ASSERT_TRUE(input) << input.error().to_string();
  EXPECT_EQ(input->cluster.name, "8x8");
  const auto summary = train(
      config, input->trace.jobs, input->cluster, folder_, false, [](const TrainProgress&) {}, ppo_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->best_iteration, 8u);  // not the untrained one
  EXPECT_LT(summary->best_validation, 0.6 * summary->validation_heuristic);
  ASSERT_TRUE(summary->held_out);
  EXPECT_EQ(summary->held_out->figure, "avg_bounded_slowdown");
}

TEST_F(PpoRun, ImitatesATeacher) {
  config_.ppo.imitate_iterations = 12;
  config_.ppo.teacher = Heuristic::sjf;
  config_.ppo.learning_rate = 5e-3;
  ASSERT_TRUE(run(12, folder_));
  const auto model = load_model(folder_);
  ASSERT_TRUE(model);
  const auto windows = make_windows(jobs_, config_.windows, Split::validation);
  const auto mean_slowdown = [&](Acting acting, Heuristic heuristic) {
    const Actor actor{&model->network, &model->normaliser, model->parameters};
    double sum = 0;
    for (const RewardVector& t :
         evaluate_windows(pointers_to(*windows), cluster_, config_.env, actor, acting, heuristic)) {
      sum -= t[reward_bounded_slowdown];
    }
    return sum;
  };
  const double teacher = mean_slowdown(Acting::heuristic, Heuristic::sjf);
  const double prior = mean_slowdown(Acting::heuristic, Heuristic::fcfs);
  ASSERT_LT(teacher, 0.6 * prior);
  EXPECT_LT(mean_slowdown(Acting::best, Heuristic::fcfs), teacher + 0.3 * (prior - teacher));
}

// The teacher's order is the other way round than the prior, so that nothing but imitation leads there.
TEST_F(PpoRun, ImitatesATrainedModel) {
  TrainedModel teacher{
      .agenda = config_.env.agenda, .network = {.kind = NetworkKind::index}, .normaliser = {}, .parameters = {}};
  const NetworkLayout layout = layout_of(teacher.network);
  teacher.parameters.assign(layout.size, 0.0f);
  teacher.parameters[layout.score2.offset] = -10;  // of the known run time: shortest first
  const std::string folder = temporary_.path() + "/teacher";
  ASSERT_TRUE(save_model(teacher, folder));
  config_.ppo.imitate_iterations = 12;
  config_.ppo.teacher_model = folder;
  config_.ppo.learning_rate = 5e-3;
  const auto summary = run(12, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.75 * summary->validation_heuristic);
  ASSERT_TRUE(run(6, folder_ + "_other"));
  ASSERT_TRUE(run(12, folder_ + "_other", true));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  config_.env.agenda.heuristic = Heuristic::saf;
  const auto refused = run(1, folder_ + "_third");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().to_string(),
            folder + ": /ppo/teacher: is a model of another env/mode, knowledge, heuristic or choose_nodes");
}

TEST_F(PpoRun, GoesOnBitForBit) {
  ASSERT_TRUE(run(5, folder_ + "_other"));
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(5, folder_, true));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
}

class PpoRunWithEveryOption : public PpoRun {
 protected:
  void SetUp() override {
    PpoRun::SetUp();
    config_.ppo.adapt_learning_rate = false;
    config_.ppo.anneal = 10;
    config_.ppo.average_reward = true;
    config_.ppo.horizon_jobs = 15;
    config_.ppo.horizon_iterations = 4;
    config_.cluster_scales = {1, 1.5};
    config_.ppo.baseline = Baseline::self_critic;
    config_.ppo.critic_warm_up = 1;
    config_.ppo.kl_stop = 1e-6;
    config_.ppo.piece = 17;
    config_.shuffle = {.windows = 9, .stretch = 0.1};
  }
};

TEST_F(PpoRunWithEveryOption, GoesOnBitForBit) {
  ASSERT_TRUE(run(5, folder_ + "_other"));
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(5, folder_, true));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  EXPECT_NE(checkpoint(folder_).reward_per_s, 0);
  EXPECT_NEAR(checkpoint(folder_).learning_rate, config_.ppo.learning_rate * (1 - 4 / 10.0), 1e-15);
}

TEST_F(PpoRunWithEveryOption, ThreadsDoNotChangeIt) { expect_threads_change_nothing(); }

TEST_F(PpoRunWithEveryOption, EachChangesWhatIsLearned) {
  ASSERT_TRUE(run(2, folder_));
  const std::vector<float> all = checkpoint(folder_).parameters;
  const TrainConfig every = config_;
  const auto differs_without = [&](const auto& leave_out) {
    config_ = every;
    leave_out(config_.ppo);
    std::filesystem::remove_all(folder_ + "_other");
    EXPECT_TRUE(run(2, folder_ + "_other"));
    return checkpoint(folder_ + "_other").parameters != all;
  };
  EXPECT_TRUE(differs_without([&](PpoOptions&) { config_.shuffle.windows = 0; }));
  EXPECT_TRUE(differs_without([&](PpoOptions&) { config_.shuffle.stretch = 0; }));
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.anneal = 0; }));
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.average_reward = false; }));
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.horizon_iterations = ppo.horizon_jobs = 0; }));
  EXPECT_TRUE(differs_without([&](PpoOptions&) { config_.cluster_scales = {1}; }));
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.baseline = Baseline::both; }));
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.critic_warm_up = 0; }));
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.kl_stop = 0; }));
}

// A gentle task, so that these are seen to learn and not only to run.
TEST_F(PpoRunWithEveryOption, StillLearns) {
  config_.ppo.windows = 4;
  config_.ppo.group = 4;
  config_.ppo.anneal = 40;
  config_.ppo.learning_rate = 3e-3;
  config_.ppo.kl_stop = 0.05;
  const auto summary = run(25, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
}

// What is learned from states that are simulated again is what is learned from those that were kept, to the last bit:
// in one piece or several, whole or truncated, on clusters of several sizes, imitating or not, by any number of
// threads.
TEST_F(PpoRun, LearnsTheSameFromStatesThatItDoesNotKeep) {
  struct Way {
    std::uint32_t minibatch, piece;
    Baseline baseline;
  };
  int number = 0;
  for (const Way& way : {Way{64, 4096, Baseline::both}, Way{100'000, 50, Baseline::self_critic}}) {
    config_.ppo.minibatch = way.minibatch;
    config_.ppo.piece = way.piece;
    config_.ppo.baseline = way.baseline;
    config_.ppo.horizon_jobs = 15;
    config_.ppo.horizon_iterations = 3;
    config_.cluster_scales = {1, 1.5};
    config_.ppo.imitate_iterations = 1;
    config_.ppo.teacher = Heuristic::sjf;
    config_.ppo.resimulate = false;
    config_.threads = 1;
    const std::string kept = folder_ + std::to_string(++number);
    const std::string simulated = kept + "_simulated";
    ASSERT_TRUE(run(4, kept));
    config_.ppo.resimulate = true;
    config_.threads = 3;
    ASSERT_TRUE(run(4, simulated));
    expect_same(checkpoint(kept), checkpoint(simulated));
    EXPECT_NE(checkpoint(kept).parameters, initial_parameters(config_.network, Rng(config_.seed).split("parameters")));
  }
}

// Far from any clip, training goes where the advantages point; a penalty keeps it near where it began, also after a
// resumed run has forgotten all but its checkpoint.
TEST_F(PpoRun, StaysNearTheStartAsItsPenaltyWants) {
  config_.ppo.learning_rate = 5e-3;
  config_.ppo.adapt_learning_rate = false;
  config_.ppo.kl_stop = 0;
  config_.ppo.start_kl = 1e-9;
  ASSERT_TRUE(run(6, folder_));
  const double free = std::stod(column("start_kl").at(6));
  EXPECT_GT(free, 0.01);
  std::filesystem::remove_all(folder_);
  config_.ppo.start_kl = 3;
  ASSERT_TRUE(run(4, folder_));
  ASSERT_TRUE(run(6, folder_, true));
  EXPECT_LT(std::stod(column("start_kl").at(6)), 0.3 * free);
  EXPECT_EQ(checkpoint(folder_).start, initial_parameters(config_.network, Rng(config_.seed).split("parameters")));
  ASSERT_TRUE(run(6, folder_ + "_other"));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
}

// The densities of acting and learning are those of one temperature, or the first minibatch would show a divergence.
TEST_F(PpoRun, DrawsAndLearnsAtOneTemperature) {
  config_.ppo.temperature = 0.3;
  config_.ppo.kl_stop = 1e-6;
  config_.ppo.epochs = 1;
  config_.ppo.minibatch = 1'000'000;
  ASSERT_TRUE(run(3, folder_));
  EXPECT_EQ(checkpoint(folder_).adam.policy_steps, 3);
  const std::vector<float> cool = checkpoint(folder_).parameters;
  config_.ppo.temperature = 1;
  ASSERT_TRUE(run(3, folder_ + "_other"));
  EXPECT_NE(checkpoint(folder_ + "_other").parameters, cool);
}

// On the windows that it is sought on, which are those of training: sampled actions cost what they may.
TEST_F(PpoRun, FindsATemperatureAtWhichSamplingIsCheap) {
  config_.env.agenda.heuristic = Heuristic::sjf;  // which chance does not beat
  config_.network.alpha = 0.5;
  config_.ppo.sampling_cost = 0.05;
  config_.ppo.learning_rate = 1e-9;
  config_.ppo.adapt_learning_rate = false;
  config_.ppo.validate_every = 3;
  config_.ppo.validation_windows = 16;
  ASSERT_TRUE(run(1, folder_));
  const double found = checkpoint(folder_).temperature;
  EXPECT_LT(found, 0.5);
  EXPECT_GT(found, 1e-3);
  EXPECT_NEAR(std::stod(column("temperature").at(1)), found, 1e-5);
  EXPECT_GT(std::stod(column("sampled_over_best").at(0)), 1.2);  // at temperature 1
  const auto windows = training_windows(config_, jobs_);
  ASSERT_TRUE(windows);
  const auto model = load_model(folder_);
  Actor actor{&model->network, &model->normaliser, model->parameters};
  const auto some = pointers_to(windows->train);
  const auto cost = [&](double temperature) {
    actor.temperature = temperature;
    return mean_of(window_losses(some, cluster_, config_.env, actor, Acting::sample, 99)) /
           mean_of(window_losses(some, cluster_, config_.env, actor, Acting::best));
  };
  EXPECT_LT(cost(found), 1.15);
  EXPECT_GT(cost(4 * found), 1.05);
  ASSERT_TRUE(run(5, folder_, true));  // sought again at iteration 3
  ASSERT_TRUE(run(5, folder_ + "_other"));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
}

// Training that leads nowhere keeps what it began with.
TEST_F(PpoRun, TheUntrainedModelStandsForValidation) {
  config_.ppo.learning_rate = 1e-9;
  config_.ppo.adapt_learning_rate = false;
  const auto summary = run(2, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->best_iteration, 0u);
  EXPECT_EQ(summary->best_validation, summary->validation_heuristic);
  const auto model = load_model(folder_);
  ASSERT_TRUE(model) << model.error().to_string();
  const NetworkLayout layout = layout_of(model->network);
  for (std::size_t i = layout.score2.offset; i < layout.score2.end(); ++i) EXPECT_EQ(model->parameters[i], 0.0f);
  EXPECT_NE(column("validation_loss").at(0), "");
  EXPECT_EQ(column("loss").at(0), "");
}

TEST_F(PpoRun, WarmsTheCriticUpBeforeThePolicyMoves) {
  config_.ppo.critic_warm_up = 2;
  const std::vector<float> untrained = initial_parameters(config_.network, Rng(config_.seed).split("parameters"));
  const auto policy = static_cast<std::ptrdiff_t>(layout_of(config_.network).policy_size);
  ASSERT_TRUE(run(2, folder_));
  const Checkpoint warm = checkpoint(folder_);
  EXPECT_TRUE(std::equal(untrained.begin(), untrained.begin() + policy, warm.parameters.begin()));
  EXPECT_FALSE(std::equal(untrained.begin() + policy, untrained.end(), warm.parameters.begin() + policy));
  EXPECT_EQ(warm.adam.policy_steps, 0);
  EXPECT_EQ(warm.learning_rate, config_.ppo.learning_rate);
  ASSERT_TRUE(run(3, folder_, true));
  EXPECT_FALSE(std::equal(untrained.begin(), untrained.begin() + policy, checkpoint(folder_).parameters.begin()));
  EXPECT_EQ(column("policy_steps").at(2), "0");
  EXPECT_EQ(column("approx_kl").at(2), "");
  EXPECT_NE(column("approx_kl").at(3), "");
}

TEST_F(PpoRun, TheAdaptedRateKeepsToItsBounds) {
  config_.ppo.most_learning_rate = 1.3e-3;
  config_.ppo.desired_kl = 0.5;  // never reached
  config_.ppo.kl_stop = 0;
  ASSERT_TRUE(run(2, folder_));
  EXPECT_EQ(checkpoint(folder_).learning_rate, 1.3e-3);
  config_.ppo.desired_kl = 1e-6;  // always passed
  config_.ppo.least_learning_rate = 0.9e-3;
  ASSERT_TRUE(run(2, folder_ + "_other"));
  EXPECT_EQ(checkpoint(folder_ + "_other").learning_rate, 0.9e-3);
}

TEST_F(PpoRun, TakesOneStepForABatchOfManyPieces) {
  config_.ppo.minibatch = 1'000'000;
  config_.ppo.piece = 16;
  config_.ppo.epochs = 3;
  config_.ppo.kl_stop = 0;
  ASSERT_TRUE(run(2, folder_));
  EXPECT_EQ(checkpoint(folder_).adam.policy_steps, 6);
  EXPECT_EQ(checkpoint(folder_).adam.steps, 6);
}

TEST_F(PpoRun, StopsAPolicyThatHasMovedTooFarAndGoesOnInTheNextIteration) {
  config_.ppo.kl_stop = 1e-6;  // the first minibatch of an update is that of the policy that acted
  config_.ppo.learning_rate = 0.05;
  config_.ppo.adapt_learning_rate = false;
  ASSERT_TRUE(run(3, folder_));
  const Checkpoint state = checkpoint(folder_);
  EXPECT_EQ(state.adam.policy_steps, 3);
  EXPECT_GT(state.adam.steps, 12);
}

TEST_F(PpoRun, LogsHowNoisyItsGradientsAreAndWhereItsTimeGoes) {
  config_.ppo.windows = 4;
  ASSERT_TRUE(run(2, folder_));
  for (const std::size_t iteration : {1, 2}) {
    EXPECT_LE(std::fabs(std::stod(column("gradient_cosine").at(iteration))), 1);
    EXPECT_LE(std::stod(column("explained_variance").at(iteration)), 1);
    double shares = 0;
    for (const char* name : {"environment_share", "inference_share", "learner_share"}) {
      const double share = std::stod(column(name).at(iteration));
      EXPECT_GT(share, 0) << name;
      shares += share;
    }
    EXPECT_LE(shares, 1.001);
    EXPECT_GT(shares, 0.8);
  }
}

// Nearly always the best action is drawn with a large alpha, any with a small one.
TEST_F(PpoRun, LogsWhatSamplingCosts) {
  config_.network.alpha = 1000;
  ASSERT_TRUE(run(1, folder_));
  EXPECT_NEAR(std::stod(column("sampled_over_best").at(0)), 1, 0.02);
  std::filesystem::remove_all(folder_);
  config_.network.alpha = 0.1;
  ASSERT_TRUE(run(1, folder_));
  EXPECT_GT(std::fabs(std::stod(column("sampled_over_best").at(0)) - 1), 0.03);
}

TEST_F(PpoRun, WithAHorizonThatHoldsNoChoiceSaysSo) {
  config_.ppo.horizon_jobs = 1;
  config_.ppo.horizon_iterations = 4;
  const auto result = run(1, folder_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(),
            "/ppo/horizon_jobs: no training window has a choice before its end; expected more jobs");
}

TEST_F(PpoRun, SurvivesBeingKilledAtAnyMoment) {
  ASSERT_NO_FATAL_FAILURE(run_killed_after(folder_ + "/checkpoint.bin", 100'000));

  const std::uint32_t reached = checkpoint(folder_).iteration;
  ASSERT_GE(reached, 1u);
  ASSERT_TRUE(run(reached + 1, folder_, true));
  ASSERT_TRUE(run(reached + 1, folder_ + "_other"));
  // The last iteration of a run is validated, which the killed run's were not at the same places: compare what is
  // trained.
  const Checkpoint resumed = checkpoint(folder_);
  const Checkpoint straight = checkpoint(folder_ + "_other");
  EXPECT_EQ(resumed.iteration, straight.iteration);
  EXPECT_EQ(resumed.parameters, straight.parameters);
  EXPECT_EQ(resumed.adam.first, straight.adam.first);
  EXPECT_EQ(resumed.adam.second, straight.adam.second);
  EXPECT_EQ(resumed.learning_rate, straight.learning_rate);
}

TEST_F(PpoRun, ThreadsDoNotChangeIt) { expect_threads_change_nothing(); }

TEST_F(PpoRun, WithLossesThatAreNoNumbersStopsAndKeepsTheCheckpoint) {
  ASSERT_TRUE(run(2, folder_));
  Checkpoint broken = checkpoint(folder_);
  broken.return_mean = 1e300;  // overflows the critic's units
  ASSERT_TRUE(save_checkpoint(broken, folder_ + "/checkpoint.bin"));
  const std::string before = *read_text_file(folder_ + "/checkpoint.bin");
  const std::string model = *read_text_file(folder_ + "/weights.bin");
  const auto result = run(5, folder_, true);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(),
            "the policy loss is not a number in iteration 3; the last good checkpoint and "
            "model are kept in " +
                folder_);
  EXPECT_EQ(*read_text_file(folder_ + "/checkpoint.bin"), before);
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), model);
}

TEST_F(PpoRun, RefusesCheckpointsThatDoNotFit) {
  ASSERT_TRUE(run(1, folder_));
  const std::string path = folder_ + "/checkpoint.bin";
  const auto refusal = [&](const NetworkSpec& spec) {
    const auto loaded = load_checkpoint(path, spec);
    return loaded ? "" : loaded.error().message;
  };
  EXPECT_EQ(refusal({.kind = NetworkKind::sc20_kernel, .critic_width = 8}),
            "holds a network of 1008 parameters; the configuration's has 1339");
  const std::string whole = *read_text_file(path);
  std::filesystem::resize_file(path, whole.size() / 2);
  EXPECT_EQ(refusal(config_.network), "is cut off or altered");
  std::filesystem::resize_file(path, 10);
  EXPECT_EQ(refusal(config_.network), "is no checkpoint of this version");
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_EQ(refusal(config_.network), "");
  config_.ppo.clip = 0.1;
  const auto result = run(2, folder_, true);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(), path + ": was made with another configuration than config.json beside it");
}

TEST_F(PpoRun, NamesThePartOfTheTraceThatIsTooShort) {
  config_.windows.jobs = 200;
  const auto result = run(1, folder_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(),
            "windows/jobs: the validation part has 120 jobs; expected at least the 200 of one window");
}

TEST_F(PpoRun, WritesAMetricsRowForEachIteration) {
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(3, folder_, true));
  std::istringstream csv(*read_text_file(folder_ + "/metrics.csv"));
  std::string line;
  std::getline(csv, line);
  const auto columns = std::count(line.begin(), line.end(), ',');
  int rows = -1;  // the first is of the untrained model
  while (std::getline(csv, line)) {
    EXPECT_TRUE(line.starts_with(std::to_string(++rows) + ",")) << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns) << line;
  }
  EXPECT_EQ(rows, 3);
}

}  // namespace
}  // namespace gpusched
