// SPDX-License-Identifier: Apache-2.0
// The CUDA backend and its child processes, end to end, on a device that the processor plays (tests/cuda/on_cpu). This
// process never opens the device: what it forks does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "src/calibration/measure/backends.hpp"
#include "src/calibration/measure/calibrate.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "tests/calibration/profile/profile_support.hpp"
#include "tests/cuda/on_cpu/emulation.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using cuda_on_cpu::settings;
using testing::HasSubstr;

class CudaOnCpuBackend : public testing::Test {
 protected:
  void SetUp() override { settings() = {}; }
  void TearDown() override { EXPECT_EQ(cuda_on_cpu::live_objects(), 0u) << "this process opened the device"; }

  static std::unique_ptr<Backend> open() {
    auto opened = open_backend("cuda", {});
    EXPECT_TRUE(opened) << opened.error().to_string();
    return opened ? *std::move(opened) : nullptr;
  }

  [[nodiscard]] CalibrateOptions tiny() const {
    return {.scale = SuiteScale::tiny, .samples_path = samples_, .bootstraps = 20};
  }

  [[nodiscard]] std::size_t kept() const {
    const std::string text = test::bytes_of(samples_);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  /// Runs a line of shell in which $P is the program and $F the folder; its exit code.
  [[nodiscard]] int shell(const std::string& line) const {
    const std::string command = "P=" GPUSCHED_PROGRAM "; F=" + folder_.path() + "; " + line;
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  test::TempFolder folder_;
  std::string samples_ = folder_.path() + "/profile.json.samples.csv";
};

TEST_F(CudaOnCpuBackend, CalibratesEndToEndThroughAnInterruption) {
  settings().devices = 2;
  const auto backend = open();
  ASSERT_TRUE(backend);
  CalibrateOptions options = tiny();
  options.checkpoint_folder = folder_.path();
  options.open = [] { return open_backend("cuda", {}); };

  std::stop_source stop;
  options.stop = stop.get_token();
  options.progress = [&](std::uint32_t done, std::uint32_t, const std::string&) {
    if (done == 60) stop.request_stop();
  };
  const auto stopped = calibrate(*backend, options);
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr("stopped with 60 measurements kept"));
  EXPECT_EQ(kept(), 61u) << "a heading and 60 rows";
  const std::string first_part = test::bytes_of(samples_);

  options.stop = {};
  std::uint32_t taken = 0;
  options.progress = [&](std::uint32_t, std::uint32_t, const std::string&) { ++taken; };
  const auto profile = calibrate(*backend, options);
  ASSERT_TRUE(profile) << profile.error().to_string();
  EXPECT_TRUE(test::bytes_of(samples_).starts_with(first_part)) << "what was kept is not measured again";
  EXPECT_EQ(kept(), taken + 1);

  test::expect_sound(*profile);
  // The played device's times are those of a processor that others use too: there need not be a line that fits them.
  const std::string samples = test::bytes_of(samples_);
  for (const char* kernel : {"gemm_naive16", "gemm_tiled", "gemm_fp32", "gemm_bf16", "conv2d", "copy", "triad",
                             "reduce", "softmax", "layernorm", "stencil7", "gather", "histogram", "h2d_pinned",
                             "d2h_pinned", "h2d_pageable", "d2h_pageable", "peer_copy"}) {
    EXPECT_THAT(samples, HasSubstr("check " + std::string(kernel) + " ")) << kernel;
    EXPECT_THAT(samples, HasSubstr("\n" + std::string(kernel) + " ")) << kernel;
  }
  EXPECT_GT(profile->cold_start.at("context_s").value, 0);
  EXPECT_GT(profile->resources.at("context_bytes").value, 1e6);
  EXPECT_EQ(profile->environment.at("sm_clock_mhz"), "20 to 20 after the samples, at most 20");
  EXPECT_EQ(profile->environment.at("cublas"), "13.0.2");
  ASSERT_TRUE(profile->interference);
  EXPECT_EQ(profile->interference->mode, "streams");
}

TEST_F(CudaOnCpuBackend, TellsItsFacts) {
  const auto backend = open();
  ASSERT_TRUE(backend);
  const DeviceFacts facts = backend->facts();
  EXPECT_EQ(facts.kind, "gpu");
  EXPECT_EQ(facts.model, "Processor as GPU");
  EXPECT_TRUE(facts.is_hopper);
  EXPECT_EQ(facts.resources.at("memory_bytes").value, 128 << 20);
  EXPECT_EQ(facts.resources.at("context_bytes").value, 3 << 20) << "2 MiB, and the 1 MiB that its first kernel has";
  EXPECT_EQ(facts.environment.at("clock_policy"), "as_found");
  EXPECT_FALSE(backend->supports(Kernel::peer_copy));
}

// Processes beside each other, each with a device of its own to open: as co_locate_processes() and the job mix do.
TEST_F(CudaOnCpuBackend, ProcessesShareTheDevice) {
  const auto backend = open();
  ASSERT_TRUE(backend);
  const std::vector<KernelCall> calls = {{Kernel::copy, 4096}, {Kernel::gemm_tiled, 40, 40, 40}};
  const auto slowdown = co_locate_processes([] { return open_backend("cuda", {}); }, calls, 0.06);
  ASSERT_TRUE(slowdown) << slowdown.error().to_string();
  for (const auto& row : *slowdown) {
    for (const double ratio : row) EXPECT_TRUE(ratio > 0 && std::isfinite(ratio)) << ratio;
  }
  const KernelCall call{Kernel::copy, 1000};
  EXPECT_TRUE(backend->time_us({&call, 1}, 3)) << "the one opened first is still there";
}

TEST_F(CudaOnCpuBackend, StartsFreshProcessesWhileTheDeviceIsOpen) {
  const auto backend = open();
  ASSERT_TRUE(backend);
  const auto times = backend->cold_start_s(3);
  ASSERT_TRUE(times) << times.error().to_string();
  EXPECT_EQ(times->size(), 3u);
  for (const double s : *times) EXPECT_TRUE(s > 0 && s < 10) << s;
}

TEST_F(CudaOnCpuBackend, AForkOfAProcessThatOpenedTheDeviceCannotUseIt) {
  auto child = ChildProcess::start([]() -> std::vector<double> {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
    auto grandchild = ChildProcess::start([]() -> std::vector<double> {
      int again = 0;
      return {static_cast<double>(cudaGetDeviceCount(&again))};
    });
    return grandchild ? *grandchild->wait() : std::vector<double>();
  });
  ASSERT_TRUE(child);
  EXPECT_EQ(*child->wait(), std::vector<double>{cudaErrorInitializationError});
}

TEST_F(CudaOnCpuBackend, NoDeviceIsOneLine) {
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "-1", 1), 0);
  const auto opened = open_backend("cuda", {});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().to_string(), "no CUDA device; --backend cpu measures the processor");
}

