// SPDX-License-Identifier: Apache-2.0
// Where the time of runs went, worked out by hand. In every run each GPU-second is useful, overhead, lost, withheld or
// idle.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

struct GpuSeconds {
  double useful = 0, overhead = 0, lost = 0;
  friend bool operator==(const GpuSeconds&, const GpuSeconds&) = default;
  friend std::ostream& operator<<(std::ostream& out, const GpuSeconds& it) {
    return out << "useful " << it.useful << ", overhead " << it.overhead << ", lost " << it.lost;
  }
};

GpuSeconds in_gpu_s(const GpuTime& time) {
  return {RunLog::gpu_seconds(time.useful), RunLog::gpu_seconds(time.overhead), RunLog::gpu_seconds(time.lost)};
}

// A finished run whose account adds up.
template <class P>
struct CheckedRun {
  Engine engine;
  RunLog log;

  CheckedRun(const JobTable& jobs, const Cluster& cluster, P policy, const EngineOptions& options,
             const RunInputs& inputs)
      : engine(jobs, cluster, options, inputs), log(inputs.measured) {
    EXPECT_TRUE(simulate(engine, policy, log));
    EXPECT_EQ(fault_of_account(engine, log, inputs.measured), std::nullopt);
    metrics = compute_metrics(engine, log, inputs.measured);
  }
  [[nodiscard]] GpuSeconds of(std::uint32_t job) const { return in_gpu_s(engine.gpu_time(JobId{job})); }

  Metrics metrics;
};

NodeFailures outage(std::uint32_t node, std::int64_t down_s, std::int64_t up_s) {
  NodeFailures failures;
  const std::vector<NodeChange> changes{{whole_seconds(down_s), NodeId{node}, false},
                                        {whole_seconds(up_s), NodeId{node}, true}};
  failures.add_changes(changes);
  return failures;
}

JobTable shares(const std::vector<std::pair<std::int64_t, std::int64_t>>& submit_and_work) {
  std::vector<Row> rows;
  for (const auto& [submit, work] : submit_and_work) {
    rows.push_back({.submit = submit, .work = work, .shape = {.tasks = 1, .gpu_milli_per_task = 500}});
  }
  return table_of(rows);
}

Cluster one_gpu_in_turns() {
  Cluster cluster = Cluster::homogeneous(1, 1);
  cluster.nodes[0].sharing = SharingMode::time_slicing;
  return cluster;
}

// The first run is four times as fast as the second and is lost.
TEST(Accounts, ARunIsBookedAtItsOwnRate) {
  const JobTable jobs = table_of({{0, 1000, 1}});
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.gpu_types = {"V100", "K80"};
  cluster.nodes[1].gpu_type = 1;
  RuntimeModel runtime(1, 2);
  runtime.set(0, 0, 4 * reference_rate);
  const NodeFailures failures = outage(0, 100, 5000);
  const CheckedRun run(jobs, cluster, Fifo{}, {.placement = Placement::fastest},
                       {.runtime = &runtime, .failures = &failures});
  EXPECT_EQ(run.engine.end(JobId{0}), whole_seconds(1100));
  EXPECT_EQ(run.of(0), (GpuSeconds{1000, 0, 100}));
  EXPECT_DOUBLE_EQ(*run.metrics.goodput, 1000.0 / 1100);
}

// 100 s on one node are lost; then half as fast on two.
TEST(Accounts, ARunIsBookedAtTheRateOfItsSpan) {
  const JobTable jobs = table_of({{0, 1000, 2}});
  Cluster cluster = Cluster::homogeneous(3, 1);
  cluster.nodes[2].gpus = 2;
  RuntimeModel runtime(1, 1);
  SpanModel spans(1, 1);
  spans.set(0, 0, {reference_rate, reference_rate, reference_rate / 2, reference_rate / 2, reference_rate / 2});
  runtime.set_spans(std::move(spans));
  const NodeFailures failures = outage(2, 100, 5000);
  const CheckedRun run(jobs, cluster, Fifo{}, {}, {.runtime = &runtime, .failures = &failures});
  EXPECT_EQ(run.of(0), (GpuSeconds{4000, 0, 200}));
}

// Both in turns until 150, which is lost; from 160 both in turns until the short one ends at 360, the other at 1260.
TEST(Accounts, ARunIsBookedAtTheRateThatItsCompanyLeavesIt) {
  const JobTable jobs = shares({{0, 1000}, {0, 100}});
  const NodeFailures failures = outage(0, 150, 160);
  const CheckedRun run(jobs, one_gpu_in_turns(), Fifo{}, {}, {.failures = &failures});
  EXPECT_EQ(run.engine.end(JobId{0}), whole_seconds(1260));
  EXPECT_EQ(run.of(0), (GpuSeconds{550, 0, 75}));
  EXPECT_EQ(run.of(1), (GpuSeconds{100, 0, 75}));
}

// A checkpoint each 50 s of work. Alone until 60, then in turns: 80 s of work are done at 100, when the node fails;
// lost are the 10 s from 50 to 60 and the 40 s in turns.
TEST(Accounts, WhatIsLostIsTheTimeSinceTheCheckpointWhateverTheRatesWere) {
  const JobTable jobs = shares({{0, 200}, {60, 100}});
  const NodeFailures failures = outage(0, 100, 110);
  const CheckedRun run(jobs, one_gpu_in_turns(), Fifo{}, {.preemption = {.checkpoint_interval = whole_seconds(50)}},
                       {.failures = &failures});
  EXPECT_EQ(run.of(0).lost, 25);
  EXPECT_EQ(run.of(1).lost, 20);
}

