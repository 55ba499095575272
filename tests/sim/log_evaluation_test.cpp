// SPDX-License-Identifier: Apache-2.0
// Policies on whole logs: what is run, what is left out, and what is said where windows say the opposite.
#include "src/sim/log_evaluation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/text_style.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/sim/evaluate.hpp"
#include "src/sim/log_report.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/window_comparison.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;
using testing::Not;

LogEvaluation run(const JobTable& jobs, const Cluster& cluster, const std::string& policies,
                  std::vector<std::uint32_t> starts = {}, JobQuantity quantity = JobQuantity::jct,
                  std::uint64_t threads = 1) {
  const LogOptions log{.first = 0, .jobs = jobs.size(), .starts = std::move(starts)};
  EvaluationProgress progress;
  auto scores = run_log(jobs, cluster, {.engine = {}, .windows = {}}, log, quantity, *parse_policy_list(policies),
                        PolicyRegistry::standard(), threads, progress);
  EXPECT_TRUE(scores) << scores.error().to_string();
  LogEvaluation evaluation{
      .log = log, .span_s = to_seconds(jobs.submit(JobId{jobs.size() - 1}) - jobs.submit(JobId{0})), .contestants = {}};
  for (LogScores& own : *scores) evaluation.contestants.push_back({own.policy, {std::move(own)}});
  return evaluation;
}

// Jobs of one GPU and exponential length for four GPUs, and now and then one of all four.
JobTable mixed(std::uint32_t count, double gap_s, double wide_share, std::uint64_t seed) {
  Rng rng = Rng(seed).split("mixed");
  JobTableBuilder builder;
  double now = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    now += rng.exponential(gap_s);
    const bool wide = rng.uniform() < wide_share;
    builder.add({.submit = from_seconds(now),
                 .work = from_seconds(1 + rng.exponential(wide ? 20 : 40)),
                 .shape = {.tasks = wide ? 4u : 1u, .gpu_milli_per_task = whole_gpu}});
  }
  return *std::move(builder).build();
}

const Cluster& four_gpus() {
  static const Cluster cluster = Cluster::homogeneous(1, 4);
  return cluster;
}

// What runs is the log that `replay` runs, to the last figure.
TEST(LogEvaluation, RunsWhatReplayRuns) {
  Scenario scenario;
  scenario.trace = "synthetic:philly:400";
  scenario.cluster = "4x8";
  scenario.oversize = "clamp";
  scenario.seed = 3;
  scenario.policies = {"sjf{estimate=noisy}"};
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  ASSERT_TRUE(input) << input.error().to_string();
  ReplayProgress progress;
  const auto replayed = run_replay(*input, registry, 1, {}, progress);
  ASSERT_TRUE(replayed);

  EvaluateScenario evaluate;
  evaluate.traces = {scenario.trace};
  evaluate.clusters = {scenario.cluster};
  evaluate.oversize = "clamp";
  evaluate.seed = 3;
  evaluate.policies = {"sjf{estimate=noisy}", "fifo"};
  evaluate.mode = "log";
  const auto plan = load_evaluation(evaluate, registry);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EvaluationProgress evaluated;
  const auto outcome = run_evaluation(*plan, registry, 1, evaluated);
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  const Metrics& metrics = outcome->logs.front().evaluation.contestants.front().runs.front().run->metrics;
  for (const MetricInfo& metric : metric_table()) {
    EXPECT_EQ(metric.value(metrics), metric.value(replayed->front().metrics)) << metric.name;
  }
}

TEST(LogEvaluation, ThreadsChangeNothing) {
  const JobTable jobs = mixed(600, 12, 0.05, 1);
  const LogEvaluation one = run(jobs, four_gpus(), "fifo,sjf,las", {30, 60});
  const LogEvaluation many = run(jobs, four_gpus(), "fifo,sjf,las", {30, 60}, JobQuantity::jct, 3);
  const LogCompareOptions options{.figure = {}};
  const MetricInfo& figure = *find_metric("avg_jct_s");
  const auto text = [&](const LogEvaluation& log) {
    return effects_csv({{"t", "c", log, compare_logs({log}, options).front()}},
                       {.figure = &figure, .compare = options});
  };
  EXPECT_EQ(text(one), text(many));
}

