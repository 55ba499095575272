// SPDX-License-Identifier: Apache-2.0
// The kernels on a CUDA device, in this very process, so that a memory checker sees them. Skipped without a device.
#include <gtest/gtest.h>

#include <cmath>

#include "cuda/device.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "src/calibration/measure/suite.hpp"
#include "tests/cuda/cuda_sizes.hpp"

namespace gpusched::cuda {
namespace {

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open();
    if (!opened) GTEST_SKIP() << opened.error().to_string();
    device_ = *std::move(opened);
  }

  void expect_sound(const KernelCall& call) {
    if (!device_->supports(call.kernel)) return;
    const auto error = device_->check(call);
    ASSERT_TRUE(error) << describe(call) << ": " << error.error().to_string();
    EXPECT_LE(*error, error_limit(call)) << describe(call);
  }

  double median_us(const KernelCall& call) {
    const auto times = device_->time_us({&call, 1}, 11);
    EXPECT_TRUE(times) << describe(call) << ": " << times.error().to_string();
    if (!times) return NAN;
    std::vector<double> sorted = *times;
    std::sort(sorted.begin(), sorted.end());
    return sorted[5];
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaDevice, EveryKernelComputesWhatItsReferenceDoes) {
  for (const KernelCall& call : calls_on_edges()) expect_sound(call);
}

TEST_F(CudaDevice, TimesArePositiveAndGrowWithTheWork) {
  const double small = median_us({Kernel::copy, 1 << 24});
  const double large = median_us({Kernel::copy, 1 << 26});
  EXPECT_GT(small, 0);
  EXPECT_GT(large, 2 * small);
  EXPECT_LT(large, 8 * small);
  EXPECT_GT(median_us({Kernel::launch}), 0);
  EXPECT_GT(median_us({Kernel::fma_fp32, 1 << 20, 4096}), 2 * median_us({Kernel::fma_fp32, 1 << 20, 1024}));
}

// No kernel may run faster than the processor can: as many lanes as its widest multiprocessor has, at its own clock.
TEST_F(CudaDevice, CeilingsAreBelowWhatTheProcessorCanDo) {
  const KernelCall call{Kernel::fma_fp32, 1 << 20, 8192};
  const double flops_per_s = flops_of(call) / median_us(call) * 1e6;
  const double sm_count = device_->facts().resources.at("sm_count").value;
  EXPECT_LT(flops_per_s, sm_count * 128 * 2 * 2.8e9);
  EXPECT_GT(flops_per_s, sm_count * 64 * 2 * 0.5e9);
}

TEST_F(CudaDevice, AStepTakesAboutTheSumOfItsKernels) {
  const std::vector<KernelCall> step = {{Kernel::h2d_pageable, 1 << 20},
                                        {Kernel::copy, 1 << 24},
                                        {Kernel::fma_fp32, 1 << 20, 2048},
                                        {Kernel::stencil7, 200}};
  double sum = 0;
  for (const KernelCall& call : step) sum += median_us(call);
  const auto times = device_->time_us(step, 11);
  ASSERT_TRUE(times) << times.error().to_string();
  std::vector<double> sorted = *times;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NEAR(sorted[5] / sum, 1, 0.3);
}

TEST_F(CudaDevice, TwoStreamsShareTheDevice) {
  const KernelCall heavy{Kernel::fma_fp32, 1 << 20, 4096};
  const auto both = device_->co_locate(heavy, heavy, 0.6);
  ASSERT_TRUE(both) << both.error().to_string();
  for (const double slowdown : *both) {
    EXPECT_GT(slowdown, 1.3);
    EXPECT_LT(slowdown, 3);
  }
}

// Too large an operand is an error in one line, and the device goes on.
TEST_F(CudaDevice, OutOfMemoryIsAnErrorThatPasses) {
  const KernelCall huge{Kernel::copy, std::int64_t{1} << 42};
  const auto failed = device_->time_us({&huge, 1}, 3);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("out of memory"), std::string::npos) << failed.error().message;
  expect_sound({Kernel::copy, 1000});
  EXPECT_GT(median_us({Kernel::copy, 1 << 20}), 0);
}

}  // namespace
}  // namespace gpusched::cuda
