// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/cpu_kernels.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace gpusched {
namespace {

using Index = std::int64_t;
using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Real>
void chain_block(const float* a, Real* out, Index length) {
  constexpr Index lanes = 64;  // enough independent chains to fill the vector units and hide their latency
  Real x[lanes] = {};
  for (Index i = 0; i < length; ++i) {
    for (Index lane = 0; lane < lanes; ++lane) x[lane] = x[lane] * Real{fma_factor} + static_cast<Real>(a[lane]);
  }
  std::copy(x, x + lanes, out);
}

template <class Real>
void chains(const float* a, Real* out, Index first, Index last, Index length) {
  Index at = first;
  for (; at + 64 <= last; at += 64) chain_block(a + at, out + at, length);
  for (; at < last; ++at) {
    Real x = 0;
    for (Index i = 0; i < length; ++i) x = x * Real{fma_factor} + static_cast<Real>(a[at]);
    out[at] = x;
  }
}

/// A part of the cells of a product: rows and columns from first to last.
struct Cells {
  Index first_row, last_row, first_column, last_column;
};

// The 16 x 16 cells of a block advance through k together, as the threads of a GPU's block do, without any blocking for
// caches.
void multiply_naive(const float* a, const float* b, float* c, const Cells& cells, Index n, Index k) {
  constexpr Index side = 16;
  for (Index i0 = cells.first_row; i0 < cells.last_row; i0 += side) {
    const Index rows = std::min(side, cells.last_row - i0);
    for (Index j0 = cells.first_column; j0 < cells.last_column; j0 += side) {
      const Index columns = std::min(side, cells.last_column - j0);
      const Index left = std::max<Index>(0, std::min(j0, n - side));  // a block at the edge is moved inwards
      float sum[side][side] = {};
      const auto add_up = [&](auto width) {
        for (Index p = 0; p < k; ++p) {
          for (Index i = 0; i < rows; ++i) {
            const float factor = a[(i0 + i) * k + p];
            for (Index j = 0; j < width; ++j) sum[i][j] += factor * b[p * n + left + j];
          }
        }
      };
      // With a width known at compile time the compiler emits vector operations.
      if (n >= side) {
        add_up(std::integral_constant<Index, side>());
      } else {
        add_up(n);
      }
      for (Index i = 0; i < rows; ++i) std::copy_n(sum[i] + j0 - left, columns, c + (i0 + i) * n + j0);
    }
  }
}

// A panel of B of 64 x 256 floats (64 KiB) stays in the cache while rows of A are multiplied with it. Sums are kept in
// the thread until they are complete, because neighbouring cells may belong to two threads and share a cache line.
void multiply_tiled(const float* a, const float* b, float* c, const Cells& cells, Index n, Index k) {
  constexpr Index tile_k = 64;
  constexpr Index tile_n = 256;
  std::array<float, tile_n> sum;
  for (Index p0 = 0; p0 < k; p0 += tile_k) {
    for (Index j0 = cells.first_column; j0 < cells.last_column; j0 += tile_n) {
      const Index columns = std::min(tile_n, cells.last_column - j0);
      for (Index i = cells.first_row; i < cells.last_row; ++i) {
        if (p0 == 0) {
          std::fill_n(sum.begin(), columns, 0.0F);
        } else {
          std::copy_n(c + i * n + j0, columns, sum.begin());
        }
        for (Index p = p0; p < std::min(p0 + tile_k, k); ++p) {
          const float factor = a[i * k + p];
          for (Index j = 0; j < columns; ++j) sum[static_cast<std::size_t>(j)] += factor * b[p * n + j0 + j];
        }
        std::copy_n(sum.begin(), columns, c + i * n + j0);
      }
    }
  }
}

void multiply_eigen(const float* a, const float* b, float* c, const Cells& cells, Index n, Index k) {
  using Part = Eigen::Map<const RowMatrix, 0, Eigen::OuterStride<>>;
  const Index rows = cells.last_row - cells.first_row;
  const Index columns = cells.last_column - cells.first_column;
  const Part left(a + cells.first_row * k, rows, k, Eigen::OuterStride<>(k));
  const Part right(b + cells.first_column, k, columns, Eigen::OuterStride<>(n));
  Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>(c + cells.first_row * n + cells.first_column, rows, columns,
                                                 Eigen::OuterStride<>(n))
      .noalias() = left * right;
}

/// Gives each thread a share of rows or, where those are few, of columns, so that all have about the same to do.
template <class Work>
void split_cells(ThreadTeam& team, Index m, Index n, Work work) {
  constexpr Index rows_worth_splitting = 16;  // a thread: one row more is then at most a sixteenth of a share
  if (m < rows_worth_splitting * team.size()) {
    team.split(n, [=](Index first, Index last) { work(Cells{0, m, first, last}); });
  } else {
    team.split(m, [=](Index first, Index last) { work(Cells{first, last, 0, n}); });
  }
}

void row_kernel(const KernelCall& call, const float* in, float* out, Index first, Index last) {
  const Index n = call.n;
  for (Index row = first; row < last; ++row) {
    const Eigen::Map<const Eigen::ArrayXf> a(in + row * n, n);
    if (call.kernel == Kernel::reduce) {
      out[row] = a.sum();
      continue;
    }
    Eigen::Map<Eigen::ArrayXf> to(out + row * n, n);
    if (call.kernel == Kernel::softmax) {
      to = (a - a.maxCoeff()).exp();
      to /= to.sum();
      continue;
    }
    const float mean = a.mean();
    const float variance = (a - mean).square().mean();
    to = (a - mean) / std::sqrt(variance + layernorm_epsilon);
  }
}

/// Floats of one channel of an image with a border of zeros around it, and some that vectors may read beyond.
Index bordered_plane(Index side) { return (side + 2) * (side + 2) + 2; }

// Output planes (image, channel) from first to last. `bordered` holds the channels of an image with their borders, so
// that a plane is one long row to which all nine taps are added at once, whatever its side.
void convolve(const KernelCall& call, const float* in, const float* weight, float* out, float* bordered, Index first,
              Index last) {
  const Index channels = call.n;
  const Index side = call.k;
  const Index pitch = side + 2;
  const Index plane = bordered_plane(side);
  const Index length = side * pitch;  // of the long row; its last two cells of each `pitch` are nobody's
  float* sum = bordered + channels * plane;
  Index in_place = -1;
  for (Index at = first; at < last; ++at) {
    const Index image = at / channels;
    if (image != in_place) {
      std::fill(bordered, bordered + channels * plane, 0.0F);
      for (Index row = 0; row < channels * side; ++row) {
        std::copy_n(in + (image * channels * side + row) * side, side,
                    bordered + row / side * plane + (row % side + 1) * pitch + 1);
      }
      in_place = image;
    }
    std::fill(sum, sum + length, 0.0F);
    for (Index i = 0; i < channels; ++i) {
      std::array<float, 9> w;  // a copy: `sum` cannot overlap it
      std::copy_n(weight + (at % channels * channels + i) * 9, w.size(), w.begin());
      const float* up = bordered + i * plane;
      const float* here = up + pitch;
      const float* down = here + pitch;
      for (Index x = 0; x < length; ++x) {
        sum[x] += w[0] * up[x] + w[1] * up[x + 1] + w[2] * up[x + 2] + w[3] * here[x] + w[4] * here[x + 1] +
                  w[5] * here[x + 2] + w[6] * down[x] + w[7] * down[x + 1] + w[8] * down[x + 2];
      }
    }
    for (Index y = 0; y < side; ++y) std::copy_n(sum + y * pitch, side, out + (at * side + y) * side);
  }
}

void relax(const float* a, float* out, Index side, Index first, Index last) {
  const Index plane = side * side;
  for (Index z = first; z < last; ++z) {
    if (z == 0 || z == side - 1) {
      std::copy(a + z * plane, a + (z + 1) * plane, out + z * plane);
      continue;
    }
    for (Index y = 0; y < side; ++y) {
      const Index row = z * plane + y * side;
      if (y == 0 || y == side - 1) {
        std::copy(a + row, a + row + side, out + row);
        continue;
      }
      out[row] = a[row];
      out[row + side - 1] = a[row + side - 1];
      for (Index x = 1; x + 1 < side; ++x) {
        const float* at = a + row + x;
        out[row + x] = 0.1F * (at[-1] + at[1] + at[-side] + at[side] + at[-plane] + at[plane]) + 0.4F * at[0];
      }
    }
  }
}

std::size_t bins_size(const ThreadTeam& team) { return std::size_t{256} * team.size(); }

/// Each thread has the channels of an image and one plane of sums.
std::size_t bordered_size(const KernelCall& call, const ThreadTeam& team) {
  if (call.kernel != Kernel::conv2d) return 0;
  return team.size() * static_cast<std::size_t>((call.n + 1) * bordered_plane(call.k));
}

}  // namespace

