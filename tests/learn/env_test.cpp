// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/orders/sjf.hpp"
#include "tests/learn/learning_support.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {
namespace {

using test::random_action;
using test::some_jobs;
using test::whole;

std::vector<Window> windows_of(const JobTable& jobs, const WindowOptions& options, Split split = Split::train) {
  auto windows = make_windows(jobs, options, split);
  EXPECT_TRUE(windows) << windows.error().to_string();
  return *std::move(windows);
}

// Runs an episode to its end; `choose` maps an agenda to an action.
template <class Choose>
RewardVector play(Env& env, const Window& window, Choose choose) {
  StepResult result = env.reset(window);
  while (!result.done()) result = env.step(choose(env.agenda()));
  return env.totals();
}

struct Metrics {
  double jct = 0, wait = 0, slowdown = 0;
};

Metrics metrics_of(const Engine& engine, std::uint32_t first) {
  Metrics sums;
  for (std::uint32_t i = first; i < engine.jobs().size(); ++i) {
    const JobId job{i};
    const double jct = to_seconds(engine.end(job) - engine.jobs().submit(job));
    const double run = to_seconds(engine.jobs().work(job));
    sums.jct += jct;
    sums.wait += jct - to_seconds(engine.ran(job));
    sums.slowdown += std::max(1.0, jct / std::max(run, slowdown_bound_s)) - 1;
  }
  return sums;
}

TEST(FastLog, IsCloseToTheLogarithmAndContinuous) {
  for (double x = 0; x < 1e8; x = x * 1.07 + 0.01) {
    EXPECT_NEAR(static_cast<double>(detail::fast_log1p(static_cast<float>(x))), std::log1p(x),
                1e-4 + 1e-6 * x / (1 + x));
  }
}

TEST(FastLog, FourSideBySideHaveTheBitsOfOne) {
  for (const std::size_t count : {1, 4, 7, 16}) {
    std::array<float, 16> floats{};
    for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = 0.37f * static_cast<float>(i * i * i * i * i);
    const std::array<float, 16> before = floats;
    detail::fast_log1p_each(floats, count, 0.1f);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const bool is_replaced = i < (count + 3) / 4 * 4;
      EXPECT_EQ(floats[i], is_replaced ? detail::fast_log1p(before[i]) * 0.1f : before[i]) << i << " of " << count;
    }
  }
}

class EveryMode : public testing::TestWithParam<ActionMode> {};

