// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/muri.hpp"

#include <string>

namespace gpusched {
namespace {

PolicyInfo muri_info(bool by_service) {
  const std::string name = by_service ? "srsf@muri" : "srtf@muri";
  return {.name = name,
          .summary = by_service ? "SRSF as the Muri artifact runs it, quirk by quirk"
                                : "SRTF as the Muri artifact runs it, quirk by quirk",
          .source =
              "Muri artifact (SIGCOMM'22); overhead at every event, all jobs placed afresh by 'yarn', ends within "
              "1e-9 merged",
          .complexity = "O(running jobs + log waiting): each of them may move",
          .parameters = {},
          .make = [by_service, name](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            if (auto checked = check_one_gpu_tasks(name, context); !checked) return Unexpected{checked.error()};
            return AnyPolicy(MuriShortest(by_service));
          },
          .preemptive = true};
}

}  // namespace

PolicyInfo srtf_muri_info() { return muri_info(false); }
PolicyInfo srsf_muri_info() { return muri_info(true); }

}  // namespace gpusched
