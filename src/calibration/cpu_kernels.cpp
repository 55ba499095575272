// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/cpu_kernels.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>

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

// One cell at a time down a column of B, as the naive GPU kernel reads.
void multiply_naive(const float* a, const float* b, float* c, Index first, Index last, Index n, Index k) {
  for (Index i = first; i < last; ++i) {
    for (Index j = 0; j < n; ++j) {
      float sum = 0;
      for (Index p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}

// A panel of B of 64 x 256 floats (64 KiB) stays in the cache while rows of A pass over it.
void multiply_tiled(const float* a, const float* b, float* c, Index first, Index last, Index n, Index k) {
  constexpr Index tile_k = 64;
  constexpr Index tile_n = 256;
  std::fill(c + first * n, c + last * n, 0.0F);
  for (Index p0 = 0; p0 < k; p0 += tile_k) {
    for (Index j0 = 0; j0 < n; j0 += tile_n) {
      for (Index i = first; i < last; ++i) {
        for (Index p = p0; p < std::min(p0 + tile_k, k); ++p) {
          const float factor = a[i * k + p];
          for (Index j = j0; j < std::min(j0 + tile_n, n); ++j) c[i * n + j] += factor * b[p * n + j];
        }
      }
    }
  }
}

void multiply_eigen(const float* a, const float* b, float* c, Index first, Index last, Index n, Index k) {
  const Eigen::Map<const RowMatrix> rows(a + first * k, last - first, k);
  const Eigen::Map<const RowMatrix> right(b, k, n);
  Eigen::Map<RowMatrix>(c + first * n, last - first, n).noalias() = rows * right;
}

/// Columns [first, last) of the product, for products with fewer rows than threads.
void multiply_eigen_columns(const float* a, const float* b, float* c, Index m, Index first, Index last, Index n,
                            Index k) {
  const Eigen::Map<const RowMatrix> left(a, m, k);
  const Eigen::Map<const RowMatrix, 0, Eigen::OuterStride<>> columns(b + first, k, last - first,
                                                                     Eigen::OuterStride<>(n));
  Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>(c + first, m, last - first, Eigen::OuterStride<>(n)).noalias() =
      left * columns;
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

// Output planes (image, channel) from first to last.
void convolve(const KernelCall& call, const float* in, const float* weight, float* out, Index first, Index last) {
  const Index channels = call.n;
  const Index side = call.k;
  const Index plane = side * side;
  for (Index at = first; at < last; ++at) {
    const Index image = at / channels;
    const Index o = at % channels;
    float* to = out + at * plane;
    std::fill(to, to + plane, 0.0F);
    for (Index i = 0; i < channels; ++i) {
      const float* from = in + (image * channels + i) * plane;
      for (Index tap = 0; tap < 9; ++tap) {
        const Index dy = tap / 3 - 1;
        const Index dx = tap % 3 - 1;
        const float factor = weight[(o * channels + i) * 9 + tap];
        for (Index y = std::max<Index>(0, -dy); y < std::min(side, side - dy); ++y) {
          for (Index x = std::max<Index>(0, -dx); x < std::min(side, side - dx); ++x) {
            to[y * side + x] += factor * from[(y + dy) * side + x + dx];
          }
        }
      }
    }
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

CpuKernel::CpuKernel(const KernelCall& call, std::uint64_t seed)
    : call_(call), data_(random_data(call, seed)), out_(result_size(call)) {
  if (call.kernel == Kernel::fma_fp64) out64_.resize(out_.size());
}

void CpuKernel::run(ThreadTeam& team) {
  const float* a = data_.a.data();
  const float* b = data_.b.data();
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
      return team.split(call_.m, [=](Index first, Index last) { multiply_naive(a, b, out, first, last, n, k); });
    case Kernel::gemm_tiled:
      return team.split(call_.m, [=](Index first, Index last) { multiply_tiled(a, b, out, first, last, n, k); });
    case Kernel::gemm_fp32:
      if (call_.m < 4 * team.size()) {
        return team.split(
            n, [=, m = call_.m](Index first, Index last) { multiply_eigen_columns(a, b, out, m, first, last, n, k); });
      }
      return team.split(call_.m, [=](Index first, Index last) { multiply_eigen(a, b, out, first, last, n, k); });
    case Kernel::reduce:
    case Kernel::softmax:
    case Kernel::layernorm:
      return team.split(call_.m, [=, this](Index first, Index last) { row_kernel(call_, a, out, first, last); });
    case Kernel::conv2d:
      return team.split(call_.m * n, [=, this](Index first, Index last) { convolve(call_, a, b, out, first, last); });
    case Kernel::stencil7:
      return team.split(call_.m, [=, side = call_.m](Index first, Index last) { relax(a, out, side, first, last); });
    case Kernel::gather:
      return team.split(call_.m, [=, at = data_.index.data()](Index first, Index last) {
        for (Index i = first; i < last; ++i) out[i] = a[at[i]];
      });
    case Kernel::histogram: {
      bins_.assign(256 * team.size(), 0);
      const Index share = (call_.m + team.size() - 1) / team.size();
      team.split(call_.m, [=, this, values = data_.index.data()](Index first, Index last) {
        std::uint32_t* own = bins_.data() + 256 * (first / share);
        for (Index i = first; i < last; ++i) ++own[values[i]];
      });
      for (std::size_t bin = 0; bin < 256; ++bin) {
        std::uint32_t sum = 0;
        for (std::uint32_t thread = 0; thread < team.size(); ++thread) sum += bins_[256 * thread + bin];
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
  if (call_.kernel == Kernel::fma_fp64) return out64_;
  return {out_.begin(), out_.end()};
}

}  // namespace gpusched
