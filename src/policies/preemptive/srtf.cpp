// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/srtf.hpp"

namespace gpusched {
namespace {

PolicyInfo shortest_remaining_info(bool by_service) {
  return {.name = by_service ? "srsf" : "srtf",
          .summary = by_service ? "shortest remaining time x GPUs first, preemptive, greedy"
                                : "shortest remaining time first, preemptive, greedy",
          .source = by_service ? "schedule 'shortest-gpu' of the Tiresias simulator (NSDI'19 artifact)"
                               : "schedule 'shortest' of the Tiresias simulator (NSDI'19 artifact)",
          .complexity = "O(shapes x log n)",
          .parameters = {},
          .make = [by_service](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> {
            return AnyPolicy(ShortestRemaining(by_service));
          },
          .preemptive = true,
          .work_conserving = true,
          .aliases = {by_service ? "shortest-gpu" : "shortest"}};
}

}  // namespace

PolicyInfo srtf_info() { return shortest_remaining_info(false); }
PolicyInfo srsf_info() { return shortest_remaining_info(true); }

}  // namespace gpusched
