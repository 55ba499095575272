// SPDX-License-Identifier: Apache-2.0
// What predictions know of jobs that ended before a run.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "gpusched/learn/env.hpp"
#include "gpusched/policy/past_jobs.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/replay.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

using test::Span;

std::vector<std::uint32_t> numbers(const PastJobs& past) { return {past.jobs.begin(), past.jobs.end()}; }

TEST(JobEnds, AreThoseBeforeASubmissionInTheirOrder) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 90},
                                        {.submit = 1, .work = 10},
                                        {.submit = 2, .work = 8},
                                        {.submit = 10, .work = 0},
                                        {.submit = 10, .work = 0},
                                        {.submit = 100, .work = 1}});
  const JobEnds ends(jobs);
  EXPECT_EQ(numbers(ends.before(JobId{0})), std::vector<std::uint32_t>{});
  // Job 2 ends at 10, when job 4 is submitted: not before it.
  EXPECT_EQ(numbers(ends.before(JobId{4})), std::vector<std::uint32_t>{});
  EXPECT_EQ(numbers(ends.before(JobId{5})), (std::vector<std::uint32_t>{2, 3, 4, 1, 0}));
}

TEST(JobEnds, AreThoseOfTheLogWhereItRecordsStarts) {
  JobTableBuilder builder;
  builder.add({.submit = whole_seconds(0), .work = whole_seconds(10), .start = whole_seconds(50)});
  builder.add({.submit = whole_seconds(5), .work = whole_seconds(10), .start = whole_seconds(5)});
  builder.add({.submit = whole_seconds(30), .work = whole_seconds(10), .start = whole_seconds(30)});
  const JobTable jobs = *std::move(builder).build();
  EXPECT_EQ(numbers(JobEnds(jobs).before(JobId{2})), std::vector<std::uint32_t>{1});
}

// Three hundred jobs that follow each other one by one, and long after them two hundred that wait for each other.
constexpr std::uint32_t past_jobs = 300, present_jobs = 200;
JobTable past_and_present(std::uint64_t seed) {
  Rng rng = Rng(seed).split("jobs");
  const std::string_view users[] = {"ann", "bob"}, vcs[] = {"a", "b"}, names[] = {"train-1", "train-2", "eval"};
  JobTableBuilder builder;
  double submit = 0;
  for (std::uint32_t i = 0; i < past_jobs + present_jobs; ++i) {
    if (i == past_jobs) submit += 1e6;
    const double work = std::min(rng.lognormal(5, 2), 3e5) + 1;
    const auto gpus = static_cast<std::uint32_t>(1 + rng.below(3));
    builder.add({.submit = from_seconds(submit),
                 .work = from_seconds(work),
                 .shape = {.tasks = gpus, .gpu_milli_per_task = whole_gpu},
                 .user = users[rng.below(2)],
                 .group = users[rng.below(2)],
                 .vc = vcs[rng.below(2)],
                 .name = names[rng.below(3)]});
    submit += i < past_jobs ? work + 1 : rng.exponential(30);
  }
  return *std::move(builder).build();
}

std::vector<Span> spans_of(const std::string& policy, const JobTable& jobs, const Cluster& cluster,
                           const PastJobs& past) {
  static const PolicyRegistry registry = PolicyRegistry::standard();
  auto made = make_policy(registry, parse_policy_list(policy)->front(),
                          {.jobs = &jobs, .cluster = &cluster, .seed = 1, .past = past});
  EXPECT_TRUE(made) << made.error().to_string();
  return test::run(jobs, cluster, *std::move(made));
}

class EveryPrediction : public testing::TestWithParam<const char*> {};

// Whether the past was simulated or is told, what follows is the same; and another than without it.
TEST_P(EveryPrediction, OfJobsThatEndedBeforeIsThatOfJobsThatRanBefore) {
  Cluster cluster = Cluster::homogeneous(1, 4);
  bool matters = false;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const JobTable all = past_and_present(seed);
    const JobEnds ends(all);
    const JobTable present = all.slice(past_jobs, present_jobs);
    const std::vector<Span> whole = spans_of(GetParam(), all, cluster, {});
    const std::vector<Span> told = spans_of(GetParam(), present, cluster, ends.before(JobId{past_jobs}));
    EXPECT_EQ(told, std::vector<Span>(whole.begin() + past_jobs, whole.end())) << seed;
    matters |= told != spans_of(GetParam(), present, cluster, {});
  }
  EXPECT_TRUE(matters);
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPrediction,
                         testing::Values("saf{estimate=history}", "sjf{estimate=requested}+easy{estimate=requested}",
                                         "sjf{estimate=user-mean}", "sjf{estimate=group-gpu-mean}",
                                         "sjf{estimate=name-history}", "agenda{heuristic=saf}",
                                         "agenda{mode=reserve,heuristic=sjf}", "agenda{mode=preempt,heuristic=srtf}",
                                         "agenda{mode=preempt,heuristic=gittins}", "rl:builtin/philly",
                                         "rl:builtin/hpc"));

