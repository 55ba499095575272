// SPDX-License-Identifier: Apache-2.0
// libcublas as cuda/blas.cpp opens it: the entry points by name, matrices in columns. The values of the public
// enumerations (cublas_api.h, library_types.h) are written a second time here, so that a mistake in either place is
// found.
#include <bit>
#include <cstdint>
#include <map>
#include <tuple>

#include "tests/cuda/on_cpu/emulation.hpp"

namespace {

enum Status { success = 0, not_initialised = 1, invalid_value = 7, execution_failed = 13, not_supported = 15 };
constexpr int op_none = 0;
constexpr int type_fp32 = 0;
constexpr int type_bf16 = 14;
constexpr int compute_fp32 = 68;
constexpr int default_algorithm = -1;

struct Handle {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  // Which code runs depends on the shape, and is loaded when it is first met.
  std::map<std::tuple<int, int, int, int>, char> code = {};
};

double value_at(const void* matrix, int type, std::size_t i) {
  if (type == type_fp32) return static_cast<const float*>(matrix)[i];
  const auto bits = static_cast<const std::uint16_t*>(matrix)[i];
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::size_t size_of(int type) { return type == type_fp32 ? 4 : 2; }

int multiply(Handle* handle, int m, int n, int k, float alpha, const void* a, int lda, const void* b, int ldb, int type,
             float beta, void* c, int ldc) {
  if (handle == nullptr) return not_initialised;
  if (m < 1 || n < 1 || k < 1 || lda < m || ldb < k || ldc < m) return invalid_value;
  const auto bytes = [](int columns, int pitch, int rows, std::size_t each) {
    return (static_cast<std::size_t>(columns - 1) * static_cast<std::size_t>(pitch) + static_cast<std::size_t>(rows)) *
           each;
  };
  if (!cuda_on_cpu::reaches(a, bytes(k, lda, m, size_of(type))) ||
      !cuda_on_cpu::reaches(b, bytes(n, ldb, k, size_of(type))) ||
      !cuda_on_cpu::reaches(c, bytes(n, ldc, m, sizeof(float)))) {
    return execution_failed;
  }
  const char* code = &handle->code[{m, n, k, type}];
  const cudaError_t queued = cuda_on_cpu::queue_work(code, handle->stream, [=] {
    auto* out = static_cast<float*>(c);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        double sum = 0;
        for (int p = 0; p < k; ++p) {
          sum += value_at(a, type,
                          static_cast<std::size_t>(p) * static_cast<std::size_t>(lda) + static_cast<std::size_t>(i)) *
                 value_at(b, type,
                          static_cast<std::size_t>(j) * static_cast<std::size_t>(ldb) + static_cast<std::size_t>(p));
        }
        float& cell = out[static_cast<std::size_t>(j) * static_cast<std::size_t>(ldc) + static_cast<std::size_t>(i)];
        // With beta 0 the old content of C is ignored, even where it is not a number.
        cell = static_cast<float>(alpha * sum + (beta == 0 ? 0.0 : static_cast<double>(beta * cell)));
      }
    }
  });
  return queued == cudaSuccess ? success : execution_failed;
}

}  // namespace

extern "C" {

int cublasCreate_v2(Handle** handle) {
  *handle = nullptr;
  void* workspace = nullptr;
  if (cudaMalloc(&workspace, 65536) != cudaSuccess) return not_initialised;
  *handle = new Handle{.workspace = workspace};
  return success;
}

int cublasDestroy_v2(Handle* handle) {
  if (handle == nullptr) return not_initialised;
  cudaFree(handle->workspace);
  delete handle;
  return success;
}

int cublasGetVersion_v2(Handle*, int* version) {
  *version = 130002;
  return success;
}

int cublasSetStream_v2(Handle* handle, cudaStream_t stream) {
  if (handle == nullptr) return not_initialised;
  handle->stream = stream;
  return success;
}

const char* cublasGetStatusString(int status) {
  switch (status) {
    case success: return "success";
    case not_initialised: return "the library was not initialized";
    case invalid_value: return "an unsupported value or parameter was passed to the function";
    case not_supported: return "the functionality requested is not supported";
    default: return "the function failed to launch on the GPU";
  }
}

int cublasSgemm_v2(Handle* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const float* a, int lda,
                   const float* b, int ldb, const float* beta, float* c, int ldc) {
  if (op_a != op_none || op_b != op_none) return not_supported;
  return multiply(handle, m, n, k, *alpha, a, lda, b, ldb, type_fp32, *beta, c, ldc);
}

int cublasGemmEx(Handle* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type_a,
                 int lda, const void* b, int type_b, int ldb, const void* beta, void* c, int type_c, int ldc,
                 int compute, int algorithm) {
  if (op_a != op_none || op_b != op_none || type_a != type_bf16 || type_b != type_bf16 || type_c != type_fp32 ||
      compute != compute_fp32 || algorithm != default_algorithm) {
    return not_supported;
  }
  return multiply(handle, m, n, k, *static_cast<const float*>(alpha), a, lda, b, ldb, type_bf16,
                  *static_cast<const float*>(beta), c, ldc);
}

}  // extern "C"
