// SPDX-License-Identifier: Apache-2.0
// The trainer: its network on Torch against the one that acts, its arithmetic, its files and its failures.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

#include "src/policies/rl_policy.hpp"
#include "src/policies/trained_model.hpp"
#include "src/rl/checkpoint.hpp"
#include "src/rl/cma_es.hpp"
#include "src/rl/direct_search.hpp"
#include "src/rl/event_file.hpp"
#include "src/rl/learner.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/trainer.hpp"
#include "src/rl/training_windows.hpp"
#include "src/sim/statistics.hpp"
#include "src/sim/strict_json.hpp"
#include "tests/learning_support.hpp"
#include "tests/trace_support.hpp"

namespace gpusched {
namespace {

class EveryNetwork : public testing::TestWithParam<NetworkKind> {
 protected:
  [[nodiscard]] static NetworkSpec spec() { return {.kind = GetParam(), .width = 16, .heads = 4, .critic_width = 16}; }
  [[nodiscard]] static Normaliser normaliser() {
    const std::vector<Observation> seen{test::random_observation(20, 9)};
    return Normaliser::fit(seen);
  }
  [[nodiscard]] static Learner learner_with(const std::vector<float>& parameters) {
    auto learner = Learner::create(spec(), normaliser(), "cpu");
    EXPECT_TRUE(learner);
    learner->set_state(
        parameters, {.first = std::vector<float>(parameters.size()), .second = std::vector<float>(parameters.size())});
    return *std::move(learner);
  }
  [[nodiscard]] static Minibatch minibatch() {
    Minibatch batch;
    batch.observation = test::random_observation(24, 4);
    for (int s = 0; s < 24; ++s) {
      batch.actions.push_back(s % 2);
      batch.old_log_probability.push_back(-1.0f);
      batch.advantage.push_back(s % 3 == 0 ? 1.0f : -0.5f);
      batch.value_target.push_back(0.1f * static_cast<float>(s));
      batch.old_value.push_back(0.0f);
    }
    return batch;
  }
};

TEST_P(EveryNetwork, TorchAndEigenAgree) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  const Learner learner = learner_with(parameters);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Observation seen = test::random_observation(8, seed);
    std::vector<float> logits, values;
    forward_policy(spec(), parameters, normaliser(), seen, logits);
    forward_critic(spec(), parameters, normaliser(), seen, values);
    const std::vector<float> torch_logits = learner.logits(seen);
    const std::vector<float> torch_values = learner.values(seen);
    ASSERT_EQ(logits.size(), torch_logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(logits[i], torch_logits[i], 1e-5 * std::max(1.0f, std::fabs(logits[i])));
      EXPECT_EQ(logits[i] == masked_logit, seen.mask[i] == 0);
    }
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], torch_values[i], 1e-5);
  }
}

// The same parameters and steps, three times over: what the device makes of them is what the CPU does.
TEST_P(EveryNetwork, AFixedUpdateOnTheGpuIsTheCpus) {
  auto on_device = Learner::create(spec(), normaliser(), "cuda");
  if (!on_device) GTEST_SKIP() << on_device.error().to_string();
  EXPECT_EQ(on_device->device().substr(0, 4), "cuda");
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  const std::vector<float> zeros(parameters.size());
  on_device->set_state(parameters, {.first = zeros, .second = zeros});
  Learner on_cpu = learner_with(parameters);
  const Minibatch batch = minibatch();
  constexpr double rate = 1e-3;
  for (int step = 0; step < 3; ++step) {
    const auto cpu = on_cpu.improve(batch, {}, rate);
    const auto gpu = on_device->improve(batch, {}, rate);
    ASSERT_TRUE(cpu && gpu);
    EXPECT_NEAR(cpu->policy_loss, gpu->policy_loss, 1e-5);
    EXPECT_NEAR(cpu->value_loss, gpu->value_loss, 1e-5 * std::max(1.0, cpu->value_loss));
    EXPECT_NEAR(cpu->gradient_norm, gpu->gradient_norm, 1e-4 * cpu->gradient_norm);
  }
  const std::vector<float> cpu = on_cpu.parameters();
  const std::vector<float> gpu = on_device->parameters();
  double largest = 0;
  for (std::size_t i = 0; i < cpu.size(); ++i) largest = std::max<double>(largest, std::fabs(cpu[i] - gpu[i]));
  // Three steps of Adam move a parameter by up to 3 rates: agreement to a hundredth of that.
  EXPECT_LE(largest, 0.03 * rate);
  std::printf("largest difference of a parameter: %.3g after moves of up to %.3g\n", largest, 3 * rate);
}

