// SPDX-License-Identifier: Apache-2.0
// Plain kernels, one for each kernel of the suite: written as in an ordinary program, not as fast as possible. Products
// of the platform's library are in blas.cpp.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "cuda/kernels.hpp"
#include "src/calibration/measure/kernel_constants.hpp"

// What a launch asked for beyond the arrays that its kernel declares.
extern __shared__ float gpusched_shared_row[];

namespace gpusched::cuda {
namespace {

using Index = std::int64_t;

constexpr int block_threads = 256;
constexpr int warp_threads = 32;

unsigned blocks_for(Index items, Index per_block = block_threads) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

__device__ Index thread_index() { return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ std::uint64_t device_ns() {
#ifdef __CUDACC__
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
#else
  return globaltimer_ns();  // compiled for the processor (tests/cuda_on_cpu), which has no such register
#endif
}

// ---- data and protocol ----

// The finaliser of MurmurHash3 (Appleby, public domain) over a counter.
__device__ std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

__device__ std::uint64_t draw(std::uint64_t seed, Index i) {
  return mixed(mixed(seed) + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(i + 1));
}

__global__ void random_floats(float* out, Index count, std::uint64_t seed) {
  const Index i = thread_index();
  // 24 random bits: every value is exact.
  if (i < count) out[i] = static_cast<float>(draw(seed, i) >> 40) * 0x1p-23F - 1.0F;
}

__global__ void random_below(std::uint32_t* out, Index count, std::uint64_t below, std::uint64_t seed) {
  const Index i = thread_index();
  if (i < count) out[i] = static_cast<std::uint32_t>(__umul64hi(draw(seed, i), below));
}

__global__ void to_bf16(const float* in, __nv_bfloat16* out, Index count) {
  const Index i = thread_index();
  if (i < count) out[i] = __float2bfloat16(in[i]);
}

__global__ void flush(const float4* memory, Index count, float* never_written) {
  const Index i = thread_index();
  if (i >= count) return;
  const float4 value = memory[i];
  // No sum of values in [-1, 1) is that large: the read stays, nothing is written.
  if (value.x + value.y + value.z + value.w > 1e30F) *never_written = value.x;
}

__global__ void gate_kernel(volatile int* gate, std::uint64_t limit_ns) {
  const std::uint64_t begin = device_ns();
  while (gate[0] == 0) {
    if (device_ns() - begin > limit_ns) {
      gate[1] = 1;
      return;
    }
    __nanosleep(200);
  }
}

__global__ void clock_count(std::uint64_t* out, std::uint64_t span_ns) {
  const std::uint64_t begin_ns = device_ns();
  const long long begin = clock64();
  std::uint64_t end_ns = begin_ns;
  while (end_ns - begin_ns < span_ns) end_ns = device_ns();
  out[0] = static_cast<std::uint64_t>(clock64() - begin);
  out[1] = end_ns - begin_ns;
}

// ---- compute ----

__global__ void launch() {}

template <class Real>
__global__ void chains(const float* a, Real* out, Index count, int length) {
  const Index i = thread_index();
  if (i >= count) return;
  const Real add = a[i];
  constexpr Real factor = fma_factor;
  Real x = 0;
#pragma unroll 16
  for (int step = 0; step < length; ++step) x = fma(x, factor, add);
  out[i] = x;
}

// Two chains a thread: half precision computes in pairs.
__global__ void chains_fp16(const float* a, float* out, Index count, int length) {
  const Index i = 2 * thread_index();
  if (i >= count) return;
  const bool pair = i + 1 < count;
  const __half2 add = __floats2half2_rn(a[i], pair ? a[i + 1] : 0.0F);
  const __half2 factor = __float2half2_rn(fma_factor);
  __half2 x = __float2half2_rn(0.0F);
#pragma unroll 16
  for (int step = 0; step < length; ++step) x = __hfma2(x, factor, add);
  out[i] = __low2float(x);
  if (pair) out[i + 1] = __high2float(x);
}

// A warp a chain: the chain's own 16 x 16 matrix times one that all share, added up `length` times.
__global__ void chains_mma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* out, Index count, int length) {
#if __CUDA_ARCH__ >= 800
  using namespace nvcuda;
  const Index chain = thread_index() / warp_threads;
  if (chain >= count) return;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(left, a + chain * 256, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::fill_fragment(sum, 0.0F);
#pragma unroll 4
  for (int step = 0; step < length; ++step) wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(out + chain * 256, sum, 16, wmma::mem_row_major);
#else
  // Turing has no bf16 matrix units: the backend does not offer the kernel there.
  (void)a, (void)b, (void)out, (void)count, (void)length;
#endif
}

// One thread a cell, 16 x 16 blocks, everything from global memory: the kernel of the seed program.
__global__ void gemm_naive16(const float* a, const float* b, float* c, int m, int n, int k) {
  const int row = static_cast<int>(blockIdx.y * 16 + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * 16 + threadIdx.x);
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[static_cast<Index>(row) * k + i] * b[static_cast<Index>(i) * n + column];
  c[static_cast<Index>(row) * n + column] = sum;
}

// A tile of cells a block through shared memory, 4 x 4 cells a thread.
__global__ void gemm_tiled(const float* a, const float* b, float* c, int m, int n, int k) {
  constexpr int tile = gemm_tile_side;
  constexpr int depth = 16;
  constexpr int own = 4;
  __shared__ float left[depth][tile + 1];  // transposed; the odd pitch spreads a column over the banks
  __shared__ float right[depth][tile];
  const int thread = static_cast<int>(threadIdx.x);
  const int thread_row = thread / 16;
  const int thread_column = thread % 16;
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
  float sum[own][own] = {};
  for (int k0 = 0; k0 < k; k0 += depth) {
    for (int i = thread; i < tile * depth; i += block_threads) {
      const int row = i / depth;
      const int p = i % depth;
      const bool inside = first_row + row < m && k0 + p < k;
      left[p][row] = inside ? a[static_cast<Index>(first_row + row) * k + k0 + p] : 0.0F;
    }
    for (int i = thread; i < tile * depth; i += block_threads) {
      const int p = i / tile;
      const int column = i % tile;
      const bool inside = k0 + p < k && first_column + column < n;
      right[p][column] = inside ? b[static_cast<Index>(k0 + p) * n + first_column + column] : 0.0F;
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < depth; ++p) {
      float rows[own];
      float columns[own];
#pragma unroll
      for (int i = 0; i < own; ++i) rows[i] = left[p][thread_row * own + i];
#pragma unroll
      for (int j = 0; j < own; ++j) columns[j] = right[p][thread_column + 16 * j];
#pragma unroll
      for (int i = 0; i < own; ++i) {
#pragma unroll
        for (int j = 0; j < own; ++j) sum[i][j] += rows[i] * columns[j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < own; ++i) {
    const int row = first_row + thread_row * own + i;
#pragma unroll
    for (int j = 0; j < own; ++j) {
      const int column = first_column + thread_column + 16 * j;
      if (row < m && column < n) c[static_cast<Index>(row) * n + column] = sum[i][j];
    }
  }
}

// 3 x 3 convolution of images x channels x side x side, zeros beyond the edge. A thread computes one pixel of four
// output channels, so that nine loads feed 36 multiply-adds.
constexpr int conv_outputs = 4;
constexpr int conv_inputs = 32;  // input channels whose weights are in shared memory at a time
__global__ void conv2d(const float* in, const float* weight, float* out, int images, int channels, int side) {
  __shared__ float4 taps[conv_inputs * 9];
  const int plane = side * side;
  const Index pixel = thread_index();
  const bool inside = pixel < static_cast<Index>(images) * plane;
  const int image = inside ? static_cast<int>(pixel / plane) : 0;
  const int at = inside ? static_cast<int>(pixel % plane) : 0;
  const int y = at / side;
  const int x = at % side;
  const int first_output = static_cast<int>(blockIdx.y) * conv_outputs;
  float4 sum = {0, 0, 0, 0};
  for (int i0 = 0; i0 < channels; i0 += conv_inputs) {
    const int inputs = min(conv_inputs, channels - i0);
    for (int i = static_cast<int>(threadIdx.x); i < inputs * 9 * conv_outputs; i += block_threads) {
      const int output = first_output + i % conv_outputs;
      const int tap = i / conv_outputs;  // input channel * 9 + place
      reinterpret_cast<float*>(taps)[i] =
          output < channels ? weight[(static_cast<Index>(output) * channels + i0) * 9 + tap] : 0.0F;
    }
    __syncthreads();
    for (int i = 0; inside && i < inputs; ++i) {
      const float* from = in + (static_cast<Index>(image) * channels + i0 + i) * plane;
#pragma unroll
      for (int dy = -1; dy <= 1; ++dy) {
#pragma unroll
        for (int dx = -1; dx <= 1; ++dx) {
          const bool there = y + dy >= 0 && y + dy < side && x + dx >= 0 && x + dx < side;
          const float value = there ? from[(y + dy) * side + x + dx] : 0.0F;
          const float4 factor = taps[i * 9 + (dy + 1) * 3 + dx + 1];
          sum.x += value * factor.x;
          sum.y += value * factor.y;
          sum.z += value * factor.z;
          sum.w += value * factor.w;
        }
      }
    }
    __syncthreads();
  }
  if (!inside) return;
  const float sums[conv_outputs] = {sum.x, sum.y, sum.z, sum.w};
  for (int o = 0; o < conv_outputs && first_output + o < channels; ++o) {
    out[(static_cast<Index>(image) * channels + first_output + o) * plane + at] = sums[o];
  }
}

// ---- memory ----

__global__ void copy(const float* a, float* out, Index count) {
  const Index quad = thread_index();
  if (4 * quad + 3 < count) {
    reinterpret_cast<float4*>(out)[quad] = reinterpret_cast<const float4*>(a)[quad];
  } else {
    for (Index i = 4 * quad; i < count; ++i) out[i] = a[i];
  }
}

__global__ void triad(const float* a, const float* b, float* out, Index count) {
  const Index quad = thread_index();
  if (4 * quad + 3 < count) {
    const float4 x = reinterpret_cast<const float4*>(a)[quad];
    const float4 y = reinterpret_cast<const float4*>(b)[quad];
    reinterpret_cast<float4*>(out)[quad] = {x.x + triad_factor * y.x, x.y + triad_factor * y.y,
                                            x.z + triad_factor * y.z, x.w + triad_factor * y.w};
  } else {
    for (Index i = 4 * quad; i < count; ++i) out[i] = a[i] + triad_factor * b[i];
  }
}

struct Sum {
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct Most {
  __device__ float operator()(float x, float y) const { return fmaxf(x, y); }
};

// The same value in every thread. Precondition: all threads of a block of block_threads call it.
template <class Join>
__device__ float over_block(float value, Join join) {
  __shared__ float of_warp[block_threads / warp_threads];
  for (int offset = warp_threads / 2; offset > 0; offset /= 2) {
    value = join(value, __shfl_xor_sync(0xffffffffU, value, offset));
  }
  __syncthreads();  // an earlier call's values have been read
  if (threadIdx.x % warp_threads == 0) of_warp[threadIdx.x / warp_threads] = value;
  __syncthreads();
  float joined = of_warp[0];
  for (int warp = 1; warp < block_threads / warp_threads; ++warp) joined = join(joined, of_warp[warp]);
  return joined;
}

// A block a row. The row is kept in shared memory when it fits, so that it crosses the memory bus once.
constexpr Index row_in_shared = 8192;
__global__ void rows(Kernel kernel, const float* in, float* out, Index length) {
  float* kept = gpusched_shared_row;
  const float* from = in + blockIdx.x * length;
  if (length <= row_in_shared) {
    for (Index i = threadIdx.x; i < length; i += block_threads) kept[i] = from[i];
    from = kept;
    __syncthreads();
  }
  float sum = 0;
  if (kernel == Kernel::softmax) {
    float most = from[0];
    for (Index i = threadIdx.x; i < length; i += block_threads) most = fmaxf(most, from[i]);
    most = over_block(most, Most{});
    for (Index i = threadIdx.x; i < length; i += block_threads) sum += expf(from[i] - most);
    const float scale = 1.0F / over_block(sum, Sum{});
    for (Index i = threadIdx.x; i < length; i += block_threads) {
      out[blockIdx.x * length + i] = expf(from[i] - most) * scale;
    }
    return;
  }
  for (Index i = threadIdx.x; i < length; i += block_threads) sum += from[i];
  sum = over_block(sum, Sum{});
  if (kernel == Kernel::reduce) {
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
    return;
  }
  const float mean = sum / static_cast<float>(length);
  float square = 0;
  for (Index i = threadIdx.x; i < length; i += block_threads) square += (from[i] - mean) * (from[i] - mean);
  const float scale = rsqrtf(over_block(square, Sum{}) / static_cast<float>(length) + layernorm_epsilon);
  for (Index i = threadIdx.x; i < length; i += block_threads) {
    out[blockIdx.x * length + i] = (from[i] - mean) * scale;
  }
}

// A tenth of the six neighbours plus four tenths of the centre; cells on the surface are copied.
__global__ void stencil7(const float* a, float* out, Index side) {
  const Index at = thread_index();
  const Index plane = side * side;
  if (at >= plane * side) return;
  const Index x = at % side;
  const Index y = at / side % side;
  const Index z = at / plane;
  const bool surface = x == 0 || y == 0 || z == 0 || x == side - 1 || y == side - 1 || z == side - 1;
  out[at] = surface ? a[at]
                    : 0.1F * (a[at - 1] + a[at + 1] + a[at - side] + a[at + side] + a[at - plane] + a[at + plane]) +
                          0.4F * a[at];
}

__global__ void gather(const float* table, const std::uint32_t* index, float* out, Index count) {
  const Index i = thread_index();
  if (i < count) out[i] = table[index[i]];
}

constexpr int bins = 256;
__global__ void histogram(const std::uint32_t* values, std::uint32_t* counts, Index count) {
  __shared__ std::uint32_t own[bins];
  for (int bin = static_cast<int>(threadIdx.x); bin < bins; bin += block_threads) own[bin] = 0;
  __syncthreads();
  const Index stride = static_cast<Index>(gridDim.x) * block_threads;
  for (Index i = thread_index(); i < count; i += stride) atomicAdd(&own[values[i]], 1U);
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < bins; bin += block_threads) atomicAdd(&counts[bin], own[bin]);
}

// ---- launches ----

struct Shape {
  dim3 grid;
  dim3 block = block_threads;
  std::size_t shared_bytes = 0;
};

// What <<<...>>> does, in plain C++. The arguments become the kernel's parameters, whatever type they come in.
template <class... Parameters>
cudaError_t start(void (*kernel)(Parameters...), const Shape& shape, cudaStream_t stream,
                  std::common_type_t<Parameters>... arguments) {
  std::array<void*, sizeof...(Parameters)> pointers = {static_cast<void*>(&arguments)...};
  return cudaLaunchKernel(kernel, shape.grid, shape.block, pointers.data(), shape.shared_bytes, stream);
}

}  // namespace

cudaError_t queue_kernel(const KernelCall& call, const DeviceOperands& operands, cudaStream_t stream) {
  const auto m = static_cast<int>(call.m);
  const auto n = static_cast<int>(call.n);
  const auto k = static_cast<int>(call.k);
  const auto* a = static_cast<const float*>(operands.a);
  const auto* b = static_cast<const float*>(operands.b);
  auto* out = static_cast<float*>(operands.out);
  switch (call.kernel) {
    case Kernel::launch: return start(launch, {1, warp_threads}, stream);
    case Kernel::copy: return start(copy, {blocks_for(call.m, 4 * block_threads)}, stream, a, out, call.m);
    case Kernel::triad: return start(triad, {blocks_for(call.m, 4 * block_threads)}, stream, a, b, out, call.m);
    case Kernel::fma_fp32: return start(chains<float>, {blocks_for(call.m)}, stream, a, out, call.m, n);
    case Kernel::fma_fp64:
      return start(chains<double>, {blocks_for(call.m)}, stream, a, static_cast<double*>(operands.out), call.m, n);
    case Kernel::fma_fp16:
      return start(chains_fp16, {blocks_for(call.m, 2 * block_threads)}, stream, a, out, call.m, n);
    case Kernel::mma_bf16:
      return start(chains_mma_bf16, {blocks_for(call.m, block_threads / warp_threads)}, stream,
                   static_cast<const __nv_bfloat16*>(operands.a), static_cast<const __nv_bfloat16*>(operands.b), out,
                   call.m, n);
    case Kernel::gemm_naive16:
      return start(gemm_naive16, {dim3(blocks_for(call.n, 16), blocks_for(call.m, 16)), dim3(16, 16)}, stream, a, b,
                   out, m, n, k);
    case Kernel::gemm_tiled:
      return start(gemm_tiled, {dim3(blocks_for(call.n, gemm_tile_side), blocks_for(call.m, gemm_tile_side))}, stream,
                   a, b, out, m, n, k);
    case Kernel::reduce:
    case Kernel::softmax:
    case Kernel::layernorm: {
      const std::size_t shared = call.n <= row_in_shared ? static_cast<std::size_t>(call.n) * sizeof(float) : 0;
      return start(rows, {blocks_for(call.m, 1), block_threads, shared}, stream, call.kernel, a, out, call.n);
    }
    case Kernel::conv2d:
      return start(conv2d, {dim3(blocks_for(call.m * call.k * call.k), blocks_for(call.n, conv_outputs))}, stream, a, b,
                   out, m, n, k);
    case Kernel::stencil7: return start(stencil7, {blocks_for(call.m * call.m * call.m)}, stream, a, out, call.m);
    case Kernel::gather: return start(gather, {blocks_for(call.m)}, stream, a, operands.index, out, call.m);
    case Kernel::histogram: {
      // Enough blocks to fill any device; each adds its own 256 bins once.
      const unsigned blocks = std::min(2048U, blocks_for(call.m, 4 * block_threads));
      return start(histogram, {blocks}, stream, operands.index, static_cast<std::uint32_t*>(operands.out), call.m);
    }
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t queue_random_floats(float* out, std::size_t count, std::uint64_t seed, cudaStream_t stream) {
  const auto items = static_cast<Index>(count);
  return start(random_floats, {blocks_for(items)}, stream, out, items, seed);
}

cudaError_t queue_random_below(std::uint32_t* out, std::size_t count, std::uint64_t below, std::uint64_t seed,
                               cudaStream_t stream) {
  const auto items = static_cast<Index>(count);
  return start(random_below, {blocks_for(items)}, stream, out, items, below, seed);
}

cudaError_t queue_to_bf16(const float* in, void* out, std::size_t count, cudaStream_t stream) {
  const auto items = static_cast<Index>(count);
  return start(to_bf16, {blocks_for(items)}, stream, in, static_cast<__nv_bfloat16*>(out), items);
}

cudaError_t queue_flush(const float* memory, std::size_t bytes, float* never_written, cudaStream_t stream) {
  const auto quads = static_cast<Index>(bytes / sizeof(float4));
  return start(flush, {blocks_for(quads)}, stream, reinterpret_cast<const float4*>(memory), quads, never_written);
}

cudaError_t queue_gate(volatile int* gate, std::uint64_t limit_ns, cudaStream_t stream) {
  return start(gate_kernel, {1, 1}, stream, gate, limit_ns);
}

cudaError_t queue_clock_count(std::uint64_t* out, std::uint64_t span_ns, cudaStream_t stream) {
  return start(clock_count, {1, 1}, stream, out, span_ns);
}

}  // namespace gpusched::cuda
