// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/calibrated_runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/calibration/profile/job_family.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

NameTable named(const std::vector<std::string>& names) {
  NameTable table;
  for (const std::string& name : names) table.intern(name);
  return table;
}

DeviceProfile shipped(const char* name) { return shipped_profile(name).value(); }

TEST(JobFamily, NamesOfTracesAreRecognised) {
  EXPECT_EQ(declared_work("ResNet-50 (batch size 16)").family->name, "resnet50");
  EXPECT_EQ(declared_work("ResNet-50 (batch size 16)").batch, 16);
  EXPECT_EQ(declared_work("ResNet-18 (batch size 128)").family->name, "resnet18");
  EXPECT_EQ(declared_work("bert:8").batch, 8);
  EXPECT_EQ(declared_work("Recommendation (batch size 512)").family->name, "recommendation");
  EXPECT_FALSE(declared_work("").recognised);
  EXPECT_EQ(declared_work("").family->name, "mixed");
}

TEST(JobFamily, AJobMayDeclareItsKernels) {
  const DeclaredWork work = declared_work("gemm_fp32 512x256x1024*3 + copy 1000000");
  EXPECT_TRUE(work.recognised);
  EXPECT_EQ(work.host_us(), 0);
  const KernelCall product{Kernel::gemm_fp32, 512, 256, 1024};
  EXPECT_THAT(training_step(work),
              testing::ElementsAre(product, product, product, KernelCall{Kernel::copy, 1'000'000}));
  for (const char* name : {"copy 5 +", "copy 5 * 0", "copy 5 * 10001", "copy 5 * 9999 + copy 5 * 2", "copy 5 * x",
                           "copy", "+", "copy 5 * 2 * 2"}) {
    EXPECT_FALSE(declared_work(name).recognised) << name;
  }
  // Its time is that of its kernels alone, and nothing of it is an assumption about a family.
  const DeviceProfile v100 = shipped_profile("V100").value();
  const auto step = predict_step(v100, "gemm_fp32 512x256x1024*3 + copy 1000000");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->time_us, predict(v100, training_step(work))->time_us);
  EXPECT_THAT(step->used, testing::Each(testing::Field(&UsedValue::profile_id, v100.profile_id)));
}

TEST(JobFamily, OperationsOfAStepAreThoseOfThePublishedNetworks) {
  const auto operations = [](const char* name) {
    double flops = 0;
    const DeclaredWork work = declared_work(name);
    for (const KernelCall& call : training_step(work)) flops += flops_of(call);
    return flops / static_cast<double>(work.batch);
  };
  // Forward multiply-adds, times two operations, times three for training: 4.1 and 15.5 billion for ResNet-50 and
  // VGG-16, 85 million parameters a token for BERT base; the mixes leave small layers out.
  EXPECT_NEAR(operations("resnet50") / (6 * 4.1e9), 1, 0.2);
  EXPECT_NEAR(operations("vgg16") / (6 * 15.5e9), 1, 0.05);
  EXPECT_NEAR(operations("bert") / (6 * 85e6 * 128), 1, 0.05);
}

TEST(CalibratedRuntime, TheReferenceRunsAtOneAndFasterDevicesFaster) {
  const NameTable families = named({"resnet50", "Recommendation", "mystery"});
  const std::vector<std::string> types = {"V100", "A100", "K80"};
  const auto runtime = runtime_model_from_profiles(families, types, {}, shipped("V100"));
  ASSERT_TRUE(runtime) << runtime.error().to_string();
  for (std::uint32_t family = 0; family < 3; ++family) {
    EXPECT_EQ(runtime->model.rate(family, 0), reference_rate);
    EXPECT_GT(runtime->model.rate(family, 1), reference_rate);
    EXPECT_LT(runtime->model.rate(family, 2), reference_rate);
  }
  // One number for a GPU type would be wrong: the host-bound family gains less from the faster device.
  EXPECT_LT(runtime->model.rate(1, 1), runtime->model.rate(0, 1));
  EXPECT_THAT(runtime->used, testing::Contains(testing::Field(&UsedValue::source, Source::datasheet)));
  EXPECT_THAT(runtime->notes, testing::Contains(HasSubstr("assumed value")));
  EXPECT_THAT(runtime->notes, testing::Contains(HasSubstr("1 job family is unknown and runs as 'mixed': 'mystery'")));
}

