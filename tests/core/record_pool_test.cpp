// SPDX-License-Identifier: Apache-2.0
#include "gpusched/core/record_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpusched::test {
namespace {

struct Record {
  int value = 0;
  std::uint32_t next = no_index;
};
using Pool = RecordPool<Record, &Record::next>;

std::vector<int> values(const Pool& pool, std::uint32_t head) {
  std::vector<int> list;
  for (std::uint32_t at = head; at != no_index; at = pool[at].next) list.push_back(pool[at].value);
  return list;
}

TEST(RecordPool, ListsDoNotDisturbEachOther) {
  Pool pool;
  const std::uint32_t odd = pool.add({3, pool.add({1, no_index})});
  const std::uint32_t even = pool.add({4, pool.add({2, no_index})});
  EXPECT_EQ(values(pool, odd), (std::vector{3, 1}));
  EXPECT_EQ(values(pool, even), (std::vector{4, 2}));
  pool.remove_list(odd);
  EXPECT_EQ(values(pool, even), (std::vector{4, 2}));
}

TEST(RecordPool, RemovedRecordsAreReusedTheLastFirst) {
  Pool pool;
  const std::uint32_t first = pool.add({1, no_index});
  const std::uint32_t second = pool.add({2, no_index});
  pool.remove(first);
  pool.remove(second);
  EXPECT_EQ(pool.add({3, no_index}), second);
  EXPECT_EQ(pool.add({4, no_index}), first);
  EXPECT_EQ(pool.add({5, no_index}), 2u);
}

TEST(RecordPool, ACopyGoesOnByItself) {
  Pool pool;
  const std::uint32_t head = pool.add({2, pool.add({1, no_index})});
  Pool copy = pool;
  pool.remove_list(head);
  pool.add({7, no_index});
  EXPECT_EQ(values(copy, head), (std::vector{2, 1}));
  EXPECT_EQ(copy.add({3, no_index}), 2u);
}

}  // namespace
}  // namespace gpusched::test
