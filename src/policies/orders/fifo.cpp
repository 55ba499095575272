// SPDX-License-Identifier: Apache-2.0
#include "src/policies/orders/fifo.hpp"

#include "src/policies/seam/priority_order.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

PolicyInfo fifo_info() {
  return {.name = "fifo",
          .summary = "in order of submission; the first job that does not fit blocks the rest of its queue",
          .source = "the field's common baseline; strict FIFO of the Tiresias simulator (NSDI'19 artifact)",
          .complexity = "O(1)",
          .make = [](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> { return AnyPolicy(Fifo{}); },
          .aliases = {"fcfs"},
          .order = [](const PolicyParameters&, const PolicyContext&) -> Result<PriorityOrder> {
            return PriorityOrder{.name = "fifo",
                                 .score = [](const JobFacts& job) { return job.submit_s; },
                                 .growth = {},
                                 .estimator = AnyDurationEstimator(NoDuration{})};
          }};
}

PolicyInfo fifo_skip_info() {
  return {
      .name = "fifo-skip",
      .summary = "in order of submission, passing over jobs that do not fit",
      .source = "schedule 'fjf' of the Tiresias simulator (NSDI'19 artifact)",
      .complexity = "O(shapes)",
      .make = [](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> { return AnyPolicy(FifoSkip{}); },
      .work_conserving = true,
      .aliases = {"fjf"}};
}

}  // namespace gpusched
