// SPDX-License-Identifier: Apache-2.0
// The environment with a power model: what it rewards is what the meter shows, what it tells of signals is what a slow
// reading of them gives, and WAIT lasts until they change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpusched/learn/env.hpp"
#include "gpusched/learn/vector_env.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "tests/learn/learning_support.hpp"
#include "tests/support/changing_signals.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

// Steps of an hour and less over three days, some negative where `least` is.
Signal drawn_signal(Rng& rng, double least, double most) {
  std::vector<Signal::Step> steps;
  for (std::int64_t second = 0; second < 3 * 86'400; second += 900 + static_cast<std::int64_t>(rng.below(2700))) {
    steps.push_back({whole_seconds(second), Signal::to_micro(least + (most - least) * rng.uniform())});
  }
  return Signal(std::move(steps));
}

// Of three nodes of 4 GPUs at two places, with all that changes a draw.
PowerModel drawn_power(Rng& rng) {
  PowerModel model;
  model.gpus = {{.load = {.idle_w = 30, .full_w = 300, .exponent = 0.5},
                 .limits = {{.limit_w = 150, .draw = 0.5, .speed = reference_rate * 7 / 10}, {.limit_w = 300}}}};
  model.kinds = {{.base_w = 50, .cpu = {.idle_w = 20, .full_w = 120}, .cpus = 2}};
  if (rng.below(2) == 0) {
    model.kinds[0].sleep = {.after = whole_seconds(60), .asleep_w = 12, .wake = whole_seconds(9), .wake_j = 400};
  }
  model.kind_of = {0, 0, 0};
  model.losses = {.gain = 0.125, .fixed_w = 7};
  model.places = {{.carbon_g_per_kwh = drawn_signal(rng, 10, 700), .usd_per_mwh = drawn_signal(rng, -20, 90)},
                  {.carbon_g_per_kwh = drawn_signal(rng, 0, 400)}};
  model.place_of = {0, 1, 0};
  model.rents = {{.usd_per_gpu_h = 2, .when_idle = true}, {.usd_per_gpu_h = 1}, {}};
  if (rng.below(2) == 0) model.caps = {{.watts = drawn_signal(rng, 2200, 4500)}};
  model.rule = rng.below(2) == 0 ? CapRule::uniform : CapRule::admit;
  return model;
}

StepResult random_step(Env& env, Rng& rng) {
  if (!env.agenda().ranks()) return env.step(random_action(env.agenda(), rng));
  std::vector<float> scores(env.agenda().size());
  for (float& score : scores) score = static_cast<float>(rng.normal());
  return env.step(std::span<const float>(scores));
}

TEST(EnvSignals, RewardsAddUpToWhatTheMeterShows) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng(seed).split("world");
    const PowerModel power = drawn_power(rng);
    const JobTable jobs = some_jobs(seed, 160);
    const auto windows = make_windows(
        jobs, {.jobs = 40, .warm_up_jobs = 20, .stride = 40, .train_fraction = 1, .validation_fraction = 0},
        Split::train);
    const Window& window = (*windows)[rng.below(windows->size())];
    const ActionMode modes[] = {ActionMode::fit_or_wait, ActionMode::select_blocking, ActionMode::backfill,
                                ActionMode::reserve,     ActionMode::inspect,         ActionMode::preempt};
    EnvOptions options;
    options.agenda.mode = modes[rng.below(std::size(modes))];
    options.agenda.heuristic = options.agenda.mode == ActionMode::preempt ? Heuristic::las : Heuristic::sjf;
    options.agenda.signals = rng.below(2) == 0;
    options.inputs.power = &power;
    options.weights = {};
    for (const RewardTerm term : {reward_energy, reward_carbon, reward_money, reward_peak}) options.weights[term] = 2;
    const Cluster cluster = Cluster::homogeneous(3, 4);
    Env env(cluster, options);
    StepResult result = env.reset(window);
    double scalar = result.scalar;
    while (!result.done()) {
      result = random_step(env, rng);
      scalar += result.scalar;
    }
    ASSERT_TRUE(result.terminated);
    const detail::Power& meter = env.engine().power();
    const Bill bill = meter.meter();
    const double peak_kw = static_cast<double>(meter.with_losses_mw(meter.peak_mw())) / 1e6;
    const RewardVector& totals = env.totals();
    EXPECT_NEAR(totals[reward_energy], -bill.kwh(), 1e-9 * bill.kwh());
    EXPECT_NEAR(totals[reward_carbon], -bill.carbon_kg(), 1e-9 * bill.carbon_kg());
    EXPECT_NEAR(totals[reward_money], -bill.usd(), 1e-9 * std::abs(bill.usd()));
    EXPECT_NEAR(totals[reward_peak], -peak_kw, 1e-9 * peak_kw);
    EXPECT_NEAR(scalar, -2 * (bill.kwh() + bill.carbon_kg() + bill.usd() + peak_kw), 1e-6 * std::abs(scalar));
    EXPECT_TRUE(meter.adds_up());
  }
}

