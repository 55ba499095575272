// SPDX-License-Identifier: Apache-2.0
// What runs draw, emit and cost, worked out by hand, and in random worlds against a slow integrator; caps hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/engine/stays.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

double joules(const Bill& bill) { return static_cast<double>(bill.nj) / 1e9; }

// A run in the order of arrival.
void run_to_end(Engine& engine) {
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
}

PowerModel of_gpus(std::size_t nodes, double idle_w, double full_w) {
  PowerModel model;
  model.gpus = {{.load = {.idle_w = idle_w, .full_w = full_w}, .limits = {}}};
  model.kinds.resize(1);
  model.kind_of.assign(nodes, 0);
  return model;
}

// SimGrid's example of a host: 100 W idle; else 93.333 W and up to 200 W by the load of its four cores.
TEST(Power, AHostDrawsByItsLoadAndLessWhenIdleThanItsLoadSays) {
  Cluster cluster = Cluster::homogeneous(1, 0);
  cluster.nodes[0].cpu_milli = 4000;
  std::vector<Row> rows(2, {.work = 1, .shape = {.tasks = 1, .cpu_milli_per_task = 1000}});
  rows[1].submit = 11;
  const JobTable jobs = table_of(rows);
  PowerModel model = of_gpus(1, 0, 0);
  model.kinds[0].cpus = 1;
  model.kinds[0].cpu = {.idle_w = 100, .full_w = 200, .touched_w = 93.0 + 1.0 / 3};
  Engine engine(jobs, cluster, {}, {.power = &model});
  run_to_end(engine);
  EXPECT_DOUBLE_EQ(joules(engine.power().meter()), 1000 + 2 * 120);
  EXPECT_DOUBLE_EQ(joules(engine.bill(JobId{0})), 20);
  EXPECT_DOUBLE_EQ(joules(engine.power().bill(BillOf::idle)), 1200);
  EXPECT_DOUBLE_EQ(joules(engine.bill(JobId{1})), 20);
}

// An idle node and a full one of Frontier, and the whole machine, as RAPS has them.
TEST(Power, FrontierDrawsAsInItsDigitalTwin) {
  constexpr std::uint32_t nodes = 16 * 8 * 74;
  const Cluster cluster = Cluster::homogeneous(nodes, 4);
  const JobTable jobs = table_of({{0, 10, 4}, {100, 10, nodes * 4}});
  PowerModel model = of_gpus(nodes, 88, 560);
  model.kinds[0] = {.base_w = 74.26 + 4 * 20 + 30, .cpu = {.idle_w = 90, .full_w = 280}, .cpus = 1};
  model.losses.gain = 1 / (0.98 * 0.96) - 1;
  model.losses.fixed_w = nodes * 13 / (0.98 * 0.96) + 74 * 8 * (4 * 250 + 4 * 17) / 0.96 + 25 * 8473.47;
  Engine engine(jobs, cluster, {}, {.power = &model});
  Engine probe = engine;
  EXPECT_NEAR(static_cast<double>(probe.power().draw_mw(NodeId{0})) / 1e3, 626.26, 1e-9);
  run_to_end(engine);
  const double idle_j = 90 * 7.3065e6, full_j = 10 * 28.2279e6, one_node_j = 10 * (7.3065e6 + (4 * 472 + 190) / 0.9408);
  EXPECT_NEAR(joules(engine.power().meter()) / (idle_j + full_j + one_node_j), 1, 1e-5);
}

// Two jobs on one shared GPU of 50 W idle and 250 W full, where one keeps a quarter of it busy and the other half.
TEST(Power, JobsOnOneGpuShareWhatItDraws) {
  std::vector<Row> rows(2, {.work = 100, .shape = {.tasks = 1, .gpu_milli_per_task = 250}});
  rows[1].shape.gpu_milli_per_task = 500;
  const JobTable jobs = table_of(rows);
  const PowerModel model = of_gpus(1, 50, 250);
  Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.power = &model});
  run_to_end(engine);
  EXPECT_DOUBLE_EQ(joules(engine.power().meter()), 100 * (50 + 0.75 * 200));
  EXPECT_DOUBLE_EQ(joules(engine.bill(JobId{0})), 100 * (12.5 + 50));
  EXPECT_DOUBLE_EQ(joules(engine.bill(JobId{1})), 100 * (25 + 100));
  EXPECT_DOUBLE_EQ(joules(engine.power().bill(BillOf::idle)), 100 * 12.5);
  EXPECT_TRUE(engine.power().adds_up());
}

// At a load of .7 by a measured curve, however the parts of it add up in floating point.
TEST(Power, MeasuredCurvesHoldForSharedGpus) {
  PowerModel model = of_gpus(1, 50, 250);
  model.gpus[0].load.points = {{0, 50}, {0.5, 200}, {1, 250}};
  for (const MilliGpu first : {50, 100, 300, 301, 350}) {
    std::vector<Row> rows(2, {.work = 100, .shape = {.tasks = 1, .gpu_milli_per_task = first}});
    rows[1].shape.gpu_milli_per_task = 700 - first;
    const JobTable jobs = table_of(rows);
    Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.power = &model});
    run_to_end(engine);
    EXPECT_DOUBLE_EQ(joules(engine.power().meter()), 100 * 220) << first;
  }
}

