// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/las_queues.hpp"

#include "src/policies/queues/gang_nodes.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t first_limit_gpu_s = 3250;  // of the Tiresias artifact
constexpr std::int64_t second_limit_gpu_s = 7200;

}  // namespace

PolicyInfo tiresias_code_info() {
  return {.name = "tiresias@code",
          .summary = "2D-LAS as the Tiresias simulator runs it, quirk by quirk",
          .source =
              "schedule 'dlas-gpu' of the Tiresias simulator (NSDI'19 artifact): counts GPUs; floors the delay of a "
              "demotion check; reorders queues after placing",
          .complexity = "O(running jobs + log waiting)",
          .parameters = {{.name = "promote_knob",
                          .fallback = 0.0,
                          .meaning = "a job pending this many times what it executed returns to queue 0; 0 = never",
                          .most = 1e6}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            if (auto checked = check_one_gpu_tasks("tiresias@code", context); !checked) {
              return Unexpected{checked.error()};
            }
            const auto knob = static_cast<std::int64_t>(parameters.number("promote_knob"));
            return AnyPolicy(TiresiasCode({first_limit_gpu_s, second_limit_gpu_s}, knob));
          },
          .preemptive = true,
          .aliases = {"dlas-gpu"}};
}

PolicyInfo tiresias_muri_info() {
  return {.name = "tiresias@muri",
          .summary = "Tiresias-L as the Muri artifact runs it, quirk by quirk",
          .source =
              "Muri artifact (SIGCOMM'22): counts GPUs; overhead at every event, which counts as executed; reorders "
              "queues after placing",
          .complexity = "O(running jobs + log waiting)",
          .parameters = {},
          .make = [](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            if (auto checked = check_one_gpu_tasks("tiresias@muri", context); !checked) {
              return Unexpected{checked.error()};
            }
            return AnyPolicy(TiresiasMuri({first_limit_gpu_s, second_limit_gpu_s}, 0));
          },
          .preemptive = true,
          .aliases = {"tiresias-l"}};
}

}  // namespace gpusched
