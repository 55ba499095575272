// SPDX-License-Identifier: Apache-2.0
#include "cuda/device.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#include "cuda/kernels.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "src/calibration/measure/regression.hpp"

namespace gpusched::cuda {
namespace {

// Longer than any step of the suite: the gate opens by itself in case the host is blocked behind it.
constexpr std::uint64_t gate_limit_ns = 2'000'000'000;
constexpr std::uint64_t clock_span_ns = 200'000;
constexpr double settle_s = 0.5;      // of full load, until an idle device has raised its clocks
constexpr double call_s = 0.02;       // of all lanes at the top clock: the most that one call of the suite computes
constexpr double sm_lanes = 128;      // fp32, of the widest multiprocessors
constexpr double least_clock = 0.75;  // of the highest seen; below it samples are dropped
constexpr int clock_retries = 5;
constexpr int most_slow_points = 3;     // after as many in a row the low clock is what load does to the device
constexpr double loop_batch_us = 1000;  // of work queued at a time in a loop
constexpr double idle_window_s = 2.5;
constexpr double power_rise_s = 0.4;  // after a change of load
constexpr double duty_period_s = 0.1;

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// "NVIDIA A100-SXM4-80GB" -> "A100-SXM4-80GB".
std::string model_of(std::string name) {
  for (const char* prefix : {"NVIDIA ", "GeForce ", "Tesla "}) {
    if (name.starts_with(prefix)) name.erase(0, std::char_traits<char>::length(prefix));
  }
  return name;
}

std::string mps_state() {
  const char* folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::string control = std::string(folder != nullptr ? folder : "/tmp/nvidia-mps") + "/control";
  return ::access(control.c_str(), F_OK) == 0 ? "on" : "off";
}

int attribute(cudaDeviceAttr which, Status& status) {
  int value = 0;
  status.note(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

void queue_all(std::span<CudaKernel> kernels, cudaStream_t stream, Status& status) {
  for (CudaKernel& kernel : kernels) kernel.queue(stream, status);
}

/// Mean time of a run of `kernels` in loops until `end_s`, with always a batch queued behind the one that runs, so that
/// the device does not wait for the host. Counts whole batches.
double loop_kernels_us(std::span<CudaKernel> kernels, cudaStream_t stream, double end_s, Status& status) {
  // Two runs tell how many make a batch.
  const double probe = monotonic_s();
  for (int i = 0; i < 2; ++i) queue_all(kernels, stream, status);
  status.note(cudaStreamSynchronize(stream), "waiting for a loop");
  const double run_us = std::max(1.0, 0.5e6 * (monotonic_s() - probe));
  const int batch = static_cast<int>(std::clamp(loop_batch_us / run_us, 1.0, 256.0));

  std::array<Event, 2> done = {make_event(status), make_event(status)};
  const double begin = monotonic_s();
  double now = begin;
  std::uint64_t queued = 0;
  std::uint64_t finished = 0;
  while (status.good() && (now < end_s || finished == 0)) {
    for (int i = 0; i < batch; ++i) queue_all(kernels, stream, status);
    status.note(cudaEventRecord(done[queued % 2].get(), stream), "cudaEventRecord");
    ++queued;
    if (queued < 2) continue;
    status.note(cudaEventSynchronize(done[queued % 2].get()), "waiting for a loop");
    ++finished;
    now = monotonic_s();
  }
  const double us =
      finished > 0 ? 1e6 * (now - begin) / static_cast<double>(finished * static_cast<unsigned>(batch)) : 0;
  status.note(cudaStreamSynchronize(stream), "waiting for a loop");
  return us;
}

}  // namespace

Device::Device() = default;

Result<std::unique_ptr<Device>> Device::open() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorInsufficientDriver) {
    return unexpected("no CUDA driver, or one older than this program's CUDA; --backend cpu measures the processor");
  }
  if (found == cudaErrorNoDevice || (found == cudaSuccess && count == 0)) {
    return unexpected("no CUDA device; --backend cpu measures the processor");
  }
  Status status;
  status.note(found, "cudaGetDeviceCount");
  auto device = std::unique_ptr<Device>(new Device());
  // A waiting host thread blocks instead of spinning, so that it neither competes with a thread that queues work
  // (co-location) nor adds noise.
  status.note(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), "cudaSetDeviceFlags");
  status.note(cudaSetDevice(0), "cudaSetDevice");
  cudaDeviceProp properties{};
  status.note(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  device->model_ = model_of(properties.name);
  device->memory_bytes_ = properties.totalGlobalMem;
  device->sm_count_ = properties.multiProcessorCount;
  device->major_ = properties.major;
  device->minor_ = properties.minor;
  device->cache_bytes_ = static_cast<std::size_t>(std::max(0, properties.l2CacheSize));
  device->top_clock_mhz_ = attribute(cudaDevAttrClockRate, status) / 1e3;
  int can_reach = 0;
  if (count > 1) status.note(cudaDeviceCanAccessPeer(&can_reach, 0, 1), "cudaDeviceCanAccessPeer");
  device->has_peer_ = count > 1;
  if (can_reach != 0) status.note(cudaDeviceEnablePeerAccess(1, 0), "cudaDeviceEnablePeerAccess");
  if (!status.good()) return status.error();

  device->stream_ = make_stream(status);
  device->begin_ = make_event(status);
  device->end_ = make_event(status);
  device->gate_ = pinned_memory(2 * sizeof(int), status);
  device->clock_ = pinned_memory(2 * sizeof(std::uint64_t), status);
  // Twice the cache, since it is not replaced strictly in order of age.
  const std::size_t flush_bytes = 2 * device->cache_bytes_;
  device->flush_memory_ = device_memory(flush_bytes, status);
  if (status.good() && flush_bytes > 0) {
    status.note(queue_random_floats(static_cast<float*>(device->flush_memory_.get()), flush_bytes / sizeof(float), 1,
                                    device->stream_.get()),
                "making random data");
  }
  // CUDA loads a kernel's code at its first launch, and may wait until the device is idle: behind a closed gate that
  // would never happen. So both are launched here once, with the gate open.
  if (status.good()) {
    auto* gate = static_cast<volatile int*>(device->gate_.get());
    gate[0] = 1;
    auto* memory = static_cast<float*>(device->flush_memory_.get());
    status.note(queue_gate(gate, gate_limit_ns, device->stream_.get()), "the gate kernel");
    if (flush_bytes > 0) {
      status.note(queue_flush(memory, flush_bytes, memory, device->stream_.get()), "flushing the cache");
    }
  }
  device->blas_table_ = load_blas();
  if (device->blas_table_ && status.good()) device->blas_ = Blas::open(*device->blas_table_, status);
  status.note(cudaDeviceSynchronize(), "opening the device");
  if (!status.good()) return status.error();
  if (const auto nvml = load_nvml()) {
    std::array<char, 32> bus{};
    status.note(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), 0), "cudaDeviceGetPCIBusId");
    device->nvml_ = Nvml::open_by_bus(*nvml, bus.data());
  }
  if (!status.good()) return status.error();
  return device;
}