// By hand: one GPU, jobs of 10 s every 4 s find 0, 0, 1, 1, 2, ... waiting; four had not ended when the last came.
TEST(LogEvaluation, NotesWhatEachJobFindsAndWhoHasNotEnded) {
  std::vector<test::Row> rows;
  for (int i = 0; i < 6; ++i) rows.push_back({.submit = 4 * i, .work = 10});
  const LogEvaluation log = run(test::table_of(rows), Cluster::pool(1), "fifo");
  const LogRun& run_of_all = *log.contestants.front().runs.front().run;
  EXPECT_EQ(run_of_all.values, (std::vector<double>{10, 16, 22, 28, 34, 40}));
  EXPECT_EQ(run_of_all.wait_s, (std::vector<double>{0, 6, 12, 18, 24, 30}));
  EXPECT_EQ(run_of_all.found, (std::vector<double>{0, 0, 1, 1, 2, 3}));
  EXPECT_EQ(run_of_all.censored, (std::vector<bool>{false, false, true, true, true, true}));
}

TEST(LogEvaluation, AQueueThatEmptiesForgetsItsStartAtOnce) {
  const JobTable jobs = mixed(4000, 14, 0, 2);
  const LogEvaluation log = run(jobs, four_gpus(), "fifo,sjf", {200, 400});
  const LogFindings findings = compare_logs({log}, {.figure = {}}).front();
  EXPECT_LT(findings.warm_up, 100u);
  EXPECT_EQ(findings.standings[0].grows, "");
  EXPECT_TRUE(tells(findings));
  const LogComparison& pair = *findings.comparisons[1];
  EXPECT_TRUE(pair.plan.enough());
  EXPECT_EQ(pair.verdict, "better") << pair.verdict;
}

// More work than GPUs: the mean grows with the log, and no interval of it is right for another length.
// Whom a limit refuses depends on the policy, and on where a run begins: what a pair says is of the jobs of both.
TEST(LogEvaluation, PairsTheJobsThatNoLimitRefusedUnderEither) {
  const JobTable jobs = mixed(6000, 11, 0.2, 5);
  Cluster cluster = four_gpus();
  cluster.limits = {{.per = LimitOwner::all, .submitted = 6}};
  for (const char* policies : {"fifo,sjf,las", "las,sjf,fifo"}) {
    const LogEvaluation log = run(jobs, cluster, policies, {300, 600});
    const LogRun &first = *log.contestants[0].runs[0].run, &last = *log.contestants[2].runs[0].run;
    ASSERT_NE(first.job, last.job);
    std::vector<std::uint32_t> both;
    std::set_intersection(first.job.begin(), first.job.end(), last.job.begin(), last.job.end(),
                          std::back_inserter(both));
    const LogFindings findings = compare_logs({log}, {}).front();
    ASSERT_TRUE(findings.comparisons[2]);
    EXPECT_EQ(findings.comparisons[2]->plan.jobs, both.size() - findings.warm_up);
    double sum = 0;
    for (std::size_t i = findings.warm_up; i < both.size(); ++i) {
      const auto at = std::lower_bound(last.job.begin(), last.job.end(), both[i]) - last.job.begin();
      sum += last.values[static_cast<std::size_t>(at)];
    }
    const EffectEstimate& mean = findings.comparisons[2]->effects.front();
    EXPECT_NEAR(mean.ours, sum / static_cast<double>(both.size() - findings.warm_up), 1e-9 * mean.ours);
    for (const auto& after : first.forgotten_after) EXPECT_LT(after.value_or(0), 3000u);
  }
}

TEST(LogEvaluation, SaysWhereNoJobCounts) {
  const JobTable jobs = mixed(500, 11, 0.2, 5);
  Cluster cluster = four_gpus();
  cluster.limits = {{.per = LimitOwner::all, .submitted = 0}};
  const LogEvaluation log = run(jobs, cluster, "fifo,sjf", {25});
  const LogFindings findings = compare_logs({log}, {}).front();
  EXPECT_FALSE(findings.standings[0].value);
  EXPECT_FALSE(findings.comparisons[1]);
  EXPECT_FALSE(tells(findings));
}

TEST(LogEvaluation, SaysThatAQueueGrows) {
  const JobTable jobs = mixed(2000, 8, 0, 3);
  const LogEvaluation log = run(jobs, four_gpus(), "fifo-skip,fifo", {100, 200});
  const LogFindings findings = compare_logs({log}, {.figure = {}}).front();
  EXPECT_THAT(findings.standings[1].grows, HasSubstr("had not started when the last one arrived"));
  EXPECT_TRUE(tells(findings));
  EXPECT_THAT(findings.comparisons[1]->verdict, testing::StartsWith("cannot be told: both queues grow"));
  const LogEvaluation calm = run(mixed(2000, 30, 0, 3), four_gpus(), "sjf", {100});
  LogEvaluation pair{.log = log.log, .span_s = log.span_s, .contestants = {}};
  pair.log.starts = {100};
  pair.contestants = {calm.contestants[0], log.contestants[1]};
  pair.contestants[1].runs[0].run->forgotten_after.pop_back();
  EXPECT_EQ(compare_logs({pair}, {.figure = {}}).front().comparisons[1]->verdict, "worse: its queue grows");
}

