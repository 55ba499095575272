// SPDX-License-Identifier: Apache-2.0
/// Conservative backfilling around any PriorityOrder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "src/policies/orders/list_scheduler.hpp"
#include "src/policies/queues/capacity_profile.hpp"
#include "src/policies/queues/estimated_ends.hpp"

namespace gpusched {

/// Every waiting job has a reservation, made when it arrives: the earliest hole that delays no reservation made before.
/// When jobs end early, the waiting ones, in priority order, move into earlier holes, each giving up its own only for
/// an earlier one. While estimates are not exceeded, no job starts later than any reservation that it ever had. When
/// some are, all reservations that no longer hold are made anew in priority order.
///
/// At most `depth` jobs hold reservations, in order of arrival; the others wait for one. The profile is kept from event
/// to event. An end that was not expected costs its change of the profile and, if capacity was freed, one search for an
/// earlier hole per reservation (capacity_profile.hpp: O(steps up to its own start, or more where nodes matter)).
class ConservativeBackfill {
 public:
  /// The profile has no past, so that OverrunRule::kill is as now.
  ConservativeBackfill(PriorityOrder order, AnyDurationEstimator estimator, OverrunRule overrun,
                       CapacityProfile profile, std::uint32_t depth)
      : name_(order.name + "+conservative"),
        queue_(std::move(order)),
        ends_(std::move(estimator), overrun == OverrunRule::kill ? OverrunRule::now : overrun),
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
    std::uint32_t shape = no_index;  ///< what the profile holds for it; its user may want another since
    Time start{};
    Time length{};
    std::vector<CapacityProfile::Part> parts = {};
    bool refused = false;  ///< nothing was given back since it was due and found no room
    [[nodiscard]] Time end() const { return start + length; }
  };

  void note_events(const View& view);
  void enter(const View& view, JobId job);
  void withdraw(const View& view, JobId job);
  void take_in(const View& view);
  [[nodiscard]] Time earliest_start(const View& view, const Plan& plan) const;
  void settle(const View& view);
  Time settle_ends(const View& view);
  void mend_plans(const View& view, Time taken_until);
  void improve(const View& view);
  void sort_by_priority(const View& view);
  void reserve(const View& view, Plan& plan);
  void change(const View& view, const Plan& plan, Time start, Time end, int sign);
  bool start_due(const View& view, Decision& decision);
  bool start(const View& view, Plan& plan, Decision& decision);
  void wake_for_next(const View& view, Decision& decision);

  std::string name_;
  OrderedQueue queue_;
  EstimatedEnds ends_;
  CapacityProfile profile_;
  std::uint32_t depth_;
  std::vector<Plan> plans_;  // sorted_ of them by priority, then the newer ones by arrival
  std::size_t sorted_ = 0;
  std::vector<Plan> runs_;        // by job: what the profile holds for a running one
  std::vector<Plan> departed_;    // runs that ended and that the profile still holds
  std::vector<JobId> moved_;      // running jobs of which the profile may hold another end than the believed one
  bool room_again_ = false;       // capacity was given back since all plans were last looked at
  std::vector<JobId> unplanned_;  // by arrival (QueuePlace); beyond the depth
  std::size_t next_unplanned_ = 0;
  std::vector<JobId> resized_;  // had a reservation or ran, and come back at this instant with another size
  Time next_wake_{};
  bool stale_ = false;    // a job started elsewhere than planned: the profile no longer agrees with the cluster
  bool refused_ = false;  // a due job found no room just now
};

}  // namespace gpusched
