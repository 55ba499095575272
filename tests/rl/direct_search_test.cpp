// SPDX-License-Identifier: Apache-2.0
// The evolution strategy on functions, and the search for agents that it drives.
#include "src/rl/direct_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/base/number_text.hpp"
#include "src/base/statistics.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/learned/agenda_policy.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/cma_es.hpp"
#include "src/rl/constraints.hpp"
#include "src/rl/es_gradient.hpp"
#include "src/rl/initial_parameters.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/training_windows.hpp"
#include "tests/rl/training_run.hpp"

namespace gpusched {
namespace {

using test::TrainingRun;

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

// Its gradient at x, by hand.
std::vector<double> gradient_of_ellipsoid(std::span<const double> x) {
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t next = (i + 1) % x.size();
    const double share = i % 2 == 0 ? 1.0 : -0.5;
    const double along = (x[i] - 1) + (x[next] - 1) * share;
    const double weight = std::pow(1000.0, static_cast<double>(i) / static_cast<double>(x.size() - 1));
    gradient[i] += 2 * weight * along;
    gradient[next] += 2 * weight * along * share;
  }
  return gradient;
}

// A quadratic's odd part is linear, so that a pair's difference is exact: the estimate is right in expectation, and its
// variance is (|g|^2 + g_i^2) / pairs.
TEST(EsGradient, IsTheAnalyticGradientOfAQuadraticInExpectation) {
  const std::vector<double> start{-2, 0.5, 3, -1, 0, 2};
  constexpr std::uint32_t pairs = 40'000;
  EsGradient search(start, {.step = 0.3, .pairs = pairs}, Rng(3));
  std::vector<double> losses;
  for (const auto& candidate : search.ask()) losses.push_back(turned_ellipsoid(candidate));
  search.tell(losses);
  const std::vector<double> expected = gradient_of_ellipsoid(start);
  double norm = 0;
  for (const double value : expected) norm += value * value;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::sqrt((norm + expected[i] * expected[i]) / pairs);
    EXPECT_NEAR(search.gradient()[i], expected[i], 4 * error) << i;
    EXPECT_GT(std::sqrt(norm), 20 * error);  // the test could fail
  }
}

TEST(EsGradient, WhatBothOfAPairMeetCancels) {
  const std::vector<double> start(8, -2.0);
  const auto told = [&](double scale) {
    EsGradient search(start, {.pairs = 50}, Rng(3));
    Rng luck(9);
    double shared = 0;
    std::vector<double> losses;
    for (const auto& candidate : search.ask()) {
      if (losses.size() % 2 == 0) shared = scale * luck.normal();
      losses.push_back(turned_ellipsoid(candidate) + shared);
    }
    search.tell(losses);
    return search.gradient();
  };
  const std::vector<double> still = told(0), noisy = told(1e6);
  for (std::size_t i = 0; i < still.size(); ++i) EXPECT_NEAR(noisy[i], still[i], 1e-6 * std::abs(still[i]) + 1e-6);
}

EsGradient descended(std::uint64_t seed, int generations, EsGradient search) {
  Rng noise(seed);
  for (int generation = 0; generation < generations; ++generation) {
    std::vector<double> losses;
    for (const auto& candidate : search.ask()) losses.push_back(turned_ellipsoid(candidate) + noise.normal());
    search.tell(losses);
  }
  return search;
}

TEST(EsGradient, DescendsUnderNoise) {
  const std::vector<double> start(8, -2.0);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const EsGradient search = descended(seed, 600, EsGradient(start, {.pairs = 20, .learning_rate = 0.02}, Rng(seed)));
    EXPECT_LT(turned_ellipsoid(search.mean()), 0.01 * turned_ellipsoid(start)) << seed;
  }
}

