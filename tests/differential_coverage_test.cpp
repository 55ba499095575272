// SPDX-License-Identifier: Apache-2.0
// Every policy of the registry is compared with a reference, or there is a reason why it is not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "src/policies/registry.hpp"

namespace gpusched {
namespace {

// With the reason. Learned policies (rl:FOLDER) are no rows of the registry; learning_tests compare them with their
// environment and, untrained, with their heuristic.
const std::map<std::string, std::string> exceptions{
    {"fifo@helios", "helios_test.cpp: hand-computed runs of its one-second ticks"},
    {"sjf@helios", "as fifo@helios"},
    {"qssf@helios", "as fifo@helios"},
    {"srtf@helios", "helios_test.cpp: compared there with a second-by-second loop of its own"},
    {"random-node", "draws its nodes at random; the conformance test and the FGD table check it"},
};

std::string differential_tests() {
  std::ostringstream text;
  for (const auto& entry : std::filesystem::directory_iterator(GPUSCHED_SOURCE_DIR "/tests")) {
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
  for (const char* end : {"\"", "{"}) {
    if (text.find('"' + policy + end) != std::string::npos) return true;
  }
  return false;
}

TEST(Differential, CoversEveryPolicyOfTheRegistry) {
  const std::string text = differential_tests();
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicyInfo& info : registry.rows()) {
    const bool excepted = exceptions.count(info.name) > 0;
    EXPECT_NE(names(text, info.name), excepted)
        << info.name << (excepted ? " is compared; drop the exception" : " is in no differential test");
  }
}

}  // namespace
}  // namespace gpusched
