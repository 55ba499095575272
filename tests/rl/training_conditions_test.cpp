// SPDX-License-Identifier: Apache-2.0
// Training under every condition of a replay: as a policy, a trained model does in each validation window, on an engine
// under the same conditions, what it did in its environment, and the verdict is under them too.
#include "src/rl/training_conditions.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/direct_search.hpp"
#include "src/rl/trainer.hpp"
#include "src/rl/training_windows.hpp"
#include "src/sim/log_evaluation.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

class TrainingUnderConditions : public testing::Test {
 protected:
  TrainingUnderConditions() {
    Rng rng(11);
    std::vector<test::Row> rows;
    for (std::int64_t i = 0, submit = 0; i < 400; ++i) {
      submit += static_cast<std::int64_t>(rng.exponential(12));
      rows.push_back({.submit = submit,
                      .work = 10 + static_cast<std::int64_t>(rng.below(90)),
                      .gpus = 1 + static_cast<std::uint32_t>(rng.below(3)),
                      .user = i % 2 == 0 ? "ann" : "bob",
                      .family = i % 3 == 0 ? "net" : "lm"});
      if (i % 9 == 4) cancels_ += std::to_string(submit + 20) + "," + std::to_string(i) + ",cancel,\n";
      if (i % 11 == 5) resizes_ += std::to_string(submit + 15) + "," + std::to_string(i) + ",gpus,1\n";
    }
    jobs_ = test::table_of(rows);
    config_.trace = "made";
    config_.env.agenda = {
        .mode = ActionMode::preempt, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::srtf};
    config_.env.weights = {};
    config_.env.weights[reward_jct] = 1;
    config_.conditions.preemption.restart = whole_seconds(3);
    config_.network = {.kind = NetworkKind::rank, .alpha = 1};
    config_.method = Method::cma_es;
    config_.search = {
        .generations = 2, .population = 4, .windows = 3, .objective = SearchObjective::mean, .validate_every = 1};
    config_.windows = {.jobs = 30, .stride = 20, .validation_fraction = 0.2};
  }

  // Of every job of a validation window, a job that is cancelled counting nothing. There is no warm-up, which the
  // heuristic schedules in an environment, and the model as a policy.
  double mean_loss(const TrainConfig& under, const JobTable& jobs, const std::string& folder) {
    const auto model = load_model(folder);
    EXPECT_TRUE(model) << model.error().to_string();
    const auto windows = training_windows(under, jobs);
    EXPECT_TRUE(windows) << windows.error().to_string();
    double sum = 0;
    for (const Window& window : windows->validation) {
      Engine engine(window.jobs, cluster_, engine_options(under.env, window), run_inputs(under.env, window));
      RlPolicy policy("x", *model, window.jobs.works(), false, 0, window.history);
      EXPECT_TRUE(simulate(engine, policy));
      double jct = 0;
      for (std::uint32_t i = window.first_scored; i < window.jobs.size(); ++i) {
        if (window.changes.cancels(JobId{i})) continue;
        jct += to_seconds(engine.end(JobId{i}) - window.jobs.submit(JobId{i}));
      }
      sum += jct / static_cast<double>(window.jobs.size() - window.first_scored);
    }
    return sum / static_cast<double>(windows->validation.size());
  }

  // Trains and checks; gives the loss of the heuristic in the validation windows.
  double train_under(const std::string& name) {
    SCOPED_TRACE(name);
    const std::string folder = folder_.path() + "/" + name;
    const auto good = check_training(config_, jobs_, cluster_);
    EXPECT_TRUE(good) << good.error().to_string();
    const auto summary = train(
        config_, jobs_, cluster_, folder, false, [](const TrainProgress&) {}, nullptr);
    EXPECT_TRUE(summary) << summary.error().to_string();
    if (!summary) return 0;
    const auto conditions = load_training_conditions(config_, jobs_, cluster_);
    EXPECT_TRUE(conditions) << conditions.error().to_string();
    const double loss = mean_loss(conditions->apply_to(config_), conditions->jobs, folder);
    EXPECT_NEAR(loss, summary->best_validation, 1e-6 * loss);
    return summary->validation_heuristic;
  }

  test::TempFolder folder_;
  JobTable jobs_;
  Cluster cluster_ = Cluster::homogeneous(2, 4);
  TrainConfig config_;
  std::string cancels_ = "time_s,job,change,value\n", resizes_;
};

