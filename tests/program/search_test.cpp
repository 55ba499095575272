// SPDX-License-Identifier: Apache-2.0
// gpusched search as a user runs it: its files, resumption after kill -9, and that what it finds runs anywhere.
#include <filesystem>
#include <map>
#include <string>

#include "tests/program/stored_runs.hpp"

namespace gpusched::test {
namespace {

class SearchProgram : public StoredRuns {
 protected:
  void SetUp() override {
    static const bool has_pagmo =
        run("search " + small_search() + " --dry-run").err.find("pagmo2, which was not found") == std::string::npos;
    if (!has_pagmo) GTEST_SKIP() << "this build has no pagmo2";
  }

  std::string out() const { return folder_.path() + "/out"; }
  std::string file(const std::string& text) const { return folder_.write("search.json", text); }
  std::string small_search(const std::string& more = "") const {
    return file(R"({"base": {"trace": "synthetic:philly:600", "cluster": "8x8", "oversize": "drop", "seed": 3},
      "policies": [{"policy": "weighted+easy", "parameters": {"run_time": {"from": -1, "to": 2},
                                                              "wait": {"from": 0.001, "to": 10, "log": true}}},
                   {"policy": "las", "parameters": {"quantum_gpu_s": {"from": 60, "to": 90000, "log": true}}}],
      "objectives": ["avg_jct_s", "p99_wait_s"], "compare": ["fifo", "sjf{estimate=history}+easy"],
      "windows": {"jobs": 60, "warmup_jobs": 20, "train": 3, "held_out": 2},
      "population": 8, "generations": 3, "seed": 1)" +
                more + "}");
  }
  std::vector<std::string> tables(const std::string& folder) const {
    return {bytes_of(folder + "/front.csv"), bytes_of(folder + "/generations.csv"),
            bytes_of(folder + "/candidates.csv")};
  }
  int stored() const { return rows_in(out() + "/search.sqlite"); }
};

TEST_F(SearchProgram, TheSameBytesForAnyNumberOfProcessesAndTheSecondStartRunsNothing) {
  const std::string search = small_search();
  const Outcome first = run("search " + search + " --threads 1 --out " + out());
  ASSERT_EQ(first.code, 0) << first.err;
  const std::vector<std::string> once = tables(out());
  ASSERT_EQ(run("search " + search + " --threads 3 --out " + out() + "3").code, 0);
  EXPECT_EQ(tables(out() + "3"), once);
  const Outcome again = run("search " + search + " --threads 2 --out " + out());
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(again.err, first.err);
  EXPECT_EQ(tables(out()), once);
  const json manifest = json::parse(bytes_of(out() + "/manifest.json"));
  EXPECT_EQ(manifest["runs"]["ran"], 0);
  EXPECT_EQ(manifest["repeatable"], true);
  // A manifest repeats its search, also what an option said.
  ASSERT_EQ(run("search " + search + " --seed 2 --out " + out() + "4").code, 0);
  EXPECT_NE(tables(out() + "4"), once);
  ASSERT_EQ(run("search " + out() + "4/manifest.json --out " + out() + "5").code, 0);
  EXPECT_EQ(tables(out() + "5"), tables(out() + "4"));
}

TEST_F(SearchProgram, KilledWithSigkillTheSameCommandGoesOn) {
  const std::string search = small_search();
  ASSERT_EQ(run("search " + search + " --out " + out() + "-whole").code, 0);
  const int all = rows_in(out() + "-whole/search.sqlite");
  for (const int enough : {9, 50}) {
    const pid_t child = start("search " + search + " --out " + out());
    ASSERT_TRUE(comes_true([&] { return stored() >= enough; }));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    end_of(child);
    EXPECT_LT(stored(), all);
  }
  const int kept = stored();
  ASSERT_TRUE(comes_true([&] { return run("search " + search + " --out " + out()).code == 0; }));  // workers die first
  EXPECT_EQ(tables(out()), tables(out() + "-whole"));
  EXPECT_EQ(stored(), all);
  const json manifest = json::parse(bytes_of(out() + "/manifest.json"));
  EXPECT_EQ(manifest["runs"]["ran"], all - kept);
}

// A row of the front, replayed on a held-out window by itself, has the figures that the search tells.
TEST_F(SearchProgram, WhatIsFoundRunsAnywhere) {
  ASSERT_EQ(run("search " + small_search(R"(, "front": 2)") + " --out " + out()).code, 0);
  const auto rows = rows_of(bytes_of(out() + "/front.csv"));
  const json manifest = json::parse(bytes_of(out() + "/manifest.json"));
  const auto& starts = manifest["windows"]["first_held_out_job_of_each"];
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& row : rows) {
    json sweep{{"base",
                {{"trace", "synthetic:philly:600"},
                 {"cluster", "8x8"},
                 {"oversize", "drop"},
                 {"seed", 3},
                 {"policy", row.at("policy")},
                 {"measure", {{"warmup_jobs", 20}, {"measure_jobs", 60}}}}},
               {"list", json::array()}};
    for (const auto& start : starts) {
      sweep["list"].push_back({{"window", {{"first_job", start.get<int>() - 20}, {"jobs", 80}}}});
    }
    const std::string alone = out() + "-" + std::to_string(&row - rows.data());
    ASSERT_EQ(run("sweep " + folder_.write("sweep.json", sweep.dump()) + " --files --out " + alone).code, 0);
    double jct = 0, wait = 0;
    const auto runs = rows_of(bytes_of(alone + "/runs.csv"));
    ASSERT_EQ(runs.size(), 2u);
    for (const auto& one : runs) {
      jct += std::stod(one.at("avg_jct_s")) / 2;
      wait += std::stod(one.at("p99_wait_s")) / 2;
    }
    EXPECT_DOUBLE_EQ(jct, std::stod(row.at("held_out_avg_jct_s"))) << row.at("policy");
    EXPECT_DOUBLE_EQ(wait, std::stod(row.at("held_out_p99_wait_s"))) << row.at("policy");
  }
  EXPECT_EQ(
      run("replay synthetic:philly:600 --cluster 8x8 --oversize drop --policy '" + rows[0].at("policy") + "'").code, 0);
}

