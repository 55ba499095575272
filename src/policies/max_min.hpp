// SPDX-License-Identifier: Apache-2.0
/// Max-min fairness over GPUs: whoever holds the fewest GPUs goes next.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/view.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Whose share is kept fair.
enum class FairParty : std::uint8_t { user, group, vc };

/// Progressive filling without preemption: again and again the party that holds the fewest GPUs and has a waiting job
/// that fits gets its earliest such job started; ties go to the party named first in the trace. O(log parties) a start
/// and O(waiting parties x shapes) an event.
class MaxMin {
 public:
  explicit MaxMin(FairParty party) : party_(party) {}

  [[nodiscard]] std::string_view name() const { return "max-min"; }
  void decide(const View& view, Decision& decision);

 private:
  struct Party {
    MilliGpu held = 0;
    std::uint32_t waiting = 0;
    std::vector<std::deque<JobId>> by_shape;  // in order of submission; empty until it is first needed
  };

  [[nodiscard]] std::uint32_t party_of(const View& view, JobId job) const;
  void note_events(const View& view);
  JobId first_that_may_fit(const View& view, const Party& party) const;

  FairParty party_;
  std::vector<Party> parties_;
  std::set<std::pair<MilliGpu, std::uint32_t>> hungry_;  // (held, party) of those with waiting jobs
  std::vector<std::vector<std::uint8_t>> blocked_;       // [scheduling queue][shape], of this instant
};

PolicyInfo max_min_info();

}  // namespace gpusched