// A name table always holds the empty name; it was counted as a family that nobody knows.
TEST(CalibratedRuntime, TheEmptyFamilyNameIsNotAnUnknownFamily) {
  const std::vector<std::string> types = {"V100"};
  const auto runtime = runtime_model_from_profiles(named({"", "bert"}), types, {}, shipped("V100"));
  ASSERT_TRUE(runtime);
  EXPECT_THAT(runtime->notes, testing::Not(testing::Contains(HasSubstr("no known kind"))));
}

TEST(CalibratedRuntime, SlowdownDividesEveryRate) {
  const NameTable families = named({"bert"});
  const std::vector<std::string> types = {"A100"};
  const auto plain = runtime_model_from_profiles(families, types, {}, shipped("V100"));
  const auto slowed = runtime_model_from_profiles(families, types, {}, shipped("V100"), {.slowdown = 1.25});
  ASSERT_TRUE(plain && slowed);
  EXPECT_NEAR(static_cast<double>(plain->model.rate(0, 0)) / slowed->model.rate(0, 0), 1.25, 1e-5);
}

TEST(CalibratedRuntime, ProfilesAreMatchedToTypes) {
  const NameTable families = named({"bert"});
  const auto rate = [&](const std::string& type, const std::vector<TypeProfile>& profiles) {
    const std::vector<std::string> types = {type};
    return runtime_model_from_profiles(families, types, profiles, shipped("P100"))->model.rate(0, 0);
  };
  const RatePpm of_v100 = rate("V100", {});
  EXPECT_EQ(rate("V100M32", {}), of_v100);
  EXPECT_EQ(rate("GPU", {{.gpu_type = "", .profile = shipped("V100")}}), of_v100);
  EXPECT_EQ(
      rate("fast", {{.gpu_type = "fast", .profile = shipped("V100")}, {.gpu_type = "", .profile = shipped("K80")}}),
      of_v100);
  const std::vector<std::string> unknown = {"TPU"};
  const auto empty = runtime_model_from_profiles(families, unknown, {}, shipped("P100"), {.empty_types = {0}});
  ASSERT_TRUE(empty) << empty.error().to_string();  // a type of 0 GPUs needs none
  EXPECT_EQ(empty->model.rate(0, 0), reference_rate);
  const auto missing = runtime_model_from_profiles(families, unknown, {}, shipped("P100"));
  EXPECT_THAT(missing.error().to_string(), HasSubstr("no device profile for GPU type 'TPU'"));
  EXPECT_EQ(parse_type_profile("x=A100")->gpu_type, "x");
  EXPECT_FALSE(parse_type_profile("x=nothing.json"));
}

TEST(CalibratedRuntime, AMissingValueNamesItsPath) {
  DeviceProfile profile = shipped("V100");
  profile.peaks.erase("memory_gbs");
  const auto step = predict_step(profile, "bert");
  ASSERT_FALSE(step);
  EXPECT_THAT(step.error().to_string(),
              HasSubstr("/peaks/memory_gbs: device profile 'datasheet-v100' lacks this value"));
}

