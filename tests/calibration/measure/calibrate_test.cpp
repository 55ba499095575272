// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/calibrate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "src/calibration/measure/backends.hpp"
#include "src/calibration/measure/cpu_memory.hpp"
#include "src/calibration/measure/gates.hpp"
#include "src/calibration/measure/reference.hpp"
#include "src/calibration/measure/sample_store.hpp"
#include "src/calibration/profile/duration_model.hpp"
#include "src/calibration/profile/profile_tables.hpp"
#include "tests/calibration/profile/profile_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

const Gate& gate(const DeviceProfile& profile, const std::string& name) {
  const auto& gates = profile.validation.gates;
  const auto place = std::find_if(gates.begin(), gates.end(), [&](const Gate& g) { return g.name == name; });
  EXPECT_NE(place, gates.end()) << name;
  return *place;
}

TEST(Calibrate, AnalyticDevicePassesEveryGateAndItsProfileIsValid) {
  const auto backend = make_analytic_backend({});
  const auto profile = calibrate(*backend, {.scale = SuiteScale::quick});
  ASSERT_TRUE(profile) << profile.error().to_string();
  test::expect_sound(*profile);
  EXPECT_NEAR(profile->fits.at("gemm_bf16").p_tflops.value, 100, 3);
  EXPECT_NEAR(profile->fits.at("gemm_bf16").w_gbs.value, 1000, 30);
  EXPECT_NEAR(profile->ops.at("layernorm").w_gbs.value, 1000, 150);
  for (const char* name :
       {"repeat", "held-out sizes", "held-out gemm_naive16", "held-out gemm_tiled", "held-out gemm_fp32",
        "held-out gemm_bf16", "composite steps", "energy of steps", "co-location MAE"}) {
    EXPECT_EQ(gate(*profile, name).status, "pass") << name << "\n" << show_device_profile(*profile);
  }
  // 50 sizes of the library products, some of others; 12 steps, never fitted.
  EXPECT_GE(gate(*profile, "held-out sizes").n, 48U);
  EXPECT_EQ(gate(*profile, "composite steps").n, 12U);
}

/// About an H200: 132 multiprocessors, blocks in whole rounds, a floor under work too small to fill them.
AnalyticTruth h200_like(std::uint64_t seed) {
  return {.sm_count = 132, .step_ns = 20, .t0_us = 3, .p_tflops = 800, .w_gbs = 4300, .seed = seed};
}

TEST(Calibrate, ADeviceOfManyMultiprocessorsPassesEveryGate) {
  for (const std::uint64_t seed : {1U, 2U}) {
    const auto backend = make_analytic_backend(h200_like(seed));
    const auto profile = calibrate(*backend, {.scale = SuiteScale::quick, .seed = seed, .bootstraps = 20});
    ASSERT_TRUE(profile) << profile.error().to_string();
    for (const Gate& g : profile->validation.gates) EXPECT_EQ(g.status, "pass") << g.name << ", seed " << seed;
    EXPECT_EQ(profile->validation.verdict, "pass");
    // Rounds that are not full cost a part of the peak.
    EXPECT_LE(profile->fits.at("gemm_bf16").p_tflops.value, 810);
    EXPECT_GE(profile->fits.at("gemm_bf16").p_tflops.value, 700);
    EXPECT_NEAR(profile->fits.at("gemm_naive16").step_ns->value, 20, 5);
    EXPECT_EQ(profile->fits.at("gemm_tiled").tile_side, 64U);
    EXPECT_FALSE(profile->fits.at("gemm_bf16").step_ns);
    test::expect_sound(*profile);
    // One row costs what a whole tile does, and no less than its chain.
    const auto row = predict(*profile, KernelCall{Kernel::gemm_tiled, 1, 256, 2000});
    const auto tile = predict(*profile, KernelCall{Kernel::gemm_tiled, 64, 256, 2000});
    ASSERT_TRUE(row && tile);
    EXPECT_NEAR(row->time_us / tile->time_us, 1, 0.1);
    EXPECT_GT(row->time_us, 2000 * 0.020);
  }
}

// At the scales whose points take samples for some time: that is the made-up device's time, not the machine's.
TEST(Calibrate, SameSeedSameProfile) {
  const auto first_device = make_analytic_backend({});
  const auto second_device = make_analytic_backend({});
  auto first = calibrate(*first_device, {.scale = SuiteScale::quick, .bootstraps = 20});
  auto second = calibrate(*second_device, {.scale = SuiteScale::quick, .bootstraps = 20});
  ASSERT_TRUE(first && second);
  EXPECT_GT(first->resources.at("launch_us").n, 100U);
  second->created_utc = first->created_utc;
  EXPECT_EQ(to_json(*first), to_json(*second));
}

