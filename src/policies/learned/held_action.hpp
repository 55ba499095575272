// SPDX-License-Identifier: Apache-2.0
/// The action of an agent that steers: the weights of its index, in force for NetworkSpec::hold_s or until hold_jobs
/// more jobs were submitted. Training and the trained policy share it, so that both act anew at the same instants.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

class HeldAction {
 public:
  /// True at the first choice, and at the first one after the action's time or submissions.
  [[nodiscard]] bool is_over(const View& view) const {
    return parameters_.empty() || view.now() >= until_ || view.arrived() >= until_arrived_;
  }
  /// `action` holds from now on.
  void hold(const NetworkSpec& spec, std::span<const float> parameters, std::span<const float> action,
            const View& view) {
    parameters_ = held_parameters(spec, parameters, action);
    if (spec.hold_s > 0) until_ = view.now() + from_seconds(spec.hold_s);
    if (spec.hold_jobs > 0) until_arrived_ = std::uint64_t{view.arrived()} + spec.hold_jobs;
  }
  /// What forward_policy() takes while it holds.
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }

 private:
  std::vector<float> parameters_;
  Time until_ = Time::max();
  std::uint64_t until_arrived_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace gpusched
