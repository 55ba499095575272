// SPDX-License-Identifier: Apache-2.0
/// The KAI scheduler's queues: guaranteed quotas, shares beyond them by priority and weight, reclaim and preemption.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "src/policies/queues/quota_jobs.hpp"

namespace gpusched {

/// What a queue is promised, in GPU thousandths.
struct KaiQueue {
  MilliGpu quota = 0;  ///< deserved
  MilliGpu limit = unlimited;
  double weight = 1;  ///< of what is left of the cluster, among queues of its priority
  double priority = 0;
};

/// The fair shares of queues that ask for so much, in GPU thousandths: first each gets its quota, as far as it asks for
/// it. The rest goes to the highest priority first, among equal ones by weight in rounds, in each of which a queue that
/// asks for more than its part gets the whole GPUs of it; what is left of that goes out GPU by GPU, to the largest
/// remainders first, of equal ones to the queue that comes first by `ties`, where there are any, or by its number.
/// Source: pkg/scheduler/plugins/proportion/resource_division of KAI-Scheduler, without past usage.
std::vector<MilliGpu> kai_fair_shares(const std::vector<KaiQueue>& queues, const std::vector<MilliGpu>& asked,
                                      MilliGpu total, const std::vector<std::uint32_t>& ties = {});

/// Rounds of the KAI scheduler over GPUs and one level of queues. A round allocates to waiting jobs, then reclaims,
/// then preempts; one that stopped somebody is followed by another at the same instant.
///
/// The next job comes from the queue that is not above its fair share; then which stays within its quota with the job;
/// then of higher priority; then which would hold the smallest part of what it may hold. Within a queue higher
/// priorities go first. A job beyond its queue's limit waits; jobs of priority `nonpreemptible_from` or more are never
/// stopped and start only within the quota.
///
/// A job whose queue stays within its fair share may reclaim from queues above what they may hold, or, staying within
/// its quota, from queues above their quotas: from the last in the order of queues first, and there the lowest
/// priority, then the newest job. Else it may preempt lower priorities of its own queue. Sources: KAI-Scheduler,
/// docs/fairness, docs/scheduling-deep-dive, pkg/scheduler/plugins/proportion (queue_order, reclaimable) and
/// pkg/scheduler/actions.
class Kai {
 public:
  struct Rules {
    std::int64_t nonpreemptible_from = std::numeric_limits<std::int64_t>::max();
    bool reclaims = true;
    bool preempts = true;
  };

  /// `total`: GPU thousandths of the cluster.
  Kai(QuotaJobs jobs, std::vector<KaiQueue> queues, MilliGpu total, Rules rules)
      : jobs_(std::move(jobs)), queues_(std::move(queues)), total_(total), rules_(rules) {}

  [[nodiscard]] static std::string_view name() { return "kai"; }
  void decide(const View& view, Decision& decision);

 private:
  using Head = QuotaJobs::Head;
  // Of a queue among others, the least first; in the end by a place of one of its jobs.
  using Rank = std::tuple<bool, bool, double, bool, double, double, MilliGpu, QueuePlace>;

  void divide();
  void allocate(const View& view, Decision& decision);
  // Notes that the open decision stopped these.
  void stopped(const View& view, const std::vector<JobId>& gone);
  /// Calls attempt(head) for the next job until none is left that was not given up; true: it started. `alone`: then no
  /// other queue has changed.
  template <class Attempt>
  void for_each_job(const View& view, bool alone, Attempt attempt);
  bool reclaim(const View& view, Decision& decision, const Head& head);
  bool preempt(const View& view, Decision& decision, const Head& head);
  [[nodiscard]] std::vector<JobId> reclaimable(const View& view, const Head& head) const;

  /// The most that the queue may hold while others wait.
  [[nodiscard]] MilliGpu allocatable(std::uint32_t queue) const {
    return std::min(queues_[queue].limit, std::max(queues_[queue].quota, fair_[queue]));
  }
  [[nodiscard]] Rank rank(std::uint32_t queue, MilliGpu held, MilliGpu wanted, QueuePlace place) const;
  /// What the queue's jobs hold that cannot be stopped.
  [[nodiscard]] MilliGpu fixed(const View& view, std::uint32_t queue) const;
  /// The queue may take so much once it has given up `freed`.
  [[nodiscard]] bool is_within_limit(std::uint32_t queue, MilliGpu wanted, MilliGpu freed) const {
    return jobs_.held(queue) - freed + wanted <= queues_[queue].limit;
  }
  [[nodiscard]] bool may_start(const View& view, const Head& head, MilliGpu freed) const;
  /// Running jobs of lower priorities than `below` that may be stopped, those that go first last.
  [[nodiscard]] std::vector<JobId> stoppable(const View& view, std::uint32_t queue, std::int64_t below) const;

  QuotaJobs jobs_;
  std::vector<KaiQueue> queues_;
  std::vector<MilliGpu> fair_;
  MilliGpu total_;
  Rules rules_;
  bool has_stopped_ = false;  // in this round
};

}  // namespace gpusched
