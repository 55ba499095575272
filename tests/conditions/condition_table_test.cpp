// SPDX-License-Identifier: Apache-2.0
// Every condition is there for everybody who runs jobs, or a line says why it is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "src/conditions/condition_options.hpp"
#include "src/process/host_session.hpp"
#include "src/rl/train_config.hpp"
#include "src/search/search_file.hpp"
#include "src/sim/evaluate_scenario.hpp"
#include "src/sim/scenario.hpp"
#include "src/sweep/sweep_file.hpp"

namespace gpusched {
namespace {

std::set<std::string> paths_of(const FieldTable& fields) {
  std::set<std::string> paths;
  for (const Field& field : fields) EXPECT_TRUE(paths.insert(field.path).second) << field.path;
  return paths;
}

// What a search takes in its base: it has no table of its own, its runs are those of a sweep.
std::set<std::string> paths_of_search() {
  std::set<std::string> paths;
  ConditionOptions defaults;
  for (const Field& field : condition_table(defaults)) {
    const Json document = {
        {"base", {{"trace", "synthetic:philly"}, {field.path, field_json(field)}}},
        {"policies", Json::parse(R"([{"policy": "las", "parameters": {"quantum_gpu_s": {"from": 1, "to": 9}}}])")},
        {"objectives", {"avg_jct_s", "p99_wait_s"}},
        {"compare", {"fifo"}}};
    const auto search = read_search_json(document.dump(), "s.json", PolicyRegistry::standard());
    if (!search) continue;
    const auto runs = read_sweep_json(Json{{"base", search->base}, {"list", {{{"policy", "fifo"}}}}}.dump(), "s.json");
    if (runs) paths.insert(field.path);
  }
  return paths;
}

// The options of each taker, as it offers them. Python's tests do the same of VectorEnv.
std::map<std::string, std::set<std::string>> offered() {
  Scenario scenario;
  EvaluateScenario evaluation;
  SweepPoint point;
  TrainConfig training;
  ServeOptions serve;
  return {{"replay", paths_of(scenario_fields(scenario))}, {"evaluate", paths_of(evaluate_fields(evaluation))},
          {"sweep", paths_of(sweep_fields(point))},        {"search", paths_of_search()},
          {"train", paths_of(train_fields(training))},     {"serve", paths_of(serve_fields(serve))}};
}

TEST(ConditionTable, EveryCommandTakesEveryConditionOrSaysWhyNot) {
  const auto all = offered();
  ConditionOptions options;
  for (const Field& condition : condition_table(options)) {
    EXPECT_FALSE(condition.flag.empty()) << condition.path;
    EXPECT_FALSE(condition.meaning.empty()) << condition.path;
    for (const Lack& lack : condition.lacks) {
      EXPECT_NE(std::find(condition_takers.begin(), condition_takers.end(), lack.who), condition_takers.end())
          << lack.who;
      EXPECT_GT(lack.why.size(), 10u) << condition.path << ", " << lack.who;
    }
    for (const auto& [taker, paths] : all) {
      const auto is_of = [who = taker](const Lack& lack) { return lack.who == who; };
      const bool lacks = std::any_of(condition.lacks.begin(), condition.lacks.end(), is_of);
      EXPECT_NE(paths.contains(condition.path), lacks) << taker << " and " << condition.path;
    }
  }
}

// Under the same key, flag, meaning and bounds.
TEST(ConditionTable, ACommandTakesTheRowAsItIs) {
  Scenario scenario;
  EvaluateScenario evaluation;
  SweepPoint point;
  TrainConfig training;
  ServeOptions serve;
  ConditionOptions options;
  const FieldTable tables[] = {scenario_fields(scenario), evaluate_fields(evaluation), sweep_fields(point),
                               train_fields(training), serve_fields(serve)};
  for (const Field& condition : condition_table(options)) {
    for (const FieldTable& table : tables) {
      const Field* const taken = find_field(table, condition.path);
      if (taken == nullptr) continue;
      EXPECT_EQ(taken->flag, condition.flag);
      EXPECT_EQ(field_schema(*taken).dump(), field_schema(condition).dump());
    }
  }
}

TEST(ConditionTable, NoTakerIsForgotten) {
  std::set<std::string> takers{"VectorEnv", "ServiceVectorEnv"};
  for (const auto& [taker, paths] : offered()) takers.insert(taker);
  EXPECT_EQ(takers, std::set<std::string>(condition_takers.begin(), condition_takers.end()));
}

// What a configuration of an earlier version had is told under its present name, which exists.
TEST(ConditionTable, MovedKeysLeadToRows) {
  ConditionOptions options;
  const FieldTable table = condition_table(options);
  for (const MovedKey& moved : moved_training_conditions()) {
    EXPECT_NE(find_field(table, moved.now), nullptr) << moved.now;
    EXPECT_EQ(find_field(table, moved.path), nullptr) << moved.path;
  }
}

}  // namespace
}  // namespace gpusched
