// SPDX-License-Identifier: Apache-2.0
/// The kernels that a calibration runs, with their work and bytes. All backends run the same list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

enum class Kernel : std::uint8_t {
  launch,        ///< nothing: what a launch costs
  copy,          ///< b[i] = a[i], m floats
  triad,         ///< a[i] = b[i] + s c[i], m floats
  fma_fp32,      ///< m chains of n dependent-by-four multiply-adds
  fma_fp64,      ///< the same in double
  fma_fp16,      ///< the same in half (pairs)
  mma_bf16,      ///< m chains of n products of 16 x 16 matrices on the matrix units, bf16 in, fp32 sums
  gemm_naive16,  ///< C = A B, one thread a cell, 16 x 16 blocks, no shared memory; m x n x k
  gemm_tiled,    ///< C = A B through tiles held near the processor
  gemm_fp32,     ///< C = A B by the platform's library
  gemm_bf16,     ///< the same, bf16 in, fp32 sums
  reduce,        ///< sums of m rows of n floats
  softmax,       ///< m rows of n
  layernorm,     ///< m rows of n
  conv2d,        ///< 3 x 3, same size, m images of n channels in and out, side k
  stencil7,      ///< 7-point stencil over m^3 cells
  gather,        ///< out[i] = table[index[i]], m random indices into n floats
  histogram,     ///< m values counted into 256 bins with atomics
  h2d_pinned,    ///< m bytes to the device
  h2d_pageable,  ///< the same from ordinary memory
  d2h_pinned,
  d2h_pageable,
  peer_copy,  ///< m bytes to another device
};
inline constexpr std::size_t kernel_count = 23;

/// One run of a kernel at one size.
struct KernelCall {
  Kernel kernel = Kernel::launch;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
};

constexpr bool operator==(const KernelCall& a, const KernelCall& b) {  // nvcc reads this header as C++17
  return a.kernel == b.kernel && a.m == b.m && a.n == b.n && a.k == b.k;
}

/// The computation of the seed program, from which this suite was developed: a product of matrices of ones and twos,
/// 2048 in every cell.
inline constexpr KernelCall seed_program = {Kernel::gemm_naive16, 1024, 1024, 1024};

/// "gemm_naive16": the name in profiles and reports.
std::string_view to_string(Kernel kernel);
std::optional<Kernel> parse_kernel(std::string_view name);

/// "gemm_fp32 512x256x1024".
std::string describe(const KernelCall& call);
/// What describe() wrote; nothing when the text is anything else.
std::optional<KernelCall> parse_call(std::string_view text);

/// Arithmetic operations (a multiply-add is two).
double flops_of(const KernelCall& call);
/// Bytes that must move between memory and processor, or over the link, each once.
double bytes_of(const KernelCall& call);
/// Length of the longest chain of dependent steps of a call, which no number of processors shortens: the terms of one
/// cell's sum. 0: not counted (operations bound by memory; libraries split sums in their own way).
double depth_of(const KernelCall& call);
/// The product with rows and columns rounded up to whole tiles.
KernelCall in_whole_tiles(KernelCall call, std::int64_t side);
/// Bytes of memory that the call's operands take.
double footprint_of(const KernelCall& call);

/// A library's product with a single row: a matrix times a vector, which libraries run by other code (GEMV).
bool is_row_product(const KernelCall& call);

/// How a kernel's time is modelled.
enum class KernelModel : std::uint8_t { roofline, bandwidth, transfer, ceiling, launch };
KernelModel model_of(Kernel kernel);

/// The peak that bounds the kernel: a key of DeviceProfile::peaks.
std::string_view peak_of(Kernel kernel);

/// The kernel of the interference suite ("gemm", "fma", "dram", "gather", "small") that `kernel` behaves like when it
/// shares a device, and in the power it draws.
const char* representative_of(Kernel kernel);

}  // namespace gpusched
