// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/kinetic_tournament.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace gpusched {
namespace {

TEST(KineticTournament, LineOvertakesAtTheCrossing) {
  KineticTournament jobs(true);
  // Growth 1 since 0 s, growth 3 since 4 s: equal at 6 s, where the lower id still leads.
  jobs.push({1, whole_seconds(0), JobId{0}}, whole_seconds(0));
  jobs.push({3, whole_seconds(4), JobId{1}}, whole_seconds(4));
  EXPECT_EQ(jobs[jobs.first(whole_seconds(5))].job, JobId{0});
  EXPECT_EQ(jobs[jobs.first(whole_seconds(6))].job, JobId{0});
  EXPECT_EQ(jobs[jobs.first(whole_seconds(6) + Time{1})].job, JobId{1});
}

TEST(KineticTournament, ComparesProductsThatDoublesRoundTogether) {
  // 3 x 2^52 us apart by one in 2^53: equal as doubles, not equal as products.
  const Time now{(std::int64_t{1} << 60) + 1};
  const Claim longer{1, Time{0}, JobId{1}};
  const Claim shorter{1, Time{1}, JobId{0}};
  EXPECT_EQ(detail::compare_growth(longer, shorter, now), 1);
  EXPECT_EQ(detail::compare_growth(shorter, longer, now), -1);
  const Claim half{0.5, Time{-(std::int64_t{1} << 60) - 1}, JobId{2}};  // half the growth, twice the wait
  EXPECT_EQ(detail::compare_growth(longer, half, now), 0);
}

// Whatever is pushed and taken out, and whatever time passes in between, first() is what a scan finds.
RC_GTEST_PROP(KineticTournament, AgreesWithAScan, ()) {
  const bool ages = *rc::gen::arbitrary<bool>();
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 4), rc::gen::inRange(1, 9), rc::gen::inRange(0, 6)));
  KineticTournament tournament(ages);
  std::vector<std::pair<Claim, std::uint32_t>> members;  // with slots
  Time now{};
  std::uint32_t next_id = 0;
  for (const auto& [action, weight, pause] : steps) {
    now += Time{pause};
    if (action == 0 && !members.empty()) {
      const std::size_t victim = static_cast<std::size_t>(weight) % members.size();
      tournament.erase(members[victim].second, now);
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(victim));
    } else if (action != 3) {
      const Claim claim{weight / 4.0, now, JobId{next_id++}};
      members.emplace_back(claim, tournament.push(claim, now));
    }
    RC_ASSERT(tournament.size() == members.size());
    if (members.empty()) continue;
    Claim best = members.front().first;
    for (const auto& [claim, slot] : members) {
      if (tournament.before(claim, best, now)) best = claim;
    }
    RC_ASSERT(tournament[tournament.first(now)].job == best.job);
  }
}

}  // namespace
}  // namespace gpusched
