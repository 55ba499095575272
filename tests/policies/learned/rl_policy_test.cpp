// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/rl_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gpusched/learn/env.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/learned/score_network.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/rl/initial_parameters.hpp"
#include "tests/learn/learning_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// A model whose scores are far from zero, so that it decides otherwise than its heuristic.
TrainedModel some_model(NetworkKind kind, RuntimeKnowledge knowledge = RuntimeKnowledge::predicted) {
  TrainedModel model;
  model.agenda = {.knowledge = knowledge};
  model.network = {.kind = kind, .width = 8, .heads = 2, .critic_width = 8};
  model.parameters = test::random_parameters(model.network, 5);
  return model;
}

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(save_model(some_model(NetworkKind::deepsets), folder_)); }

  void edit_json(const std::string& from, const std::string& to) {
    std::string text = *read_text_file(folder_ + "/model.json");
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(folder_ + "/model.json") << text.replace(at, from.size(), to);
  }

  [[nodiscard]] std::string refusal() const {
    const auto model = load_model(folder_);
    return model ? "" : model.error().to_string().substr(folder_.size());
  }

  test::TempFolder temporary_;
  std::string folder_ = temporary_.path();
};

TEST_F(ModelFolder, ComesBackEqual) {
  const TrainedModel saved = some_model(NetworkKind::deepsets);
  const auto loaded = load_model(folder_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->parameters, saved.parameters);
  EXPECT_EQ(loaded->network, saved.network);
  EXPECT_EQ(loaded->normaliser, saved.normaliser);
  EXPECT_EQ(loaded->agenda.mode, saved.agenda.mode);
  EXPECT_EQ(loaded->agenda.starvation, saved.agenda.starvation);
}

// A model of before there was such a choice has no word of it.
TEST_F(ModelFolder, OfNodeSpeedsComesBackEqual) {
  EXPECT_EQ(read_text_file(folder_ + "/model.json")->find("node_speeds"), std::string::npos);
  TrainedModel saved = some_model(NetworkKind::index);
  saved.agenda.choose_nodes = saved.agenda.node_speeds = true;
  saved.network = for_agenda(saved.network, saved.agenda);
  saved.parameters = test::random_parameters(saved.network, 4);
  ASSERT_TRUE(save_model(saved, folder_));
  const auto loaded = load_model(folder_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->parameters, saved.parameters);
  EXPECT_EQ(loaded->network, saved.network);
  EXPECT_EQ(loaded->agenda, saved.agenda);
}

TEST_F(ModelFolder, OfAnotherArchitectureIsRefused) {
  edit_json("\"deepsets\"", "\"kernel@sc20\"");
  EXPECT_EQ(refusal(), "/model.json: /parameters: has 1008 parameters; this network has 1339");
}

TEST_F(ModelFolder, OfANetworkThatDoesNotFitItsModeIsRefused) {
  edit_json("\"fit_or_wait\"", "\"preempt\"");
  EXPECT_EQ(refusal(), "/model.json: /network: the network rank goes with mode preempt, and no other does");
  edit_json("\"sjf\"", "\"las\"");
  edit_json("\"preempt\"", "\"fit_or_wait\"");
  EXPECT_EQ(refusal(),
            "/model.json: /agenda: the heuristics las, srtf and gittins rank running jobs: they need mode preempt");
}

TEST_F(ModelFolder, OfModePreemptDrawsNoActions) {
  TrainedModel model = some_model(NetworkKind::rank);
  model.agenda.mode = ActionMode::preempt;
  ASSERT_TRUE(save_model(model, folder_));
  const JobTable jobs = test::some_jobs(3, 10);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const auto specs = parse_policy_list("rl:" + folder_ + "{sample=true}");
  const auto made = PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster});
  ASSERT_FALSE(made);
  EXPECT_EQ(
      made.error().to_string(),
      "policy 'rl:" + folder_ + "', parameter 'sample': an agent of mode preempt that does not steer draws nothing");
  // One that steers draws its weights.
  model.network.hold_s = 60;
  model.parameters = test::random_parameters(model.network, 5);
  ASSERT_TRUE(save_model(model, folder_));
  EXPECT_TRUE(PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster}));
}

