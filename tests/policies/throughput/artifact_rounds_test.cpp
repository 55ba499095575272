// SPDX-License-Identifier: Apache-2.0
// The quirks of Gavel's artifact, each on a run worked out by hand. tests/golden has its published figures.
#include "src/policies/throughput/artifact_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/policies/throughput/rectangular_assignment.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// Steps a second of a family on a GPU type; the reference is V100.
struct Measured {
  const char* family;
  const char* gpu_type;
  double steps_per_s;
};

Spans run_measured(const std::string& policy, const Cluster& cluster, const std::vector<Row>& rows,
                   const std::vector<Measured>& measured) {
  const JobTable jobs = table_of(rows);
  RuntimeModel runtime(jobs.families().size(), static_cast<std::uint32_t>(cluster.gpu_types.size()));
  for (const auto& [name, gpu_type, steps] : measured) {
    const std::uint32_t family = jobs.families().find(name);
    if (family == no_index) continue;
    double reference = 0;
    for (const Measured& other : measured) {
      if (std::string(other.family) == name && std::string(other.gpu_type) == "V100") reference = other.steps_per_s;
    }
    const auto type = static_cast<std::uint32_t>(
        std::find(cluster.gpu_types.begin(), cluster.gpu_types.end(), gpu_type) - cluster.gpu_types.begin());
    runtime.set_for_gang(family, 1, type, static_cast<RatePpm>(steps / reference * reference_rate));
    runtime.set_throughput(family, 1, type, reference, steps);
  }
  auto made = registry().make(parse_policy_list(policy)->front(),
                              {.jobs = &jobs, .cluster = &cluster, .seed = 1, .runtime = &runtime});
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return made ? run(jobs, cluster, *std::move(made), {}, &runtime) : Spans{};
}

Cluster cluster_of(const std::vector<std::pair<std::string, std::uint32_t>>& types) {
  Cluster cluster;
  cluster.gpu_types.clear();
  for (const auto& [name, gpus] : types) {
    cluster.nodes.push_back({.gpus = gpus, .gpu_type = static_cast<std::uint32_t>(cluster.gpu_types.size())});
    cluster.gpu_types.push_back(name);
  }
  return cluster;
}

const std::vector<Measured> twice_as_fast_on_k80 = {{"odd", "V100", 5}, {"odd", "K80", 10}};

// The job is matched to the K80, where it would take 30 s. But V100s choose first, and take a job with allocation 0
// too.
TEST(ArtifactRounds, GpuTypesTakeJobsThatAreToRunElsewhere) {
  const std::vector<Row> rows = {{.submit = 0, .work = 60, .family = "odd"}};
  for (const Cluster& cluster : {cluster_of({{"V100", 1}, {"K80", 1}}), cluster_of({{"K80", 1}, {"V100", 1}})}) {
    EXPECT_EQ(run_measured("allox@gavel{round_s=10}", cluster, rows, twice_as_fast_on_k80), (Spans{{0, 60}}));
    EXPECT_EQ(run_measured("allox", cluster, rows, twice_as_fast_on_k80), (Spans{{0, 30}}));
  }
}

// At 5 s an allocation is made to no job, which holds for 100 s: the job of 7 s takes the GPU and does not run, and
// nothing happens until the next arrival. When all jobs have come an allocation is made at once: it puts the job of
// 20 s first, as the shortest. The others are known then, and run after it with allocation 0.
TEST(ArtifactRounds, JobsNewerThanTheAllocationHoldTheGpuIdle) {
  EXPECT_EQ(run_policy("allox@gavel{round_s=10,reset_s=100}",
                       table_of({{.submit = 0, .work = 5},
                                 {.submit = 7, .work = 5},
                                 {.submit = 9, .work = 5},
                                 {.submit = 20, .work = 1}}),
                       Cluster::pool(1)),
            (Spans{{0, 5}, {21, 26}, {26, 31}, {20, 21}}));
}

// 7 whole steps of 3/4 a second leave 2/3 s of each round of 10 s, which ends with the other job's last step. The 15
// steps of the job take two rounds and a step.
TEST(ArtifactRounds, RoundsHaveWholeSteps) {
  const std::vector<Row> rows = {{.submit = 0, .work = 20, .family = "slow"},
                                 {.submit = 0, .work = 30, .family = "fast"}};
  const Cluster cluster = cluster_of({{"V100", 2}});
  for (const char* policy : {"allox@gavel{round_s=10}", "gavel@gavel{objective=fifo,round_s=10}"}) {
    const Spans spans = run_measured(policy, cluster, rows, {{"slow", "V100", 0.75}, {"fast", "V100", 1}});
    EXPECT_NEAR(spans[0].end, 20 + 4.0 / 3, 2e-6) << policy;
    EXPECT_EQ(spans[1], (Span{0, 30})) << policy;
  }
  // A step of 20 s: parts of one, or the job would never end.
  EXPECT_EQ(run_measured("allox@gavel{round_s=10}", cluster, {{.submit = 0, .work = 30, .family = "slow"}},
                         {{"slow", "V100", 0.05}}),
            (Spans{{0, 30}}));
}

// A round ends with its last job: 4 s after its begin, where no GPU has anything left to do.
TEST(ArtifactRounds, RoundsEndWithTheirLastJob) {
  const std::vector<Row> rows = {{.submit = 0, .work = 4}, {.submit = 1, .work = 5}};
  EXPECT_EQ(run_policy("allox@gavel{round_s=10,reset_s=0}", table_of(rows), Cluster::pool(1)), (Spans{{0, 4}, {4, 9}}));
  EXPECT_EQ(run_policy("allox@gavel{round_s=10,reset_s=0}",
                       table_of({{.submit = 0, .work = 4}, {.submit = 0, .work = 13}, {.submit = 1, .work = 5}}),
                       Cluster::pool(2)),
            (Spans{{0, 4}, {0, 13}, {10, 15}}));
}