// Short and long queues are padded in buckets of their own, which must show in nothing: the gradient of a minibatch is
// the mean of its halves', whatever buckets the other half makes.
TEST_P(EveryNetwork, TheGradientOfAMinibatchIsTheMeanOfItsHalves) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  Rng rng(3);
  const auto states_of = [&](std::initializer_list<std::uint32_t> sizes) {
    Minibatch batch;
    const std::vector<std::uint32_t> tokens(sizes);
    const auto count = static_cast<std::uint32_t>(tokens.size());
    batch.observation.shape(count, [&](std::uint32_t e) { return std::pair{tokens[e], 1 + e % 3}; });
    Observation& seen = batch.observation;
    for (auto* values : {&seen.jobs, &seen.prior, &seen.groups, &seen.global, &seen.privileged}) {
      for (float& value : *values) value = static_cast<float>(rng.normal());
    }
    std::fill(seen.mask.begin(), seen.mask.end(), std::uint8_t{1});
    for (std::uint32_t e = 0; e < count; ++e) {
      batch.actions.push_back(e % tokens[e]);
      batch.old_log_probability.push_back(-2.0f);
      batch.advantage.push_back(static_cast<float>(rng.normal()));
      batch.value_target.push_back(static_cast<float>(rng.normal()));
      batch.old_value.push_back(0.0f);
    }
    return batch;
  };
  const auto joined = [](const Minibatch& a, const Minibatch& b) {
    Minibatch all;
    for (std::uint32_t e = 0; e < a.actions.size(); ++e) {  // one of each in turn
      for (const Minibatch* from : {&a, &b}) {
        append_state(all.observation, from->observation, e);
        all.actions.push_back(from->actions[e]);
        all.old_log_probability.push_back(from->old_log_probability[e]);
        all.advantage.push_back(from->advantage[e]);
        all.value_target.push_back(from->value_target[e]);
        all.old_value.push_back(from->old_value[e]);
      }
    }
    return all;
  };
  // Adam's first memory after one step is a tenth of the gradient.
  const auto gradient = [&](const Minibatch& batch) {
    Learner learner = learner_with(parameters);
    PpoOptions options;
    options.max_gradient_norm = 1e6;
    EXPECT_TRUE(learner.improve(batch, options, 1e-3));
    return learner.adam().first;
  };
  const Minibatch few = states_of({1, 2, 8, 9, 12});
  const Minibatch many = states_of({70, 3, 13, 40, 16});
  const std::vector<float> of_few = gradient(few);
  const std::vector<float> of_many = gradient(many);
  const std::vector<float> of_both = gradient(joined(few, many));
  for (std::size_t i = 0; i < of_both.size(); ++i) {
    const double mean = 0.5 * (static_cast<double>(of_few[i]) + static_cast<double>(of_many[i]));
    EXPECT_NEAR(of_both[i], mean, 1e-5 * std::max(1.0, std::fabs(mean))) << i;
  }
}

// The first step of Adam moves every parameter by the learning rate against its gradient's sign, so that a small one
// must lower the loss that it reports.
TEST_P(EveryNetwork, AStepLowersTheLoss) {
  Learner learner = learner_with(test::random_parameters(spec(), 7));
  PpoOptions options;
  options.entropy = 0;
  const auto before = learner.improve(minibatch(), options, 1e-4);
  ASSERT_TRUE(before);
  const auto after = learner.improve(minibatch(), options, 1e-4);
  ASSERT_TRUE(after);
  EXPECT_LT(after->policy_loss + options.value * after->value_loss,
            before->policy_loss + options.value * before->value_loss);
  const auto imitated = learner.imitate(minibatch(), options, 1e-2);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(learner.imitate(minibatch(), options, 1e-2));
  EXPECT_LT(learner.imitate(minibatch(), options, 1e-2)->policy_loss, 0.9 * imitated->policy_loss);
}