TEST_F(ModelFolder, OfAnotherVersionIsRefused) {
  edit_json("\"version\": 1", "\"version\": 2");
  EXPECT_EQ(refusal(), "/model.json: /version: is 2; this build reads version 1");
  edit_json("\"version\": 2", "\"version\": 4294967297");  // 1 in 32 bits
  EXPECT_EQ(refusal(), "/model.json: /version: expected an integer from 0 to 4294967295, not 4294967297");
}

// 1e300 is infinite as a float: every score was one and the same.
TEST_F(ModelFolder, WithANormaliserThatIsNotFiniteIsRefused) {
  edit_json("\"job_scale\": [\n      1.0", "\"job_scale\": [\n      1e300");
  EXPECT_EQ(refusal(), "/model.json: /normaliser/job_scale: holds a number too large");
}

TEST_F(ModelFolder, WithAnUnknownKeyIsRefused) {
  edit_json("\"version\": 1", "\"version\": 1, \"verison\": 1");
  EXPECT_EQ(refusal(), "/model.json: /verison: unknown key (did you mean 'version'?)");
}

TEST_F(ModelFolder, WithWeightsCutOffIsRefused) {
  std::filesystem::resize_file(folder_ + "/weights.bin", 1000);
  EXPECT_EQ(refusal(), "/weights.bin: has 1000 bytes; expected 4032 (cut off?)");
}