// Without a power model energy is by EnvOptions' watts, and the others are 0.
TEST(EnvSignals, RewardsAreZeroWithoutAPowerModel) {
  const JobTable jobs = some_jobs(3, 40);
  const Window window = whole(jobs);
  const Cluster cluster = Cluster::homogeneous(3, 4);
  Env env(cluster, {});
  StepResult result = env.reset(window);
  while (!result.done()) result = env.step(Heuristic::sjf);
  EXPECT_LT(env.totals()[reward_energy], 0);
  EXPECT_EQ(env.totals()[reward_carbon], 0);
  EXPECT_EQ(env.totals()[reward_money], 0);
  EXPECT_EQ(env.totals()[reward_peak], 0);
}

// ---- what is told ----

double value_of(const Signal& signal, const Forecast& forecast, Time now, double hours) {
  return signal.is_empty() ? 0 : forecast.at(signal, now, now + from_seconds(3600 * hours));
}

double cut(double value) { return std::min(1.0, std::max(-1.0, value)); }

// The nine features of one figure, by the page's words.
std::vector<double> slow_features(const std::vector<Signal>& signals, const std::vector<double>& shares,
                                  const Forecast& forecast, Time now) {
  const auto mean = [&](double hours) {
    double sum = 0;
    for (std::size_t i = 0; i < signals.size(); ++i) sum += shares[i] * value_of(signals[i], forecast, now, hours);
    return sum;
  };
  const double present = mean(0);
  double size = std::abs(present) / 25, less = 0;
  for (int hour = 1; hour <= 24; ++hour) {
    size += std::abs(mean(-hour)) / 25;
    less += mean(-hour) < present ? 1.0 / 24 : 0;
  }
  std::vector<double> features{cut(present / size - 1), less};
  for (const int hour : {1, 3, 6, 12, 24}) features.push_back(cut((mean(hour) - present) / size));
  double least = 0, least_in = 0;
  for (int hour = 1; hour <= 24; ++hour) {
    if (mean(hour) - present >= least) continue;
    least = mean(hour) - present;
    least_in = hour / 24.0;
  }
  features.push_back(cut(least / size));
  features.push_back(least_in);
  return features;
}

TEST(EnvSignals, FeaturesAreThoseOfASlowReading) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng(seed).split("world");
    PowerModel power = drawn_power(rng);
    power.caps = {{.watts = drawn_signal(rng, 3000, 4500)}, {.watts = drawn_signal(rng, 1500, 1900), .nodes = {1}}};
    const JobTable jobs = some_jobs(seed, 60);
    const Window window = whole(jobs);
    EnvOptions options;
    options.agenda.signals = true;
    options.agenda.forecast.kind =
        std::vector{Forecast::Kind::persistence, Forecast::Kind::perfect, Forecast::Kind::noisy}[rng.below(3)];
    options.inputs.power = &power;
    const Forecast& forecast = options.agenda.forecast;
    const Cluster cluster = Cluster::homogeneous(3, 4);
    Env env(cluster, options);
    Observation seen;
    const double full_w = 3 * (50 + 2 * 120 + 4 * 300);
    for (StepResult result = env.reset(window); !result.done(); result = env.step(random_action(env.agenda(), rng))) {
      env.agenda().make_room(seen);
      env.encode(seen.slot(0));
      const std::vector<double> shares{2.0 / 3, 1.0 / 3};
      std::vector<double> expected = slow_features({power.places[0].carbon_g_per_kwh, power.places[1].carbon_g_per_kwh},
                                                   shares, forecast, env.now());
      const std::vector<double> price =
          slow_features({power.places[0].usd_per_mwh, power.places[1].usd_per_mwh}, shares, forecast, env.now());
      expected.insert(expected.end(), price.begin(), price.end());
      const View view = env.engine().view();
      expected.push_back(view.draw_w() / full_w);
      expected.push_back(view.headroom_w() / full_w);
      double next = 0, deepest = 0;
      for (const PowerCap& cap : power.caps) {
        for (int hour = 1; hour <= 24; ++hour) {
          const double change = value_of(cap.watts, forecast, env.now(), hour) - cap.watts.at(env.now());
          if (hour == 1 && std::abs(change) > std::abs(next)) next = change;
          deepest = std::min(deepest, change);
        }
      }
      expected.push_back(cut(next / full_w));
      expected.push_back(cut(deepest / full_w));
      ASSERT_EQ(expected.size(), std::size_t{signal_features});
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(seen.signals[i]), expected[i], 1e-5) << i;
      }
    }
  }
}