TEST(EsGradient, GoesOnExactlyFromItsState) {
  const std::vector<double> start(8, -2.0);
  const EsOptions options{.pairs = 5, .learning_rate = 0.02};
  EsGradient restored(start, options, Rng(1));
  restored.restore(descended(4, 7, EsGradient(start, options, Rng(1))).state());
  EsGradient whole = descended(4, 7, EsGradient(start, options, Rng(1)));
  EXPECT_EQ(descended(5, 7, restored).mean(), descended(5, 7, whole).mean());
  EXPECT_NE(whole.mean(), descended(4, 7, EsGradient(start, options, Rng(2))).mean());
  EsState other = restored.state();
  other.momentum.pop_back();
  EXPECT_FALSE(restored.fits(other));
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

// By each of the methods.
class EverySearch : public SearchRun, public testing::WithParamInterface<Method> {
 protected:
  void SetUp() override {
    SearchRun::SetUp();
    config_.method = GetParam();
    if (config_.method != Method::es) return;
    config_.network.hidden = 4;
    config_.search = {
        .generations = 20, .population = 24, .windows = 2, .step = 0.1, .learning_rate = 0.1, .validate_every = 5};
  }
};
INSTANTIATE_TEST_SUITE_P(Methods, EverySearch, testing::Values(Method::cma_es, Method::es, Method::random),
                         [](const auto& each) { return std::string(name_of(method_names, each.param)); });

// The state less what wall time is in.
Json state_in(const std::string& folder) {
  Json state = *parse_json_strictly(*read_text_file(folder + "/" + search_state_file), "");
  for (const char* key : {"seconds", "metrics_csv"}) state.erase(key);
  return state;
}

TEST_P(EverySearch, LearnsToBeatItsHeuristic) {
  std::uint64_t episodes = 0;
  const auto summary = train(
      config_, jobs_, cluster_, folder_, false, [&](const TrainProgress& progress) { episodes = progress.steps; },
      ppo_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->iterations, 20u);
  EXPECT_EQ(summary->steps, episodes);
  EXPECT_EQ(episodes % (std::uint64_t{20} * config_.search.windows), 0u);
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
  const auto model = load_model(folder_);
  ASSERT_TRUE(model) << model.error().to_string();
  const auto windows = make_windows(jobs_, config_.windows, Split::validation);
  const Actor actor{&model->network, &model->normaliser, model->parameters};
  const auto losses = window_losses(pointers_to(*windows), cluster_, config_.env, actor, Acting::best);
  EXPECT_NEAR(mean_of(losses), summary->best_validation, 1e-9);
}

// Two GPUs, one of which runs all jobs at a tenth of the speed: the fastest free one is often the slow one, where
// waiting is shorter. What is fast where comes from a file, as in a configuration.
TEST_P(EverySearch, LearnsToWaitForAFastGpu) {
  const std::string table = temporary_.path() + "/throughputs.csv";
  std::ofstream(table) << "family,gpu_type,throughput\nnet,fast,10\nnet,slow,1\n";
  Rng rng(5);
  std::vector<test::Row> rows;
  for (std::int64_t i = 0, submit = 0; i < 400; ++i) {
    submit += static_cast<std::int64_t>(rng.exponential(50));
    rows.push_back(
        {.submit = submit, .work = 20 + static_cast<std::int64_t>(rng.below(40)), .gpus = 1, .family = "net"});
  }
  jobs_ = test::table_of(rows);
  cluster_ = Cluster::homogeneous(2, 1);
  cluster_.gpu_types = {"fast", "slow"};
  cluster_.nodes[1].gpu_type = 1;
  config_.env.agenda = {.mode = ActionMode::fit_or_wait,
                        .knowledge = RuntimeKnowledge::oracle,
                        .heuristic = Heuristic::sjf,
                        .choose_nodes = true,
                        .node_speeds = true};
  config_.env.weights = {};
  config_.env.weights[reward_jct] = 1;
  config_.conditions.speeds.throughputs = table;
  config_.conditions.speeds.reference_type = "fast";
  if (GetParam() == Method::es) config_.search.step = 0.3;  // with less, hardly a candidate ever waits
  const auto summary = train(
      config_, jobs_, cluster_, folder_, false, [](const TrainProgress&) {}, ppo_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
  const auto model = load_model(folder_);
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_TRUE(model->agenda.node_speeds);

  // As a policy it does what it did in its environment: the same mean completion time.
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs_.families().size()), 2);
  runtime.set(jobs_.family(JobId{0}), 1, reference_rate / 10);
  const auto windows = make_windows(jobs_, config_.windows, Split::validation);
  double sum = 0;
  for (const Window& window : *windows) {
    Engine engine(window.jobs, cluster_, config_.env.engine, {.runtime = &runtime});
    RlPolicy policy("x", *model, window.jobs.works(), false, 0);
    ASSERT_TRUE(simulate(engine, policy));
    sum += figures_of(engine, window)[bounded_avg_jct] / static_cast<double>(windows->size());
  }
  EXPECT_NEAR(sum, summary->best_validation, 1e-6 * sum);
}