// All three get the GPU type of the last name, which has room for one at a time, while the other idles.
TEST(ArtifactRounds, TheFifoUsesOneGpuType) {
  EXPECT_EQ(run_policy("fifo@gavel{round_s=10}",
                       table_of({{.work = 20, .gpus = 2}, {.work = 20, .gpus = 2}, {.work = 20, .gpus = 2}}),
                       cluster_of({{"slow", 3}, {"fast", 4}})),
            (Spans{{0, 40}, {10, 50}, {20, 60}}));
}

// Without throughputs GPU types choose in a random order: that of Python's random.Random(seed + 5), in which the job
// with a GPU type of its own has it anyway.
TEST(ArtifactRounds, ShufflesGpuTypesBySeed) {
  const JobTable jobs = table_of({{.work = 100, .family = "odd"}});
  const Cluster cluster = cluster_of({{"V100", 1}, {"K80", 1}});
  RuntimeModel runtime(jobs.families().size(), 2);
  runtime.set(jobs.family(JobId{0}), 1, reference_rate / 4);
  std::set<std::int64_t> ends;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    auto made = registry().make(parse_policy_list("gavel@gavel{aware=false,round_s=10}")->front(),
                                {.jobs = &jobs, .cluster = &cluster, .seed = seed, .runtime = &runtime});
    if (!made) GTEST_SKIP() << made.error().message;
    // Falling by name: V100, K80. shuffle() of two draws one of two, and swaps them for 0.
    PythonRandom random(seed + 5);
    std::int64_t work_us = 0, end_s = 0;
    for (; work_us < 100'000'000; end_s += 10) work_us += random.below(2) == 0 ? 2'500'000 : 10'000'000;
    const Spans spans = run(jobs, cluster, *std::move(made), {}, &runtime);
    EXPECT_LE(spans[0].end, static_cast<double>(end_s)) << seed;
    EXPECT_GT(spans[0].end, static_cast<double>(end_s - 10)) << seed;
    ends.insert(end_s);
  }
  EXPECT_GT(ends.size(), 1u);
}

// A failure takes work that the account does not know of; it is done again.
TEST(ArtifactRounds, WorkThatIsLostIsDoneAgain) {
  const JobTable jobs = table_of({{.submit = 0, .work = 25}});
  const Cluster cluster = Cluster::pool(1);
  auto made = make("allox@gavel{round_s=10}", jobs, cluster);
  ASSERT_TRUE(made);
  NodeFailures failures;
  const std::vector<NodeChange> outage = {{whole_seconds(12), NodeId{0}, false}, {whole_seconds(14), NodeId{0}, true}};
  failures.add_changes(outage);
  EngineOptions options;
  options.preemption.checkpoint_interval = whole_seconds(5);
  Engine engine(jobs, cluster, options, {.failures = &failures});
  ASSERT_TRUE(simulate(engine, *made));
  // Down at 12 s with 10 s of work kept; the next round begins at 20 s.
  EXPECT_EQ(spans_of(engine), (Spans{{0, 35}}));
}

// A round waits for a job that ends in it, whose start cost time; else two such jobs would take turns for ever, each of
// which is over before the job has loaded.
TEST(ArtifactRounds, AJobThatEndsLateEndsItsRound) {
  const JobTable jobs = table_of({{.work = 400}, {.work = 400}});
  const Cluster cluster = Cluster::pool(1);
  for (const std::int64_t cost_ms : {1, 5000}) {
    const Time cost{cost_ms * 1000};
    auto made = make("fifo@gavel", jobs, cluster);
    ASSERT_TRUE(made);
    EngineOptions options;
    options.preemption.restart = cost;
    Engine engine(jobs, cluster, options);
    ASSERT_TRUE(simulate(engine, *made)) << cost_ms;
    // Rounds of 360 s: both run once; then each loads again and does its last 40 s.
    EXPECT_EQ(engine.end(JobId{0}), whole_seconds(760) + cost);
    EXPECT_EQ(engine.end(JobId{1}), whole_seconds(800) + cost + cost);
  }
}

// ---- the assignment ----

TEST(RectangularAssignment, FindsTheLeastSum) {
  const std::vector<std::vector<double>> cost = {{4, 1, 3, 9}, {2, 0, 5, 9}, {3, 2, 2, 9}};
  EXPECT_EQ(rectangular_assignment(3, 4, [&](auto row, auto column) { return cost[row][column]; }),
            (std::vector<std::uint32_t>{1, 0, 2}));
}

// What scipy.optimize.linear_sum_assignment of SciPy 1.17 gives: a constant matrix is assigned along its diagonal, and
// of columns at equal distance the free one is taken.
TEST(RectangularAssignment, BreaksTiesAsSciPyDoes) {
  EXPECT_EQ(rectangular_assignment(3, 5, [](auto, auto) { return 1.0; }), (std::vector<std::uint32_t>{0, 1, 2}));
  const std::vector<std::vector<double>> cost = {{1, 1, 2, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}};
  EXPECT_EQ(rectangular_assignment(3, 4, [&](auto row, auto column) { return cost[row][column]; }),
            (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_TRUE(rectangular_assignment(0, 0, [](auto, auto) { return 1.0; }).empty());
}

}  // namespace
}  // namespace gpusched::test