TEST_P(EveryMode, RewardsAddUpToTheMetrics) {
  const JobTable jobs = some_jobs(7, 300);
  const Window window =
      windows_of(jobs, {.jobs = 250, .warm_up_jobs = 50, .train_fraction = 1, .validation_fraction = 0}).front();
  const Cluster cluster = Cluster::homogeneous(2, 4);
  EnvOptions options;
  options.agenda.mode = GetParam();
  options.agenda.knowledge = RuntimeKnowledge::oracle;
  options.weights[reward_fragmentation] = 1;
  Env env(cluster, options);
  Rng rng(3);
  const RewardVector totals = play(env, window, [&](const Agenda& a) { return random_action(a, rng); });
  const Metrics metrics = metrics_of(env.engine(), window.first_scored);
  EXPECT_NEAR(-totals[reward_jct], metrics.jct, 1e-9 * metrics.jct);
  EXPECT_NEAR(-totals[reward_wait], metrics.wait, 1e-9 * metrics.jct);
  EXPECT_NEAR(-totals[reward_bounded_slowdown], metrics.slowdown, 1e-8 * metrics.slowdown);
  EXPECT_GT(-totals[reward_idle], 0);
  EXPECT_GT(-totals[reward_fragmentation], 0);
  EXPECT_LT(totals[reward_energy], 0);

  std::vector<double> sum(jobs.users().size()), count(jobs.users().size());
  for (std::uint32_t i = window.first_scored; i < window.jobs.size(); ++i) {
    const JobId job{i};
    const double jct = to_seconds(env.engine().end(job) - window.jobs.submit(job));
    sum[window.jobs.user(job)] += std::max(1.0, jct / std::max(to_seconds(window.jobs.work(job)), slowdown_bound_s));
    count[window.jobs.user(job)] += 1;
  }
  double x = 0, squares = 0, users = 0;
  for (std::size_t u = 0; u < sum.size(); ++u) {
    if (count[u] == 0) continue;
    x += sum[u] / count[u];
    squares += sum[u] / count[u] * sum[u] / count[u];
    users += 1;
  }
  EXPECT_NEAR(totals[reward_fairness] + 1, x * x / (users * squares), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Env, EveryMode,
                         testing::ValuesIn({ActionMode::fit_or_wait, ActionMode::select_blocking, ActionMode::backfill,
                                            ActionMode::reserve, ActionMode::inspect}),
                         [](const auto& test) { return std::string(name_of(action_mode_names, test.param)); });

TEST(Env, TheHeuristicsActionsAreTheHeuristic) {
  const JobTable jobs = some_jobs(1, 400, true);
  Cluster cluster = Cluster::homogeneous(2, 4);
  const Window window = whole(jobs);
  const auto spans_by = [&](ActionMode mode, Heuristic heuristic) {
    EnvOptions options;
    options.agenda = {.mode = mode, .knowledge = RuntimeKnowledge::oracle, .heuristic = heuristic};
    Env env(cluster, options);
    play(env, window, [&](const Agenda& a) { return a.heuristic_action(heuristic); });
    return test::spans_of(env.engine());
  };
  EXPECT_EQ(spans_by(ActionMode::fit_or_wait, Heuristic::sjf), test::run(jobs, cluster, Sjf(true)));
  EXPECT_EQ(spans_by(ActionMode::inspect, Heuristic::sjf), test::run(jobs, cluster, Sjf(true)));
  EXPECT_EQ(spans_by(ActionMode::select_blocking, Heuristic::fcfs), test::run(jobs, cluster, Fifo{}));
}

TEST(Env, ThePriorOrdersTheTokensAsTheHeuristic) {
  const JobTable jobs = some_jobs(2, 300);
  const Cluster cluster = Cluster::pool(6);
  const Window window = whole(jobs);
  for (const auto& [name, heuristic] : heuristic_names) {
    EnvOptions options;
    options.agenda = {
        .mode = ActionMode::select_blocking, .knowledge = RuntimeKnowledge::oracle, .heuristic = heuristic};
    if (contradiction(options.agenda)) continue;  // an order of mode preempt
    VectorEnv env({&window, 1}, {}, cluster, {.env = options, .environments = 1});
    Rng rng(5);
    for (const Batch* batch = &env.reset(0); batch->ended.empty();) {
      const Observation& seen = batch->observation;
      const Agenda& agenda = env.env(0).agenda();
      std::uint32_t best = 0;
      for (std::uint32_t i = 1; i < agenda.size(); ++i) best = seen.prior[i] > seen.prior[best] ? i : best;
      ASSERT_EQ(best, agenda.heuristic_action(heuristic)) << name;
      const std::uint32_t action = random_action(agenda, rng);
      batch = &env.step({&action, 1});
    }
  }
}

TEST(Env, WaitingIsOfferedOnlyWhenThereIsSomethingToWaitFor) {
  // One job on an empty cluster and nothing to come: it starts without being asked about.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 10}});
  const Window window = whole(jobs);
  const Cluster cluster = Cluster::pool(2);
  Env alone(cluster, {});
  EXPECT_TRUE(alone.reset(window).terminated);
  EXPECT_DOUBLE_EQ(alone.totals()[reward_jct], -10);
}

TEST(Env, AStarvedJobHoldsTheOthersBack) {
  // The wide job waits while narrow ones keep coming; the cap stops them after 100 s.
  std::vector<test::Row> rows{{.submit = 0, .work = 50, .gpus = 1}, {.submit = 1, .work = 10, .gpus = 2}};
  for (std::int64_t t = 2; t < 600; t += 20) rows.push_back({.submit = t, .work = 50, .gpus = 1});
  const JobTable jobs = test::table_of(rows);
  const Cluster cluster = Cluster::pool(2);
  const Window window = whole(jobs);
  const auto start_of_wide = [&](Time cap) {
    EnvOptions options;
    options.agenda = {.knowledge = RuntimeKnowledge::none, .heuristic = Heuristic::fcfs, .starvation = cap};
    Env env(cluster, options);
    StepResult result = env.reset(window);
    while (!result.done()) {  // prefers anything but the wide job, and never waits
      std::uint32_t action = env.agenda().heuristic_action(Heuristic::fcfs);
      for (std::uint32_t i = 0; i < env.agenda().size(); ++i) {
        if (env.agenda().allowed(i) && env.agenda().job(i) != JobId{1}) action = i;
      }
      result = env.step(action);
    }
    return to_seconds(env.engine().first_start(JobId{1}));
  };
  EXPECT_GT(start_of_wide(Time::max()), 500);
  EXPECT_LT(start_of_wide(whole_seconds(100)), 200);
}

// At 1 s, one GPU of four is free until 100 s. Jobs 1 and 2 do not fit, 3 and 4 do.
class Reserve : public testing::Test {
 protected:
  Reserve() {
    options_.agenda = {
        .mode = ActionMode::reserve, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::fcfs};
    env_.emplace(cluster_, options_);
    env_->reset(window_);
  }

  // The numbers of the allowed actions; 4, or one less after each start, is WAIT.
  [[nodiscard]] std::vector<std::uint32_t> allowed() const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t i = 0; i <= env_->agenda().size(); ++i) {
      if (env_->agenda().allowed(i)) result.push_back(i);
    }
    return result;
  }

  const JobTable jobs_ = test::table_of({{.submit = 0, .work = 100, .gpus = 3},
                                         {.submit = 1, .work = 50, .gpus = 4},
                                         {.submit = 1, .work = 10, .gpus = 2},
                                         {.submit = 1, .work = 200, .gpus = 1},
                                         {.submit = 1, .work = 50, .gpus = 1}});
  const Window window_ = whole(jobs_);
  const Cluster cluster_ = Cluster::pool(4);
  EnvOptions options_;
  std::optional<Env> env_;
};

