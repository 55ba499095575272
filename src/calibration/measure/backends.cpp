// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/backends.hpp"

namespace gpusched {

Result<std::unique_ptr<Backend>> open_backend(std::string_view name, const BackendOptions& options) {
  if (name == "cpu") return make_cpu_backend(options.threads);
  if (name == "analytic") return make_analytic_backend({.seed = options.seed});
  if (name != "cuda") return unexpected("no backend '" + std::string(name) + "'; expected cuda, cpu or analytic");
#ifdef GPUSCHED_HAS_CUDA_BACKEND
  return open_cuda_backend();
#else
  return unexpected("this program was built without CUDA; --backend cpu measures the processor");
#endif
}

}  // namespace gpusched
