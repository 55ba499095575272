// SPDX-License-Identifier: Apache-2.0
#include "gpusched/learn/ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "src/policies/learned/agenda_policy.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

using test::Span;
using test::table_of;
using test::whole;

AgendaOptions preempting(Heuristic heuristic, RuntimeKnowledge knowledge = RuntimeKnowledge::none) {
  return {.mode = ActionMode::preempt, .knowledge = knowledge, .heuristic = heuristic};
}

TEST(DoublingLevels, CutEveryDoublingIntoEqualSteps) {
  constexpr DoublingLevels quarters{60, 4};
  constexpr std::int64_t begins[] = {0, 60, 75, 90, 105, 120, 150, 180, 210, 240, 300};
  for (std::uint32_t level = 0; level < std::size(begins); ++level) {
    EXPECT_EQ(quarters.begin(level), begins[level]);
    EXPECT_EQ(quarters.level(begins[level]), level);
    EXPECT_EQ(quarters.level(std::max<std::int64_t>(0, begins[level] - 1)), level == 0 ? 0 : level - 1);
  }
  EXPECT_EQ(quarters.doublings(quarters.level(480)), 3.25f);  // 60 begins the first quarter of the first doubling
  constexpr DoublingLevels undivided{60, 1};
  EXPECT_EQ(undivided.level(59), 0u);
  EXPECT_EQ(undivided.level(239), 2u);
  EXPECT_EQ(undivided.begin(3), 240);
}

TEST(DoublingLevels, HoldEveryAmountBetweenTheirBounds) {
  test::check_many(2000, [] {
    const DoublingLevels levels{std::int64_t{64} << *rc::gen::inRange(0, 20),
                                std::int64_t{1} << *rc::gen::inRange(0, 6)};
    const std::int64_t amount = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << *rc::gen::inRange(1, 50));
    const std::uint32_t level = levels.level(amount);
    RC_ASSERT(levels.begin(level) <= amount);
    RC_ASSERT(amount < levels.begin(level + 1));
  });
}

TEST(Ranking, LeastAttainedServiceByHand) {
  // The long job runs alone until its first level ends after 60 GPU-seconds, with another waiting at level 0. That one
  // ends within its own; the long one goes on.
  const JobTable one = table_of({{.submit = 0, .work = 300}, {.submit = 10, .work = 30}});
  EXPECT_EQ(test::run(one, Cluster::pool(1), AgendaPolicy(preempting(Heuristic::las), {})),
            (std::vector<Span>{{0, 330}, {60, 90}}));
  // A restart of 7 s prolongs the one that was stopped.
  EXPECT_EQ(test::run(one, Cluster::pool(1), AgendaPolicy(preempting(Heuristic::las), {}),
                      {.preemption = {.restart = whole_seconds(7)}}),
            (std::vector<Span>{{0, 337}, {60, 90}}));
  // On two GPUs service counts double. Both small jobs go in the place of the wide one at 30; it needs both GPUs back,
  // which it has when the second ends.
  const JobTable gang =
      table_of({{.submit = 0, .work = 100, .gpus = 2}, {.submit = 5, .work = 50}, {.submit = 6, .work = 10}});
  EXPECT_EQ(test::run(gang, Cluster::pool(2), AgendaPolicy(preempting(Heuristic::las), {})),
            (std::vector<Span>{{0, 150}, {30, 80}, {30, 40}}));
}

TEST(Ranking, KnownTimeLeftByHand) {
  // At 20 the short job has 30 s left; the running one had 100 when it was last looked at, and yields. At 25 the third
  // has as much left as the running one had then, and waits.
  const JobTable jobs = table_of({{.submit = 0, .work = 100}, {.submit = 20, .work = 30}, {.submit = 25, .work = 30}});
  EXPECT_EQ(test::run(jobs, Cluster::pool(1),
                      AgendaPolicy(preempting(Heuristic::srtf, RuntimeKnowledge::oracle), jobs.works())),
            (std::vector<Span>{{0, 160}, {20, 50}, {50, 80}}));
}

// An environment whose jobs get the scores that a test gives them: as they wait and as they run.
StepResult give(Env& env, const std::vector<std::pair<float, float>>& scores) {
  std::vector<float> flat;
  for (std::uint32_t i = 0; i < env.agenda().size(); i += 2) {
    flat.push_back(scores[index(env.agenda().job(i))].first);
    flat.push_back(scores[index(env.agenda().job(i))].second);
  }
  return env.step(flat);
}

