// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/attained_service.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::run;
using test::Span;
using test::table_of;

constexpr std::int64_t gpu_second = microseconds_per_second;

AttainedService las(std::int64_t quantum_gpu_s) {
  return AttainedService({.name = "las", .levels = ServiceLevels::even(quantum_gpu_s * gpu_second)}, NameTable{});
}

AttainedServiceOptions tiresias_options(const std::vector<std::int64_t>& limits_gpu_s) {
  std::vector<std::int64_t> limits;
  limits.reserve(limits_gpu_s.size());
  for (const std::int64_t limit : limits_gpu_s) limits.push_back(limit * gpu_second);
  return {.name = "tiresias", .levels = ServiceLevels::cut_at(limits), .by_first_start = true};
}

AttainedService tiresias() { return AttainedService(tiresias_options({3250, 7200}), NameTable{}); }

TEST(Las, EqualJobsTakeTurnsOfAQuantum) {
  const JobTable jobs = table_of({{.work = 250}, {.work = 250}});
  // 0-100, 200-300, 400-450 and 100-200, 300-400, 450-500.
  EXPECT_EQ(run(jobs, Cluster::pool(1), las(100)), (std::vector<Span>{{0, 450}, {100, 500}}));
}

TEST(Las, ANewJobPreemptsOneThatIsAQuantumAhead) {
  const JobTable jobs = table_of({{.work = 1000}, {.submit = 150, .work = 50}, {.submit = 260, .work = 10}});
  // At 260 job 0 is in its third quantum.
  EXPECT_EQ(run(jobs, Cluster::pool(1), las(100)), (std::vector<Span>{{0, 1060}, {150, 200}, {260, 270}}));
}

TEST(Las, ServiceIsGpuTime) {
  const JobTable jobs = table_of({{.work = 100, .gpus = 4}, {.work = 100, .gpus = 4}});
  EXPECT_EQ(run(jobs, Cluster::pool(4), las(200)), (std::vector<Span>{{0, 150}, {50, 200}}));
}

// Half a GPU has had 225 GPU-seconds at 450 s, and makes room for a whole one.
TEST(Las, AShareMakesRoomForAWholeGpu) {
  const JobTable jobs = table_of({{.work = 1000, .shape = {.gpu_milli_per_task = 500}}, {.submit = 450, .work = 20}});
  EXPECT_EQ(run(jobs, Cluster::homogeneous(1, 1), las(100)), (std::vector<Span>{{0, 1020}, {450, 470}}));
}

TEST(Las, WakesOnlyForAJobThatMayFallBehindAWaitingOne) {
  const JobTable jobs =
      table_of({{.work = 1000, .gpus = 2}, {.submit = 500, .work = 900}, {.submit = 600, .work = 900}});
  const Cluster cluster = Cluster::pool(2);
  Engine engine(jobs, cluster);
  AttainedService policy = las(100);
  simulate(engine, policy);
  // Job 0 waits from 500 with ten quanta of service; the others end with nine, each a quantum before it would matter.
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(2000));
  EXPECT_EQ(engine.events_seen(), 8u) << "three submissions, three ends, and the wakes planned for 1500 and 1600";
}

TEST(Tiresias, AJobLeavesItsQueueAtTheLimitToTheMicrosecond) {
  const JobTable jobs = table_of({{.work = 3000, .gpus = 4}, {.submit = 10, .work = 100, .gpus = 4}});
  EXPECT_EQ(run(jobs, Cluster::pool(4), tiresias()), (std::vector<Span>{{0, 3100}, {812.5, 912.5}}));
}

// The limit is reached after the end of time; it never ended.
TEST(Tiresias, ALimitThatNoJobReachesIsNone) {
  const std::int64_t late = 4'500'000'000'000;
  const JobTable jobs = table_of({{.submit = late, .work = 1000}, {.submit = late + 10, .work = 10}});
  const auto spans = run(jobs, Cluster::pool(1), AttainedService(tiresias_options({9'000'000'000'000}), NameTable{}));
  EXPECT_EQ(spans[1].end - spans[0].start, 1010);
}

TEST(Tiresias, WithinAQueueJobsStandInOrderOfFirstStart) {
  const JobTable jobs = table_of({{.work = 5000}, {.work = 4000}, {.submit = 4000, .work = 100}});
  // 3250: job 0 leaves queue 0, job 1 starts. 6500: job 1 leaves it, job 2 starts. 6600: of queue 1, job 0 first.
  EXPECT_EQ(run(jobs, Cluster::pool(1), tiresias()), (std::vector<Span>{{0, 8350}, {3250, 9100}, {6500, 6600}}));
}

TEST(Tiresias, PromoteKnobReturnsAStarvedJobToTheFirstQueue) {
  const JobTable jobs = table_of({{.work = 4000}, {.work = 3000}, {.work = 3000}});
  auto options = tiresias_options({3250, 7200});
  options.promote_knob = 1;
  // Job 0 ran 3250 s and waits from 3250; at 6500 it is back in queue 0, ahead of job 2 by first start.
  EXPECT_EQ(run(jobs, Cluster::pool(1), AttainedService(options, NameTable{})),
            (std::vector<Span>{{0, 7250}, {3250, 6250}, {6250, 10000}}));
}