TEST_F(SearchRun, RefusesThroughputsThatLackAJob) {
  const std::string table = temporary_.path() + "/throughputs.csv";
  std::ofstream(table) << "family,gpu_type,throughput\nnet,fast,10\n";
  config_.conditions.speeds.throughputs = table;
  const auto summary = run(1, folder_);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().to_string().find("throughputs"), std::string::npos) << summary.error().to_string();
}

TEST_P(EverySearch, IsTheSameAgain) {
  for (const std::string& folder : {folder_, folder_ + "_other"}) ASSERT_TRUE(run(1, folder));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
  EXPECT_EQ(*read_text_file(folder_ + "/model.json"), *read_text_file(folder_ + "_other/model.json"));
}

TEST_P(EverySearch, IsTheSameOnAnyNumberOfThreads) {
  ASSERT_TRUE(run(1, folder_));
  config_.threads = 3;
  ASSERT_TRUE(run(1, folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
  EXPECT_EQ(state_in(folder_)["mean"], state_in(folder_ + "_other")["mean"]);
}

TEST_F(SearchRun, LearnsToPreempt) {
  config_.env.agenda = {
      .mode = ActionMode::preempt, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::fcfs};
  config_.conditions.preemption.restart = whole_seconds(2);
  config_.network.kind = NetworkKind::rank;
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.6 * summary->validation_heuristic);
  // The policy read back does in simulate() what the search saw in its environments, and knows what they knew.
  const auto model = load_model(folder_);
  ASSERT_TRUE(model) << model.error().to_string();
  double slowdown = 0;
  WindowOptions options = config_.windows;
  options.service_history = true;
  const auto windows = make_windows(jobs_, options, Split::validation);
  EngineOptions engine_options = config_.env.engine;
  engine_options.preemption = config_.conditions.preemption;
  for (const Window& window : *windows) {
    Engine engine(window.jobs, cluster_, engine_options);
    RlPolicy policy("x", *model, window.jobs.works(), false, 0, window.history);
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

TEST_P(EverySearch, GoesOnBitForBitAfterBeingKilled) {
  config_.search.generations = 100'000;
  config_.search.windows = 2;
  config_.search.validate_every = 3;
  const std::string state_file = folder_ + "/" + search_state_file;
  ASSERT_NO_FATAL_FAILURE(run_killed_after(state_file, 1));

  const auto reached = state_in(folder_)["iterations"].get<std::uint32_t>();
  ASSERT_GE(reached, 1u);
  config_.search.generations = (reached / 3 + 2) * 3;  // the last generation is validated anyway
  ASSERT_TRUE(run(1, folder_, true));
  ASSERT_TRUE(run(1, folder_ + "_other"));
  EXPECT_EQ(state_in(folder_), state_in(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));

  const double step = std::exchange(config_.search.step, 0.4);
  const auto other = run(1, folder_, true);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().to_string(), state_file + ": was made with another configuration than config.json beside it");
  config_.search.step = step;
  std::filesystem::resize_file(state_file, 100);
  const auto cut = run(1, folder_, true);
  ASSERT_FALSE(cut);
  EXPECT_TRUE(cut.error().to_string().starts_with(state_file)) << cut.error().to_string();
}

TEST_P(EverySearch, OfShuffledWindowsGoesOnBitForBit) {
  config_.search.validate_every = 2;
  config_.shuffle = {.windows = 20, .stretch = 0.1};
  config_.windows.truncate = true;
  config_.constraints.reference = "fifo";
  config_.constraints.most[bounded_p99_wait] = 1;
  const auto search_to = [&](std::uint32_t generations, const std::string& folder, bool resume) {
    config_.search.generations = generations;
    ASSERT_TRUE(run(1, folder, resume));
  };
  search_to(8, folder_ + "_other", false);
  search_to(2, folder_, false);
  ASSERT_TRUE(state_in(folder_).contains("multipliers"));
  search_to(8, folder_, true);
  EXPECT_EQ(state_in(folder_), state_in(folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
}

TEST_F(SearchRun, ABuildWithoutLibTorchSaysWhatItCannotTrain) {
  EXPECT_TRUE(check_method(config_, false));
  config_.method = Method::ppo;
  const auto refusal = [&](const NetworkSpec& network, const std::string& device) -> std::string {
    config_.network = network;
    config_.device = device;
    EXPECT_TRUE(check_method(config_, true));
    const auto known = check_method(config_, false);
    return known ? "" : known.error().to_string();
  };
  const std::string rest =
      " by ppo, which needs LibTorch (configure with -DGPUSCHED_WITH_TORCH=ON where it is installed); on the CPU the "
      "networks kernel, kernel@sc20 and index and an agent that steers need none";
  EXPECT_EQ(refusal({.kind = NetworkKind::kernel}, "auto"), "");
  EXPECT_EQ(refusal({.kind = NetworkKind::index}, "cpu"), "");
  EXPECT_EQ(refusal({.kind = NetworkKind::sc20_kernel}, "auto"), "");
  EXPECT_EQ(refusal({.kind = NetworkKind::rank, .hold_s = 60}, "auto"), "");
  EXPECT_EQ(refusal({.kind = NetworkKind::rank, .hold_jobs = 60}, "auto"), "");
  EXPECT_EQ(refusal({.kind = NetworkKind::deepsets}, "auto"), "this build cannot train the network deepsets" + rest);
  EXPECT_EQ(refusal({.kind = NetworkKind::attention}, "cpu"), "this build cannot train the network attention" + rest);
  EXPECT_EQ(refusal({.kind = NetworkKind::kernel}, "cuda"), "this build cannot train on device cuda" + rest);
}

TEST_F(SearchRun, RefusesOtherNetworks) {
  config_.network.kind = NetworkKind::kernel;
  const auto other = run(1, folder_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().to_string(), "/network/kind: method cma_es searches the networks index and rank");
}

// The model's first bounded figure over the validation windows, as a multiple of the reference's.
double ratio_of(const std::string& folder, const TrainConfig& config, const JobTable& jobs, const Cluster& cluster) {
  const auto windows = make_windows(jobs, config.windows, Split::validation);
  const auto constraints = Constraints::of(config, cluster, *windows);
  const auto model = load_model(folder);
  double excess = 0;
  for (std::size_t w = 0; w < windows->size(); ++w) {
    const Window& window = (*windows)[w];
    Engine engine(window.jobs, cluster, config.env.engine);
    RlPolicy policy("x", *model, window.jobs.works(), false, 0);
    EXPECT_TRUE(simulate(engine, policy));
    excess += constraints->excess(figures_of(engine, window), w)[0] / static_cast<double>(windows->size());
  }
  return constraints->ratio(0, excess);
}

// Shortest first lets long jobs wait; a limit on the longest waits keeps the search from it, at some cost.
TEST_P(EverySearch, AConstraintBinds) {
  config_.env.agenda.mode = ActionMode::fit_or_wait;
  config_.search.generations = 60;
  config_.search.validate_every = 1;
  const auto free = run(1, folder_ + "_free");
  ASSERT_TRUE(free) << free.error().to_string();
  EXPECT_TRUE(free->bounds.empty());
  config_.constraints.reference = "agenda{heuristic=fcfs,knowledge=oracle}";
  config_.constraints.most[bounded_p99_wait] = 1.1;
  config_.constraints.multiplier = 50;
  config_.constraints.rate = 0;  // so few training windows keep a limit that the validation windows do not
  EXPECT_GT(ratio_of(folder_ + "_free", config_, jobs_, cluster_), 1.1);

  const auto bound = run(1, folder_);
  ASSERT_TRUE(bound) << bound.error().to_string();
  ASSERT_EQ(bound->bounds.size(), 1u);
  EXPECT_LE(bound->bounds[0].ratio, 1.1);
  std::printf("p99 wait / the reference's: %.3f free, %.3f bound; loss %.4g and %.4g, the heuristic's %.4g\n",
              ratio_of(folder_ + "_free", config_, jobs_, cluster_), bound->bounds[0].ratio, free->best_validation,
              bound->best_validation, bound->validation_heuristic);
  EXPECT_NEAR(bound->bounds[0].ratio, ratio_of(folder_, config_, jobs_, cluster_), 1e-9);
  EXPECT_GT(bound->best_iteration, 0u);
  EXPECT_LT(bound->best_validation, bound->validation_heuristic);
  EXPECT_GT(bound->best_validation, free->best_validation);
  const std::string metrics = *read_text_file(folder_ + "/metrics.csv");
  EXPECT_NE(metrics.find("step,seconds,p99_wait_s_ratio,p99_wait_s_multiplier\n"), std::string::npos) << metrics;
}

TEST_P(EverySearch, MultipliersRiseWhileALimitIsExceededAndFallToZeroBelowIt) {
  config_.search.generations = 3;
  config_.constraints.reference = "agenda{heuristic=fcfs,knowledge=oracle}";
  const auto multiplier_under = [&](double limit, const std::string& folder) {
    config_.constraints.most[bounded_p99_wait] = limit;
    EXPECT_TRUE(run(1, folder));
    return state_in(folder)["multipliers"][0].get<double>();
  };
  EXPECT_GT(multiplier_under(0.01, folder_ + "_tight"), 10.0);
  EXPECT_EQ(multiplier_under(1000, folder_ + "_loose"), 0.0);
}

TEST_P(EverySearch, AMarginAimsBelowTheLimit) {
  config_.search.generations = 1;
  config_.constraints.reference = "agenda{heuristic=fcfs,knowledge=oracle}";
  config_.constraints.most[bounded_p99_wait] = 0.01;
  config_.constraints.rate = 10;
  const auto multiplier_with = [&](double margin, const std::string& folder) {
    config_.constraints.margin = margin;
    EXPECT_TRUE(run(1, folder));
    return state_in(folder)["multipliers"][0].get<double>();
  };
  EXPECT_NEAR(multiplier_with(0.25, folder_ + "_below") - multiplier_with(0, folder_), 2.5, 1e-9);
}

// The model's loss in the validation windows on a cluster as a multiple of the heuristic's.
double loss_ratio_on(const Cluster& cluster, const std::string& folder, const TrainConfig& config,
                     const JobTable& jobs) {
  const auto windows = make_windows(jobs, config.windows, Split::validation);
  const auto model = load_model(folder);
  const Actor actor{&model->network, &model->normaliser, model->parameters};
  const auto loss = [&](const Actor& by, Acting acting) {
    return mean_of(window_losses(pointers_to(*windows), cluster, config.env, by, acting));
  };
  return loss(actor, Acting::best) / loss({}, Acting::heuristic);
}

// The two clusters' ratios of every row of metrics.csv.
std::vector<std::pair<double, double>> ratios_in(const std::string& folder) {
  const auto table = read_text_file(folder + "/metrics.csv");
  EXPECT_NE(table->find("seconds,scale_"), std::string::npos) << *table;
  std::istringstream rows(*table);
  std::vector<std::pair<double, double>> ratios;
  std::string row;
  for (std::getline(rows, row); std::getline(rows, row);) {
    const std::size_t second = row.rfind(','), first = row.rfind(',', second - 1);
    ratios.emplace_back(std::stod(row.substr(first + 1)), std::stod(row.substr(second + 1)));
  }
  return ratios;
}

TEST_P(EverySearch, OfSeveralClustersKeepsTheModelOfTheLeastMeanRatio) {
  config_.cluster_scales = {1, 1.5};
  config_.search.validate_every = 1;
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  ASSERT_EQ(summary->scales.size(), 2u);
  EXPECT_EQ(summary->scales[1].scale, 1.5);
  EXPECT_NEAR(summary->scales[0].ratio, loss_ratio_on(cluster_, folder_, config_, jobs_), 1e-9);
  EXPECT_NEAR(summary->scales[1].ratio, loss_ratio_on(Cluster::homogeneous(1, 6), folder_, config_, jobs_), 1e-9);
  EXPECT_NEAR(summary->best_validation, std::sqrt(summary->scales[0].ratio * summary->scales[1].ratio), 1e-9);
  EXPECT_EQ(summary->validation_heuristic, 1);
  EXPECT_GT(summary->best_iteration, 0u);
  EXPECT_LT(summary->best_validation, 0.9);

  double least = 1;
  for (const auto& [first, second] : ratios_in(folder_)) {
    if (std::max(first, second) <= 1.005) least = std::min(least, std::sqrt(first * second));
  }
  EXPECT_NEAR(least, summary->best_validation, 1e-5);
}

// What is lost on one cluster is not made up for on another.
TEST_F(SearchRun, OfSeveralClustersKeepsNoModelThatIsWorseThanTheHeuristicOnOne) {
  config_.cluster_scales = {1, 2.5};
  config_.env.agenda.heuristic = Heuristic::sjf;
  config_.search = {.generations = 20, .windows = 2, .step = 1, .average = 0, .validate_every = 1};
  int refused = 0;
  for (config_.seed = 1; config_.seed <= 8; ++config_.seed) {
    const std::string folder = folder_ + std::to_string(config_.seed);
    const auto summary = run(1, folder);
    ASSERT_TRUE(summary) << summary.error().to_string();
    for (const ScaleReport& on : summary->scales) EXPECT_LE(on.ratio, 1.005);
    for (const auto& [first, second] : ratios_in(folder)) {
      if (std::sqrt(first * second) > summary->best_validation - 1e-5) continue;
      ++refused;
      EXPECT_GT(std::max(first, second), 1.005);
    }
  }
  EXPECT_GT(refused, 0);
}

// The search itself does not change.
TEST_P(EverySearch, AShrunkModelIsOnTheWayFromTheStart) {
  config_.search.generations = 4;
  config_.search.validate_every = 4;
  config_.search.shrink = {0.25};
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  ASSERT_EQ(summary->best_iteration, 4u);
  const auto model = load_model(folder_);
  const auto average = state_in(folder_)["average"].get<std::vector<double>>();
  const std::vector<float> start = initial_parameters(config_.network, Rng(config_.seed).split("parameters"));
  for (std::size_t i = 0; i < average.size(); ++i) {
    EXPECT_EQ(model->parameters[i], static_cast<float>(start[i] + 0.25 * (average[i] - start[i]))) << i;
  }
  config_.search.shrink = {1};
  ASSERT_TRUE(run(1, folder_ + "_other"));
  EXPECT_EQ(state_in(folder_ + "_other")["average"], state_in(folder_)["average"]);
  EXPECT_NE(load_model(folder_ + "_other")->parameters, model->parameters);
}

// The search itself does not change, so that each validation of several shares is the better of what each has alone.
TEST_P(EverySearch, OfSeveralSharesOfTheWayTakesTheBest) {
  config_.search.generations = 6;
  config_.search.validate_every = 2;
  double best = std::numeric_limits<double>::infinity();
  for (const double share : {1.0, 0.3}) {
    config_.search.shrink = {share};
    const auto alone = run(1, folder_ + formatted("_%g", share));
    ASSERT_TRUE(alone) << alone.error().to_string();
    best = std::min(best, alone->best_validation);
  }
  config_.search.shrink = {1, 0.3};
  const auto both = run(1, folder_);
  ASSERT_TRUE(both) << both.error().to_string();
  EXPECT_EQ(both->best_validation, best);
  const std::string metrics = *read_text_file(folder_ + "/metrics.csv");
  EXPECT_TRUE(metrics.substr(0, metrics.find('\n')).ends_with(",shrink")) << metrics;
  EXPECT_TRUE(metrics.ends_with(",1\n") || metrics.ends_with(",0.3\n")) << metrics;
}

TEST_P(EverySearch, OnAScaledClusterIsOnThatCluster) {
  config_.search.generations = 3;
  config_.cluster_scales = {1.5};
  ASSERT_TRUE(run(1, folder_));
  config_.cluster_scales = {1};
  cluster_ = Cluster::homogeneous(1, 6);
  ASSERT_TRUE(run(1, folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
  EXPECT_EQ(state_in(folder_)["mean"], state_in(folder_ + "_other")["mean"]);
}

// Of a number of episodes that the number of clusters does not divide, so that turns go on from one generation to the
// next.
TEST_P(EverySearch, OnSeveralClustersGoesOnBitForBitOnAnyNumberOfThreads) {
  config_.cluster_scales = {1, 1.5, 2};
  config_.search.validate_every = 2;
  config_.search.windows = 5;
  const auto search_to = [&](std::uint32_t generations, const std::string& folder, bool resume) {
    config_.search.generations = generations;
    ASSERT_TRUE(run(1, folder, resume));
  };
  search_to(8, folder_ + "_other", false);
  config_.threads = 3;
  search_to(2, folder_, false);
  search_to(8, folder_, true);
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
  Json state = state_in(folder_), other = state_in(folder_ + "_other");
  for (Json* each : {&state, &other}) each->erase("config");  // the number of threads
  EXPECT_EQ(state, other);
  EXPECT_EQ(state["best_ratios"].size(), 3u);
  config_.cluster_scales = {1};
  search_to(8, folder_ + "_one", false);
  EXPECT_NE(state_in(folder_ + "_one")["mean"], state["mean"]);
}

TEST_F(SearchRun, RefusesScalesThatLeaveNoRoomForAJob) {
  config_.cluster_scales = {1, 0.5};
  const auto small = run(1, folder_);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().to_string(),
            "windows.cluster_scales: a job of the trace does not fit the cluster at its smallest; expected larger "
            "scales");
}

// What both do with all jobs, as `gpusched replay --policy` would run them.
template <class P, class Q>
void expect_same_run(const JobTable& jobs, const Cluster& cluster, P one, Q other) {
  EXPECT_EQ(test::run(jobs, cluster, std::move(one)), test::run(jobs, cluster, std::move(other)));
}

// Hidden units change nothing before they have learned: the run begins exactly at its order, and generation 0 stands.
TEST_F(SearchRun, EsStartsExactlyAtItsOrder) {
  config_.method = Method::es;
  config_.network.hidden = 8;
  config_.search = {.generations = 1, .population = 4, .learning_rate = 0, .validate_every = 1};
  for (const bool preempts : {false, true}) {
    config_.env.agenda.mode = preempts ? ActionMode::preempt : ActionMode::fit_or_wait;
    config_.env.agenda.heuristic = preempts ? Heuristic::las : Heuristic::saf;
    config_.env.agenda.max_jobs = 1024;
    config_.network.kind = preempts ? NetworkKind::rank : NetworkKind::index;
    const std::string folder = folder_ + (preempts ? "_rank" : "_index");
    const auto summary = run(1, folder);
    ASSERT_TRUE(summary) << summary.error().to_string();
    EXPECT_EQ(summary->best_iteration, 0u);
    EXPECT_EQ(summary->best_validation, summary->validation_heuristic);
    AgendaOptions order = config_.env.agenda;
    order.max_jobs = no_index;
    expect_same_run(jobs_, cluster_, RlPolicy("x", *load_model(folder), jobs_.works(), false, 0),
                    AgendaPolicy(order, jobs_.works()));
  }
}

TEST_F(SearchRun, EsStartsExactlyAtTheIndexThatItIsGiven) {
  ASSERT_TRUE(run(1, folder_ + "_index"));
  config_.method = Method::es;
  config_.network.hidden = 8;
  config_.init = folder_ + "_index";
  config_.search = {.generations = 1, .population = 4, .learning_rate = 0, .validate_every = 1};
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_LT(summary->best_validation, 0.8 * summary->validation_heuristic);
  const auto model_in = [&](const std::string& folder) {
    return RlPolicy("x", *load_model(folder), jobs_.works(), false, 0);
  };
  expect_same_run(jobs_, cluster_, model_in(folder_), model_in(folder_ + "_index"));
  AgendaOptions order = config_.env.agenda;
  order.max_jobs = no_index;
  EXPECT_NE(test::run(jobs_, cluster_, model_in(folder_)),
            test::run(jobs_, cluster_, AgendaPolicy(order, jobs_.works())));

  // It goes on without the folder that it came from, normalised as it was.
  std::filesystem::remove_all(folder_ + "_index");
  config_.search.generations = 2;
  const auto resumed = run(1, folder_, true);
  ASSERT_TRUE(resumed) << resumed.error().to_string();
  EXPECT_EQ(resumed->best_validation, summary->best_validation);
}

TEST_F(SearchRun, RefusesToStartFromAnotherModel) {
  config_.search.generations = 1;
  ASSERT_TRUE(run(1, folder_ + "_index"));
  const std::string index = config_.init = folder_ + "_index";
  const auto refusal = [&] {
    const auto other = run(1, folder_);
    return other ? std::string() : other.error().to_string();
  };
  const std::string env = "/init: the model in " + index +
                          " was trained with another mode, knowledge, heuristic or other choice of env than this run";
  config_.env.agenda.heuristic = Heuristic::sjf;
  EXPECT_EQ(refusal(), env);
  config_.env.agenda.mode = ActionMode::preempt;
  config_.network.kind = NetworkKind::rank;
  EXPECT_EQ(refusal(), "/init: the model in " + index +
                           " holds the network index with 0 hidden units, which does not begin that of this run, rank "
                           "with 0 hidden units");
  config_.init = folder_ + "_nowhere";
  EXPECT_EQ(refusal(), folder_ + "_nowhere/model.json: cannot be opened");
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(SearchRun, ADivergedRunKeepsTheLastGoodModel) {
  config_.method = Method::es;
  config_.search = {.generations = 9, .population = 4, .learning_rate = 0, .validate_every = 1};
  ASSERT_TRUE(run(1, folder_ + "_other"));
  config_.search.learning_rate = 1e300;
  const auto diverged = run(1, folder_);
  ASSERT_FALSE(diverged);
  EXPECT_EQ(
      diverged.error().to_string(),
      "generation 1 has a parameter or loss that is not a number; the last good model and state stay in " + folder_);
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
  EXPECT_TRUE(load_model(folder_));
}

}  // namespace
}  // namespace gpusched