TEST_P(EveryNetwork, ALossThatIsNoNumberChangesNothing) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  Learner learner = learner_with(parameters);
  Minibatch batch = minibatch();
  batch.advantage[3] = std::numeric_limits<float>::quiet_NaN();
  auto result = learner.improve(batch, {}, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "the policy loss is not a number");
  batch = minibatch();
  batch.value_target[3] = std::numeric_limits<float>::infinity();
  result = learner.improve(batch, {}, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "the value loss is not a number");
  EXPECT_EQ(learner.parameters(), parameters);
  EXPECT_EQ(learner.adam().steps, 0);
}

INSTANTIATE_TEST_SUITE_P(Learner, EveryNetwork,
                         testing::Values(NetworkKind::kernel, NetworkKind::deepsets, NetworkKind::attention,
                                         NetworkKind::index),
                         [](const auto& test) { return std::string(name_of(network_kind_names, test.param)); });

// ---- advantages
// ------------------------------------------------------------------------------------------------------

Episode episode_of(std::vector<double> reward, std::vector<double> seconds) {
  Episode episode;
  double now = 0;
  for (const double span : seconds) {
    episode.time_s.push_back(now);
    now += span;
  }
  episode.actions.resize(reward.size());
  episode.reward = std::move(reward);
  episode.seconds = std::move(seconds);
  return episode;
}

TEST(Advantages, WithoutDiscountAndCriticAreReturnsToGo) {
  const std::vector<Episode> episodes{episode_of({-1, -2, -4}, {10, 0, 10})};
  PpoOptions options;
  options.lambda = 1;
  options.baseline = Baseline::critic;
  const Advantages result = advantages_of(episodes, {{0, 0, 0, 0}}, 1, 0, options);
  EXPECT_EQ(result.advantage[0], (std::vector<double>{-7, -6, -4}));
  EXPECT_EQ(result.value_target[0], (std::vector<double>{-7, -6, -4}));
}

TEST(Advantages, DiscountAndLambdaFollowTime) {
  const std::vector<Episode> episodes{episode_of({-1, -2}, {30, 120})};
  PpoOptions options;
  options.lambda = 0.9;
  options.lambda_time_s = 60;
  options.baseline = Baseline::critic;
  const double beta = 0.01;
  // The run was truncated: the last value is the final observation's.
  const Advantages result = advantages_of(episodes, {{-3, -2.5, -2}}, 1, beta, options);
  const double last = -2 + std::exp(-beta * 120) * -2 - -2.5;
  const double first = -1 + std::exp(-beta * 30) * -2.5 - -3 + std::exp(-beta * 30) * std::pow(0.9, 0.5) * last;
  EXPECT_NEAR(result.advantage[0][1], last, 1e-12);
  EXPECT_NEAR(result.advantage[0][0], first, 1e-12);
}

TEST(Advantages, GroupsCompareAtTheSameTime) {
  // Returns to go: (-4, -2) at times 0 and 10; (-6, -2) at 0 and 20. At time 10 the second is half way: -4.
  const std::vector<Episode> episodes{episode_of({-2, -2}, {10, 10}), episode_of({-4, -2}, {20, 10})};
  PpoOptions options;
  options.baseline = Baseline::group;
  const Advantages result = advantages_of(episodes, {{0, 0, 0}, {0, 0, 0}}, 2, 0, options);
  EXPECT_EQ(result.advantage[0], (std::vector<double>{2, 2}));
  EXPECT_EQ(result.advantage[1], (std::vector<double>{-2, -2}));  // at 20 the first is over: nothing left to lose
}

TEST(Advantages, TheSelfCriticComparesWithTheHeuristicAtTheSameTime) {
  // The heuristic has (-6, -2) to go at times 0 and 20, and its critic sees -1 behind its end: (-7, -3).
  const std::vector<Episode> episodes{episode_of({-2, -2}, {10, 10}), episode_of({-4, -2}, {20, 10})};
  const Rivals rivals{.episodes = {episode_of({-4, -2}, {20, 10})}, .last_value = {-1}};
  PpoOptions options;
  options.baseline = Baseline::self_critic;
  const Advantages result = advantages_of(episodes, {{0, 0, 0}, {0, 0, -1}}, 2, 0, options, rivals);
  EXPECT_EQ(result.advantage[0], (std::vector<double>{-4 + 7, -2 + 5}));  // half way at time 10
  EXPECT_EQ(result.advantage[1], (std::vector<double>{0, 0}));            // did as the heuristic
}

