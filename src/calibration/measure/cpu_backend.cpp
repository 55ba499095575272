// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "src/calibration/measure/backend.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "src/calibration/measure/cpu_kernels.hpp"
#include "src/calibration/measure/processor_use.hpp"
#include "src/calibration/measure/regression.hpp"

namespace gpusched {
namespace {

std::string cpu_model_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

/// Bytes of the cache that processors share; sysconf() tells those of the whole socket.
double last_cache_bytes() {
  std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index3/size");
  double size = 0;
  char unit = 0;
  if (!(in >> size >> unit)) return 0;
  return size * (unit == 'K' ? 1024 : unit == 'M' ? 1048576 : 1);
}

/// Mean time of a run of `kernel` in loops until `end_s` on the monotonic clock.
double loop_us(CpuKernel& kernel, const ThreadTeam& team, double end_s) {
  const PinnedThread pinned = team.pin_caller();
  const double begin = monotonic_s();
  std::uint64_t runs = 0;
  double now = begin;
  while (now < end_s || runs == 0) {
    kernel.run();
    ++runs;
    now = monotonic_s();
  }
  return 1e6 * (now - begin) / static_cast<double>(runs);
}

std::size_t memory_bytes(std::span<const KernelCall> step, const ThreadTeam& team) {
  std::size_t bytes = 0;
  for (const KernelCall& call : step) bytes += CpuKernel::memory_bytes(call, team);
  return bytes;
}

std::vector<CpuKernel> make_kernels(std::span<const KernelCall> step, ThreadTeam& team, CpuMemory& memory) {
  std::vector<CpuKernel> kernels;
  for (std::size_t i = 0; i < step.size(); ++i) kernels.emplace_back(step[i], team, memory, i + 1);
  return kernels;
}

void run_once(std::span<CpuKernel> kernels) {
  for (CpuKernel& kernel : kernels) kernel.run();
}

class CpuStep final : public PreparedStep {
 public:
  CpuStep(std::span<const KernelCall> step, ThreadTeam& team)
      : team_(team), memory_(memory_bytes(step, team)), kernels_(make_kernels(step, team, memory_)) {
    run_once(kernels_);
  }

  Result<void> run(std::uint64_t times) override {
    const PinnedThread pinned = team_.pin_caller();
    for (std::uint64_t i = 0; i < times; ++i) run_once(kernels_);
    return {};
  }

 private:
  ThreadTeam& team_;
  CpuMemory memory_;
  std::vector<CpuKernel> kernels_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(std::uint32_t threads) : threads_(threads), team_(threads) {}

  [[nodiscard]] std::string name() const override { return "cpu"; }

  [[nodiscard]] DeviceFacts facts() const override {
    DeviceFacts facts{
        .kind = "cpu", .vendor = "host", .model = cpu_model_name(), .limits = {}, .co_location_mode = "threads"};
    const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
    const auto cache = static_cast<double>(std::max(0L, ::sysconf(_SC_LEVEL2_CACHE_SIZE))) * threads_;
    facts.resources["memory_bytes"] = quantity("memory_bytes", memory, Source::measured);
    facts.resources["thread_count"] = quantity("thread_count", threads_, Source::measured);
    if (cache > 0) facts.resources["l2_bytes"] = quantity("l2_bytes", cache, Source::measured);
    const double last_cache = last_cache_bytes();
    if (last_cache > 0) facts.resources["l3_bytes"] = quantity("l3_bytes", last_cache, Source::measured);
    facts.environment["clock_policy"] = "as_found";
    facts.environment["cpu"] = facts.model;
    facts.environment["clock"] = "processor time of the slowest thread of each piece";
    const auto now = processor_use();
    if (opened_ && now) {
      facts.environment["other_programs"] = others_share(*opened_, *now) + " of the processors' time";
      facts.environment["stolen_by_host"] = stolen_share(*opened_, *now) + " of the processors' time";
    }
    facts.typical_quantile = 0.25;
    facts.turns = 3;
    // One call takes some tens of milliseconds on a core.
    facts.limits = {.memory_bytes = std::min(memory / 16, 256e6),
                    .flops = 1e9 * threads_,
                    .cache_bytes = cache,
                    // The suite's operands (256 MB) must exceed the last cache well; else it gets no line of its own.
                    .last_cache_bytes = last_cache < 256e6 / 5 ? last_cache : 0,
                    .gemm_most = 1536};
    return facts;
  }

