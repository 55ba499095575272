// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_kernel.hpp"

#include <cstring>

#include "cuda/kernels.hpp"

namespace gpusched::cuda {
namespace {

// Value of every byte of a result before its kernel runs: not a number in any format, so that a cell that is not
// written is found.
constexpr int poison = 0xFF;

bool is_h2d(Kernel kernel) { return kernel == Kernel::h2d_pinned || kernel == Kernel::h2d_pageable; }
bool is_d2h(Kernel kernel) { return kernel == Kernel::d2h_pinned || kernel == Kernel::d2h_pageable; }
bool is_pageable(Kernel kernel) { return kernel == Kernel::h2d_pageable || kernel == Kernel::d2h_pageable; }
bool takes_bf16(Kernel kernel) { return kernel == Kernel::gemm_bf16 || kernel == Kernel::mma_bf16; }

std::size_t result_bytes(const KernelCall& call) {
  return result_size(call) * (call.kernel == Kernel::fma_fp64 ? sizeof(double) : sizeof(float));
}

template <class T>
std::vector<double> read_back(const void* from, std::size_t count, Status& status) {
  std::vector<T> values(count);
  status.note(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDefault), "cudaMemcpy of a result");
  return {values.begin(), values.end()};
}

}  // namespace

CudaKernel::CudaKernel(const KernelCall& call, const KernelData* data, std::uint64_t seed, Blas* blas, Status& status)
    : call_(call), sizes_(data_sizes(call)), blas_(blas) {
  const std::span<const float> a = data != nullptr ? std::span<const float>(data->a) : std::span<const float>();
  const std::span<const float> b = data != nullptr ? std::span<const float>(data->b) : std::span<const float>();
  a_ = make_operand(a, sizes_.a, 2 * seed, status);
  b_ = make_operand(b, sizes_.b, 2 * seed + 1, status);
  if (sizes_.index > 0) {
    index_ = device_memory(sizes_.index * sizeof(std::uint32_t), status);
    auto* index = static_cast<std::uint32_t*>(index_.get());
    if (data != nullptr) {
      status.note(cudaMemcpy(index, data->index.data(), sizes_.index * sizeof(std::uint32_t), cudaMemcpyHostToDevice),
                  "cudaMemcpy of operands");
    } else if (status.good()) {
      status.note(queue_random_below(index, sizes_.index, sizes_.index_below, seed, nullptr), "making random data");
    }
  }
  if (call_.kernel == Kernel::peer_copy) {
    status.note(cudaSetDevice(1), "cudaSetDevice");
    out_ = device_memory(result_bytes(call_), status);
    status.note(cudaSetDevice(0), "cudaSetDevice");
  } else if (!is_d2h(call_.kernel)) {
    out_ = device_memory(result_bytes(call_), status);
    const int before = call_.kernel == Kernel::histogram ? 0 : poison;  // its counters are added to
    if (status.good()) status.note(cudaMemset(out_.get(), before, result_bytes(call_)), "cudaMemset");
  }
  if (is_h2d(call_.kernel) || is_d2h(call_.kernel)) make_transfer(data, status);
  // Set up on the default stream; the kernel runs on others, which do not wait for it.
  status.note(cudaDeviceSynchronize(), "making operands");
}

DeviceMemory CudaKernel::make_operand(std::span<const float> values, std::size_t count, std::uint64_t seed,
                                      Status& status) const {
  DeviceMemory floats = device_memory(count * sizeof(float), status);
  if (count == 0 || !status.good()) return floats;
  if (values.empty()) {
    status.note(queue_random_floats(static_cast<float*>(floats.get()), count, seed, nullptr), "making random data");
  } else {
    status.note(cudaMemcpy(floats.get(), values.data(), count * sizeof(float), cudaMemcpyHostToDevice),
                "cudaMemcpy of operands");
  }
  if (!takes_bf16(call_.kernel)) return floats;
  DeviceMemory halves = device_memory(count * 2, status);
  if (!status.good()) return halves;
  status.note(queue_to_bf16(static_cast<const float*>(floats.get()), halves.get(), count, nullptr), "rounding to bf16");
  status.note(cudaDeviceSynchronize(), "rounding to bf16");  // before `floats` is freed
  return halves;
}

// The host's end of a transfer holds the operand (h2d) or takes the result (d2h).
void CudaKernel::make_transfer(const KernelData* data, Status& status) {
  const std::size_t bytes = sizes_.a * sizeof(float);
  void* host = nullptr;
  if (is_pageable(call_.kernel)) {
    pageable_.resize(sizes_.a);
    host = pageable_.data();
  } else {
    pinned_ = pinned_memory(bytes, status);
    host = pinned_.get();
  }
  if (!status.good()) return;
  if (is_d2h(call_.kernel)) {
    std::memset(host, poison, bytes);
  } else if (data != nullptr) {
    std::memcpy(host, data->a.data(), bytes);
  } else {
    status.note(cudaMemcpy(host, a_.get(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy of operands");
  }
}

bool CudaKernel::blocks_host() const { return is_pageable(call_.kernel); }

void CudaKernel::queue(cudaStream_t stream, Status& status) {
  const std::size_t bytes = sizes_.a * sizeof(float);
  void* host = is_pageable(call_.kernel) ? pageable_.data() : pinned_.get();
  const char* name = to_string(call_.kernel).data();  // a literal: it ends with a zero
  switch (call_.kernel) {
    case Kernel::h2d_pinned:
    case Kernel::h2d_pageable:
      status.note(cudaMemcpyAsync(out_.get(), host, bytes, cudaMemcpyHostToDevice, stream), name);
      break;
    case Kernel::d2h_pinned:
    case Kernel::d2h_pageable:
      status.note(cudaMemcpyAsync(host, a_.get(), bytes, cudaMemcpyDeviceToHost, stream), name);
      break;
    case Kernel::peer_copy: status.note(cudaMemcpyPeerAsync(out_.get(), 1, a_.get(), 0, bytes, stream), name); break;
    case Kernel::gemm_fp32:
    case Kernel::gemm_bf16:
      blas_->queue(call_, a_.get(), b_.get(), static_cast<float*>(out_.get()), stream, status);
      break;
    default:
      status.note(queue_kernel(call_,
                               {.a = a_.get(),
                                .b = b_.get(),
                                .index = static_cast<const std::uint32_t*>(index_.get()),
                                .out = out_.get()},
                               stream),
                  name);
  }
}

std::vector<double> CudaKernel::result(Status& status) const {
  const std::size_t count = result_size(call_);
  if (call_.kernel == Kernel::fma_fp64) return read_back<double>(out_.get(), count, status);
  if (call_.kernel == Kernel::histogram) return read_back<std::uint32_t>(out_.get(), count, status);
  if (call_.kernel == Kernel::d2h_pageable) return {pageable_.begin(), pageable_.end()};
  if (call_.kernel == Kernel::d2h_pinned) {
    const auto* values = static_cast<const float*>(pinned_.get());
    return {values, values + count};
  }
  return read_back<float>(out_.get(), count, status);
}

}  // namespace gpusched::cuda
