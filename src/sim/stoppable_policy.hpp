// SPDX-License-Identifier: Apache-2.0
/// StoppablePolicy: a policy whose run can be ended from another thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "gpusched/policy/policy.hpp"
#include "src/sim/decision_times.hpp"

namespace gpusched {

/// Ends the run (simulate.hpp) once `stopped()`.
class StoppablePolicy {
 public:
  /// Takes the time of each decision where `times` (borrowed, may be null) is asked for.
  StoppablePolicy(AnyPolicy policy, std::function<bool()> stopped, std::optional<DecisionTimes>* times = nullptr)
      : policy_(std::move(policy)), stopped_(std::move(stopped)), times_(times) {}

  [[nodiscard]] std::string_view name() const { return policy_.name(); }
  [[nodiscard]] bool stopped() const { return stopped_(); }
  /// The policy itself.
  [[nodiscard]] const AnyPolicy& inner() const { return policy_; }
  /// The policy's own decision.
  void decide(const OracleView& view, Decision& decision) {
    if (times_ == nullptr || !*times_) return policy_.decide(view, decision);
    const auto begin = std::chrono::steady_clock::now();
    policy_.decide(view, decision);
    (*times_)->add(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  }

 private:
  AnyPolicy policy_;
  std::function<bool()> stopped_;
  std::optional<DecisionTimes>* times_;
};

}  // namespace gpusched