// A run of 2,000 jobs that find no queue, of `value` seconds each; every fiftieth had not ended.
LogContestant steady(const char* name, double value, double of_unended, bool ended = false) {
  LogRun run{.metrics = {},
             .saturation = {},
             .job = std::vector<std::uint32_t>(2000),
             .values = std::vector<double>(2000, value),
             .wait_s = std::vector<double>(2000, 1.0),
             .found = std::vector<double>(2000, 0.0),
             .censored = std::vector<bool>(2000),
             .forgotten_after = {}};
  std::iota(run.job.begin(), run.job.end(), 0u);
  for (std::size_t job = 0; job < 2000; job += 7) run.values[job] *= 1.01;
  for (std::size_t job = 49; job < 2000; job += 50) {
    run.values[job] = of_unended;
    run.censored[job] = !ended;
  }
  return {name, {{.policy = name, .run_times = {}, .run = std::move(run), .failure = {}}}};
}

// What has not ended has not cost all that it will.
TEST(LogEvaluation, NoPolicyIsBetterByJobsThatHadNotEnded) {
  LogEvaluation log{.log = {.first = 0, .jobs = 2000}, .span_s = 1, .contestants = {}};
  const auto verdict = [&](double of_unended) {
    log.contestants = {steady("fifo", 100, 100, true), steady("sjf", 90, of_unended)};
    return compare_logs({log}, {.figure = {}}).front().comparisons[1]->verdict;
  };
  EXPECT_EQ(verdict(90), "better");
  EXPECT_EQ(verdict(320), "cannot be told: 40 jobs had not ended");  // 94.6 in the mean, and with twice as much 101
  log.contestants = {steady("sjf", 90, 320), steady("fifo", 100, 100, true)};
  EXPECT_EQ(compare_logs({log}, {.figure = {}}).front().comparisons[1]->verdict,
            "cannot be told: 40 jobs of the other had not ended");
  // Those that had ended under neither are the same jobs.
  log.contestants = {steady("fifo", 100, 320), steady("sjf", 90, 320)};
  EXPECT_EQ(compare_logs({log}, {.figure = {}}).front().comparisons[1]->verdict, "better");
}

// Small jobs that pass over wide ones are better in every window, which ends before the wide ones have waited for long;
// in the log these wait until the small ones pause.
TEST(LogEvaluation, WindowsAndLogDisagreeWhereJobsStarve) {
  const JobTable jobs = mixed(8000, 13, 0.08, 4);
  const PolicyRegistry registry = PolicyRegistry::standard();
  const EvaluationOptions options{.engine = {}, .windows = {.jobs = 50, .stride = 50}};
  EvaluationProgress progress;
  const auto specs = parse_policy_list("fifo+easy,sjf{skip=true}");
  const auto scores = evaluate_policies(jobs, four_gpus(), options, *specs, registry, 1, progress);
  ASSERT_TRUE(scores);
  TraceEvaluation evaluation{.trace = "t",
                             .cluster = "c",
                             .windows = options.windows,
                             .starts = *window_starts(options.windows, jobs.size()),
                             .contestants = {},
                             .log = run(jobs, four_gpus(), "fifo+easy,sjf{skip=true}")};
  for (const PolicyScores& own : *scores) evaluation.contestants.push_back({own.policy, {own}});
  const ReportOptions report{.figure = find_metric("avg_wait_s"), .backfill = "none"};
  const WindowComparison one = compare_windows({evaluation}, report)[0][1];
  const std::string table = evaluation_table(evaluation, report);
  EXPECT_EQ(one.verdict, "windows and log disagree") << table;
  EXPECT_THAT(one.why, HasSubstr("starvation: on the log")) << table;
  EXPECT_THAT(table, HasSubstr("whole log"));
  EXPECT_THAT(table, HasSubstr("sjf{skip=true}: windows and log disagree: windows -"));
  EXPECT_THAT(comparison_csv({evaluation}, report), HasSubstr(",windows and log disagree,"));
  EXPECT_THAT(transfer_table({evaluation, evaluation}, report), HasSubstr("; log +"));
}

