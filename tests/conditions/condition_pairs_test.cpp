// SPDX-License-Identifier: Apache-2.0
// Which conditions go together: every pair of values is tried, and is refused if and only if docs/configuration.md says
// so.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/conditions/condition_options.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/world/run_input.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// A value of a condition, or a kind of cluster.
struct Choice {
  std::string path, value;                          // in the table of conditions; "cluster": a file
  std::vector<std::set<std::string>> needs = {{}};  // names of choices without which it is refused: one of these sets
  std::optional<std::string> needs_in_docs = {};    // what the table says of that
};

class ConditionPairs : public testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.write("jobs.csv",
                           "job_id,submit_s,work_s,tasks,gpu_milli_per_task,family\n"
                           "a,0,10,2,1000,bert\nb,1,10,1,1000,other\nc,2,10,1,250,other\n");
    const std::string types = R"("gpu_types": {"A100-40GB": {"memory_gib": 40}}, "nodes": [{"count": 2, "gpus": 2, )"
                              R"("gpu_type": "A100-40GB")";
    const std::string links = R"("links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 100},
                                           "nodes": {"latency_us": 9, "bandwidth_gb_per_s": 10}})";
    plain_ = folder_.write("plain.json", "{" + types + "}], " + links + "}");
    const auto file = [&](const char* name, const std::string& text) { return folder_.write(name, text); };
    const std::string mig = file("mig.json", "{" + types + R"(, "mig": "dynamic"}], )" + links + "}");
    const std::string turns = file("turns.json", "{" + types + R"(, "sharing": "time-slicing"}], )" + links + "}");
    choices_ = {
        {"a cluster that is a pool", {"cluster", "8"}},
        {"mig", {"cluster", mig}},
        {"sharing", {"cluster", turns}},
        {"--placement count", {"placement", "count"}},
        {"--placement skew", {"placement", "skew", {{"--communication"}}, "--communication"}},
        {"--checkpoint-cost", {"preemption.checkpoint_s", "1"}},
        {"--restart-cost", {"preemption.restart_s", "1"}},
        {"--checkpoint-interval", {"preemption.checkpoint_interval_s", "60"}},
        {"--checkpoint-write",
         {"preemption.checkpoint_write_s",
          "1",
          {{"--checkpoint-interval"}, {"--checkpoint-rule", "--failures"}},
          "--checkpoint-interval"}},
        {"--checkpoint-rule",
         {"failures.checkpoint_rule",
          "young",
          {{"--failures", "--checkpoint-write"}, {"--failures", "checkpoint_gib_per_gpu"}},
          "--failures"}},
        {"--failures", {"failures.file", file("failures.json", R"({"node": {"mtbf_h": 1000, "repair_h": 1}})")}},
        {"--stages", {"stages", file("stages.json", R"({"provision_s": 5})")}},
        {"checkpoint_gib_per_gpu",
         {"stages",
          file("moved.json", R"({"transfer_gib_per_s": 1, "checkpoint_gib_per_gpu": 1})"),
          {{"--checkpoint-interval"}, {"--checkpoint-rule", "--failures"}},
          "--checkpoint-interval"}},
        {"--power", {"power", file("power.json", R"({"gpus": {"any": {"idle_w": 50, "full_w": 250}}})")}},
        {"--services", {"services", file("services.json", R"({"services": [{"name": "s", "family": "other",
            "requests": {"rate_per_s": 1, "duration_s": 60}, "serves": {"seconds": 1}, "replica": {"gpus": 1}}]})")}},
        {"--trials", {"trials", file("trials.json", R"({"studies": [{"name": "t", "family": "other", "search": "random",
            "trials": 2, "workers": 1, "most_units": 3, "unit_s": 5, "loss": {"law": "lasting"}}]})")}},
        {"--elastic", {"elastic", file("elastic.json", R"({"families": {"bert": {"speedup": [[1, 1], [4, 3]]}}})")}},
        {"phases", {"elastic", file("phases.json", R"({"families": {"bert": {"phases": [
            {"until": 0.5, "speedup": [[1, 1], [4, 2]]}, {"until": 1, "speedup": [[1, 1], [4, 3]]}]}}})")}},
        {"--changes", {"changes", file("changes.csv", "time_s,job,change,value\n5,a,cancel,\n6,b,gpus,2\n")}},
        {"gpus of an elastic job", {"changes", file("sizes.csv", "time_s,job,change,value\n5,a,gpus,4\n")}},
        {"--profile", {"fidelity.profiles", "A100-40GB=A100,GPU=A100"}},
        {"--reference-profile", {"fidelity.reference", "V100", {{"--profile"}}, "--profile"}},
        {"--slowdown", {"fidelity.slowdown", "1.5", {{"--profile"}}, "--profile"}},
        {"--throughputs", {"fidelity.throughputs", file("throughputs.csv", throughputs)}},
        {"--reference-type", {"fidelity.reference_type", "V100", {{"--throughputs"}}, "--throughputs"}},
        {"--throughput-fallback", {"fidelity.throughput_fallback", "datasheet", {{"--throughputs"}}, "--throughputs"}},
        {"--span-speed", {"fidelity.span_speed", "nodes=0.5"}},
        {"--span-speed throughputs", {"fidelity.span_speed", "throughputs", {{"--throughputs"}}, "--throughputs"}},
        {"--communication", {"fidelity.communication", file("communication.json", R"({"families": [
            {"family": "*", "compute_ms": 100, "gradient_mb": 100}]})")}},
        {"--reference-span",
         {"fidelity.reference_span", "narrowest", {{"--span-speed"}, {"--communication"}}, "--span-speed"}},
        {"--interference throughputs", {"fidelity.interference", "throughputs", {{"--throughputs"}}, "--throughputs"}},
        {"--interference none", {"fidelity.interference", "none"}}};
  }

  static constexpr const char* throughputs =
      "family,gpu_type,throughput,gpus,span,beside\n"
      "bert,V100,1,2,,\nbert,A100-40GB,2,2,,\nother,V100,1,1,,\nother,A100-40GB,2,1,,\n"
      "bert,GPU,1,2,,\nother,GPU,1,1,,\n"  // of a pool
      "bert,V100,2,4,,\nbert,A100-40GB,4,4,,\nbert,GPU,2,4,,\n"
      "other,V100,2,2,,\nother,A100-40GB,4,2,,\nother,GPU,2,2,,\n"  // the size that a user gives
      "bert,A100-40GB,1,2,nodes,\nother,A100-40GB,1,1,,other\nother,V100,0.5,1,,other\n"
      "other,A100-40GB_1g.5gb,1,1,,\nother,A100-40GB_2g.10gb,1,1,,\nother,A100-40GB_1g.10gb,1,1,,\n"
      "other,A100-40GB_3g.20gb,1,1,,\nother,A100-40GB_4g.20gb,1,1,,\nother,A100-40GB_7g.40gb,1,1,,\n";

  // Nothing, or why it is refused.
  std::optional<std::string> refusal(const std::set<std::string>& names, bool backwards) {
    ConditionOptions options;
    const FieldTable fields = condition_table(options);
    InputRequest request{.trace = trace_, .cluster = plain_};
    std::vector<std::string> order(names.begin(), names.end());
    if (backwards) std::reverse(order.begin(), order.end());
    for (const std::string& name : order) {
      const Choice& choice = choices_.at(name);
      if (choice.path == "cluster") {
        request.cluster = choice.value;
        continue;
      }
      const auto set = set_field(*find_field(fields, choice.path), choice.value);
      if (!set) return name + " cannot be read: " + set.error().to_string();
    }
    request.placement = options.placement;
    auto input = load_input(request);
    if (!input) return input.error().to_string();
    const auto conditions = load_conditions(options, input->trace.jobs, input->cluster, 1);
    return conditions ? std::nullopt : std::optional(conditions.error().to_string());
  }

  // What the two have together with what they need, in every way that it can be had; none where one condition would
  // have two values.
  std::vector<std::set<std::string>> sets_of(const std::string& a, const std::string& b) {
    std::vector<std::set<std::string>> sets{{a, b}};
    std::vector<std::set<std::string>> whole;
    while (!sets.empty()) {
      const std::set<std::string> names = sets.back();
      sets.pop_back();
      std::set<std::string> paths;
      const bool fits = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return paths.insert(choices_.at(name).path).second;
      });
      if (!fits) continue;
      const auto lacks = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        const auto& needs = choices_.at(name).needs;
        return std::none_of(needs.begin(), needs.end(), [&](const auto& need) {
          return std::includes(names.begin(), names.end(), need.begin(), need.end());
        });
      });
      if (lacks == names.end()) {
        whole.push_back(names);
        continue;
      }
      for (const auto& need : choices_.at(*lacks).needs) {
        sets.push_back(names);
        sets.back().insert(need.begin(), need.end());
      }
    }
    return whole;
  }

  test::TempFolder folder_;
  std::string trace_, plain_;
  std::map<std::string, Choice> choices_;
};

