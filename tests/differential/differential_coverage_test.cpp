// SPDX-License-Identifier: Apache-2.0
// Every policy of the registry is compared with a reference. Learned policies (rl:FOLDER) are no rows of it:
// differential_ranking_test.cpp compares those that preempt with one, and learning_tests compare the others with their
// environment and, untrained, with their heuristic.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "src/policies/seam/registry.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// What no differential test sets, and what checks it instead.
const std::map<std::string, std::string> other_tests_of{
    {"noise_sigma", "duration_estimator_test.cpp: its errors are draws"},
    {"forecast_sigma", "carbon_starts_test.cpp: its errors are draws"},
    {"seed", "evaluation_test.cpp: it chooses draws"},
    {"quantile", "duration_estimator_test.cpp: a regression"},
    {"requeues", "queue_place_test.cpp: the reference loses no nodes"},
    {"percentage_of_nodes_to_score", "k8s_test.cpp: the reference looks at every node"},
    {"skewed_families", "attained_service_test.cpp: it chooses nodes, and the reference simulator counts GPUs"},
};

// Policies that are compared elsewhere.
const std::map<std::string, std::string> other_tests_of_policies{
    {"loaning", "preemptive/loaning_test.cpp: an exhaustive search, and what holds at every instant of random worlds"},
    {"kueue", "fair/kueue_test.cpp: a plain reading of its rules, in random worlds"},
    {"kai", "fair/kai_test.cpp: examples worked out by hand, and what holds of every division"},
};

std::string differential_tests() {
  std::ostringstream text;
  text << std::ifstream(test::source_dir() + "/tests/differential/differential_support.hpp").rdbuf();
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + "/tests/differential")) {
    const std::string name = entry.path().filename().string();
    if (name == "differential_coverage_test.cpp") continue;
    if (name.starts_with("differential_") && name.ends_with("_test.cpp")) {
      text << std::ifstream(entry.path()).rdbuf();
    }
  }
  return text.str();
}

// A policy is covered where a differential test makes it: its name opens a string, alone or with parameters.
bool names(const std::string& text, const std::string& policy) {
  return text.find('"' + policy + '"') != std::string::npos || text.find('"' + policy + '{') != std::string::npos;
}

TEST(Differential, CoversEveryPolicyOfTheRegistry) {
  const std::string text = differential_tests();
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicyInfo& info : registry.rows()) {
    if (info.name.starts_with("rl:")) continue;  // no rule is written down for weights
    if (info.holds_policies) continue;           // tests/policies/meta: they give the run to others
    if (other_tests_of_policies.contains(info.name)) continue;
    EXPECT_TRUE(names(text, info.name)) << info.name << " is in no differential test";
  }
}

// A parameter is covered where a test writes it into a policy's text: as "name=", or by its name alone.
TEST(Differential, CoversEveryParameter) {
  const std::string text = differential_tests();
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicyInfo& info : registry.rows()) {
    if (info.name.starts_with("rl:") || info.holds_policies || other_tests_of_policies.contains(info.name)) continue;
    for (const ParameterInfo& parameter : info.parameters) {
      const bool set = text.find(parameter.name + "=") != std::string::npos ||
                       text.find('"' + parameter.name + '"') != std::string::npos;
      EXPECT_NE(set, other_tests_of.contains(parameter.name)) << info.name << ": " << parameter.name;
    }
  }
}

}  // namespace
}  // namespace gpusched
