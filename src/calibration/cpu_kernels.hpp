// SPDX-License-Identifier: Apache-2.0
/// The kernels on the threads of this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "src/calibration/reference.hpp"
#include "src/calibration/thread_team.hpp"

namespace gpusched {

/// One call with its operands and result in memory, ready to run any number of times.
class CpuKernel {
 public:
  CpuKernel(const KernelCall& call, std::uint64_t seed);

  void run(ThreadTeam& team);

  /// What the last run computed.
  [[nodiscard]] std::vector<double> result() const;
  [[nodiscard]] const KernelData& data() const { return data_; }

 private:
  KernelCall call_;
  KernelData data_;
  std::vector<float> out_;
  std::vector<double> out64_;        // of fma_fp64
  std::vector<std::uint32_t> bins_;  // of histogram, one set a thread
};

/// False for what a CPU has no counterpart of: bf16 products, half precision, pinned memory, peers.
bool cpu_supports(Kernel kernel);

}  // namespace gpusched
