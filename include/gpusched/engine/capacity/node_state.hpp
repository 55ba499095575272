// SPDX-License-Identifier: Apache-2.0
/// NodeState: the account of one node.
#pragma once

#include <cstdint>

#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"

namespace gpusched::detail {

/// The account of one node.
struct NodeState {
  std::int64_t cpu_milli = 0;   ///< free
  std::int64_t memory_mib = 0;  ///< free
  std::int64_t cpu_capacity = 0;
  std::int64_t memory_capacity = 0;
  MilliGpu free_milli = 0;
  std::uint64_t idle_devices = 0;   ///< bit d: GPU d is idle (has_devices only), and a job can hold it whole
  std::uint64_t whole_devices = 0;  ///< bit d: a job can hold GPU d whole (has_devices only)
  std::uint32_t idle = 0;           ///< whole GPUs of which no part is held
  std::uint32_t gpus = 0;
  std::uint32_t whole_gpus = 0;  ///< GPUs that a job can hold whole: all that are not cut for good
  std::uint32_t gpu_type = 0;
  std::uint32_t vc = no_index;
  std::uint32_t vc_group = no_index;
  std::uint32_t mig = no_index;
  std::uint32_t rack_number = 0;
  std::uint32_t node_class = 0;    ///< number of its NodeClass
  std::uint32_t rank = 0;          ///< position in its class
  std::uint32_t first_device = 0;  ///< number of its first GPU among all that are told apart (has_devices only)
  std::uint8_t island_gpus = 0;    ///< GPUs of an island; 0: the node is one, or does not tell its GPUs apart
  bool has_devices = false;        ///< its GPUs are told apart
  SharingMode sharing = SharingMode::mps;
  bool is_stale = false;  ///< the index may list it under another number of idle GPUs
  bool is_down = false;   ///< out of service: nothing starts there, and what is free does not count as free
};

}  // namespace gpusched::detail