TEST(Calibrate, AFolderWithoutRoomForCheckpointsIsToldFirst) {
  const auto device = make_analytic_backend({});
  const CalibrateOptions options{
      .checkpoint_folder = "/proc",
      .progress = [](std::uint32_t, std::uint32_t, const std::string& what) { FAIL() << what; }};
  const auto profile = calibrate(*device, options);
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().to_string(), "/proc: a checkpoint of 1024 MiB does not fit on this disk: 0 MiB are free");
}

// One thread: handing work to a second one waits for a time slice each time where other programs run.
TEST(Calibrate, CpuBackendEndToEnd) {
  const test::TempFolder folder;
  const auto backend = make_cpu_backend(1);
  const auto profile =
      calibrate(*backend, {.scale = SuiteScale::tiny,
                           .checkpoint_folder = folder.path(),
                           .open = []() -> Result<std::unique_ptr<Backend>> { return make_cpu_backend(1); },
                           .job_mix = true});
  ASSERT_TRUE(profile) << profile.error().to_string();
  test::expect_sound(*profile);
  EXPECT_THAT(profile->fits, testing::Contains(testing::Key("gemm_fp32")));
  const auto small = predict(*profile, KernelCall{Kernel::gemm_fp32, 128, 128, 128});
  const auto large = predict(*profile, KernelCall{Kernel::gemm_fp32, 512, 512, 512});
  ASSERT_TRUE(small && large);
  EXPECT_LT(small->time_us, large->time_us);
  EXPECT_GT(profile->resources.at("checkpoint_write_gbs").value, 0);
  EXPECT_EQ(gate(*profile, "energy of steps").status, "not_run");
  // What is left of timing on a machine that others use: structure, and numbers that are numbers.
  ASSERT_TRUE(profile->process_interference);
  EXPECT_EQ(profile->process_interference->mode, "processes");
  EXPECT_EQ(profile->transfers.at("peer_copy").beta_gbs.source, Source::unavailable);
  EXPECT_GT(predict(*profile, KernelCall{Kernel::peer_copy, 1000}).value().time_us, 0);  // not from that
  for (const char* name : {"job mix fifo", "job mix sjf", "job mix packing"}) {
    EXPECT_NE(gate(*profile, name).status, "not_run");
    EXPECT_TRUE(std::isfinite(gate(*profile, name).value_ratio));
    EXPECT_EQ(gate(*profile, name).n, 4U);
  }
  EXPECT_THAT(gate(*profile, "job mix order").note, HasSubstr("residual slowdown"));
  EXPECT_GT(profile->cold_start.at("job_s").value, 0);
}

TEST(Calibrate, StopsWhenAskedAndGoesOnFromTheSamples) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/resumed.samples.csv";
  std::stop_source stop;
  const auto interrupted_device = make_analytic_backend({});
  const auto interrupted =
      calibrate(*interrupted_device, {.scale = SuiteScale::tiny,
                                      .samples_path = path,
                                      .stop = stop.get_token(),
                                      .progress = [&](std::uint32_t done, std::uint32_t, const std::string&) {
                                        if (done == 60) stop.request_stop();
                                      }});
  ASSERT_FALSE(interrupted);
  EXPECT_THAT(interrupted.error().message, HasSubstr("stopped with 60 measurements kept"));
  std::uint32_t kept = 0;
  {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) ++kept;
  }
  EXPECT_EQ(kept, 61U);  // a heading and 60 rows
  const auto device = make_analytic_backend({});
  const auto resumed = calibrate(*device, {.scale = SuiteScale::tiny, .samples_path = path});
  ASSERT_TRUE(resumed) << resumed.error().to_string();
  EXPECT_EQ(resumed->raw->file, "resumed.samples.csv");

  // All samples are there now: a third run measures nothing and finds the same.
  auto replayed = calibrate(*device, {.scale = SuiteScale::tiny, .samples_path = path});
  ASSERT_TRUE(replayed);
  replayed->created_utc = resumed->created_utc;
  EXPECT_EQ(to_json(*replayed), to_json(*resumed));

  const auto other = calibrate(*device, {.scale = SuiteScale::tiny, .seed = 2, .samples_path = path});
  EXPECT_THAT(other.error().to_string(), HasSubstr("these samples are of another run"));
}