DeviceFacts Device::facts() const {
  DeviceFacts facts{.kind = "gpu",
                    .vendor = "NVIDIA",
                    .model = model_,
                    .limits = {},
                    .co_location_mode = "streams",
                    .is_hopper = major_ == 9};
  if (nvml_) {
    facts.environment = nvml_->facts();
  } else {
    facts.environment["nvml"] = "unavailable";
  }
  int runtime = 0;
  int driver = 0;
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) facts.environment["cuda_runtime"] = version_text(runtime);
  if (cudaDriverGetVersion(&driver) == cudaSuccess) facts.environment["cuda_driver"] = version_text(driver);
  facts.environment["cublas"] = blas_ ? blas_->version() : "unavailable";
  facts.environment["compute_capability"] = std::to_string(major_) + "." + std::to_string(minor_);
  facts.environment["clock_policy"] = "as_found";
  facts.environment["mps"] = mps_state();
  if (most_mhz_ > 0) {
    facts.environment["sm_clock_mhz"] = std::to_string(std::lround(least_mhz_)) + " to " +
                                        std::to_string(std::lround(most_mhz_)) + " after the samples, at most " +
                                        std::to_string(std::lround(top_clock_mhz_));
  }
  const auto add = [&](const char* key, double value) {
    facts.resources[key] = quantity(key, value, Source::measured);
  };
  add("memory_bytes", static_cast<double>(memory_bytes_));
  add("sm_count", sm_count_);
  if (cache_bytes_ > 0) add("l2_bytes", static_cast<double>(cache_bytes_));
  // Up to 2 GiB a copy, and products of side 8192 where the device is large enough for them: at most some tens of
  // milliseconds a call on any device since Turing.
  const double lanes_flops = call_s * 2 * sm_lanes * sm_count_ * top_clock_mhz_ * 1e6;
  facts.limits = {.memory_bytes = std::min(static_cast<double>(memory_bytes_) / 8, 4294967296.0),
                  .flops = lanes_flops > 0 ? std::min(1.1e12, lanes_flops) : 1.1e12,
                  .cache_bytes = static_cast<double>(cache_bytes_),
                  .gemm_most = 8192};
  return facts;
}