TEST_F(SearchProgram, TheHypervolumeNeverFallsAndTheFrontIsOne) {
  ASSERT_EQ(run("search " + small_search() + " --out " + out()).code, 0);
  double last = 0;
  const auto generations = rows_of(bytes_of(out() + "/generations.csv"));
  EXPECT_EQ(generations.size(), 4u);
  for (const auto& row : generations) {
    EXPECT_GE(std::stod(row.at("hypervolume")), last);
    EXPECT_LE(std::stod(row.at("population_hypervolume")), std::stod(row.at("hypervolume")) + 1e-12);
    last = std::stod(row.at("hypervolume"));
  }
  EXPECT_GT(last, 0);
  const auto rows = rows_of(bytes_of(out() + "/front.csv"));
  const auto figures = [](const auto& row, const std::string& kind) {
    return std::pair(std::stod(row.at(kind + "_avg_jct_s")), std::stod(row.at(kind + "_p99_wait_s")));
  };
  const auto better = [](auto a, auto b) { return a.first <= b.first && a.second <= b.second && a != b; };
  for (const auto& row : rows) {
    bool is_dominated = false;
    for (const auto& other : rows) {
      is_dominated = is_dominated || better(figures(other, "held_out"), figures(row, "held_out"));
      if (row.at("kind") == "found" && other.at("kind") == "found") {
        EXPECT_FALSE(better(figures(other, "train"), figures(row, "train"))) << row.at("policy");
      }
    }
    EXPECT_EQ(row.at("on_front"), is_dominated ? "false" : "true") << row.at("policy");
  }
}

TEST_F(SearchProgram, RandomSearchIsAnotherWayToPropose) {
  ASSERT_EQ(run("search " + small_search() + " --method random --out " + out()).code, 0);
  EXPECT_EQ(rows_of(bytes_of(out() + "/generations.csv")).back().at("candidates"), "32");  // none is proposed twice
}

