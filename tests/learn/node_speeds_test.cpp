// SPDX-License-Identifier: Apache-2.0
// AgendaOptions::node_speeds: the choice of a GPU type, what it tells of speeds, and waiting for a better one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/learn/env.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

using test::whole;

/// One node of 4 GPUs of each of three types, on which family "net" has speeds 1, 1/2 and 1/8.
class NodeSpeeds : public testing::Test {
 protected:
  void begin(const JobTable& jobs) {
    window_ = whole(jobs);
    cluster_ = Cluster::homogeneous(3, 4);
    cluster_.gpu_types = {"slow", "fast", "middle"};
    for (std::uint32_t node = 0; node < 3; ++node) cluster_.nodes[node].gpu_type = node;
    runtime_ = RuntimeModel(static_cast<std::uint32_t>(jobs.families().size()), 3);
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      if (jobs.families()[jobs.family(JobId{i})] != "net") continue;
      runtime_.set(jobs.family(JobId{i}), 0, reference_rate / 8);
      runtime_.set(jobs.family(JobId{i}), 2, reference_rate / 2);
    }
    EnvOptions options;
    options.agenda = {.knowledge = RuntimeKnowledge::oracle, .choose_nodes = true, .node_speeds = true};
    options.weights = {};
    options.weights[reward_jct] = 1;
    options.inputs.runtime = &runtime_;
    env_.emplace(cluster_, options);
    env_->reset(window_);
  }

  [[nodiscard]] const Agenda& agenda() const { return env_->agenda(); }

  /// Chooses the job of that number. Precondition: the choice of jobs is open.
  void choose(std::uint32_t job) {
    std::uint32_t token = 0;
    while (agenda().job(token) != JobId{job}) ++token;
    env_->step(token);
  }

  [[nodiscard]] Observation seen() const {
    Observation seen;
    seen.shape(1, [&](std::uint32_t) { return std::pair{agenda().size(), agenda().group_count()}; });
    env_->encode(seen.slot(0));
    return seen;
  }

  [[nodiscard]] std::vector<std::uint32_t> types_of(std::uint32_t job) const {
    std::vector<std::uint32_t> types;
    const View view = env_->engine().view();
    view.for_each_grant(JobId{job},
                        [&](const Grant& grant) { types.push_back(view.cluster().node_gpu_type(grant.node)); });
    return types;
  }

  Window window_;
  Cluster cluster_;
  RuntimeModel runtime_;
  std::optional<Env> env_;
};