// One GPU type that idles at 50 W. Families in order of the table: "" draws 100 W, "a" 250 W and "b" 150 W but half of
// the time; the load counts as load^beta.
PowerModel of_families(const JobTable& jobs, const Cluster& cluster, double beta) {
  PowerModel model = of_gpus(cluster.nodes.size(), 50, 250);
  model.gpus[0].load.exponent = beta;
  model.families.resize(jobs.families().size());
  const auto set = [&](const char* family, const FamilyPower& value) {
    if (jobs.families().find(family) != no_index) model.families[jobs.families().find(family)] = value;
  };
  set("", {.full_w = 100});
  set("a", {.full_w = 250});
  set("b", {.full_w = 150, .busy_share = 0.5});
  return model;
}

template <Policy P>
double joules_of_gpus(const std::vector<Row>& rows, const Cluster& cluster, P policy, double beta,
                      MeasureWindow window = {}) {
  const JobTable jobs = table_of(rows);
  const PowerModel model = of_families(jobs, cluster, beta);
  Engine engine(jobs, cluster, {}, {.power = &model, .measured = window});
  EXPECT_TRUE(simulate(engine, policy));
  EXPECT_TRUE(engine.power().adds_up());
  return joules(engine.power().meter());
}

// Two GPUs for 10 s at 50 W; one of them 200 W more for 10 s, the other 100 W x 0.5^beta more for 4 s.
TEST(PowerOfGpus, IdleOfEveryGpuAndWhatJobsAddToIt) {
  const std::vector<Row> rows = {{.submit = 0, .work = 10, .family = "a"}, {.submit = 0, .work = 4, .family = "b"}};
  EXPECT_DOUBLE_EQ(joules_of_gpus(rows, Cluster::homogeneous(1, 2), Fifo{}, 1), 1000 + 2000 + 200);
  EXPECT_DOUBLE_EQ(joules_of_gpus(rows, Cluster::pool(2), Fifo{}, 1), 1000 + 2000 + 200);
  EXPECT_DOUBLE_EQ(joules_of_gpus(rows, Cluster::homogeneous(1, 2), Fifo{}, 2), 1000 + 2000 + 4 * 100 * 0.25);
}

TEST(PowerOfGpus, SharesOfACardAddUpToOneUtilisation) {
  const Shape half{.gpu_milli_per_task = 500};
  const std::vector<Row> rows = {{.submit = 0, .work = 10, .family = "a", .shape = half},
                                 {.submit = 0, .work = 4, .family = "b", .shape = half}};
  // u = 0.5 of a and 0.25 of b for 4 s, then 0.5 for 6 s; beta 0.5.
  const double together = (0.5 * 200 + 0.25 * 100) / 0.75 * std::sqrt(0.75);
  const double alone = 200 * std::sqrt(0.5);
  EXPECT_NEAR(joules_of_gpus(rows, Cluster::homogeneous(1, 1), Fifo{}, 0.5), 500 + 4 * together + 6 * alone, 0.01);
  EXPECT_DOUBLE_EQ(joules_of_gpus(rows, Cluster::homogeneous(1, 1), Fifo{}, 1), 500 + 4 * 25 + 10 * 100);
}

// SRTF: a runs [0,2) and [5,13) around the other job's [2,5), which draws 50 W above idle.
TEST(PowerOfGpus, FollowsPreemptionsAndTheMeasureWindow) {
  const std::vector<Row> rows = {{.submit = 0, .work = 10, .family = "a"}, {.submit = 2, .work = 3}};
  EXPECT_DOUBLE_EQ(joules_of_gpus(rows, Cluster::pool(1), ShortestRemaining(true), 1), 13 * 50 + 10 * 200 + 3 * 50);
  // From the submission of the second at 2 to its end at 5.
  EXPECT_DOUBLE_EQ(joules_of_gpus(rows, Cluster::pool(1), ShortestRemaining(true), 1, {.first = 1}), 3 * 50 + 3 * 50);
}

