// SPDX-License-Identifier: Apache-2.0
// The file of a search: what it may say, where an error is, and what its genomes and windows stand for.
#include "src/search/search_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "src/search/candidate_runs.hpp"
#include "src/search/policy_search.hpp"
#include "tests/support/files.hpp"
#include "tests/support/json_schema.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

std::string text_with(const std::string& policies, const std::string& more = "") {
  return R"({"base": {"trace": "synthetic:philly:200", "cluster": "8"}, "policies": )" + policies +
         R"(, "objectives": ["avg_jct_s", "p99_wait_s"], "compare": ["fifo"])" + more + "}";
}

Result<Search> read(const std::string& text) { return read_search_json(text, "s.json", PolicyRegistry::standard()); }

std::string error_of(const std::string& text) {
  const auto search = read(text);
  if (!search) return search.error().to_string();
  const auto checked = check_search(*search);
  return checked ? "none" : checked.error().to_string();
}

constexpr const char* mixed = R"([
  {"policy": "weighted+easy", "parameters": {"run_time": {"from": -1, "to": 1}, "skip": {"choices": [true, false]}}},
  {"policy": "tiresias", "parameters": {"promote_knob": 2,
    "queue_limits_gpu_s": [{"from": 10, "to": 1000, "log": true}, {"from": 10, "to": 1000, "log": true}]}},
  {"policy": "saf+conservative", "parameters": {"noise_sigma": {"from": 0, "to": 3, "integer": true}}}])";

TEST(SearchFile, AGenomeStandsForAPolicyWithItsNumbers) {
  const auto search = read(text_with(mixed));
  ASSERT_TRUE(search) << search.error().to_string();
  const CandidateSpace space(search->policies);
  ASSERT_EQ(space.genes().size(), 6u);  // run_time, two limits; then policy, skip, noise_sigma
  EXPECT_FALSE(space.genes()[2].integer);
  EXPECT_TRUE(space.genes()[3].integer);
  const auto policy = [&](const Genome& genome) { return space.policy(space.decode(genome)); };
  EXPECT_EQ(policy({0.123456, 0, 0, 0, 1, 0}), "weighted{run_time=0.1235,skip=false}+easy");
  EXPECT_EQ(policy({1, 0, 0, 0, 0, 0}), "weighted{run_time=1,skip=true}+easy");
  // Limits come in ascending order, whichever gene is larger.
  EXPECT_EQ(policy({0, std::log(500.0), std::log(20.0), 1, 0, 0}),
            "tiresias{promote_knob=2,queue_limits_gpu_s=[20,500]}");
  EXPECT_EQ(policy({0, 0, 0, 2, 0, 3}), "saf{noise_sigma=3}+conservative");
}

// Conditions stand behind the policy, and come apart again.
TEST(SearchFile, AGenomeStandsForConditionsToo) {
  const auto search = read(text_with(R"([{"policy": "las+none", "parameters": {
      "base.trials": {"choices": ["a.json", "b.json"]}, "quantum_gpu_s": 9, "base.preemption.restart_s": {"choices": [0, 60]}}}])"));
  ASSERT_TRUE(search) << search.error().to_string();
  const CandidateSpace space(search->policies);
  const std::string text = space.policy(space.decode(Genome{1, 1}));
  EXPECT_EQ(text, "las{quantum_gpu_s=9}+none with trials=b.json and preemption.restart_s=60");
  const CandidateText parts = parts_of_candidate(text);
  EXPECT_EQ(parts.policy, "las{quantum_gpu_s=9}+none");
  EXPECT_EQ(parts.conditions, Json::parse(R"({"trials": "b.json", "preemption": {"restart_s": 60}})"));
  EXPECT_EQ(parts_of_candidate("fifo").policy, "fifo");
  EXPECT_TRUE(parts_of_candidate("fifo").conditions.empty());
}

// What stands behind "with" has the type that the key takes: "8" of a cluster is a text, a seed stays whole.
TEST(SearchFile, ConditionsKeepTheirTypes) {
  const auto search =
      read(text_with(R"([{"policy": "las", "parameters": {"base.seed": {"choices": [1, 9007199254740995]},
      "base.cluster": {"choices": ["8", "1e3"]}}}])"));
  ASSERT_TRUE(search) << search.error().to_string();
  const CandidateSpace space(search->policies);
  const std::string text = space.policy(space.decode(Genome{1, 0}));
  EXPECT_EQ(text, "las with seed=9007199254740995 and cluster=8");
  EXPECT_EQ(parts_of_candidate(text).conditions.dump(), R"({"seed":9007199254740995,"cluster":"8"})");
  EXPECT_EQ(parts_of_candidate("las with seed=1e+06").conditions.dump(), R"({"seed":1000000})");
  const auto range = read(text_with(R"([{"policy": "las", "parameters": {"base.seed":
      {"from": 1, "to": 5, "integer": true}}}])"));
  ASSERT_TRUE(range) << range.error().to_string();
  EXPECT_EQ(parts_of_candidate("las with seed=5").conditions.dump(), R"({"seed":5})");
}