std::vector<Span> run_with(const JobTable& jobs, const Cluster& cluster,
                           const std::vector<std::pair<float, float>>& scores,
                           std::vector<std::uint32_t>& preemptions) {
  EnvOptions options;
  options.agenda = preempting(Heuristic::las);
  Env env(cluster, options);
  const Window window = whole(jobs);
  for (StepResult result = env.reset(window); !result.done();) result = give(env, scores);
  preemptions.clear();
  for (std::uint32_t i = 0; i < jobs.size(); ++i) preemptions.push_back(env.engine().preemptions(JobId{i}));
  return test::spans_of(env.engine());
}

TEST(Ranking, TheLastOfThoseBehindGoesAndOnlyIfThatMakesRoom) {
  const Cluster cluster = Cluster::pool(3);
  std::vector<std::uint32_t> preemptions;
  const JobTable narrow = table_of(
      {{.submit = 0, .work = 100}, {.submit = 0, .work = 100}, {.submit = 0, .work = 100}, {.submit = 10, .work = 20}});
  EXPECT_EQ(run_with(narrow, cluster, {{3, 3}, {1, 1}, {1.5f, 1.5f}, {2, 2}}, preemptions)[3], (Span{10, 30}));
  EXPECT_EQ(preemptions, (std::vector<std::uint32_t>{0, 1, 0, 0}));
  // It needs two GPUs and outranks only one job: nobody makes room in vain.
  const JobTable wide = table_of({{.submit = 0, .work = 100},
                                  {.submit = 0, .work = 100},
                                  {.submit = 0, .work = 100},
                                  {.submit = 10, .work = 20, .gpus = 2}});
  EXPECT_EQ(run_with(wide, cluster, {{3, 3}, {1, 1}, {4, 4}, {2, 2}}, preemptions)[3], (Span{100, 120}));
  EXPECT_EQ(preemptions, (std::vector<std::uint32_t>{0, 0, 0, 0}));
}

TEST(Ranking, ARunningJobKeepsItsPlaceByItsBetterScore) {
  const Cluster cluster = Cluster::pool(1);
  const JobTable jobs = table_of({{.submit = 0, .work = 100}, {.submit = 10, .work = 20}});
  std::vector<std::uint32_t> preemptions;
  EXPECT_EQ(run_with(jobs, cluster, {{1, 1}, {2, 2}}, preemptions), (std::vector<Span>{{0, 120}, {10, 30}}));
  EXPECT_EQ(run_with(jobs, cluster, {{1, 3}, {2, 2}}, preemptions), (std::vector<Span>{{0, 100}, {100, 120}}));
  // Worse as a running job than as a waiting one: it would be stopped as soon as it starts, so the better counts.
  EXPECT_EQ(run_with(jobs, cluster, {{3, 1}, {2, 2}}, preemptions), (std::vector<Span>{{0, 100}, {100, 120}}));
}

TEST(Ranking, TheObservationHasTwoRowsOfEachJobAskedFor) {
  const JobTable jobs = table_of({{.submit = 0, .work = 300, .gpus = 2}, {.submit = 90, .work = 40}});
  const Window window = whole(jobs);
  EnvOptions options;
  options.agenda = preempting(Heuristic::las, RuntimeKnowledge::oracle);
  const Cluster cluster = Cluster::pool(2);
  Env env(cluster, options);
  env.reset(window);
  env.step(std::vector<float>{0, 0});  // the wide job runs; at 90 another comes, and both are asked for
  ASSERT_EQ(env.now(), whole_seconds(90));
  ASSERT_EQ(env.agenda().size(), 4u);
  EXPECT_EQ(env.agenda().job(0), JobId{1});
  EXPECT_EQ(env.agenda().job(3), JobId{0});
  EXPECT_FALSE(env.agenda().allowed(0));
  Observation seen;
  seen.shape(1, [&](std::uint32_t) { return std::pair{env.agenda().size(), env.agenda().group_count()}; });
  env.encode(seen.slot(0));
  EXPECT_EQ(seen.mask, (std::vector<std::uint8_t>{1, 1, 1, 1, 0}));
  EXPECT_EQ(seen.prior, (std::vector<float>{0, 0, -1.75f, -1.75f, 0}));  // 180 GPU-s: seven quarters begun
  const float* const wide = &seen.jobs[std::size_t{3} * job_features];
  EXPECT_EQ(wide[rank_running], 1.0f);
  EXPECT_EQ((wide - job_features)[rank_running], 0.0f);
  EXPECT_FLOAT_EQ(wide[rank_service], 0.175f);
  EXPECT_FLOAT_EQ(wide[rank_gpus], std::log(3.0f) / 5);
  EXPECT_FLOAT_EQ(wide[rank_known], std::log(301.0f) / 10);
  EXPECT_FLOAT_EQ(wide[rank_left], std::log(211.0f) / 10);
  EXPECT_EQ(wide[rank_overrun], 0.0f);
  EXPECT_FLOAT_EQ(wide[rank_ending], std::log(0.5f) / 5);
}

