// SPDX-License-Identifier: Apache-2.0
// Every policy takes the order of arrival from View::queue_place(): a job that waited for the end of others comes in
// when these have ended, as if it were submitted then, and one that comes back keeps its place.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

std::vector<Span> under(const std::string& policy, const JobTable& jobs, const RunInputs& inputs,
                        const EngineOptions& options = {}) {
  const Cluster cluster = Cluster::homogeneous(1, 1);
  const std::size_t plus = policy.find('+');
  auto made = make({policy.substr(0, plus), plus == std::string::npos ? "" : policy.substr(plus + 1)}, jobs, cluster);
  EXPECT_TRUE(made.has_value()) << policy;
  Engine engine(jobs, cluster, options, inputs);
  EXPECT_TRUE(simulate(engine, *made)) << policy;
  return spans_of(engine);
}

// D runs until 100,000; A waits for it, B for nobody since 50,000: B has waited for longer.
TEST(QueuePlaces, AReleasedJobStandsBehindThoseThatWaited) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100'000, .user = "u", .vc = "v"},
                                  {.submit = 2, .work = 100, .user = "u", .vc = "v", .after = {"0"}},
                                  {.submit = 50'000, .work = 100, .user = "u", .vc = "v"}});
  for (const char* policy : {"fifo", "fifo-skip", "slurm{weight_age=1000000}", "slurm+easy", "k8s", "drf", "lsf",
                             "longest-waiting-user", "fifo+easy", "fifo+conservative", "max-min", "volcano"}) {
    EXPECT_EQ(under(policy, jobs, {})[2].start, 100'000) << policy;
    EXPECT_EQ(under(policy, jobs, {})[1].start, 100'100) << policy;
  }
}

// The first job is killed at 50 and comes back at 60 before the second, which waits since 10.
TEST(QueuePlaces, AKilledJobKeepsItsPlace) {
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 100, .user = "u", .vc = "v"}, {.submit = 10, .work = 100, .user = "u", .vc = "v"}});
  NodeFailures failures;
  const std::vector<NodeChange> changes{{whole_seconds(50), NodeId{0}, false}, {whole_seconds(60), NodeId{0}, true}};
  failures.add_changes(changes);
  for (const char* policy : {"fifo", "fifo-skip", "slurm{weight_age=1000000}", "k8s", "drf", "lsf",
                             "longest-waiting-user", "fifo+easy", "max-min", "volcano"}) {
    const std::vector<Span> spans = under(policy, jobs, {.failures = &failures});
    EXPECT_EQ(spans[0].end, 160) << policy;
    EXPECT_EQ(spans[1].start, 160) << policy;
  }
}

TEST(QueuePlaces, ARetriedJobKeepsItsPlace) {
  const JobTable jobs = table_of({{.submit = 0, .work = 20, .attempts = {10, 10}}, {.submit = 5, .work = 10}});
  for (const char* policy : {"fifo", "fifo-skip", "fifo+easy"}) {
    EXPECT_EQ(under(policy, jobs, {})[0].end, 20) << policy;
  }
}

}  // namespace
}  // namespace gpusched::test