bool cpu_supports(Kernel kernel) {
  switch (kernel) {
    case Kernel::fma_fp16:
    case Kernel::mma_bf16:
    case Kernel::gemm_bf16:
    case Kernel::h2d_pinned:
    case Kernel::d2h_pinned:
    case Kernel::peer_copy: return false;
    default: return true;
  }
}

CpuKernel::CpuKernel(const KernelCall& call, ThreadTeam& team, CpuMemory& memory, std::uint64_t seed)
    : CpuKernel(call, team) {
  const DataSizes sizes = data_sizes(call);
  a_ = memory.random_floats(sizes.a);
  b_ = memory.random_floats(sizes.b);
  index_ = memory.room<std::uint32_t>(sizes.index);
  fill_random_indices(index_, sizes.index_below, Rng(seed).split("cpu kernel"));
  make_room(memory);
}

CpuKernel::CpuKernel(const KernelCall& call, ThreadTeam& team, CpuMemory& memory, const KernelData& data)
    : CpuKernel(call, team) {
  const auto placed = [&](const std::vector<float>& values) {
    const std::span<float> place = memory.room<float>(values.size());
    std::copy(values.begin(), values.end(), place.begin());
    return place;
  };
  a_ = placed(data.a);
  b_ = placed(data.b);
  index_ = memory.room<std::uint32_t>(data.index.size());
  std::copy(data.index.begin(), data.index.end(), index_.begin());
  make_room(memory);
}