TEST(Ranking, EndingsAreCountedByShapeAndDrawnTowardsThoseOfAll) {
  const JobTable jobs = table_of({{.submit = 0, .work = 30},
                                  {.submit = 0, .work = 50},
                                  {.submit = 0, .work = 70},
                                  {.submit = 100, .work = 500, .gpus = 2},
                                  {.submit = 100, .work = 500}});
  EnvOptions options;
  options.agenda = preempting(Heuristic::las);
  const Cluster cluster = Cluster::pool(3);
  Env env(cluster, options);
  const Window window = whole(jobs);
  env.reset(window);
  while (env.now() < whole_seconds(100)) env.step(Heuristic::las);
  Observation seen;
  seen.shape(1, [&](std::uint32_t) { return std::pair{env.agenda().size(), env.agenda().group_count()}; });
  env.encode(seen.slot(0));
  // Below a minute two of three ended: (2 + 2 / 2) / (3 + 2) of all, and of the narrow shape (2 + 4 x 0.6) / (3 + 4).
  EXPECT_FLOAT_EQ(seen.jobs[rank_ending], std::log(0.6f) / 5);
  EXPECT_FLOAT_EQ(seen.jobs[2 * job_features + rank_ending], std::log(4.4f / 7) / 5);
}

std::vector<float> random_scores(const Agenda& agenda, Rng& rng) {
  std::vector<float> scores(agenda.size());
  for (float& score : scores) score = static_cast<float>(rng.below(5));  // ties are frequent
  return scores;
}

TEST(Ranking, RewardsAddUpToTheMetricsWithRestarts) {
  const JobTable jobs = test::some_jobs(7, 300);
  const WindowOptions cut{.jobs = 250, .warm_up_jobs = 50, .train_fraction = 1, .validation_fraction = 0};
  const Window window = make_windows(jobs, cut, Split::train)->front();
  const Cluster cluster = Cluster::homogeneous(2, 4);
  for (const std::int64_t restart : {0, 13}) {
    EnvOptions options;
    options.agenda = preempting(Heuristic::las);
    options.engine.preemption = {.checkpoint = whole_seconds(restart / 4), .restart = whole_seconds(restart)};
    Env env(cluster, options);
    Rng rng(3);
    for (StepResult result = env.reset(window); !result.done();) result = env.step(random_scores(env.agenda(), rng));
    double jct = 0, wait = 0, slowdown = 0;
    std::uint32_t preemptions = 0;
    for (std::uint32_t i = 0; i < window.jobs.size(); ++i) {
      preemptions += env.engine().preemptions(JobId{i});
      if (i < window.first_scored) continue;
      const double own = to_seconds(env.engine().end(JobId{i}) - window.jobs.submit(JobId{i}));
      jct += own;
      wait += own - to_seconds(env.engine().ran(JobId{i}));
      slowdown += std::max(1.0, own / std::max(to_seconds(window.jobs.work(JobId{i})), slowdown_bound_s)) - 1;
    }
    EXPECT_GT(preemptions, 50u);
    EXPECT_NEAR(-env.totals()[reward_jct], jct, 1e-9 * jct);
    EXPECT_NEAR(-env.totals()[reward_wait], wait, 1e-9 * jct);
    EXPECT_NEAR(-env.totals()[reward_bounded_slowdown], slowdown, 1e-8 * slowdown);
  }
}

