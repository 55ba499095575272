// SPDX-License-Identifier: Apache-2.0
// The CUDA backend as calibrate() uses it. What needs a device is skipped without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "src/calibration/measure/backends.hpp"
#include "src/calibration/measure/calibrate.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "tests/calibration/profile/profile_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

class CudaBackend : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_backend("cuda", {});
    if (!opened) GTEST_SKIP() << opened.error().to_string();
    backend_ = *std::move(opened);
  }
  std::unique_ptr<Backend> backend_;
};

TEST(CudaBackendWithoutDevice, SaysSoInOneLine) {
  // Hides every device from this process, which has not opened one, and from its children.
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "-1", 1), 0);
  const auto opened = open_backend("cuda", {});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ASSERT_FALSE(opened);
  const std::string message = opened.error().to_string();
  EXPECT_THAT(message, HasSubstr("no CUDA d"));  // driver or device
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
}

TEST_F(CudaBackend, TellsItsFacts) {
  const DeviceFacts facts = backend_->facts();
  EXPECT_EQ(facts.kind, "gpu");
  EXPECT_FALSE(facts.model.empty());
  EXPECT_GT(facts.resources.at("memory_bytes").value, 1e9);
  EXPECT_GT(facts.resources.at("sm_count").value, 0);
  EXPECT_GT(facts.resources.at("context_bytes").value, 1e6);
  EXPECT_EQ(facts.environment.at("clock_policy"), "as_found");
  EXPECT_EQ(facts.co_location_mode, "streams");
}

TEST_F(CudaBackend, SuiteChecksPass) {
  for (const KernelCall& call : check_calls(*backend_)) {
    const auto error = backend_->check(call);
    ASSERT_TRUE(error) << error.error().to_string();
    EXPECT_LE(*error, error_limit(call)) << describe(call);
  }
}

TEST_F(CudaBackend, StartsFreshProcessesWhileTheDeviceIsOpen) {
  const auto times = backend_->cold_start_s(2);
  ASSERT_TRUE(times) << times.error().to_string();
  ASSERT_EQ(times->size(), 2u);
  for (const double s : *times) {
    EXPECT_GT(s, 0.01);
    EXPECT_LT(s, 60);
  }
  const KernelCall call{Kernel::copy, 1 << 20};
  EXPECT_TRUE(backend_->time_us({&call, 1}, 3));
}

TEST_F(CudaBackend, PreparedStepsRunSideBySide) {
  const KernelCall small{Kernel::copy, 1 << 20};
  const KernelCall large{Kernel::fma_fp32, 1 << 20, 8192};
  auto first = backend_->prepare({&small, 1});
  auto second = backend_->prepare({&large, 1});
  ASSERT_TRUE(first && second);
  ASSERT_TRUE((*first)->run(10));
  const double begin = monotonic_s();
  ASSERT_TRUE((*second)->run(100));
  const double hundred_s = monotonic_s() - begin;
  const auto alone = backend_->time_us({&large, 1}, 5);
  ASSERT_TRUE(alone);
  EXPECT_NEAR(hundred_s / (100e-6 * alone->front()), 1, 0.5);
}

TEST_F(CudaBackend, BackendsInForkedChildrenWork) {
  auto child = ChildProcess::start([] {
    auto backend = open_backend("cuda", {});
    const KernelCall call{Kernel::copy, 1 << 20};
    const auto times = backend ? (*backend)->time_us({&call, 1}, 3) : std::vector<double>();
    return times ? *times : std::vector<double>();
  });
  ASSERT_TRUE(child);
  const auto times = child->wait();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->size(), 3u);
}

TEST_F(CudaBackend, PowerIsAboveIdleUnderLoadOrUnavailable) {
  const KernelCall heavy{Kernel::fma_fp32, 1 << 20, 4096};
  const auto reading = backend_->power({&heavy, 1}, 1, 2.5);
  ASSERT_TRUE(reading) << reading.error().to_string();
  if (!*reading) GTEST_SKIP() << "the device has no energy counter, or NVML is not there";
  EXPECT_GT((*reading)->watts, (*reading)->idle_watts);
  EXPECT_GE((*reading)->seconds, 2);
}

TEST_F(CudaBackend, CalibratesEndToEnd) {
  const test::TempFolder folder;
  const auto profile = calibrate(*backend_, {.scale = SuiteScale::tiny, .checkpoint_folder = folder.path()});
  ASSERT_TRUE(profile) << profile.error().to_string();
  test::expect_sound(*profile);
  EXPECT_GT(profile->cold_start.at("context_s").value, 0);
  EXPECT_THAT(profile->environment, testing::Contains(testing::Key("sm_clock_mhz")));
}

}  // namespace
}  // namespace gpusched
