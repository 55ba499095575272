// SPDX-License-Identifier: Apache-2.0
/// Conservative backfilling around any PriorityOrder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/decision.hpp"
#include "src/policies/capacity_profile.hpp"
#include "src/policies/estimated_ends.hpp"
#include "src/policies/list_scheduler.hpp"

namespace gpusched {

/// Every waiting job has a reservation, made when it arrives: the earliest hole that delays no reservation made before.
/// When jobs end early, the waiting ones, in priority order, move into earlier holes, each giving up its own only for
/// an earlier one. While estimates are not exceeded, no job starts later than any reservation that it ever had. When
/// some are, all reservations that no longer hold are made anew in priority order.
///
/// At most `depth` jobs hold reservations, in order of arrival; the others wait for one.
/// With S steps in the profile and C cells (capacity_profile.hpp), an arrival costs O(S C), or O(S^2 C) where nodes
/// matter; an early or late end costs that for every reservation.
class ConservativeBackfill {
 public:
  ConservativeBackfill(PriorityOrder order, AnyDurationEstimator estimator, CapacityProfile profile,
                       std::uint32_t depth)
      : name_(order.name + "+conservative"),
        queue_(std::move(order)),
        ends_(std::move(estimator), true),
        profile_(std::move(profile)),
        depth_(depth) {}

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool clairvoyant() const { return ends_.clairvoyant() || queue_.order().estimator.clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);

  /// The planned start of every waiting job that holds a reservation.
  [[nodiscard]] std::map<JobId, Time> reservations() const;

 private:
  struct Plan {
    JobId job = no_job;
    Time start{};
    Time length{};
    std::vector<CapacityProfile::Part> parts;
    [[nodiscard]] Time end() const { return start + length; }
  };

  void take_in(const View& view);
  void rebuild(const View& view);
  void improve(const View& view);
  void sort_by_priority(const View& view);
  void reserve(const View& view, Plan& plan);
  void change(const View& view, const Plan& plan, int sign);
  bool start_due(const View& view, Decision& decision);
  bool start(const Plan& plan, Decision& decision);
  void wake_for_next(const View& view, Decision& decision);

  std::string name_;
  OrderedQueue queue_;
  EstimatedEnds ends_;
  CapacityProfile profile_;
  std::uint32_t depth_;
  std::vector<Plan> plans_;
  std::vector<JobId> unplanned_;  // by arrival; beyond the depth
  std::size_t next_unplanned_ = 0;
  Time next_wake_{};
  bool stale_ = false;  // the profile no longer tells what happens
};

}  // namespace gpusched
