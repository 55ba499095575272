// SPDX-License-Identifier: Apache-2.0
/// No rule: somebody outside the run says how many replicas there should be.
#pragma once

#include <cstdint>

#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// The number that was told last (Engine::tell_replicas).
class ToldReplicas {
 public:
  /// `count` replicas until somebody tells another number.
  explicit ToldReplicas(std::int32_t count = 1) : count_(count) {}
  /// The number of replicas wanted.
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& /*load*/) const { return count_; }
  /// How often it is to be asked; Time::max(): once, and again when it is told.
  [[nodiscard]] static Time period() { return Time::max(); }
  /// So many from now on.
  void tell(std::int32_t count) { count_ = count; }

 private:
  std::int32_t count_;
};

}  // namespace gpusched
