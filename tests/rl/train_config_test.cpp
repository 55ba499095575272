// SPDX-License-Identifier: Apache-2.0
#include "src/rl/train_config.hpp"

#include <gtest/gtest.h>

#include <string>

#include "src/rl/trainer.hpp"

namespace gpusched {
namespace {

TEST(TrainConfig, ComesBackFromItsOwnJson) {
  TrainConfig config = default_train_config();
  config.env.agenda = {.heuristic = Heuristic::fcfs, .starvation = whole_seconds(3600)};
  config.network = {.kind = NetworkKind::index};
  config.ppo.baseline = Baseline::self_critic;
  config.ppo.adapt_learning_rate = false;
  config.ppo.anneal = 50;
  config.ppo.average_reward = true;
  config.ppo.horizon_jobs = 64;
  config.ppo.horizon_iterations = 9;
  config.cluster_scales = {0.75};
  config.ppo.piece = 1000;
  config.ppo.least_learning_rate = 1e-6;
  config.ppo.most_learning_rate = 3e-4;
  config.ppo.kl_stop = 0.02;
  config.ppo.start_kl = 0.1;
  config.ppo.temperature = 0.5;
  config.ppo.sampling_cost = 0.02;
  config.ppo.resimulate = true;
  config.ppo.max_critic_gradient_norm = 2;
  config.ppo.critic_warm_up = 7;
  config.ppo.teacher_model = "runs/one";
  config.method = Method::cma_es;
  config.search = {.generations = 7, .population = 20, .shrink = {0.5, 1}, .objective = SearchObjective::mean};
  config.network.hidden = 8;
  config.init = "runs/index";
  config.constraints = {
      .reference = "saf{skip=true}", .most = {1, 0, 1.25, 0, 0}, .margin = 0.02, .multiplier = 2, .rate = 0};
  config.shuffle = {.windows = 100, .stretch = 0.1};
  config.empty_share = 0.25;
  const std::string text = train_config_json(config);
  const auto read = read_train_config(text, "x.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(train_config_json(*read), text);
}

TEST(TrainConfig, OfSteeringComesBackFromItsOwnJson) {
  TrainConfig config = default_train_config();
  config.method = Method::ppo;
  config.network = {.kind = NetworkKind::rank, .hold_s = 3600, .deviation = 0.2};
  config.init = "rl:runs/one";
  const auto read = read_train_config(train_config_json(config), "x.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->init, "runs/one");
  config.init = "runs/one";
  EXPECT_EQ(train_config_json(*read), train_config_json(config));
  config.network.hold_s = 0;
  config.network.hold_jobs = 32;
  const auto by_jobs = read_train_config(train_config_json(config), "x.json");
  ASSERT_TRUE(by_jobs) << by_jobs.error().to_string();
  EXPECT_EQ(train_config_json(*by_jobs), train_config_json(config));
}

// The placement "count" was unknown here, while replay pooled the cluster.
TEST(TrainConfig, PlacementCountPoolsTheCluster) {
  const auto config =
      read_train_config(R"({"trace": "synthetic:philly", "cluster": "3x8", "placement": "count"})", "x.json");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_NE(train_config_json(*config).find(R"("placement": "count")"), std::string::npos);
  const auto input = load_train_input(*config);
  ASSERT_TRUE(input) << input.error().to_string();
  EXPECT_EQ(input->cluster.nodes.size(), 1u);
  EXPECT_EQ(input->cluster.total_gpus(), 24);
}

TEST(TrainConfig, OfNodeSpeedsComesBackFromItsOwnJson) {
  const std::string text =
      R"({"trace": "a", "fidelity": {"throughputs": "t.csv", "reference_type": "v100"}, "method": "cma_es",
          "network": {"kind": "index"}, "env": {"choose_nodes": true, "node_speeds": true}})";
  const auto config = read_train_config(text, "x.json");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_TRUE(config->network.places);
  EXPECT_EQ(config->conditions.speeds.throughputs, "t.csv");
  EXPECT_EQ(config->conditions.speeds.reference_type, "v100");
  const auto again = read_train_config(train_config_json(*config), "x.json");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(again->env.agenda.node_speeds);
  EXPECT_EQ(train_config_json(*again), train_config_json(*config));
}

TEST(TrainConfig, OfValidationLogsComesBackFromItsOwnJson) {
  TrainConfig config = default_train_config();
  config.validation_jobs = 4000;
  const auto read = read_train_config(train_config_json(config), "x.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->validation_jobs, 4000u);
  EXPECT_EQ(train_config_json(*read), train_config_json(config));
}

TEST(TrainConfig, TakesOneShareOfTheWayOrSeveral) {
  const auto shares = [](const char* text) { return read_train_config(text, "x.json").value().search.shrink; };
  EXPECT_EQ(shares(R"({"trace": "a"})"), std::vector<double>{1});
  EXPECT_EQ(shares(R"({"trace": "a", "search": {"shrink": 0.25}})"), std::vector<double>{0.25});
  EXPECT_EQ(shares(R"({"trace": "a", "search": {"shrink": [1, 0.25]}})"), (std::vector<double>{1, 0.25}));
}

TEST(TrainConfig, RefusesWhatDoesNotGoWithSignals) {
  const auto refusal = [](const std::string& rest) {
    const auto read = read_train_config(R"({"trace": "a", )" + rest + "}", "x.json");
    return read ? "" : read.error().to_string();
  };
  const std::string signals = R"("env": {"signals": true}, "power": "frontier", )";
  EXPECT_EQ(refusal(R"("env": {"signals": true})"), "x.json: /env/signals: expected false without power");
  EXPECT_EQ(refusal(signals + R"("network": {"kind": "kernel"})"),
            "x.json: /env/signals: expected false with a network other than index, which does not read them");
  EXPECT_EQ(refusal(signals + R"("network": {"kind": "index"})"),
            "x.json: /method: ppo learns the network index with env/signals only by steering: expected a "
            "network/hold_s or hold_jobs, or cma_es or es");
  EXPECT_EQ(refusal(signals + R"("network": {"kind": "index", "hold_s": 60})"), "");
  EXPECT_EQ(refusal(R"("method": "cma_es", "network": {"kind": "index"},
                       "constraints": {"reference": "sjf", "carbon_kg": 1})"),
            "x.json: /constraints/carbon_kg: expected 0 without power, whose file says what is drawn");
}

TEST(TrainConfig, RefusesARewardThatIsZeroEverywhere) {
  const auto error_of = [](const std::string& weights) {
    const auto read = read_train_config(R"({"trace": "a", "env": {"weights": )" + weights + "}}", "x.json");
    return read ? std::string("none") : read.error().to_string();
  };
  EXPECT_EQ(error_of(R"({"bounded_slowdown": 0})"),
            "env.weights: expected a weight above 0: the reward is 0 everywhere");
  EXPECT_EQ(error_of(R"({"carbon": 1})"),
            "x.json: /env/weights/carbon: expected 0 without power: what it weighs is 0 then");
  EXPECT_EQ(error_of(R"({"peak": 1})"),
            "x.json: /env/weights/peak: expected 0 without power: what it weighs is 0 then");
  EXPECT_EQ(error_of(R"({"energy": 1})"), "none");
}

TEST(TrainConfig, RefusesWhatDoesNotGoWithNodeSpeeds) {
  const auto refusal = [](const std::string& rest) {
    const auto read = read_train_config(R"({"trace": "a", )" + rest + "}", "x.json");
    return read ? "" : read.error().to_string();
  };
  const std::string speeds = R"("env": {"choose_nodes": true, "node_speeds": true)";
  EXPECT_EQ(refusal(R"("env": {"node_speeds": true})"),
            "x.json: /env/mode: node_speeds tells of a choice of nodes: it needs choose_nodes");
  EXPECT_EQ(refusal(speeds + R"(, "mode": "inspect"})"),
            "x.json: /env/mode: node_speeds lets a chosen job wait for another GPU type: it needs mode fit_or_wait");
  EXPECT_EQ(refusal(speeds + R"(}, "network": {"kind": "index"})"),
            "x.json: /method: ppo learns the network index with env/node_speeds only by steering: expected a "
            "network/hold_s or hold_jobs, or cma_es or es, or another network");
  EXPECT_EQ(refusal(speeds + R"(}, "network": {"kind": "index", "hold_jobs": 40})"), "");
  EXPECT_EQ(refusal(R"("power": "frontier", "windows": {"shuffled": 9})"),
            "x.json: /windows/shuffled: expected 0 with power, which is of the trace's jobs");
  EXPECT_EQ(refusal(R"("fidelity": {"throughputs": "t.csv"}, "windows": {"shuffled": 9})"),
            "x.json: /windows/shuffled: expected 0 with fidelity.throughputs, which is of the trace's jobs");
}

TEST(TrainConfig, OfFailuresComesBackFromItsOwnJson) {
  const auto config = read_train_config(
      R"({"trace": "a", "failures": {"file": "f.json", "checkpoint_rule": "daly"}, "preemption": {"checkpoint_write_s": 30}})",
      "x.json");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->conditions.failures, "f.json");
  EXPECT_EQ(config->conditions.preemption.rule, CheckpointRule::daly);
  EXPECT_EQ(config->conditions.preemption.periodic_checkpoint, whole_seconds(30));
  const auto again = read_train_config(train_config_json(*config), "x.json");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(train_config_json(*again), train_config_json(*config));
}

TEST(TrainConfig, RefusesWhatDoesNotGoWithFailures) {
  const auto refusal = [](const std::string& rest) {
    const auto read = read_train_config(R"({"trace": "a", )" + rest + "}", "x.json");
    return read ? "" : read.error().to_string();
  };
  EXPECT_EQ(refusal(R"("failures": {"checkpoint_rule": "young"}, "preemption": {"checkpoint_write_s": 5})"),
            "x.json: /failures/checkpoint_rule: expected --failures with young");
  EXPECT_EQ(refusal(R"("failures": {"file": "f", "checkpoint_rule": "young"})"),
            "x.json: /failures/checkpoint_rule: expected --checkpoint-write above 0 with young");
  EXPECT_EQ(refusal(R"("failures": {"file": "f"}, "preemption": {"checkpoint_write_s": 5})"),
            "x.json: /preemption/checkpoint_write_s: expected --checkpoint-interval or --checkpoint-rule with it");
  EXPECT_EQ(refusal(R"("failures": {"file": "f"}, "placement": "count")"),
            "x.json: /failures/file: expected another --placement than count, which knows no nodes that could fail");
  EXPECT_EQ(refusal(R"("power": "frontier", "windows": {"cluster_scales": [1, 2]})"),
            "x.json: /windows/cluster_scales: expected [1] with power, which is of one cluster's nodes");
  EXPECT_EQ(refusal(R"("failures": {"file": "f"}, "windows": {"cluster_scales": [1, 2]})"),
            "x.json: /windows/cluster_scales: expected [1] with failures, which are of one cluster's nodes");
  EXPECT_EQ(refusal(R"("changes": "c.csv", "windows": {"arrival_scale": 0.5})"),
            "x.json: /windows/arrival_scale: expected 1 with changes, whose times it would not move");
}

TEST(TrainConfig, SaysWhatAKeyOfAnEarlierVersionIsCalledNow) {
  const auto refusal = [](const std::string& rest) {
    const auto read = read_train_config(R"({"trace": "a", )" + rest + "}", "x.json");
    return read ? "" : read.error().to_string();
  };
  EXPECT_EQ(refusal(R"("throughputs": "t.csv")"), "x.json: /throughputs: is called /fidelity/throughputs now");
  EXPECT_EQ(refusal(R"("failures": "f.json")"), "x.json: /failures: is called /failures/file now");
  EXPECT_EQ(refusal(R"("trace_where": "gpus>1")"), "x.json: /trace_where: is called /trace/where now");
  EXPECT_EQ(refusal(R"("env": {"restart_cost_s": 60})"),
            "x.json: /env/restart_cost_s: is called /preemption/restart_s now");
  EXPECT_EQ(refusal(R"("env": {"placement": "count"})"), "x.json: /env/placement: is called /placement now");
}

// A trace may be given by its path alone, as in a sweep.
TEST(TrainConfig, TakesATraceAsATextOrAnObject) {
  EXPECT_EQ(read_train_config(R"({"trace": "a"})", "x")->trace, "a");
  const auto object = read_train_config(R"({"trace": {"path": "a", "where": "gpus>1"}})", "x");
  ASSERT_TRUE(object) << object.error().to_string();
  EXPECT_EQ(object->trace, "a");
  EXPECT_EQ(object->where, "gpus>1");
}

TEST(TrainConfig, TakesEveryConditionOfAReplay) {
  const auto config = read_train_config(
      R"({"trace": "a", "stages": "s.json", "elastic": "e.json", "changes": "c.csv",
          "fidelity": {"span_speed": "nodes=0.9"}})",
      "x.json");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->conditions.stages, "s.json");
  EXPECT_EQ(config->conditions.elastic, "e.json");
  EXPECT_EQ(config->conditions.changes, "c.csv");
  EXPECT_EQ(config->conditions.speeds.span_speed, "nodes=0.9");
  EXPECT_EQ(train_config_json(*read_train_config(train_config_json(*config), "x")), train_config_json(*config));
}