TEST(SearchFile, ErrorsOfConditionsNameTheirPlace) {
  const auto with = [](const std::string& parameters) {
    return error_of(text_with(R"([{"policy": "fifo", "parameters": {"base.seed": {"choices": [1, 2]}}},
        {"policy": "las", "parameters": )" +
                              parameters + "}]"));
  };
  const std::string place = "s.json: /policies/1/parameters/";
  EXPECT_EQ(with(R"({"base.seed": {"choices": [1, 1.5]}})"),
            place + "base.seed/choices/1: expected a whole number, 0 or more, not 1.5");
  EXPECT_EQ(with(R"({"base.seed": {"from": 1, "to": 5}})"),
            place + "base.seed: takes whole numbers: expected \"integer\": true");
  EXPECT_EQ(with(R"({"base.load": {"from": 0, "to": 5}})"),
            place + "base.load: expected a number from 0.001 to 1000, not 0.0");
  EXPECT_EQ(with(R"({"base.clutser": {"choices": ["8", "9"]}})"),
            place + "base.clutser: unknown key (did you mean 'cluster'?)");
  EXPECT_EQ(with(R"({"base.backfill": {"choices": ["easy", "none"]}})"),
            place + "base.backfill: name it in each policy, as weighted+easy: what is found must run as it is");
}

TEST(SearchFile, ASearchInWhichAllFailSaysWhy) {
  SearchOutcome outcome;
  EXPECT_EQ(why_all_failed(outcome), "");
  for (const char* policy : {"las", "saf"}) {
    outcome.candidates.push_back({.policy = policy,
                                  .description = policy,
                                  .train = {.means = {}, .failure = std::string(policy) + " never ends"}});
  }
  EXPECT_EQ(why_all_failed(outcome), "every candidate failed; las: las never ends");
  outcome.candidates.back().train = {.means = {1, 2}};
  EXPECT_EQ(why_all_failed(outcome), "");
}

TEST(SearchFile, RoundingDoesNotLeaveTheRange) {
  const auto search =
      read(text_with(R"([{"policy": "weighted", "parameters": {"wait": {"from": 0.123449, "to": 0.12346}}}])"));
  ASSERT_TRUE(search) << search.error().to_string();
  const CandidateSpace space(search->policies);
  EXPECT_EQ(space.policy(space.decode(Genome{0.123449})), "weighted{wait=0.123449}");  // not 0.1234
  EXPECT_EQ(space.policy(space.decode(Genome{0.12346})), "weighted{wait=0.12346}");    // not 0.1235
}

TEST(SearchFile, ErrorsNameTheirPlace) {
  const auto with = [](const std::string& parameters) {
    return text_with(R"([{"policy": "las", "parameters": )" + parameters + "}]");
  };
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": {"from": 1, "to": 9}})")), "none");
  EXPECT_EQ(error_of(with(R"({"quantum": {"from": 1, "to": 9}})")),
            "s.json: /policies/0/parameters/quantum: policy las has no parameter 'quantum'");
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": {"from": 9, "to": 1}})")),
            "s.json: /policies/0/parameters/quantum_gpu_s: expected from below to");
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": {"from": -9, "to": 1}})")),
            "s.json: /policies/0/parameters/quantum_gpu_s: expected a range within 0 and 9e+09");
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": {"from": 0, "to": 1, "log": true}})")),
            "s.json: /policies/0/parameters/quantum_gpu_s/from: expected a number above 0, as log is true");
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": {"form": 0, "to": 1}})")),
            "s.json: /policies/0/parameters/quantum_gpu_s/form: unknown key (did you mean 'from'?)");
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": {"choices": []}})")),
            "s.json: /policies/0/parameters/quantum_gpu_s/choices: expected a list of values");
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": [{"from": 0, "to": 1}]})")),
            "s.json: /policies/0/parameters/quantum_gpu_s: is one number, not a list");
  EXPECT_EQ(error_of(with(R"({"quantum_gpu_s": 5})")), "s.json: /policies: nothing varies: give ranges or choices");
  EXPECT_THAT(error_of(text_with(R"([{"policy": "laas"}])")), HasSubstr("s.json: /policies/0/policy: "));
  EXPECT_EQ(error_of(text_with(
                R"([{"policy": "las{quantum_gpu_s=3}", "parameters": {"quantum_gpu_s": {"from": 1, "to": 2}}}])")),
            "s.json: /policies/0/parameters/quantum_gpu_s: is given in the policy too: las{quantum_gpu_s=3}");
  EXPECT_EQ(error_of(text_with(mixed, R"(, "populaton": 8)")),
            "s.json: /populaton: unknown key (did you mean 'population'?)");
  EXPECT_EQ(error_of(text_with(mixed, R"(, "population": 10)")), "/population: expected a multiple of 4");
  EXPECT_EQ(error_of(text_with(mixed, R"(, "windows": {"job": 10})")),
            "s.json: /windows/job: unknown key (did you mean 'jobs'?)");
  EXPECT_EQ(error_of(text_with(mixed, R"(, "windows": {"train": 0})")),
            "s.json: /windows/train: expected a whole number, 1 to 10000, not 0");
  EXPECT_EQ(error_of(R"({"base": {"trace": "x", "backfill": "easy"}, "policies": []})"),
            "s.json: /base/backfill: name it in each policy, as weighted+easy: what is found must run as it is");
  EXPECT_EQ(error_of(R"({"base": {"trace": "x"}})"), "s.json: /policies: is missing");
}

