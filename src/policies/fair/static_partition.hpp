// SPDX-License-Identifier: Apache-2.0
/// Fixed quotas: how clusters were shared before they had schedulers.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Each owner has a fixed part of the GPUs and runs its jobs in order of submission within it. What an owner leaves
/// idle is never lent.
class StaticPartition {
 public:
  /// `quotas`: GPU thousandths of each owner number.
  StaticPartition(OwnerColumn column, std::vector<MilliGpu> quotas) : column_(column), quotas_(std::move(quotas)) {}

  [[nodiscard]] std::string_view name() const { return "static-partition"; }

  void decide(const View& view, Decision& decision);

 private:
  OwnerColumn column_;
  std::vector<MilliGpu> quotas_;
  ClassQueues waiting_;
  PerOwner<MilliGpu> held_;
  std::vector<bool> blocked_;
};

}  // namespace gpusched
