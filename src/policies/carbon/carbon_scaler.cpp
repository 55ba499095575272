// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/carbon_scaler.hpp"

#include <queue>
#include <utility>

#include "src/policies/carbon/start_rules.hpp"

namespace gpusched {
namespace {

// The next replica of a slot.
struct Increment {
  bool is_free = false;
  double worth = 0;  // work by what it emits; of those that are free what is saved by work
  std::size_t slot = 0;

  friend bool operator<(const Increment& a, const Increment& b) {
    if (a.is_free != b.is_free) return b.is_free;
    return a.worth != b.worth ? a.worth < b.worth : a.slot > b.slot;
  }
};

double added(std::span<const ReplicaPoint> points, std::uint32_t replicas, double ReplicaPoint::*figure) {
  return points[replicas].*figure - (replicas == 0 ? 0 : points[replicas - 1].*figure);
}

}  // namespace

ReplicaPlan carbon_scaler_plan(std::span<const double> intensities, std::span<const ReplicaPoint> points, double work,
                               Time slot) {
  const double hours = to_seconds(slot) / 3600;
  ReplicaPlan plan{.replicas = std::vector<std::uint32_t>(intensities.size())};
  std::priority_queue<Increment> increments;
  const auto offer = [&](std::size_t which) {
    const std::uint32_t replicas = plan.replicas[which];
    if (replicas == points.size()) return;
    const double gain = added(points, replicas, &ReplicaPoint::throughput);
    const double emitted = added(points, replicas, &ReplicaPoint::watts) * intensities[which];
    const bool is_free = emitted <= 0;
    if (gain > 0) increments.push({is_free, is_free ? -emitted / gain : gain / emitted, which});
  };
  for (std::size_t which = 0; which < intensities.size(); ++which) offer(which);
  const double enough = work * (1 - 1e-12);  // sums of increments round
  while (plan.work < enough && !increments.empty()) {
    const std::size_t which = increments.top().slot;
    increments.pop();
    plan.work += added(points, plan.replicas[which], &ReplicaPoint::throughput) * hours;
    ++plan.replicas[which];
    offer(which);
  }
  plan.in_time = plan.work >= enough;
  return plan;
}

std::vector<double> expected_slots(const Signal& signal, const Forecast& forecast, Time now, Time deadline, Time slot) {
  GPUSCHED_ASSERT(slot > Time{}, "slots are some time apart");
  const Signal expected = expected_signal(signal, forecast, now, deadline);
  std::vector<double> means;
  for (Time begin = now; begin + slot <= deadline; begin += slot) {
    means.push_back(static_cast<double>(expected.integral(begin, begin + slot)) / 1e6 / static_cast<double>(slot.us));
  }
  return means;
}

}  // namespace gpusched