TEST(Advantages, DifferentialRewardsAreThoseAboveTheAverage) {
  std::vector<Episode> episodes{episode_of({-2, -1}, {10, 10}), episode_of({-9}, {20})};
  EXPECT_EQ(mean_reward_per_s(episodes), -0.3);
  make_differential(episodes, -0.3);
  EXPECT_NEAR(episodes[0].reward[0], 1, 1e-12);
  EXPECT_NEAR(episodes[0].reward[1], 2, 1e-12);
  EXPECT_NEAR(episodes[1].reward[0], -3, 1e-12);
  EXPECT_NEAR(mean_reward_per_s(episodes), 0, 1e-12);
}

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
  config.ppo.cluster_scales = {1, 0.5, 1.5};
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
  EXPECT_EQ(clusters.error().to_string(),
            "/ppo/cluster_scales: a job of the trace does not fit the cluster at its smallest; expected larger scales");
  Cluster shared = Cluster::homogeneous(4, 2);
  shared.vcs.push_back({.name = "a"});
  EXPECT_FALSE(training_clusters(config, jobs, shared));
  config.ppo.cluster_scales = {1};
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
            "windows: the validation part has 50 jobs; expected at least the 64 of one window");
}

// ---- training runs
// ---------------------------------------------------------------------------------------------------

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
    config_.ppo.validate_every = 2;
  }
  Result<TrainSummary> run(std::uint32_t iterations, const std::string& folder, bool resume = false) {
    config_.ppo.iterations = iterations;
    return train(config_, jobs_, cluster_, folder, resume, [](const TrainProgress&) {});
  }

  [[nodiscard]] Checkpoint checkpoint(const std::string& folder) const {
    auto loaded = load_checkpoint(folder + "/checkpoint.bin", config_.network);
    EXPECT_TRUE(loaded) << loaded.error().to_string();
    return *std::move(loaded);
  }

  static void expect_same(const Checkpoint& a, const Checkpoint& b) {
    EXPECT_EQ(a.iteration, b.iteration);
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.parameters, b.parameters);
    EXPECT_EQ(a.adam.first, b.adam.first);
    EXPECT_EQ(a.adam.second, b.adam.second);
    EXPECT_EQ(a.adam.steps, b.adam.steps);
    EXPECT_EQ(a.learning_rate, b.learning_rate);
    EXPECT_EQ(a.return_mean, b.return_mean);
    EXPECT_EQ(a.return_scale, b.return_scale);
    EXPECT_EQ(a.reward_per_s, b.reward_per_s);
    EXPECT_EQ(a.best_iteration, b.best_iteration);
    EXPECT_EQ(a.best_validation, b.best_validation);
    EXPECT_EQ(a.normaliser, b.normaliser);
  }

  void expect_threads_change_nothing() {
    ASSERT_TRUE(run(2, folder_));
    config_.threads = 3;
    ASSERT_TRUE(run(2, folder_ + "_other"));
    expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  }

  JobTable jobs_ = test::some_jobs(11, 400);
  Cluster cluster_ = Cluster::homogeneous(1, 4);
  TrainConfig config_;
  test::TempFolder temporary_;
  std::string folder_;
};

TEST_F(TrainingRun, LearnsToBeatItsHeuristic) {
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

// What `gpusched train` does without a configuration, cut short.
TEST_F(TrainingRun, TheDefaultConfigurationLearnsVisibly) {
  TrainConfig config = default_train_config();
  config.ppo.iterations = 8;
  config.ppo.validate_every = 8;
  const auto input = load_train_input(config);
  ASSERT_TRUE(input) << input.error().to_string();
  EXPECT_EQ(input->cluster.name, "8x8");
  const auto summary = train(config, input->trace.jobs, input->cluster, folder_, false, [](const TrainProgress&) {});
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->best_iteration, 8u);  // not the first, after which it is validated too
  EXPECT_LT(summary->best_validation, 0.6 * summary->validation_heuristic);

  ASSERT_TRUE(summary->held_out);
  EXPECT_GE(summary->held_out->windows, 5u);
  ASSERT_EQ(summary->held_out->rows.size(), 4u);  // las and srtf are of mode preempt
  const HeldOutRow& fcfs = summary->held_out->rows.front();
  EXPECT_EQ(fcfs.heuristic, Heuristic::fcfs);
  EXPECT_LT(summary->held_out->agent, fcfs.loss);
  EXPECT_TRUE(fcfs.interval);
}

