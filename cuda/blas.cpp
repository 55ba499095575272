// SPDX-License-Identifier: Apache-2.0
#include "cuda/blas.hpp"

#include <dlfcn.h>

#include <array>

namespace gpusched::cuda {
namespace {

// Values of cuBLAS' public enumerations (cublas_api.h, library_types.h).
constexpr int no_transpose = 0;        // CUBLAS_OP_N
constexpr int real_bf16 = 14;          // CUDA_R_16BF
constexpr int real_fp32 = 0;           // CUDA_R_32F
constexpr int compute_fp32 = 68;       // CUBLAS_COMPUTE_32F
constexpr int default_algorithm = -1;  // CUBLAS_GEMM_DEFAULT

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::optional<BlasTable> load_blas() {
  // By the loader's own search path first, then where the toolkit installs itself.
  constexpr std::array names = {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.13",
                                "/usr/local/cuda/lib64/libcublas.so.12", "libcublas.so"};
  void* library = nullptr;
  for (const char* name : names) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return std::nullopt;
  BlasTable table;
  const bool complete =
      find(library, "cublasCreate_v2", table.create) && find(library, "cublasDestroy_v2", table.destroy) &&
      find(library, "cublasGetVersion_v2", table.version) && find(library, "cublasSetStream_v2", table.set_stream) &&
      find(library, "cublasGetStatusString", table.status_text) && find(library, "cublasSgemm_v2", table.sgemm) &&
      find(library, "cublasGemmEx", table.gemm_ex);
  if (!complete) return std::nullopt;
  return table;
}

std::unique_ptr<Blas> Blas::open(const BlasTable& table, Status& status) {
  void* handle = nullptr;
  if (const int code = table.create(&handle); code != 0) {
    status.fail(std::string("cuBLAS: cublasCreate: ") + table.status_text(code));
    return nullptr;
  }
  return std::unique_ptr<Blas>(new Blas(table, handle));
}

Blas::~Blas() { table_.destroy(handle_); }

std::string Blas::version() const {
  int number = 0;
  if (table_.version(handle_, &number) != 0) return "unavailable";
  // 130002 is 13.0.2 (CUDA 11 and later).
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

void Blas::note(int code, const char* what, Status& status) const {
  if (code != 0) status.fail(std::string("cuBLAS: ") + what + ": " + table_.status_text(code));
}

void Blas::queue(const KernelCall& call, const void* a, const void* b, float* c, cudaStream_t stream, Status& status) {
  const auto m = static_cast<int>(call.m);
  const auto n = static_cast<int>(call.n);
  const auto k = static_cast<int>(call.k);
  const float one = 1;
  const float zero = 0;
  note(table_.set_stream(handle_, stream), "cublasSetStream", status);
  // cuBLAS holds matrices in columns: C = A B in rows is C' = B' A' in columns, of the same memory.
  if (call.kernel == Kernel::gemm_fp32) {
    note(table_.sgemm(handle_, no_transpose, no_transpose, n, m, k, &one, static_cast<const float*>(b), n,
                      static_cast<const float*>(a), k, &zero, c, n),
         "cublasSgemm", status);
  } else {
    note(table_.gemm_ex(handle_, no_transpose, no_transpose, n, m, k, &one, b, real_bf16, n, a, real_bf16, k, &zero, c,
                        real_fp32, n, compute_fp32, default_algorithm),
         "cublasGemmEx", status);
  }
}

}  // namespace gpusched::cuda
