// SPDX-License-Identifier: Apache-2.0
// Whom a trained agent is compared with, where, and what is said of it.
#include "src/rl/held_out.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/rl/training_run.hpp"

namespace gpusched {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lineup(RuntimeKnowledge knowledge) {
  const JobTable jobs = test::some_jobs(11, 20);
  const AgendaOptions agent{.mode = ActionMode::preempt, .knowledge = knowledge, .heuristic = Heuristic::las};
  std::vector<std::string> texts;
  for (const PolicySpec& policy : plain_policies(PolicyRegistry::standard(), agent, jobs, Cluster::homogeneous(2, 4))) {
    texts.push_back(policy.text);
  }
  return texts;
}

TEST(PlainPolicies, KnowAsMuchOfRunTimesAsTheAgent) {
  const std::vector<std::string> predicted = lineup(RuntimeKnowledge::predicted);
  for (const char* policy :
       {"fifo", "fifo-skip", "sjf{estimate=history,skip=true}", "saf{estimate=history}+easy{estimate=history}",
        "f1{estimate=history}", "wfp3{estimate=history}", "las", "tiresias",
        "agenda{mode=preempt,heuristic=srtf,knowledge=predicted}"}) {
    EXPECT_THAT(predicted, Contains(policy));
  }
  EXPECT_THAT(predicted, Not(Contains(HasSubstr("exact"))));
  EXPECT_THAT(predicted, Not(Contains("srtf")));

  const std::vector<std::string> oracle = lineup(RuntimeKnowledge::oracle);
  for (const char* policy : {"srtf", "srsf", "sjf{estimate=exact}", "las"}) EXPECT_THAT(oracle, Contains(policy));

  const std::vector<std::string> none = lineup(RuntimeKnowledge::none);
  EXPECT_THAT(none, Contains("las"));
  EXPECT_THAT(none, Not(Contains(HasSubstr("estimate"))));
}

TEST(HeldOut, ComparesByTheHeaviestWeight) {
  EnvOptions options;
  EXPECT_EQ(held_out_figure(options), "avg_bounded_slowdown");
  options.weights[reward_jct] = 2;
  EXPECT_EQ(held_out_figure(options), "avg_jct_s");
  options.weights = {};
  options.weights[reward_wait] = 1;
  EXPECT_EQ(held_out_figure(options), "avg_wait_s");
}

HeldOutRow row(const std::string& policy, double mean, const std::string& verdict, double low, double high) {
  HeldOutRow result{.policy = policy};
  result.agent = {.windows = 40, .mean = 90, .other_mean = mean, .interval = {}, .verdict = verdict};
  if (low != high) result.agent.interval = PairedIntervals{.difference = {}, .relative = {low, high}};
  return result;
}

HeldOut of_rows(std::vector<HeldOutRow> rows) {
  return {.figure = "avg_jct_s",
          .windows = 40,
          .window_jobs = 100,
          .agent = {.policy = "rl:run"},
          .rows = std::move(rows),
          .whole_jobs = 500,
          .whole = {{"rl:run", 70}, {"las", 60}},
          .failures = {}};
}

TEST(HeldOut, SaysWhetherTheAgentBeatsEveryPlainPolicy) {
  EXPECT_THAT(held_out_text(of_rows({row("las", 100, "better", -0.2, -0.05), row("fifo", 200, "better", -0.7, -0.4)})),
              HasSubstr("\nThe agent beats all 2 plain policies that know no more of run times than it does: its mean "
                        "avg_jct_s is -10.0% [-20.0%, -5.0%] from that of the best of them, las.\n"));
  EXPECT_THAT(
      held_out_text(
          of_rows({row("las", 100, "better", -0.2, -0.05), row("k8s", 120, "no difference detected", -1, 1)})),
      HasSubstr(
          "\nThe agent does NOT beat the plain policies (1 of 2 plain policies that know no more of run times than "
          "it does): its mean avg_jct_s is -25.0% [-100.0%, +100.0%] from that of k8s, no difference detected.\n"));
  EXPECT_THAT(held_out_text(of_rows({row("las", 100, "too few windows", 0, 0)})),
              HasSubstr("\nNo verdict (too few windows): its mean avg_jct_s is -10.0% from "
                        "that of the best of 1 plain policies that know no more of run times than it does, las.\n"));
  EXPECT_THAT(
      held_out_text(of_rows({row("las", 100, "better", -0.2, -0.05)})),
      HasSubstr("\nIn one run over all 500 jobs of the test part (one sample), avg_jct_s: rl:run 70.00, las "
                "60.00.\nThere the agent is +16.7% from the best plain policy: take las, guard the agent with it "
                "(policy guarded), or train on longer windows (windows/jobs above 100).\n"));
  HeldOut better = of_rows({row("las", 100, "better", -0.2, -0.05)});
  better.whole = {{"rl:run", 60}, {"las", 60}};
  EXPECT_THAT(held_out_text(better),
              testing::EndsWith("las 60.00.\nThere no plain policy is better than the agent.\n"));
}

class TestedRun : public test::TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    config_.env.agenda = {
        .mode = ActionMode::preempt, .knowledge = RuntimeKnowledge::predicted, .heuristic = Heuristic::las};
    config_.network.kind = NetworkKind::rank;
    config_.method = Method::cma_es;
    config_.search = {.generations = 1, .windows = 2, .step = 1e-6};  // it learns nothing
    config_.windows = {.jobs = 8, .stride = 8, .train_fraction = 0.1, .validation_fraction = 0.1, .history = false};
    config_.test_at_end = true;
  }
};