// What does not go together, of these choices. Each is a row of the table of the page, whose left cell has the first.
const std::vector<std::pair<std::string, std::string>>& refused() {
  static const std::vector<std::pair<std::string, std::string>> pairs = {
      {"--placement count", "--failures"},
      {"--placement count", "--stages"},
      {"--placement count", "--power"},
      {"a cluster that is a pool", "--power"},
      {"--placement count", "checkpoint_gib_per_gpu"},
      {"a cluster that is a pool", "--failures"},
      {"a cluster that is a pool", "--stages"},
      {"a cluster that is a pool", "checkpoint_gib_per_gpu"},
      {"--placement count", "--span-speed"},
      {"--placement count", "--span-speed throughputs"},
      {"--placement count", "--communication"},
      {"a cluster that is a pool", "--span-speed"},
      {"a cluster that is a pool", "--span-speed throughputs"},
      {"a cluster that is a pool", "--communication"},
      {"--placement count", "mig"},
      {"--placement count", "sharing"},
      {"--checkpoint-write", "checkpoint_gib_per_gpu"},
      {"--checkpoint-rule", "--checkpoint-interval"},
      {"gpus of an elastic job", "--elastic"},
      {"gpus of an elastic job", "phases"},
      {"--throughputs", "--profile"},
      {"--throughputs", "--reference-profile"},
      {"--throughputs", "--slowdown"},
      {"--communication", "--span-speed"},
      {"--communication", "--span-speed throughputs"},
  };
  return pairs;
}