bool Device::supports(Kernel kernel) const {
  switch (kernel) {
    case Kernel::mma_bf16: return major_ >= 8;
    case Kernel::gemm_fp32: return blas_ != nullptr;
    case Kernel::gemm_bf16: return blas_ != nullptr && major_ >= 8;
    case Kernel::peer_copy: return has_peer_;
    default: return true;
  }
}

std::size_t Device::free_bytes() const {
  std::size_t free = 0;
  std::size_t all = 0;
  return cudaMemGetInfo(&free, &all) == cudaSuccess ? free : 0;
}

std::vector<CudaKernel> Device::make_kernels(std::span<const KernelCall> step, Status& status) {
  std::vector<CudaKernel> kernels;
  for (std::size_t i = 0; i < step.size() && status.good(); ++i) {
    kernels.emplace_back(step[i], nullptr, i + 1, blas_.get(), status);
  }
  return kernels;
}

// The last step's operands stay, since a point is often timed again at once: making gigabytes of them takes a second.
void Device::keep_prepared(std::span<const KernelCall> step, Status& status) {
  if (std::equal(step.begin(), step.end(), prepared_calls_.begin(), prepared_calls_.end())) return;
  prepared_.clear();
  prepared_calls_.clear();
  settle_clock(status);
  prepared_ = make_kernels(step, status);
  // Twice: the first run loads code and lets libraries choose their algorithms.
  for (int i = 0; i < 2 && status.good(); ++i) {
    queue_all(prepared_, stream_.get(), status);
    status.note(cudaStreamSynchronize(stream_.get()), "warming up");
  }
  if (status.good()) prepared_calls_.assign(step.begin(), step.end());
}

void Device::settle_clock(Status& status) {
  if (most_mhz_ > 0) return;
  // Four times as many threads as a multiprocessor holds.
  CudaKernel load({Kernel::fma_fp32, std::int64_t{8192} * sm_count_, 4096}, nullptr, 1, nullptr, status);
  if (status.good()) loop_kernels_us({&load, 1}, stream_.get(), monotonic_s() + settle_s, status);
  least_mhz_ = most_mhz_ = clock_mhz(status);
}

double Device::between_events_us(Status& status) {
  float ms = 0;
  status.note(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "cudaEventElapsedTime");
  return 1e3 * static_cast<double>(ms);
}

// Kernels between two events, all queued before the first runs.
double Device::segment_us(std::span<CudaKernel> kernels, bool flush_first, Status& status) {
  auto* gate = static_cast<volatile int*>(gate_.get());
  gate[0] = 0;
  gate[1] = 0;
  status.note(queue_gate(gate, gate_limit_ns, stream_.get()), "the gate kernel");
  if (flush_first) {
    auto* memory = static_cast<float*>(flush_memory_.get());
    status.note(queue_flush(memory, 2 * cache_bytes_, memory, stream_.get()), "flushing the cache");
  }
  status.note(cudaEventRecord(begin_.get(), stream_.get()), "cudaEventRecord");
  queue_all(kernels, stream_.get(), status);
  status.note(cudaEventRecord(end_.get(), stream_.get()), "cudaEventRecord");
  gate[0] = 1;
  status.note(cudaStreamSynchronize(stream_.get()), "timing");
  if (gate[1] != 0) status.fail("CUDA: queueing a step took longer than the two seconds that its gate stays closed");
  return status.good() ? between_events_us(status) : 0;
}

