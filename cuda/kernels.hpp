// SPDX-License-Identifier: Apache-2.0
/// The suite's kernels on a CUDA device: what kernels.cu compiles, seen from plain C++. Every function queues its work
/// on `stream` and returns the launch's own error; what goes wrong while it runs shows at the next synchronisation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "src/calibration/profile/kernel.hpp"

namespace gpusched::cuda {

/// The tiled product computes whole squares of so many cells a side.
inline constexpr int gemm_tile_side = 64;

/// A call's operands in device memory. Which are used depends on the kernel; bf16 operands lie where a and b point.
struct DeviceOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const std::uint32_t* index = nullptr;
  void* out = nullptr;  ///< floats; doubles of fma_fp64; 256 counters of histogram, which are added to
};

/// Precondition: the call is neither a transfer nor a product of the library, and its operands are that large.
cudaError_t queue_kernel(const KernelCall& call, const DeviceOperands& operands, cudaStream_t stream);

/// Uniform in [-1, 1), the same for the same seed.
cudaError_t queue_random_floats(float* out, std::size_t count, std::uint64_t seed, cudaStream_t stream);
/// Uniform below `below`.
cudaError_t queue_random_below(std::uint32_t* out, std::size_t count, std::uint64_t below, std::uint64_t seed,
                               cudaStream_t stream);
/// Rounds to bf16 (2 bytes a value).
cudaError_t queue_to_bf16(const float* in, void* out, std::size_t count, cudaStream_t stream);

/// Reads `bytes` of memory, so that the last-level cache holds nothing else, and nothing that must be written back.
cudaError_t queue_flush(const float* memory, std::size_t bytes, float* never_written, cudaStream_t stream);

/// Occupies the stream until the host sets `gate[0]`, so that the work queued behind it runs without gaps. After
/// `limit_ns` it ends by itself and sets `gate[1]`. `gate` is host memory that the device can read and write.
cudaError_t queue_gate(volatile int* gate, std::uint64_t limit_ns, cudaStream_t stream);

/// Counts one multiprocessor's clock over `span_ns`: out[0] = cycles, out[1] = nanoseconds.
cudaError_t queue_clock_count(std::uint64_t* out, std::uint64_t span_ns, cudaStream_t stream);

}  // namespace gpusched::cuda
