// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/suite.hpp"

#include <algorithm>
#include <cmath>

#include "gpusched/core/rng.hpp"

namespace gpusched {
namespace {

struct ScaleSizes {
  std::uint32_t gemm_fit = 64;
  std::uint32_t gemm_held_out = 24;
  std::uint32_t bandwidth_points = 8;
  double size_share = 1;          ///< of the device's limits
  bool with_seed_program = true;  ///< timed at its own size, whatever the limits are
};

ScaleSizes sizes_of(SuiteScale scale) {
  switch (scale) {
    case SuiteScale::tiny:
      return {
          .gemm_fit = 10, .gemm_held_out = 4, .bandwidth_points = 4, .size_share = 0.02, .with_seed_program = false};
    case SuiteScale::quick: return {.gemm_fit = 64, .gemm_held_out = 24, .bandwidth_points = 4, .size_share = 0.25};
    case SuiteScale::full: break;
  }
  return {};
}

std::int64_t log_uniform(Rng& rng, double low, double high) {
  return static_cast<std::int64_t>(std::llround(low * std::pow(high / low, rng.uniform())));
}

/// Matrix dimensions, log-uniform; three in four are multiples of 64, as layers are. In the others rows still begin at
/// multiples of 8 numbers: those that do not are loaded by other, several times slower code of a GPU's library, which
/// trainers pad their layers to avoid.
KernelCall random_gemm(Kernel kernel, const SuiteLimits& limits, double share, Rng& rng) {
  const auto most = std::max<double>(128, static_cast<double>(limits.gemm_most) * std::cbrt(share));
  // Products with one row have a line of their own where a library runs them by other code.
  const double least_rows = is_row_product({kernel}) ? 2 : 1;
  for (;;) {
    KernelCall call{kernel, log_uniform(rng, least_rows, most), log_uniform(rng, std::min(256.0, most / 4), most),
                    log_uniform(rng, std::min(256.0, most / 4), most)};
    if (rng.uniform() < 0.75) {
      const auto rounded = [](std::int64_t size) {
        return size <= 32 ? size : std::max<std::int64_t>(64, size / 64 * 64);
      };
      call = {kernel, rounded(call.m), rounded(call.n), rounded(call.k)};
    } else {
      const auto padded = [](std::int64_t size) { return (size + 7) / 8 * 8; };
      call = {kernel, call.m, padded(call.n), padded(call.k)};
    }
    if (flops_of(call) <= limits.flops * share && footprint_of(call) <= limits.memory_bytes) return call;
  }
}

KernelCall random_conv(const SuiteLimits& limits, double share, Rng& rng) {
  for (;;) {
    const KernelCall call{Kernel::conv2d, log_uniform(rng, 1, 64), log_uniform(rng, 8, 128), log_uniform(rng, 8, 64)};
    if (flops_of(call) <= limits.flops * share && footprint_of(call) <= limits.memory_bytes) return call;
  }
}

/// A call of a kernel bound by memory that moves about `bytes`.
KernelCall sized(Kernel kernel, double bytes) {
  const auto whole = [](double x) { return std::max<std::int64_t>(1, std::llround(x)); };
  switch (kernel) {
    case Kernel::copy: return {kernel, whole(bytes / 8)};
    case Kernel::triad: return {kernel, whole(bytes / 12)};
    case Kernel::reduce: return {kernel, whole(bytes / 4 / 1024), 1024};
    case Kernel::softmax:
    case Kernel::layernorm: return {kernel, whole(bytes / 8 / 1024), 1024};
    case Kernel::stencil7: return {kernel, whole(std::cbrt(bytes / 8))};
    case Kernel::gather: return {kernel, whole(bytes / 40), whole(bytes / 4)};
    case Kernel::histogram: return {kernel, whole(bytes / 4)};
    default: return {kernel, whole(bytes)};
  }
}

class SuiteMaker {
 public:
  SuiteMaker(const Backend& backend, SuiteScale scale, std::uint64_t seed)
      : backend_(backend), limits_(backend.facts().limits), sizes_(sizes_of(scale)), rng_(Rng(seed).split("suite")) {}

