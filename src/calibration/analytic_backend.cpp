// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "gpusched/rng.hpp"
#include "src/calibration/backend.hpp"
#include "src/calibration/fit.hpp"

namespace gpusched {
namespace {

class AnalyticBackend final : public Backend {
 public:
  explicit AnalyticBackend(const AnalyticTruth& truth) : truth_(truth), rng_(Rng(truth.seed).split("analytic")) {}

  [[nodiscard]] std::string name() const override { return "analytic"; }

  [[nodiscard]] DeviceFacts facts() const override {
    DeviceFacts facts{
        .kind = "gpu", .vendor = "gpusched", .model = "analytic", .limits = {}, .co_location_mode = "model"};
    facts.limits = {.memory_bytes = 4e9, .flops = 1e12, .cache_bytes = 0, .gemm_most = 8192};
    facts.environment["clock_policy"] = "constant";
    return facts;
  }

  [[nodiscard]] bool supports(Kernel kernel) const override { return kernel != Kernel::peer_copy; }

  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) override {
    double exact = 0;
    for (const KernelCall& call : step) exact += true_time_us(call);
    std::vector<double> times;
    for (std::uint32_t i = 0; i < samples; ++i) {
      const double outlier = rng_.uniform() < truth_.outlier_share ? truth_.outlier_factor : 1;
      times.push_back(exact * outlier * rng_.lognormal(0, truth_.noise_sigma));
    }
    return times;
  }

  Result<double> check(const KernelCall&) override { return 0.0; }

  Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double) override {
    const double slowdown = default_slowdown(busy_share(a), busy_share(b));
    return std::array<double, 2>{slowdown * rng_.lognormal(0, truth_.noise_sigma),
                                 slowdown * rng_.lognormal(0, truth_.noise_sigma)};
  }

  Result<std::vector<double>> cold_start_s(std::uint32_t samples) override {
    std::vector<double> times;
    for (std::uint32_t i = 0; i < samples; ++i) times.push_back(0.3 * rng_.lognormal(0, truth_.noise_sigma));
    return times;
  }

  Result<std::optional<PowerReading>> power(std::span<const KernelCall> step, double duty, double seconds) override {
    double busy_us = 0;
    double total_us = 0;
    for (const KernelCall& call : step) {
      busy_us += busy_share(call) * true_time_us(call);
      total_us += true_time_us(call);
    }
    const double share = busy_us / total_us;
    constexpr double idle_w = 60;
    constexpr double span_w = 340;
    const double watts = idle_w + span_w * share * duty * rng_.lognormal(0, truth_.noise_sigma / 4);
    return std::optional(PowerReading{.watts = watts, .idle_watts = idle_w, .seconds = std::max(seconds, 2.0)});
  }

 private:
  [[nodiscard]] double true_time_us(const KernelCall& call) const {
    return Roofline{truth_.t0_us, truth_.p_tflops, truth_.w_gbs, truth_.gamma}.predict_us(flops_of(call),
                                                                                          bytes_of(call));
  }
  /// The larger of the shares of compute and bandwidth that the call keeps busy.
  [[nodiscard]] double busy_share(const KernelCall& call) const {
    const double time = true_time_us(call);
    return std::max(flops_of(call) / (truth_.p_tflops * 1e6), bytes_of(call) / (truth_.w_gbs * 1e3)) / time;
  }

  AnalyticTruth truth_;
  Rng rng_;
};

}  // namespace

std::unique_ptr<Backend> make_analytic_backend(const AnalyticTruth& truth) {
  return std::make_unique<AnalyticBackend>(truth);
}

namespace {

class TimedStep final : public PreparedStep {
 public:
  TimedStep(Backend& backend, std::span<const KernelCall> step) : backend_(backend), step_(step.begin(), step.end()) {}

  Result<void> run(std::uint64_t times) override {
    if (const auto done = backend_.time_us(step_, static_cast<std::uint32_t>(times)); !done) {
      return Unexpected{done.error()};
    }
    return {};
  }

 private:
  Backend& backend_;
  std::vector<KernelCall> step_;
};

}  // namespace

Result<std::unique_ptr<PreparedStep>> Backend::prepare(std::span<const KernelCall> step) {
  return std::unique_ptr<PreparedStep>(std::make_unique<TimedStep>(*this, step));
}

double error_limit(const KernelCall& call) {
  switch (call.kernel) {
    case Kernel::gemm_bf16:
    case Kernel::mma_bf16:
    case Kernel::fma_fp16: return 2e-2;  // 8 to 11 bits of mantissa in the inputs
    case Kernel::copy:
    case Kernel::gather:
    case Kernel::histogram:
    case Kernel::h2d_pinned:
    case Kernel::h2d_pageable:
    case Kernel::d2h_pinned:
    case Kernel::d2h_pageable:
    case Kernel::peer_copy: return 0;
    default: return 1e-4;  // fp32 sums of up to some thousand terms
  }
}

}  // namespace gpusched
