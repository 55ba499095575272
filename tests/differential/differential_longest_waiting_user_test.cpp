// SPDX-License-Identifier: Apache-2.0
// The user who waited longest first: examples worked out by hand, and the same starts and ends as a rule written from
// the definition, on random small cases. CONTRIBUTING.md names this file as the model of a policy's test.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/differential/differential_support.hpp"
#include "tests/differential/reference_fair.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// One GPU and jobs of 10 s. At 10, A waits since 2 and B since 3: A goes. At 20, A waits since 10 and B goes. At 30, A
// goes before C, who waits since 12.
TEST(LongestWaitingUser, GoesNext) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .user = "A"},
                                  {.submit = 2, .work = 10, .user = "A"},
                                  {.submit = 2, .work = 10, .user = "A"},
                                  {.submit = 3, .work = 10, .user = "B"},
                                  {.submit = 12, .work = 10, .user = "C"}});
  EXPECT_EQ(run_policy("longest-waiting-user", jobs, Cluster::pool(1)),
            (Spans{{0, 10}, {10, 20}, {30, 40}, {20, 30}, {40, 50}}));
}

// A had nothing to wait for between 10 and 30; the time before a user has a waiting job is no wait.
TEST(LongestWaitingUser, EarnsNothingWhileIdle) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .user = "A"},
                                  {.submit = 20, .work = 20, .user = "B"},
                                  {.submit = 21, .work = 10, .user = "B"},
                                  {.submit = 30, .work = 10, .user = "A"}});
  EXPECT_EQ(run_policy("longest-waiting-user", jobs, Cluster::pool(1)), (Spans{{0, 10}, {20, 40}, {40, 50}, {50, 60}}));
}

// B's first job is cancelled at 10, so that B waits since 50, and A since 20.
TEST(LongestWaitingUser, WaitsForNoJobThatIsCancelled) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "A"},
                                  {.submit = 5, .work = 50, .user = "B"},
                                  {.submit = 20, .work = 50, .user = "A"},
                                  {.submit = 50, .work = 50, .user = "B"}});
  const JobChanges changes({{.time = whole_seconds(10), .job = JobId{1}, .kind = JobChange::Kind::cancel}}, 4);
  const Cluster cluster = Cluster::pool(1);
  auto policy = make("longest-waiting-user", jobs, cluster);
  ASSERT_TRUE(policy);
  Engine engine(jobs, cluster, {}, {.changes = &changes});
  ASSERT_TRUE(simulate(engine, *policy));
  EXPECT_EQ(engine.first_start(JobId{2}), whole_seconds(100));
  EXPECT_EQ(engine.first_start(JobId{3}), whole_seconds(150));
}

TEST(LongestWaitingUser, NeedsUsers) {
  EXPECT_EQ(make("longest-waiting-user", table_of({{0, 1, 1}}), Cluster::pool(1)).error().message,
            "policy longest-waiting-user: the trace names no users (column user)");
}

// The user who waits since the earliest second: that of their last start, or the one from which they had a waiting job
// if that is later.
World::Rule longest_waiting_user_rule() {
  return [since = std::map<std::string, std::int64_t>()](World& world) mutable {
    for (const WorldJob* job : world.waiting()) since.try_emplace(job->user, world.now);
    start_in_order(
        world, [&](const WorldJob& job) -> std::vector<std::int64_t> { return {since.at(job.user)}; },
        [&](WorldJob& job) {
          const bool started = world.start(job);
          if (started) since[job.user] = world.now;
          return started;
        });
    std::set<std::string> waiting;
    for (const WorldJob* job : world.waiting()) waiting.insert(job->user);
    std::erase_if(since, [&](const auto& user) { return !waiting.contains(user.first); });
  };
}

TEST(LongestWaitingUser, StartsAsTheRuleDoes) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    expect_same("longest-waiting-user", random_rows(cluster), cluster, longest_waiting_user_rule());
  });
}

}  // namespace
}  // namespace gpusched::test