// A copy of ordinary memory makes the host wait for the device, so that nothing can be queued behind a gate with it: it
// is timed by itself, and what follows behind a gate again. The cache is emptied before the first that can be.
double Device::sample_us(bool cold, Status& status) {
  double total = 0;
  bool flush_first = cold && cache_bytes_ > 0;
  for (std::size_t i = 0; i < prepared_.size() && status.good();) {
    std::size_t end = i;
    while (end < prepared_.size() && !prepared_[end].blocks_host()) ++end;
    if (end > i) {
      const double us = segment_us(std::span(prepared_).subspan(i, end - i), flush_first, status);
      total += std::max(0.05, us - event_overhead_us_);
      flush_first = false;
      i = end;
    } else {
      status.note(cudaEventRecord(begin_.get(), stream_.get()), "cudaEventRecord");
      prepared_[i].queue(stream_.get(), status);
      status.note(cudaEventRecord(end_.get(), stream_.get()), "cudaEventRecord");
      status.note(cudaStreamSynchronize(stream_.get()), "timing");
      total += between_events_us(status);
      ++i;
    }
  }
  return total;
}

double Device::clock_mhz(Status& status) {
  auto* count = static_cast<std::uint64_t*>(clock_.get());
  status.note(queue_clock_count(count, clock_span_ns, stream_.get()), "counting the clock");
  status.note(cudaStreamSynchronize(stream_.get()), "counting the clock");
  return status.good() && count[1] > 0 ? 1e3 * static_cast<double>(count[0]) / static_cast<double>(count[1]) : 0;
}

double Device::overhead_us(Status& status) {
  std::vector<double> empty;
  for (int i = 0; i < 50 && status.good(); ++i) empty.push_back(segment_us({}, false, status));
  return quantile(empty, 0.5);
}

Result<std::vector<double>> Device::time_us(std::span<const KernelCall> step, std::uint32_t samples) {
  Status status;
  keep_prepared(step, status);
  if (event_overhead_us_ < 0 && status.good()) event_overhead_us_ = overhead_us(status);
  // A kernel bound by memory whose operands fit the cache is what the line "inside the cache" is fitted to.
  const bool hot = step.size() == 1 && gpusched::model_of(step[0].kernel) == KernelModel::bandwidth &&
                   footprint_of(step[0]) <= 0.5 * static_cast<double>(cache_bytes_);
  std::vector<double> times;
  const int attempts = slow_points_ < most_slow_points ? clock_retries : 1;
  for (int attempt = 0; attempt < attempts && status.good(); ++attempt) {
    times.clear();
    for (std::uint32_t i = 0; i < samples && status.good(); ++i) times.push_back(sample_us(!hot, status));
    const double mhz = clock_mhz(status);
    if (mhz >= least_clock * most_mhz_) {
      least_mhz_ = std::min(least_mhz_, mhz);
      most_mhz_ = std::max(most_mhz_, mhz);
      slow_points_ = 0;
      break;
    }
    // The device lowered its clock: the samples of the last attempt are kept in any case, with the clock frequency.
    least_mhz_ = std::min(least_mhz_, mhz);
    if (attempt + 1 == attempts) {
      ++slow_points_;
    } else {
      sleep_s(0.05);
    }
  }
  if (!status.good()) return status.error();
  return times;
}

Result<double> Device::check(const KernelCall& call) {
  Status status;
  const KernelData data = check_data(call);
  CudaKernel kernel(call, &data, 0, blas_.get(), status);
  if (!status.good()) return status.error();
  kernel.queue(stream_.get(), status);
  status.note(cudaStreamSynchronize(stream_.get()), std::string(to_string(call.kernel)).c_str());
  if (!status.good()) return status.error();
  const std::vector<double> result = kernel.result(status);
  if (!status.good()) return status.error();
  return largest_error(result, reference_result(call, data));
}