// The peak is that of the measured span: the first job's 250 W before it do not count.
TEST(Power, ThePeakIsOfTheMeasuredSpan) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .family = "a"}, {.submit = 20, .work = 3}});
  const Cluster cluster = Cluster::pool(1);
  PowerModel model = of_families(jobs, cluster, 1);
  model.losses = {.gain = 0.1, .fixed_w = 5};
  Engine engine(jobs, cluster, {}, {.power = &model, .measured = {.first = 1}});
  run_to_end(engine);
  EXPECT_EQ(engine.power().peak_mw(), 100'000);
  EXPECT_EQ(engine.power().with_losses_mw(100'000), 115'000);
}

// A row for each instant at which the draw or a cap changes, also where no event of a job does.
TEST(Power, LevelsTellEveryChangeOfDrawAndCaps) {
  const JobTable jobs = table_of({{0, 100, 1}, {300, 10, 1}});
  PowerModel model = of_gpus(1, 50, 250);
  model.kinds[0].sleep = {.after = whole_seconds(60), .asleep_w = 10};
  model.caps = {
      {.watts = Signal({{Time{}, Signal::to_micro(400)}, {whole_seconds(200), Signal::to_micro(300)}}), .nodes = {}}};
  Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.power = &model, .keeps_power_levels = true});
  run_to_end(engine);
  const detail::PowerLevels& log = engine.power().levels();
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < log.levels().size(); ++i) {
    ASSERT_EQ(log.caps(i).size(), 1u);
    EXPECT_EQ(log.caps(i)[0].drawn_mw, log.levels()[i].draw_mw);
    rows.push_back({to_seconds(log.levels()[i].since), static_cast<double>(log.levels()[i].draw_mw) / 1e3,
                    static_cast<double>(log.caps(i)[0].limit_mw) / 1e3});
  }
  EXPECT_EQ(rows, (std::vector<std::vector<double>>{
                      {0, 250, 400}, {100, 50, 400}, {160, 10, 400}, {200, 10, 300}, {300, 250, 300}, {310, 50, 300}}));
}

// 1 kW for an hour at 100 g and one at 300 g a kilowatt-hour; the price falls below zero.
TEST(Power, CarbonAndMoneyFollowTheirSignals) {
  const JobTable jobs = table_of({{0, 7200, 1}});
  PowerModel model = of_gpus(1, 0, 1000);
  const auto hourly = [](double first, double second) {
    return Signal({{Time{}, Signal::to_micro(first)}, {whole_seconds(3600), Signal::to_micro(second)}});
  };
  model.places = {{.carbon_g_per_kwh = hourly(100, 300), .usd_per_mwh = hourly(50, -10)}};
  model.rents = {{.usd_per_gpu_h = 2}};
  Engine engine(jobs, Cluster::pool(1), {}, {.power = &model});
  run_to_end(engine);
  const Bill& bill = engine.bill(JobId{0});
  EXPECT_DOUBLE_EQ(bill.kwh(), 2);
  EXPECT_DOUBLE_EQ(bill.carbon_kg(), 0.4);
  EXPECT_DOUBLE_EQ(bill.electricity_usd(), 0.04);
  EXPECT_DOUBLE_EQ(bill.rent_usd(), 4);
  EXPECT_EQ(bill, engine.power().meter());
}

// Reserved GPUs are paid whether used or not.
TEST(Power, ReservedGpusCostWhileIdle) {
  const JobTable jobs = table_of({{0, 3600, 1}, {7200, 3600, 2}});
  PowerModel model = of_gpus(1, 0, 0);
  model.rents = {{.usd_per_gpu_h = 1, .when_idle = true}};
  Engine engine(jobs, Cluster::pool(2), {}, {.power = &model});
  run_to_end(engine);
  EXPECT_DOUBLE_EQ(engine.power().meter().rent_usd(), 6);
  EXPECT_DOUBLE_EQ(engine.bill(JobId{0}).rent_usd(), 1);
  EXPECT_DOUBLE_EQ(engine.bill(JobId{1}).rent_usd(), 2);
  EXPECT_DOUBLE_EQ(engine.power().bill(BillOf::idle).rent_usd(), 3);
}

// Idle for 60 s, then asleep; waking takes 30 s and 3 kJ, and the job that wakes it waits.
TEST(Power, NodesSleepAndWakeForTheirJobs) {
  const JobTable jobs = table_of({{0, 100, 1}, {300, 100, 1}});
  PowerModel model = of_gpus(1, 50, 250);
  model.kinds[0] = {.base_w = 150,
                    .sleep = {.after = whole_seconds(60), .asleep_w = 10, .wake = whole_seconds(30), .wake_j = 3000}};
  Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.power = &model});
  run_to_end(engine);
  EXPECT_EQ(engine.end(JobId{1}), whole_seconds(430));
  EXPECT_EQ(engine.overhead(JobId{1}), whole_seconds(30));
  EXPECT_DOUBLE_EQ(joules(engine.power().bill(BillOf::asleep)), 140 * 10);
  EXPECT_DOUBLE_EQ(joules(engine.power().bill(BillOf::waking)), 3000);
  EXPECT_DOUBLE_EQ(joules(engine.power().bill(BillOf::idle)), 60 * 200 + 230 * 150);
  EXPECT_DOUBLE_EQ(joules(engine.bill(JobId{1})), 130 * 250);
  EXPECT_TRUE(engine.power().adds_up());
}