// A verdict is one of several: each needs a p below its share of 0.05.
TEST(LogEvaluation, VerdictsAreCorrectedForTheirNumber) {
  const JobTable jobs = mixed(3000, 13, 0.02, 5);
  std::string policies = "sjf{estimate=noisy,noise_sigma=1}";
  for (int seed = 1; seed < 16; ++seed) {
    policies += ",sjf{estimate=noisy,noise_sigma=1,seed=" + std::to_string(seed) + "}";
  }
  const LogFindings findings = compare_logs({run(jobs, four_gpus(), policies)}, {.figure = {}}).front();
  for (const auto& pair : findings.comparisons) {
    if (!pair) continue;
    for (std::size_t e = 0; e < pair->effects.size(); ++e) {
      EXPECT_GE(pair->p_holm[e], pair->effects[e].p);
      if (pair->p_holm[e] > 0.05) {
        EXPECT_NE(pair->verdicts[e], "better");
        EXPECT_NE(pair->verdicts[e], "worse");
      }
    }
  }
}

TEST(LogEvaluation, SeedsOfAGroupArePooled) {
  const JobTable jobs = mixed(3000, 13, 0.02, 6);
  const LogEvaluation seeds = run(jobs, four_gpus(), "fifo,sjf{estimate=noisy},sjf{estimate=noisy,seed=1}");
  LogEvaluation log{.log = seeds.log, .span_s = seeds.span_s, .contestants = {}};
  log.contestants = {seeds.contestants[0], {"noisy", {seeds.contestants[1].runs[0], seeds.contestants[2].runs[0]}}};
  const LogFindings findings = compare_logs({log}, {.figure = {}}).front();
  const double one = *seeds.contestants[1].runs[0].run->metrics.avg_jct_s;
  const double two = *seeds.contestants[2].runs[0].run->metrics.avg_jct_s;
  EXPECT_NEAR(*findings.standings[1].value, (one + two) / 2, 1e-6 * one);
  EXPECT_NEAR(findings.comparisons[1]->effects[0].ours, (one + two) / 2, 1e-6 * one);
}

TEST(LogEvaluation, IsInterrupted) {
  const std::atomic<bool> stop = true;
  EvaluationProgress progress;
  progress.stop = &stop;
  const JobTable jobs = mixed(300, 13, 0, 7);
  const auto scores = run_log(jobs, four_gpus(), {.engine = {}, .windows = {}}, {.first = 0, .jobs = 300},
                              JobQuantity::jct, *parse_policy_list("fifo"), PolicyRegistry::standard(), 1, progress);
  ASSERT_TRUE(scores);
  EXPECT_EQ(scores->front().failure, "was interrupted");
  EXPECT_FALSE(scores->front().run);
}

TEST(LogReport, SaysHowMuchMoreLogWouldTell) {
  EXPECT_EQ(more_log(1.0, 100), "");
  EXPECT_EQ(more_log(2.0, 3600), "about 1 hour more");
  EXPECT_EQ(more_log(3.0, 86'400), "about 2 days more");
  EXPECT_EQ(more_log(10.0, 7 * 86'400), "about 9 weeks more");
  EXPECT_EQ(more_log(4.0, 365 * 86'400.0), "about 3 years more");
  EXPECT_EQ(more_log(101.0, 1), "more than 100 times this log");
  EXPECT_EQ(more_log({}, 1), "no length can be named");
}

// The mean of one policy is the least in any case, but better it is only where that is told.
TEST(LogReport, MarksTheBestWhereTheLogTells) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const auto& [policies, mode, is_told] :
       {std::tuple("fifo,las", "log", true), std::tuple("sjf{estimate=history},saf{estimate=history}", "log", false),
        std::tuple("fifo,las", "windows", false)}) {
    EvaluateScenario scenario;
    scenario.traces = {"synthetic:philly:3000"};
    scenario.clusters = {"16x8"};
    scenario.oversize = "drop";
    scenario.mode = mode;
    if (std::string(mode) == "windows") scenario.window_jobs = 32;
    scenario.policies = {policies};
    const auto plan = load_evaluation(scenario, registry);
    ASSERT_TRUE(plan) << plan.error().to_string();
    EvaluationProgress progress;
    const auto outcome = run_evaluation(*plan, registry, 1, progress);
    ASSERT_TRUE(outcome) << outcome.error().to_string();
    const std::string text = evaluation_text(*plan, *outcome, {.colours = true});
    EXPECT_EQ(text.find(best_mark) != std::string::npos, is_told) << text;
  }
}

TEST(LogReport, NamesTheFiguresOfJobs) {
  EXPECT_EQ(job_figure(*find_metric("p99_wait_s"))->effect, JobEffect::p99);
  EXPECT_EQ(job_figure(*find_metric("avg_bounded_slowdown"))->quantity, JobQuantity::slowdown);
  EXPECT_FALSE(job_figure(*find_metric("makespan_s")));
  EXPECT_EQ(job_figure_names(), "avg_jct_s, median_jct_s, p99_jct_s, avg_wait_s, p99_wait_s, avg_bounded_slowdown");
}

}  // namespace
}  // namespace gpusched
