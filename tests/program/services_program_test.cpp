// SPDX-License-Identifier: Apache-2.0
// gpusched replay --services as its users meet it: without jobs, with jobs, and the figures of both apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/program/program.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

TEST_F(Program, ReplicasOfServicesAreNoJobsInFiguresOfWaits) {
  folder_.write("requests.csv", "arrival_s\n0\n1\n2\n3\n");
  const std::string services = folder_.write("services.json", R"({"services": [{"name": "s",
      "requests": {"log": "requests.csv"}, "serves": {"seconds": 1}, "replica": {"gpus": 1}, "least": 2, "most": 2}]})");
  const std::string options = " --cluster 2x2 --policy fifo --waits --services " + services;

  const json alone = metrics("replay" + options)[0];
  EXPECT_EQ(alone["services"]["s"]["completed"], 4);
  EXPECT_EQ(alone["metrics"]["jobs"], 0);
  EXPECT_TRUE(alone["waits"]["queues"].empty()) << alone["waits"];

  const json beside = metrics("replay " + small_trace() + options)[0];
  EXPECT_EQ(beside["services"]["s"]["completed"], 4);
  EXPECT_EQ(beside["metrics"]["jobs"], 3);
  std::size_t jobs = 0;
  for (const json& queue : beside["waits"]["queues"]) jobs += queue["jobs"].get<std::size_t>();
  EXPECT_EQ(jobs, 3u) << beside["waits"];
}

}  // namespace
}  // namespace gpusched::test