// A GPU of 50 W idle whose busy draw and speed fall to a half and three quarters.
PowerModel with_limits(std::size_t nodes, CapRule rule) {
  PowerModel model = of_gpus(nodes, 50, 250);
  model.gpus[0].limits = {{.limit_w = 150, .draw = 0.5, .speed = 750'000},
                          {.limit_w = 200, .draw = 0.75, .speed = 900'000},
                          {.limit_w = 250}};
  model.rule = rule;
  model.hysteresis = 0;
  return model;
}

// Four GPUs idle at 200 W, each busy one adds 200. Below 620 W two run at a time.
TEST(PowerCaps, JobsThatWouldExceedACapDoNotStart) {
  const JobTable jobs = table_of({{0, 100, 1}, {0, 100, 1}, {0, 100, 1}, {0, 100, 1}});
  PowerModel model = of_gpus(4, 50, 250);
  model.caps = {{.watts = Signal(620), .nodes = {}}};
  model.rule = CapRule::admit;
  Engine engine(jobs, Cluster::homogeneous(4, 1), {}, {.power = &model});
  run_to_end(engine);
  EXPECT_EQ(engine.end(JobId{1}), whole_seconds(100));
  EXPECT_EQ(engine.end(JobId{3}), whole_seconds(200));
  EXPECT_EQ(engine.power().peak_mw(), 600'000);
  EXPECT_EQ(engine.power().caps().excess(0), detail::CapExcess{});
}

// At 700 W all four may run, slowed to three quarters and, alone, not at all.
TEST(PowerCaps, AllAreSlowedAlike) {
  const JobTable jobs = table_of({{0, 75, 1}, {0, 75, 1}, {0, 75, 1}, {0, 150, 1}});
  PowerModel model = with_limits(4, CapRule::uniform);
  model.caps = {{.watts = Signal(700), .nodes = {}}};
  Engine engine(jobs, Cluster::homogeneous(4, 1), {}, {.power = &model});
  run_to_end(engine);
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(100));
  EXPECT_EQ(engine.end(JobId{3}), whole_seconds(175));
  EXPECT_EQ(engine.power().peak_mw(), 600'000);
}

// A run begins at the lowest setting where steps down act late, and is raised at once where the cap has room.
TEST(PowerCaps, NobodyStaysSlowBelowACapWithRoom) {
  const JobTable jobs = table_of({{0, 75, 1}, {0, 75, 1}});
  for (const CapRule rule : {CapRule::uniform, CapRule::priority, CapRule::efficiency}) {
    PowerModel model = with_limits(2, rule);
    model.caps = {{.watts = Signal(900), .nodes = {}}, {.watts = Signal(450), .nodes = {1}}};
    model.cap_latency = whole_seconds(5);
    Engine engine(jobs, Cluster::homogeneous(2, 1), {}, {.power = &model});
    run_to_end(engine);
    EXPECT_EQ(engine.end(JobId{0}), whole_seconds(75));
    EXPECT_EQ(engine.end(JobId{1}), whole_seconds(75));
  }
}

// 250 W fit below 255 W, though not below 98 % of that: what runs is not raised so far after a dip, from 15 to 20 s.
TEST(PowerCaps, ANewcomerHasWhatFitsUnderTheWholeCap) {
  const JobTable jobs = table_of({{0, 75, 1}});
  for (const CapRule rule : {CapRule::uniform, CapRule::priority, CapRule::efficiency}) {
    for (const bool dips : {false, true}) {
      PowerModel model = with_limits(1, rule);
      model.hysteresis = 0.02;
      model.caps = {{.watts = Signal({{Time{}, Signal::to_micro(255)},
                                      {whole_seconds(10), Signal::to_micro(dips ? 150 : 255)},
                                      {whole_seconds(20), Signal::to_micro(255)}}),
                     .nodes = {}}};
      model.cap_latency = whole_seconds(5);
      Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.power = &model});
      run_to_end(engine);
      EXPECT_DOUBLE_EQ(to_seconds(engine.end(JobId{0})), dips ? 20 + (75 - 15 - 5 * 0.75) / 0.9 : 75);
    }
  }
}

// The cap dips for 2 s, and who is to be slowed is slowed after 5 s.
TEST(PowerCaps, NobodyStaysSlowForADipThatIsOver) {
  const JobTable jobs = table_of({{0, 75, 1}});
  for (const CapRule rule : {CapRule::uniform, CapRule::priority, CapRule::efficiency}) {
    PowerModel model = with_limits(1, rule);
    model.caps = {{.watts = Signal({{Time{}, Signal::to_micro(450)},
                                    {whole_seconds(10), Signal::to_micro(150)},
                                    {whole_seconds(12), Signal::to_micro(450)}}),
                   .nodes = {}}};
    model.cap_latency = whole_seconds(5);
    Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.power = &model});
    run_to_end(engine);
    EXPECT_EQ(engine.end(JobId{0}), whole_seconds(75)) << static_cast<int>(rule);
  }
}

