// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/waiting_by_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "tests/differential/check_many.hpp"

namespace gpusched {
namespace {

using Waiting = WaitingBySize<int>;
constexpr int end = std::numeric_limits<int>::max();

TEST(WaitingBySize, WalksInOrderUpToAPlaceAndGoesOnFromThere) {
  Waiting waiting;
  for (const auto& [place, size] : {std::pair{1, 4}, {2, 1}, {3, 4}, {4, 1}}) {
    waiting.insert(size, {place, JobId{static_cast<std::uint32_t>(place)}});
  }
  std::vector<int> asked;
  const auto all_start = [&](const Waiting::Entry& entry, std::int64_t) {
    asked.push_back(entry.place);
    return true;
  };
  waiting.begin_walk();
  waiting.walk_to(3, all_start);
  EXPECT_EQ(asked, (std::vector<int>{1, 2}));
  waiting.walk_to(end, all_start);
  EXPECT_EQ(asked, (std::vector<int>{1, 2, 3, 4}));
}

TEST(WaitingBySize, AsksNoLargerJobOnceOneDoesNotFitAndAllInTheNextWalk) {
  Waiting waiting;
  waiting.insert(4, {1, JobId{1}});
  waiting.insert(8, {2, JobId{2}});
  waiting.insert(2, {3, JobId{3}});
  std::vector<int> asked;
  const auto none_starts = [&](const Waiting::Entry& entry, std::int64_t) {
    asked.push_back(entry.place);
    return false;
  };
  for ([[maybe_unused]] const int walk : {1, 2}) {
    waiting.begin_walk();
    waiting.walk_to(end, none_starts);
  }
  EXPECT_EQ(asked, (std::vector<int>{1, 3, 1, 3}));
}

// ---- beside a plain list ----

struct Listed {
  Waiting::Entry entry;
  std::int64_t size = 0;
};

/// Jobs of a few sizes that come, go, and are walked through while capacity shrinks, beside a list that is looked
/// through from end to end.
class BesideAList {
 public:
  void insert(std::int64_t size) {
    const int place = *rc::gen::inRange(0, 100'000);
    if (!places_.insert(place).second) return;
    list_.push_back({{place, JobId{jobs_++}}, size});
    waiting_.insert(size, list_.back().entry);
  }

  void erase_one() {
    if (list_.empty()) return;
    const auto gone = list_.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(list_));
    waiting_.erase(gone->size, gone->entry);
    list_.erase(gone);
  }

  // Up to some places, between which others take capacity too; the last walks to the end, or leaves the rest.
  void walk(std::int64_t free) {
    waiting_.begin_walk();
    refused_.clear();
    auto stops = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100'000));
    if (*rc::gen::arbitrary<bool>()) stops.push_back(end);
    std::sort(stops.begin(), stops.end());
    int from = -1;
    for (const int stop : stops) {
      walk_to(from, stop, free);
      free -= std::min(free, *rc::gen::inRange<std::int64_t>(0, 4));
      from = stop;
    }
  }

 private:
  void walk_to(int from, int stop, std::int64_t& free) {
    std::sort(list_.begin(), list_.end(), [](const Listed& a, const Listed& b) { return a.entry < b.entry; });
    std::vector<JobId> expected, taken;
    std::int64_t left = free;
    std::erase_if(list_, [&](const Listed& job) {
      const bool starts = job.entry.place >= from && job.entry.place < stop && job.size <= left;
      left -= starts ? job.size : 0;
      if (starts) expected.push_back(job.entry.job);
      return starts;
    });
    waiting_.walk_to(stop, [&](const Waiting::Entry& entry, std::int64_t size) {
      RC_ASSERT(entry.place < stop);
      if (size > free) {
        for (const std::int64_t smaller : refused_) RC_ASSERT(size < smaller);  // the rest costs nothing
        refused_.push_back(size);
        return false;
      }
      free -= size;
      taken.push_back(entry.job);
      return true;
    });
    RC_ASSERT(taken == expected);
    RC_ASSERT(free == left);
  }

  Waiting waiting_;
  std::vector<Listed> list_;
  std::set<int> places_;
  std::vector<std::int64_t> refused_;  // sizes, in this walk
  std::uint32_t jobs_ = 0;
};

TEST(WaitingBySize, TakesWhatAListWalkedFromEndToEndGives) {
  test::check_many(2000, [] {
    BesideAList both;
    const auto sizes =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 9)));
    const int steps = *rc::gen::inRange(1, 60);
    for (int step = 0; step < steps; ++step) {
      const int action = *rc::gen::inRange(0, 10);
      if (action < 7) {
        both.insert(*rc::gen::elementOf(sizes));
      } else if (action == 7) {
        both.erase_one();
      } else {
        both.walk(*rc::gen::inRange<std::int64_t>(0, 30));
      }
    }
  });
}

}  // namespace
}  // namespace gpusched