TEST(Ranking, EnvironmentsAreSavedAndStepTogether) {
  const JobTable jobs = test::some_jobs(4, 200, true);
  Cluster cluster = Cluster::homogeneous(2, 4);
  cluster.vcs = {{.name = "a"}, {.name = "b"}};
  const Window window = whole(jobs);
  EnvOptions options;
  options.agenda = preempting(Heuristic::srtf, RuntimeKnowledge::predicted);
  const auto finish = [](Env& env, Rng rng) {
    StepResult result;
    while (!result.done()) result = env.step(random_scores(env.agenda(), rng));
    return env.totals();
  };
  Env env(cluster, options);
  env.reset(window);
  Rng rng(9);
  for (int i = 0; i < 60; ++i) env.step(random_scores(env.agenda(), rng));
  Env copy = env;
  EXPECT_EQ(finish(env, rng), finish(copy, rng));

  const auto all = [&](std::uint32_t threads) {
    VectorEnv envs({&window, 1}, {}, cluster,
                   {.env = options, .autoreset = AutoresetMode::disabled, .environments = 3, .threads = threads});
    const Batch* batch = &envs.reset(1);
    std::vector<Rng> draws{Rng(1), Rng(2), Rng(3)};
    while (!envs.is_done(0) || !envs.is_done(1) || !envs.is_done(2)) {
      std::vector<float> scores(batch->observation.prior.size());
      for (std::uint32_t e = 0; e < 3; ++e) {
        if (envs.is_done(e)) continue;
        const std::vector<float> own = random_scores(envs.env(e).agenda(), draws[e]);
        std::copy(own.begin(), own.end(), scores.begin() + batch->observation.job_begin[e] + e);
      }
      batch = &envs.step(scores);
    }
    return std::vector<RewardVector>{envs.env(0).totals(), envs.env(1).totals(), envs.env(2).totals()};
  };
  const auto together = all(2);
  EXPECT_EQ(together, all(1));
  Env alone(cluster, options);
  alone.reset(window);
  EXPECT_EQ(together[1], finish(alone, Rng(2)));
}

TEST(Ranking, TheEnvironmentUnderAnOrderIsThePolicy) {
  const JobTable jobs = test::some_jobs(8, 250, true);
  Cluster cluster = Cluster::homogeneous(2, 4);
  cluster.vcs = {{.name = "a"}, {.name = "b"}};
  const Window window = whole(jobs);
  std::vector<std::vector<Span>> runs;
  for (const auto& [name, heuristic] : heuristic_names) {
    EnvOptions options;
    options.agenda = preempting(heuristic, RuntimeKnowledge::predicted);
    Env env(cluster, options);
    for (StepResult result = env.reset(window); !result.done();) result = env.step(heuristic);
    runs.push_back(test::spans_of(env.engine()));
    EXPECT_EQ(runs.back(), test::run(jobs, cluster, AgendaPolicy(options.agenda, {}))) << name;
  }
  for (std::size_t i = 1; i < runs.size(); ++i) EXPECT_NE(runs[0], runs[i]);
}

// Whatever the scores: no job is lost, none runs longer than its work, no GPU that a waiting job could use stays idle,
// and preemptions are bounded by the number of times that jobs are scored or leave.
TEST(Ranking, RandomOrdersAreLegalAndDoNotThrash) {
  test::check_many(300, [] {
    const auto rows = *test::gpu_rows(4);
    const JobTable jobs = table_of(rows);
    if (jobs.size() == 0) return;
    const Cluster cluster = Cluster::pool(4);
    Engine engine(jobs, cluster);
    Agenda agenda(preempting(Heuristic::las), {});
    Rng rng(*rc::gen::inRange<std::uint64_t>(0, 1000));
    std::uint64_t causes = 0;
    while (engine.advance()) {
      for (const Event& event : engine.events()) causes += event.kind != EventKind::wake ? 1 : 0;
      Decision decision = engine.decision();
      agenda.observe(engine.view());
      while (agenda.open(engine.view(), decision)) {
        causes += agenda.size() / 2;
        agenda.rank(engine.view(), random_scores(agenda, rng));
      }
      engine.apply();
      RC_ASSERT(engine.consistent());
      Decision idle = engine.decision();
      for (const JobId job : engine.view().queue(0)) RC_ASSERT(!idle.fits(job));
    }
    RC_ASSERT(engine.all_finished());
    std::uint64_t preemptions = 0;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      RC_ASSERT(engine.ran(JobId{i}) == jobs.work(JobId{i}));
      preemptions += engine.preemptions(JobId{i});
    }
    // Only a job that is scored anew or leaves makes others go, at most the four that can run.
    RC_ASSERT(preemptions <= 4 * causes);
  });
}