std::size_t CpuKernel::memory_bytes(const KernelCall& call, const ThreadTeam& team) {
  const DataSizes sizes = data_sizes(call);
  std::size_t bytes = 0;
  for (const std::size_t operand :
       {sizes.a * sizeof(float), sizes.b * sizeof(float), sizes.index * sizeof(std::uint32_t),
        result_size(call) * sizeof(float), result_size(call) * sizeof(double), bins_size(team) * sizeof(std::uint32_t),
        bordered_size(call, team) * sizeof(float)}) {
    bytes += CpuMemory::with_gap(operand);
  }
  return bytes;
}

void CpuKernel::make_room(CpuMemory& memory) {
  out_ = memory.room<float>(result_size(call_));
  if (call_.kernel == Kernel::fma_fp64) out64_ = memory.room<double>(result_size(call_));
  if (call_.kernel == Kernel::histogram) bins_ = memory.room<std::uint32_t>(bins_size(*team_));
  if (call_.kernel == Kernel::conv2d) bordered_ = memory.room<float>(bordered_size(call_, *team_));
}

void CpuKernel::run() {
  ThreadTeam& team = *team_;
  const float* a = a_.data();
  const float* b = b_.data();
  float* out = out_.data();
  const Index n = call_.n;
  const Index k = call_.k;
  switch (call_.kernel) {
    case Kernel::launch: return team.split(team.size(), [](Index, Index) {});
    case Kernel::triad:
      return team.split(call_.m, [=](Index first, Index last) {
        for (Index i = first; i < last; ++i) out[i] = a[i] + triad_factor * b[i];
      });
    case Kernel::fma_fp32: return team.split(call_.m, [=](Index first, Index last) { chains(a, out, first, last, n); });
    case Kernel::fma_fp64:
      return team.split(call_.m, [=, to = out64_.data()](Index first, Index last) { chains(a, to, first, last, n); });
    case Kernel::gemm_naive16:
      return split_cells(team, call_.m, n, [=](const Cells& cells) { multiply_naive(a, b, out, cells, n, k); });
    case Kernel::gemm_tiled:
      return split_cells(team, call_.m, n, [=](const Cells& cells) { multiply_tiled(a, b, out, cells, n, k); });
    case Kernel::gemm_fp32:
      return split_cells(team, call_.m, n, [=](const Cells& cells) { multiply_eigen(a, b, out, cells, n, k); });
    case Kernel::reduce:
    case Kernel::softmax:
    case Kernel::layernorm:
      return team.split(call_.m, [=, this](Index first, Index last) { row_kernel(call_, a, out, first, last); });
    case Kernel::conv2d: {
      const Index share = (call_.m * n + team.size() - 1) / team.size();
      const Index own = static_cast<Index>(bordered_.size()) / team.size();
      return team.split(call_.m * n, [=, this](Index first, Index last) {
        convolve(call_, a, b, out, bordered_.data() + first / share * own, first, last);
      });
    }
    case Kernel::stencil7:
      return team.split(call_.m, [=, side = call_.m](Index first, Index last) { relax(a, out, side, first, last); });
    case Kernel::gather:
      return team.split(call_.m, [=, at = index_.data()](Index first, Index last) {
        for (Index i = first; i < last; ++i) out[i] = a[at[i]];
      });
    case Kernel::histogram: {
      const Index share = (call_.m + team.size() - 1) / team.size();
      std::fill(bins_.begin(), bins_.end(), 0);
      team.split(call_.m, [=, bins = bins_.data(), values = index_.data()](Index first, Index last) {
        std::uint32_t* own = bins + 256 * (first / share);
        for (Index i = first; i < last; ++i) ++own[values[i]];
      });
      for (std::size_t bin = 0; bin < 256; ++bin) {
        std::uint32_t sum = 0;
        for (std::uint32_t thread = 0; thread < team.size(); ++thread) sum += bins_[std::size_t{256} * thread + bin];
        out[bin] = static_cast<float>(sum);
      }
      return;
    }
    default:  // copy and transfers: memory to memory
      return team.split(static_cast<Index>(out_.size()), [=](Index first, Index last) {
        std::memcpy(out + first, a + first, static_cast<std::size_t>(last - first) * sizeof(float));
      });
  }
}

std::vector<double> CpuKernel::result() const {
  if (call_.kernel == Kernel::fma_fp64) return {out64_.begin(), out64_.end()};
  return {out_.begin(), out_.end()};
}

}  // namespace gpusched
