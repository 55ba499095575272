// SPDX-License-Identifier: Apache-2.0
#include "gpusched/engine/event_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace gpusched {
namespace {

TEST(EventQueue, OrdersOneInstantByKindThenByPush) {
  EventQueue queue;
  queue.push(Time{5}, EventKind::wake, no_job, 0);
  queue.push(Time{5}, EventKind::finish, JobId{9}, 0);
  queue.push(Time{5}, EventKind::finish, JobId{1}, 0);
  queue.push(Time{4}, EventKind::wake, no_job, 0);
  std::vector<std::pair<std::int64_t, JobId>> order;
  for (; !queue.empty(); queue.pop()) order.emplace_back(queue.top().time.us, queue.top().job);
  const std::vector<std::pair<std::int64_t, JobId>> expected{{4, no_job}, {5, JobId{9}}, {5, JobId{1}}, {5, no_job}};
  EXPECT_EQ(order, expected);
}

RC_GTEST_PROP(EventQueue, PopsInTheTotalOrderHoweverPushesAndPopsMix, (const std::vector<std::int8_t>& steps)) {
  EventQueue queue;
  std::vector<std::tuple<std::int64_t, EventKind, std::uint32_t>> waiting;  // time, kind, sequence
  std::uint32_t sequence = 0;
  const auto pop_and_compare = [&] {
    const auto least = std::min_element(waiting.begin(), waiting.end());
    RC_ASSERT(queue.top().time.us == std::get<0>(*least));
    RC_ASSERT(queue.top().kind() == std::get<1>(*least));
    RC_ASSERT(queue.top().generation == std::get<2>(*least));
    waiting.erase(least);
    queue.pop();
  };
  for (const std::int8_t step : steps) {
    if (step % 3 == 0 && !waiting.empty()) {
      pop_and_compare();
      continue;
    }
    const EventKind kind = step % 2 == 0 ? EventKind::finish : EventKind::wake;
    queue.push(Time{step / 4}, kind, JobId{0}, sequence);  // the generation carries the sequence to the comparison
    waiting.emplace_back(step / 4, kind, sequence++);
  }
  while (!waiting.empty()) pop_and_compare();
  RC_ASSERT(queue.empty());
}

}  // namespace
}  // namespace gpusched