TEST_F(ModelFolder, WithAlteredWeightsIsRefused) {
  std::fstream file(folder_ + "/weights.bin", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put('x');
  file.close();
  EXPECT_EQ(refusal(), "/weights.bin: does not match the checksum in model.json");
}

TEST_F(ModelFolder, WithoutFilesIsRefused) {
  std::filesystem::remove(folder_ + "/weights.bin");
  EXPECT_TRUE(refusal().starts_with("/weights.bin: ")) << refusal();
  EXPECT_FALSE(load_model(folder_ + "/nowhere"));
}

TEST_F(ModelFolder, WithParametersThatAreNotNumbersIsRefused) {
  TrainedModel model = some_model(NetworkKind::deepsets);
  model.parameters[7] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(save_model(model, folder_));
  EXPECT_EQ(refusal(), "/weights.bin: holds a parameter that is not finite");
}

TEST_F(ModelFolder, RunsAsAPolicyOfTheRegistry) {
  const JobTable jobs = test::some_jobs(3, 150);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const auto specs = parse_policy_list("rl:" + folder_ + ",rl:" + folder_ + "{sample=true}");
  ASSERT_TRUE(specs) << specs.error().to_string();
  std::vector<std::vector<test::Span>> runs;
  for (const PolicySpec& spec : *specs) {
    auto policy = PolicyRegistry::standard().make(spec, {.jobs = &jobs, .cluster = &cluster, .seed = 1});
    ASSERT_TRUE(policy) << policy.error().to_string();
    EXPECT_EQ(policy->name(), spec.name);
    EXPECT_FALSE(policy->clairvoyant());
    Engine engine(jobs, cluster);
    EXPECT_TRUE(simulate(engine, *policy));
    runs.push_back(test::spans_of(engine));
  }
  EXPECT_NE(runs[0], runs[1]);
  const auto missing = parse_policy_list("rl:" + folder_ + "/nowhere");
  EXPECT_FALSE(PolicyRegistry::standard().make(missing->front(), {.jobs = &jobs, .cluster = &cluster}));
}

TEST(RlPolicy, AModelThatKnowsTrueRunTimesSaysSo) {
  const JobTable jobs = test::some_jobs(3, 10);
  const TrainedModel model = some_model(NetworkKind::sc20_kernel, RuntimeKnowledge::oracle);
  EXPECT_TRUE(RlPolicy("x", model, jobs.works(), false, 0).clairvoyant());
}

// The policy in simulate() and the network in the training environment see the same states and do the same.
TEST(RlPolicy, DecidesAsInItsEnvironment) {
  const JobTable jobs = test::some_jobs(8, 250, true);
  Cluster cluster = Cluster::homogeneous(2, 4);
  cluster.vcs = {{.name = "a"}, {.name = "b"}};
  const Window window{.jobs = jobs.slice(0, jobs.size()), .history = {}};
  for (const auto& [name, mode] : action_mode_names) {
    const bool ranks = mode == ActionMode::preempt;
    TrainedModel model = some_model(ranks ? NetworkKind::rank : NetworkKind::deepsets);
    model.agenda.mode = mode;
    EnvOptions options;
    options.agenda = model.agenda;
    Env env(cluster, options);
    StepResult result = env.reset(window);
    Observation seen;
    std::vector<float> logits;
    while (!result.done()) {
      seen.shape(1, [&](std::uint32_t) { return std::pair{env.agenda().size(), env.agenda().group_count()}; });
      env.encode(seen.slot(0));
      forward_policy(model.network, model.parameters, model.normaliser, seen, logits);
      result = ranks ? env.step(logits) : env.step(best_action(logits));
    }
    EXPECT_EQ(test::run(jobs, cluster, RlPolicy("x", model, {}, false, 0)), test::spans_of(env.engine())) << name;
  }
}

// Without speeds an agent that reads them would choose between GPU types by nothing. On one type there is no choice.
TEST(RlPolicy, OfNodeSpeedsIsRefusedWhereNothingTellsOfSpeeds) {
  TrainedModel model = some_model(NetworkKind::index);
  model.agenda.choose_nodes = model.agenda.node_speeds = true;
  model.network = for_agenda(model.network, model.agenda);
  model.parameters = initial_parameters(model.network, Rng(1));
  const JobTable jobs = test::jobs_of_two_families(30);
  const RuntimeModel runtime = test::speeds_of_two_families(jobs);
  const auto run = [&](const Cluster& cluster, const RuntimeModel* speeds) {
    Engine engine(jobs, cluster, {}, {.runtime = speeds});
    RlPolicy policy("x", model, {}, false, 0);
    return simulate(engine, policy);
  };
  EXPECT_TRUE(run(test::cluster_of_two_types(), &runtime));
  EXPECT_TRUE(run(Cluster::homogeneous(4, 4), nullptr));
  try {
    run(test::cluster_of_two_types(), nullptr);
    FAIL() << "expected a refusal";
  } catch (const PolicyFailure& failure) {
    EXPECT_STREQ(failure.what(),
                 "was trained to choose GPU types by how fast jobs run there, of which this run tells nothing; add "
                 "--throughputs or --profile");
  }
}

TEST(RlPolicy, UntrainedItIsItsHeuristic) {
  const JobTable jobs = test::some_jobs(8, 250);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const Window window{.jobs = jobs.slice(0, jobs.size()), .history = {}};
  for (const auto& [kind_name, kind] : network_kind_names) {
    for (const auto& [name, heuristic] : heuristic_names) {
      TrainedModel model = some_model(kind, RuntimeKnowledge::oracle);
      model.agenda.heuristic = heuristic;
      if (kind == NetworkKind::rank) model.agenda.mode = ActionMode::preempt;
      if (contradiction(model.agenda)) continue;
      model.parameters = initial_parameters(model.network, Rng(1));
      EnvOptions options;
      options.agenda = model.agenda;
      Env env(cluster, options);
      for (StepResult result = env.reset(window); !result.done();) result = env.step(heuristic);
      EXPECT_EQ(test::run(jobs, cluster, RlPolicy("x", model, jobs.works(), false, 0)), test::spans_of(env.engine()))
          << kind_name << " over " << name;
    }
  }
}

// So that a search can go on from a linear model with hidden units added.
TEST(ScoreNetwork, HiddenUnitsComeBehindTheLinearScoreAndMoveIt) {
  for (const auto& [kind, size] : {std::pair{NetworkKind::index, 332u}, {NetworkKind::rank, 235u}}) {
    const NetworkSpec linear{.kind = kind}, corrected{.kind = kind, .hidden = 8};
    const NetworkLayout layout = layout_of(corrected);
    EXPECT_EQ(layout.policy_size, size);
    EXPECT_EQ(layout.correct1.offset, layout_of(linear).policy_size);
    const Observation seen = test::random_observation(6, 3);
    std::vector<float> plain, moved;
    std::vector<float> parameters = test::random_parameters(corrected, 5);
    forward_policy(linear, parameters, {}, seen, plain);
    forward_policy(corrected, parameters, {}, seen, moved);
    EXPECT_NE(moved, plain);
    const auto last = static_cast<std::ptrdiff_t>(layout.correct2.offset);
    std::fill(parameters.begin() + last, parameters.begin() + static_cast<std::ptrdiff_t>(layout.correct2.end()), 0.0f);
    forward_policy(corrected, parameters, {}, seen, moved);
    EXPECT_EQ(moved, plain);
    TrainedModel model = some_model(kind);
    model.network = corrected;
    model.agenda.mode = kind == NetworkKind::rank ? ActionMode::preempt : ActionMode::fit_or_wait;
    model.parameters = test::random_parameters(corrected, 5);
    const test::TempFolder folder;
    ASSERT_TRUE(save_model(model, folder.path()));
    EXPECT_EQ(load_model(folder.path())->network, corrected);
  }
}

// Tokens of places are scored by weights of their own, and no other token is.
TEST(ScoreNetwork, PlacesHaveTermsOfTheirOwn) {
  const NetworkSpec spec{.kind = NetworkKind::index, .places = true};
  const NetworkLayout layout = layout_of(spec);
  const NetworkLayout without = layout_of({.kind = NetworkKind::index});
  EXPECT_EQ(layout.place.offset, without.policy_size);
  EXPECT_EQ(layout.policy_size, without.policy_size + place_terms.size() + 1 + place_wait_features.size() + 1);

  Observation seen = test::random_observation(40, 6);
  for (std::uint32_t s = 0; s < seen.count(); ++s) {
    for (std::uint32_t i = 0; i < seen.tokens(s); ++i) {
      float& marker = seen.slot(s).jobs[std::size_t{i} * job_features + place_type];
      marker = s % 2 == 0 ? -1.25f : std::abs(marker);
    }
  }
  const Normaliser normaliser;
  std::vector<float> parameters = test::random_parameters(spec, 4), before, after;
  forward_policy(spec, parameters, normaliser, seen, before);
  const auto moved = [&](const DenseLayer& layer) {
    std::vector<float> others = parameters;
    for (std::size_t at = layer.offset; at < layer.end(); ++at) others[at] += 1;
    forward_policy(spec, others, normaliser, seen, after);
    std::vector<bool> states;
    for (std::uint32_t s = 0; s < seen.count(); ++s) {
      const std::size_t begin = seen.job_begin[s] + s, end = seen.job_begin[s + 1] + s + 1;
      states.push_back(!std::equal(before.begin() + static_cast<std::ptrdiff_t>(begin),
                                   before.begin() + static_cast<std::ptrdiff_t>(end),
                                   after.begin() + static_cast<std::ptrdiff_t>(begin)));
    }
    return states;
  };
  const std::vector<bool> of_place = moved(layout.place), of_jobs = moved(layout.score2);
  for (std::uint32_t s = 0; s < seen.count(); ++s) {
    EXPECT_EQ(of_place[s], s % 2 == 0) << s;
    EXPECT_EQ(of_jobs[s], s % 2 == 1) << s;
  }
}

TEST(ScoreNetwork, KernelOfSc20HasThePublishedNumberOfParameters) {
  const NetworkLayout layout = layout_of({.kind = NetworkKind::sc20_kernel});
  EXPECT_EQ(layout.policy_size, 961u + 1u);  // and the prior's weight
}

// The network kernel did not see 13 of the 22 terms of the index.
TEST(ScoreNetwork, KernelSeesAllThatTheIndexSees) {
  std::vector<std::uint8_t> of_job, of_cluster(index_wait_features.begin(), index_wait_features.end());
  for (const IndexTerm& term : index_terms) {
    of_job.push_back(term.feature);
    if (term.times == IndexTerm::job) of_job.push_back(term.by);
    if (term.times == IndexTerm::global) of_cluster.push_back(term.by);
  }
  const NetworkSpec spec{.kind = NetworkKind::kernel, .critic_width = 8};
  const std::vector<float> parameters = test::random_parameters(spec, 2);
  const Observation seen = test::random_observation(3, 3);
  std::vector<float> before, after;
  forward_policy(spec, parameters, {}, seen, before);
  for (const std::uint8_t feature : of_job) {
    Observation changed = seen;
    changed.jobs[feature] += 3.0f;
    forward_policy(spec, parameters, {}, changed, after);
    EXPECT_NE(after[0], before[0]) << int{feature};
    after[0] = before[0];
    EXPECT_EQ(after, before) << "another job's logit changed by feature " << int{feature};
  }
  for (const std::uint8_t feature : of_cluster) {
    Observation changed = seen;
    changed.global[global_features + feature] += 3.0f;  // of the second state
    forward_policy(spec, parameters, {}, changed, after);
    const std::size_t begin = seen.job_begin[1] + 1;
    const std::size_t wait = begin + seen.tokens(1);
    EXPECT_NE(after[begin], before[begin]) << int{feature};
    if (seen.mask[wait] != 0) {
      EXPECT_NE(after[wait], before[wait]) << int{feature};
    }
    EXPECT_EQ(after[0], before[0]);
  }
}

TEST(ScoreNetwork, TheOrderOfJobsDoesNotMatter) {
  for (const auto& [name, kind] : network_kind_names) {
    const NetworkSpec spec{.kind = kind, .width = 8, .heads = 2, .critic_width = 8};
    const std::vector<float> parameters = test::random_parameters(spec, 2);
    Observation seen = test::random_observation(1, 3);
    const std::uint32_t tokens = seen.tokens(0);
    ASSERT_GT(tokens, 1u);
    std::vector<float> before, after;
    forward_policy(spec, parameters, {}, seen, before);
    std::swap_ranges(seen.jobs.begin(), seen.jobs.begin() + job_features, seen.jobs.end() - job_features);
    std::swap(seen.prior[0], seen.prior[tokens - 1]);
    std::swap(seen.mask[0], seen.mask[tokens - 1]);
    forward_policy(spec, parameters, {}, seen, after);
    std::swap(after[0], after[tokens - 1]);
    for (std::uint32_t i = 0; i <= tokens; ++i) EXPECT_NEAR(before[i], after[i], 1e-5) << name;
  }
}

TEST(Actions, AreDrawnByTheirProbabilitiesAndNeverWhenMasked) {
  const std::vector<float> logits{std::log(1.0f), masked_logit, std::log(3.0f)};
  Rng rng(1);
  int counts[3] = {};
  for (int i = 0; i < 40'000; ++i) ++counts[sample_action(logits, rng)];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 10'000, 400);
  EXPECT_NEAR(log_probability(logits, 2), std::log(0.75), 1e-6);
  EXPECT_EQ(best_action(logits), 2u);
}

TEST(Crc32c, OfTheStandardsExample) { EXPECT_EQ(crc32c("123456789"), 0xE3069283u); }

}  // namespace
}  // namespace gpusched
