// SPDX-License-Identifier: Apache-2.0
// HeliosArtifact's four policies, which decide at events, against its loop over every second.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/differential/differential_support.hpp"
#include "tests/differential/reference_helios.hpp"

namespace gpusched::test {
namespace {

struct HeliosCase {
  Cluster cluster = random_cluster();
  std::vector<Row> rows = {};
  std::vector<std::string> queues = {};
};

// Gangs of one-GPU tasks of known virtual clusters. Each takes a second at least, as a job of the artifact ends at a
// later second than that at which it starts.
HeliosCase random_helios_case() {
  using rc::gen::inRange;
  HeliosCase c;
  for (const VirtualCluster& vc : c.cluster.vcs) c.queues.push_back(vc.name);
  c.queues.push_back("");
  const bool owned = !c.cluster.vcs.empty();
  c.rows.resize(*inRange<std::size_t>(1, 11));
  for (Row& row : c.rows) {
    row.submit = *inRange<std::int64_t>(0, 24);
    row.work = *inRange<std::int64_t>(1, 40);
    row.gpus = *inRange<std::uint32_t>(1, 12);
    row.user = *rc::gen::element<std::string_view>("ann", "bob", "cid");
    row.vc = owned ? *rc::gen::element<std::string_view>("a", "b") : *rc::gen::element<std::string_view>("", "x");
    row.estimate = *inRange<std::int64_t>(1, 40);
  }
  std::stable_sort(c.rows.begin(), c.rows.end(), [](const Row& a, const Row& b) { return a.submit < b.submit; });
  std::erase_if(c.rows, [&](const Row& row) {
    World world({row}, c.cluster);
    return !helios_start(world, world.jobs.front());
  });
  RC_PRE(!c.rows.empty());
  return c;
}

std::int64_t exact_us(const World&, const WorldJob& job) { return job.attempts.front() * 1'000'000; }

HeliosEstimate asked_us(const std::vector<Row>& rows) {
  return
      [rows](const World&, const WorldJob& job) { return rows[static_cast<std::size_t>(job.id)].estimate * 1'000'000; };
}

TEST(DifferentialHelios, Fifo) {
  check_many(3000, [] {
    const HeliosCase c = random_helios_case();
    const auto same = [](const World&, const WorldJob&) { return std::int64_t{0}; };
    expect_same("fifo@helios", c.rows, c.cluster, HeliosOrderRule(c.queues, same));
  });
}

TEST(DifferentialHelios, Sjf) {
  check_many(3000, [] {
    const HeliosCase c = random_helios_case();
    const bool exact = *rc::gen::arbitrary<bool>();
    expect_same(exact ? "sjf@helios" : "sjf@helios{estimate=user}", c.rows, c.cluster,
                HeliosOrderRule(c.queues, exact ? HeliosEstimate(exact_us) : asked_us(c.rows)));
  });
}

// What is estimated from finished jobs changes while a job waits; its priority does not.
TEST(DifferentialHelios, Qssf) {
  check_many(3000, [] {
    const HeliosCase c = random_helios_case();
    const auto how = *rc::gen::element<std::string>("exact", "user", "user-mean");
    const HeliosEstimate estimate = how == "exact"  ? HeliosEstimate(exact_us)
                                    : how == "user" ? asked_us(c.rows)
                                                    : HeliosEstimate(user_mean_us);
    expect_same("qssf@helios{estimate=" + how + "}", c.rows, c.cluster, HeliosQssfRule(c.queues, estimate));
  });
}

TEST(DifferentialHelios, Srtf) {
  check_many(3000, [] {
    const HeliosCase c = random_helios_case();
    expect_same("srtf@helios", c.rows, c.cluster, HeliosSrtfRule(c.queues));
  });
}

}  // namespace
}  // namespace gpusched::test