TEST(SearchFile, ObjectivesAreFiguresOfAReplay) {
  const auto with = [](const std::string& objectives) {
    return R"({"base": {"trace": "x"}, "policies": [{"policy": "las", "parameters": {"quantum_gpu_s": {"from": 1, "to": 2}}}],
      "compare": ["fifo"], "objectives": )" +
           objectives + "}";
  };
  EXPECT_EQ(error_of(with(R"(["avg_jct_s", "gpu_utilization", "jain_fairness", "energy_kwh"])")), "none");
  EXPECT_THAT(error_of(with(R"(["avg_jct_s"])")), HasSubstr("/objectives: expected two to four figures"));
  EXPECT_EQ(error_of(with(R"(["avg_jct_s", "avg_jtc_s"])")),
            "/objectives/1: no figure is called 'avg_jtc_s' (did you mean 'avg_jct_s'?)");
  EXPECT_EQ(error_of(with(R"(["avg_jct_s", "avg_jct_s"])")), "/objectives/1: is there twice");
  const auto measured = read(with(R"(["avg_jct_s", "decision_latency_us"])"));
  ASSERT_TRUE(measured);
  EXPECT_FALSE(measured->repeatable());
  SweepResult result;
  result.metrics.gpu_utilization = 0.75;
  result.metrics.events = 500;
  result.sim_s = 0.001;
  EXPECT_DOUBLE_EQ(*measured->objectives()[1].value(result), 2);  // a millisecond for 500 events
  const FigureObjective share{"gpu_utilization", find_metric("gpu_utilization")};
  EXPECT_DOUBLE_EQ(share.loss(*share.value(result)), 0.25);  // what is missing to 1
}

// Whatever is asked for, no window shares a job with another, warm-up included, and held-out ones come behind.
TEST(SearchWindows, NoTwoShareAJob) {
  for (const std::uint32_t jobs : {100u, 101u, 250u, 999u}) {
    for (const std::uint64_t warmup : {0u, 3u, 10u}) {
      for (const double share : {0.3, 0.5, 0.71}) {
        Search search;
        search.window_jobs = 10;
        search.warmup_jobs = warmup;
        search.train_share = share;
        const auto split = static_cast<std::uint64_t>(share * jobs);
        search.train_windows = split / (10 + warmup);  // as many as there is room for
        search.held_out_windows = std::max<std::uint64_t>(1, (jobs - split) / (10 + warmup) / 2);
        const auto windows = search_windows(search, jobs);
        ASSERT_TRUE(windows) << windows.error().to_string();
        EXPECT_EQ(windows->train.size(), search.train_windows);
        std::vector<std::uint32_t> starts = windows->train;
        starts.insert(starts.end(), windows->held_out.begin(), windows->held_out.end());
        std::uint64_t end = 0;  // of the window before
        for (std::size_t i = 0; i < starts.size(); ++i) {
          EXPECT_GE(starts[i], end + warmup);
          end = starts[i] + 10;
          EXPECT_EQ(i < windows->train.size(), end <= static_cast<std::uint64_t>(share * jobs));
        }
        EXPECT_LE(end, jobs);
      }
    }
  }
}

TEST(SearchWindows, APartThatIsTooShortIsRefused) {
  Search search;
  search.file = "s.json";
  search.window_jobs = 40;
  search.warmup_jobs = 10;
  search.train_windows = 2;
  search.held_out_windows = 3;
  const auto windows = search_windows(search, 200);
  ASSERT_FALSE(windows);
  EXPECT_EQ(windows.error().to_string(),
            "s.json: /windows/held_out: 2 windows of 50 jobs (warm-up included) fit into jobs 100 to 200, not 3");
}

TEST(SearchFile, TheSchemaInTheDocumentsIsTheProgramsOwn) {
  EXPECT_EQ(test::bytes_of(test::source_dir() + "/docs/search.schema.json"), search_schema())
      << "write it anew: gpusched search --print-schema > docs/search.schema.json";
}

TEST(SearchFile, TheExamplesAreReadAndSatisfyTheSchema) {
  for (const char* name : {"weights", "policies", "networks"}) {
    const std::string text = test::bytes_of(test::source_dir() + "/examples/searches/" + name + ".json");
    EXPECT_EQ(error_of(text), "none");
    EXPECT_EQ(test::schema_violation(text, "docs/search.schema.json"), "");
  }
  std::string wrong = text_with(mixed);
  EXPECT_EQ(test::schema_violation(wrong, "docs/search.schema.json"), "");
  wrong.replace(wrong.find("cluster"), 7, "clutser");
  EXPECT_NE(test::schema_violation(wrong, "docs/search.schema.json"), "");
}

}  // namespace
}  // namespace gpusched
