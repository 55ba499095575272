// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/sim/evaluation_report.hpp"
#include "tests/learn/learning_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

const MetricInfo& avg_jct = *find_metric("avg_jct_s");

std::vector<PolicyScores> scores_of(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                                    const std::string& policies) {
  EvaluationProgress progress;
  const auto specs = parse_policy_list(policies);
  auto scores = evaluate_policies(trace, cluster, options, *specs, PolicyRegistry::standard(), 1, progress);
  EXPECT_TRUE(scores) << scores.error().to_string();
  EXPECT_EQ(progress.done, specs->size() * scores->front().windows.size());
  return *std::move(scores);
}

TEST(Evaluation, WindowsLieWithinTheirBounds) {
  const auto starts = window_starts({.jobs = 10, .warm_up = 5, .stride = 7, .first = 20, .last = 45}, 100);
  ASSERT_TRUE(starts);
  EXPECT_EQ(*starts, (std::vector<std::uint32_t>{20, 27, 34}));
  const auto two = window_starts({.jobs = 10, .warm_up = 5, .stride = 7, .first = 20, .last = 45, .most = 2}, 100);
  ASSERT_TRUE(two);
  EXPECT_EQ(*two, (std::vector<std::uint32_t>{20, 27}));
  const auto none = window_starts({.jobs = 10, .first = 95}, 100);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no window of 10 jobs fits between jobs 95 and 100");
}

TEST(Evaluation, EachWindowIsARunOfItsOwn) {
  const JobTable trace = test::some_jobs(3, 2100);
  const Cluster cluster = Cluster::homogeneous(1, 4);
  const EvaluationOptions options{.engine = {}, .windows = {.jobs = 50, .warm_up = 10, .stride = 50}};
  const auto scores = scores_of(trace, cluster, options, "fifo,sjf{skip=true}");
  ASSERT_EQ(scores.at(0).windows.size(), 41u);
  // The second window by hand: jobs 50 to 109, of which the last fifty count.
  const JobTable jobs = trace.slice(50, 60);
  double sum = 0;
  const auto spans = test::run(jobs, cluster, Fifo{});
  for (std::uint32_t i = 10; i < 60; ++i) sum += spans[i].end - to_seconds(jobs.submit(JobId{i}));
  EXPECT_NEAR(*scores.at(0).windows[1]->avg_jct_s, sum / 50, 1e-6);

  const Contestant fifo{"fifo", {scores[0]}};
  const Contestant sjf{"sjf", {scores[1]}};
  const Comparison pair = compare(sjf, fifo, avg_jct, {options.windows.overlap(), 1});
  EXPECT_EQ(pair.verdict, "better");
  EXPECT_GT(pair.win_rate, 0.9);
  ASSERT_TRUE(pair.interval);
  EXPECT_LT(pair.interval->difference.low, *pair.mean - *pair.other_mean);
  EXPECT_GT(pair.interval->difference.high, *pair.mean - *pair.other_mean);
  const Comparison self = compare(fifo, fifo, avg_jct, {options.windows.overlap(), 1});
  EXPECT_EQ(self.verdict, "no difference detected");
  EXPECT_EQ(self.win_rate, 0.5);
}

// Three windows gave a verdict, of which every second was wrong.
TEST(Evaluation, FewWindowsGiveNoVerdict) {
  const JobTable trace = test::some_jobs(3, 100);
  const Cluster cluster = Cluster::homogeneous(1, 4);
  const EvaluationOptions options{.engine = {}, .windows = {.jobs = 50, .stride = 25}};
  const auto scores = scores_of(trace, cluster, options, "fifo,sjf{skip=true}");
  ASSERT_EQ(scores.at(0).windows.size(), 3u);
  const Comparison pair = compare({"sjf", {scores[1]}}, {"fifo", {scores[0]}}, avg_jct, {options.windows.overlap(), 1});
  EXPECT_EQ(pair.verdict, "too few windows");
  EXPECT_FALSE(pair.interval);
}