TEST_F(NodeSpeeds, TheTokensAreTheTypesTheFastestFirst) {
  begin(test::table_of({{.submit = 0, .work = 100, .gpus = 2, .family = "net"},
                        {.submit = 0, .work = 50, .gpus = 1, .family = "any"},
                        {.submit = 90, .work = 50, .gpus = 1, .family = "any"}}));
  EXPECT_FALSE(agenda().placing());
  choose(0);
  ASSERT_TRUE(agenda().placing());
  ASSERT_EQ(agenda().size(), 3u);
  EXPECT_EQ(agenda().heuristic_action(Heuristic::sjf), 0u);
  const Observation shown = seen();
  const auto value = [&](std::uint32_t token, PlaceFeature feature) {
    return static_cast<double>(shown.jobs[std::size_t{token} * job_features + feature]);
  };
  const double speeds[]{1, 0.5, 0.125};
  const double types[]{1, 2, 0};
  for (std::uint32_t token = 0; token < 3; ++token) {
    EXPECT_NEAR(value(token, place_log_here), std::log1p(100 / speeds[token]) / 10, 1e-4);
    EXPECT_NEAR(value(token, place_log_best), std::log1p(100.0) / 10, 1e-4);
    EXPECT_NEAR(value(token, place_log_gpus), std::log1p(2.0) / 5, 1e-4);
    EXPECT_NEAR(value(token, place_rate), std::log(speeds[token]), 1e-3);
    EXPECT_NEAR(value(token, place_speed), std::log(speeds[token]), 1e-3);
    EXPECT_EQ(value(token, place_free_rate), 0);
    EXPECT_EQ(value(token, place_type_free), 1);
    EXPECT_EQ(value(token, place_log_until), 0);
    EXPECT_EQ(value(token, place_one_node), 1);
    EXPECT_EQ(value(token, place_type), -1 - types[token] / 4);
    EXPECT_EQ(value(token, place_keener), token == 0 ? 0 : 1);  // "any" is as fast everywhere
  }
  EXPECT_TRUE(agenda().allowed(3));
  EXPECT_EQ(shown.mask, (std::vector<std::uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(shown.prior, (std::vector<float>{0, -1, -2, -1}));
  env_->step(1);
  EXPECT_EQ(types_of(0), std::vector<std::uint32_t>{2});
}

TEST_F(NodeSpeeds, KnownTimesAreThoseOfTheBestType) {
  begin(test::table_of({{.submit = 0, .work = 800, .gpus = 1, .gpu_spec = "slow", .family = "net"},
                        {.submit = 0, .work = 50, .gpus = 1, .family = "any"},
                        {.submit = 90, .work = 50, .gpus = 1, .family = "any"}}));
  const Observation jobs = seen();
  EXPECT_NEAR(static_cast<double>(jobs.jobs[log_known]), std::log1p(6400.0) / 10, 1e-4);  // it may use no other
  choose(0);
  ASSERT_EQ(agenda().size(), 1u);  // a single type, or WAIT
  const Observation place = seen();
  EXPECT_EQ(place.jobs[place_rate], 0);
  EXPECT_NEAR(static_cast<double>(place.jobs[place_speed]), std::log(0.125), 1e-3);
}

TEST_F(NodeSpeeds, WaitPutsTheJobOffUntilTheNextEventAndLeavesTheOthers) {
  begin(test::table_of({{.submit = 0, .work = 100, .gpus = 4, .family = "net"},
                        {.submit = 10, .work = 60, .gpus = 4, .family = "net"},
                        {.submit = 10, .work = 10, .gpus = 1, .family = "net"}}));
  choose(0);
  env_->step(0);  // it holds the fast type until 100 s
  ASSERT_EQ(env_->now(), whole_seconds(10));
  choose(1);
  ASSERT_TRUE(agenda().placing());
  const Observation shown = seen();
  ASSERT_EQ(agenda().size(), 2u);  // middle and slow
  EXPECT_NEAR(static_cast<double>(shown.jobs[place_free_rate]), std::log(0.5), 1e-3);
  EXPECT_NEAR(static_cast<double>(shown.jobs[place_log_until]), std::log1p(90.0) / 10, 1e-4);
  env_->step(2);  // WAIT
  EXPECT_EQ(env_->now(), whole_seconds(10));
  ASSERT_FALSE(agenda().placing());
  for (std::uint32_t token = 0; token < agenda().size(); ++token) {
    EXPECT_EQ(agenda().allowed(token), agenda().job(token) == JobId{2});
  }
  choose(2);
  env_->step(0);  // on the middle type: 20 s
  EXPECT_EQ(env_->now(), whole_seconds(30));
  choose(1);  // anew after the event
  env_->step(agenda().size());
  EXPECT_EQ(env_->now(), whole_seconds(100));
  ASSERT_TRUE(agenda().placing());                  // a single job, which has to start
  EXPECT_FALSE(agenda().allowed(agenda().size()));  // nothing else will happen
  const StepResult end = env_->step(0);
  EXPECT_TRUE(end.terminated);
  EXPECT_EQ(env_->engine().end(JobId{1}), whole_seconds(160));
}

TEST_F(NodeSpeeds, AJobWithRoomOnSeveralTypesTogetherAloneWaitsForOne) {
  begin(test::table_of({{.submit = 0, .work = 100, .gpus = 2, .family = "any"},
                        {.submit = 0, .work = 100, .gpus = 2, .family = "any"},
                        {.submit = 0, .work = 100, .gpus = 2, .family = "any"},
                        {.submit = 1, .work = 10, .gpus = 4, .family = "any"},
                        {.submit = 2, .work = 10, .gpus = 1, .family = "any"}}));
  for (std::uint32_t job = 0; job < 3; ++job) {
    choose(job);
    std::uint32_t token = 0;
    while (seen().jobs[std::size_t{token} * job_features + place_type] != -1.0f - 0.25f * static_cast<float>(job))
      ++token;
    env_->step(token);
  }
  EXPECT_EQ(env_->now(), whole_seconds(1));
  choose(3);  // it fits no type alone
  EXPECT_EQ(env_->now(), whole_seconds(2));
  EXPECT_EQ(env_->engine().view().phase(JobId{3}), JobPhase::pending);
}

TEST_F(NodeSpeeds, AGangThatNoTypeHoldsStartsOnSeveral) {
  begin(test::table_of({{.submit = 0, .work = 100, .gpus = 12, .family = "net"},
                        {.submit = 1, .work = 10, .gpus = 1, .family = "net"}}));
  choose(0);
  EXPECT_EQ(agenda().job(0), JobId{1});  // there was nothing to choose for the gang
  EXPECT_EQ(env_->engine().first_start(JobId{0}), Time{});
  EXPECT_EQ(env_->engine().end(JobId{0}), whole_seconds(800));  // as slow as on the slowest of the three
}

// Where the first type is the best for all and jobs have one GPU, the fastest first is what the placement rule does.
TEST(NodeSpeedsHeuristic, IsThePlacementFastest) {
  std::vector<test::Row> rows;
  Rng rng(4);
  for (std::int64_t i = 0; i < 300; ++i) {
    const auto work = 1 + static_cast<std::int64_t>(rng.lognormal(4, 1.5));
    rows.push_back({.submit = i * 12, .work = work, .gpus = 1, .family = i % 2 == 0 ? "even" : "odd"});
  }
  const JobTable jobs = test::table_of(rows);
  const Window window = whole(jobs);
  const Cluster cluster = test::cluster_of_two_types();
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()), 2);
  runtime.set(jobs.family(JobId{0}), 1, reference_rate / 2);
  runtime.set(jobs.family(JobId{1}), 1, reference_rate / 9);
  std::vector<decltype(test::spans_of(std::declval<const Engine&>()))> spans;
  int places = 0;
  for (const bool choose : {false, true}) {
    EnvOptions options;
    options.agenda = {.knowledge = RuntimeKnowledge::oracle, .choose_nodes = choose, .node_speeds = choose};
    options.engine.placement = Placement::fastest;
    options.inputs.runtime = &runtime;
    Env env(cluster, options);
    for (StepResult result = env.reset(window); !result.done(); result = env.step(Heuristic::sjf)) {
      places += env.agenda().placing() ? 1 : 0;
    }
    spans.push_back(test::spans_of(env.engine()));
  }
  EXPECT_EQ(spans[0], spans[1]);
  EXPECT_GT(places, 200);
}

