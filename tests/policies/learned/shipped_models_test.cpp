// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/shipped_models.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "src/base/strict_json.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

std::string folder_of(const ShippedModel& shipped) {
  return test::source_dir() + "/models/" + std::string(shipped.name);
}

PolicySpec spec_of(const std::string& name) { return {.text = name, .name = name, .given = {}}; }

TEST(ShippedModels, AreTheFoldersOfModels) {
  std::set<std::string> folders, shipped;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + "/models")) {
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  }
  for (const ShippedModel& model : shipped_models()) shipped.emplace(model.name);
  EXPECT_FALSE(folders.empty());
  EXPECT_EQ(shipped, folders);
}

TEST(ShippedModels, HoldTheBytesOfTheirFolders) {
  for (const ShippedModel& model : shipped_models()) {
    EXPECT_EQ(model.model_json, *read_text_file(folder_of(model) + "/model.json"));
    EXPECT_EQ(model.weights, *read_text_file(folder_of(model) + "/weights.bin"));
    EXPECT_EQ(model.card, *read_text_file(folder_of(model) + "/card.txt"));
    EXPECT_TRUE(parse_model(model.model_json, model.weights, "builtin"));
  }
}

TEST(ShippedModels, EachIsAPolicyThatReadsNoFile) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const ShippedModel& model : shipped_models()) {
    const std::string name = "rl:builtin/" + std::string(model.name);
    const auto row = registry.find(name);
    ASSERT_TRUE(row);
    EXPECT_EQ((*row)->name, name);
    EXPECT_FALSE((*row)->files);
    EXPECT_TRUE(model.card.starts_with((*row)->summary + "\n"));
  }
}

// Also where a training run starts from one: the name is never a folder of the user's.
TEST(ShippedModels, AreReadByNameFromAnyFolder) {
  for (const ShippedModel& model : shipped_models()) {
    const auto by_name = load_model("builtin/" + std::string(model.name));
    const auto by_folder = load_model(folder_of(model));
    ASSERT_TRUE(by_name && by_folder);
    EXPECT_EQ(by_name->parameters, by_folder->parameters);
  }
}

TEST(ShippedModels, PhillySaysWhatItKnowsDrawsNothingAndIsNotBackfilled) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const PolicyInfo& row = **registry.find("rl:builtin/philly");
  EXPECT_EQ(row.knowledge(PolicyParameters({}), row.name), "history");
  EXPECT_TRUE(row.parameters.empty());
  const auto specs = parse_policy_list("rl:builtin/philly+easy");
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->front().name, "rl:builtin/philly");
  EXPECT_EQ(specs->front().backfill.front().name, "easy");
}

TEST(ShippedModels, AnUnknownNameIsRefusedWithTheNearest) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const JobTable jobs = *JobTableBuilder().build();
  const Cluster cluster = Cluster::homogeneous(1, 8);
  const auto made = registry.make(spec_of("rl:builtin/phily"), {.jobs = &jobs, .cluster = &cluster});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().to_string().find("no model 'phily' comes with the program"), std::string::npos);
  EXPECT_NE(made.error().to_string().find("did you mean 'philly'"), std::string::npos) << made.error().to_string();
}

}  // namespace
}  // namespace gpusched