TEST_F(TestedRun, AnAgentThatLearnedNothingBeatsNothingThatItBeganAs) {
  const auto summary = run(1, folder_);
  ASSERT_TRUE(summary) << summary.error().to_string();
  ASSERT_TRUE(summary->held_out);
  const HeldOut& result = *summary->held_out;
  EXPECT_EQ(result.windows, 40u);  // of 8 jobs: the last 320 of 400
  EXPECT_EQ(result.whole_jobs, 320u);
  ASSERT_EQ(result.whole.size(), 4u);
  EXPECT_EQ(result.whole.front().policy, result.agent.policy);
  EXPECT_LE(result.whole[1].value, result.whole[2].value);
  EXPECT_LE(result.whole[2].value, result.whole[3].value);
  const auto began = std::find_if(result.rows.begin(), result.rows.end(), [](const HeldOutRow& other) {
    return other.policy == "agenda{mode=preempt,heuristic=las,knowledge=predicted}";
  });
  ASSERT_NE(began, result.rows.end());
  // Jobs of equal service are told apart by the step's noise.
  EXPECT_NEAR(*began->agent.mean, *began->agent.other_mean, 0.1 * *began->agent.mean);
  EXPECT_THAT(held_out_text(result), Not(HasSubstr("beats all")));
  for (std::size_t i = 1; i < result.rows.size(); ++i) {
    EXPECT_LE(*result.rows[i - 1].agent.other_mean, *result.rows[i].agent.other_mean);
  }
}

TEST_F(TestedRun, IsRefusedBeforeTrainingWhereNoWindowFitsTheTestPart) {
  config_.windows.train_fraction = 0.9;
  const auto summary = run(1, folder_);
  ASSERT_FALSE(summary);
  EXPECT_THAT(summary.error().to_string(), HasSubstr("the test part has 0 jobs"));
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

// What `gpusched train` does without a configuration, cut short; it needs no LibTorch.
TEST(DefaultRun, TrainsInEveryBuildAndIsTested) {
  TrainConfig config = default_train_config();
  config.trace = "synthetic:philly:3000";
  config.windows.jobs = config.windows.warm_up_jobs = config.windows.stride = 100;
  config.search.generations = 1;
  config.search.windows = 2;
  const auto input = load_train_input(config);
  ASSERT_TRUE(input) << input.error().to_string();
  test::TempFolder temporary;
  const auto summary = train(
      config, input->trace.jobs, input->cluster, temporary.path() + "/run", false, [](const TrainProgress&) {},
      nullptr);
  ASSERT_TRUE(summary) << summary.error().to_string();
  ASSERT_TRUE(summary->held_out);
  EXPECT_EQ(summary->held_out->figure, "avg_jct_s");
  EXPECT_GE(summary->held_out->rows.size(), 40u);
}

}  // namespace
}  // namespace gpusched
