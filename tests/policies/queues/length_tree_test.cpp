// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/length_tree.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace gpusched {
namespace {

using Entries = std::vector<LengthTree::Entry>;

JobId first_by_scan(const Entries& entries, const ClaimOrder& order, Time limit, Time now) {
  Claim best;
  for (const auto& [claim, length] : entries) {
    if (length <= limit && (best.job == no_job || order.before(claim, best, now))) best = claim;
  }
  return best.job;
}

TEST(LengthTree, FirstOfThoseShortEnough) {
  LengthTree tree(ClaimOrder{});
  tree.fill({{{3, {}, JobId{0}}, Time{10}}, {{2, {}, JobId{1}}, Time{20}}, {{1, {}, JobId{2}}, Time{30}}}, {});
  EXPECT_EQ(tree.first(Time{9}, {}), no_job);
  EXPECT_EQ(tree.first(Time{10}, {}), JobId{0});
  EXPECT_EQ(tree.first(Time{29}, {}), JobId{1});
  EXPECT_EQ(tree.first(Time::max(), {}), JobId{2});
}

TEST(LengthTree, LineOvertakesAtTheCrossing) {
  LengthTree tree(ClaimOrder{.ages = true});
  // Growth 1 since 0 s, growth 3 since 4 s: equal at 6 s, where the lower id still leads.
  tree.push({{1, whole_seconds(0), JobId{0}}, Time{10}}, whole_seconds(0));
  tree.push({{3, whole_seconds(4), JobId{1}}, Time{20}}, whole_seconds(4));
  EXPECT_EQ(tree.first(Time{20}, whole_seconds(6)), JobId{0});
  EXPECT_EQ(tree.first(Time{20}, whole_seconds(6) + Time{1}), JobId{1});
  EXPECT_EQ(tree.first(Time{19}, whole_seconds(6) + Time{1}), JobId{0});
}

// Whatever is pushed, filled in and taken out, and whatever time passes in between, first() is what a scan finds.
RC_GTEST_PROP(LengthTree, AgreesWithAScan, ()) {
  const ClaimOrder order{.ages = *rc::gen::arbitrary<bool>()};
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 12), rc::gen::inRange(1, 9), rc::gen::inRange(0, 6), rc::gen::inRange(0, 12)));
  LengthTree tree(order);
  Entries members;
  Time now{};
  std::uint32_t next_id = 0;
  for (const auto& [action, weight, pause, length] : steps) {
    now += Time{pause};
    if (action < 4 && !members.empty()) {
      const auto victim = members.begin() + weight % static_cast<int>(members.size());
      tree.erase(*victim, now);
      members.erase(victim);
    } else if (action == 4) {
      tree = LengthTree(order);
      tree.fill(members, now);
    } else if (action < 11) {
      members.push_back({{weight / 4.0, now, JobId{next_id++}}, Time{length}});
      tree.push(members.back(), now);
    }
    RC_ASSERT(tree.size() == members.size());
    for (int limit = -1; limit <= 12; ++limit) {
      RC_ASSERT(tree.first(Time{limit}, now) == first_by_scan(members, order, Time{limit}, now));
    }
  }
}

// What makes it O(log n): lengths that come in order, or are all alike, leave no long chain to walk.
TEST(LengthTree, StaysFlat) {
  for (const std::int64_t step : {-1, 0, 1}) {
    for (const bool at_once : {false, true}) {
      LengthTree tree(ClaimOrder{});
      Entries entries;
      for (std::uint32_t i = 0; i < 10'000; ++i) {
        entries.push_back({{1.0, {}, JobId{i}}, Time{20'000 + step * std::int64_t{i}}});
        if (!at_once) tree.push(entries.back(), {});
      }
      if (at_once) tree.fill(entries, {});
      // log2 of 10,000 is 13.3; the height of a random search tree that large is about 30.
      EXPECT_LE(tree.height(), 45u) << step << ' ' << at_once;
    }
  }
}

}  // namespace
}  // namespace gpusched
