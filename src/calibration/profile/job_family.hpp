// SPDX-License-Identifier: Apache-2.0
/// JobFamily: what one training step of a class of jobs computes, as a mix of kernels, so that its time on any device
/// follows from the device's profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/calibration/profile/kernel.hpp"

namespace gpusched {

/// `count` layers that multiply (rows_per_sample * batch) x k by k x n; a convolution counts as the product that it
/// is computed as.
struct LayerMix {
  std::int64_t rows_per_sample = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::uint32_t count = 1;
};

struct JobFamily {
  std::string name;
  std::vector<std::string> words;  ///< a job's family matches when, in lower case and letters and digits only, it
                                   ///< contains one of these
  std::int64_t batch = 32;         ///< when the job does not say
  std::vector<LayerMix> layers;
  std::int64_t elementwise_per_sample = 0;  ///< floats read and written outside products
  std::int64_t gathered_per_sample = 0;     ///< random reads (embeddings, neighbours)
  std::int64_t input_bytes_per_sample = 0;
  double host_us_per_sample = 0;  ///< on the host, the same beside every device; an assumption
  std::string ref;                ///< where the mix comes from
};

/// The known families.
const std::vector<JobFamily>& job_families();

/// What a family name of a trace means: "ResNet-50 (batch size 64)", "bert:32", "vgg16"; or the calls of a step
/// themselves, "gemm_bf16 4096x1024x1024 * 24 + copy 8000000", a name and sizes as describe() writes them.
struct DeclaredWork {
  const JobFamily* family = nullptr;  ///< never null; the mixed family when the name says nothing
  std::int64_t batch = 0;
  bool recognised = false;
  std::vector<KernelCall> kernels = {};  ///< when the name is a mix of kernels; the family then does not count

  /// Microseconds of a step on the host.
  [[nodiscard]] double host_us() const {
    return kernels.empty() ? family->host_us_per_sample * static_cast<double>(batch) : 0;
  }
};
DeclaredWork declared_work(std::string_view name);

/// The calls of one training step: those declared, or the family's (forward, and both gradients of each product) in
/// `gemm` arithmetic.
std::vector<KernelCall> training_step(const DeclaredWork& work, Kernel gemm = Kernel::gemm_bf16);

}  // namespace gpusched
