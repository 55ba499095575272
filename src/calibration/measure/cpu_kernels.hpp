// SPDX-License-Identifier: Apache-2.0
/// The kernels on the threads of this machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/calibration/measure/cpu_memory.hpp"
#include "src/calibration/measure/reference.hpp"
#include "src/calibration/measure/thread_team.hpp"

namespace gpusched {

/// One call with its operands and result in memory, ready to be run any number of times by its team. Borrows both.
class CpuKernel {
 public:
  /// Random operands; indices from `seed`.
  CpuKernel(const KernelCall& call, ThreadTeam& team, CpuMemory& memory, std::uint64_t seed);
  /// These operands.
  CpuKernel(const KernelCall& call, ThreadTeam& team, CpuMemory& memory, const KernelData& data);

  /// What a CpuMemory needs for it.
  static std::size_t memory_bytes(const KernelCall& call, const ThreadTeam& team);

  void run();

  /// What the last run computed.
  [[nodiscard]] std::vector<double> result() const;

 private:
  CpuKernel(const KernelCall& call, ThreadTeam& team) : call_(call), team_(&team) {}
  void make_room(CpuMemory& memory);

  KernelCall call_;
  ThreadTeam* team_;
  std::span<const float> a_ = {}, b_ = {};
  std::span<std::uint32_t> index_ = {};
  std::span<float> out_ = {};
  std::span<double> out64_ = {};        // of fma_fp64
  std::span<std::uint32_t> bins_ = {};  // of histogram, 256 a thread
  std::span<float> bordered_ = {};      // of conv2d, the channels of an image a thread
};

/// False for what a CPU has no counterpart of: bf16 products, half precision, pinned memory, peers.
bool cpu_supports(Kernel kernel);

}  // namespace gpusched