TEST_F(TrainingUnderConditions, AModelRunsAsItWasTrained) {
  const double plain = train_under("plain");
  EXPECT_GT(plain, 0);

  config_.conditions.stages = folder_.write(
      "stages.json",
      R"({"provision_s": 10, "transfer_gib_per_s": 1, "weights": {"by": "family", "gib": 4, "load_s": 2}})");
  const double staged = train_under("stages");
  EXPECT_GT(staged, plain + 5);

  config_.conditions.stages.clear();
  config_.conditions.changes = folder_.write("changes.csv", cancels_ + resizes_);
  const double changed = train_under("changes");
  EXPECT_LT(changed, plain);

  config_.conditions.changes.clear();
  config_.conditions.elastic = folder_.write("elastic.json", R"({"others": {"speedup": [[1, 1], [2, 1.8], [4, 3]]}})");
  EXPECT_NEAR(train_under("elastic"), plain, 1e-9) << "the agent runs jobs at the sizes that they ask for";

  config_.conditions.elastic.clear();
  config_.conditions.speeds.span_speed = "nodes=0.5";
  EXPECT_GT(train_under("spans"), plain);

  config_.conditions.speeds = {};
  config_.conditions.failures = folder_.write("failures.json", R"({"node": {"mtbf_h": 0.1, "repair_h": 0.02}})");
  EXPECT_GT(train_under("failures"), plain);

  config_.conditions.failures.clear();
  config_.conditions.power = folder_.write("power.json", R"({"caps": [{"w": 1000}], "gpus": {"any": {"full_w": 200,
      "limits": [{"limit_w": 100, "draw": 0.5, "speed": 0.6}, {"limit_w": 200}]}}})");
  EXPECT_GT(train_under("power"), plain) << "GPUs are slowed while more than five of eight work";

  config_.conditions.failures = folder_.path() + "/failures.json";
  config_.conditions.stages = folder_.path() + "/stages.json";
  config_.conditions.elastic = folder_.path() + "/elastic.json";
  config_.conditions.changes = folder_.write("cancels.csv", cancels_);
  EXPECT_GT(train_under("all together"), staged);
}

// Jobs can wait for a minute in which a kilowatt-hour emits a ninth.
TEST_F(TrainingUnderConditions, AnAgentThatReadsSignalsEmitsLess) {
  std::string carbon = "time_s,carbon_intensity\n";
  for (int minute = 0; minute < 200; ++minute) {
    carbon += std::to_string(60 * minute) + (minute % 2 == 0 ? ",900\n" : ",100\n");
  }
  folder_.write("carbon.csv", carbon);
  config_.conditions.power =
      folder_.write("power.json", R"({"gpus": {"any": {"idle_w": 0, "full_w": 300}}, "carbon": "carbon.csv"})");
  config_.conditions.preemption = {};
  config_.env.agenda = {.knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::sjf, .signals = true};
  config_.env.weights = {};
  config_.env.weights[reward_carbon] = 1;
  config_.network = for_agenda({.kind = NetworkKind::index, .alpha = 1}, config_.env.agenda);
  config_.search.generations = 12;
  config_.search.population = 8;
  const auto trained_by = [&](const std::string& name) {
    const auto good = check_training(config_, jobs_, cluster_);
    EXPECT_TRUE(good) << good.error().to_string();
    const auto summary = train(
        config_, jobs_, cluster_, folder_.path() + "/" + name, false, [](const TrainProgress&) {}, nullptr);
    EXPECT_TRUE(summary) << summary.error().to_string();
    return summary ? std::pair{summary->best_validation, summary->validation_heuristic} : std::pair{1.0, 1.0};
  };
  const auto [agent, heuristic] = trained_by("cma_es");
  EXPECT_LT(agent, 0.9 * heuristic);

  // Within half again of the heuristic's completion time, it still emits less.
  config_.constraints.reference = "sjf{estimate=exact,skip=true}";
  config_.constraints.most[bounded_avg_jct] = 1.5;
  const auto [bound, before] = trained_by("bounded");
  EXPECT_LE(bound, before);

  config_.constraints = {};
  config_.search.generations = 1;
  config_.method = Method::es;
  trained_by("es");
}

// It was refused: the policies that it is compared with ran without failures.
TEST_F(TrainingUnderConditions, TheVerdictIsUnderTheSameConditions) {
  config_.test_at_end = true;
  config_.windows = {.jobs = 20, .stride = 20, .validation_fraction = 0.1};
  const auto plain = train(
      config_, jobs_, cluster_, folder_.path() + "/plain", false, [](const TrainProgress&) {}, nullptr);
  ASSERT_TRUE(plain) << plain.error().to_string();
  config_.conditions.stages = folder_.write("stages.json", R"({"provision_s": 100})");
  const auto staged = train(
      config_, jobs_, cluster_, folder_.path() + "/staged", false, [](const TrainProgress&) {}, nullptr);
  ASSERT_TRUE(staged) << staged.error().to_string();
  EXPECT_GT(*staged->held_out->agent.jct_s, *plain->held_out->agent.jct_s + 90);
  ASSERT_FALSE(staged->held_out->rows.empty());
  EXPECT_GT(*staged->held_out->rows.front().jct_s, *plain->held_out->rows.front().jct_s + 90);
}

