// SPDX-License-Identifier: Apache-2.0
#include "gpusched/core/id_set.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <iterator>
#include <set>
#include <vector>

namespace gpusched {
namespace {

TEST(IdSet, DefaultHoldsNothing) {
  EXPECT_TRUE(IdSet().empty());
  EXPECT_EQ(IdSet().first(), no_index);
  EXPECT_EQ(IdSet().last(), no_index);
}

// Capacities on both sides of each change of depth (64, 4096).
class IdSetCapacity : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Depths, IdSetCapacity, testing::Values(1u, 63u, 64u, 65u, 4096u, 4097u, 300'000u));

TEST_P(IdSetCapacity, FindsItsEnds) {
  const std::uint32_t capacity = GetParam();
  IdSet ids(capacity);
  EXPECT_TRUE(ids.empty());
  ids.insert(capacity - 1);
  EXPECT_EQ(ids.first(), capacity - 1);
  EXPECT_EQ(ids.last(), capacity - 1);
  EXPECT_EQ(ids.next(0), capacity - 1);
  EXPECT_EQ(ids.next(capacity), no_index);
  ids.insert(0);
  EXPECT_EQ(ids.first(), 0u);
  ids.erase(capacity - 1);
  ids.erase(0);
  EXPECT_TRUE(ids.empty());
}

RC_GTEST_PROP(IdSet, BehavesLikeASortedSet, ()) {
  const auto capacity = *rc::gen::inRange<std::uint32_t>(1, 10'000);
  const auto steps = *rc::gen::container<std::vector<std::pair<bool, std::uint32_t>>>(
      rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::inRange<std::uint32_t>(0, capacity)));
  IdSet ids(capacity);
  std::set<std::uint32_t> expected;
  for (const auto& [add, id] : steps) {
    if (add) {
      ids.insert(id);
      expected.insert(id);
    } else {
      ids.erase(id);
      expected.erase(id);
    }
    RC_ASSERT(ids.contains(id) == add);
    RC_ASSERT(ids.count() == expected.size());
    const auto next = expected.lower_bound(id);
    RC_ASSERT(ids.next(id) == (next == expected.end() ? no_index : *next));
    RC_ASSERT(ids.first() == (expected.empty() ? no_index : *expected.begin()));
    RC_ASSERT(ids.last() == (expected.empty() ? no_index : *expected.rbegin()));
  }
  std::uint32_t rank = 0;
  for (const std::uint32_t id : expected) RC_ASSERT(ids.nth(rank++) == id);
}

}  // namespace
}  // namespace gpusched