  std::vector<SuitePoint> make() {
    add(PointRole::fit, {Kernel::launch});
    for (const Kernel kernel : {Kernel::fma_fp32, Kernel::fma_fp64, Kernel::fma_fp16}) {
      const double chains = std::max(4096.0, std::min(1048576.0, limits_.flops * sizes_.size_share / 2 / 1024));
      add(PointRole::fit, {kernel, static_cast<std::int64_t>(chains), 1024});
    }
    const double products = std::clamp(limits_.flops * sizes_.size_share / 8192 / 1024, 512.0, 65536.0);
    add(PointRole::fit, {Kernel::mma_bf16, static_cast<std::int64_t>(products), 1024});
    for (const Kernel kernel : {Kernel::copy, Kernel::triad, Kernel::reduce, Kernel::softmax, Kernel::layernorm,
                                Kernel::stencil7, Kernel::gather, Kernel::histogram}) {
      add_bandwidth(kernel);
    }
    for (const Kernel kernel :
         {Kernel::h2d_pinned, Kernel::h2d_pageable, Kernel::d2h_pinned, Kernel::d2h_pageable, Kernel::peer_copy}) {
      add_sizes(kernel, 4096, std::max(1048576.0, 0.25 * limits_.memory_bytes * sizes_.size_share), 10);
    }
    add_gemm(Kernel::gemm_naive16, 16, 8, 0.25);
    if (sizes_.with_seed_program) add(PointRole::held_out, seed_program, Limit::none);
    add_gemm(Kernel::gemm_tiled, 16, 8, 0.5);
    add_gemm(Kernel::gemm_fp32, sizes_.gemm_fit, sizes_.gemm_held_out, 1);
    add_gemm(Kernel::gemm_bf16, sizes_.gemm_fit, sizes_.gemm_held_out, 1);
    Rng rng = rng_.split("conv2d");
    for (int i = 0; i < 16; ++i) {
      add(i < 12 ? PointRole::fit : PointRole::held_out, random_conv(limits_, sizes_.size_share, rng));
    }
    return std::move(points_);
  }

 private:
  enum class Limit : std::uint8_t { of_device, none };

  void add(PointRole role, const KernelCall& call, Limit limit = Limit::of_device) {
    if (!backend_.supports(call.kernel)) return;
    const bool too_large = flops_of(call) > limits_.flops || footprint_of(call) > limits_.memory_bytes;
    if (too_large && limit == Limit::of_device) return;
    std::string id = (role == PointRole::held_out ? "held " : "") + describe(call);
    const auto same = [&](const SuitePoint& point) { return point.id == id; };
    if (std::none_of(points_.begin(), points_.end(), same)) points_.push_back({std::move(id), role, {call}});
  }

  void add_sizes(Kernel kernel, double low, double high, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      add(PointRole::fit, sized(kernel, low * std::pow(high / low, static_cast<double>(i) / (count - 1))));
    }
  }

  /// Sizes well inside each cache and well beyond the last one; sizes near the edge of a cache follow neither line.
  void add_bandwidth(Kernel kernel) {
    const double cache = limits_.cache_bytes;
    const double last = std::max(cache, limits_.last_cache_bytes);
    if (cache > 0) add_sizes(kernel, cache / 64, cache / 2.5, sizes_.bandwidth_points);
    if (last > cache) add_sizes(kernel, 3 * cache, last / 2.5, sizes_.bandwidth_points);
    const double low = last > 0 ? 3 * last : 65536;
    const double most =
        std::min(std::max(8 * last, 0.5 * limits_.memory_bytes * sizes_.size_share), 0.9 * limits_.memory_bytes);
    add_sizes(kernel, low, most, sizes_.bandwidth_points);
    Rng rng = rng_.split("held").split(static_cast<std::uint64_t>(kernel));
    for (int i = 0; i < 2; ++i)
      add(PointRole::held_out, sized(kernel, static_cast<double>(log_uniform(rng, low, most))));
  }

  void add_gemm(Kernel kernel, std::uint32_t fit, std::uint32_t held_out, double share) {
    Rng rng = rng_.split(to_string(kernel));
    for (std::uint32_t i = 0; i < fit + held_out; ++i) {
      add(i < fit ? PointRole::fit : PointRole::held_out, random_gemm(kernel, limits_, share * sizes_.size_share, rng));
    }
    Rng of_rows = rng.split("rows");
    for (std::uint32_t i = 0; i < 6 && is_row_product({kernel}); ++i) {
      KernelCall row = random_gemm(kernel, limits_, share * sizes_.size_share, of_rows);
      row.m = 1;
      add(i < 5 ? PointRole::fit : PointRole::held_out, row);
    }
  }

  const Backend& backend_;
  SuiteLimits limits_;
  ScaleSizes sizes_;
  Rng rng_;
  std::vector<SuitePoint> points_;
};

}  // namespace

