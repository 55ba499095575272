// SPDX-License-Identifier: Apache-2.0
#include "gpusched/engine/effects/shared_pipe.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace gpusched::detail {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

TEST(SharedPipe, EqualTransfersTakeAsManyTimesAsLong) {
  for (const std::uint32_t count : {1u, 2u, 7u, 100u}) {
    SharedPipe pipe(50, 50);
    for (std::uint32_t i = 0; i < count; ++i) pipe.begin(Time{}, 150);
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(pipe.next_time(), whole_seconds(3 * count));
      EXPECT_EQ(pipe.pop(), i);
    }
    EXPECT_EQ(pipe.next_time(), Time::max());
  }
}

TEST(SharedPipe, ASingleTransferIsAsFastAsItsNode) {
  SharedPipe pipe(10, 25);
  pipe.begin(Time{}, 100);
  pipe.begin(Time{}, 100);
  EXPECT_EQ(pipe.next_time(), whole_seconds(10));
  pipe.begin(whole_seconds(5), 100);  // each 25 / 3
  EXPECT_EQ(pipe.next_time(), whole_seconds(11));
}

TEST(SharedPipe, WhoComesLaterSharesTheRest) {
  SharedPipe pipe(unbounded, 10);
  const std::uint32_t first = pipe.begin(Time{}, 100), second = pipe.begin(whole_seconds(4), 30);
  EXPECT_EQ(pipe.next_time(), whole_seconds(10));  // 30 at 5 a second; of the first, 30 are left
  EXPECT_EQ(pipe.pop(), second);
  EXPECT_EQ(pipe.next_time(), whole_seconds(13));
  EXPECT_EQ(pipe.pop(), first);
}

TEST(SharedPipe, WhatIsCancelledLeavesItsShareToTheOthers) {
  SharedPipe pipe(unbounded, 10);
  const std::uint32_t first = pipe.begin(Time{}, 100), second = pipe.begin(Time{}, 100);
  pipe.cancel(whole_seconds(10), first);
  EXPECT_EQ(pipe.next_time(), whole_seconds(15));
  EXPECT_EQ(pipe.pop(), second);
  const std::uint32_t third = pipe.begin(whole_seconds(20), 0);
  EXPECT_EQ(pipe.next_time(), whole_seconds(20));
  EXPECT_EQ(pipe.pop(), third);
}

// The bytes that each transfer moved by its end are those that it had, when the pipe is played second by second.
RC_GTEST_PROP(SharedPipe, MovesTheIntegralOfItsRate, ()) {
  const double each = *rc::gen::inRange(1, 20), all = *rc::gen::inRange(1, 60);
  SharedPipe pipe(each, all);
  struct Moving {
    double bytes, moved = 0;
  };
  std::map<std::uint32_t, Moving> moving;
  Time now{};
  const auto pass = [&](Time to) {
    const double rate = std::min(each, all / static_cast<double>(std::max<std::size_t>(moving.size(), 1)));
    for (auto& [number, transfer] : moving) transfer.moved += rate * to_seconds(to - now);
    now = to;
  };
  const auto end_until = [&](Time to) {
    while (pipe.next_time() <= to) {
      RC_ASSERT(pipe.next_time() >= now);
      pass(pipe.next_time());
      const auto ended = moving.find(pipe.pop());
      RC_ASSERT(ended != moving.end());
      RC_ASSERT(std::abs(ended->second.moved - ended->second.bytes) < 1e-3);
      moving.erase(ended);
    }
  };
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000));
  for (const int step : steps) {
    const Time next = now + Time{step * 10'000};
    end_until(next);
    pass(next);
    if (step % 5 == 0 && !moving.empty()) {
      pipe.cancel(now, moving.begin()->first);
      moving.erase(moving.begin());
    } else {
      const double bytes = step % 97;
      const std::uint32_t number = pipe.begin(now, bytes);
      RC_ASSERT(moving.emplace(number, Moving{bytes}).second);
    }
  }
  end_until(end_of_time);
  RC_ASSERT(moving.empty());
}

}  // namespace
}  // namespace gpusched::detail