TEST_F(TrainingRun, ImitatesATeacher) {
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

TEST_F(TrainingRun, GoesOnBitForBit) {
  ASSERT_TRUE(run(5, folder_ + "_other"));
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(5, folder_, true));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
}

class TrainingRunWithEveryOption : public TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    config_.ppo.adapt_learning_rate = false;
    config_.ppo.anneal = 10;
    config_.ppo.average_reward = true;
    config_.ppo.horizon_jobs = 15;
    config_.ppo.horizon_iterations = 4;
    config_.ppo.cluster_scales = {1, 1.5};
    config_.ppo.baseline = Baseline::self_critic;
    config_.shuffle = {.windows = 9, .stretch = 0.1};
  }
};

TEST_F(TrainingRunWithEveryOption, GoesOnBitForBit) {
  ASSERT_TRUE(run(5, folder_ + "_other"));
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(5, folder_, true));
  expect_same(checkpoint(folder_), checkpoint(folder_ + "_other"));
  EXPECT_NE(checkpoint(folder_).reward_per_s, 0);
  EXPECT_NEAR(checkpoint(folder_).learning_rate, config_.ppo.learning_rate * (1 - 4 / 10.0), 1e-15);
}

TEST_F(TrainingRunWithEveryOption, ThreadsDoNotChangeIt) { expect_threads_change_nothing(); }

TEST_F(TrainingRunWithEveryOption, EachChangesWhatIsLearned) {
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
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.cluster_scales = {1}; }));
  EXPECT_TRUE(differs_without([](PpoOptions& ppo) { ppo.baseline = Baseline::both; }));
}

// A gentle task, so that these are seen to learn and not only to run.
TEST_F(TrainingRunWithEveryOption, StillLearns) {
  config_.ppo.windows = 4;
  config_.ppo.group = 4;
  config_.ppo.anneal = 40;
  config_.ppo.learning_rate = 3e-3;
  const auto summary = run(25, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
}

TEST_F(TrainingRun, WithAHorizonThatHoldsNoChoiceSaysSo) {
  config_.ppo.horizon_jobs = 1;
  config_.ppo.horizon_iterations = 4;
  const auto result = run(1, folder_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(),
            "/ppo/horizon_jobs: no training window has a choice before its end; expected more jobs");
}

TEST_F(TrainingRun, SurvivesBeingKilledAtAnyMoment) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    static_cast<void>(run(100'000, folder_));
    _exit(0);
  }
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(folder_ + "/checkpoint.bin") && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(237));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

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

TEST_F(TrainingRun, ThreadsDoNotChangeIt) { expect_threads_change_nothing(); }

TEST_F(TrainingRun, WithLossesThatAreNoNumbersStopsAndKeepsTheCheckpoint) {
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

TEST_F(TrainingRun, RefusesCheckpointsThatDoNotFit) {
  ASSERT_TRUE(run(1, folder_));
  const std::string path = folder_ + "/checkpoint.bin";
  const auto refusal = [&](const NetworkSpec& spec) {
    const auto loaded = load_checkpoint(path, spec);
    return loaded ? "" : loaded.error().message;
  };
  EXPECT_EQ(refusal({.kind = NetworkKind::kernel, .critic_width = 8}),
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

TEST_F(TrainingRun, NamesThePartOfTheTraceThatIsTooShort) {
  config_.windows.jobs = 200;
  const auto result = run(1, folder_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(),
            "windows: the validation part has 120 jobs; expected at least the 200 of one window");
}

TEST_F(TrainingRun, WritesAMetricsRowForEachIteration) {
  ASSERT_TRUE(run(2, folder_));
  ASSERT_TRUE(run(3, folder_, true));
  std::istringstream csv(*read_text_file(folder_ + "/metrics.csv"));
  std::string line;
  std::getline(csv, line);
  const auto columns = std::count(line.begin(), line.end(), ',');
  int rows = 0;
  while (std::getline(csv, line)) {
    EXPECT_TRUE(line.starts_with(std::to_string(++rows) + ",")) << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns) << line;
  }
  EXPECT_EQ(rows, 3);
}

// ---- direct search
// ---------------------------------------------------------------------------------------------------

// Axes of very different length, turned so that no coordinate is one of them; least at (1, ..., 1).
double turned_ellipsoid(std::span<const double> x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double along = (x[i] - 1) + (x[(i + 1) % x.size()] - 1) * (i % 2 == 0 ? 1.0 : -0.5);
    sum += std::pow(1000.0, static_cast<double>(i) / static_cast<double>(x.size() - 1)) * along * along;
  }
  return sum;
}

template <class Loss>
CmaEs searched(std::uint64_t seed, int generations, const CmaEsOptions& options, Loss loss) {
  const std::vector<double> start(8, -2.0);
  CmaEs search(start, options, Rng(seed));
  for (int generation = 0; generation < generations; ++generation) {
    std::vector<double> losses;
    for (const auto& candidate : search.ask()) losses.push_back(loss(candidate));
    search.tell(losses);
  }
  return search;
}

TEST(CmaEs, FindsTheLeastOfATurnedEllipsoid) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const CmaEs search = searched(seed, 400, {}, turned_ellipsoid);
    EXPECT_EQ(search.population(), 12u);
    EXPECT_LT(turned_ellipsoid(search.mean()), 1e-12) << seed;
    EXPECT_LT(search.step(), 1e-3);
  }
}

