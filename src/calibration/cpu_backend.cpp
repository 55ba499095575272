// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "src/calibration/backend.hpp"
#include "src/calibration/child_process.hpp"
#include "src/calibration/cpu_kernels.hpp"
#include "src/calibration/fit.hpp"

namespace gpusched {
namespace {

std::string cpu_model_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

/// Mean time of a run of `kernel` in loops until `end_s` on the monotonic clock.
double loop_us(CpuKernel& kernel, ThreadTeam& team, double end_s) {
  const double begin = monotonic_s();
  std::uint64_t runs = 0;
  double now = begin;
  while (now < end_s || runs == 0) {
    kernel.run(team);
    ++runs;
    now = monotonic_s();
  }
  return 1e6 * (now - begin) / static_cast<double>(runs);
}

class CpuStep final : public PreparedStep {
 public:
  CpuStep(std::span<const KernelCall> step, ThreadTeam& team) : team_(team) {
    for (std::size_t i = 0; i < step.size(); ++i) kernels_.emplace_back(step[i], i + 1);
    run_once();
  }

  Result<void> run(std::uint64_t times) override {
    for (std::uint64_t i = 0; i < times; ++i) run_once();
    return {};
  }

  void run_once() {
    for (CpuKernel& kernel : kernels_) kernel.run(team_);
  }

 private:
  std::vector<CpuKernel> kernels_;
  ThreadTeam& team_;
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
    facts.environment["clock_policy"] = "as_found";
    facts.environment["cpu"] = facts.model;
    facts.environment["clock"] = "processor time of the slowest thread of each piece";
    facts.typical_quantile = 0.25;
    // One call takes some tens of milliseconds on a core.
    facts.limits = {
        .memory_bytes = std::min(memory / 16, 256e6), .flops = 1e9 * threads_, .cache_bytes = cache, .gemm_most = 1536};
    return facts;
  }

  [[nodiscard]] bool supports(Kernel kernel) const override { return cpu_supports(kernel); }

  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) override {
    if (!handover_measured_) team_.measure_handover();
    handover_measured_ = true;
    CpuStep prepared(step, team_);
    std::vector<double> times;
    for (std::uint32_t i = 0; i < samples; ++i) {
      team_.take_busy_us();
      prepared.run_once();
      times.push_back(team_.take_busy_us());
    }
    return times;
  }

  Result<std::unique_ptr<PreparedStep>> prepare(std::span<const KernelCall> step) override {
    return std::unique_ptr<PreparedStep>(std::make_unique<CpuStep>(step, team_));
  }

  Result<double> check(const KernelCall& call) override {
    CpuKernel kernel(call, 7);
    kernel.run(team_);
    return largest_error(kernel.result(), reference_result(call, kernel.data()));
  }

  Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double seconds) override {
    CpuKernel kernel_a(a, 1);
    CpuKernel kernel_b(b, 2);
    ThreadTeam other_team(threads_);
    kernel_a.run(team_);
    kernel_b.run(other_team);
    // Alone and beside by turns, so that a disturbance from outside meets both.
    constexpr int rounds = 3;
    const double turn_s = seconds / (3 * rounds);
    std::array<std::vector<double>, 4> times;  // alone a, alone b, a beside b, b beside a
    for (int round = 0; round < rounds; ++round) {
      times[0].push_back(loop_us(kernel_a, team_, monotonic_s() + turn_s));
      times[1].push_back(loop_us(kernel_b, team_, monotonic_s() + turn_s));
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
        ThreadTeam team(threads);
        CpuKernel first({Kernel::gemm_fp32, 64, 64, 64}, 1);
        first.run(team);
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
  std::uint32_t threads_;
  ThreadTeam team_;
  bool handover_measured_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(std::uint32_t threads) {
  return std::make_unique<CpuBackend>(threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace gpusched