// These learn at other instants while jobs run, so that only their use of the past is told.
TEST(History, IsReadByQuantilesAndByTheDistributionOfTiresias) {
  const Cluster cluster = Cluster::homogeneous(1, 4);
  for (const char* policy : {"sjf{estimate=quantile}", "tiresias-gittins"}) {
    bool matters = false;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const JobTable all = past_and_present(seed);
      const JobEnds ends(all);
      const JobTable present = all.slice(past_jobs, present_jobs);
      matters |=
          spans_of(policy, present, cluster, ends.before(JobId{past_jobs})) != spans_of(policy, present, cluster, {});
    }
    EXPECT_TRUE(matters) << policy;
  }
}

double jct_of(const std::vector<Span>& spans, const JobTable& jobs) {
  double sum = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) sum += spans[i].end - to_seconds(jobs.submit(JobId{i}));
  return sum;
}

// In windows, in an environment and in a replay the past is the same; in an environment all of it counts alike.
TEST(History, IsTheSameEverywhere) {
  const Cluster cluster = Cluster::homogeneous(1, 4);
  const JobTable all = past_and_present(3);
  const JobEnds ends(all);
  const JobTable present = all.slice(past_jobs, present_jobs);
  const std::string policy = "agenda{mode=preempt,heuristic=gittins,half_life_jobs=0}";
  const double told = jct_of(spans_of(policy, present, cluster, ends.before(JobId{past_jobs})), present);

  const EvaluationOptions options{.engine = {}, .windows = {.jobs = present_jobs, .first = past_jobs}, .history = true};
  EvaluationProgress progress;
  const auto specs = parse_policy_list(policy);
  const auto scores = evaluate_policies(all, cluster, options, *specs, PolicyRegistry::standard(), 1, progress);
  ASSERT_TRUE(scores) << scores.error().to_string();
  EXPECT_NEAR(*scores->front().windows.front()->avg_jct_s * present_jobs, told, 1e-6 * told);

  const auto windows = make_windows(all,
                                    {.jobs = present_jobs,
                                     .stride = past_jobs,
                                     .train_fraction = 1,
                                     .validation_fraction = 0,
                                     .service_history = true},
                                    Split::train);
  ASSERT_TRUE(windows && windows->size() == 2);
  EnvOptions env_options;
  env_options.agenda = {.mode = ActionMode::preempt, .heuristic = Heuristic::gittins};
  Env env(cluster, env_options);
  for (StepResult result = env.reset(windows->back()); !result.done();) result = env.step(Heuristic::gittins);
  EXPECT_NEAR(-env.totals()[reward_jct], told, 1e-6 * told);
}

TEST(History, OfAReplayIsItsFirstJobs) {
  Scenario scenario;
  scenario.trace = "synthetic:philly:500";
  scenario.cluster = "4x8";
  scenario.oversize = "clamp";
  scenario.policies = {"agenda{mode=preempt,heuristic=gittins}"};
  scenario.history_jobs = 300;
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  ASSERT_TRUE(input) << input.error().to_string();
  EXPECT_EQ(input->trace.jobs.size(), 200u);
  EXPECT_EQ(input->history.jobs.size(), 300u);
  EXPECT_LT(input->history.ended.size(), 300u);  // some still run

  Scenario without = scenario;
  without.history_jobs = 0;
  const auto all = load_replay(without, registry);
  ASSERT_TRUE(all);
  EXPECT_EQ(numbers(input->history.past()), numbers(JobEnds(all->trace.jobs).before(JobId{300})));
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 1, {}, progress);
  ASSERT_TRUE(runs);
  const PastJobs past = input->history.past();
  const double told =
      jct_of(spans_of(scenario.policies.front(), input->trace.jobs, input->cluster, past), input->trace.jobs);
  EXPECT_NEAR(*runs->front().metrics.avg_jct_s * 200, told, 1e-6 * told);

  scenario.history_jobs = 500;
  const auto none = load_replay(scenario, registry);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().to_string(),
            "history_jobs: expected fewer than the 500 jobs of the trace, so that one is run");
}

}  // namespace
}  // namespace gpusched
