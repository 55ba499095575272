// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "src/calibration/backend.hpp"
#include "src/calibration/child_process.hpp"
#include "src/calibration/cpu_kernels.hpp"

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
    // One call takes some tens of milliseconds on a core.
    facts.limits = {
        .memory_bytes = std::min(memory / 16, 256e6), .flops = 1e9 * threads_, .cache_bytes = cache, .gemm_most = 1536};
    return facts;
  }

  [[nodiscard]] bool supports(Kernel kernel) const override { return cpu_supports(kernel); }

  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) override {
    std::vector<CpuKernel> kernels;
    for (std::size_t i = 0; i < step.size(); ++i) kernels.emplace_back(step[i], i + 1);
    const auto run = [&] {
      for (CpuKernel& kernel : kernels) kernel.run(team_);
    };
    run();
    std::vector<double> times;
    for (std::uint32_t i = 0; i < samples; ++i) {
      const double begin = monotonic_s();
      run();
      times.push_back(1e6 * (monotonic_s() - begin));
    }
    return times;
  }

  Result<double> check(const KernelCall& call) override {
    CpuKernel kernel(call, 7);
    kernel.run(team_);
    return largest_error(kernel.result(), reference_result(call, kernel.data()));
  }

  Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double seconds) override {
    CpuKernel kernel_a(a, 1);
    CpuKernel kernel_b(b, 2);
    const auto warm_loop = [&](CpuKernel& kernel, ThreadTeam& team) {
      kernel.run(team);
      return loop_us(kernel, team, monotonic_s() + seconds / 3);
    };
    const double alone_a = warm_loop(kernel_a, team_);
    const double alone_b = warm_loop(kernel_b, team_);
    const double end = monotonic_s() + seconds / 3;
    double beside_b = 0;
    std::thread other([&] {
      ThreadTeam own(threads_);
      beside_b = loop_us(kernel_b, own, end);
    });
    const double beside_a = loop_us(kernel_a, team_, end);
    other.join();
    return std::array<double, 2>{beside_a / alone_a, beside_b / alone_b};
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
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(std::uint32_t threads) {
  return std::make_unique<CpuBackend>(threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace gpusched
