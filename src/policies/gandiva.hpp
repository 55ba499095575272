// SPDX-License-Identifier: Apache-2.0
/// Gandiva-style time slicing: jobs that do not fit together take turns on the GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/view.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Round robin over whole jobs (suspend and resume). Waiting jobs stand in the order in which they began to wait and
/// start whenever they fit, passing over those that do not. At each multiple of the slice while any job waits,
/// jobs that have run for a slice or longer make room for them, the longest-running first, and queue up again; as many
/// as the waiting job needs, or none. Cost: O(log n) a start or suspension and O(shapes) an event.
class Gandiva {
 public:
  explicit Gandiva(Time slice) : slice_(slice) {}

  [[nodiscard]] std::string_view name() const { return "gandiva"; }
  void decide(const View& view, Decision& decision);

 private:
  using Turn = std::pair<std::int64_t, std::uint32_t>;  // since when (microseconds), job id

  void note_events(const View& view);
  void serve(const View& view, Decision& decision, bool may_suspend);
  bool make_room(const View& view, Decision& decision, JobId job);

  Time slice_;
  Time next_wake_ = Time::max();
  std::vector<std::int64_t> since_;  // by job: when it began to run or to wait
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<Turn>> waiting_;  // by (scheduling queue, shape)
  std::vector<std::set<Turn>> running_;                                        // by scheduling queue
};

PolicyInfo gandiva_info();

}  // namespace gpusched