// The device goes while its samples are taken: one line that says where, and what was measured stays.
TEST_F(CudaOnCpuBackend, ADeviceLostMidwayIsOneLineAndKeepsTheSamples) {
  for (const bool dies : {false, true}) {
    std::filesystem::remove(samples_);
    settings().lose_after = dies ? 20 : 2000;  // while results are checked, while kernels are timed
    settings().dies = dies;
    const auto backend = open();
    ASSERT_TRUE(backend);
    const auto profile = calibrate(*backend, tiny());
    ASSERT_FALSE(profile);
    const std::string message = profile.error().to_string();
    EXPECT_THAT(message, HasSubstr(dies ? "the CUDA device is lost: its process ended in the middle of a request"
                                        : "uncorrectable ECC error"));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_GT(kept(), dies ? 2u : 20u);
  }
}

// ---- the program ----

TEST_F(CudaOnCpuBackend, TheProgramKeepsTheLastGoodProfileWhenTheDeviceIsLost) {
  const std::string good = folder_.write("profile.json", "the last good one");
  EXPECT_EQ(shell("CUDA_ON_CPU_LOSE_AFTER=20 $P --backend cuda --quick --out $F/profile.json >$F/out 2>$F/err"), 1);
  const std::string said = test::bytes_of(folder_.path() + "/err");
  EXPECT_THAT(said, testing::StartsWith("gpusched: "));
  EXPECT_THAT(said, HasSubstr("uncorrectable ECC error"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(test::bytes_of(folder_.path() + "/out"), "");
  EXPECT_EQ(test::bytes_of(good), "the last good one");
}

TEST_F(CudaOnCpuBackend, TheProgramKeepsItsSamplesThroughCtrlC) {
  std::string before;
  for (const char* rows : {"2", "4"}) {
    EXPECT_EQ(
        shell(std::string("$P --backend cuda --quick --out $F/profile.json >$F/out 2>$F/err & pid=$!; "
                          "for i in $(seq 600); do sleep 0.1; [ $(cat $F/profile.json.samples.csv | wc -l) -gt ") +
              rows + " ] && break; done; kill -INT $pid; wait $pid"),
        130);
    const std::string said = test::bytes_of(folder_.path() + "/err");
    EXPECT_THAT(said, HasSubstr("measurements kept; the same command continues from there"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    const std::string after = test::bytes_of(samples_);
    EXPECT_TRUE(after.starts_with(before) && after.size() > before.size()) << after;
    before = after;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/profile.json"));
}

// As many threads as were asked for were tried.
TEST_F(CudaOnCpuBackend, TheProgramRefusesBadArgumentsBeforeItMeasures) {
  for (const char* bad : {"--threads 100000", "--threads -1", "--seed -1", "--checkpoint-folder $F/nowhere"}) {
    EXPECT_EQ(shell("$P --backend cpu --quick --out $F/profile.json " + std::string(bad) + " 2>$F/err"), 2);
    const std::string said = test::bytes_of(folder_.path() + "/err");
    EXPECT_THAT(said, testing::StartsWith("gpusched: --")) << bad;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  EXPECT_FALSE(std::filesystem::exists(samples_));
}

TEST_F(CudaOnCpuBackend, TooLittleMemoryIsOneLineAndPasses) {
  const auto backend = open();
  ASSERT_TRUE(backend);
  const KernelCall huge{Kernel::copy, std::int64_t{1} << 30};
  const auto failed = backend->time_us({&huge, 1}, 3);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("out of memory"));
  EXPECT_FALSE(backend->prepare({&huge, 1}));
  const KernelCall small{Kernel::copy, 1000};
  EXPECT_TRUE(backend->time_us({&small, 1}, 3));
}

}  // namespace
}  // namespace gpusched