TEST(CalibratedRuntime, InterferenceIsThatOfPairsAndItsSourceIsNamed) {
  const NameTable families = named({"resnet50", "bert"});
  const std::vector<std::string> types = {"V100"};
  const auto none = runtime_model_from_profiles(families, types, {}, shipped("V100"));
  EXPECT_FALSE(none->model.has_interference());
  const auto formula = runtime_model_from_profiles(families, types, {}, shipped("V100"), {.interference = true});
  ASSERT_TRUE(formula);
  const double expected = co_location_slowdown(shipped("V100"), "resnet50", "bert")->factor;
  EXPECT_NEAR(1 + 1e-6 * formula->model.extra(0, 1, 0), expected, 1e-6);
  EXPECT_THAT(formula->used, testing::Contains(testing::AllOf(testing::Field(&UsedValue::path, "/interference"),
                                                              testing::Field(&UsedValue::source, Source::assumed))));
  DeviceProfile measured = shipped("V100");
  measured.interference = Interference{.mode = "streams",
                                       .kernels = {"gemm", "dram", "gather", "small"},
                                       .slowdown = std::vector(4, std::vector<double>(4, 1.5))};
  measured.process_interference = measured.interference;  // jobs are processes: what these do counts
  measured.process_interference->mode = "processes";
  for (auto& row : measured.process_interference->slowdown) row.assign(4, 1.25);
  const auto given = runtime_model_from_profiles(families, types, std::vector<TypeProfile>{{"V100", measured}},
                                                 measured, {.interference = true});
  ASSERT_TRUE(given);
  EXPECT_NEAR(given->model.extra(1, 0, 0), 250'000, 1);
  EXPECT_THAT(given->used, testing::Contains(testing::AllOf(testing::Field(&UsedValue::path, "/process_interference"),
                                                            testing::Field(&UsedValue::source, Source::measured))));
}

TEST(CalibratedRuntime, PowerIsTheMeanOfAStepsKernelsOrNothing) {
  const NameTable families = named({"resnet50"});
  const std::vector<std::string> types = {"V100"};
  DeviceProfile profile = shipped("V100");
  profile.power->active_w["gemm"].value = 300;
  profile.power->active_w["dram"] = quantity("active_w", 200, Source::measured);
  profile.power->active_w["small"] = quantity("active_w", 100, Source::measured);
  const auto given = runtime_model_from_profiles(families, types, std::vector<TypeProfile>{{"V100", profile}}, profile);
  ASSERT_TRUE(given && !given->power.gpus.empty());
  EXPECT_EQ(given->power.gpus[0].load.idle_w, 53.5);
  const FamilyPower& entry = given->power.families[0];
  EXPECT_GT(entry.full_w, 200);
  EXPECT_LT(entry.full_w, 300);
  EXPECT_GT(entry.busy_share, 0.1);
  EXPECT_LT(entry.busy_share, 1);
  EXPECT_THAT(given->power_used, testing::Contains(testing::Field(&UsedValue::path, "/power/active_w/dram")));
  const std::vector<std::string> two = {"V100", "T4"};
  DeviceProfile without = shipped("T4");
  without.power.reset();
  const auto lacking =
      runtime_model_from_profiles(families, two, std::vector<TypeProfile>{{"V100", profile}, {"T4", without}}, profile);
  ASSERT_TRUE(lacking);
  EXPECT_TRUE(lacking->power.gpus.empty());
}

TEST(CoLocation, MatrixWhereMeasuredAndFormulaElsewhere) {
  DeviceProfile profile = shipped("V100");
  const auto formula = co_location_slowdown(profile, "resnet50", "resnet50");
  ASSERT_TRUE(formula);
  EXPECT_GT(formula->factor, 1.2);
  EXPECT_EQ(formula->used.front().source, Source::assumed);
  profile.interference = Interference{.mode = "streams",
                                      .kernels = {"gemm", "dram", "gather", "small"},
                                      .slowdown = std::vector(4, std::vector<double>(4, 1.5))};
  const auto measured = co_location_slowdown(profile, "bert", "gnn");
  ASSERT_TRUE(measured);
  EXPECT_NEAR(measured->factor, 1.5, 1e-9);
  EXPECT_THAT(measured->used, testing::Each(testing::Field(&UsedValue::source, Source::measured)));
  // What the matrix does not have is an assumption, and said to be one.
  profile.interference->kernels = {"gemm", "dram", "l2", "small"};
  const auto partly = co_location_slowdown(profile, "bert", "gnn");
  ASSERT_TRUE(partly);
  EXPECT_GT(partly->factor, 1.5);
  EXPECT_THAT(partly->used, testing::Contains(testing::AllOf(testing::Field(&UsedValue::path, "/interference/gather"),
                                                             testing::Field(&UsedValue::source, Source::assumed))));
}

}  // namespace
}  // namespace gpusched