// It drew them as a window does, by the number of its first job too.
TEST_F(TrainingUnderConditions, TheVerdictsOneRunHasTheFailuresOfEvaluatesWholeLog) {
  config_.test_at_end = true;
  config_.windows = {.jobs = 20, .stride = 20, .validation_fraction = 0.1};
  config_.conditions.failures = folder_.write("failures.json", R"({"node": {"mtbf_h": 0.1, "repair_h": 0.02}})");
  const auto summary = train(
      config_, jobs_, cluster_, folder_.path() + "/run", false, [](const TrainProgress&) {}, nullptr);
  ASSERT_TRUE(summary) << summary.error().to_string();
  ASSERT_GT(summary->held_out->whole.size(), 1u);
  const WholeRun& plain = summary->held_out->whole[1];

  const auto conditions = load_training_conditions(config_, jobs_, cluster_);
  ASSERT_TRUE(conditions) << conditions.error().to_string();
  const EvaluationOptions options{
      .engine = conditions->engine, .conditions = conditions->conditions, .windows = {}, .history = true};
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto specs = parse_policies(registry, plain.policy);
  ASSERT_TRUE(specs) << specs.error().to_string();
  const std::uint32_t jobs = summary->held_out->whole_jobs;
  EvaluationProgress progress;
  const auto scores = run_log(jobs_, cluster_, options, {.first = jobs_.size() - jobs, .jobs = jobs}, JobQuantity::jct,
                              *specs, registry, 1, progress);
  ASSERT_TRUE(scores) << scores.error().to_string();
  ASSERT_TRUE(scores->front().run) << scores->front().failure;
  EXPECT_EQ(scores->front().run->metrics.avg_jct_s, plain.value);
}

TEST_F(TrainingUnderConditions, WhatCannotBeHadIsToldBeforeATrainingBegins) {
  const auto error_of = [&](const TrainConfig& config) {
    const auto good = check_training(config, jobs_, cluster_);
    return good ? std::string("none") : good.error().to_string();
  };
  EXPECT_EQ(error_of(config_), "none");
  TrainConfig config = config_;
  config.windows.jobs = 300;
  EXPECT_EQ(error_of(config), "windows/jobs: the train part has 240 jobs; expected at least the 300 of one window");
  config = config_;
  config.validation_jobs = 90;
  EXPECT_EQ(error_of(config), "windows/jobs: the validation part has 80 jobs; expected at least the 90 of one window");
  config = config_;
  config.test_at_end = true;
  config.windows.train_fraction = 0.75;
  EXPECT_EQ(error_of(config), "windows/jobs: the test part has 20 jobs; expected at least the 30 of one window");
  config = config_;
  config.conditions.failures = folder_.write("log.csv", "time_s,node,event\n3,1,down\n");
  EXPECT_EQ(error_of(config), "none") << "windows keep the trace's clock";
  config.windows.arrival_scale = 2;
  EXPECT_EQ(error_of(config),
            config.conditions.failures +
                ": expected laws alone with arrivals that are moved; a log of outages stays where it is");
  config = config_;
  config.conditions.stages = folder_.path() + "/none.json";
  EXPECT_EQ(error_of(config), folder_.path() + "/none.json: cannot be opened");
  config = config_;
  config.conditions.power = folder_.write("power.json", R"({"gpus": {"any": {"full_w": 300}}})");
  config.env.weights = {};
  config.env.weights[reward_carbon] = 1;
  EXPECT_EQ(error_of(config),
            "env.weights.carbon: the reward is 0 everywhere, as the power file has no carbon signal; expected a weight "
            "of another term");
  config.env.weights[reward_peak] = 1;
  EXPECT_EQ(error_of(config), "none");
  config.env.weights = {};
  config.env.weights[reward_fairness] = 1;
  EXPECT_EQ(error_of(config), "none");
  const JobTable nobodys = test::table_of(std::vector<test::Row>(400, {.work = 10, .gpus = 1}));
  const auto unfair = check_training(config, nobodys, cluster_);
  ASSERT_FALSE(unfair);
  EXPECT_EQ(
      unfair.error().to_string(),
      "env.weights.fairness: the reward is 0 everywhere, as the trace tells no two users apart; expected a weight "
      "of another term");
}

}  // namespace
}  // namespace gpusched
