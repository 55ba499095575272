// SPDX-License-Identifier: Apache-2.0
#include "gpusched/policy/jobs_by_demand.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

struct RankedJob {
  mutable int rank;
  JobId job;
  friend bool operator<(const RankedJob& a, const RankedJob& b) {
    return a.rank != b.rank ? a.rank < b.rank : index(a.job) < index(b.job);
  }
};

std::vector<std::pair<int, JobId>> listed(const std::set<RankedJob>& jobs) {
  std::vector<std::pair<int, JobId>> list;
  for (const RankedJob& entry : jobs) list.emplace_back(entry.rank, entry.job);
  return list;
}

// However ranks change, and whoever overtakes whom, running jobs stand in the order of their new ranks.
TEST(JobsByDemand, PutsRunningJobsInOrderAgain) {
  test::check_many(3000, [] {
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 25);
    std::vector<test::Row> rows(count);
    for (test::Row& row : rows) row.gpus = *rc::gen::element(1u, 2u);
    const JobTable jobs = test::table_of(rows);
    Engine engine(jobs, Cluster::pool(64));
    engine.advance();
    const View view = engine.view();
    JobsByDemand<RankedJob> order;
    order.prepare(view);
    std::vector<int> ranks(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      ranks[i] = *rc::gen::inRange(0, 20);
      order.add_running(view, {ranks[i], JobId{i}});
    }
    for (int pass = 0; pass < 3; ++pass) {
      for (int& rank : ranks) {
        if (*rc::gen::inRange(0, 3) == 0) rank = *rc::gen::inRange(0, 20);
      }
      order.renew_running(view, 0, [&](const RankedJob& entry) { entry.rank = ranks[index(entry.job)]; });
      for (std::uint32_t demand = 0; demand < view.demand_count(); ++demand) {
        std::set<RankedJob> expected;
        for (std::uint32_t i = 0; i < count; ++i) {
          if (view.demand(JobId{i}) == demand) expected.insert({ranks[i], JobId{i}});
        }
        RC_ASSERT(listed(order.running(view, 0, demand)) == listed(expected));
      }
    }
  });
}

}  // namespace
}  // namespace gpusched