std::vector<SuitePoint> composite_steps(const Backend& backend, SuiteScale scale) {
  const Kernel gemm = backend.supports(Kernel::gemm_bf16) ? Kernel::gemm_bf16 : Kernel::gemm_fp32;
  const double budget = backend.facts().limits.flops * sizes_of(scale).size_share;
  // A width at which the largest of the steps stays within the budget of one call.
  const auto width = static_cast<std::int64_t>(std::clamp(std::cbrt(budget / 24) / 64, 1.0, 32.0)) * 64;
  const auto channels = std::clamp<std::int64_t>(width / 16, 8, 64);
  std::vector<SuitePoint> steps;
  for (const std::int64_t scale_up : {1, 2, 4}) {
    const std::int64_t batch = width / 4 * scale_up;
    const std::string suffix = " " + std::to_string(batch) + "x" + std::to_string(width);
    // Forward, gradient of the input, gradient of the weights: three products a layer.
    const auto layer = [&](std::vector<KernelCall>& step, std::int64_t in, std::int64_t out) {
      step.push_back({gemm, batch, out, in});
      step.push_back({gemm, batch, in, out});
      step.push_back({gemm, in, out, batch});
    };
    std::vector<KernelCall> mlp = {{Kernel::h2d_pageable, batch * width * 4}};
    for (int i = 0; i < 3; ++i) layer(mlp, width, width);
    mlp.push_back({Kernel::softmax, batch, width});
    steps.push_back({"step mlp" + suffix, PointRole::composite, mlp});

    const std::int64_t images = 2 * scale_up;
    std::vector<KernelCall> cnn = {{Kernel::h2d_pageable, images * channels * 32 * 32 * 4}};
    for (int i = 0; i < 3; ++i) cnn.push_back({Kernel::conv2d, images, channels, 32});
    cnn.push_back({Kernel::triad, images * channels * 32 * 32});
    layer(cnn, channels, 16);
    steps.push_back({"step cnn " + std::to_string(images) + "x" + std::to_string(channels), PointRole::composite, cnn});

    std::vector<KernelCall> transformer = {{Kernel::h2d_pageable, batch * 4}, {Kernel::layernorm, batch, width}};
    for (int i = 0; i < 4; ++i) layer(transformer, width, width);
    transformer.push_back({Kernel::softmax, batch, width});
    transformer.push_back({Kernel::layernorm, batch, width});
    layer(transformer, width, 4 * width);
    layer(transformer, 4 * width, width);
    steps.push_back({"step transformer" + suffix, PointRole::composite, transformer});

    std::vector<KernelCall> gnn = {{Kernel::h2d_pageable, batch * 4}, {Kernel::gather, batch * width, batch * width}};
    layer(gnn, width, width);
    gnn.push_back({Kernel::reduce, batch, width});
    gnn.push_back({Kernel::triad, batch * width});
    steps.push_back({"step gnn" + suffix, PointRole::composite, gnn});
  }
  std::erase_if(steps, [&](const SuitePoint& point) {
    return std::any_of(point.step.begin(), point.step.end(),
                       [&](const KernelCall& call) { return !backend.supports(call.kernel); });
  });
  return steps;
}

std::vector<SuitePoint> make_suite(const Backend& backend, SuiteScale scale, std::uint64_t seed) {
  std::vector<SuitePoint> points = SuiteMaker(backend, scale, seed).make();
  for (SuitePoint& step : composite_steps(backend, scale)) points.push_back(std::move(step));
  return points;
}

std::vector<std::pair<std::string, KernelCall>> interference_kernels(const Backend& backend) {
  const SuiteLimits limits = backend.facts().limits;
  const double cache = limits.cache_bytes > 0 ? limits.cache_bytes : 1e6;
  const double last_cache = std::max(cache, limits.last_cache_bytes);
  const double side = std::min(std::cbrt(limits.flops / 64), static_cast<double>(limits.gemm_most));
  const auto edge = std::max<std::int64_t>(64, static_cast<std::int64_t>(side) / 64 * 64);
  const Kernel gemm = backend.supports(Kernel::gemm_bf16) ? Kernel::gemm_bf16 : Kernel::gemm_fp32;
  const auto chains = static_cast<std::int64_t>(std::clamp(limits.flops / 64 / 2048, 4096.0, 1048576.0));
  return {{"fma", {Kernel::fma_fp32, chains, 1024}},
          {"dram", sized(Kernel::copy, std::min(8 * last_cache, 0.5 * limits.memory_bytes))},
          {"l2", sized(Kernel::copy, cache / 4)},
          {"gather", sized(Kernel::gather, std::min(2 * last_cache, 0.25 * limits.memory_bytes))},
          {"small", {Kernel::triad, 4096}},
          {"gemm", {gemm, edge, edge, edge}}};
}

std::vector<KernelCall> check_calls(const Backend& backend) {
  std::vector<KernelCall> calls;
  if (backend.supports(seed_program.kernel)) calls.push_back(seed_program);
  for (std::size_t i = 0; i < kernel_count; ++i) {
    const auto kernel = static_cast<Kernel>(i);
    if (!backend.supports(kernel) || kernel == Kernel::launch) continue;
    switch (model_of(kernel)) {
      case KernelModel::roofline:
        // Sides that are no multiples of a tile, so that the edges are exercised.
        calls.push_back(kernel == Kernel::conv2d ? KernelCall{kernel, 3, 8, 13} : KernelCall{kernel, 70, 133, 97});
        break;
      case KernelModel::ceiling: calls.push_back({kernel, 1000, 64}); break;
      default:
        if (kernel == Kernel::reduce || kernel == Kernel::softmax || kernel == Kernel::layernorm) {
          calls.push_back({kernel, 37, 300});
        } else if (kernel == Kernel::gather) {
          calls.push_back({kernel, 10007, 5003});
        } else {
          calls.push_back({kernel, kernel == Kernel::stencil7 ? 19 : 10007});
        }
    }
  }
  return calls;
}

}  // namespace gpusched