TEST(CmaEs, GetsNearUnderNoise) {
  Rng noise(5);
  const auto noisy = [&](std::span<const double> x) { return turned_ellipsoid(x) + noise.normal(); };
  const CmaEs search = searched(1, 400, {.step = 1, .population = 40}, noisy);
  EXPECT_LT(turned_ellipsoid(search.mean()), 1.0);
  EXPECT_GT(turned_ellipsoid(std::vector<double>(8, -2.0)), 1000.0);
}

TEST(CmaEs, OnlyTheOrderOfLossesCountsAndTheSameSeedGivesTheSame) {
  const auto cubed = [](std::span<const double> x) { return std::pow(turned_ellipsoid(x), 3); };
  EXPECT_EQ(searched(1, 30, {}, turned_ellipsoid).mean(), searched(1, 30, {}, cubed).mean());
  EXPECT_NE(searched(1, 30, {}, turned_ellipsoid).mean(), searched(2, 30, {}, turned_ellipsoid).mean());
}

class SearchRun : public TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    config_.method = Method::cma_es;
    config_.network.kind = NetworkKind::index;
    config_.search = {.generations = 20, .windows = 6, .validate_every = 5};
  }
};

TEST_F(SearchRun, LearnsToBeatItsHeuristic) {
  std::uint64_t episodes = 0;
  const auto summary = train(config_, jobs_, cluster_, folder_, false,
                             [&](const TrainProgress& progress) { episodes = progress.steps; });
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->iterations, 20u);
  EXPECT_EQ(summary->steps, episodes);
  EXPECT_EQ(episodes % (std::uint64_t{20} * 6), 0u);
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
  const auto model = load_model(folder_);
  ASSERT_TRUE(model) << model.error().to_string();
  const auto windows = make_windows(jobs_, config_.windows, Split::validation);
  const Actor actor{&model->network, &model->normaliser, model->parameters};
  const auto losses = window_losses(pointers_to(*windows), cluster_, config_.env, actor, Acting::best);
  EXPECT_NEAR(mean_of(losses), summary->best_validation, 1e-9);
}

TEST_F(SearchRun, IsTheSameAgain) {
  for (const std::string& folder : {folder_, folder_ + "_other"}) ASSERT_TRUE(run(1, folder));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
  EXPECT_EQ(*read_text_file(folder_ + "/model.json"), *read_text_file(folder_ + "_other/model.json"));
}

TEST_F(SearchRun, LearnsToPreempt) {
  config_.env.agenda = {
      .mode = ActionMode::preempt, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::fcfs};
  config_.env.engine.preemption.restart = whole_seconds(2);
  config_.network.kind = NetworkKind::rank;
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.6 * summary->validation_heuristic);
  // The policy read back does in simulate() what the search saw in its environments.
  const auto model = load_model(folder_);
  ASSERT_TRUE(model) << model.error().to_string();
  double slowdown = 0;
  const auto windows = make_windows(jobs_, config_.windows, Split::validation);
  for (const Window& window : *windows) {
    Engine engine(window.jobs, cluster_, config_.env.engine);
    RlPolicy policy("x", *model, window.jobs.works(), false, 0);
    ASSERT_TRUE(simulate(engine, policy));
    for (std::uint32_t i = 0; i < window.jobs.size(); ++i) {
      const double jct = to_seconds(engine.end(JobId{i}) - window.jobs.submit(JobId{i}));
      slowdown += std::max(1.0, jct / std::max(to_seconds(window.jobs.work(JobId{i})), slowdown_bound_s)) - 1;
    }
  }
  EXPECT_NEAR(slowdown / static_cast<double>(windows->size() * config_.windows.jobs), summary->best_validation, 1e-6);
}

