// SPDX-License-Identifier: Apache-2.0
/// AllowedClasses: the classes of nodes where a job may run, by what it demands of a GPU and by its virtual cluster.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/gpu_demand.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/capacity/node_index.hpp"

namespace gpusched::detail {

/// Immutable.
class AllowedClasses {
 public:
  /// Nothing is allowed.
  AllowedClasses() = default;

  /// For every (GPU demand, virtual cluster) the classes where such a job may run; behind them, by virtual cluster,
  /// those of jobs that ask for no device, whatever they name. The last virtual cluster stands for jobs of none, which
  /// may run anywhere.
  AllowedClasses(const Cluster& cluster, const NameTable& specs, const std::vector<NodeClass>& classes)
      : specs_(specs.size()),
        owners_(static_cast<std::uint32_t>(cluster.vcs.size() + 1)),
        devices_differ_(!cluster.devices.empty()),
        allowed_((specs_ + 1) * owners_) {
    for (std::size_t spec = 0; spec <= specs_; ++spec) {
      const GpuDemand demand(spec < specs_ ? std::string_view(specs[static_cast<std::uint32_t>(spec)]) : "");
      for (std::uint32_t vc = 0; vc < owners_; ++vc) {
        for (std::uint32_t number = 0; number < classes.size(); ++number) {
          const NodeClass& alike = classes[number];
          const bool is_open = vc + 1 == owners_ || cluster.owners_serve(alike.vc, alike.vc_group, vc);
          const std::uint32_t type = alike.gpu_type;
          if (is_open && (spec == specs_ || demand.accepts(cluster.gpu_types[type], cluster.device(type)))) {
            allowed_[spec * owners_ + vc].push_back(number);
          }
        }
      }
    }
  }

  /// Numbers of the classes where a job of `shape` in virtual cluster `vc` may run (owner and GPU type).
  [[nodiscard]] GPUSCHED_HOT const std::vector<std::uint32_t>& of(const Shape& shape, std::uint32_t vc) const {
    const bool anywhere = shape.gpu_milli_per_task == 0;
    return allowed_[(anywhere ? specs_ : std::size_t{shape.gpu_spec}) * owners_ + std::min(vc, owners_ - 1)];
  }
  /// True when the cluster describes its devices, so that a job which names none may not run on all of them.
  [[nodiscard]] bool devices_differ() const { return devices_differ_; }

 private:
  std::size_t specs_ = 0;
  std::uint32_t owners_ = 1;
  bool devices_differ_ = false;
  std::vector<std::vector<std::uint32_t>> allowed_;  // [spec * owners_ + vc]
};

}  // namespace gpusched::detail
