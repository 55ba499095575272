// SPDX-License-Identifier: Apache-2.0
// Which server comes back first: cases worked out by hand, and Lyra's rule beside an exhaustive search.
#include "src/policies/preemptive/loaned_servers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched {
namespace {

constexpr ServerCost whole = LoanedServers::whole_job;

// The servers of each job, which is not a service.
LoanedServers lent(std::uint32_t servers, const std::vector<std::vector<std::uint32_t>>& jobs) {
  LoanedServers result(servers);
  for (std::uint32_t job = 0; job < jobs.size(); ++job) result.enter(JobId{job}, jobs[job], false);
  return result;
}

// How many jobs are stopped until so many of the servers hold none.
std::uint32_t stopped_by_rule(LoanedServers servers, std::uint32_t wanted) {
  std::uint32_t stopped = 0;
  const auto idle = [&] {
    std::uint32_t count = 0;
    for (std::uint32_t server = 0; server < servers.size(); ++server) count += servers.is_idle(server) ? 1 : 0;
    return count;
  };
  while (idle() < wanted) {
    const auto server = servers.cheapest([](std::uint32_t) { return true; });
    for (const JobId job : std::vector<JobId>(servers.jobs(*server))) {
      servers.leave(job);
      ++stopped;
    }
  }
  return stopped;
}

// The same by trying every set of jobs.
std::uint32_t fewest_stopped(std::uint32_t servers, const std::vector<std::vector<std::uint32_t>>& jobs,
                             std::uint32_t wanted) {
  auto fewest = static_cast<std::uint32_t>(jobs.size());
  for (std::uint32_t set = 0; set < 1u << jobs.size(); ++set) {
    std::vector<bool> busy(servers, false);
    for (std::uint32_t job = 0; job < jobs.size(); ++job) {
      if ((set >> job & 1u) != 0) continue;
      for (const std::uint32_t server : jobs[job]) busy[server] = true;
    }
    const auto idle = static_cast<std::uint32_t>(std::count(busy.begin(), busy.end(), false));
    if (idle >= wanted) fewest = std::min(fewest, static_cast<std::uint32_t>(std::popcount(set)));
  }
  return fewest;
}

TEST(LoanedServers, CountAJobByItsServers) {
  LoanedServers servers = lent(4, {{0, 1, 2}, {1}, {2}, {2}, {3}});
  EXPECT_EQ(servers.cost(0), whole / 3);
  EXPECT_EQ(servers.cost(1), whole / 3 + whole);
  EXPECT_EQ(servers.cost(2), whole / 3 + 2 * whole);
  EXPECT_EQ(servers.cost(3), whole);
  EXPECT_EQ(3 * (whole / 3), whole);
  const auto any = [](std::uint32_t) { return true; };
  EXPECT_EQ(servers.cheapest(any), 0u);
  servers.leave(JobId{0});
  EXPECT_TRUE(servers.is_idle(0));
  EXPECT_EQ(servers.cost(1), whole);
  EXPECT_EQ(servers.cheapest(any), 1u);  // of two equal ones the first
  EXPECT_EQ(servers.cheapest([](std::uint32_t server) { return server != 1; }), 3u);
  EXPECT_EQ(servers.cheapest([](std::uint32_t server) { return server == 0; }), std::nullopt);
}

TEST(LoanedServers, ServicesCostNothingAndAreNotTakenBack) {
  LoanedServers servers(2);
  servers.enter(JobId{0}, {0, 1}, true);
  servers.enter(JobId{1}, {0}, true);
  EXPECT_TRUE(servers.serves(0) && !servers.is_lent(0) && !servers.is_idle(0));
  EXPECT_EQ(servers.cheapest([](std::uint32_t) { return true; }), std::nullopt);
  servers.leave(JobId{0});
  EXPECT_TRUE(servers.is_idle(1) && servers.serves(0));
}

// Three servers are wanted. Were each job counted whole on each of its servers, server 0 would be the cheapest, and
// three jobs would be stopped.
TEST(LoanedServers, OfJobsOverSeveralServersGoTogether) {
  const std::vector<std::vector<std::uint32_t>> jobs{{0}, {1, 2, 3}, {1, 2, 3}};
  EXPECT_EQ(stopped_by_rule(lent(4, jobs), 3), 2u);
  EXPECT_EQ(fewest_stopped(4, jobs, 3), 2u);
}

// The rule is greedy: all three servers cost 4/3, and the first leaves both others to the same two jobs.
TEST(LoanedServers, AreNotAlwaysChosenBest) {
  const std::vector<std::vector<std::uint32_t>> jobs{{0, 1, 2}, {1, 2}, {1, 2}, {0}};
  EXPECT_EQ(fewest_stopped(3, jobs, 2), 3u);
  EXPECT_EQ(stopped_by_rule(lent(3, jobs), 2), 4u);
}

TEST(LoanedServers, StopTheFewestWhereEachJobHasOneServer) {
  Rng rng = Rng(1).split("loaned servers");
  for (std::uint64_t i = 0; i < test::random_runs(300); ++i) {
    const auto servers = static_cast<std::uint32_t>(1 + rng.below(6));
    std::vector<std::vector<std::uint32_t>> jobs(1 + rng.below(9));
    for (auto& held : jobs) held = {static_cast<std::uint32_t>(rng.below(servers))};
    for (std::uint32_t wanted = 0; wanted <= servers; ++wanted) {
      ASSERT_EQ(stopped_by_rule(lent(servers, jobs), wanted), fewest_stopped(servers, jobs, wanted)) << i;
    }
  }
}

TEST(LoanedServers, MostlyStopTheFewestWhereJobsHaveSeveral) {
  Rng rng = Rng(2).split("loaned servers");
  int cases = 0, best = 0;
  for (std::uint64_t i = 0; i < test::random_runs(300); ++i) {
    const auto servers = static_cast<std::uint32_t>(2 + rng.below(5));
    std::vector<std::vector<std::uint32_t>> jobs(1 + rng.below(8));
    for (auto& held : jobs) {
      for (std::uint32_t server = 0; server < servers; ++server) {
        if (rng.below(3) == 0) held.push_back(server);
      }
      if (held.empty()) held = {static_cast<std::uint32_t>(rng.below(servers))};
    }
    for (std::uint32_t wanted = 1; wanted < servers; ++wanted) {
      const std::uint32_t rule = stopped_by_rule(lent(servers, jobs), wanted);
      const std::uint32_t fewest = fewest_stopped(servers, jobs, wanted);
      ASSERT_LE(rule, 2 * fewest) << i;
      ++cases;
      best += rule == fewest ? 1 : 0;
    }
  }
  EXPECT_GT(best, cases * 9 / 10) << best << " of " << cases;
  EXPECT_LT(best, cases);
}

}  // namespace
}  // namespace gpusched