TEST_F(Reserve, AnyWaitingJobMayBeTheHeadAndWaitingIsNoChoiceYet) {
  EXPECT_EQ(allowed(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(Reserve, BehindTheHeadRunsWhatEndsBeforeItsReservation) {
  EXPECT_EQ(env_->step(0).seconds, 0);                       // job 1 needs all four at 100 s
  EXPECT_EQ(allowed(), (std::vector<std::uint32_t>{3, 4}));  // job 3 would run until 201 s
}

TEST_F(Reserve, BehindTheHeadRunsWhatItLeaves) {
  EXPECT_EQ(env_->step(1).seconds, 0);  // job 2 needs two at 100 s
  EXPECT_EQ(allowed(), (std::vector<std::uint32_t>{2, 3, 4}));
}

TEST_F(Reserve, TheHeadHoldsForOneInstant) {
  env_->step(0);
  EXPECT_EQ(env_->step(4).seconds, 99);  // WAIT until job 0 ends
  EXPECT_EQ(env_->agenda().size(), 4u);
  EXPECT_EQ(allowed(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(Reserve, AStartLeavesTheHeadInItsPlace) {
  EXPECT_EQ(env_->step(2).seconds, 99);  // starts job 3; nothing is free until 100 s
  EXPECT_EQ(env_->engine().first_start(JobId{3}), whole_seconds(1));
  EXPECT_EQ(env_->agenda().size(), 3u);
  env_->step(0);  // job 1 again: all four are free at 201 s
  EXPECT_EQ(allowed(), (std::vector<std::uint32_t>{1, 2, 3}));
  env_->step(1);                                             // job 2 starts before it
  EXPECT_EQ(allowed(), (std::vector<std::uint32_t>{1, 2}));  // job 4, WAIT
}

// Nodes of 4, 8 and 8 GPUs, the last of another type: a job of 2 may go to any kind.
Cluster mixed_cluster() {
  Cluster cluster = Cluster::homogeneous(3, 8);
  cluster.nodes[0].gpus = 4;
  cluster.gpu_types.emplace_back("other");
  cluster.nodes[2].gpu_type = 1;
  return cluster;
}

TEST(Env, TheNodeOfAJobIsASecondChoice) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 10, .gpus = 2}, {.submit = 0, .work = 9, .gpus = 12}});
  const Window window = whole(jobs);
  const Cluster cluster = mixed_cluster();
  EnvOptions options;
  options.agenda = {.mode = ActionMode::fit_or_wait, .choose_nodes = true};
  for (std::uint32_t kind = 0; kind < 3; ++kind) {
    Env env(cluster, options);
    env.reset(window);
    ASSERT_EQ(env.agenda().size(), 2u);
    EXPECT_FALSE(env.agenda().placing());
    const StepResult chosen = env.step(0);
    EXPECT_EQ(chosen.seconds, 0);
    ASSERT_TRUE(env.agenda().placing());
    ASSERT_EQ(env.agenda().size(), 3u);  // fullest first: 4 idle, then 8 and 8 of the other type
    EXPECT_EQ(env.agenda().job(kind), JobId{0});
    EXPECT_FALSE(env.agenda().allowed(3));  // no WAIT
    EXPECT_EQ(env.agenda().heuristic_action(Heuristic::sjf), 0u);
    std::vector<float> rows(3 * job_features), prior(4), groups(4 * group_features), global(global_features);
    std::vector<std::uint8_t> mask(4);
    env.encode({rows.data(), prior.data(), mask.data(), groups.data(), global.data()});
    EXPECT_EQ(mask, (std::vector<std::uint8_t>{1, 1, 1, 0}));
    EXPECT_GT(prior[0], prior[1]);
    EXPECT_NEAR(global[log_hidden], std::log1p(1.0) / 5, 1e-4);  // the other job, fewer than there are kinds of node
    EXPECT_FLOAT_EQ(rows[0 * job_features + gpus_over_free], 2.0f / 4 / 4);
    EXPECT_FLOAT_EQ(rows[1 * job_features + log_earliest_start], -1);
    EXPECT_FLOAT_EQ(rows[2 * job_features + log_earliest_start], -1.25f);
    env.step(kind);
    std::vector<std::uint32_t> nodes;
    env.engine().view().for_each_grant(JobId{0}, [&](const Grant& grant) { nodes.push_back(index(grant.node)); });
    EXPECT_EQ(nodes, (std::vector<std::uint32_t>{kind}));
  }
}

TEST(Env, UntrainedTheSecondChoiceChangesNoStart) {
  const JobTable jobs = some_jobs(1, 400);
  const Cluster cluster = Cluster::homogeneous(12, 4);
  const Window window = whole(jobs);
  for (const ActionMode mode : {ActionMode::fit_or_wait, ActionMode::select_blocking}) {
    std::vector<std::vector<test::Span>> spans;
    int second_choices = 0;
    for (const bool choose : {false, true}) {
      EnvOptions options;
      options.agenda = {.mode = mode, .knowledge = RuntimeKnowledge::oracle, .choose_nodes = choose};
      Env env(cluster, options);
      play(env, window, [&](const Agenda& a) {
        second_choices += a.placing() ? 1 : 0;
        return a.heuristic_action(Heuristic::sjf);
      });
      spans.push_back(test::spans_of(env.engine()));
    }
    EXPECT_EQ(spans[0], spans[1]);
    EXPECT_GT(second_choices, 50);
  }
}

TEST(Env, RandomSecondChoicesAreLegal) {
  const JobTable jobs = some_jobs(9, 300);
  const Cluster cluster = mixed_cluster();
  const Window window = whole(jobs);
  for (const auto& [name, mode] : action_mode_names) {
    EnvOptions options;
    options.agenda = {.mode = mode, .knowledge = RuntimeKnowledge::oracle, .choose_nodes = true};
    if (contradiction(options.agenda)) continue;
    Env env(cluster, options);
    Rng rng(3);
    const RewardVector totals = play(env, window, [&](const Agenda& a) { return random_action(a, rng); });
    EXPECT_TRUE(env.engine().all_finished()) << name;
    EXPECT_NEAR(-totals[reward_jct], metrics_of(env.engine(), 0).jct, 1e-6 * metrics_of(env.engine(), 0).jct) << name;
  }
}

TEST(Env, LongQueuesKeepTheUnionOfOrders) {
  const JobTable jobs = some_jobs(3, 400);
  const Cluster cluster = Cluster::pool(4);
  const Window window = whole(jobs);
  EnvOptions options;
  options.agenda = {.mode = ActionMode::select_blocking, .knowledge = RuntimeKnowledge::oracle, .max_jobs = 16};
  Env env(cluster, options);
  StepResult result = env.reset(window);
  std::uint32_t longest = 0;
  while (!result.done()) {
    longest = std::max(longest, env.agenda().waiting_count());
    ASSERT_LE(env.agenda().size(), 16u);
    // The shortest job of the whole queue must be among the tokens, and the oldest is the first of them.
    const OracleView view = env.engine().view();
    Time shortest = Time::max();
    for (const JobId job : view.queue(0)) shortest = std::min(shortest, view.work(job));
    const std::uint32_t chosen = env.agenda().heuristic_action(Heuristic::sjf);
    ASSERT_EQ(view.work(env.agenda().job(chosen)), shortest);
    ASSERT_EQ(env.agenda().job(0), view.queue(0).front());
    result = env.step(env.agenda().heuristic_action(Heuristic::fcfs));
  }
  EXPECT_GT(longest, 32u);
}

TEST(Env, ACopyGoesOnExactly) {
  const JobTable jobs = some_jobs(4, 200);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const Window window = whole(jobs);
  Env env(cluster, {});
  env.reset(window);
  Rng rng(9);
  for (int i = 0; i < 60; ++i) env.step(random_action(env.agenda(), rng));
  Env copy = env;
  Rng rng_copy = rng;
  const auto finish = [](Env& e, Rng& r) {
    StepResult result;
    while (!result.done()) result = e.step(random_action(e.agenda(), r));
    return e.totals();
  };
  const RewardVector first = finish(env, rng);
  EXPECT_EQ(first, finish(copy, rng_copy));
}

TEST(Env, ARewardOfOnesOwnReplacesTheWeightedSum) {
  const JobTable jobs = some_jobs(4, 200);
  const Window window =
      windows_of(jobs, {.jobs = 150, .warm_up_jobs = 50, .train_fraction = 1, .validation_fraction = 0}).front();
  const Cluster cluster = Cluster::homogeneous(2, 4);
  EnvOptions options;
  options.weights = {0, 1, 0, 0, 0, 0, 0};
  // The negated completion times, job by job as they finish, and the weighted sum beside them.
  options.reward = [](const RewardInput& step) {
    double sum = 0;
    for (const JobId job : step.finished) {
      EXPECT_LE(step.engine.end(job), step.engine.view().now());
      sum -= to_seconds(step.engine.end(job) - step.engine.jobs().submit(job));
    }
    return sum + 1000 * step.result.reward[reward_wait];
  };
  Env env(cluster, options);
  StepResult result = env.reset(window, 0.5);
  double sum = result.scalar;  // of what happened before the first choice
  while (!result.done()) {
    result = env.step(env.agenda().heuristic_action(Heuristic::sjf));
    sum += result.scalar;
  }
  const Metrics metrics = metrics_of(env.engine(), window.first_scored);
  EXPECT_NEAR(sum, -0.5 * (metrics.jct + 1000 * metrics.wait), 1e-9 * 1000 * metrics.jct);
  // The components are what they were.
  EXPECT_NEAR(-env.totals()[reward_wait], metrics.wait, 1e-9 * metrics.jct);

  // Several threads call it, each for its own environments.
  const auto rewards = [&](std::uint32_t threads) {
    const std::vector<Window> windows{window};
    VectorEnv envs(windows, {}, cluster, {.env = options, .environments = 4, .threads = threads});
    envs.reset(1);
    std::vector<double> scalars;
    for (int i = 0; i < 100; ++i) {
      for (const StepResult& step : envs.step(Heuristic::saf).results) scalars.push_back(step.scalar);
    }
    return scalars;
  };
  EXPECT_EQ(rewards(1), rewards(2));
}

TEST(Env, DiscountedRewardIsTheExactIntegral) {
  // Two jobs on one GPU: the second waits 100 s, which at beta counts (1 - exp(-100 beta)) / beta.
  const JobTable jobs =
      test::table_of({{.submit = 0, .work = 100}, {.submit = 0, .work = 5}, {.submit = 0, .work = 7}});
  const Cluster cluster = Cluster::pool(1);
  EnvOptions options;
  options.agenda = {.mode = ActionMode::select_blocking, .knowledge = RuntimeKnowledge::oracle};
  options.weights = {0, 1, 0, 0, 0, 0, 0};
  options.discount_per_s = 0.01;
  Env env(cluster, options);
  const Window window = whole(jobs);
  env.reset(window);
  StepResult result = env.step(0);
  EXPECT_EQ(result.seconds, 0);         // nothing has passed: the next choice comes at once
  const StepResult last = env.step(0);  // then the last one follows without a choice
  EXPECT_TRUE(last.terminated);
  const double until_100 = (1 - std::exp(-1.0)) / 0.01;
  const double until_105 = (1 - std::exp(-1.05)) / 0.01;
  EXPECT_NEAR(last.scalar, -(until_100 + until_105), 1e-9);
  EXPECT_NEAR(last.reward[reward_wait], -205, 1e-9);
}

class EveryAutoreset : public testing::TestWithParam<AutoresetMode> {};

// One step after another, what VectorEnv reports must be what single environments give.
TEST_P(EveryAutoreset, FollowsGymnasium) {
  const JobTable jobs = some_jobs(5, 400);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const std::vector<Window> windows = windows_of(jobs, {.jobs = 40, .stride = 20, .truncate = true});
  VectorEnv env(windows, {}, cluster, {.autoreset = GetParam(), .environments = 4});
  const Batch* batch = &env.reset(11);
  Rng rng(1);
  std::vector<std::uint32_t> actions(4);
  int ended = 0;
  for (int step = 0; step < 400; ++step) {
    std::vector<std::uint8_t> was_done(4);
    for (std::uint32_t e = 0; e < 4; ++e) {
      was_done[e] = env.is_done(e) ? 1 : 0;
      actions[e] = was_done[e] != 0 ? no_index : random_action(env.env(e).agenda(), rng);
    }
    batch = &env.step(actions);
    for (std::uint32_t e = 0; e < 4; ++e) {
      if (was_done[e] != 0) {
        EXPECT_EQ(batch->results[e].scalar, 0);
        EXPECT_FALSE(batch->results[e].done());
        EXPECT_EQ(env.is_done(e), GetParam() == AutoresetMode::disabled);
      }
    }
    for (std::size_t i = 0; i < batch->ended.size(); ++i, ++ended) {
      const std::uint32_t e = batch->ended[i];
      EXPECT_NE(batch->results[e].terminated, batch->results[e].truncated);
      EXPECT_EQ(env.is_done(e), GetParam() != AutoresetMode::same_step);
      if (GetParam() != AutoresetMode::same_step) continue;
      // The last observation of the old episode: nothing may be chosen any more.
      ASSERT_EQ(batch->final_observation.count(), batch->ended.size());
      const auto count = static_cast<std::uint32_t>(i);
      const std::uint8_t* mask =
          batch->final_observation.mask.data() + batch->final_observation.job_begin[count] + count;
      for (std::uint32_t t = 0; t <= batch->final_observation.tokens(count); ++t) EXPECT_EQ(mask[t], 0);
    }
    if (GetParam() == AutoresetMode::disabled && env.is_done(0)) env.reset_done();
  }
  EXPECT_GT(ended, 4);
}

INSTANTIATE_TEST_SUITE_P(VectorEnv, EveryAutoreset,
                         testing::Values(AutoresetMode::next_step, AutoresetMode::same_step, AutoresetMode::disabled));

std::vector<double> rollout(VectorEnv& env, const Batch* batch, int steps, Rng& rng) {
  std::vector<double> seen;
  std::vector<std::uint32_t> actions(env.size());
  for (int step = 0; step < steps; ++step) {
    for (std::uint32_t e = 0; e < env.size(); ++e) actions[e] = random_action(env.env(e).agenda(), rng);
    batch = &env.step(actions);
    for (const StepResult& result : batch->results) seen.push_back(result.scalar);
    for (const float x : batch->observation.jobs) seen.push_back(static_cast<double>(x));
    for (const float x : batch->observation.privileged) seen.push_back(static_cast<double>(x));
  }
  return seen;
}

TEST(VectorEnv, ThreadsDoNotChangeResults) {
  const JobTable jobs = some_jobs(6, 400);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const std::vector<Window> windows = windows_of(jobs, {.jobs = 60, .stride = 30});
  const auto with_threads = [&](std::uint32_t threads) {
    VectorEnv env(windows, {}, cluster, {.environments = 6, .environments_per_window = 2, .threads = threads});
    Rng rng(2);
    return rollout(env, &env.reset(5), 150, rng);
  };
  const std::vector<double> one = with_threads(1);
  EXPECT_EQ(one, with_threads(2));
  EXPECT_EQ(one, with_threads(5));
}

TEST(VectorEnv, EpisodesOfAGroupShareACluster) {
  const JobTable jobs = some_jobs(6, 400);
  const std::vector<Cluster> clusters{Cluster::homogeneous(2, 4), Cluster::homogeneous(3, 4)};
  const std::vector<Window> windows = windows_of(jobs, {.jobs = 60, .stride = 30});
  VectorEnv env(windows, {}, std::span<const Cluster>(clusters), {.environments = 16, .environments_per_window = 2});
  env.reset(5);
  std::int64_t large = 0;
  for (std::uint32_t e = 0; e < env.size(); e += 2) {
    const std::int64_t gpus = env.env(e).engine().view().cluster().total_gpus();
    EXPECT_EQ(gpus, env.env(e + 1).engine().view().cluster().total_gpus());
    EXPECT_TRUE(gpus == 8 || gpus == 12);
    large += gpus == 12 ? 1 : 0;
  }
  EXPECT_GT(large, 0);
  EXPECT_LT(large, 8);
}

TEST(VectorEnv, AnEpisodeEndsOnceAlsoWhenNobodyResetsIt) {
  const JobTable jobs = some_jobs(6, 400);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const std::vector<Window> windows = windows_of(jobs, {.jobs = 20, .stride = 5});
  VectorEnv env(windows, {}, cluster, {.autoreset = AutoresetMode::disabled, .environments = 4});
  env.reset(5);
  std::vector<std::uint32_t> actions(env.size());
  std::vector<int> ends(env.size());
  for (int step = 0; step < 100; ++step) {
    env.heuristic_actions(Heuristic::sjf, actions);
    for (const std::uint32_t e : env.step(actions).ended) ++ends[e];
  }
  EXPECT_EQ(ends, (std::vector<int>{1, 1, 1, 1}));
}

// The pauses let the threads give up spinning and go to sleep.
TEST(VectorEnv, HeuristicActionsAreTheAgendasAndSleepingThreadsWake) {
  const JobTable jobs = some_jobs(6, 400);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const std::vector<Window> windows = windows_of(jobs, {.jobs = 60, .stride = 30});
  VectorEnv env(windows, {}, cluster, {.environments = 6, .threads = 3});
  env.reset(5);
  std::vector<std::uint32_t> actions(env.size());
  for (int step = 0; step < 30; ++step) {
    if (step % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    env.heuristic_actions(Heuristic::saf, actions);
    for (std::uint32_t e = 0; e < env.size(); ++e) {
      EXPECT_EQ(actions[e], env.env(e).agenda().heuristic_action(Heuristic::saf));
    }
    env.step(actions);
  }
}

TEST(VectorEnv, GroupsShareTheirWindows) {
  const JobTable jobs = some_jobs(6, 400);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const std::vector<Window> windows = windows_of(jobs, {.jobs = 20, .stride = 5});
  VectorEnv env(windows, {}, cluster, {.environments = 8, .environments_per_window = 4});
  env.reset(3);
  EXPECT_EQ(env.window(0), env.window(3));
  EXPECT_EQ(env.window(4), env.window(7));
  EXPECT_NE(env.window(0), env.window(4));
}

TEST(VectorEnv, RestoresInTheMiddleOfAnEpisode) {
  const JobTable jobs = some_jobs(8, 300);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const std::vector<Window> windows = windows_of(jobs, {.jobs = 60, .stride = 30});
  VectorEnv env(windows, {}, cluster, {.environments = 3});
  Rng rng(2);
  rollout(env, &env.reset(5), 40, rng);
  const VectorEnv::State saved = env.save();
  Rng again = rng;
  const std::vector<double> first = rollout(env, &env.batch(), 100, rng);
  EXPECT_EQ(first, rollout(env, &env.restore(saved), 100, again));
}

// Whatever is chosen among what the mask allows, every job runs to its end, in every mode and on nodes with queues of
// their own.
RC_GTEST_PROP(EnvProperty, AnyAllowedActionsFinishTheWindow, ()) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const JobTable jobs = some_jobs(seed, 80, true);
  Cluster cluster = Cluster::homogeneous(*rc::gen::inRange(1u, 4u), 4);
  if (seed % 2 == 0) cluster.vcs = {{.name = "a"}, {.name = "b"}};
  EnvOptions options;
  options.agenda.mode =
      *rc::gen::elementOf(std::vector<ActionMode>{ActionMode::fit_or_wait, ActionMode::select_blocking,
                                                  ActionMode::backfill, ActionMode::reserve, ActionMode::inspect});
  options.agenda.sc20_backfill = *rc::gen::arbitrary<bool>();
  options.agenda.max_jobs = *rc::gen::inRange(4u, 40u);
  options.agenda.knowledge = *rc::gen::elementOf(std::vector<RuntimeKnowledge>{
      RuntimeKnowledge::none, RuntimeKnowledge::user, RuntimeKnowledge::predicted, RuntimeKnowledge::oracle});
  Env env(cluster, options);
  Rng rng(seed);
  const Window window = whole(jobs);
  play(env, window, [&](const Agenda& a) { return random_action(a, rng); });
  RC_ASSERT(env.engine().all_finished());
}

TEST(Windows, KeepThePartsApartInTime) {
  const JobTable jobs = some_jobs(1, 1000);
  const WindowOptions options{
      .jobs = 50, .warm_up_jobs = 10, .stride = 25, .train_fraction = 0.6, .validation_fraction = 0.1};
  for (const Window& window : windows_of(jobs, options, Split::train)) EXPECT_LE(window.start + 50, 600u);
  for (const Window& window : windows_of(jobs, options, Split::validation)) {
    EXPECT_GE(window.start, 610u);
    EXPECT_LE(window.start + 50, 700u);
  }
  const std::vector<Window> test = windows_of(jobs, options, Split::test);
  EXPECT_EQ(test.size(), (300u - 60u) / 25u + 1u);
  for (const Window& window : test) {
    EXPECT_GE(window.start, 710u);
    EXPECT_EQ(window.jobs.size(), 60u);
    EXPECT_EQ(window.jobs.submit(JobId{10}), jobs.submit(JobId{window.start}));
    EXPECT_EQ(window.jobs.external_id(JobId{10}), std::to_string(window.start));
  }
}

TEST(Windows, ScaleTheLoad) {
  const JobTable jobs = some_jobs(1, 100);
  const Window dense = windows_of(jobs, {.jobs = 50, .arrival_scale = 0.5}).front();
  EXPECT_NEAR(to_seconds(dense.jobs.submit(JobId{49}) - dense.jobs.submit(JobId{0})),
              0.5 * to_seconds(jobs.submit(JobId{49}) - jobs.submit(JobId{0})), 1e-5);
}

TEST(Windows, AnEmptyPartIsAnError) {
  const JobTable jobs = some_jobs(1, 100);
  const auto windows = make_windows(jobs, {.jobs = 50, .validation_fraction = 0.1}, Split::validation);
  ASSERT_FALSE(windows);
  EXPECT_EQ(windows.error().to_string(),
            "windows/jobs: the validation part has 10 jobs; expected at least the 50 of one window");
}

TEST(RuntimePredictor, RefinesFromEverybodyToTheUser) {
  RuntimePredictor predictor;
  EXPECT_EQ(predictor.predict_seconds(0, 0, 0), 0);
  for (int i = 0; i < 100; ++i) predictor.learn(1, 0, 1, 100);
  EXPECT_NEAR(predictor.predict_seconds(2, 3, 5), 100, 1e-6);  // a stranger: everybody's mean
  for (int i = 0; i < 100; ++i) predictor.learn(1, 0, 2, 10'000);
  EXPECT_NEAR(predictor.predict_seconds(1, 0, 1), 120, 25);
  EXPECT_NEAR(predictor.predict_seconds(1, 0, 2), 9'000, 1'500);
}

// golden-results: the heuristics on the ten windows of RLScheduler (SC'20), through this environment's own loop.
TEST(EnvGolden, SelectBlockingReproducesTheSc20Windows) {
  const std::string path = test::real_trace("swf/lublin_256.swf");
  GPUSCHED_NEEDS_TRACE(path, "swf/lublin_256.swf");
  const auto trace = read_trace(path, {});
  ASSERT_TRUE(trace) << trace.error().to_string();
  const Cluster cluster = Cluster::pool(256);
  const std::uint32_t starts[] = {1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085};
  const auto mean_of = [&](Heuristic heuristic, bool backfill) {
    EnvOptions options;
    options.agenda = {.mode = ActionMode::select_blocking,
                      .knowledge = RuntimeKnowledge::oracle,
                      .heuristic = heuristic,
                      .max_jobs = 1024,
                      .sc20_backfill = backfill};
    Env env(cluster, options);
    double sum = 0;
    for (const std::uint32_t start : starts) {
      const Window window{.jobs = trace->jobs.slice(start, 1024), .start = start, .history = {}};
      const RewardVector totals = play(env, window, [&](const Agenda& a) { return a.heuristic_action(heuristic); });
      sum += 1 - totals[reward_bounded_slowdown] / 1024;
    }
    return sum / 10;
  };
  EXPECT_NEAR(mean_of(Heuristic::fcfs, false), 7273.771360, 1e-6);
  EXPECT_NEAR(mean_of(Heuristic::sjf, false), 277.348341, 1e-6);
  EXPECT_NEAR(mean_of(Heuristic::f1, false), 258.366372, 1e-6);
  EXPECT_NEAR(mean_of(Heuristic::saf, false), 292.876511, 1e-6);
  EXPECT_NEAR(mean_of(Heuristic::sjf, true), 73.306497, 1e-6);
  // That program handles events of one instant one after another, and a backfill pass sees the state between them;
  // this engine applies them together. On one of the windows that moves a job: 54.0209.
  EXPECT_NEAR(mean_of(Heuristic::saf, true), 54.001615, 0.02);
}

}  // namespace
}  // namespace gpusched