TEST_F(ConditionPairs, EveryPairIsRefusedIfAndOnlyIfThePageSaysSo) {
  std::size_t tried = 0, were_refused = 0;
  for (const auto& [a, first] : choices_) {
    for (const auto& [b, second] : choices_) {
      if (a == b || first.path == second.path) continue;
      for (const std::set<std::string>& names : sets_of(a, b)) {
        const bool expected = std::any_of(refused().begin(), refused().end(), [&](const auto& pair) {
          return names.contains(pair.first) && names.contains(pair.second);
        });
        const auto why = refusal(names, a > b);
        std::string text;
        for (const std::string& name : names) text += name + "; ";
        EXPECT_EQ(why.has_value(), expected) << text << why.value_or("is taken");
        ++tried;
        were_refused += why ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tried, 700u);
  EXPECT_GT(were_refused, 80u);
  EXPECT_LT(were_refused, tried / 2);
}

// Alone, each is taken with what it needs, and refused without.
TEST_F(ConditionPairs, WhatNeedsAnotherConditionIsRefusedWithoutIt) {
  for (const auto& [name, choice] : choices_) {
    const bool needs_nothing = choice.needs.front().empty();
    EXPECT_EQ(refusal({name}, false).has_value(), !needs_nothing) << name;
    EXPECT_EQ(choice.needs_in_docs.has_value(), !needs_nothing) << name;
  }
}

// Every row of the table is one of the pairs above, a need, or tested elsewhere: of a command, or of requested times.
TEST_F(ConditionPairs, ThePageTellsEachOfThem) {
  std::ifstream file(test::source_dir() + "/docs/configuration.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::pair<std::string, std::string>> rows;
  for (std::size_t at = page.find('\n', page.find("| this | not with |")) + 1; page[at] == '|';
       at = page.find('\n', at) + 1) {
    const std::string line = page.substr(at, page.find('\n', at) - at);
    const std::size_t middle = line.find(" | ");
    if (line.find("---") == std::string::npos) rows.emplace_back(line.substr(0, middle), line.substr(middle));
  }
  ASSERT_GT(rows.size(), 8u);
  std::vector<bool> is_told(rows.size());
  const auto tells = [&](const std::string& left, const std::string& right) {
    bool found = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].first.find(left) == std::string::npos || rows[i].second.find(right) == std::string::npos) continue;
      found = is_told[i] = true;
    }
    return found;
  };
  for (const auto& [a, b] : refused()) EXPECT_TRUE(tells(a, b)) << a << " and " << b;
  for (const auto& [name, choice] : choices_) {
    if (choice.needs_in_docs) EXPECT_TRUE(tells(name, "no `" + *choice.needs_in_docs)) << name;
  }
  for (const char* elsewhere : {"`arrival_scale`", "shuffled windows", "several `cluster_scales`",
                                "`evaluate --protocol sc20`", "`--trials`", "`--sites`"}) {
    EXPECT_TRUE(tells(elsewhere, "")) << elsewhere;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_TRUE(is_told[i]) << rows[i].first;
}

}  // namespace
}  // namespace gpusched