// Of a share of used GPUs more is better, of a wait less.
TEST(Evaluation, TheVerdictKnowsWhichWayAMetricIsBetter) {
  PolicyScores ours, theirs;
  Rng rng(3);
  for (int w = 0; w < 60; ++w) {
    ours.windows.push_back(Metrics{.avg_wait_s = 10 + rng.uniform(), .gpu_utilization = 0.8 + 0.01 * rng.uniform()});
    theirs.windows.push_back(Metrics{.avg_wait_s = 20 + rng.uniform(), .gpu_utilization = 0.5 + 0.01 * rng.uniform()});
  }
  const Contestant a{"a", {ours}}, b{"b", {theirs}};
  for (const char* figure : {"avg_wait_s", "gpu_utilization"}) {
    const MetricInfo& metric = *find_metric(figure);
    EXPECT_EQ(compare(a, b, metric, {1, 1}).verdict, "better") << figure;
    EXPECT_EQ(compare(b, a, metric, {1, 1}).verdict, "worse") << figure;
    EXPECT_EQ(compare(a, b, metric, {1, 1}).win_rate, 1) << figure;
  }
}

TEST(Evaluation, ThreadsChangeNoResult) {
  const JobTable trace = test::some_jobs(5, 300);
  const Cluster cluster = Cluster::homogeneous(2, 2);
  const EvaluationOptions options{.engine = {.placement = Placement::random, .seed = 3},
                                  .windows = {.jobs = 40, .warm_up = 5, .stride = 20}};
  const auto specs = parse_policy_list("fifo,sjf{skip=true},las");
  std::vector<std::string> texts;
  for (const std::uint64_t threads : {1, 4}) {
    EvaluationProgress progress;
    auto scores = evaluate_policies(trace, cluster, options, *specs, PolicyRegistry::standard(), threads, progress);
    ASSERT_TRUE(scores) << scores.error().to_string();
    EXPECT_EQ(progress.done, 3 * scores->front().windows.size());
    TraceEvaluation evaluation{
        .trace = "t", .cluster = "c", .windows = options.windows, .starts = {}, .contestants = {}};
    evaluation.starts = *window_starts(options.windows, trace.size());
    for (const PolicyScores& own : *scores) evaluation.contestants.push_back({own.policy, {own}});
    texts.push_back(windows_csv({evaluation}) + comparison_csv({evaluation}, {.figure = &avg_jct, .backfill = "none"}));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// Four GPUs are offered more than they can do, a hundred are not.
TEST(Evaluation, CountsTheWindowsInWhichAQueueGrowsForEver) {
  const JobTable trace = test::some_jobs(5, 600);
  for (const std::uint32_t gpus : {4u, 100u}) {
    const Cluster cluster = Cluster::homogeneous(1, gpus);
    const EvaluationOptions options{.engine = {}, .windows = {.jobs = 600, .stride = 600}};
    TraceEvaluation evaluation{
        .trace = "a/t.csv", .cluster = "c", .windows = options.windows, .starts = {0}, .contestants = {}};
    for (const PolicyScores& own : scores_of(trace, cluster, options, "fifo"))
      evaluation.contestants.push_back({own.policy, {own}});
    const ReportOptions report{.figure = &avg_jct, .backfill = "none"};
    const std::size_t saturated = gpus == 4 ? 1 : 0;
    EXPECT_EQ(evaluation.contestants.front().saturated_windows(), saturated);
    EXPECT_THAT(comparison_csv({evaluation}, report),
                testing::HasSubstr(",1,1," + std::to_string(saturated) + ",avg_jct_s,"));
    EXPECT_THAT(windows_csv({evaluation}), testing::HasSubstr(saturated > 0 ? ",true\n" : ",false\n"));
    const std::string line = "fifo: saturated, the queue grows for as long as jobs arrive, in 1 of 1 window:";
    EXPECT_EQ(evaluation_table(evaluation, report).find("\n" + line) != std::string::npos, saturated > 0);
    EXPECT_EQ(transfer_table({evaluation}, report).find("\nt.csv: " + line) != std::string::npos, saturated > 0);
  }
}

// One run that did not end used to end the whole evaluation.
TEST(Evaluation, GoesOnWithoutAWindowInWhichAPolicyFails) {
  PolicyScores ours, theirs;
  ours.policy = "las";
  Rng rng(3);
  for (int w = 0; w < 60; ++w) {
    ours.windows.push_back(Metrics{.avg_jct_s = 10 + rng.uniform()});
    theirs.windows.push_back(Metrics{.avg_jct_s = 20 + rng.uniform()});
  }
  ours.windows[7].reset();
  ours.failures.push_back("policy las, window at job 70: it left 2 jobs waiting for ever");
  theirs.windows[7]->avg_jct_s = 1e9;  // of a pair that is left out
  const Contestant las{"las", {ours}}, fifo{"fifo", {theirs}};
  const Comparison pair = compare(las, fifo, avg_jct, {1, 1});
  EXPECT_EQ(pair.windows, 59u);
  EXPECT_EQ(pair.verdict, "better");
  EXPECT_LT(*pair.other_mean, 21);
  TraceEvaluation evaluation{.trace = "t", .cluster = "c", .windows = {}, .starts = {}, .contestants = {fifo, las}};
  for (std::uint32_t w = 0; w < 60; ++w) evaluation.starts.push_back(10 * w);
  const ReportOptions options{.figure = &avg_jct, .backfill = "none"};
  EXPECT_NE(evaluation_table(evaluation, options)
                .find("las: 1 of 60 windows left out; policy las, window at job 70: it left 2 jobs waiting for ever"),
            std::string::npos);
  EXPECT_NE(windows_csv({evaluation}).find("t,las,las,7,70,,,"), std::string::npos);
}

// Of deadlines: a window without one was read as 0, or as what stood there in memory.
TEST(Evaluation, AFigureLeavesOutWindowsThatDoNotKnowIt) {
  PolicyScores ours, theirs;
  for (int w = 0; w < 60; ++w) {
    const bool has_deadlines = w % 3 == 0;
    ours.windows.push_back(
        Metrics{.avg_jct_s = 1, .deadline_miss_rate = has_deadlines ? std::optional(.1) : std::nullopt});
    theirs.windows.push_back(
        Metrics{.avg_jct_s = 1, .deadline_miss_rate = has_deadlines ? std::optional(.4) : std::nullopt});
  }
  theirs.windows[3]->deadline_miss_rate.reset();  // of its averaged jobs none has one, of the other's some do
  const MetricInfo* missed = find_metric("deadline_miss_rate");
  const Contestant edf{"edf", {ours}}, fifo{"fifo", {theirs}};
  EXPECT_EQ(edf.windows_with(*missed).size(), 20u);
  EXPECT_EQ(edf.windows_with(avg_jct).size(), 60u);
  const Comparison pair = compare(edf, fifo, *missed, {1, 1});
  EXPECT_EQ(pair.windows, 19u);
  EXPECT_DOUBLE_EQ(*pair.mean, .1);
  EXPECT_DOUBLE_EQ(*pair.other_mean, .4);
  EXPECT_DOUBLE_EQ(*side_values(edf, fifo, *side_figure("deadline_miss_rate"), WindowMean::arithmetic).own, .1);
  TraceEvaluation evaluation{.trace = "t",
                             .cluster = "c",
                             .windows = {},
                             .starts = std::vector<std::uint32_t>(60),
                             .contestants = {fifo, edf}};
  ReportOptions options{.figure = missed, .backfill = "none"};
  const std::string line = "edf: deadline_miss_rate is not known in 40 of 60 windows, and its mean leaves these out\n";
  EXPECT_THAT(evaluation_table(evaluation, options), testing::HasSubstr(line));
  EXPECT_THAT(transfer_table({evaluation, evaluation}, options), testing::HasSubstr("t: " + line));
  EXPECT_DOUBLE_EQ(evaluation_runs_json({evaluation}, options)[1]["metrics"]["deadline_miss_rate"].get<double>(), .1);
  options = {.figure = &avg_jct, .beside = {*side_figure("deadline_miss_rate")}, .backfill = "none"};
  EXPECT_THAT(evaluation_table(evaluation, options), testing::HasSubstr(line));
  EXPECT_THAT(evaluation_table(evaluation, options),
              testing::HasSubstr(
                  "edf: deadline_miss_rate and its difference from fifo are of the 19 windows that both know\n"));
}

// Where limits refuse every job of a window its averages were 0, and a mean slowdown below 1.
TEST(Evaluation, AWindowWithoutAveragedJobsHasNoAverages) {
  PolicyScores ours;
  ours.policy = "fifo";
  for (int w = 0; w < 4; ++w) {
    ours.windows.push_back(Metrics{.jobs = 10, .avg_jct_s = 100, .avg_bounded_slowdown = 2, .refused_jobs = 0});
  }
  ours.windows[1] = Metrics{.jobs = 10, .makespan_s = 5, .refused_jobs = 10};
  const Contestant fifo{"fifo", {ours}};
  EXPECT_EQ(fifo.windows_with(avg_jct), (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(fifo.windows_with(*find_metric("makespan_s")).size(), 4u);
  EXPECT_DOUBLE_EQ(*compare(fifo, fifo, *find_metric("avg_bounded_slowdown"), {1, 1}).mean, 2);
  TraceEvaluation evaluation{
      .trace = "t", .cluster = "c", .windows = {}, .starts = std::vector<std::uint32_t>(4), .contestants = {fifo}};
  const std::string table = evaluation_table(evaluation, {.figure = &avg_jct, .backfill = "none"});
  EXPECT_THAT(table, testing::HasSubstr("fifo: limits refuse 10 jobs of its windows, which no average counts\n"));
  EXPECT_THAT(table,
              testing::HasSubstr("fifo: avg_jct_s is not known in 1 of 4 windows, and its mean leaves these out\n"));
  EXPECT_THAT(windows_csv({evaluation}), testing::HasSubstr("t,fifo,fifo,1,0,10,,,,,,,,,5,"));
}

// As many jobs refused by limits, but others: means of other jobs were called better or worse.
TEST(Evaluation, OtherJobsAreNoVerdict) {
  PolicyScores ours, theirs;
  Rng rng(5);
  for (int w = 0; w < 60; ++w) {
    ours.windows.push_back(Metrics{.avg_jct_s = 10 + rng.uniform(), .refused_jobs = 1});
    theirs.windows.push_back(Metrics{.avg_jct_s = 20 + rng.uniform(), .refused_jobs = 1});
    ours.left_out.push_back(7);
    theirs.left_out.push_back(7);
  }
  TraceEvaluation evaluation{.trace = "t",
                             .cluster = "c",
                             .windows = {},
                             .starts = std::vector<std::uint32_t>(60),
                             .contestants = {{"fifo", {theirs}}, {"las", {ours, ours}}}};
  const ReportOptions options{.figure = &avg_jct, .backfill = "none"};
  EXPECT_EQ(compare_windows({evaluation}, options)[0][1].verdict, "better") << "the same jobs";
  evaluation.contestants[1].runs[1].left_out[30] = 8;
  EXPECT_EQ(compare_windows({evaluation}, options)[0][1].verdict, other_jobs);
  EXPECT_THAT(transfer_table({evaluation, evaluation}, options), testing::HasSubstr("] other jobs p "));
}

// Every policy and estimator that draws takes a seed: A/A trials in one run.
TEST(Evaluation, TheSeedOfAPolicyChangesItsDraws) {
  Rng rng(5);
  JobTableBuilder builder;
  for (int i = 0; i < 200; ++i) {  // of 1 to 3 GPUs, for which remnants of nodes are of no use
    builder.add(
        {.submit = whole_seconds(10 * i),
         .work = from_seconds(rng.lognormal(4, 1)),
         .shape = {.tasks = 1, .gpu_milli_per_task = static_cast<std::uint32_t>(1 + rng.below(3)) * whole_gpu}});
  }
  const JobTable trace = *std::move(builder).build();
  const Cluster cluster = Cluster::homogeneous(4, 4);
  const EvaluationOptions options{.engine = {}, .windows = {.jobs = 200, .stride = 200}};
  const auto scores = scores_of(trace, cluster, options,
                                "sjf{estimate=noisy},sjf{estimate=noisy,seed=0},sjf{estimate=noisy,seed=1},"
                                "random-node,random-node{seed=4}");
  const auto jct = [&](std::size_t policy) { return scores[policy].windows[0]->avg_jct_s; };
  EXPECT_EQ(jct(0), jct(1));
  EXPECT_NE(jct(0), jct(2));
  EXPECT_NE(jct(3), jct(4));
}

TEST(Evaluation, AGroupIsTheInterquartileMeanOfItsSeeds) {
  const auto scores_at = [](double level) {
    PolicyScores scores;
    for (int w = 0; w < 40; ++w) scores.windows.push_back(Metrics{.avg_jct_s = level + w % 8});
    return scores;
  };
  const Contestant group{"group", {scores_at(100), scores_at(200), scores_at(300), scores_at(1e6)}};
  const Contestant other{"other", {scores_at(250)}};
  const Comparison pair = compare(group, other, avg_jct, {1, 1});
  EXPECT_DOUBLE_EQ(*pair.mean, 250 + 3.5);
  EXPECT_DOUBLE_EQ(*pair.other_mean, 250 + 3.5);
  EXPECT_DOUBLE_EQ(pair.win_rate, 0.5);
  EXPECT_EQ(pair.verdict, "no difference detected");
  ASSERT_TRUE(pair.interval);
  EXPECT_LE(pair.interval->difference.low, -100);  // the seeds differ by far more than the windows
}

// Two policies of one table may know different things: sjf true run times, las none.
TEST(Evaluation, TheTableSaysWhatEachPolicyKnew) {
  const JobTable trace = test::some_jobs(3, 120);
  EvaluationOptions options{.engine = {}, .windows = {.jobs = 60, .stride = 60}};
  options.backfill = *parse_backfill("easy{estimate=history}");
  const auto scores = scores_of(trace, Cluster::homogeneous(1, 4), options, "las,sjf,sjf{estimate=history}");
  EXPECT_EQ(scores[0].run_times, "-");
  EXPECT_EQ(scores[1].run_times, "exact, history");
  EXPECT_EQ(scores[2].run_times, "history");
  const Contestant group{"group", {scores[2], scores[2], scores[0]}};
  EXPECT_EQ(group.run_times(), "history, -");
  TraceEvaluation evaluation{.trace = "t", .cluster = "c", .windows = options.windows, .starts = {}, .contestants = {}};
  for (const PolicyScores& own : scores) evaluation.contestants.push_back({own.policy, {own}});
  const std::string table = evaluation_table(evaluation, {.figure = &avg_jct, .backfill = "none"});
  EXPECT_NE(table.find("run times"), std::string::npos);
  EXPECT_NE(table.find("exact, history"), std::string::npos);
}

// The matrix and comparison.csv left it out.
TEST(Evaluation, TheMatrixSaysWhatEachPolicyKnewOnEachTrace) {
  const JobTable trace = test::some_jobs(3, 120);
  const EvaluationOptions options{.engine = {}, .windows = {.jobs = 60, .stride = 60}};
  const auto scores = scores_of(trace, Cluster::homogeneous(1, 4), options, "las,sjf");
  TraceEvaluation evaluation{
      .trace = "a", .cluster = "c", .windows = options.windows, .starts = {0, 60}, .contestants = {}};
  for (const PolicyScores& own : scores) evaluation.contestants.push_back({own.policy, {own}});
  TraceEvaluation other = evaluation;
  other.trace = "b";
  other.contestants[1].runs[0].run_times = "requested";
  const ReportOptions report{.figure = &avg_jct, .backfill = "none"};
  const std::string matrix = transfer_table({evaluation, other}, report);
  EXPECT_NE(matrix.find("exact; requested"), std::string::npos) << matrix;
  EXPECT_NE(matrix.find("run times: what the policy knew of them"), std::string::npos);
  EXPECT_NE(matrix.find("too few windows: an interval takes 40 windows"), std::string::npos) << matrix;
  const std::string csv = comparison_csv({evaluation, other}, report);
  EXPECT_NE(csv.find(",clairvoyant,run_times,policies,"), std::string::npos);
  EXPECT_NE(csv.find("a,c,sjf,true,exact,1,2,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("b,c,sjf,true,requested,1,2,"), std::string::npos) << csv;
}

// Two seeds and a policy in eleven windows, of which two are the worst tenth: 30 and 20 of the first seed's waits, 50
// and 40 of the second's, 12 and 11 of the policy's.
TEST(Evaluation, OtherFiguresStandBesideTheOneThatIsCompared) {
  const auto scores_of_waits = [](double first, double second) {
    PolicyScores scores;
    for (int w = 0; w < 9; ++w) scores.windows.push_back(Metrics{.avg_jct_s = 100, .avg_wait_s = 2});
    scores.windows.insert(scores.windows.begin() + 3, Metrics{.avg_jct_s = 100, .avg_wait_s = first});
    scores.windows.push_back(Metrics{.avg_jct_s = 100, .avg_wait_s = second});
    return scores;
  };
  const Contestant agent{"agent", {scores_of_waits(20, 30), scores_of_waits(50, 40)}};
  const Contestant sjf{"sjf", {scores_of_waits(11, 12)}};
  const SideFigure plain = *side_figure("avg_wait_s"), worst = *side_figure("worst_tenth:avg_wait_s");
  EXPECT_DOUBLE_EQ(*side_values(agent, sjf, plain, WindowMean::arithmetic).own, (68.0 / 11 + 108.0 / 11) / 2);
  EXPECT_DOUBLE_EQ(*side_values(agent, sjf, worst, WindowMean::arithmetic).own, (25.0 + 45) / 2);
  EXPECT_DOUBLE_EQ(*side_values(agent, sjf, worst, WindowMean::arithmetic).other, 11.5);

  TraceEvaluation evaluation{.trace = "t", .cluster = "c", .windows = {}, .starts = {}, .contestants = {sjf, agent}};
  for (std::uint32_t w = 0; w < 11; ++w) evaluation.starts.push_back(w);
  const ReportOptions options{.figure = &avg_jct, .beside = {plain, worst}, .backfill = "none"};
  const std::string table = evaluation_table(evaluation, options);
  EXPECT_NE(table.find("verdict      avg_wait_s  worst_tenth:avg_wait_s\n"), std::string::npos) << table;
  EXPECT_NE(table.find("8.00 (+114.6%)         35.00 (+204.3%)\n"), std::string::npos) << table;
  const std::string csv = comparison_csv({evaluation}, options);
  EXPECT_NE(csv.find(",why,whole_log,avg_wait_s,avg_wait_s_difference,worst_tenth:avg_wait_s,"), std::string::npos)
      << csv;
  EXPECT_NE(csv.find(",11.5,\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",35,2.0434782608695654\n"), std::string::npos) << csv;
  const std::string matrix = transfer_table({evaluation, evaluation}, options);
  EXPECT_NE(matrix.find("\nworst_tenth:avg_wait_s\npolicy"), std::string::npos) << matrix;
}

// A window of 0 has no geometric mean: 0.00 used to be printed.
TEST(Evaluation, AGeometricMeanOverAZeroIsUndefined) {
  PolicyScores waits, none;
  for (int w = 0; w < 9; ++w) {
    waits.windows.push_back(Metrics{.avg_jct_s = 100, .p99_wait_s = w == 4 ? 0.0 : 5.0});
    none.windows.push_back(Metrics{.avg_jct_s = 50, .p99_wait_s = 2});
  }
  TraceEvaluation evaluation{.trace = "t",
                             .cluster = "c",
                             .windows = {},
                             .starts = std::vector<std::uint32_t>(9),
                             .contestants = {{"fifo", {none}}, {"sjf", {waits}}}};
  ReportOptions options{
      .figure = &avg_jct, .beside = {*side_figure("p99_wait_s")}, .backfill = "none", .mean = WindowMean::geometric};
  EXPECT_THAT(evaluation_table(evaluation, options), testing::HasSubstr(" undefined\n"));
  EXPECT_THAT(comparison_csv({evaluation}, options), testing::EndsWith(",,\n"));
  options.figure = find_metric("p99_wait_s");
  EXPECT_THAT(evaluation_table(evaluation, options), testing::HasSubstr(" undefined "));
  EXPECT_FALSE(
      compare(evaluation.contestants[1], evaluation.contestants[0], *options.figure, {1, 1, options.mean}).mean);
}

// Of forty alike policies a few differ from the first by chance. A verdict counts how many were asked.
TEST(Evaluation, VerdictsAreCorrectedForTheirNumber) {
  TraceEvaluation evaluation{
      .trace = "t", .cluster = "c", .windows = {}, .starts = std::vector<std::uint32_t>(60), .contestants = {}};
  Rng rng(17);
  for (int policy = 0; policy < 41; ++policy) {
    PolicyScores scores;
    for (int w = 0; w < 60; ++w) scores.windows.push_back(Metrics{.avg_jct_s = 100 + 5 * rng.normal()});
    evaluation.contestants.push_back({"p" + std::to_string(policy), {scores}});
  }
  const ReportOptions report{.figure = &avg_jct, .backfill = "none"};
  const std::vector<WindowComparison> rows = compare_windows({evaluation}, report)[0];
  int alone = 0, together = 0;
  for (std::size_t row = 1; row < rows.size(); ++row) {
    alone += rows[row].pair.verdict == "better" || rows[row].pair.verdict == "worse" ? 1 : 0;
    together += rows[row].verdict == "better" || rows[row].verdict == "worse" ? 1 : 0;
    if (rows[row].p_holm) {
      EXPECT_GE(*rows[row].p_holm, rows[row].pair.interval->p);
    }
  }
  EXPECT_GT(alone, 0);
  EXPECT_EQ(together, 0);
  const auto marks_the_best = [&] {
    return evaluation_table(evaluation, report, {.colours = true}).find(best_mark) != std::string::npos;
  };
  EXPECT_FALSE(marks_the_best());
  for (std::optional<Metrics>& window : evaluation.contestants[7].runs[0].windows) *window->avg_jct_s -= 50;
  EXPECT_TRUE(marks_the_best());
}

// Where the means do not tell, more windows may: wins of 74 % used to stand beside "no difference detected".
TEST(Evaluation, MostWindowsAreAnAnswer) {
  PolicyScores ours, theirs;
  Rng rng(3);
  for (int w = 0; w < 80; ++w) {
    const double level = rng.lognormal(5, 2);
    theirs.windows.push_back(Metrics{.avg_jct_s = level});
    ours.windows.push_back(Metrics{.avg_jct_s = level * (w % 4 == 0 ? 1.3 : 0.8)});
  }
  TraceEvaluation evaluation{.trace = "t",
                             .cluster = "c",
                             .windows = {},
                             .starts = std::vector<std::uint32_t>(80),
                             .contestants = {{"fifo", {theirs}}, {"sjf", {ours}}}};
  const ReportOptions options{.figure = &avg_jct, .backfill = "none"};
  const WindowComparison one = compare_windows({evaluation}, options)[0][1];
  EXPECT_EQ(one.verdict, "differences too heavy-tailed");
  EXPECT_EQ(one.typical, "more windows better");
  EXPECT_THAT(evaluation_table(evaluation, options),
              testing::HasSubstr("differences too heavy-tailed; more windows better\n"));
  // The log may say the opposite.
  const auto on_log = [](const char* name, double avg_jct_s) {
    LogScores scores{
        .policy = name, .run_times = {}, .run = LogRun{.metrics = {.avg_jct_s = avg_jct_s}}, .failure = {}};
    return LogContestant{name, {std::move(scores)}};
  };
  evaluation.log = LogEvaluation{.contestants = {on_log("fifo", 100), on_log("sjf", 246)}};
  EXPECT_EQ(compare_windows({evaluation}, options)[0][1].typical, "more windows better, the log worse");
  evaluation.log->contestants[1] = on_log("sjf", 80);
  EXPECT_EQ(compare_windows({evaluation}, options)[0][1].typical, "more windows better");
}

// Of a share of used GPUs the lowest tenth is the worst.
TEST(Evaluation, TheWorstTenthKnowsWhichWayAFigureIsBetter) {
  PolicyScores scores;
  for (int w = 0; w < 10; ++w) scores.windows.push_back(Metrics{.gpu_utilization = 0.1 * (w + 1)});
  const Contestant one{"one", {scores}};
  EXPECT_DOUBLE_EQ(*side_values(one, one, *side_figure("worst_tenth:gpu_utilization"), WindowMean::arithmetic).own,
                   0.1);
  EXPECT_EQ(side_figure("worst_tenth:avg_jtc_s").error().message,
            "no figure is called 'avg_jtc_s' (did you mean 'avg_jct_s'?)");
  EXPECT_FALSE(side_figure("worst_tenth:"));
  EXPECT_FALSE(side_figure("events"));
}

// Once it is told to stop, no run begins: with no window finished there is nothing to compare.
TEST(Evaluation, StopsWhenItIsTold) {
  const JobTable trace = test::some_jobs(4, 200);
  const std::atomic<bool> stop = true;
  EvaluationProgress progress;
  progress.stop = &stop;
  const auto scores = evaluate_policies(trace, Cluster::homogeneous(1, 4), {.engine = {}, .windows = {.jobs = 100}},
                                        *parse_policy_list("fifo,sjf"), PolicyRegistry::standard(), 1, progress);
  ASSERT_FALSE(scores);
  EXPECT_EQ(scores.error().message, "interrupted before policy fifo finished a window");
  EXPECT_EQ(progress.done, 0u);
}

TEST(Evaluation, BackfillsAroundOrdersAndLeavesAgentsAlone) {
  const JobTable trace = test::some_jobs(4, 200);
  const Cluster cluster = Cluster::homogeneous(1, 4);
  EvaluationOptions options{.engine = {}, .windows = {.jobs = 200, .stride = 200}};
  const std::string policies = "fifo,agenda{heuristic=fcfs}";
  const auto plain = scores_of(trace, cluster, options, policies);
  options.backfill = *parse_backfill("easy{estimate=exact}");
  const auto filled = scores_of(trace, cluster, options, policies);
  EXPECT_LT(filled[0].windows[0]->avg_jct_s, plain[0].windows[0]->avg_jct_s);
  EXPECT_EQ(filled[1].windows[0]->avg_jct_s, plain[1].windows[0]->avg_jct_s);

  const auto own = scores_of(trace, cluster, options, "fifo+conservative,las");
  EXPECT_LT(own[0].windows[0]->avg_jct_s, plain[0].windows[0]->avg_jct_s);
  EXPECT_EQ(own[1].windows[0]->avg_jct_s,
            scores_of(trace, cluster, {.engine = {}, .windows = options.windows}, "las")[0].windows[0]->avg_jct_s);
}

// A sampled agent draws afresh in every window, the same draws every time, others for another seed.
TEST(Evaluation, SampledAgentsAreRepeatable) {
  const test::TempFolder temporary;
  const std::string folder = temporary.path();
  TrainedModel model;
  model.network = {.kind = NetworkKind::deepsets, .width = 8, .heads = 2, .critic_width = 8};
  model.parameters = test::random_parameters(model.network, 5);
  ASSERT_TRUE(save_model(model, folder));
  const JobTable trace = test::some_jobs(3, 120);
  const Cluster cluster = Cluster::homogeneous(1, 4);
  const EvaluationOptions options{.engine = {.seed = 7}, .windows = {.jobs = 60, .stride = 60}};
  const std::string agent = "rl:" + folder;
  const auto scores =
      scores_of(trace, cluster, options,
                agent + "," + agent + "{sample=true}," + agent + "{sample=true}," + agent + "{sample=true,seed=1}");
  const auto jct = [&](std::size_t policy) { return scores[policy].values(avg_jct, std::vector<std::size_t>{0, 1}); };
  EXPECT_NE(jct(0), jct(1));
  EXPECT_EQ(jct(1), jct(2));
  EXPECT_NE(jct(1), jct(3));
}

}  // namespace
}  // namespace gpusched