TEST(EnvSignals, AreOneRowForEachEnvironment) {
  Rng rng(5);
  const PowerModel power = drawn_power(rng);
  const std::vector<Window> windows{whole(some_jobs(1, 50)), whole(some_jobs(2, 50))};
  const Cluster cluster = Cluster::homogeneous(3, 4);
  EnvOptions options;
  options.agenda.signals = true;
  options.inputs.power = &power;
  VectorEnv env(windows, {}, cluster, {.env = options, .environments = 5});
  const Batch* batch = &env.reset(1);
  for (int step = 0; step < 100; ++step) {
    ASSERT_EQ(batch->observation.signals.size(), 5u * signal_features);
    for (const float value : batch->observation.signals) ASSERT_TRUE(value >= -1 && value <= 1);
    batch = &env.step(Heuristic::sjf);
  }
}

// ---- waiting ----

JobTable one_job_of_a_minute() {
  JobTableBuilder builder;
  builder.add({.id = "a", .submit = {}, .work = whole_seconds(60), .shape = {.gpu_milli_per_task = whole_gpu}});
  return *std::move(builder).build();
}

PowerModel three_steps() {
  PowerModel power = changing_signals();
  power.places = {{.carbon_g_per_kwh = Signal({{Time{}, Signal::to_micro(500)},
                                               {whole_seconds(100), Signal::to_micro(300)},
                                               {whole_seconds(250), Signal::to_micro(100)}})}};
  return power;
}

// Nothing else will happen: without signals there is no WAIT.
TEST(EnvSignals, WaitLastsUntilASignalChanges) {
  const JobTable jobs = one_job_of_a_minute();
  const Window window = whole(jobs);
  const Cluster cluster = Cluster::homogeneous(1, 1);
  const PowerModel power = three_steps();
  EnvOptions options;
  options.inputs.power = &power;
  EXPECT_TRUE(Env(cluster, options).reset(window).done());
  options.agenda.signals = true;
  Env env(cluster, options);
  EXPECT_FALSE(env.reset(window).done());
  EXPECT_EQ(env.now(), Time{});
  EXPECT_FALSE(env.step(1).done());
  EXPECT_EQ(env.now(), whole_seconds(100));
  const StepResult last = env.step(1);  // at 250 s there is nothing to wait for: the job starts
  EXPECT_TRUE(last.terminated);
  EXPECT_EQ(env.engine().end(JobId{0}), whole_seconds(310));
}

TrainedModel holding_model(float wait_weight, float known_weight) {
  TrainedModel model;
  model.agenda = {.knowledge = RuntimeKnowledge::oracle, .signals = true};
  model.network = for_agenda({.kind = NetworkKind::index}, model.agenda);
  const NetworkLayout layout = layout_of(model.network);
  model.parameters.assign(layout.size, 0.0f);
  model.parameters[layout.alpha] = 0;
  model.parameters[layout.signal_wait.offset + carbon_level] = wait_weight;
  model.parameters[layout.signal_known.offset + carbon_level] = known_weight;
  return model;
}

Time end_under(const TrainedModel& model, const PowerModel* power) {
  const JobTable jobs = one_job_of_a_minute();
  const Cluster cluster = Cluster::homogeneous(1, 1);
  RlPolicy policy("rl", model, jobs.works(), false, 1);
  Engine engine(jobs, cluster, {}, {.power = power});
  EXPECT_TRUE(simulate(engine, policy));
  return engine.end(JobId{0});
}

// In the first hours the day before is as the first value: the level is 0 at 500, and below 0 at 300 and 100.
TEST(EnvSignals, ALinearNetworkHoldsJobsByThem) {
  const PowerModel power = three_steps();
  EXPECT_EQ(end_under(holding_model(0, 0), &power), whole_seconds(60));
  TrainedModel waits = holding_model(0, 0);
  const DenseLayer layer = layout_of(waits.network).signal_wait;
  waits.parameters[layer.bias()] = 0.5f;
  EXPECT_EQ(end_under(waits, &power), whole_seconds(310));  // the bias alone: as long as there is something to wait for
  waits.parameters[layer.offset + carbon_level] = 100;
  EXPECT_EQ(end_under(waits, &power), whole_seconds(160));  // at 300 g the level is below 0
  EXPECT_THROW(end_under(waits, nullptr), PolicyFailure);
}

TEST(EnvSignals, AModelIsReadAsItWasWritten) {
  TempFolder folder;
  const TrainedModel model = holding_model(3, -2);
  ASSERT_TRUE(save_model(model, folder.path() + "/m"));
  const auto read = load_model(folder.path() + "/m");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->agenda, model.agenda);
  EXPECT_EQ(read->network, model.network);
  EXPECT_EQ(read->parameters, model.parameters);
}

TEST(EnvSignals, OnlyPersistenceIsNotClairvoyant) {
  AgendaOptions options{.signals = true};
  EXPECT_FALSE(options.clairvoyant());
  options.forecast.kind = Forecast::Kind::noisy;
  EXPECT_TRUE(options.clairvoyant());
  options.signals = false;
  EXPECT_FALSE(options.clairvoyant());
}

}  // namespace
}  // namespace gpusched::test
