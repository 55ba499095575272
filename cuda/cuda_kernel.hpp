// SPDX-License-Identifier: Apache-2.0
/// One call of the suite with its operands on the device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/blas.hpp"
#include "cuda/handles.hpp"
#include "src/calibration/measure/reference.hpp"

namespace gpusched::cuda {

/// Ready to be queued any number of times, on any stream of its device. Not copyable.
class CudaKernel {
 public:
  /// Operands as in `data`, or random ones made on the device when it is null. `blas` may be null for kernels of our
  /// own; it must outlive the object. On failure `status` says why, and the object must not be queued.
  CudaKernel(const KernelCall& call, const KernelData* data, std::uint64_t seed, Blas* blas, Status& status);

  void queue(cudaStream_t stream, Status& status);

  /// True when queue() returns only after the device has worked up to it, as copies of ordinary memory do.
  [[nodiscard]] bool blocks_host() const;

  /// What the runs so far computed. Precondition: the streams that it ran on have been waited for.
  [[nodiscard]] std::vector<double> result(Status& status) const;

 private:
  [[nodiscard]] DeviceMemory make_operand(std::span<const float> values, std::size_t count, std::uint64_t seed,
                                          Status& status) const;
  void make_transfer(const KernelData* data, Status& status);

  KernelCall call_;
  DataSizes sizes_;
  Blas* blas_;
  DeviceMemory a_, b_, index_, out_;
  PinnedMemory pinned_;
  std::vector<float> pageable_;
};

}  // namespace gpusched::cuda
