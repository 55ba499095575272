// SPDX-License-Identifier: Apache-2.0
/// The part of CUDA's C++ that gpusched's kernels are written in, as plain C++ (NVIDIA's CUDA C++ Programming Guide has
/// the meaning). A block's threads are run by block.cpp, one at a time, on one thread of the operating system: what the
/// block shares is thread-local there.
#pragma once

#include <math.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"

#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __shared__ thread_local

extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;

/// What a launch asks for beyond the arrays that its kernel declares: the array that kernels.cu names for it.
extern constinit thread_local float gpusched_shared_row[];

namespace cuda_on_cpu {

/// Waits for the block's other threads.
void block_barrier();
/// Gives `value` to the warp's other threads and returns what lane `from` gave. Every lane of `mask` must come.
std::uint64_t warp_exchange(unsigned mask, std::uint64_t value, unsigned from);
/// Ends the grid with an error, as the device does when a kernel goes wrong.
[[noreturn]] void fault(const char* reason);
/// The calling thread's place in its warp.
unsigned lane();

using Body = std::function<void()>;  ///< what one thread of a grid does
cudaError_t queue_grid(const void* kernel, const dim3& grid, const dim3& block, std::size_t shared_bytes,
                       cudaStream_t stream, Body body);

}  // namespace cuda_on_cpu

/// Copies the arguments, as the real one does, and queues the grid.
template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), const dim3& grid, const dim3& block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  const auto values = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Parameters...>(*static_cast<Parameters*>(arguments[I])...);
  }
  (std::index_sequence_for<Parameters...>());
  return cuda_on_cpu::queue_grid(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream,
                                 [kernel, values] { std::apply(kernel, values); });
}

inline void __syncthreads() { cuda_on_cpu::block_barrier(); }

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = cuda_on_cpu::warp_exchange(mask, bits, cuda_on_cpu::lane() ^ static_cast<unsigned>(lane_mask));
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned atomicAdd(unsigned* place, unsigned value) {
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}

struct alignas(16) float4 {
  float x, y, z, w;
};

using std::max;
using std::min;

inline float rsqrtf(float x) { return 1.0F / sqrtf(x); }

inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(x) * y) >> 64U);
}

/// Nanoseconds of the device's clock, and cycles of the multiprocessor's (at Settings::actual_mhz).
std::uint64_t globaltimer_ns();
long long clock64();
void __nanosleep(unsigned ns);
