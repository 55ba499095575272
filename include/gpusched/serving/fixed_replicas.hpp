// SPDX-License-Identifier: Apache-2.0
/// No autoscaler: one number of replicas for ever.
#pragma once

#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// The baseline of the rules that set the number of replicas.
class FixedReplicas {
 public:
  /// `count` replicas at all times.
  explicit FixedReplicas(std::int32_t count = 1) : count_(count) {}
  /// The number of replicas wanted.
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& /*load*/) const { return count_; }
  /// How often it is to be asked; Time::max(): once.
  [[nodiscard]] static Time period() { return Time::max(); }

 private:
  std::int32_t count_;
};

}  // namespace gpusched