// A cap that falls slows the least urgent first; where that is not enough, the run says how far it was exceeded.
TEST(PowerCaps, AFallActsAtOnceAndWhatCannotBeSavedIsTold) {
  std::vector<Row> rows(2, {.work = 1000, .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu}});
  rows[0].priority = 1;
  const JobTable jobs = table_of(rows);
  PowerModel model = with_limits(2, CapRule::priority);
  model.caps = {{.watts = Signal({{Time{}, Signal::to_micro(600)},
                                  {whole_seconds(100), Signal::to_micro(420)},
                                  {whole_seconds(200), Signal::to_micro(280)},
                                  {whole_seconds(300), Signal::to_micro(600)}}),
                 .nodes = {}}};
  Engine engine(jobs, Cluster::homogeneous(2, 1), {}, {.power = &model});
  run_to_end(engine);
  // From 100 to 200: 100 + 200 + 100 W; from 200 to 300 both at the lowest: 300 W, 20 above the cap.
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(1025));
  EXPECT_EQ(engine.end(JobId{1}), whole_seconds(1050));
  const detail::CapExcess& excess = engine.power().caps().excess(0);
  EXPECT_EQ(excess.time, whole_seconds(100));
  EXPECT_EQ(excess.most_mw, 20'000);
}

// The first job is measured: the cap falls when only the other one runs.
TEST(PowerCaps, AreExceededWithinTheMeasuredSpan) {
  const JobTable jobs = table_of({{.submit = 0, .work = 60}, {.submit = 100, .work = 50}});
  PowerModel model = of_gpus(1, 0, 1000);
  model.caps = {
      {.watts = Signal({{Time{}, Signal::to_micro(1000)}, {whole_seconds(120), Signal::to_micro(500)}}), .nodes = {}}};
  const auto excess_of = [&](MeasureWindow measured) {
    Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.power = &model, .measured = measured});
    run_to_end(engine);
    return engine.power().caps().excess(0).time;
  };
  EXPECT_EQ(excess_of({}), whole_seconds(30));
  EXPECT_EQ(excess_of({.first = 0, .count = 1}), Time{});
  EXPECT_EQ(excess_of({.first = 1, .count = 1}), whole_seconds(30));
}

