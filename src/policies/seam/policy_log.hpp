// SPDX-License-Identifier: Apache-2.0
/// PolicyLog: what a policy has to tell of a run besides the files that every policy gets.
#pragma once

#include <span>
#include <string>

#include "gpusched/engine/event_queue.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/policy/policy.hpp"

namespace gpusched {

/// Watches one run from its first event on and then gives a file. A PolicyInfo says how to make one.
class PolicyLog {
 public:
  PolicyLog() = default;
  PolicyLog(const PolicyLog&) = delete;
  PolicyLog& operator=(const PolicyLog&) = delete;
  virtual ~PolicyLog() = default;

  /// As an observer of simulate().
  virtual void observe(const View& view, std::span<const Event> events) = 0;
  /// The run is over: the policy as it then is.
  virtual void end(const AnyPolicy&) {}
  /// The file's name, without a folder: "terms.csv".
  [[nodiscard]] virtual std::string file_name() const = 0;
  /// What it holds, when the run is over.
  [[nodiscard]] virtual std::string text() const = 0;
};

}  // namespace gpusched