// Two trainings of two rungs; a training that stops half-way goes on by its own checkpoint.
TEST_F(SearchProgram, TrainingsGoOnByHalvesAndTheirModelsRunAnywhere) {
  const std::string search = file(R"({"base": {"trace": "synthetic:philly:600", "cluster": "8x8", "oversize": "drop"},
    "policies": [{"train": {"env": {"mode": "preempt", "knowledge": "predicted", "heuristic": "las"},
                            "windows": {"jobs": 30, "stride": 30, "train_fraction": 0.7, "validation_fraction": 0.3},
                            "network": {"kind": "rank"}, "method": "es",
                            "search": {"generations": 1, "validate_every": 1, "population": 2}},
                  "parameters": {"network.hidden": {"choices": [0, 2]},
                                 "env.weights.bounded_slowdown": {"from": 0.1, "to": 1}}}],
    "objectives": ["avg_jct_s", "p99_wait_s"], "compare": ["fifo", "las"], "method": "halving",
    "windows": {"jobs": 40, "train": 2, "held_out": 2}, "population": 8, "halving": {"rungs": 2, "keep": 4}})");
  const Outcome first = run("search " + search + " --threads 2 --out " + out());
  ASSERT_EQ(first.code, 0) << first.err;
  const std::vector<std::string> once = tables(out());
  const auto candidates = rows_of(once[2]);
  ASSERT_EQ(candidates.size(), 10u);  // 8, then 2
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& policy = candidates[i].at("policy");
    ASSERT_THAT(policy, StartsWith("rl:" + out() + "/models/"));
    const json config = json::parse(bytes_of(policy.substr(3) + "/config.json"));
    EXPECT_EQ(config["search"]["generations"], i < 8 ? 1 : 4);
    EXPECT_EQ(config["test_at_end"], false);
    EXPECT_THAT(candidates[i].at("candidate"),
                StartsWith("train{network.hidden=" + std::to_string(config["network"]["hidden"].get<int>())));
  }
  const std::string replay = "replay synthetic:philly:600 --cluster 8x8 --oversize drop --policy ";
  EXPECT_EQ(run(replay + rows_of(once[0]).front().at("policy")).code, 0);
  // Without its last models, as if it had been killed then, it trains the same again.
  std::filesystem::remove_all(candidates.back().at("policy").substr(3));
  ASSERT_EQ(run("search " + search + " --out " + out()).code, 0);
  EXPECT_EQ(tables(out()), once);
}

// They begin with each window. More replicas keep more promises, and leave jobs fewer GPUs.
TEST_F(SearchProgram, TheReplicasOfAServiceAreSearched) {
  const auto service = [&](const std::string& most) {
    return folder_.write("most" + most + ".json",
                         R"({"services": [{"name": "s", "requests": {"rate_per_s": 20, "duration_s": 2000},
      "serves": {"mean_s": 0.7}, "promise": {"part": 0.9, "within_s": 2}, "replica": {"gpus": 1}, "least": 1, "most": )" +
                             most + "}]}");
  };
  const std::string few = service("12"), many = service("30");
  const std::string search = file(R"({"base": {"trace": "synthetic:philly:600", "cluster": "8x8", "oversize": "drop",
      "services": ")" + few + R"("}, "compare": ["fifo"], "objectives": ["avg_jct_s", "slo_attainment"],
      "windows": {"jobs": 60, "train": 2, "held_out": 2}, "population": 8, "generations": 1,
      "policies": [{"policy": "fifo", "parameters": {"base.services": {"choices": [")" +
                                  few + "\", \"" + many + R"("]}}}]})");
  ASSERT_EQ(run("search " + search + " --out " + out()).code, 0);
  std::map<std::string, double> promises;
  for (const auto& row : rows_of(bytes_of(out() + "/candidates.csv"))) {
    EXPECT_EQ(row.at("message"), "");
    promises[row.at("policy")] = std::stod(row.at("train_slo_attainment"));
  }
  ASSERT_EQ(promises.size(), 2u);
  EXPECT_LT(promises.begin()->second, promises.rbegin()->second);  // by name: 12, 30
}

// What a candidate's conditions name is read before anything runs.
TEST_F(SearchProgram, AConditionThatCannotBeReadIsRefused) {
  const auto with = [&](const std::string& policies) {
    return "search " +
           file(
               R"({"base": {"trace": "synthetic:philly:600", "cluster": "8x8", "oversize": "drop"}, "compare": ["fifo"],
      "objectives": ["avg_jct_s", "p99_wait_s"], "windows": {"jobs": 40}, "policies": )" +
               policies + "}") +
           " --out " + out();
  };
  expect_refused(with(R"([{"policy": "las", "parameters": {"quantum_gpu_s": {"from": 60, "to": 600},
      "base.failures.file": {"choices": ["nofile.json", "none.json"]}}}])"),
                 "/policies/0/parameters/base.failures.file: ");
  expect_refused(with(R"([{"policy": "rl:nofolder", "parameters": {"base.seed": {"choices": [1, 2]}}}])"),
                 "/policies/0: nofolder/model.json: cannot be opened");
  EXPECT_FALSE(std::filesystem::exists(out() + "/search.sqlite"));
}

