// SPDX-License-Identifier: Apache-2.0
/// Controls of the CUDA device that is simulated on the processor: a test double of NVIDIA's runtime, so that the code
/// in cuda/ runs without a device. It checks what the device computes and how it is used; its times mean nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cuda_on_cpu {

/// In which order the threads of a block run between two barriers. A result that depends on it lacks a barrier.
enum class Order { forward, reverse, shuffled };

/// Set before anything is queued; forked children inherit it.
struct Settings {
  int devices = 1;
  int major = 9;
  int minor = 0;
  int sm_count = 1;
  int top_mhz = 20;     ///< what the driver calls the highest clock
  int actual_mhz = 20;  ///< what clock64() counts by
  int cache_bytes = 32 * 1024;
  std::size_t memory_bytes = std::size_t{128} << 20U;  ///< of each device
  Order order = Order::forward;
  bool fresh_shared = false;     ///< shared memory of zeros at each launch: nothing right is left over from the last
  unsigned delay_us = 0;         ///< before each piece of queued work: a device far behind its host
  std::int64_t lose_after = -1;  ///< pieces of work, in this process; then the device is lost
  cudaError_t lost_code = cudaErrorECCUncorrectable;
  bool has_energy_counter = true;
  bool dies = false;  ///< a lost device takes its process along
};
Settings& settings();

/// The error of the last grid that failed; empty when none did.
std::string last_fault();

/// Default settings, no fault, not lost, no kernel loaded: as a new process finds the device. Precondition: nothing of
/// it is in use.
void start_anew();

/// Pieces of work (kernels, copies, events) that this process's streams have begun.
std::int64_t pieces_of_work();

/// Device allocations, pinned memory, streams and events of this process that were not given back.
std::size_t live_objects();

// ---- for what plays libraries beside the runtime ----

/// Queues `work` as a library queues a kernel of its own, loaded when `kernel` is first named.
cudaError_t queue_work(const void* kernel, cudaStream_t stream, std::function<void()> work);

/// True when `bytes` from `memory` on lie in one allocation that the device reaches.
bool reaches(const void* memory, std::size_t bytes);

/// Seconds for which work ran on the device in this process.
double busy_s();

// ---- between runtime.cpp and block.cpp ----

/// Runs all blocks of a grid on the calling thread, one after another. Why it could not, or nothing.
std::optional<std::string> run_grid(const dim3& grid, const dim3& block, std::size_t shared_bytes, Order order,
                                    const std::function<void()>& body);

/// Floats that a launch may ask for beyond the arrays of its kernel: 48 KiB, which every device has.
inline constexpr std::size_t most_shared_floats = 12288;

}  // namespace cuda_on_cpu