// Under a cap that fell below what runs, a job that was stopped for another may not go on beside that one.
TEST(PowerCaps, NothingStartsUnderACapThatFell) {
  const JobTable jobs = table_of({{0, 900, 1}, {0, 1000, 2}, {60, 100, 1}});
  PowerModel model = of_gpus(3, 0, 300);
  model.caps = {
      {.watts = Signal({{Time{}, Signal::to_micro(2000)}, {whole_seconds(30), Signal::to_micro(500)}}), .nodes = {}}};
  Engine engine(jobs, Cluster::homogeneous(3, 1), {}, {.power = &model});
  ASSERT_TRUE(engine.advance());
  Decision first = engine.decision();
  ASSERT_EQ(first.start(JobId{0}), Verdict::ok);
  ASSERT_EQ(first.start(JobId{1}), Verdict::ok);
  engine.apply();
  while (engine.view().now() < whole_seconds(60)) ASSERT_TRUE(engine.advance());
  Decision decision = engine.decision();
  EXPECT_EQ(decision.preempt(JobId{0}), Verdict::ok);
  EXPECT_EQ(decision.restore(JobId{0}), Verdict::ok) << "it runs on";
  EXPECT_EQ(decision.preempt(JobId{0}), Verdict::ok);
  EXPECT_EQ(decision.start(JobId{2}), Verdict::no_power) << "600 W without it";
  EXPECT_EQ(decision.preempt(JobId{1}), Verdict::ok);
  EXPECT_EQ(decision.start(JobId{2}), Verdict::ok);
  EXPECT_EQ(decision.restore(JobId{1}), Verdict::no_power) << "900 W with it";
  EXPECT_EQ(decision.preempt(JobId{2}), Verdict::ok);
  EXPECT_EQ(decision.restore(JobId{1}), Verdict::ok) << "the start was taken back";
  engine.apply();
  EXPECT_EQ(engine.power().caps().drawn_mw(0), 600'000);
}

// Half as fast for half of the watts: that one is slowed before one that is half as fast for a tenth of them.
TEST(PowerCaps, TheMostWorkPerWattIsKept) {
  const JobTable jobs = table_of({{0, 100, 1}, {0, 100, 1}});
  PowerModel model = of_gpus(2, 0, 200);
  model.gpus.push_back(model.gpus[0]);
  model.gpus[0].limits = {{.limit_w = 180, .draw = 0.9, .speed = 500'000}, {.limit_w = 200}};
  model.gpus[1].limits = {{.limit_w = 100, .draw = 0.5, .speed = 500'000}, {.limit_w = 200}};
  model.rule = CapRule::efficiency;
  model.caps = {{.watts = Signal(380), .nodes = {}}};
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.gpu_types = {"A", "B"};
  cluster.nodes[1].gpu_type = 1;
  Engine engine(jobs, cluster, {}, {.power = &model});
  run_to_end(engine);
  std::vector<Time> ends{engine.end(JobId{0}), engine.end(JobId{1})};
  std::sort(ends.begin(), ends.end());
  EXPECT_EQ(ends, (std::vector<Time>{whole_seconds(100), whole_seconds(150)}));
  EXPECT_EQ(engine.power().peak_mw(), 300'000);
}

// The second job has to be slowed for its own node, which is enough for both: whichever cap the file names first.
TEST(PowerCaps, NarrowCapsSlowFirst) {
  for (const bool is_wide_first : {false, true}) {
    const JobTable jobs =
        table_of({{.work = 3600, .gpus = 2, .priority = 1}, {.work = 3600, .gpus = 2, .priority = 2}});
    PowerModel model = of_gpus(2, 0, 250);
    model.gpus[0].limits = {{.limit_w = 150, .draw = 0.6, .speed = 800'000}, {.limit_w = 250}};
    model.rule = CapRule::priority;
    const PowerCap wide{.watts = Signal(900), .nodes = {}}, narrow{.watts = Signal(400), .nodes = {1}};
    model.caps = {is_wide_first ? wide : narrow, is_wide_first ? narrow : wide};
    Engine engine(jobs, Cluster::homogeneous(2, 2), {}, {.power = &model});
    run_to_end(engine);
    EXPECT_EQ(engine.end(JobId{0}), whole_seconds(3600));
    EXPECT_EQ(engine.end(JobId{1}), whole_seconds(4500));
  }
}

// A slow reference: at every instant it takes the grants of all running jobs and adds up what each node draws; between
// them it walks through the steps of the signals and lets nodes fall asleep and wake.
class SlowMeter {
 public:
  SlowMeter(const PowerModel& model, const JobTable& jobs) : model_(&model), jobs_(&jobs) {}

  void pass(const Engine& engine) {
    const Time now = engine.view().now();
    if (nodes_.empty()) nodes_.assign(engine.view().cluster().node_count(), {.empty_since = now});
    if (now > since_) integrate(now);
    since_ = now;
    double watts = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      look_at(engine, NodeId{i}, now);
      watts += drawn(i, now);
    }
    EXPECT_NEAR(watts, static_cast<double>(engine.power().draw_mw()) / 1e3, 0.05);
  }

  double joules = 0, carbon_g = 0, usd = 0;
  struct Above {
    double least_s = 0, most_s = 0;  // as far as rounding leaves open
    double joules = 0;
  };
  std::vector<Above> above;  // by cap

 private:
  struct SlowNode {
    double on_w = 0;                   // awake, with its jobs
    bool is_empty = true;              // nobody is there
    Time empty_since{}, awake_from{};  // the latter: while it wakes, and afterwards
  };

  [[nodiscard]] const NodePower& kind(std::size_t node) const { return model_->kinds[model_->kind_of[node]]; }
  [[nodiscard]] bool sleeps(std::size_t at, Time now) const {
    const SlowNode& node = nodes_[at];
    return node.is_empty && now >= falls_asleep(at);
  }
  [[nodiscard]] Time falls_asleep(std::size_t at) const {
    const Time from = std::max(nodes_[at].empty_since, nodes_[at].awake_from);
    return later_by(from, kind(at).sleep.after);
  }
  [[nodiscard]] double drawn(std::size_t at, Time now) const {
    if (sleeps(at, now)) return kind(at).sleep.asleep_w;
    const bool wakes = now < nodes_[at].awake_from;
    return nodes_[at].on_w + (wakes ? kind(at).sleep.wake_j / to_seconds(kind(at).sleep.wake) : 0);
  }

  void integrate(Time now) {
    const PowerPlace& place = model_->places[0];
    for (Time at = since_; at < now;) {
      Time next = std::min({now, place.carbon_g_per_kwh.next_change(at), place.usd_per_mwh.next_change(at)});
      for (const PowerCap& cap : model_->caps) next = std::min(next, cap.watts.next_change(at));
      double watts = 0;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        watts += drawn(i, at);
        if (nodes_[i].awake_from > at) next = std::min(next, nodes_[i].awake_from);
        if (nodes_[i].is_empty && falls_asleep(i) > at) next = std::min(next, falls_asleep(i));
      }
      const double kwh = (watts * (1 + model_->losses.gain) + model_->losses.fixed_w) * to_seconds(next - at) / 3.6e6;
      joules += kwh * 3.6e6;
      carbon_g += kwh * place.carbon_g_per_kwh.at(at);
      usd += kwh / 1000 * place.usd_per_mwh.at(at);
      count_above(at, next);
      at = next;
    }
  }

  void count_above(Time begin, Time end) {
    above.resize(model_->caps.size());
    for (std::size_t number = 0; number < above.size(); ++number) {
      const PowerCap& cap = model_->caps[number];
      double watts = -cap.watts.at(begin);
      for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
        const bool is_below = cap.nodes.empty() || std::find(cap.nodes.begin(), cap.nodes.end(), i) != cap.nodes.end();
        if (is_below) watts += drawn(i, begin);
      }
      if (watts > -0.05) above[number].most_s += to_seconds(end - begin);
      if (watts < 0.05) continue;
      above[number].least_s += to_seconds(end - begin);
      above[number].joules += watts * to_seconds(end - begin);
    }
  }

  void look_at(const Engine& engine, NodeId at, Time now) {
    SlowNode& node = nodes_[index(at)];
    bool is_empty = true;
    node.on_w = node_w(engine, at, is_empty);
    if (!is_empty && sleeps(index(at), now)) node.awake_from = now + kind(index(at)).sleep.wake;
    if (is_empty && !node.is_empty) node.empty_since = now;
    node.is_empty = is_empty;
  }

  // Awake, in watts.
  double node_w(const Engine& engine, NodeId at, bool& is_empty) {
    const OracleView view = engine.view();
    const NodePower& kind = this->kind(index(at));
    const std::uint32_t gpus = view.cluster().node_gpus(at), type = view.cluster().node_gpu_type(at);
    double watts = kind.base_w + kind.cpus * kind.cpu.idle_w + gpus * model_->gpus[type].load.idle_w;
    double load = 0;
    std::map<std::uint32_t, std::vector<std::pair<double, JobId>>> cards;
    for (const JobId job : view.running()) {
      view.for_each_grant(job, [&](const Grant& grant) {
        if (grant.node != at) return;
        is_empty = false;
        const Shape& shape = view.shape(job);
        const double share = static_cast<double>(grant.tasks * shape.gpu_milli_per_task) / 1000;
        load += shape.cpu_milli_per_task > 0 ? grant.tasks / 8.0 : share / gpus;
        if (share == 0) return;
        if (shape.is_share()) {
          cards[static_cast<std::uint32_t>(std::countr_zero(grant.devices))].emplace_back(share, job);
        } else {
          watts += share * busy_w(engine, {{1, job}}, type);
        }
      });
    }
    for (const auto& [card, on_it] : cards) watts += busy_w(engine, on_it, type);
    if (!is_empty) watts += kind.cpus * (kind.cpu.watts(std::min(load, 1.0)) - kind.cpu.idle_w);
    return watts;
  }

  // What jobs with such shares of a GPU add to its idle draw.
  double busy_w(const Engine& engine, const std::vector<std::pair<double, JobId>>& jobs, std::uint32_t type) {
    const GpuPower& gpu = model_->gpus[type];
    double busy = 0, full = 0, draw = 1, limit_w = 1e9;
    for (const auto& [share, job] : jobs) {
      const double own = share * model_->busy_share(jobs_->family(job), type);
      busy += own;
      full += own * model_->full_w(jobs_->family(job), type);
      const PowerLimit& limit = gpu.limits[engine.power().level(job)];
      draw = std::min(draw, limit.draw);
      limit_w = std::min(limit_w, limit.limit_w);
    }
    LoadPower load = gpu.load;
    load.full_w = full / busy;
    return std::min((load.watts(std::min(busy, 1.0)) - load.idle_w) * draw, limit_w - load.idle_w);
  }

  const PowerModel* model_;
  const JobTable* jobs_;
  Time since_{};
  std::vector<SlowNode> nodes_;
};

Signal random_signal(Rng& rng, double low, double high) {
  std::vector<Signal::Step> steps;
  for (std::int64_t at = 0; at < 400; at += 1 + static_cast<std::int64_t>(rng.below(30))) {
    steps.push_back({whole_seconds(at), Signal::to_micro(low + (high - low) * rng.uniform())});
  }
  steps.push_back({whole_seconds(400), Signal::to_micro(high)});
  return Signal(std::move(steps));
}

struct PowerWorld {
  Cluster cluster = Cluster::homogeneous(6, 2);
  JobTable jobs;
  PowerModel model;
  NodeFailures failures;
  PreemptionCost cost;

  explicit PowerWorld(Rng rng) {
    cluster.gpu_types = {"a", "b"};
    std::vector<Row> rows;
    std::int64_t submit = 0;
    constexpr MilliGpu milli[] = {0, 250, 500, 1000, 1000, 2000};
    for (int i = 0; i < 20; ++i) {
      Row row{
          .submit = submit, .work = 1 + static_cast<std::int64_t>(rng.below(60)), .family = rng.below(2) ? "x" : "y"};
      row.shape = {.tasks = 1 + static_cast<std::uint32_t>(rng.below(3)), .gpu_milli_per_task = milli[rng.below(6)]};
      row.shape.cpu_milli_per_task = row.shape.gpu_milli_per_task == 0 || rng.below(2) ? 1000 : 0;
      rows.push_back(row);
      submit += static_cast<std::int64_t>(rng.below(12));
    }
    jobs = table_of(rows);
    for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
      cluster.nodes[i].gpu_type = i % 2;
      cluster.nodes[i].cpu_milli = 8000;
    }
    for (int type = 0; type < 2; ++type) {
      GpuPower gpu{.load = {.idle_w = 20.0 + 10 * static_cast<double>(rng.below(4)), .full_w = 250}, .limits = {}};
      gpu.load.exponent = std::vector<double>{0.5, 1, 2}[rng.below(3)];
      gpu.limits = {{.limit_w = 125, .draw = 0.4, .speed = 600'000},
                    {.limit_w = 175, .draw = 0.7, .speed = 850'000},
                    {.limit_w = 300}};
      model.gpus.push_back(gpu);
    }
    const std::size_t families = jobs.families().size();
    for (std::size_t i = 0; i < families * 2; ++i) {
      model.families.push_back(
          {.full_w = 150.0 + 10 * static_cast<double>(rng.below(10)), .busy_share = rng.below(2) ? 1 : 0.5});
    }
    model.kinds = {{.base_w = 40, .cpu = {.idle_w = 30, .full_w = 130}, .cpus = 1},
                   {.base_w = 60, .cpu = {.idle_w = 20, .full_w = 90, .touched_w = 40}, .cpus = 2}};
    if (rng.below(2)) {
      model.kinds[1].sleep = {.after = whole_seconds(5), .asleep_w = 7, .wake = whole_seconds(4), .wake_j = 400};
    }
    for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) model.kind_of.push_back(i % 3 == 0);
    model.losses = {.gain = 0.1, .fixed_w = 25};
    model.places = {{.carbon_g_per_kwh = random_signal(rng, 20, 600), .usd_per_mwh = random_signal(rng, -30, 200)}};
    model.rule = static_cast<CapRule>(rng.below(4));
    model.hysteresis = rng.below(2) ? 0.05 : 0;
    if (rng.below(2))
      failures.add_unit(failures.add_law({.mean_up_s = 200, .mean_repair_s = 15}),
                        std::vector<NodeId>{NodeId{1}, NodeId{2}});
    if (rng.below(4) != 0) cost = {.checkpoint = whole_seconds(1), .restart = whole_seconds(2)};
  }
};

// The meter is what the slow one says, and exactly the sum of all bills. No cap that stays is exceeded at any time; how
// far and how long one is that falls, or is acted upon late, is told.
TEST(PowerCaps, HoldAndEveryBillAddsUpInRandomWorlds) {
  int slowed = 0;
  double above = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    PowerWorld world(rng.split("world"));
    const bool falls = world.model.rule != CapRule::admit && rng.below(2) == 0;
    if (falls && rng.below(2) == 0) world.model.cap_latency = Time{1 + static_cast<std::int64_t>(rng.below(5'000'000))};
    const double all_w =
        (world.model.rule == CapRule::admit ? 2700.0 : 1800.0) + 100 * static_cast<double>(rng.below(4));
    const double some_w = 900.0 + 100 * static_cast<double>(rng.below(3));
    world.model.caps = {
        {.watts = falls ? random_signal(rng, all_w - 500, all_w + 500) : Signal(all_w), .nodes = {}},
        {.watts = falls ? random_signal(rng, some_w - 200, some_w + 200) : Signal(some_w), .nodes = {0, 1}}};
    Engine engine(world.jobs, world.cluster, {.preemption = world.cost, .seed = seed},
                  {.failures = &world.failures, .power = &world.model});
    Restless policy{rng.split("policy")};
    SlowMeter meter(world.model, world.jobs);
    Decision decision = engine.decision();
    while (!engine.all_finished()) {
      if (engine.advance_to(engine.next_event_time())) {
        policy.decide(engine.view(), decision);
        engine.apply();
      }
      ASSERT_TRUE(engine.consistent());
      meter.pass(engine);
      ASSERT_LT(to_seconds(engine.view().now()), 1e5);
      for (const JobId job : engine.view().running()) slowed += engine.power().level(job) < 2;
    }
    for (std::uint32_t cap = 0; cap < 2; ++cap) {
      const detail::CapExcess& excess = engine.power().caps().excess(cap);
      if (!falls) {
        EXPECT_EQ(excess, detail::CapExcess{});
      }
      EXPECT_GE(to_seconds(excess.time), meter.above[cap].least_s - 1e-6);
      EXPECT_LE(to_seconds(excess.time), meter.above[cap].most_s + 1e-6);
      EXPECT_NEAR(static_cast<double>(excess.nj) / 1e9, meter.above[cap].joules, 0.05 * meter.above[cap].most_s);
      above += meter.above[cap].least_s;
    }
    ASSERT_TRUE(engine.power().adds_up());
    const Bill bill = engine.power().meter();
    EXPECT_NEAR(static_cast<double>(bill.nj) / 1e9 / meter.joules, 1, 1e-5);
    EXPECT_NEAR(bill.carbon_kg() * 1000 / meter.carbon_g, 1, 1e-5);
    EXPECT_NEAR(bill.electricity_usd(), meter.usd, 1e-5 * std::abs(meter.usd) + 1e-6);
  }
  EXPECT_GT(slowed, 500);
  EXPECT_GT(above, 100);
}

}  // namespace
}  // namespace gpusched::test