TEST_F(SearchProgram, ASignalLeavesTablesAsFarAsItGot) {
  const pid_t child = start("search " + small_search() + " --generations 3000 --out " + out());
  ASSERT_TRUE(comes_true([&] { return stored() >= 40; }));
  ASSERT_EQ(::kill(child, SIGINT), 0);
  EXPECT_EQ(end_of(child), 130);
  const auto candidates = rows_of(bytes_of(out() + "/candidates.csv"));
  EXPECT_FALSE(candidates.empty());
  for (const auto& row : candidates) EXPECT_NE(row.at("train_avg_jct_s") + row.at("message"), "") << row.at("policy");
  EXPECT_TRUE(std::filesystem::exists(out() + "/generations.csv"));
  EXPECT_EQ(json::parse(bytes_of(out() + "/manifest.json"))["interrupted"], true);
}

TEST_F(SearchProgram, WhatCannotBeginIsRefusedInOneLine) {
  const std::string search = small_search();
  expect_refused("search", "FILE is required");
  expect_refused("search " + search, "no folder for the results");
  expect_refused("search " + folder_.path() + "/none.json --out " + out(), "none.json");
  expect_refused("search " + search + " --population 9 --out " + out(), "/population: expected a multiple of 4");
  expect_refused("search " + search + " --method best --out " + out(), "--method");
  expect_refused("search " + search + " --method halving --out " + out(),
                 "/policies/0: method halving is for trainings, whose budget grows");
  expect_refused("search " + small_search(R"(, "front": -1)") + " --out " + out(), "/front: expected a whole number");
  const auto with = [&](const std::string& base, const std::string& objectives, const std::string& compare) {
    return "search " +
           file(R"({"base": {"trace": "synthetic:philly:600", "oversize": "drop", )" + base +
                R"(}, "policies": [{"policy": "las", "parameters": {"quantum_gpu_s": {"from": 1, "to": 2}}}],
      "windows": {"jobs": 60}, "objectives": [)" +
                objectives + R"(], "compare": [)" + compare + "]}") +
           " --out " + out();
  };
  const std::string two = R"("avg_jct_s", "p99_wait_s")", cluster = R"("cluster": "8x8")";
  const auto training = [&](const std::string& config, const std::string& folder) {
    return "search " +
           file(
               R"({"base": {"trace": "synthetic:philly:600", "cluster": "8x8", "oversize": "drop"}, "compare": ["fifo"],
      "objectives": ["avg_jct_s", "p99_wait_s"], "windows": {"jobs": 40},
      "policies": [{"train": )" +
               config + R"(, "parameters": {"env.weights.jct": {"from": 0.1, "to": 1}}}]})") +
           " --out '" + folder + "'";
  };
  expect_refused(training(R"({"method": "ppo"})", out()),
                 "/policies/0/train: method: a search trains by cma_es, es or random");
  expect_refused(training(R"({"method": "es", "network": {"kind": "index"}})", out() + " {,"),
                 "--out: models lie there");
  expect_refused(training(R"({"trace": "x"})", out()), "/policies/0/train: trace belongs to /base");
  expect_refused(training(R"({"netwrk": {}})", out()), "/policies/0/train/netwrk: unknown key");
  expect_refused(with(cluster, R"("avg_jct_s", "energy_kwh")", R"("fifo")"),
                 "/objectives/1: energy_kwh is not known here; give power, or device profiles");
  expect_refused(with(cluster, R"("avg_jct_s", "energy_kwh")", R"("fifo")") + " --dry-run",
                 "/objectives/1: energy_kwh is not known here; give power, or device profiles");
  expect_refused(with(cluster, R"("avg_jct_s", "carbon_kg")", R"("fifo")"),
                 "/objectives/1: carbon_kg is not known here; give power with carbon");
  expect_refused(with(R"("cluster": "8y8")", two, R"("fifo")"), "8y8");
  expect_refused(with(cluster, two, R"("fifo", "fifoo")"), "/compare: ");
  expect_refused(with(cluster, two, R"("fifo", "fifo")"), "/compare: ");
  expect_refused(with(cluster, two, R"("rl:nofolder")"), "/compare: nofolder/model.json: cannot be opened");
  expect_refused(with(cluster + R"(, "power": "nofile.json")", two, R"("fifo")"), "/base: ");
  expect_refused(with(cluster + R"(, "placment": "count")", two, R"("fifo")"), "/base/placment: unknown key");
  expect_refused(with(cluster + R"(, "load": 0)", two, R"("fifo")"), "/base/load");
}

}  // namespace
}  // namespace gpusched::test
