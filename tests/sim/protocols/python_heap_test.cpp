// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/python_heap.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gpusched {
namespace {

struct Item {
  int key = 0, number = 0;
};
struct ByKey {
  bool operator()(const Item& a, const Item& b) const { return a.key < b.key; }
};

std::vector<int> popped(PythonHeap<Item, ByKey>& heap) {
  std::vector<int> numbers;
  while (!heap.empty()) numbers.push_back(heap.pop().number);
  return numbers;
}

// The orders that CPython 3.11's heapq gives, equal keys included.
TEST(PythonHeap, GivesEqualItemsInPythonsOrder) {
  PythonHeap<Item, ByKey> heap;
  for (int i = 0; i < 16; ++i) heap.push({i * 7 % 4, i});
  EXPECT_EQ(popped(heap), (std::vector<int>{0, 12, 4, 8, 11, 3, 7, 15, 6, 2, 10, 14, 1, 13, 9, 5}));
  for (int i = 0; i < 9; ++i) heap.push({0, i});
  EXPECT_EQ(popped(heap), (std::vector<int>{0, 2, 6, 8, 5, 7, 4, 1, 3}));
}

TEST(PythonHeap, GivesPythonsOrderWherePushesAndPopsMix) {
  PythonHeap<Item, ByKey> heap;
  std::vector<int> numbers;
  for (int i = 0; i < 24; ++i) {
    heap.push({i * 5 % 3, i});
    if (i % 3 == 2) numbers.push_back(heap.pop().number);
  }
  for (const int number : popped(heap)) numbers.push_back(number);
  EXPECT_EQ(numbers,
            (std::vector<int>{0, 3, 6, 9, 12, 15, 18, 21, 17, 20, 8, 5, 14, 2, 11, 23, 19, 10, 1, 4, 16, 13, 22, 7}));
}

}  // namespace
}  // namespace gpusched
