// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/kernel.hpp"

#include <charconv>

namespace gpusched {
namespace {

constexpr std::array<std::string_view, kernel_count> names = {
    "launch",     "copy",      "triad",      "fma_fp32",     "fma_fp64",   "fma_fp16",     "mma_bf16", "gemm_naive16",
    "gemm_tiled", "gemm_fp32", "gemm_bf16",  "reduce",       "softmax",    "layernorm",    "conv2d",   "stencil7",
    "gather",     "histogram", "h2d_pinned", "h2d_pageable", "d2h_pinned", "d2h_pageable", "peer_copy"};

// A random read of 4 bytes moves a whole sector of memory.
constexpr double sector_bytes = 32;

}  // namespace

std::string_view to_string(Kernel kernel) { return names[static_cast<std::size_t>(kernel)]; }

std::optional<Kernel> parse_kernel(std::string_view name) {
  for (std::size_t i = 0; i < kernel_count; ++i) {
    if (names[i] == name) return static_cast<Kernel>(i);
  }
  return std::nullopt;
}

std::string describe(const KernelCall& call) {
  std::string text = std::string(to_string(call.kernel)) + " " + std::to_string(call.m);
  if (call.n != 1 || call.k != 1) text += "x" + std::to_string(call.n);
  if (call.k != 1) text += "x" + std::to_string(call.k);
  return text;
}

std::optional<KernelCall> parse_call(std::string_view text) {
  const std::size_t space = text.find(' ');
  const auto kernel = parse_kernel(text.substr(0, space));
  if (!kernel || space == std::string_view::npos) return std::nullopt;
  KernelCall call{*kernel};
  const char* at = text.data() + space + 1;
  const char* const end = text.data() + text.size();
  for (std::int64_t* size : {&call.m, &call.n, &call.k}) {
    const auto number = std::from_chars(at, end, *size);
    if (number.ec != std::errc{} || *size < 1) return std::nullopt;
    if (number.ptr == end) return call;
    if (*number.ptr != 'x') return std::nullopt;
    at = number.ptr + 1;
  }
  return std::nullopt;
}

double flops_of(const KernelCall& call) {
  const auto m = static_cast<double>(call.m);
  const auto n = static_cast<double>(call.n);
  const auto k = static_cast<double>(call.k);
  switch (call.kernel) {
    case Kernel::triad: return 2 * m;
    case Kernel::fma_fp32:
    case Kernel::fma_fp64:
    case Kernel::fma_fp16: return 2 * m * n;
    case Kernel::mma_bf16: return 2 * 16 * 16 * 16 * m * n;
    case Kernel::gemm_naive16:
    case Kernel::gemm_tiled:
    case Kernel::gemm_fp32:
    case Kernel::gemm_bf16: return 2 * m * n * k;
    case Kernel::reduce: return m * n;
    case Kernel::softmax: return 5 * m * n;
    case Kernel::layernorm: return 8 * m * n;
    case Kernel::conv2d: return 2 * 9 * m * n * n * k * k;
    case Kernel::stencil7: return 8 * m * m * m;
    default: return 0;
  }
}

double bytes_of(const KernelCall& call) {
  const auto m = static_cast<double>(call.m);
  const auto n = static_cast<double>(call.n);
  const auto k = static_cast<double>(call.k);
  switch (call.kernel) {
    case Kernel::copy: return 8 * m;
    case Kernel::triad: return 12 * m;
    case Kernel::fma_fp32: return 4 * m;
    case Kernel::fma_fp64: return 8 * m;
    case Kernel::fma_fp16: return 4 * m;
    case Kernel::mma_bf16: return 16 * 16 * (6 * m + 2);
    case Kernel::gemm_naive16:
    case Kernel::gemm_tiled:
    case Kernel::gemm_fp32: return 4 * (m * k + k * n + m * n);
    case Kernel::gemm_bf16: return 2 * (m * k + k * n) + 4 * m * n;
    case Kernel::reduce: return 4 * (m * n + m);
    case Kernel::softmax:
    case Kernel::layernorm: return 8 * m * n;
    case Kernel::conv2d: return 4 * (2 * m * n * k * k + 9 * n * n);
    case Kernel::stencil7: return 8 * m * m * m;
    case Kernel::gather: return m * (4 + 4 + sector_bytes);
    case Kernel::histogram: return 4 * m;
    case Kernel::h2d_pinned:
    case Kernel::h2d_pageable:
    case Kernel::d2h_pinned:
    case Kernel::d2h_pageable:
    case Kernel::peer_copy: return m;
    case Kernel::launch: return 0;
  }
  return 0;
}

double depth_of(const KernelCall& call) {
  switch (call.kernel) {
    case Kernel::gemm_naive16:
    case Kernel::gemm_tiled: return static_cast<double>(call.k);
    case Kernel::conv2d: return 9 * static_cast<double>(call.n);
    default: return 0;
  }
}

KernelCall in_whole_tiles(KernelCall call, std::int64_t side) {
  call.m = (call.m + side - 1) / side * side;
  call.n = (call.n + side - 1) / side * side;
  return call;
}

double footprint_of(const KernelCall& call) {
  const auto m = static_cast<double>(call.m);
  const auto n = static_cast<double>(call.n);
  if (call.kernel == Kernel::gather) return 8 * m + 4 * n;
  return bytes_of(call);
}

bool is_row_product(const KernelCall& call) {
  return call.m == 1 && (call.kernel == Kernel::gemm_fp32 || call.kernel == Kernel::gemm_bf16);
}

KernelModel model_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::launch: return KernelModel::launch;
    case Kernel::fma_fp32:
    case Kernel::fma_fp64:
    case Kernel::fma_fp16:
    case Kernel::mma_bf16: return KernelModel::ceiling;
    case Kernel::gemm_naive16:
    case Kernel::gemm_tiled:
    case Kernel::gemm_fp32:
    case Kernel::gemm_bf16:
    case Kernel::conv2d: return KernelModel::roofline;
    case Kernel::h2d_pinned:
    case Kernel::h2d_pageable:
    case Kernel::d2h_pinned:
    case Kernel::d2h_pageable:
    case Kernel::peer_copy: return KernelModel::transfer;
    default: return KernelModel::bandwidth;
  }
}

std::string_view peak_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::fma_fp64: return "fp64_tflops";
    case Kernel::fma_fp16: return "fp16_tflops";
    case Kernel::mma_bf16:
    case Kernel::gemm_bf16: return "bf16_tflops";
    default: return "fp32_tflops";
  }
}

const char* representative_of(Kernel kernel) {
  switch (model_of(kernel)) {
    case KernelModel::roofline: return kernel == Kernel::conv2d ? "fma" : "gemm";
    case KernelModel::bandwidth: return kernel == Kernel::gather ? "gather" : "dram";
    default: return "small";
  }
}

}  // namespace gpusched
