// SPDX-License-Identifier: Apache-2.0
/// Queues with shares and preemption: YARN's capacity and fair schedulers, and a composition of Volcano's plugins.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/queues/dominant_shares.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The queues of a run as a tree, whose leaves are the owners of jobs: "root.a.b" lies below "root.a".
class QueueTree {
 public:
  /// `names[owner]` is the queue's path, "" an owner without jobs. A queue with jobs weighs what `weights` says, one
  /// without 1. Jobs of an inner queue compete with the queues below it as one more of weight 1.
  QueueTree(const std::vector<std::string>& names, const OwnerWeights& weights);

  /// Divides `total` from the root down by weight, each level a weighted max-min (deserved_shares) over the demands
  /// below.
  [[nodiscard]] std::vector<std::int64_t> divide(std::int64_t total, const std::vector<std::int64_t>& demands) const;

  [[nodiscard]] std::uint32_t owners() const { return owners_; }

 private:
  struct Queue {
    std::string path = {};
    std::int64_t weight_milli = 1000;
    std::uint32_t owner = no_index;  // no_index: an inner queue without jobs of its own
    std::vector<std::size_t> children = {};
  };
  std::size_t child(std::size_t parent, const std::string& path);
  [[nodiscard]] std::int64_t demand_below(std::size_t queue, const std::vector<std::int64_t>& demands) const;
  void divide(std::size_t queue, std::int64_t total, const std::vector<std::int64_t>& demands,
              std::vector<std::int64_t>& shares) const;

  std::vector<Queue> queues_{Queue{}};  // the root first
  std::uint32_t owners_;
};

/// Each queue has a due share of the GPUs. The queue that holds the smallest part of its due share (in millionths; a
/// queue whose share is zero comes last) starts its next job. A queue is short while it has a waiting job that would
/// not take it above its due share. A queue that has been short for `preemption_interval` preempts jobs of queues that
/// hold more than their share, newest first start first; whether that succeeds or not, its interval then begins anew.
/// All short queues are determined before any preemption of the instant.
class ShareQueues {
 public:
  struct Options {
    std::string name;
    OwnerColumn column = OwnerColumn::vc;
    bool among_active = false;    ///< due: a share of what active queues want; otherwise fixed, whoever is active
    bool pack = false;            ///< binpack: best-fit placement whatever the run's rule
    bool by_share = true;         ///< proportion: the poorest queue first; otherwise by submission
    bool by_priority = false;     ///< within a queue, higher job priority first
    bool preempt_within = false;  ///< a waiting job takes from running ones of its queue that have lower priority
    bool reclaim = true;          ///< a queue takes what it is due from queues that hold more than they are due
    Time preemption_interval = whole_seconds(15);
    /// drf: within a queue and priority, the user of the lowest dominant share first; and a waiting job takes from
    /// running ones of its queue, of other users and no higher priority, if after the exchange its user's share is
    /// below that of the user who lost the job, or within 1e-6 of it.
    std::optional<DominantShares> shares = {};
    std::uint32_t users = 1;  ///< with `shares`: how many the trace names
  };

  /// `total`: GPU thousandths to divide.
  ShareQueues(Options options, QueueTree tree, MilliGpu total);

  [[nodiscard]] std::string_view name() const { return options_.name; }

  void decide(const View& view, Decision& decision);

 private:
  using Class = ClassQueues::Class;

  void note(const View& view);
  void hold(const View& view, JobId job, std::int64_t sign);
  void start_waiting(const View& view, Decision& decision);
  bool preempt_within(const View& view, Decision& decision);
  void reclaim(const View& view, Decision& decision);
  bool start_by_force(const View& view, Decision& decision, const Class& jobs, const std::vector<JobId>& victims);
  [[nodiscard]] std::vector<JobId> over_their_due(const View& view) const;
  // Bounds over the running jobs of a queue; they save the search for victims where there can be none.
  struct Offer {
    std::int32_t least_priority = std::numeric_limits<std::int32_t>::max();
    std::int64_t greatest_share = -1;  // of a user, with `shares`
  };
  const Offer& offer(const View& view, std::uint32_t queue);
  // Whether any running job of its queue may be a victim of the class's first job.
  [[nodiscard]] bool may_take(const View& view, const Class& jobs, const Offer& offer) const {
    if (offer.least_priority < jobs.priority) return true;
    // The user's present share: a lower bound of the share after the start, and already computed.
    return options_.shares && offer.greatest_share >= options_.shares->share(user_of(jobs)) - DominantShares::delta &&
           offer.greatest_share >= share_then(view, jobs);
  }
  [[nodiscard]] std::vector<JobId> victims_within(const View& view, const Class& jobs, const Offer& offer) const;
  [[nodiscard]] std::int64_t share_then(const View& view, const Class& jobs) const {
    return options_.shares->share_after(user_of(jobs), view.shape(jobs.first()), +1) - DominantShares::delta;
  }
  [[nodiscard]] std::vector<JobId> lower_priorities(const View& view, const Class& jobs) const;
  [[nodiscard]] std::vector<JobId> richer_users(const View& view, const Class& jobs) const;
  [[nodiscard]] bool is_due(const View& view, const Class& jobs) const {
    return held_[queue_of(jobs)] + view.shape(jobs.first()).gpu_milli() <= due_[queue_of(jobs)];
  }
  [[nodiscard]] Placement placement(const View& view) const {
    return options_.pack ? Placement::best_fit : view.options().placement;
  }
  // Classes are told apart by queue and, with `shares`, by user too.
  [[nodiscard]] std::uint32_t queue_of(const Class& jobs) const { return jobs.owner / options_.users; }
  [[nodiscard]] std::uint32_t user_of(const Class& jobs) const { return jobs.owner % options_.users; }
  [[nodiscard]] std::uint32_t class_owner(const View& view, JobId job) const {
    const std::uint32_t queue = owner_of(options_.column, view, job);
    return options_.shares ? queue * options_.users + view.user(job) : queue;
  }

  Options options_;
  QueueTree tree_;
  MilliGpu total_;
  ClassQueues waiting_;
  PerOwner<MilliGpu> held_;             // GPU thousandths
  std::vector<std::int64_t> demanded_;  // held and waiting for
  std::vector<MilliGpu> due_;
  std::vector<Time> short_since_;             // waiting below its due since; max() = it is not
  std::vector<std::vector<JobId>> running_;   // of each queue, in arbitrary order
  std::vector<std::uint32_t> places_;         // by job: where it stands there
  std::vector<std::optional<Offer>> offers_;  // of each queue; empty: not yet computed
  std::vector<JobId> started_;                // in this decision, with `shares`: never victims
};

}  // namespace gpusched
