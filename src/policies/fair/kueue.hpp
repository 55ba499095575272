// SPDX-License-Identifier: Apache-2.0
/// Kueue's quotas: queues of one cohort that borrow what the others do not use, and take back what they lent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/queues/quota_jobs.hpp"

namespace gpusched {

/// GPU thousandths of a queue (ClusterQueue).
struct KueueQuota {
  MilliGpu nominal = 0;
  MilliGpu borrowing = unlimited;  ///< most beyond its nominal quota
  MilliGpu lending = unlimited;    ///< most of its nominal quota that others may use
};

/// What the queues of a cohort hold and may hold: the arithmetic of quotas, without jobs.
class KueueCohort {
 public:
  explicit KueueCohort(std::vector<KueueQuota> quotas);

  /// The queue holds so much more, or less.
  void hold(std::uint32_t queue, MilliGpu change);
  [[nodiscard]] MilliGpu held(std::uint32_t queue) const { return held_[queue]; }
  [[nodiscard]] MilliGpu nominal(std::uint32_t queue) const { return quotas_[queue].nominal; }
  /// It holds more than its nominal quota.
  [[nodiscard]] bool is_borrowing(std::uint32_t queue) const { return held(queue) > nominal(queue); }
  /// What it may take now, of its own and of what others do not use.
  [[nodiscard]] MilliGpu available(std::uint32_t queue) const;
  /// The most that it might ever hold.
  [[nodiscard]] MilliGpu most(std::uint32_t queue) const;
  /// It may take so much; `borrowing`: also beyond its nominal quota.
  [[nodiscard]] bool fits(std::uint32_t queue, MilliGpu amount, bool borrowing) const {
    return amount <= available(queue) && (borrowing || held(queue) + amount <= nominal(queue));
  }

 private:
  [[nodiscard]] MilliGpu kept(std::uint32_t queue) const;  // of its nominal quota, for itself alone
  [[nodiscard]] MilliGpu shared(std::uint32_t queue) const { return nominal(queue) - kept(queue); }
  [[nodiscard]] MilliGpu used(std::uint32_t queue) const { return std::max<MilliGpu>(0, held(queue) - kept(queue)); }

  std::vector<KueueQuota> quotas_;
  std::vector<MilliGpu> held_;
  MilliGpu shared_ = 0, used_ = 0;  // by all of them
};

/// Kueue's classical scheduler over one flavour of GPUs and one flat cohort. In a cycle the first job of each queue has
/// its turn: those that need not borrow first, then by priority, then by their places. A job whose quota fits starts;
/// one for which there is no quota may preempt; another is passed over until something happens (BestEffortFIFO), or
/// holds up its queue (StrictFIFO). Cycles follow each other until nothing starts.
///
/// A job may preempt lower priorities of its queue, or also newer jobs of its own priority (`within`); and jobs of
/// queues that borrow, of any priority or lower ones (`reclaim`), while its own queue then stays within its nominal
/// quota, or also when it borrows, from lower priorities up to a threshold (`borrow`). Those of other queues go first,
/// then lower priorities, then those that started last; of the jobs found so, those are spared again, in reverse, that
/// need not go. Sources: kueue.sigs.k8s.io/docs/concepts/cluster_queue and /preemption; kubernetes-sigs/kueue,
/// pkg/scheduler/preemption/preemption.go (findCandidates, minimalPreemptions) and pkg/cache/resource_node.go.
class Kueue {
 public:
  /// Whom a waiting job may preempt.
  enum class Preempts : std::uint8_t { never, lower, lower_or_newer, any };
  struct Rules {
    Preempts within = Preempts::never;
    Preempts reclaim = Preempts::never;
    bool borrow = false;                                                  ///< preempt others while borrowing
    std::int64_t borrow_most = std::numeric_limits<std::int32_t>::max();  ///< of priorities that then may be preempted
    bool strict = false;
  };

  Kueue(QuotaJobs jobs, KueueCohort cohort, Rules rules)
      : jobs_(std::move(jobs)), cohort_(std::move(cohort)), rules_(rules) {}

  [[nodiscard]] static std::string_view name() { return "kueue"; }
  void decide(const View& view, Decision& decision);

 private:
  using Head = QuotaJobs::Head;

  void note(const View& view);
  void hold(const View& view, JobId job, std::int64_t sign) {
    cohort_.hold(jobs_.queue_of(view, job), sign * view.shape(job).gpu_milli());
  }
  [[nodiscard]] std::vector<Head> heads(const View& view) const;
  bool admit(const View& view, Decision& decision, const Head& head);
  bool start(const View& view, Decision& decision, const Head& head, const std::vector<JobId>& victims);
  [[nodiscard]] bool preempts() const { return rules_.within != Preempts::never || rules_.reclaim != Preempts::never; }
  [[nodiscard]] bool may_preempt(std::uint32_t queue, MilliGpu wanted) const;
  [[nodiscard]] std::vector<JobId> targets(const View& view, const Head& head);
  [[nodiscard]] std::vector<JobId> candidates(const View& view, const Head& head) const;
  [[nodiscard]] std::vector<JobId> fewest(const View& view, const Head& head, const std::vector<JobId>& candidates,
                                          bool borrowing, std::int64_t below);

  QuotaJobs jobs_;
  KueueCohort cohort_;
  Rules rules_;
};

}  // namespace gpusched