// A run under las, with restarts.
class ForecastingRun {
 public:
  ForecastingRun(const JobTable& jobs, bool from_the_start)
      : engine_(jobs, Cluster::pool(6), {.preemption = {.restart = whole_seconds(20)}}), ranking_(from_the_start) {}

  // False when nothing is left.
  bool advance() {
    if (!engine_.advance()) return false;
    const View view = engine_.view();
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish) ranking_.finish(view, event.job);
      if (enters_queue(event.kind)) ranking_.wait(view, event.job, 0);
    }
    ranking_.cross(view);
    return true;
  }

  void decide() {
    const View view = engine_.view();
    std::vector<float> scores;
    for (const JobId job : ranking_.asked()) scores.insert(scores.end(), 2, -ranking_.service_doublings(view, job));
    ranking_.rank(view, scores);
    Decision decision = engine_.decision();
    ranking_.fill(view, decision);
    engine_.apply();
  }

  void forecast() { ranking_.forecast(engine_.view()); }

  // By job, of those in the system.
  std::vector<float> log_gittins() const {
    const View view = engine_.view();
    std::vector<float> of_jobs;
    for (std::uint32_t i = 0; i < view.arrived(); ++i) {
      if (view.phase(JobId{i}) != JobPhase::done) of_jobs.push_back(ranking_.log_gittins(view, JobId{i}));
    }
    return of_jobs;
  }

 private:
  Engine engine_;
  Ranking ranking_;
};

TEST(Ranking, AForecastThatIsAskedForLateIsTheOneKeptFromTheStart) {
  Rng rng(5);
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < 150; ++i) {
    std::vector<Time> attempts(1 + rng.below(3));
    for (Time& attempt : attempts) attempt = from_seconds(rng.lognormal(5, 2));
    builder.add({.submit = whole_seconds(60 * i),
                 .work = std::accumulate(attempts.begin(), attempts.end(), Time{}),
                 .shape = {.tasks = static_cast<std::uint32_t>(1 + rng.below(3)), .gpu_milli_per_task = whole_gpu},
                 .attempts = attempts});
  }
  const JobTable jobs = *std::move(builder).build();
  for (const int first : {0, 1, 40, 400}) {
    ForecastingRun kept(jobs, true);
    ForecastingRun late(jobs, false);
    int instant = 0;
    for (; kept.advance(); ++instant) {
      ASSERT_TRUE(late.advance());
      if (instant >= first) {
        late.forecast();
        ASSERT_EQ(late.log_gittins(), kept.log_gittins()) << "instant " << instant << " of a forecast from " << first;
      }
      kept.decide();
      late.decide();
    }
    EXPECT_GT(instant, 400);
  }
}

TEST(Ranking, OptionsThatContradictItAreRefused) {
  const JobTable jobs = table_of({{.work = 1}});
  const Cluster cluster = Cluster::pool(1);
  const auto refusal = [&](const std::string& text) {
    const auto specs = parse_policy_list(text);
    const auto made = PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster});
    return made ? "" : made.error().to_string();
  };
  EXPECT_EQ(refusal("agenda{mode=preempt,heuristic=las}"), "");
  EXPECT_EQ(refusal("agenda{heuristic=las}"),
            "policy 'agenda': the heuristics las, srtf and gittins rank running jobs: they need mode preempt");
  EXPECT_EQ(refusal("agenda{mode=preempt,sc20_backfill=true}"), "policy 'agenda': mode preempt has no backfilling");
  EXPECT_TRUE(contradiction({.mode = ActionMode::preempt, .choose_nodes = true}));
  EXPECT_TRUE(contradiction({.mode = ActionMode::preempt, .starvation = whole_seconds(1)}));
  EXPECT_FALSE(contradiction({}));
}

}  // namespace
}  // namespace gpusched
