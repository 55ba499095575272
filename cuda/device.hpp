// SPDX-License-Identifier: Apache-2.0
/// A CUDA device, measured from within the process that opened it. The backend runs it in a process of its own
/// (cuda_backend.cpp); tests and memory checkers use it directly.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/blas.hpp"
#include "cuda/cuda_kernel.hpp"
#include "cuda/handles.hpp"
#include "src/calibration/measure/backend.hpp"
#include "src/calibration/measure/nvml.hpp"

namespace gpusched::cuda {

/// Device 0. Every call is made from one thread at a time. After an error that the device does not get over (a lost
/// device, an illegal access) every later call fails with the same one.
class Device {
 public:
  /// Errors, in one line: no driver, one too old, no device.
  static Result<std::unique_ptr<Device>> open();

  [[nodiscard]] DeviceFacts facts() const;
  [[nodiscard]] bool supports(Kernel kernel) const;
  [[nodiscard]] std::size_t free_bytes() const;

  // As Backend's.

  /// Time on the device: launches are queued behind a gate, so that the host's own time between them does not count.
  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples);
  Result<double> check(const KernelCall& call);
  Result<std::optional<PowerReading>> power(std::span<const KernelCall> step, double duty, double seconds);
  /// On two streams.
  Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double seconds);

  // Steps held ready to run, by number, caches as they come.
  Result<std::uint64_t> hold(std::span<const KernelCall> step);
  Result<void> run_held(std::uint64_t number, std::uint64_t times);
  void release(std::uint64_t number) { held_.erase(number); }

 private:
  Device();
  std::vector<CudaKernel> make_kernels(std::span<const KernelCall> step, Status& status);
  void keep_prepared(std::span<const KernelCall> step, Status& status);
  void settle_clock(Status& status);
  double between_events_us(Status& status);
  double segment_us(std::span<CudaKernel> kernels, bool flush_first, Status& status);
  double sample_us(bool cold, Status& status);
  double clock_mhz(Status& status);
  double overhead_us(Status& status);

  int sm_count_ = 0, major_ = 0, minor_ = 0;
  std::size_t memory_bytes_ = 0, cache_bytes_ = 0;
  double top_clock_mhz_ = 0;  // what the driver calls the highest
  bool has_peer_ = false;
  std::string model_;
  std::optional<BlasTable> blas_table_;
  std::unique_ptr<Blas> blas_, second_blas_;  // the second for the other stream of co_locate(), made when it is needed
  std::optional<Nvml> nvml_;
  Stream stream_;
  Event begin_, end_;
  DeviceMemory flush_memory_;
  PinnedMemory gate_, clock_;
  double event_overhead_us_ = -1;  // of an empty pair of events; below 0: not measured yet
  double idle_w_ = -1;
  double least_mhz_ = 0, most_mhz_ = 0;
  int slow_points_ = 0;  // in a row, whose clock stayed low however often they were timed
  std::vector<KernelCall> prepared_calls_;
  std::vector<CudaKernel> prepared_;
  std::map<std::uint64_t, std::vector<CudaKernel>> held_;
  std::uint64_t next_held_ = 1;
};

}  // namespace gpusched::cuda
