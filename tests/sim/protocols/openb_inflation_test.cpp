// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/openb_inflation.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace gpusched {
namespace {

// Ten pods of a card each, for two GPU types and for any; each type with a CPU demand of its own, so that kinds differ.
JobTable pods_of_three_demands() {
  JobTableBuilder builder;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t kind = i % 3;
    builder.add({.shape = {.gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = kind * 1000},
                 .gpu_spec = kind == 0   ? ""
                             : kind == 1 ? "P100"
                                         : "T4|V100"});
  }
  return *std::move(builder).build();
}

// The GPU demand, by name, that goes with each CPU demand.
std::set<std::pair<std::int64_t, std::string>> demands(const std::vector<TypicalPod>& kinds, const JobTable& jobs) {
  std::set<std::pair<std::int64_t, std::string>> found;
  for (const TypicalPod& kind : kinds) {
    found.insert({kind.cpu_milli, kind.gpu_spec < jobs.gpu_specs().size() ? jobs.gpu_specs()[kind.gpu_spec] : "?"});
  }
  return found;
}

// Typical pods are counted over the list and used on its inflated table: a number must mean the same GPUs in both.
TEST(OpenbInflation, KeepsTheGpuDemandsThatTypicalPodsName) {
  const JobTable pods = pods_of_three_demands();
  const auto typical = typical_pods(pods, 1);
  const std::set<std::pair<std::int64_t, std::string>> expected = {{0, ""}, {1000, "P100"}, {2000, "T4|V100"}};
  ASSERT_EQ(demands(typical, pods), expected);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const JobTable inflated = inflate_pods(pods, 30 * whole_gpu, 100, Rng(seed));
    EXPECT_EQ(demands(typical, inflated), expected) << "seed " << seed;
    for (std::uint32_t i = 0; i < inflated.size(); ++i) {
      const Shape& shape = inflated.shape(JobId{i});
      const std::string& named = inflated.gpu_specs()[shape.gpu_spec];
      EXPECT_TRUE(expected.contains({shape.cpu_milli_per_task, named})) << shape.cpu_milli_per_task << " " << named;
    }
  }
}

// Two orders of the same list are the same list to FGD.
TEST(OpenbInflation, TypicalPodsDoNotDependOnTheOrderOfGpuDemands) {
  JobTableBuilder builder;
  for (const char* spec : {"T4|V100", "P100", ""}) {
    builder.add({.shape = {.gpu_milli_per_task = whole_gpu}, .gpu_spec = spec});
  }
  const JobTable pods = *std::move(builder).build();
  std::vector<std::string> names;
  for (const TypicalPod& kind : typical_pods(pods, 1)) names.push_back(pods.gpu_specs()[kind.gpu_spec]);
  EXPECT_EQ(names, (std::vector<std::string>{"T4|V100", "P100", ""})) << "of equal counts the larger name first";
}

}  // namespace
}  // namespace gpusched