Result<std::uint64_t> Device::hold(std::span<const KernelCall> step) {
  Status status;
  std::vector<CudaKernel> kernels = make_kernels(step, status);
  if (status.good()) queue_all(kernels, stream_.get(), status);
  status.note(cudaStreamSynchronize(stream_.get()), "warming up");
  if (!status.good()) return status.error();
  held_.emplace(next_held_, std::move(kernels));
  return next_held_++;
}

Result<void> Device::run_held(std::uint64_t number, std::uint64_t times) {
  const auto held = held_.find(number);
  if (held == held_.end()) return unexpected("CUDA: unknown step");
  Status status;
  for (std::uint64_t i = 0; i < times && status.good(); ++i) queue_all(held->second, stream_.get(), status);
  status.note(cudaStreamSynchronize(stream_.get()), "running a step");
  if (!status.good()) return status.error();
  return {};
}

Result<std::array<double, 2>> Device::co_locate(const KernelCall& a, const KernelCall& b, double seconds) {
  Status status;
  settle_clock(status);
  prepared_.clear();
  prepared_calls_.clear();
  if (blas_table_ && !second_blas_) second_blas_ = Blas::open(*blas_table_, status);
  CudaKernel first(a, nullptr, 1, blas_.get(), status);
  CudaKernel second(b, nullptr, 2, second_blas_.get(), status);
  const Stream other_stream = make_stream(status);
  if (!status.good()) return status.error();
  const auto loop = [&](CudaKernel& kernel, cudaStream_t stream, double end_s) {
    return loop_kernels_us({&kernel, 1}, stream, end_s, status);
  };
  loop(first, stream_.get(), 0);  // loads code, chooses algorithms
  loop(second, other_stream.get(), 0);
  const double alone_first = loop(first, stream_.get(), monotonic_s() + seconds / 3);
  const double alone_second = loop(second, other_stream.get(), monotonic_s() + seconds / 3);
  const double end_s = monotonic_s() + seconds / 3;
  double beside_second = 0;
  Status other_status;
  std::thread other([&] { beside_second = loop_kernels_us({&second, 1}, other_stream.get(), end_s, other_status); });
  const double beside_first = loop(first, stream_.get(), end_s);
  other.join();
  if (!status.good()) return status.error();
  if (!other_status.good()) return other_status.error();
  return std::array<double, 2>{beside_first / alone_first, beside_second / alone_second};
}

Result<std::optional<PowerReading>> Device::power(std::span<const KernelCall> step, double duty, double seconds) {
  if (!nvml_ || !nvml_->energy_j()) return std::optional<PowerReading>();
  Status status;
  const auto mean_w = [&](double span_s, auto&& run) {
    const double begin_s = monotonic_s();
    const double begin_j = nvml_->energy_j().value_or(0);
    run(begin_s + span_s);
    const double used_j = nvml_->energy_j().value_or(0) - begin_j;
    return std::pair{used_j / (monotonic_s() - begin_s), monotonic_s() - begin_s};
  };
  if (idle_w_ < 0) {
    sleep_s(1);  // what the device did before dies away
    idle_w_ = mean_w(idle_window_s, [](double end_s) { sleep_s(end_s - monotonic_s()); }).first;
  }
  keep_prepared(step, status);
  const auto run = [&](double end_s) {
    while (status.good() && monotonic_s() < end_s) {
      const double period_end = std::min(end_s, monotonic_s() + duty_period_s);
      loop_kernels_us(prepared_, stream_.get(), period_end - (1 - duty) * duty_period_s, status);
      if (duty < 1) sleep_s(std::max(0.0, period_end - monotonic_s()));
    }
  };
  run(monotonic_s() + std::min(power_rise_s, 0.2 * seconds));
  const auto [watts, span_s] = mean_w(seconds, run);
  if (!status.good()) return status.error();
  return std::optional(PowerReading{.watts = watts, .idle_watts = idle_w_, .seconds = span_s});
}

}  // namespace gpusched::cuda
