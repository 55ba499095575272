// SPDX-License-Identifier: Apache-2.0
// The policy `carbon` against its definition, by all of its rules, on random small cases.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/differential/differential.hpp"
#include "tests/differential/reference_carbon.hpp"

namespace gpusched::test {
namespace {

// 18 s for all, or 9 s for those below 7.2 s.
const std::string one_wait = ",wait_h=0.005,short_h=0,step_s=3,slot_s=2,estimate=exact";
const std::string two_waits = ",wait_h=0.005,short_wait_h=0.0025,short_h=0.002,step_s=3,slot_s=2,estimate=exact";
const std::string foreseen = ",forecast=perfect";

ReferenceCarbon rule(const std::string& name) { return {.rule = name, .long_wait = 18}; }
ReferenceCarbon rule_by_length(const std::string& name) {
  return {.rule = name, .long_wait = 18, .short_wait = 9, .short_below = 8};
}

std::vector<Counterpart> pairs() {
  std::vector<Counterpart> all;
  for (const std::string name :
       {"no-wait", "all-wait", "lowest-slot", "lowest-window", "carbon-time", "ecovisor", "wait-awhile"}) {
    all.push_back({.policy = "carbon{rule=" + name + foreseen + one_wait + "}", .rule = rule(name)});
    all.push_back({.policy = "carbon{rule=" + name + foreseen + two_waits + "}", .rule = rule_by_length(name)});
  }
  ReferenceCarbon price = rule("lowest-window"), blocking = rule("lowest-slot"), deadline = rule("wait-awhile");
  price.values = changing_price;
  blocking.skips = false;
  deadline.deadline = "trace";
  all.push_back({.policy = "carbon{rule=lowest-window,figure=price" + foreseen + one_wait + "}", .rule = price});
  all.push_back({.policy = "carbon{rule=lowest-slot,skip=false" + foreseen + one_wait + "}", .rule = blocking});
  all.push_back({.policy = "carbon{rule=wait-awhile,deadline=trace" + foreseen + one_wait + "}", .rule = deadline});
  ReferenceCarbon yesterday = rule("lowest-slot");
  yesterday.perfect = false;
  all.push_back({.policy = "carbon{rule=lowest-slot" + one_wait + "}", .rule = yesterday});
  for (const std::string name : {"all-wait", "carbon-time"}) {
    ReferenceCarbon reserved = rule(name);
    reserved.reserved = 5;
    all.push_back({.policy = "carbon{rule=" + name + ",reserved_gpus=5" + foreseen + one_wait + "}", .rule = reserved});
  }
  return all;
}

// Jobs that work for a second at least: a plan of none is a microsecond, which the reference does not know.
std::vector<Row> working_rows() {
  std::vector<Row> rows = *gpu_rows(case_gpus);
  for (Row& row : rows) {
    row.work = std::max<std::int64_t>(row.work, 1);
    for (std::int64_t& work : row.attempts) work = std::max<std::int64_t>(work, 1);
  }
  return rows;
}

class CarbonDifferential : public testing::TestWithParam<Counterpart> {};

INSTANTIATE_TEST_SUITE_P(Rules, CarbonDifferential, testing::ValuesIn(pairs()),
                         [](const auto& instance) { return readable(instance.param.policy); });

TEST_P(CarbonDifferential, StartsAndEndsAgreeWithTheReference) {
  const bool sorts_a_day = GetParam().policy.find("ecovisor") != std::string::npos;
  check_many(sorts_a_day ? 40 : 300, [] {
    const bool pool = *rc::gen::arbitrary<bool>();
    const Cluster cluster = pool ? Cluster::pool(case_gpus) : *alike_clusters();
    expect_agreement(GetParam(), working_rows(), cluster, pool ? *preemption_costs() : ReferenceCosts{});
  });
}

TEST(CarbonUntilTheNextWorkday, WaitsForNineOClock) {
  ReferenceCarbon workday = rule("all-wait");
  workday.deadline = "next-workday";
  check_many(20, [&] {
    expect_agreement({.policy = "carbon{rule=all-wait,deadline=next-workday,estimate=exact}", .rule = workday},
                     working_rows(), Cluster::pool(case_gpus));
  });
}

}  // namespace
}  // namespace gpusched::test
