// SPDX-License-Identifier: Apache-2.0
/// Jobs and a cluster of given numbers, each of which can be doubled while the others stay.
#pragma once

#include <cstdint>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched::test {

/// How much there is of what a run may grow with.
struct WorldSize {
  std::uint32_t jobs = 1000;
  std::uint32_t nodes = 16;  ///< of 8 GPUs; on more of them jobs come faster, so that they are as loaded
  std::uint32_t users = 48;  ///< each with an account of his own
  std::uint32_t vcs = 0;     ///< virtual clusters, which share all nodes; 0: the cluster has none
  std::uint32_t shapes = 4;  ///< kinds of jobs: 1 to 8 GPUs, and above 4 kinds other amounts of CPU and memory
};

/// 1.2 times the work that the nodes do while the jobs come, so that the queue grows with their number. Every column
/// that a policy may ask for is filled, but for deadlines where `deadlines` is false. Times are whole seconds.
[[nodiscard]] JobTable jobs_of(const WorldSize& size, bool deadlines);

/// Its nodes, which bound CPU and memory where the jobs ask for them, and its virtual clusters.
[[nodiscard]] Cluster cluster_of(const WorldSize& size);

}  // namespace gpusched::test
