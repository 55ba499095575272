// SPDX-License-Identifier: Apache-2.0
#include "src/base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <vector>

namespace gpusched {
namespace {

TEST(ForEachIndex, DoesEveryPieceOnce) {
  for (const std::uint64_t threads : {0, 1, 3, 64}) {
    std::vector<std::atomic<int>> times(40);
    for_each_index(times.size(), threads, [&](std::size_t i) { ++times[i]; });
    for (const auto& count : times) EXPECT_EQ(count, 1);
  }
  for_each_index(0, 4, [](std::size_t) { FAIL(); });
}

// An exception on a thread ended the whole program.
TEST(ForEachIndex, ThrowsAgainWhatAPieceThrew) {
  for (const std::uint64_t threads : {1, 4}) {
    std::atomic<int> begun = 0;
    const auto work = [&](std::size_t i) {
      ++begun;
      if (i == 5) throw std::bad_alloc();
    };
    EXPECT_THROW(for_each_index(1'000, threads, work), std::bad_alloc);
    // Several threads may begin any number of pieces before one of them throws.
    if (threads == 1) {
      EXPECT_EQ(begun, 6);
    }
  }
}

}  // namespace
}  // namespace gpusched
