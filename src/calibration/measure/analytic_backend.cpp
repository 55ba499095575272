// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "gpusched/core/rng.hpp"
#include "src/calibration/measure/backend.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "src/calibration/measure/regression.hpp"

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
    if (truth_.sm_count > 0) {
      facts.has_step_floor = true;
      facts.tile_sides = {{Kernel::gemm_tiled, tile_side}};
      facts.resources["sm_count"] = quantity("sm_count", truth_.sm_count, Source::measured);
    }
    return facts;
  }

  [[nodiscard]] bool supports(Kernel kernel) const override { return kernel != Kernel::peer_copy; }

  [[nodiscard]] double clock_s() const override { return clock_s_; }

  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) override {
    double exact = 0;
    for (const KernelCall& call : step) exact += true_time_us(call);
    std::vector<double> times;
    for (std::uint32_t i = 0; i < samples; ++i) {
      const double outlier = rng_.uniform() < truth_.outlier_share ? truth_.outlier_factor : 1;
      times.push_back(exact * outlier * rng_.lognormal(0, truth_.noise_sigma));
      clock_s_ += handling_s + 1e-6 * times.back();
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
  /// The part of the peak that a kernel can reach: about what plain kernels and fp32 do on a device whose matrix units
  /// set the peak.
  [[nodiscard]] double peak_share(Kernel kernel) const {
    if (truth_.sm_count == 0) return 1;
    switch (kernel) {
      case Kernel::gemm_bf16:
      case Kernel::mma_bf16: return 1;
      case Kernel::gemm_naive16: return 0.006;
      case Kernel::gemm_tiled:
      case Kernel::conv2d: return 0.02;
      default: return 0.06;
    }
  }

  /// Blocks of cells that the kernel is divided into; 0: as many as it takes.
  [[nodiscard]] static double blocks_of(const KernelCall& call) {
    const auto parts = [](std::int64_t size, std::int64_t side) {
      const std::int64_t begun = (size + side - 1) / side;
      return static_cast<double>(begun);
    };
    switch (call.kernel) {
      case Kernel::gemm_naive16: return parts(call.m, 16) * parts(call.n, 16);
      case Kernel::gemm_tiled: return parts(call.m, tile_side) * parts(call.n, tile_side);
      case Kernel::gemm_fp32:
      case Kernel::gemm_bf16: return parts(call.m, 128) * parts(call.n, 128);
      case Kernel::conv2d: return parts(call.m * call.k * call.k, 256) * parts(call.n, 4);
      default: return 0;
    }
  }

  /// How much longer the multiprocessors work because blocks are not divided among several.
  [[nodiscard]] double rounding(const KernelCall& call) const {
    const double blocks = blocks_of(call);
    if (truth_.sm_count == 0 || blocks == 0) return 1;
    const double whole = std::ceil(blocks / truth_.sm_count) * truth_.sm_count / blocks;
    const bool library = call.kernel == Kernel::gemm_fp32 || call.kernel == Kernel::gemm_bf16;
    if (!library) return whole;
    // A library splits sums where cells are few, and takes the tile that fits best.
    return blocks < truth_.sm_count ? 1 : 0.5 * (1 + whole);
  }

  [[nodiscard]] double true_time_us(const KernelCall& call) const {
    const Roofline model{truth_.t0_us, truth_.p_tflops * peak_share(call.kernel), truth_.w_gbs, truth_.gamma,
                         truth_.step_ns};
    const bool tiled = truth_.sm_count > 0 && call.kernel == Kernel::gemm_tiled;
    const double flops = flops_of(tiled ? in_whole_tiles(call, tile_side) : call) * rounding(call);
    return model.predict_us(flops, bytes_of(call), depth_of(call));
  }
  /// The larger of the shares of compute and bandwidth that the call keeps busy.
  [[nodiscard]] double busy_share(const KernelCall& call) const {
    const double p_tflops = truth_.p_tflops * peak_share(call.kernel);
    return std::max(flops_of(call) / (p_tflops * 1e6), bytes_of(call) / (truth_.w_gbs * 1e3)) / true_time_us(call);
  }

  static constexpr std::uint32_t tile_side = 64;
  static constexpr double handling_s = 100e-6;  // of a sample: about what queueing it and waiting for it take on a GPU

  AnalyticTruth truth_;
  Rng rng_;
  double clock_s_ = 0;  // how many samples are taken in a given time is then the same on every machine
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

double Backend::clock_s() const { return monotonic_s(); }

Result<std::unique_ptr<PreparedStep>> Backend::prepare(std::span<const KernelCall> step) {
  return std::unique_ptr<PreparedStep>(std::make_unique<TimedStep>(*this, step));
}

double error_limit(const KernelCall& call) {
  if (call == seed_program) return 0;  // sums of twos are exact
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