/// Forwards to a sound device until it is lost, or computes nonsense.
class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::uint32_t lost_after, double error) : lost_after_(lost_after), error_(error) {}
  [[nodiscard]] std::string name() const override { return device_->name(); }
  [[nodiscard]] DeviceFacts facts() const override { return device_->facts(); }
  [[nodiscard]] bool supports(Kernel kernel) const override { return device_->supports(kernel); }
  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) override {
    if (lost_after_-- == 0) return unexpected("the device is lost");
    return device_->time_us(step, samples);
  }
  Result<double> check(const KernelCall&) override { return error_; }
  Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double s) override {
    return device_->co_locate(a, b, s);
  }
  Result<std::vector<double>> cold_start_s(std::uint32_t samples) override { return device_->cold_start_s(samples); }
  Result<std::optional<PowerReading>> power(std::span<const KernelCall> step, double duty, double s) override {
    return device_->power(step, duty, s);
  }

 private:
  std::unique_ptr<Backend> device_ = make_analytic_backend({});
  std::uint32_t lost_after_;
  double error_;
};

TEST(Calibrate, ALostDeviceIsOneLineAndKeepsTheSamples) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/lost.samples.csv";
  FaultyBackend device(5, 0);
  const auto profile = calibrate(device, {.scale = SuiteScale::tiny, .samples_path = path});
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().to_string(), HasSubstr("the device is lost"));
  EXPECT_EQ(profile.error().to_string().find('\n'), std::string::npos);
  const auto sound = make_analytic_backend({});
  EXPECT_TRUE(calibrate(*sound, {.scale = SuiteScale::tiny, .samples_path = path}));
}

TEST(Calibrate, AWrongResultStopsTheCalibration) {
  FaultyBackend device(1000000, 0.5);
  const auto profile = calibrate(device, {.scale = SuiteScale::tiny});
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().to_string(), HasSubstr("computes a wrong result on this device"));
}

TEST(Calibrate, CpuKernelsAgreeWithTheDoubleReference) {
  for (const std::uint32_t threads : {1U, 3U}) {
    const auto backend = make_cpu_backend(threads);
    auto calls = check_calls(*backend);
    EXPECT_GE(calls.size(), 14U);
    // Blocks, edges and shares of rows or columns that do not come out even.
    for (const Kernel kernel : {Kernel::gemm_naive16, Kernel::gemm_tiled, Kernel::gemm_fp32}) {
      for (const auto& [m, n, k] : {std::array{1, 1, 1}, {1, 7, 300}, {3, 17, 65}, {5, 300, 64}, {130, 33, 129}}) {
        calls.push_back({kernel, m, n, k});
      }
    }
    for (const auto& [images, channels, side] : {std::array{1, 1, 1}, {2, 3, 2}, {1, 5, 9}, {5, 2, 16}}) {
      calls.push_back({Kernel::conv2d, images, channels, side});
    }
    for (const KernelCall& call : calls) {
      EXPECT_LE(backend->check(call).value(), error_limit(call)) << describe(call) << " on " << threads;
    }
  }
}

TEST(Calibrate, OperandsOfTheProcessorLieWhereTheyLay) {
  CpuMemory memory(1 << 20);
  const auto* first = memory.random_floats(1000).data();
  const float value = first[999];
  const auto* room = memory.room<std::uint32_t>(100).data();
  memory.restart();
  EXPECT_EQ(memory.random_floats(500).data(), first);
  EXPECT_EQ(memory.room<std::uint32_t>(7).data(), room);
  EXPECT_EQ(first[999], value);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 64, 0U);
  EXPECT_THROW(memory.room<double>(1 << 18), std::bad_alloc);
}

