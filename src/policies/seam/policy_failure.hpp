// SPDX-License-Identifier: Apache-2.0
/// PolicyFailure: how a policy from outside the tree, which may do anything, ends its run.
#pragma once

#include <charconv>
#include <stdexcept>
#include <string>

#include "gpusched/core/types.hpp"
#include "src/base/interruption.hpp"

namespace gpusched {

/// Thrown out of simulate(); whoever runs such a policy catches it. what() follows the policy's name: "failed at 120 s:
/// no such job". The engine is then of no further use.
class PolicyFailure : public std::runtime_error {
 public:
  /// `what` in whole.
  explicit PolicyFailure(const std::string& what) : std::runtime_error(what) {}
  /// what(), or "was interrupted" where the user wants an end, which a policy that waits for something fails for.
  [[nodiscard]] std::string why() const { return Interruption::wanted() ? "was interrupted" : what(); }
  /// In a decision at that instant.
  PolicyFailure(Time now, const std::string& why) : PolicyFailure("failed at " + seconds_text(now) + " s: " + why) {}

 private:
  static std::string seconds_text(Time t) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, to_seconds(t), std::chars_format::fixed).ptr};
  }
};

}  // namespace gpusched
