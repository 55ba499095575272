// SPDX-License-Identifier: Apache-2.0
// The schemas of docs/ that no other test compares, and the configurations that they must let through.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "src/process/host_session.hpp"
#include "src/rl/train_config.hpp"
#include "tests/support/files.hpp"
#include "tests/support/json_schema.hpp"

namespace gpusched {
namespace {

TEST(ShippedSchemas, AreThoseOfTheProgram) {
  EXPECT_EQ(test::bytes_of(test::source_dir() + "/docs/train.schema.json"), train_schema())
      << "write it anew: gpusched train --print-schema > docs/train.schema.json";
  EXPECT_EQ(test::bytes_of(test::source_dir() + "/docs/serve.schema.json"), serve_schema())
      << "write it anew: gpusched serve --print-schema > docs/serve.schema.json";
}

TEST(ShippedSchemas, TrainingsOfExperimentsSatisfyTheirs) {
  std::size_t files = 0;
  for (const char* folder : {"/experiments/rl", "/experiments/placing"}) {
    for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + folder)) {
      const std::string path = entry.path().string();
      const std::string text = path.ends_with(".json") ? test::bytes_of(path) : std::string();
      if (text.find("\"windows\"") == std::string::npos) continue;  // a cluster, a report's rows
      ++files;
      EXPECT_EQ(test::schema_violation(text, "docs/train.schema.json"), "") << path;
      TrainConfig config;
      const auto read = read_train_fields(config, text, path);
      EXPECT_TRUE(read) << (read ? "" : read.error().to_string());
    }
  }
  EXPECT_GT(files, 10u);
}

TEST(ShippedSchemas, TellWhatTheProgramRefuses) {
  for (const char* const wrong : {R"({"sed": 1})", R"({"seed": -1})", R"({"preemption": {"restart_s": "x"}})",
                                  R"({"windows": {"jobs": 0}})", R"({"env": {"restart_cost_s": 1}})"}) {
    EXPECT_NE(test::schema_violation(wrong, "docs/train.schema.json"), "") << wrong;
    TrainConfig config;
    EXPECT_FALSE(read_train_fields(config, wrong, "x.json")) << wrong;
  }
  EXPECT_NE(test::schema_violation(R"({"failures": {"file": "x"}})", "docs/serve.schema.json"), "");
}

}  // namespace
}  // namespace gpusched
