// SPDX-License-Identifier: Apache-2.0
/// The action of an agent that steers: the weights of its index, in force for NetworkSpec::hold_s. Training and the
/// trained policy share it, so that both act anew at the same instants.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

class HeldAction {
 public:
  /// True at the first choice, and at the first one after the action's time.
  [[nodiscard]] bool is_over(Time now) const { return parameters_.empty() || now >= until_; }
  /// `action` holds from now on.
  void hold(const NetworkSpec& spec, std::span<const float> parameters, std::span<const float> action, Time now) {
    parameters_ = held_parameters(spec, parameters, action);
    until_ = now + from_seconds(spec.hold_s);
  }
  /// What forward_policy() takes while it holds.
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }

 private:
  std::vector<float> parameters_;
  Time until_{};
};

}  // namespace gpusched
