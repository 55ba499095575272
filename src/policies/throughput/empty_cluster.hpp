// SPDX-License-Identifier: Apache-2.0
// Which GPU types could hold a job on an empty cluster.
#pragma once

#include <cstdint>

#include "gpusched/engine/view.hpp"

namespace gpusched {

class EmptyCluster {
 public:
  // A policy makes it at its first decision, when nothing runs yet.
  explicit EmptyCluster(const View& view) : cluster_(view.cluster()) {}
  // All tasks of the job on nodes of this GPU type that its virtual cluster may use.
  [[nodiscard]] bool can_hold(const View& view, JobId job, std::uint32_t gpu_type) {
    const Shape& shape = view.shape(job);
    const std::uint32_t queue = view.queue_of(job);
    const std::uint32_t grants = cluster_.place_on_type(shape, queue, Placement::consolidate, gpu_type);
    if (grants == no_index) return false;
    cluster_.release(grants, shape, queue);
    cluster_.free_grants(grants);
    return true;
  }

 private:
  ClusterState cluster_;
};

}  // namespace gpusched
