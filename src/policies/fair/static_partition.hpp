// SPDX-License-Identifier: Apache-2.0
/// Fixed quotas: how clusters were shared before they had schedulers.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Each owner has a fixed part of the GPUs and runs its jobs in order of submission within it. What an owner leaves
/// idle is never lent.
class StaticPartition {
 public:
  /// `quotas`: GPU thousandths of each owner number.
  StaticPartition(OwnerColumn column, std::vector<MilliGpu> quotas) : column_(column), quotas_(std::move(quotas)) {}

  [[nodiscard]] std::string_view name() const { return "static-partition"; }

  void decide(const View& view, Decision& decision) {
    for (const Event& event : view.events()) {
      const std::uint32_t owner = event.job == no_job ? 0 : owner_of(column_, view, event.job);
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
        held_.add(owner, -view.shape(event.job).gpu_milli());
      }
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) waiting_.push(view, event.job, owner);
    }
    blocked_.assign(quotas_.size(), false);
    const auto score = [](const ClassQueues::Class&) { return 0; };  // in order of submission
    waiting_.start_best(true, score, [&](const ClassQueues::Class& jobs) {
      const MilliGpu wanted = view.shape(jobs.first()).gpu_milli();
      if (blocked_[jobs.owner] || held_[jobs.owner] + wanted > quotas_[jobs.owner]) {
        blocked_[jobs.owner] = true;  // the owner's next job waits behind this one
        return Attempt::not_allowed;
      }
      if (decision.start(jobs.first()) != Verdict::ok) {
        blocked_[jobs.owner] = true;
        return Attempt::not_allowed;
      }
      held_.add(jobs.owner, wanted);
      return Attempt::started;
    });
  }

 private:
  OwnerColumn column_;
  std::vector<MilliGpu> quotas_;
  ClassQueues waiting_;
  OwnerSums held_;
  std::vector<bool> blocked_;
};

PolicyInfo static_partition_info();

}  // namespace gpusched
