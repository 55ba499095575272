// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/carbon_scaler.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace gpusched {
namespace {

constexpr Time slot = whole_seconds(3600);
using Replicas = std::vector<std::uint32_t>;

TEST(CarbonScaler, GivesReplicasWhereTheyEmitLeastForTheirWork) {
  // Work per watt of the first replica 1 / 100, of the second 0.5 / 100.
  const std::vector<ReplicaPoint> points{{100, 1}, {200, 1.5}};
  const std::vector<double> intensities{10, 1, 4, 2};
  const auto replicas = [&](double work) { return carbon_scaler_plan(intensities, points, work, slot).replicas; };
  EXPECT_EQ(replicas(1), (Replicas{0, 1, 0, 0}));
  EXPECT_EQ(replicas(1.2), (Replicas{0, 2, 0, 0}));  // 0.5 / 1 and 1 / 2: of equals the earliest
  EXPECT_EQ(replicas(2.5), (Replicas{0, 2, 0, 1}));
  EXPECT_EQ(replicas(3.1), (Replicas{0, 2, 1, 1}));  // 1 / 4 and 0.5 / 2
  EXPECT_EQ(replicas(4), (Replicas{0, 2, 1, 2}));
  EXPECT_EQ(replicas(6), (Replicas{2, 2, 2, 2}));
  EXPECT_TRUE(carbon_scaler_plan(intensities, points, 6, slot).in_time);
  EXPECT_FALSE(carbon_scaler_plan(intensities, points, 6.1, slot).in_time);
  EXPECT_EQ(carbon_scaler_plan(intensities, points, 1, Time{slot.us / 2}).replicas, (Replicas{0, 2, 0, 1}));
}

TEST(CarbonScaler, TakesMarginalsInTheirOrder) {
  // The second replica is worth nothing, the third much, but cannot be had without it: it adds no work, so never.
  const std::vector<ReplicaPoint> stuck{{100, 1}, {200, 1}, {210, 3}};
  EXPECT_EQ(carbon_scaler_plan(std::vector<double>{1, 1}, stuck, 3, slot).replicas, (Replicas{1, 1}));
  // The second draws less than the first alone: free, so it comes before all that emits.
  const std::vector<ReplicaPoint> free{{100, 1}, {90, 2}};
  EXPECT_EQ(carbon_scaler_plan(std::vector<double>{1, 1}, free, 2, slot).replicas, (Replicas{2, 0}));
}

TEST(CarbonScaler, TakesTheCheapestSlotsWherePricesAreNegative) {
  const std::vector<double> prices{50, -10, -80, 40, -20, 0, -30};
  const auto replicas = [&](double work) {
    return carbon_scaler_plan(prices, std::vector<ReplicaPoint>{{1, 1}}, work, slot).replicas;
  };
  EXPECT_EQ(replicas(3), (Replicas{0, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(replicas(5), (Replicas{0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(replicas(6), (Replicas{0, 1, 1, 1, 1, 1, 1}));
  // A second replica does twice the work of the first, for which it saves half as much: 40, 15 and 10 by slot.
  EXPECT_EQ(carbon_scaler_plan(prices, std::vector<ReplicaPoint>{{1, 1}, {2, 3}}, 7, slot).replicas,
            (Replicas{0, 0, 2, 0, 1, 0, 2}));
}

// With marginals that fall, no plan of the same work emits less; the unit of the signal does not matter.
RC_GTEST_PROP(CarbonScaler, EmitsLeastWhereMarginalsFall, ()) {
  const auto slots = *rc::gen::inRange<std::size_t>(1, 5);
  std::vector<double> intensities;
  for (std::size_t i = 0; i < slots; ++i) intensities.push_back(*rc::gen::inRange(1, 20));
  std::vector<ReplicaPoint> points;
  for (int i = *rc::gen::inRange(1, 4), watts = 0, step = 1; i > 0; --i) {
    step += *rc::gen::inRange(0, 5);  // each replica adds the same work for no fewer watts
    watts += step;
    points.push_back({static_cast<double>(watts), static_cast<double>(points.size() + 1)});
  }
  const auto most = static_cast<int>(slots * points.size());
  const int work = *rc::gen::inRange(1, most + 1);
  const ReplicaPlan plan = carbon_scaler_plan(intensities, points, work, slot);
  RC_ASSERT(plan.in_time);
  const auto emitted = [&](const Replicas& replicas) {
    double sum = 0;
    for (std::size_t i = 0; i < slots; ++i) {
      if (replicas[i] > 0) sum += intensities[i] * points[replicas[i] - 1].watts;
    }
    return sum;
  };
  double least = 1e300;
  Replicas any(slots, 0);
  const auto base = points.size() + 1;
  std::size_t count = 1;
  for (std::size_t i = 0; i < slots; ++i) count *= base;
  for (std::size_t code = 0; code < count; ++code) {
    std::size_t rest = code, done = 0;
    for (auto& replicas : any) {
      replicas = static_cast<std::uint32_t>(rest % base);
      done += replicas;
      rest /= base;
    }
    if (static_cast<int>(done) >= work) least = std::min(least, emitted(any));
  }
  RC_ASSERT(emitted(plan.replicas) == least);
  for (double& intensity : intensities) intensity *= 4;
  RC_ASSERT(carbon_scaler_plan(intensities, points, work, slot).replicas == plan.replicas);
}

TEST(CarbonScaler, ExpectsTheMeanOfEachSlot) {
  const Signal signal({{Time{}, 2'000'000}, {Time{slot.us / 2}, 6'000'000}, {slot + slot, 1'000'000}});
  const Forecast perfect{.kind = Forecast::Kind::perfect};
  EXPECT_EQ(expected_slots(signal, perfect, Time{}, whole_seconds(4 * 3600 - 1), slot),
            (std::vector<double>{4, 6, 1}));  // the fourth would end too late
}

}  // namespace
}  // namespace gpusched
