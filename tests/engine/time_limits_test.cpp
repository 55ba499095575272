// SPDX-License-Identifier: Apache-2.0
// Jobs that are ended at the run time that they asked for, worked out by hand.
#include <gtest/gtest.h>

#include <vector>

#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

constexpr Time at(std::int64_t seconds) { return whole_seconds(seconds); }

TEST(TimeLimits, AJobEndsAtItsLimitAndWhatItDidIsUseful) {
  const JobTable jobs = table_of({{.work = 100, .gpus = 2, .estimate = 40}, {.work = 10, .gpus = 2, .estimate = 10}});
  Engine engine(jobs, Cluster::pool(2), {}, {.kill_at_limit = true});
  Fifo policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(engine.end(JobId{0}), at(40));
  EXPECT_EQ(engine.ran(JobId{0}), at(40));
  EXPECT_EQ(engine.useful_time(JobId{0}), at(40));
  EXPECT_TRUE(engine.is_ended_at_limit(JobId{0}));
  EXPECT_EQ(engine.first_start(JobId{1}), at(40));
  EXPECT_EQ(engine.end(JobId{1}), at(50));
  EXPECT_FALSE(engine.is_ended_at_limit(JobId{1}));  // it did its last work at that instant
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_DOUBLE_EQ(*metrics.avg_jct_s, 45);
  EXPECT_DOUBLE_EQ(*metrics.avg_wait_s, 20);
  EXPECT_DOUBLE_EQ(*metrics.avg_bounded_slowdown, 3);  // 40 / 40 and 50 / 10
  EXPECT_DOUBLE_EQ(metrics.gpu_utilization, 1);
}

TEST(TimeLimits, NoRequestAndARequestOfZeroAreNoLimit) {
  const JobTable jobs =
      table_of({{.work = 100, .estimate = 0}, {.work = 100, .estimate = -1}, {.work = 5, .estimate = 1}});
  Engine engine(jobs, Cluster::pool(4), {}, {.kill_at_limit = true});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), at(100));
  EXPECT_EQ(engine.end(JobId{1}), at(100));
  EXPECT_EQ(engine.end(JobId{2}), at(1));
}

// Runs one job until `stop`, and goes on with it at `resume`.
struct Pausing {
  Time stop, resume;
  [[nodiscard]] std::string_view name() const { return "pausing"; }
  void decide(const View& view, Decision& decision) const {
    const JobId job{0};
    if (view.phase(job) == JobPhase::pending && (view.now() < stop || !(view.now() < resume))) {
      ASSERT_EQ(decision.start(job), Verdict::ok);
    }
    if (view.phase(job) == JobPhase::running && view.now() == stop) decision.preempt(job);
    if (view.now() < stop) decision.wake(stop);
    if (view.now() < resume) decision.wake(resume);
  }
};

TEST(TimeLimits, TimePreemptedDoesNotCount) {
  const JobTable jobs = table_of({{.work = 100, .estimate = 40}});
  Engine engine(jobs, Cluster::pool(1), {.preemption = {.restart = at(3)}}, {.kill_at_limit = true});
  Pausing policy{at(10), at(50)};
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), at(80));  // 10 s and 30 s, of which 3 s load
  EXPECT_EQ(engine.ran(JobId{0}), at(40));
  EXPECT_EQ(engine.useful_time(JobId{0}), at(37));
}

TEST(TimeLimits, ARunAfterAFailureHasAllOfItAgain) {
  const JobTable jobs = table_of({{.work = 100, .estimate = 40}});
  NodeFailures failures;
  const std::vector<NodeChange> changes{{.time = at(30), .node = NodeId{0}, .up = false},
                                        {.time = at(35), .node = NodeId{0}, .up = true}};
  failures.add_changes(changes);
  Engine engine(jobs, Cluster::homogeneous(1, 1), {}, {.failures = &failures, .kill_at_limit = true});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), at(75));
  EXPECT_EQ(engine.useful_time(JobId{0}), at(40));
  EXPECT_EQ(engine.lost(JobId{0}), at(30));
}

TEST(TimeLimits, AnAttemptThatReachesItEndsTheJob) {
  const JobTable jobs = table_of({{.attempts = {30, 50, 10}, .estimate = 40}});
  Engine engine(jobs, Cluster::pool(1), {}, {.kill_at_limit = true});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), at(70));  // 30 s, and 40 of the 50 s
  EXPECT_TRUE(engine.is_ended_at_limit(JobId{0}));
}

// At 40 s it reaches its limit, and its user cancels it: it has ended.
TEST(TimeLimits, ComesBeforeWhatUsersChangeAtThatInstant) {
  const JobTable jobs = table_of({{.work = 100, .estimate = 40}});
  const JobChanges changes({{.time = at(40), .job = JobId{0}}}, 1);
  Engine engine(jobs, Cluster::pool(1), {}, {.changes = &changes, .kill_at_limit = true});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_TRUE(engine.is_ended_at_limit(JobId{0}));
  EXPECT_FALSE(engine.is_cancelled(JobId{0}));
}

// Who knows true run times knows that the job ends at its limit.
TEST(TimeLimits, ExpectedEndsKnowThem) {
  const JobTable jobs = table_of({{.work = 100, .estimate = 40}});
  Engine engine(jobs, Cluster::pool(1), {}, {.kill_at_limit = true});
  ASSERT_TRUE(engine.advance());
  EXPECT_EQ(engine.view().limit_left(JobId{0}), at(40));
  Decision decision = engine.decision();
  ASSERT_EQ(decision.start(JobId{0}), Verdict::ok);
  engine.apply();
  EXPECT_EQ(engine.view().expected_end(JobId{0}), at(40));
  EXPECT_EQ(engine.next_event_time(), at(40));
}

}  // namespace
}  // namespace gpusched::test