TEST_F(SearchRun, WithoutGenerationsToLearnInKeepsTheHeuristic) {
  config_.search.generations = 1;
  config_.search.step = 1e-6;
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary);
  EXPECT_NEAR(summary->best_validation, summary->validation_heuristic, 1e-9);
}

// The state less what wall time is in.
Json state_in(const std::string& folder) {
  Json state = *parse_json_strictly(*read_text_file(folder + "/" + search_state_file), "");
  for (const char* key : {"seconds", "metrics_csv"}) state.erase(key);
  return state;
}

TEST_F(SearchRun, GoesOnBitForBitAfterBeingKilled) {
  config_.search = {.generations = 100'000, .windows = 2, .validate_every = 3};
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    static_cast<void>(run(1, folder_));
    _exit(0);
  }
  const std::string state_file = folder_ + "/" + search_state_file;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(state_file) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(237));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  const auto reached = state_in(folder_)["iterations"].get<std::uint32_t>();
  ASSERT_GE(reached, 1u);
  config_.search.generations = (reached / 3 + 2) * 3;  // the last generation is validated anyway
  ASSERT_TRUE(run(1, folder_, true));
  ASSERT_TRUE(run(1, folder_ + "_other"));
  EXPECT_EQ(state_in(folder_), state_in(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));

  config_.search.step = 0.4;
  const auto other = run(1, folder_, true);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().to_string(), state_file + ": was made with another configuration than config.json beside it");
  config_.search.step = 0.3;
  std::filesystem::resize_file(state_file, 100);
  const auto cut = run(1, folder_, true);
  ASSERT_FALSE(cut);
  EXPECT_TRUE(cut.error().to_string().starts_with(state_file)) << cut.error().to_string();
}

TEST_F(SearchRun, OfShuffledWindowsGoesOnBitForBit) {
  config_.search.validate_every = 2;
  config_.shuffle = {.windows = 20, .stretch = 0.1};
  const auto search_to = [&](std::uint32_t generations, const std::string& folder, bool resume) {
    config_.search.generations = generations;
    ASSERT_TRUE(run(1, folder, resume));
  };
  search_to(8, folder_ + "_other", false);
  search_to(2, folder_, false);
  search_to(8, folder_, true);
  EXPECT_EQ(state_in(folder_), state_in(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
}

TEST_F(SearchRun, RefusesOtherNetworks) {
  config_.network.kind = NetworkKind::kernel;
  const auto other = run(1, folder_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().to_string(), "/network/kind: method cma_es searches the networks index and rank");
}

// ---- configuration
// ---------------------------------------------------------------------------------------------------

TEST(TrainConfig, ComesBackFromItsOwnJson) {
  TrainConfig config = default_train_config();
  config.env.agenda.starvation = whole_seconds(3600);
  config.ppo.baseline = Baseline::self_critic;
  config.ppo.adapt_learning_rate = false;
  config.ppo.anneal = 50;
  config.ppo.average_reward = true;
  config.ppo.horizon_jobs = 64;
  config.ppo.horizon_iterations = 9;
  config.ppo.cluster_scales = {0.75, 1, 1.25};
  config.method = Method::cma_es;
  config.search = {.generations = 7, .population = 20, .objective = SearchObjective::mean};
  config.shuffle = {.windows = 100, .stretch = 0.1};
  const std::string text = train_config_json(config);
  const auto read = read_train_config(text, "x.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(train_config_json(*read), text);
}

TEST(TrainConfig, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const char* text) {
    const auto read = read_train_config(text, "x.json");
    return read ? "" : read.error().to_string();
  };
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"iteration": 3}})"),
            "x.json: /ppo/iteration: unknown key (did you mean 'iterations'?)");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": {"mode": "guess"}})"),
            "x.json: /env/mode: expected one of fit_or_wait|select_blocking|backfill|inspect|preempt");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": {"mode": "preempt"}})"),
            "x.json: /network: the network rank goes with env/mode preempt, and no other does");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": {"mode": "preempt"}, "network": {"kind": "rank"}})"),
            "x.json: /method: ppo learns choices and not the order of mode preempt: expected cma_es");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": {"heuristic": "las"}})"),
            "x.json: /env/mode: the heuristics las and srtf rank running jobs: they need mode preempt");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"teacher": "srtf"}})"),
            "x.json: /ppo/teacher: las and srtf rank running jobs: no teachers");
  EXPECT_EQ(refusal(R"({"trace": "a", "windows": {"jobs": 1.5}})"),
            "x.json: /windows/jobs: expected an integer from 1 to 4000000000");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"width": 30}})"),
            "x.json: /network/width: expected an even multiple of heads");
  EXPECT_EQ(refusal(R"({"trace": "a", "method": "ga"})"), "x.json: /method: expected one of ppo|cma_es");
  EXPECT_EQ(refusal(R"({"trace": "a", "search": {"population": 1}})"),
            "x.json: /search/population: expected 0 or at least 2");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"anneal": -1}})"),
            "x.json: /ppo/anneal: expected an integer from 0 to 4000000000");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"anneal": 5}})"),
            "x.json: /ppo/anneal: expected 0 unless adapt_learning_rate is false: only one of them can set the rate");
  EXPECT_EQ(
      refusal(R"({"trace": "a", "ppo": {"average_reward": true, "mean_lifetime_s": 60}})"),
      "x.json: /ppo/average_reward: expected false with a mean_lifetime_s: differential returns are not discounted");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"horizon_jobs": 10}})"),
            "x.json: /ppo/horizon_jobs: expected both of horizon_jobs and horizon_iterations, or none");
  for (const char* scales : {"[]", "[1, 0]", "[1000]"}) {
    EXPECT_EQ(refusal((std::string(R"({"trace": "a", "ppo": {"cluster_scales": )") + scales + "}}").c_str()),
              "x.json: /ppo/cluster_scales: expected a list of numbers from 0.01 to 100");
  }
  EXPECT_EQ(refusal(R"({"seed": 1})"), "x.json: /trace: is missing");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": 3})"), "x.json: /env: expected an object");
}

