// SPDX-License-Identifier: Apache-2.0
/// Shortest job first, without preemption, by true run time.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/policies/job_heaps.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Starts waiting jobs in order of their true run time (all attempts left), ties by submission. O(shapes + log n).
class Sjf {
 public:
  /// `skip`: pass over jobs that do not fit instead of waiting for them.
  explicit Sjf(bool skip = false) : skip_(skip) {}

  [[nodiscard]] std::string_view name() const { return "sjf"; }

  void decide(const OracleView& view, Decision& decision) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
        waiting_.push(view, event.job, view.remaining(event.job).us);
      }
    }
    waiting_.start_in_order(decision, skip_);
  }

 private:
  bool skip_;
  JobHeaps<std::int64_t> waiting_;
};

PolicyInfo sjf_info();

}  // namespace gpusched
