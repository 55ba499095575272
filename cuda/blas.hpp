// SPDX-License-Identifier: Apache-2.0
/// cuBLAS, opened at run time: the program starts without it, and without it the library's products are unsupported.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <string>

#include "cuda/handles.hpp"
#include "src/calibration/profile/kernel.hpp"

namespace gpusched::cuda {

/// The entry points in use, with cuBLAS' own calling convention: 0 is success, a handle is an opaque pointer.
struct BlasTable {
  int (*create)(void**) = nullptr;                   // cublasCreate_v2
  int (*destroy)(void*) = nullptr;                   // cublasDestroy_v2
  int (*version)(void*, int*) = nullptr;             // cublasGetVersion_v2
  int (*set_stream)(void*, cudaStream_t) = nullptr;  // cublasSetStream_v2
  const char* (*status_text)(int) = nullptr;         // cublasGetStatusString
  int (*sgemm)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*, float*,
               int) = nullptr;  // cublasSgemm_v2
  int (*gemm_ex)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*,
                 void*, int, int, int, int) = nullptr;  // cublasGemmEx
};

/// Opens the newest libcublas that is there; nullopt when there is none, or one too old.
std::optional<BlasTable> load_blas();

/// One handle. Not for two threads at once.
class Blas {
 public:
  /// Null, with the reason in `status`, when the library has no handle to give.
  static std::unique_ptr<Blas> open(const BlasTable& table, Status& status);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  /// "13.0.2".
  [[nodiscard]] std::string version() const;

  /// Queues C = A B with matrices in rows. Precondition: the kernel is gemm_fp32, or gemm_bf16 with bf16 operands.
  void queue(const KernelCall& call, const void* a, const void* b, float* c, cudaStream_t stream, Status& status);

 private:
  Blas(const BlasTable& table, void* handle) : table_(table), handle_(handle) {}
  void note(int code, const char* what, Status& status) const;

  BlasTable table_;
  void* handle_;
};

}  // namespace gpusched::cuda
