// SPDX-License-Identifier: Apache-2.0
/// EASY backfilling around any PriorityOrder, and the reservation that it makes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/engine/cluster_mirror.hpp"
#include "gpusched/engine/decision.hpp"
#include "src/policies/backfill/backfill_queue.hpp"

namespace gpusched {

/// The earliest time at which a job that does not fit now should fit, by estimated ends, and the cluster at that time.
class Reservation {
 public:
  /// Releases running jobs on a copy of the cluster in order of their estimated ends until `job` fits. O(log n) for
  /// each of their nodes.
  void make(const View& view, const EstimatedEnds& ends, JobId job);

  /// Time::max() when the job does not fit even then.
  [[nodiscard]] Time time() const { return time_; }
  /// Lets another job of the same queue hold at the reserved instant what the grant list holds in `present`, GPUs and
  /// MIG instances alike, if the reserved job still fits then.
  bool take_beside(const Shape& shape, const ClusterState& present, std::uint32_t held);

 private:
  [[nodiscard]] bool fits() { return mirror_.state().fits(shape_, vc_, rule_, speeds_); }

  ClusterMirror mirror_;  // without the reserved job
  Time time_{};
  Shape shape_{};  // of the reserved job
  std::uint32_t vc_ = 0;
  Placement rule_ = Placement::consolidate;
  std::span<const RatePpm> speeds_;  // borrowed from the runtime model
};

/// Aggressive backfilling: the first waiting job that does not fit gets a reservation, made anew at every event; others
/// start in priority order where they do not delay it: they should end by then, or they leave room for it on the nodes
/// they take. Reservations are per scheduling queue and hold against jobs of that queue. While estimates are not
/// exceeded, a job that stays first never starts later than its reservation.
///
/// An event costs O(shapes + log n), and as much for every start; with something to backfill, also O(log n) for each
/// job that should end before the reservation. In an order that ages, read log^2 n, amortised.
class EasyBackfill {
 public:
  EasyBackfill(PriorityOrder order, AnyDurationEstimator estimator, OverrunRule overrun)
      : name_(order.name + "+easy"),
        queue_(std::move(order), std::move(estimator), overrun, BackfillQueue::First::by_priority) {}

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool clairvoyant() const { return queue_.clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);

  /// The reserved time of `job`, if the last decision made one for it (it does so only when others might start first).
  [[nodiscard]] std::optional<Time> reserved(JobId job) const {
    return job == reserved_job_ ? std::optional(reservation_.time()) : std::nullopt;
  }

 private:
  // What became of a job that was to start beside the reserved one.
  enum class Beside : std::uint8_t { started, no_room, delays_head };

  void backfill(std::uint32_t queue, JobId head, const OracleView& view, Decision& decision);
  [[nodiscard]] JobId next_unlimited(std::uint32_t queue, const View& view);
  void add_limited(JobId like, std::uint32_t queue, const View& view);
  Beside start_beside(JobId job, bool limited, std::uint32_t queue, const OracleView& view, Decision& decision);

  std::string name_;
  BackfillQueue queue_;
  Reservation reservation_;
  JobId reserved_job_ = no_job;
  ClusterMirror present_;  // the cluster as this decision leaves it
  // The first that should end before the reservation, of each demand that has no room beside the reserved job.
  std::vector<JobId> limited_;
  std::vector<NodeTasks> nodes_;
};

}  // namespace gpusched