// ---- TensorBoard
// -----------------------------------------------------------------------------------------------------

TEST(EventFile, HoldsFramedRecords) {
  const std::string record = tf_record("hello");
  ASSERT_EQ(record.size(), 8u + 4u + 5u + 4u);
  std::uint64_t length = 0;
  std::memcpy(&length, record.data(), sizeof length);
  EXPECT_EQ(length, 5u);
  std::uint32_t check = 0;
  std::memcpy(&check, record.data() + 17, sizeof check);
  const std::uint32_t sum = crc32c("hello");
  EXPECT_EQ(check, ((sum >> 15) | (sum << 17)) + 0xA282EAD8u);
  // Event{step: 300, summary{value{tag: "a", simple_value: 2}}} after the wall time, written out by hand.
  const std::string event = event_message(0, 300, {{"a", 2.0}});
  EXPECT_EQ(event.substr(9), std::string("\x10\xAC\x02\x2A\x0A\x0A\x08\x0A\x01"
                                         "a\x15\0\0\0\x40",
                                         15));
}

TEST(EventFile, IsReadByTensorBoard) {
  if (std::system("python3 -c 'import tensorboard' > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "python3 has no tensorboard";
  }
  const test::TempFolder temporary;
  const std::string folder = temporary.path();
  {
    EventFile events(folder, 1.7e9);
    events.write(1.7e9 + 1, 1000, {{"charts/SPS", 1234.0}, {"losses/value_loss", 0.5}});
    events.write(1.7e9 + 2, 2000, {{"charts/SPS", 2345.0}});
  }
  std::ofstream(folder + "/read.py")
      << "import sys\n"
         "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
         "log = EventAccumulator(sys.argv[1])\n"
         "log.Reload()\n"
         "sps = [(e.step, e.value) for e in log.Scalars('charts/SPS')]\n"
         "loss = [(e.step, e.value) for e in log.Scalars('losses/value_loss')]\n"
         "sys.exit(0 if sps == [(1000, 1234.0), (2000, 2345.0)] and loss == [(1000, 0.5)] else 1)\n";
  EXPECT_EQ(std::system(("python3 " + folder + "/read.py " + folder + " 2> /dev/null").c_str()), 0);
}

}  // namespace
}  // namespace gpusched