TEST(Tiresias, SkewedModelsAreConsolidatedAndOthersFillFragments) {
  const JobTable jobs = table_of({{.work = 100, .gpus = 3, .family = "resnet50"},
                                  {.work = 100, .gpus = 6, .family = "vgg16"},
                                  {.submit = 200, .work = 100, .gpus = 3, .family = "resnet50"},
                                  {.submit = 200, .work = 100, .gpus = 6, .family = "resnet50"}});
  auto options = tiresias_options({3250});
  options.skewed = {"vgg"};
  AttainedService policy(options, jobs.families());
  const Cluster cluster = Cluster::homogeneous(3, 4);
  Engine engine(jobs, cluster);
  Decision decision = engine.decision();
  const auto nodes_of = [&](std::uint32_t job) {
    std::set<std::uint32_t> nodes;
    engine.view().for_each_grant(JobId{job}, [&](const Grant& grant) { nodes.insert(index(grant.node)); });
    return nodes.size();
  };
  engine.advance();
  policy.decide(engine.view(), decision);
  engine.apply();
  EXPECT_EQ(nodes_of(1), 2u);
  while (engine.view().now() < whole_seconds(200)) {
    engine.advance();
    policy.decide(engine.view(), decision);
    engine.apply();
  }
  EXPECT_EQ(nodes_of(3), 3u) << "the GPU that job 2 left on its node first";
}

// Turns of 3600 GPU-seconds would be 450 s, of which a restart takes 600: no end in sight. The default makes them 1200
// s: 0-1200, 1200-2400, then with a restart each 2400-3600, 3600-4800, 4800-5600, 5600-6400.
TEST(Las, ItsDefaultQuantumMakesProgressUnderARestartCost) {
  const JobTable jobs = table_of({{.work = 2000, .gpus = 8}, {.work = 2000, .gpus = 8}});
  EngineOptions costly;
  costly.preemption.restart = whole_seconds(600);
  const auto las_by_default = [] { return AttainedService({.name = "las", .levels = {}}, NameTable{}); };
  EXPECT_EQ(run(jobs, Cluster::pool(8), las_by_default(), costly), (std::vector<Span>{{0, 5600}, {1200, 6400}}));
  EXPECT_EQ(run(jobs, Cluster::pool(8), las_by_default()), run(jobs, Cluster::pool(8), las(3600)));
}

// Of services 10, 30 and 100: within 25 of nothing one of three finishes, at 10 + 25 + 25 in all.
TEST(Gittins, IndexIsTheChanceToFinishByTheServiceItTakes) {
  const ServiceSample sample({100, 10, 30});
  EXPECT_DOUBLE_EQ(sample.gittins_index(0, 25), 1.0 / 60);
  EXPECT_DOUBLE_EQ(sample.gittins_index(10, 25), 1.0 / (20 + 25)) << "who attained 10 did not end there";
  EXPECT_DOUBLE_EQ(sample.gittins_index(95, 25), 1.0 / 5);
  EXPECT_EQ(sample.gittins_index(40, 25), 0) << "nobody ends within the look-ahead";
  EXPECT_EQ(sample.gittins_index(100, 25), 0);
  EXPECT_EQ(ServiceSample().gittins_index(0, 25), 0);
}

// One queue, in which 2D-LAS would go by first start. Services cluster at 60: who attained 50 is likelier to end soon
// than a newcomer.
TEST(Gittins, AJobThatIsLikelyToEndGoesFirstWithinItsQueue) {
  const JobTable jobs = table_of({{.work = 60}, {.submit = 50, .work = 5}, {.submit = 50, .work = 60}});
  auto options = tiresias_options({1000});
  options.by_first_start = false;
  options.gittins = true;
  options.look_ahead_gpu_us = 20 * gpu_second;
  options.known_gpu_us = {60 * gpu_second, 60 * gpu_second, 5 * gpu_second};
  EXPECT_EQ(run(jobs, Cluster::pool(1), AttainedService(options, NameTable{})),
            (std::vector<Span>{{0, 60}, {60, 65}, {65, 125}}));
  // Most end at 5, and who passed that takes long: newcomers go first, job 0 from 115 on.
  options.known_gpu_us = {60 * gpu_second, 5 * gpu_second, 5 * gpu_second, 5 * gpu_second, 200 * gpu_second};
  options.look_ahead_gpu_us = 5 * gpu_second;
  EXPECT_EQ(run(jobs, Cluster::pool(1), AttainedService(options, NameTable{})),
            (std::vector<Span>{{0, 125}, {50, 55}, {55, 115}}));
}

// Job 0 reaches the second queue at 16 s and waits for its retry from 20 s, behind ten jobs of 10 s each in the first
// queue. At 40 s it has waited as long as it ran, returns there, and goes first, as it started first.
TEST(Tiresias, AJobThatWaitsForItsRetryIsPromotedToo) {
  std::vector<test::Row> rows(11, {.submit = 20, .work = 10});
  rows[0] = {.attempts = {20, 10}};
  AttainedServiceOptions options = tiresias_options({16});
  options.promote_knob = 1;
  const auto spans = run(table_of(rows), Cluster::pool(1), AttainedService(options, NameTable{}));
  EXPECT_EQ(spans[0], (Span{0, 50}));
  EXPECT_EQ(spans[2], (Span{30, 40}));
  EXPECT_EQ(spans[3], (Span{50, 60}));
}

}  // namespace
}  // namespace gpusched
