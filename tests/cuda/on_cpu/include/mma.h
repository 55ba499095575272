// SPDX-License-Identifier: Apache-2.0
/// Matrix fragments of a warp, 16 x 16 x 16, bf16 in, float sums. Every lane keeps the whole operands and computes its
/// own eighth of two rows; which cells a lane holds is nobody's business on the device either. Loads and stores must be
/// met by the whole warp with the same arguments and aligned as the device wants it.
#pragma once

#include <array>
#include <cstdint>

#include "cuda_bf16.h"

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
enum layout_t { mem_row_major, mem_col_major };

inline constexpr int side = 16;
inline constexpr int own_cells = side * side / 32;

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(M == side && N == side && K == side && std::is_same_v<Layout, row_major>);
  std::array<float, side * side> cells;
};
template <int M, int N, int K>
struct fragment<accumulator, M, N, K, float, void> {
  static_assert(M == side && N == side && K == side);
  std::array<float, own_cells> cells;
};

using Sum = fragment<accumulator, side, side, side, float>;

/// The whole warp is here and means the same memory.
inline void meet(const void* memory, std::size_t pitch_bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (address % 32 != 0 || pitch_bytes % 16 != 0) cuda_on_cpu::fault("a matrix fragment that is not aligned");
  if (cuda_on_cpu::warp_exchange(~0U, address + pitch_bytes, 0) != address + pitch_bytes) {
    cuda_on_cpu::fault("the lanes of a warp mean different matrix fragments");
  }
}

template <class Use>
void load_matrix_sync(fragment<Use, side, side, side, __nv_bfloat16, row_major>& to, const __nv_bfloat16* from,
                      unsigned pitch) {
  meet(from, pitch * sizeof(__nv_bfloat16));
  for (unsigned i = 0; i < side * side; ++i) to.cells[i] = __bfloat162float(from[i / side * pitch + i % side]);
}

inline void fill_fragment(Sum& sum, float value) { sum.cells.fill(value); }

inline void mma_sync(Sum& out, const fragment<matrix_a, side, side, side, __nv_bfloat16, row_major>& a,
                     const fragment<matrix_b, side, side, side, __nv_bfloat16, row_major>& b, const Sum& add) {
  for (unsigned own = 0; own < own_cells; ++own) {
    const unsigned cell = cuda_on_cpu::lane() * own_cells + own;
    float sum = add.cells[own];
    for (unsigned i = 0; i < side; ++i) sum += a.cells[cell / side * side + i] * b.cells[i * side + cell % side];
    out.cells[own] = sum;
  }
}

inline void store_matrix_sync(float* to, const Sum& sum, unsigned pitch, layout_t layout) {
  meet(to, pitch * sizeof(float));
  for (unsigned own = 0; own < own_cells; ++own) {
    const unsigned cell = cuda_on_cpu::lane() * own_cells + own;
    const unsigned row = cell / side;
    const unsigned column = cell % side;
    to[layout == mem_row_major ? row * pitch + column : column * pitch + row] = sum.cells[own];
  }
}

}  // namespace nvcuda::wmma
