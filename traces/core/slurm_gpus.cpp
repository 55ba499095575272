// SPDX-License-Identifier: Apache-2.0
#include "traces/core/slurm_gpus.hpp"

#include <algorithm>
#include <string>

#include "gpusched/data/gpu_demand.hpp"
#include "gpusched/data/mig.hpp"
#include "src/base/letter_case.hpp"

namespace gpusched {
namespace {

bool is_a30(std::string_view model, std::string_view profile) {
  return model.find("a30") != std::string_view::npos ||
         (model.empty() && (profile == "1g.6gb" || profile == "2g.12gb" || profile == "4g.24gb"));
}

}  // namespace

SlurmGpu slurm_gpu(std::string_view type) {
  const std::string lower = lower_case(type);
  const MigName name = mig_name(lower);
  if (!name.profile.empty()) {
    const std::string_view model = type.substr(0, name.card.size());
    const MilliGpu slices = is_a30(name.card, name.profile) ? 4 : 7;
    return {.model = model,
            .milli = std::min(whole_gpu, (name.profile[0] - '0') * whole_gpu / slices),
            .profile = std::string(name.profile)};
  }
  return {.model = type, .profile = {}};
}

void count_mig_slices(Shape& shape, std::string_view gpu_spec) {
  if (shape.is_share() || shape.gpu_milli_per_task == 0 || gpu_spec.find("g.") == std::string_view::npos) return;
  const GpuDemand demand(gpu_spec);
  if (demand.names().empty()) return;
  const SlurmGpu gpu = slurm_gpu(demand.names().front());
  const std::int64_t slices = shape.gpu_milli_per_task / whole_gpu;
  if (gpu.profile.empty() || gpu.milli == whole_gpu || shape.tasks * slices >= no_index) return;
  shape.tasks = static_cast<std::uint32_t>(shape.tasks * slices);
  shape.gpu_milli_per_task = gpu.milli;
  shape.cpu_milli_per_task = (shape.cpu_milli_per_task + slices - 1) / slices;
  shape.memory_mib_per_task = (shape.memory_mib_per_task + slices - 1) / slices;
}

}  // namespace gpusched
