// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/device_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "src/calibration/profile/profile_tables.hpp"
#include "tests/support/files.hpp"
#include "tests/support/json_schema.hpp"

namespace gpusched {
namespace {

std::string schema_violation(const std::string& json) {
  return test::schema_violation(json, "src/calibration/profile/device_profile.schema.json");
}

DeviceProfile full_profile() {
  DeviceProfile profile = shipped_profile("V100").value();
  Quantity w = quantity("w_gbs", 800, Source::fitted);
  w.ci95 = {790, 810};
  w.n = 64;
  Quantity t0 = quantity("t0_us", 3, Source::fitted);
  t0.ci95 = {0, 3.5};
  t0.bound = "at_most";
  profile.ops["layernorm"] = {.t0_us = t0, .w_gbs = w};
  profile.transfers["h2d_pinned"] = {.table_bytes_us = {{4096, 6.1}, {1e6, 90}},
                                     .alpha_us = quantity("alpha_us", 6, Source::fitted),
                                     .beta_gbs = quantity("beta_gbs", 12, Source::fitted)};
  profile.cold_start["context_s"] = quantity("context_s", 0.31, Source::measured);
  profile.interference = Interference{.mode = "streams", .kernels = {"a", "b"}, .slowdown = {{2, 1.5}, {1.25, 2}}};
  profile.process_interference = Interference{.mode = "processes", .kernels = {"a"}, .slowdown = {{2}}};
  profile.validation.gates.push_back(
      {.name = "repeat", .status = "pass", .value_ratio = 0.01, .limit_ratio = 0.03, .n = 9});
  profile.validation.verdict = "pass";
  profile.raw = RawSamples{.file = "samples.csv", .fnv1a64 = "0123456789abcdef"};
  return profile;
}

/// The error of the full profile with `from` replaced by `to` in its text.
std::string error_with(const std::string& from, const std::string& to) {
  std::string text = to_json(full_profile());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto profile = parse_device_profile(text, "p.json");
  return profile ? "accepted" : profile.error().to_string();
}

TEST(DeviceProfile, WritingAndReadingKeepsEveryByte) {
  const std::string text = to_json(full_profile());
  const auto again = parse_device_profile(text);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(to_json(*again), text);
  EXPECT_EQ(schema_violation(text), "");
}

TEST(DeviceProfile, ShippedProfilesAreValidAndEachNumberSaysItsSource) {
  const std::vector<std::string> names = shipped_profile_names();
  EXPECT_THAT(names, testing::IsSupersetOf({"K80", "P100", "V100", "T4", "A10", "A40", "A100", "A800", "H100", "H200",
                                            "B200", "MI250", "MI300X", "CPU", "FPGA"}));
  for (const std::string& name : names) {
    const auto profile = shipped_profile(name);
    ASSERT_TRUE(profile) << profile.error().to_string();
    EXPECT_EQ(profile->model, name);
    EXPECT_EQ(schema_violation(to_json(*profile)), "") << name;
    EXPECT_TRUE(profile->peaks.contains("fp32_tflops") && profile->peaks.contains("memory_gbs")) << name;
    for (const auto& [path, value] : all_quantities(*profile)) EXPECT_FALSE(value.ref.empty()) << name << path;
  }
  EXPECT_EQ(shipped_profile("a100")->model, "A100");
  // As drivers and traces name devices.
  EXPECT_EQ(shipped_profile_of_model("A100-SXM4-80GB")->model, "A100");
  EXPECT_EQ(shipped_profile_of_model("H100 80GB HBM3")->model, "H100");
  EXPECT_EQ(shipped_profile_of_model("v100m32")->model, "V100");
  EXPECT_FALSE(shipped_profile_of_model("L40S"));
  EXPECT_THAT(shipped_profile("A101").error().to_string(), testing::HasSubstr("did you mean 'A10'"));
}

TEST(DeviceProfile, BadInputNamesTheJsonPathInOneLine) {
  using testing::HasSubstr;
  EXPECT_THAT(error_with("\"unit\": \"TFLOP/s\"", "\"unit\": \"GFLOP/s\""),
              HasSubstr("p.json: /peaks/fp16_tflops/unit: expected 'TFLOP/s', not 'GFLOP/s'"));
  EXPECT_THAT(error_with("\"source\": \"fitted\"", "\"source\": \"guessed\""),
              HasSubstr("/source: expected one of measured|fitted|datasheet|literature|assumed|recorded|unavailable, "
                        "not \"guessed\""));
  EXPECT_THAT(error_with("\"value\": 800.0", "\"value\": NaN"), HasSubstr("expected well-formed JSON here"));
  EXPECT_THAT(error_with("\"value\": 800.0", "\"value\": null"),
              HasSubstr("/ops/layernorm/w_gbs/value: expected a finite number"));
  EXPECT_THAT(error_with("\"value\": 800.0,", ""), HasSubstr("/ops/layernorm/w_gbs/value: is missing"));
  EXPECT_THAT(error_with("device_profile/1", "device_profile/2"), HasSubstr("p.json: /schema: expected"));
  EXPECT_THAT(error_with("\"peaks\"", "\"peak\""), HasSubstr("/peak: unknown key (did you mean 'peaks'?)"));
  EXPECT_THAT(error_with("fp32_tflops", "fp31_tflops"), HasSubstr("/peaks/fp31_tflops: unknown key"));
  EXPECT_THAT(error_with("\"kind\": \"gpu\"", "\"kind\": \"toaster\""),
              HasSubstr("/kind: expected one of gpu|cpu|fpga|npu, not \"toaster\""));
  EXPECT_THAT(error_with("1.5\n", "0\n"), HasSubstr("/interference/slowdown: expected one positive number"));
  EXPECT_THAT(error_with("790.0", "890.0"), HasSubstr("/ops/layernorm/w_gbs/ci95: expected [low, high]"));
  const auto list = parse_device_profile("[]", "p.json");
  EXPECT_EQ(list.error().to_string(), "p.json: expected an object, not []");
  const auto broken = parse_device_profile("{\n\n  \"schema\": oops", "p.json");
  EXPECT_THAT(broken.error().to_string(), HasSubstr("p.json:3: expected well-formed JSON here"));
  EXPECT_THAT(read_device_profile("/nowhere/p.json").error().to_string(), HasSubstr("/nowhere/p.json: cannot be"));
  EXPECT_EQ(parse_device_profile("", "p.json").error().to_string(), "p.json:1: empty; expected JSON");
  EXPECT_THAT(error_with("\"kind\": \"gpu\"", "\"kind\": \"gpu\", \"kind\": \"gpu\""),
              HasSubstr("key 'kind' appears twice"));
  // A number beyond all bounds ended the program with a message of the JSON library.
  EXPECT_THAT(error_with("\"value\": 800.0", "\"value\": 1e999"), HasSubstr("p.json: holds a number too large"));
  // It was taken modulo 2^32.
  EXPECT_THAT(error_with("\"n\": 64", "\"n\": 4294967297"),
              HasSubstr("/ops/layernorm/w_gbs/n: expected an integer from 0 to 4294967295"));
  // It was divided by.
  EXPECT_THAT(error_with("\"value\": 800.0,\n        \"unit\": \"GB/s\",\n        \"source\": \"fitted\"",
                         "\"value\": 0.0,\n        \"unit\": \"GB/s\",\n        \"source\": \"unavailable\""),
              HasSubstr("/ops/layernorm/w_gbs/source: a fit needs all its parameters"));
}

TEST(DeviceProfile, AFailedWriteKeepsTheLastGoodFile) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/profile.json";
  const DeviceProfile good = full_profile();
  ASSERT_TRUE(write_device_profile(good, path));
  DeviceProfile bad = good;
  bad.peaks["fp32_tflops"].value = std::numeric_limits<double>::quiet_NaN();
  const auto refused = write_device_profile(bad, path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "/peaks/fp32_tflops/value");
  EXPECT_EQ(test::bytes_of(path), to_json(good));
  EXPECT_FALSE(write_device_profile(good, "/dev/null/p.json"));
}

TEST(DeviceProfile, AFullDiskIsOneLine) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/profile.json";
  ASSERT_TRUE(write_device_profile(full_profile(), path));
  // A limit on the size of files ends the writing where a full disk would.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto on_signal = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_device_profile(full_profile(), path);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, on_signal);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().to_string(), testing::HasSubstr("File too large"));
  EXPECT_EQ(test::bytes_of(path), to_json(full_profile()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(DeviceProfile, NoPlantedLinkIsFollowed) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/profile.json", other = folder.path() + "/other";
  std::ofstream(other) << "kept";
  std::filesystem::create_symlink(other, path + ".tmp" + std::to_string(::getpid()));
  ASSERT_TRUE(write_device_profile(full_profile(), path));
  EXPECT_EQ(test::bytes_of(other), "kept");
  EXPECT_EQ(test::bytes_of(path), to_json(full_profile()));
}

TEST(DeviceProfile, ShowAndCompareSayValuesSourcesAndRatios) {
  const DeviceProfile v100 = full_profile();
  const std::string shown = show_device_profile(v100);
  EXPECT_THAT(shown, testing::HasSubstr("/ops/layernorm/w_gbs"));
  EXPECT_THAT(shown, testing::HasSubstr("800 GB/s [790, 810]"));
  EXPECT_THAT(shown, testing::HasSubstr("datasheet"));
  EXPECT_THAT(shown, testing::HasSubstr("verdict: pass"));
  DeviceProfile faster = v100;
  faster.ops["layernorm"].w_gbs.value = 1600;
  faster.ops["layernorm"].w_gbs.ci95 = {1590, 1610};
  faster.cold_start.clear();
  const std::string compared = compare_device_profiles(v100, faster);
  EXPECT_THAT(compared, testing::HasSubstr("b/a 2, intervals do not overlap"));
  EXPECT_THAT(compared, testing::ContainsRegex("/cold_start/context_s .*only in a"));
}

TEST(DeviceProfile, ShowsTheSeedProgramAndGatesInColumns) {
  DeviceProfile profile = full_profile();
  profile.validation.gates.push_back({.name = "steps against roofline of measured peaks",
                                      .status = "pass",
                                      .value_ratio = 0.0009,
                                      .limit_ratio = 0.2});
  profile.validation.points = {{"held copy 1000", 1, 1, 1}, {"held gemm_naive16 1024x1024x1024", 1e4, 1.1e4, 5e3}};
  const std::string shown = show_device_profile(profile);
  EXPECT_THAT(shown,
              testing::HasSubstr("held gemm_naive16 1024x1024x1024 10000       11000       5000  214.75 GFLOP/s"));
  EXPECT_THAT(shown, testing::Not(testing::HasSubstr("held copy")));
  EXPECT_THAT(shown,
              testing::HasSubstr("pass    repeat                                   1.0 % of at most 3.0 %    n=9"));
  EXPECT_THAT(shown,
              testing::HasSubstr("pass    steps against roofline of measured peaks 0.09 % of at most 20.0 %  n=0"));
}

TEST(DeviceProfile, SpeedUpsAreOfPredictedTimes) {
  const DeviceProfile cpu = shipped_profile("CPU").value();
  DeviceProfile fast = cpu;
  fast.peaks["fp32_tflops"].value *= 10;
  // 2 x 4096^3 operations at 14.3 TFLOP/s and at ten times that, and 5 us for the launch.
  EXPECT_THAT(speed_up_table(cpu, fast),
              testing::HasSubstr("gemm_fp32 4096x4096x4096    9616.1      966.11      9.9534"));
  fast.peaks.erase("memory_gbs");
  EXPECT_THAT(speed_up_table(cpu, fast), testing::ContainsRegex("step bert .* unknown"));
}

}  // namespace
}  // namespace gpusched
