// SPDX-License-Identifier: Apache-2.0
// gpusched compare as its users meet it: bases of every form, files, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/program/program.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

TEST_F(Program, ComparesABaseOfAnyFormWithItsVariations) {
  const std::string options = small_trace() + " --cluster 1x2 --policy fifo";
  const std::string varied = " --vary cluster+=1x2 --vary 'policy=sjf;cluster=1x4'";
  const Outcome plain = run("compare " + options + varied + " --out " + folder_.path() + "/what");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, HasSubstr("base: fifo on 1x2, 3 jobs of small.csv"));

  const std::string scenario = folder_.write("base.json", run("replay " + options + " --print-config").out);
  EXPECT_EQ(run("compare " + scenario + varied).out, plain.out) << "a scenario";
  ASSERT_EQ(run("replay " + options + " --out " + folder_.path() + "/now").code, 0);
  EXPECT_EQ(run("compare " + folder_.path() + "/now" + varied).out, plain.out) << "the folder of a run";
  EXPECT_EQ(run("compare " + folder_.path() + "/what").out, plain.out) << "a comparison again";

  const json result = json::parse(bytes_of(folder_.path() + "/what/compare.json"));
  EXPECT_EQ(result["worlds"].size(), 3u);
  EXPECT_EQ(result["worlds"][2]["cluster"], "1x4");
  EXPECT_EQ(bytes_of(folder_.path() + "/what/table.txt"), plain.out);
  EXPECT_THAT(bytes_of(folder_.path() + "/what/compare.csv"), HasSubstr("cluster+=1x2,avg_wait_s,log,"));
  const json manifest = json::parse(bytes_of(folder_.path() + "/what/manifest.json"));
  EXPECT_EQ(manifest["variations"], json({"cluster+=1x2", "policy=sjf;cluster=1x4"}));
  const json printed = json::parse(run("compare " + options + varied + " --json").out);
  EXPECT_EQ(printed["figures"], result["figures"]);
}

TEST_F(Program, RefusesVariationsThatAreNone) {
  const std::string base = "compare " + small_trace() + " --cluster 1x2 --policy fifo ";
  expect_refused(base, "--vary: expected at least one");
  expect_refused(base + "--vary polcy=sjf", "--vary: 'polcy=sjf': unknown key 'polcy' (did you mean 'policy'?)");
  expect_refused(base + "--vary policy=sfj", "did you mean 'sjf'?");
  expect_refused(base + "--vary cluster+=8", "expected NODESxGPUS[:TYPE] behind the plus");
  expect_refused(base + "--vary cluster=1x1", "asks for 2 GPUs");
  expect_refused(base + "--vary seed=1 --metrics avg_wait", "did you mean 'avg_wait_s'?");
  expect_refused(base + "--vary seed=1 --metrics energy_kwh", "is not known here; give power");
  expect_refused(base + "--vary seed=1 --mode windows", "--mode: windows:");
  expect_refused(base + "--vary seed=1 --split user", "unknown option '--split'");
  expect_refused("compare " + folder_.path() + "/none.json --vary seed=1", "none.json: no such file");
  const std::string never = base + "--vary policy=none";
  expect_refused(never, "unknown policy 'none'");
}

}  // namespace
}  // namespace gpusched::test