  [[nodiscard]] bool supports(Kernel kernel) const override { return cpu_supports(kernel); }

  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) override {
    const PinnedThread pinned = team_.pin_caller();
    if (!handover_measured_) team_.measure_handover();
    handover_measured_ = true;
    std::vector<CpuKernel> kernels = make_kernels(step, team_, emptied_memory(memory_bytes(step, team_)));
    // The first run loads pages and code, and its time tells how many runs make a sample; a short time is measured
    // again.
    double once_us = 0;
    for (int i = 0; i < 2 && once_us < least_sample_us; ++i) {
      team_.take_busy_us();
      run_once(kernels);
      once_us = std::max(0.1, team_.take_busy_us());
    }
    const auto runs = static_cast<std::uint32_t>(std::clamp(std::ceil(least_sample_us / once_us), 1.0, 1e4));
    std::vector<double> times;
    for (int attempt = 0; attempt < steal_retries; ++attempt) {
      const auto before = processor_use();
      times.clear();
      for (std::uint32_t i = 0; i < samples; ++i) {
        team_.take_busy_us();
        for (std::uint32_t run = 0; run < runs; ++run) run_once(kernels);
        times.push_back(team_.take_busy_us() / runs);
      }
      const auto after = processor_use();
      if (!before || !after || after->stolen_s == before->stolen_s) break;
    }
    return times;
  }

  Result<std::unique_ptr<PreparedStep>> prepare(std::span<const KernelCall> step) override {
    return std::unique_ptr<PreparedStep>(std::make_unique<CpuStep>(step, team_));
  }

  Result<double> check(const KernelCall& call) override {
    const KernelData data = check_data(call);
    CpuKernel kernel(call, team_, emptied_memory(CpuKernel::memory_bytes(call, team_)), data);
    kernel.run();
    return largest_error(kernel.result(), reference_result(call, data));
  }

  Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double seconds) override {
    ThreadTeam other_team(threads_);
    const std::array<KernelCall, 2> calls = {a, b};
    CpuMemory& memory = emptied_memory(memory_bytes(calls, team_));
    CpuKernel kernel_a(a, team_, memory, 1);
    CpuKernel kernel_b(b, other_team, memory, 2);
    kernel_a.run();
    kernel_b.run();
    // Alone and beside the other in turns, so that a disturbance affects both.
    constexpr int rounds = 3;
    const double turn_s = seconds / (3 * rounds);
    std::array<std::vector<double>, 4> times;  // alone a, alone b, a beside b, b beside a
    for (int round = 0; round < rounds; ++round) {
      times[0].push_back(loop_us(kernel_a, team_, monotonic_s() + turn_s));
      times[1].push_back(loop_us(kernel_b, other_team, monotonic_s() + turn_s));
      const double end = monotonic_s() + turn_s;
      double beside_a = 0;
      std::thread other([&] { beside_a = loop_us(kernel_b, other_team, end); });
      times[2].push_back(loop_us(kernel_a, team_, end));
      other.join();
      times[3].push_back(beside_a);
    }
    const auto median = [&](std::size_t which) { return quantile(times[which], 0.5); };
    return std::array<double, 2>{median(2) / median(0), median(3) / median(1)};
  }

  Result<std::vector<double>> cold_start_s(std::uint32_t samples) override {
    std::vector<double> times;
    for (std::uint32_t i = 0; i < samples; ++i) {
      const double begin = monotonic_s();
      auto child = ChildProcess::start([threads = threads_] {
        constexpr KernelCall first{Kernel::gemm_fp32, 64, 64, 64};
        ThreadTeam team(threads);
        CpuMemory memory(CpuKernel::memory_bytes(first, team));
        CpuKernel(first, team, memory, 1).run();
        return std::vector<double>{monotonic_s()};
      });
      if (!child) return Unexpected{child.error()};
      const auto ready = child->wait();
      if (!ready) return Unexpected{ready.error()};
      times.push_back(ready->front() - begin);
    }
    return times;
  }

  Result<std::optional<PowerReading>> power(std::span<const KernelCall>, double, double) override {
    return std::optional<PowerReading>();
  }

 private:
  // Shorter runs are timed together: clocks are read to some tens of nanoseconds.
  static constexpr double least_sample_us = 1000;
  static constexpr int steal_retries = 3;  // samples during which the host took a processor away are taken again

  CpuMemory& emptied_memory(std::size_t bytes) {
    if (memory_ == nullptr || memory_->size() < bytes) {
      memory_ = std::make_unique<CpuMemory>(std::max(bytes, std::size_t{1} << 29));
    }
    memory_->restart();
    return *memory_;
  }

  std::uint32_t threads_;
  ThreadTeam team_;
  std::unique_ptr<CpuMemory> memory_;
  bool handover_measured_ = false;
  std::optional<ProcessorUse> opened_ = processor_use();
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(std::uint32_t threads) {
  return std::make_unique<CpuBackend>(threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace gpusched