TEST(Reference, IndicesStayBelowTheirLimitBeyondTheRepeatedBlock) {
  for (const std::uint64_t below : {1U, 256U, 100'000U}) {
    std::vector<std::uint32_t> values(200'000);
    fill_random_indices(values, below, Rng(3));
    EXPECT_LT(*std::max_element(values.begin(), values.end()), below);
    const std::set<std::uint32_t> distinct(values.begin(), values.end());
    EXPECT_GT(distinct.size(), below * 8 / 10);
  }
}

// The test of the first program that was ever run through this suite: all of A = 1, B = 2, N = 1024 gives 2048.
TEST(Reference, ProductOfOnesAndTwos) {
  const std::vector<double> cells = reference_result(seed_program, check_data(seed_program));
  EXPECT_EQ(cells.size(), 1024U * 1024U);
  EXPECT_THAT(std::set<double>(cells.begin(), cells.end()), testing::ElementsAre(2048.0));
  EXPECT_EQ(error_limit(seed_program), 0);
}

TEST(Kernel, CallsAreReadAsTheyAreWritten) {
  for (const KernelCall& call : {seed_program, KernelCall{Kernel::copy, 5}, KernelCall{Kernel::softmax, 7, 9}}) {
    EXPECT_EQ(parse_call(describe(call)), call) << describe(call);
  }
  for (const char* text : {"", "copy", "copy ", "copy 0", "copy 5x", "copy 5 6", "copie 5", "softmax 1x2x3x4"}) {
    EXPECT_FALSE(parse_call(text)) << text;
  }
}

// On a processor of few threads it is above what a call may compute there, and was left out.
TEST(Suite, TimesAndChecksTheSeedProgramOnEveryDevice) {
  const auto backend = make_cpu_backend(1);
  EXPECT_LT(backend->facts().limits.flops, flops_of(seed_program));
  EXPECT_THAT(make_suite(*backend, SuiteScale::quick, 1),
              testing::Contains(testing::Field(&SuitePoint::id, "held gemm_naive16 1024x1024x1024")));
  EXPECT_THAT(check_calls(*backend), testing::Contains(seed_program));
}

TEST(Suite, HoldsWhatTheDesignAsksFor) {
  const auto backend = make_analytic_backend({});
  std::uint32_t fit = 0;
  std::uint32_t held_out = 0;
  std::uint32_t odd = 0;
  for (const SuitePoint& point : make_suite(*backend, SuiteScale::full, 1)) {
    const KernelCall& call = point.step.front();
    if (call.kernel != Kernel::gemm_bf16 || point.role == PointRole::composite || is_row_product(call)) continue;
    (point.role == PointRole::fit ? fit : held_out) += 1;
    odd += call.n % 64 != 0 ? 1 : 0;
    EXPECT_TRUE(call.n % 8 == 0 && call.k % 8 == 0) << point.id;
  }
  EXPECT_EQ(fit, 64U);
  EXPECT_EQ(held_out, 24U);
  EXPECT_GE(odd, 10U);
  EXPECT_EQ(composite_steps(*backend, SuiteScale::full).size(), 12U);
  EXPECT_EQ(interference_kernels(*backend).size(), 6U);
}

TEST(SampleStore, RefusesForeignFilesAndMeasuresACutRowAgain) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/store.csv";
  {
    auto store = SampleStore::open(path, "me");
    ASSERT_TRUE(store->add("a", {1, 0.1}));
  }
  const auto reopened = [&] {
    auto store = SampleStore::open(path, "me");
    EXPECT_TRUE(store) << store.error().to_string();
    return *std::move(store);
  };
  // "2" may be the first half of 2.5: a row counts when its end was written.
  for (const char* cut : {"b,1,2.", "b,1,2", "b"}) {
    std::ofstream(path, std::ios::app) << cut;
    const SampleStore store = reopened();
    EXPECT_EQ(*store.find("a"), (std::vector<double>{1, 0.1}));
    EXPECT_EQ(store.find("b"), nullptr) << cut;
  }
  // What comes after a cut row begins on a line of its own.
  std::ofstream(path, std::ios::app) << "c,1,2.";
  ASSERT_TRUE(reopened().add("c", {4}));
  EXPECT_EQ(*reopened().find("c"), std::vector<double>{4});
  std::ofstream(path, std::ios::app) << "\n";
  EXPECT_THAT(SampleStore::open(path, "me").error().to_string(), HasSubstr("store.csv:4: expected ID,NUMBER"));
  std::ofstream(path) << "# gpusched.samples/1 m";  // the disk was full at once
  ASSERT_TRUE(reopened().add("b", {3}));
  EXPECT_EQ(*reopened().find("b"), std::vector<double>{3});
  std::ofstream(path) << "a,b\n";
  EXPECT_THAT(SampleStore::open(path, "me").error().to_string(), HasSubstr("store.csv:1: not a samples file"));
  EXPECT_FALSE(SampleStore::open("/dev/null/x", "me"));
}

TEST(Backends, NamesAndAbsentCuda) {
  EXPECT_EQ(open_backend("cpu", {}).value()->name(), "cpu");
  EXPECT_EQ(open_backend("analytic", {}).value()->name(), "analytic");
  EXPECT_THAT(open_backend("abacus", {}).error().to_string(), HasSubstr("expected cuda, cpu or analytic"));
}

}  // namespace
}  // namespace gpusched
