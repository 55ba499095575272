// SPDX-License-Identifier: Apache-2.0
#include "src/policies/sjf.hpp"

namespace gpusched {

PolicyInfo sjf_info() {
  return {
      .name = "sjf",
      .summary = "shortest true run time first, no preemption; the first that does not fit blocks its queue",
      .source = "textbook; blocking as in RLScheduler (SC'20), skip=true as in the PAI simulator (NSDI'22 artifact)",
      .complexity = "O(shapes + log n)",
      .parameters = {{.name = "skip", .fallback = false, .meaning = "pass over jobs that do not fit"}},
      .make = [](const PolicyParameters& parameters, const PolicyContext&) -> Result<AnyPolicy> {
        return AnyPolicy(Sjf(parameters.flag("skip")));
      }};
}

}  // namespace gpusched
