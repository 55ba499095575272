// SPDX-License-Identifier: Apache-2.0
// The evolution strategy on functions, and the search for agents that it drives.
#include "src/rl/direct_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/base/statistics.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/cma_es.hpp"
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

class SearchRun : public TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    config_.method = Method::cma_es;
    config_.network.kind = NetworkKind::index;
    config_.search = {.generations = 20, .windows = 6, .validate_every = 5};
  }
};

// The state less what wall time is in.
Json state_in(const std::string& folder) {
  Json state = *parse_json_strictly(*read_text_file(folder + "/" + search_state_file), "");
  for (const char* key : {"seconds", "metrics_csv"}) state.erase(key);
  return state;
}

TEST_F(SearchRun, LearnsToBeatItsHeuristic) {
  std::uint64_t episodes = 0;
  const auto summary = train(
      config_, jobs_, cluster_, folder_, false, [&](const TrainProgress& progress) { episodes = progress.steps; },
      ppo_);
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

TEST_F(SearchRun, IsTheSameOnAnyNumberOfThreads) {
  ASSERT_TRUE(run(1, folder_));
  config_.threads = 3;
  ASSERT_TRUE(run(1, folder_ + "_other"));
  EXPECT_EQ(*read_text_file(folder_ + "/weights.bin"), *read_text_file(folder_ + "_other/weights.bin"));
  EXPECT_EQ(state_in(folder_)["mean"], state_in(folder_ + "_other")["mean"]);
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

TEST_F(SearchRun, GoesOnBitForBitAfterBeingKilled) {
  config_.search = {.generations = 100'000, .windows = 2, .validate_every = 3};
  const std::string state_file = folder_ + "/" + search_state_file;
  ASSERT_NO_FATAL_FAILURE(run_killed_after(state_file, 1));

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

TEST_F(SearchRun, NeedsNoLibTorchWherePpoSaysThatItDoes) {
  ASSERT_EQ(ppo_, nullptr);
  ASSERT_TRUE(run(1, folder_));
  config_.method = Method::ppo;
  const auto other = run(1, folder_ + "_other");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().to_string(),
            "this build cannot train by ppo, which needs LibTorch (configure with -DGPUSCHED_WITH_TORCH=ON where it is "
            "installed); \"method\": \"cma_es\" needs none");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "_other"));
}

TEST_F(SearchRun, RefusesOtherNetworks) {
  config_.network.kind = NetworkKind::kernel;
  const auto other = run(1, folder_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().to_string(), "/network/kind: method cma_es searches the networks index and rank");
}

}  // namespace
}  // namespace gpusched
