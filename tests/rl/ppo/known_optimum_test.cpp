// SPDX-License-Identifier: Apache-2.0
// A queue whose best policy is known: one server, Poisson arrivals of two classes of jobs, run times that nobody knows
// (M/G/1). With a cost c a second of waiting and mean run time 1 / mu, the least mean cost is that of serving the class
// of the larger c mu first (Cox & Smith, Queues, 1961). PPO has to find that from scratch.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "src/base/statistics.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/ppo/ppo_trainer.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/training_windows.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

struct JobClass {
  double share, mean_s;
};
constexpr JobClass brief{0.7, 60};
constexpr JobClass lengthy{0.3, 600};
constexpr double mean_run_s = brief.share * brief.mean_s + lengthy.share * lengthy.mean_s;

// Run times are exponential; a job's estimate is the mean of its class.
JobTable queue_of(std::uint32_t jobs, double load, std::uint64_t seed) {
  Rng rng = Rng(seed).split("queue");
  JobTableBuilder builder;
  double submit_s = 0;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    submit_s += rng.exponential(mean_run_s / load);
    const JobClass& of = rng.uniform() < brief.share ? brief : lengthy;
    builder.add({.submit = from_seconds(submit_s),
                 .work = from_seconds(rng.exponential(of.mean_s)),
                 .estimate = from_seconds(of.mean_s),
                 .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu}});
  }
  return *std::move(builder).build();
}

class KnownOptimum : public testing::Test {
 protected:
  KnownOptimum() {
    // By user estimates, and all costs being alike, sjf is the c-mu rule. What is learned starts from nothing: all
    // actions, to wait among them, are as likely (alpha 0), and the best one is the oldest job.
    config_.trace = "synthetic";
    config_.env.agenda = {.knowledge = RuntimeKnowledge::user, .heuristic = Heuristic::fcfs};
    config_.env.weights = {};
    config_.env.weights[reward_wait] = 1;
    config_.windows = {.jobs = 60, .stride = 60, .train_fraction = 0.6, .validation_fraction = 0.4};
    config_.network = {.kind = NetworkKind::index, .critic_width = 16, .alpha = 0};
  }

  [[nodiscard]] double mean_wait_s(std::span<const Window* const> windows, Heuristic heuristic) const {
    double sum = 0;
    double jobs = 0;
    for (const RewardVector& totals :
         evaluate_windows(windows, server_, config_.env, {}, Acting::heuristic, heuristic)) {
      sum -= totals[reward_wait];
    }
    for (const Window* window : windows) jobs += static_cast<double>(window->jobs.size());
    return sum / jobs;
  }

  static constexpr double load_ = 0.95;
  Cluster server_ = Cluster::homogeneous(1, 1);
  TrainConfig config_;
};

// The rule's mean wait is the one that queueing theory gives for priorities without preemption (Cobham, 1954).
TEST_F(KnownOptimum, IsTheRuleOfTheTheory) {
  constexpr double load = 0.8;
  const JobTable jobs = queue_of(200'000, load, 5);
  const Window window{.jobs = jobs, .history = {}};
  const Window* const windows[] = {&window};
  const double arrivals_per_s = load / mean_run_s;
  // Half of what the square of a run time is expected to be, a second: twice the square of an exponential's mean.
  const double residual =
      arrivals_per_s * (brief.share * brief.mean_s * brief.mean_s + lengthy.share * lengthy.mean_s * lengthy.mean_s);
  const double brief_load = arrivals_per_s * brief.share * brief.mean_s;
  const double brief_wait = residual / (1 - brief_load);
  const double lengthy_wait = brief_wait / (1 - load);
  const double expected = brief.share * brief_wait + lengthy.share * lengthy_wait;
  EXPECT_NEAR(mean_wait_s(windows, Heuristic::sjf), expected, 0.05 * expected);
  EXPECT_NEAR(mean_wait_s(windows, Heuristic::fcfs), residual / (1 - load), 0.05 * residual / (1 - load));
}

// On jobs that served neither training nor choosing the model. Better than the rule by more than luck would be a leak.
TEST_F(KnownOptimum, IsFoundFromScratch) {
  config_.ppo.iterations = 60;
  config_.ppo.windows = 16;
  config_.ppo.desired_kl = 0.02;
  const test::TempFolder folder;
  const auto summary = train(
      config_, queue_of(9000, load_, 1), server_, folder.path() + "/run", false, [](const TrainProgress&) {},
      train_by_ppo);
  ASSERT_TRUE(summary) << summary.error().to_string();
  const auto model = load_model(folder.path() + "/run");
  ASSERT_TRUE(model) << model.error().to_string();

  const auto windows = make_windows(queue_of(60'000, load_, 2), config_.windows, Split::train);
  ASSERT_TRUE(windows);
  const auto unseen = pointers_to(*windows);
  const double optimum = mean_wait_s(unseen, Heuristic::sjf);
  ASSERT_GT(mean_wait_s(unseen, Heuristic::fcfs), 1.3 * optimum);
  const Actor actor{&model->network, &model->normaliser, model->parameters};
  const double learned = mean_of(window_losses(unseen, server_, config_.env, actor, Acting::best));
  EXPECT_LT(learned, 1.02 * optimum);
  EXPECT_GT(learned, 0.99 * optimum);
  std::printf("mean wait: learned %.2f s, the c-mu rule %.2f s\n", learned, optimum);
}

}  // namespace
}  // namespace gpusched