// Preempted at 100; loads from 150 and is preempted at 160; loads from 210 to 240, and works for 900 s.
TEST(Accounts, ALoadThatIsInterruptedByAPreemptionBeginsAnewAndIsPaidOnce) {
  const JobTable jobs = table_of({{0, 1000, 1}, {100, 50, 1}, {160, 50, 1}});
  const CheckedRun run(jobs, Cluster::pool(1), ShortestRemaining(false), {.preemption = {.restart = whole_seconds(30)}},
                       {});
  EXPECT_EQ(run.engine.end(JobId{0}), whole_seconds(1140));
  EXPECT_EQ(run.of(0), (GpuSeconds{1000, 40, 0}));
}

// The same by failures: all work is lost, each load is paid as far as it went.
TEST(Accounts, ALoadThatIsInterruptedByAFailureBeginsAnewAndIsPaidOnce) {
  const JobTable jobs = table_of({{0, 1000, 1}});
  NodeFailures failures;
  const std::vector<NodeChange> changes{{whole_seconds(100), NodeId{0}, false},
                                        {whole_seconds(150), NodeId{0}, true},
                                        {whole_seconds(160), NodeId{0}, false},
                                        {whole_seconds(210), NodeId{0}, true}};
  failures.add_changes(changes);
  const CheckedRun run(jobs, Cluster::homogeneous(1, 1), Fifo{}, {.preemption = {.restart = whole_seconds(30)}},
                       {.failures = &failures});
  EXPECT_EQ(run.engine.end(JobId{0}), whole_seconds(1240));
  EXPECT_EQ(run.of(0), (GpuSeconds{1000, 40, 100}));
}

// 10 s of work, then 2 of the 4 s that a checkpoint takes.
TEST(Accounts, SecondsOfACheckpointThatIsNotDoneAreOverhead) {
  const JobTable jobs = table_of({{0, 15, 1}});
  const NodeFailures failures = outage(0, 12, 20);
  const CheckedRun run(
      jobs, Cluster::homogeneous(1, 1), Fifo{},
      {.preemption = {.checkpoint_interval = whole_seconds(10), .periodic_checkpoint = whole_seconds(4)}},
      {.failures = &failures});
  EXPECT_EQ(run.engine.end(JobId{0}), whole_seconds(39));
  EXPECT_EQ(run.of(0), (GpuSeconds{15, 6, 10}));
}

// The first row waits for the second, which is submitted at 0 too.
TEST(Accounts, TheSpanBeginsWithTheFirstRowAlsoWhereThatWaits) {
  const Shape one{.tasks = 1, .gpu_milli_per_task = whole_gpu};
  const std::vector<std::string> after{"A"};
  JobTableBuilder builder;
  builder.add({.id = "B", .work = whole_seconds(100), .shape = one, .after = after});
  builder.add({.id = "A", .work = whole_seconds(900), .shape = one});
  const JobTable jobs = *std::move(builder).build();
  const CheckedRun run(jobs, Cluster::pool(1), Fifo{}, {.preemption = {.restart = whole_seconds(1)}}, {});
  EXPECT_DOUBLE_EQ(run.metrics.makespan_s, 1000);
  EXPECT_DOUBLE_EQ(run.metrics.gpu_allocation, 1);
  EXPECT_DOUBLE_EQ(run.metrics.gpu_utilization, 1);
  EXPECT_DOUBLE_EQ(*run.metrics.goodput, 1);
}

// Measured from 50 to 80: the first job loses the 10 s that it worked in that span, and then works for 19; its 50 s
// before are nobody's business.
TEST(Accounts, InAMeasuredSpanNothingIsLostThatWasDoneBefore) {
  const JobTable jobs = table_of({{0, 100, 1}, {50, 30, 1}});
  const NodeFailures failures = outage(0, 60, 61);
  const CheckedRun run(jobs, Cluster::homogeneous(2, 1), Fifo{}, {}, {.failures = &failures, .measured = {.first = 1}});
  EXPECT_EQ(in_gpu_s(run.engine.measured_gpu_time()), (GpuSeconds{49, 0, 10}));
  EXPECT_DOUBLE_EQ(run.metrics.gpu_allocation, 59.0 / 60);
  EXPECT_DOUBLE_EQ(*run.metrics.gpu_withheld, 1.0 / 60);
}

// A policy that adds 5 s of work and takes 3 of them back after 4 s.
struct Adjusting {
  std::string_view name() const { return "adjusting"; }
  void decide(const View& view, Decision& decision) {
    if (view.now() == Time{}) {
      decision.start(JobId{0});
      decision.adjust_work(JobId{0}, whole_seconds(5));
      decision.wake(whole_seconds(4));
    } else if (view.now() == whole_seconds(4)) {
      decision.adjust_work(JobId{0}, Time{} - whole_seconds(3));
    }
  }
};

TEST(Accounts, WhatAPolicyAddsIsOverhead) {
  const JobTable jobs = table_of({{0, 10, 2}});
  const CheckedRun run(jobs, Cluster::pool(2), Adjusting{}, {}, {});
  EXPECT_EQ(run.engine.end(JobId{0}), whole_seconds(12));
  EXPECT_EQ(run.of(0), (GpuSeconds{20, 4, 0}));
  EXPECT_FALSE(run.engine.counts_costs());
}

}  // namespace
}  // namespace gpusched::test