TEST(TrainConfig, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const char* text) {
    const auto read = read_train_config(text, "x.json");
    return read ? "" : read.error().to_string();
  };
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"iteration": 3}})"),
            "x.json: /ppo/iteration: unknown key (did you mean 'iterations'?)");
  EXPECT_EQ(
      refusal(R"({"trace": "a", "env": {"mode": "guess"}})"),
      "x.json: /env/mode: expected one of fit_or_wait|select_blocking|backfill|reserve|inspect|preempt, not 'guess'");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": {"mode": "preempt"}})"),
            "x.json: /network/kind: the network rank goes with env/mode preempt, and no other does");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": {"mode": "preempt"}, "network": {"kind": "rank"}})"),
            "x.json: /method: ppo learns the order of mode preempt only by steering: expected a network/hold_s or "
            "hold_jobs, or cma_es or es");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"hold_jobs": 60}})"),
            "x.json: /network/hold_jobs: expected 0 unless the kind is index or rank, whose weights can be an action");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"kind": "index", "hold_s": 60, "hold_jobs": 60}})"),
            "x.json: /network/hold_jobs: expected 0 with a hold_s: an action ends after a time or after submissions");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"kind": "index", "hold_jobs": 9}, "ppo": {"temperature": 0.5}})"),
            "x.json: /ppo/temperature: expected 1 and 0 with an agent that steers, which draws weights "
            "by network/deviation");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"kind": "index", "hold_s": 9}, "ppo": {"resimulate": true}})"),
            "x.json: /ppo/resimulate: expected false with an agent that steers, whose few states are kept");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"temperature": 0}})"),
            "x.json: /ppo/temperature: expected a number from 0.001 to 1000, not 0");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"hold_s": 60}})"),
            "x.json: /network/hold_s: expected 0 unless the kind is index or rank, whose weights can be an action");
  EXPECT_EQ(refusal(R"({"trace": "a", "method": "cma_es", "network": {"kind": "index", "hold_s": 60}})"),
            "x.json: /network/hold_s: hold_s and hold_jobs go with method ppo");
  EXPECT_EQ(
      refusal(R"({"trace": "a", "network": {"kind": "index", "hold_s": 9}, "ppo": {"imitate_iterations": 2}})"),
      "x.json: /ppo/imitate_iterations: expected 0 with an agent that steers: a teacher has no weights to imitate");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"kind": "index", "hold_s": 9}, "ppo": {"baseline": "self_critic"}})"),
            "x.json: /ppo/baseline: self_critic does not go with an agent that steers");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": {"heuristic": "las"}})"),
            "x.json: /env/mode: the heuristics las, srtf and gittins rank running jobs: they need mode preempt");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"teacher": "srtf"}})"),
            "x.json: /ppo/teacher: expected fcfs, sjf, saf, f1 or rl:FOLDER, not 'srtf'");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"teacher": "rl:"}})"),
            "x.json: /ppo/teacher: expected fcfs, sjf, saf, f1 or rl:FOLDER, not 'rl:'");
  EXPECT_EQ(refusal(R"({"trace": "a", "windows": {"jobs": 1.5}})"),
            "x.json: /windows/jobs: expected a whole number, 1 to 4000000000, not 1.5");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"width": 30}})"),
            "x.json: /network/width: expected an even multiple of heads");
  EXPECT_EQ(refusal(R"({"trace": "a", "method": "ga"})"),
            "x.json: /method: expected one of ppo|cma_es|es|random, not 'ga'");
  for (const std::string shrink : {"0", "[1,2]", "[]", "\"half\""}) {
    EXPECT_EQ(refusal((std::string(R"({"trace": "a", "search": {"shrink": )") + shrink + "}}").c_str()),
              "x.json: /search/shrink: expected a number from 0.01 to 1, or a list of such, not " + shrink)
        << shrink;
  }
  EXPECT_EQ(refusal(R"({"trace": "a", "windows": {"validation_jobs": 9, "empty_share": 0.5},
                        "constraints": {"reference": "sjf", "avg_jct_s": 1}, "method": "es"})"),
            "x.json: /windows/validation_jobs: expected 0: with an empty_share limits hold in two kinds of windows");
  EXPECT_EQ(refusal(R"({"trace": "a", "search": {"population": 1}})"),
            "x.json: /search/population: expected 0 or at least 2");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"least_learning_rate": 0.1}})"),
            "x.json: /ppo/least_learning_rate: expected at most most_learning_rate");
  EXPECT_EQ(refusal(R"({"trace": "a", "method": "es", "search": {"population": 3}})"),
            "x.json: /search/population: expected an even number: method es draws candidates in pairs");
  EXPECT_EQ(refusal(R"({"trace": "a", "search": {"step": 1e-9}})"),
            "x.json: /search/step: expected 0 or a number from 1e-06 to 1000000");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"hidden": 8}})"),
            "x.json: /network/hidden: expected 0: only the networks index and rank have a score to correct");
  EXPECT_EQ(refusal(R"({"trace": "a", "network": {"kind": "index", "hidden": 8}})"),
            "x.json: /network/hidden: expected 0 with method ppo, which does not learn them");
  EXPECT_EQ(refusal(R"({"trace": "a", "method": "es", "constraints": {"avg_jct_s": 1}})"),
            "x.json: /constraints/reference: is missing: a limit is a multiple of a policy's figure");
  EXPECT_EQ(refusal(R"({"trace": "a", "method": "es", "constraints": {"reference": "sjf"}})"),
            "x.json: /constraints/reference: bounds nothing without a limit, such as \"avg_jct_s\": 1");
  EXPECT_EQ(refusal(R"({"trace": "a", "constraints": {"reference": "sjf", "p99_wait_s": 1}})"),
            "x.json: /constraints/reference: expected none with method ppo, which cannot keep limits");
  EXPECT_EQ(
      refusal(R"({"trace": "a", "method": "es", "constraints": {"reference": "sjf", "avg_jct_s": 1, "p99_jct_s": 1}})"),
      "x.json: /constraints/p99_jct_s: unknown key (did you mean 'avg_jct_s'?)");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"anneal": -1}})"),
            "x.json: /ppo/anneal: expected a whole number, 0 to 4000000000, not -1");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"anneal": 5}})"),
            "x.json: /ppo/anneal: expected 0 unless adapt_learning_rate is false: only one of them can set the rate");
  EXPECT_EQ(
      refusal(R"({"trace": "a", "ppo": {"average_reward": true, "mean_lifetime_s": 60}})"),
      "x.json: /ppo/average_reward: expected false with a mean_lifetime_s: differential returns are not discounted");
  EXPECT_EQ(refusal(R"({"trace": "a", "ppo": {"horizon_jobs": 10}})"),
            "x.json: /ppo/horizon_jobs: expected both of horizon_jobs and horizon_iterations, or none");
  for (const std::string scales : {"[]", "[1,0]", "[1000]"}) {
    EXPECT_EQ(refusal((std::string(R"({"trace": "a", "windows": {"cluster_scales": )") + scales + "}}").c_str()),
              "x.json: /windows/cluster_scales: expected a number from 0.01 to 100, or a list of such, not " + scales);
  }
  EXPECT_EQ(
      refusal(R"({"trace": "a", "method": "cma_es", "network": {"kind": "index"}, "windows": {"cluster_scales": [1, 2]},
                       "constraints": {"reference": "fifo", "avg_jct_s": 1}})"),
      "x.json: /constraints/reference: expected none with several windows/cluster_scales: its limits are of one "
      "cluster");
  EXPECT_EQ(refusal(R"({"seed": 1})"), "x.json: /trace/path: is missing");
  EXPECT_EQ(refusal(R"({"trace": "a", "env": 3})"), "x.json: /env: expected an object, not 3");
}

}  // namespace
}  // namespace gpusched