// Whatever is chosen, every job ends, and the rewards add up to the metrics although speeds differ.
TEST(NodeSpeedsRandom, ChoicesAreLegalAndRewardsAddUp) {
  const JobTable jobs = test::jobs_of_two_families(300);
  const Window window = whole(jobs);
  const Cluster cluster = test::cluster_of_two_types();
  const RuntimeModel runtime = test::speeds_of_two_families(jobs);
  EnvOptions options;
  options.agenda = {.knowledge = RuntimeKnowledge::oracle, .choose_nodes = true, .node_speeds = true};
  options.inputs.runtime = &runtime;
  Env env(cluster, options);
  Rng rng(3);
  for (StepResult result = env.reset(window); !result.done();) {
    std::uint32_t action = 0;
    do action = static_cast<std::uint32_t>(rng.below(env.agenda().size() + 1));
    while (!env.agenda().allowed(action));
    result = env.step(action);
  }
  ASSERT_TRUE(env.engine().all_finished());
  double jct = 0, excess = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const double own = to_seconds(env.engine().end(JobId{i}) - jobs.submit(JobId{i}));
    jct += own;
    excess += std::max(1.0, own / std::max(to_seconds(jobs.work(JobId{i})), slowdown_bound_s)) - 1;
  }
  EXPECT_NEAR(-env.totals()[reward_jct], jct, 1e-6 * jct);
  EXPECT_NEAR(-env.totals()[reward_bounded_slowdown], excess, 1e-6 * excess);
}

}  // namespace
}  // namespace gpusched
