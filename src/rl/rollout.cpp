// SPDX-License-Identifier: Apache-2.0
#include "src/rl/rollout.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/parallel.hpp"
#include "src/policies/learned/held_action.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/rl/run_clock.hpp"

namespace gpusched {
namespace {

std::span<const float> row_of(const std::vector<float>& logits, const Observation& seen, std::uint32_t state) {
  return std::span(logits).subspan(std::size_t{seen.job_begin[state]} + state, std::size_t{seen.tokens(state)} + 1);
}

void temper(const Actor& actor, std::span<float> logits) {
  if (actor.temperature == 1) return;
  const auto temperature = static_cast<float>(actor.temperature);
  for (float& logit : logits) {
    if (logit > masked_logit) logit /= temperature;
  }
}

// x at time t, linear between its points, constant before the first, 0 from the episode's end on.
double at_time(const std::vector<double>& times, const std::vector<double>& values, double t) {
  const auto after = std::upper_bound(times.begin(), times.end(), t);
  if (after == times.begin()) return values.front();
  if (after == times.end()) return t > times.back() ? 0.0 : values.back();
  const auto i = static_cast<std::size_t>(after - times.begin());
  const double share = (t - times[i - 1]) / (times[i] - times[i - 1]);
  return values[i - 1] + share * (values[i] - values[i - 1]);
}

void subtract_group_means(std::span<const Episode> episodes, std::uint32_t group,
                          std::vector<std::vector<double>>& series) {
  const std::vector<std::vector<double>> before = series;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    const std::size_t first = e / group * group;
    for (std::size_t k = 0; k < episodes[e].size(); ++k) {
      double sum = 0;
      for (std::size_t other = first; other < first + group; ++other) {
        if (other != e) sum += at_time(episodes[other].time_s, before[other], episodes[e].time_s[k]);
      }
      series[e][k] -= sum / (group - 1);
    }
  }
}

// What the heuristic still got from the same time on.
void subtract_rivals(std::span<const Episode> episodes, const Rivals& rivals, std::uint32_t group,
                     double discount_per_s, std::vector<std::vector<double>>& returns) {
  for (std::size_t g = 0; g < rivals.episodes.size(); ++g) {
    const Episode& rival = rivals.episodes[g];
    std::vector<double> to_go(rival.size());
    double next = rivals.last_value[g];
    for (std::size_t k = rival.size(); k-- > 0;) {
      to_go[k] = next = rival.reward[k] + std::exp(-discount_per_s * rival.seconds[k]) * next;
    }
    for (std::size_t e = g * group; e < (g + 1) * group; ++e) {
      for (std::size_t k = 0; k < episodes[e].size(); ++k) {
        returns[e][k] -= at_time(rival.time_s, to_go, episodes[e].time_s[k]);
      }
    }
  }
}

// These states of `all`: itself where they are all of them, else copied into `some`.
const Observation& choose_states(const Observation& all, std::span<const std::uint32_t> states, Observation& some) {
  if (states.size() == all.count()) return all;
  some.shape(0, [](std::uint32_t) { return std::pair{0u, 0u}; });
  for (const std::uint32_t state : states) append_state(some, all, state);
  return some;
}

}  // namespace

void append_state(Observation& to, const Observation& from, std::uint32_t e) {
  if (to.job_begin.empty()) {
    to.job_begin.push_back(0);
    to.group_begin.push_back(0);
  }
  const auto copy = [](auto& target, const auto& source, std::size_t begin, std::size_t end, std::size_t columns) {
    target.insert(target.end(), source.begin() + static_cast<std::ptrdiff_t>(begin * columns),
                  source.begin() + static_cast<std::ptrdiff_t>(end * columns));
  };
  const std::size_t begin = from.job_begin[e];
  const std::size_t end = from.job_begin[e + 1];
  copy(to.jobs, from.jobs, begin, end, job_features);
  copy(to.prior, from.prior, begin + e, end + e + 1, 1);
  copy(to.mask, from.mask, begin + e, end + e + 1, 1);
  copy(to.groups, from.groups, from.group_begin[e], from.group_begin[e + 1], group_features);
  copy(to.global, from.global, e, e + 1, global_features);
  copy(to.privileged, from.privileged, e, e + 1, privileged_features);
  if (!from.signals.empty()) copy(to.signals, from.signals, e, e + 1, signal_features);
  to.job_begin.push_back(to.job_begin.back() + static_cast<std::uint32_t>(end - begin));
  to.group_begin.push_back(to.group_begin.back() + from.group_begin[e + 1] - from.group_begin[e]);
}

void copy_states(std::span<const SeenState> states, Observation& to) {
  to.shape(
      static_cast<std::uint32_t>(states.size()),
      [&](std::uint32_t i) {
        const auto& [seen, e] = states[i];
        return std::pair{seen->tokens(e), seen->group_begin[e + 1] - seen->group_begin[e]};
      },
      !states.empty() && !states.front().seen->signals.empty());
  float* privileged = to.privileged.data();
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    const auto& [seen, e] = states[i];
    const ObservationSlot slot = to.slot(i);
    const std::size_t begin = seen->job_begin[e];
    const std::size_t tokens = seen->tokens(e);
    const std::size_t groups = seen->group_begin[e + 1] - seen->group_begin[e];
    std::copy_n(seen->jobs.data() + begin * job_features, tokens * job_features, slot.jobs);
    std::copy_n(seen->prior.data() + begin + e, tokens + 1, slot.prior);
    std::copy_n(seen->mask.data() + begin + e, tokens + 1, slot.mask);
    std::copy_n(seen->groups.data() + seen->group_begin[e] * std::size_t{group_features}, groups * group_features,
                slot.groups);
    std::copy_n(seen->global.data() + std::size_t{e} * global_features, global_features, slot.global);
    if (slot.signals != nullptr) {
      std::copy_n(seen->signals.data() + std::size_t{e} * signal_features, signal_features, slot.signals);
    }
    privileged =
        std::copy_n(seen->privileged.data() + std::size_t{e} * privileged_features, privileged_features, privileged);
  }
}

std::vector<Episode> collect_episodes(VectorEnv& env, const Actor& actor, Acting acting, Heuristic teacher,
                                      std::uint64_t seed, Keep keep, RolloutTime* time) {
  RolloutTime spent;
  auto since = RunClock::now();
  const auto book = [&](double RolloutTime::*where) {
    spent.*where += seconds_since(since);
    since = RunClock::now();
  };
  const Batch* batch = &env.reset(seed);
  std::vector<Episode> episodes(env.size());
  std::vector<Rng> draws;
  for (std::uint32_t e = 0; e < env.size(); ++e) {
    episodes[e].window = env.window(e);
    draws.push_back(Rng(seed).split("actions").split(e));
  }
  std::vector<std::uint32_t> actions(env.size()), live;
  std::vector<float> logits;
  ActionDistribution distribution;
  Observation of_live;
  for (;;) {
    live.clear();
    for (std::uint32_t e = 0; e < env.size(); ++e) {
      if (!env.is_done(e)) live.push_back(e);
    }
    const Observation& seen = choose_states(batch->observation, live, of_live);
    book(&RolloutTime::environment_s);
    if (live.empty()) break;
    if (acting == Acting::heuristic) {
      env.heuristic_actions(teacher, actions);
    } else {
      forward_policy(*actor.network, actor.parameters, *actor.normaliser, seen, logits);
      if (acting == Acting::sample) temper(actor, logits);
    }
    for (std::uint32_t i = 0; i < live.size(); ++i) {
      const std::uint32_t e = live[i];
      double log_probability = 0;
      if (acting != Acting::heuristic) {
        const auto row = row_of(logits, seen, i);
        distribution.set(row);
        actions[e] = acting == Acting::sample ? distribution.sample(draws[e]) : best_action(row);
        log_probability = distribution.log_probability(actions[e]);
      }
      if (keep == Keep::rewards) continue;
      if (keep == Keep::states) append_state(episodes[e].observation, seen, i);
      episodes[e].actions.push_back(actions[e]);
      episodes[e].log_probability.push_back(static_cast<float>(log_probability));
      episodes[e].time_s.push_back(to_seconds(env.env(e).now()));
    }
    book(&RolloutTime::inference_s);
    batch = &env.step(actions);
    for (const std::uint32_t e : live) {
      const StepResult& result = batch->results[e];
      episodes[e].reward.push_back(result.scalar);
      episodes[e].seconds.push_back(result.seconds);
      if (!result.done()) continue;
      episodes[e].totals = env.env(e).totals();
      if (result.truncated) append_state(episodes[e].final_observation, batch->observation, e);
    }
  }
  if (time != nullptr) {
    time->environment_s += spent.environment_s;
    time->inference_s += spent.inference_s;
  }
  return episodes;
}

void see(const Env& env, Observation& seen) {
  env.agenda().make_room(seen);
  env.encode(seen.slot(0));
  env.encode_privileged(seen.privileged.data());
}

namespace {

// Begins a step of an episode that is steered.
void begin_held_step(Env& env, const Actor& actor, Acting acting, Rng& draws, HeldAction& held, Observation& seen,
                     Episode& episode) {
  env.change_hands();
  see(env, seen);
  std::vector<float> mean;
  forward_steering(*actor.network, actor.parameters, *actor.normaliser, seen, mean);
  std::vector<float> action = mean;
  if (acting == Acting::sample) draw_action(*actor.network, actor.parameters, action, draws);
  held.hold(*actor.network, actor.parameters, action, env.engine().view());
  append_state(episode.observation, seen, 0);
  episode.actions.push_back(0);
  episode.weights.insert(episode.weights.end(), action.begin(), action.end());
  episode.log_probability.push_back(static_cast<float>(log_density(*actor.network, actor.parameters, mean, action)));
  episode.time_s.push_back(to_seconds(env.now()));
  episode.reward.push_back(0);
  episode.seconds.push_back(0);
}

}  // namespace

Episode steer_episode(Env& env, const Actor& actor, Acting acting, Rng draws, RolloutTime* time) {
  Episode episode;
  HeldAction held;
  Observation seen;
  std::vector<float> logits;
  for (bool done = false; !done;) {
    const auto begin = RunClock::now();
    if (held.is_over(env.engine().view())) begin_held_step(env, actor, acting, draws, held, seen, episode);
    see(env, seen);
    forward_policy(*actor.network, held.parameters(), *actor.normaliser, seen, logits);
    if (time != nullptr) time->inference_s += seconds_since(begin);
    const auto step_begin = RunClock::now();
    const StepResult result = env.step(logits, best_action);
    if (time != nullptr) time->environment_s += seconds_since(step_begin);
    episode.reward.back() += std::exp(-env.options().discount_per_s * episode.seconds.back()) * result.scalar;
    episode.seconds.back() += result.seconds;
    done = result.done();
    if (result.truncated) {
      see(env, seen);
      append_state(episode.final_observation, seen, 0);
    }
  }
  episode.totals = env.totals();
  return episode;
}

std::vector<Episode> steer_episodes(VectorEnv& env, const Actor& actor, Acting acting, std::uint64_t seed,
                                    std::uint32_t threads, RolloutTime* time) {
  env.reset(seed);
  std::vector<Episode> episodes(env.size());
  std::vector<RolloutTime> times(env.size());
  for_each_index(env.size(), threads, [&](std::size_t i) {
    const auto e = static_cast<std::uint32_t>(i);
    Env own = env.env(e);
    episodes[e] = steer_episode(own, actor, acting, Rng(seed).split("actions").split(e), &times[e]);
    episodes[e].window = env.window(e);
  });
  if (time != nullptr) {
    for (const RolloutTime& own : times) {  // of the threads together, as wall time
      time->environment_s += own.environment_s / threads;
      time->inference_s += own.inference_s / threads;
    }
  }
  return episodes;
}

std::vector<RewardVector> evaluate_windows(std::span<const Window* const> windows, const Cluster& cluster,
                                           const EnvOptions& options, const Actor& actor, Acting acting,
                                           Heuristic heuristic, std::uint64_t seed) {
  std::vector<Env> envs(windows.size(), Env(cluster, options));
  std::vector<Rng> draws;
  for (std::size_t w = 0; w < windows.size(); ++w) draws.push_back(Rng(seed).split("actions").split(w));
  std::vector<StepResult> results;
  for (std::size_t w = 0; w < windows.size(); ++w) results.push_back(envs[w].reset(*windows[w]));
  if (acting != Acting::heuristic && actor.network->steers()) {
    std::vector<RewardVector> totals;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      totals.push_back(results[w].done() ? envs[w].totals() : steer_episode(envs[w], actor, acting, draws[w]).totals);
    }
    return totals;
  }
  std::vector<std::size_t> live;
  std::vector<float> logits;
  Observation seen;
  for (;;) {
    live.clear();
    for (std::size_t w = 0; w < windows.size(); ++w) {
      if (!results[w].done()) live.push_back(w);
    }
    if (live.empty()) break;
    const auto size = [&](std::uint32_t i) {
      return std::pair{envs[live[i]].agenda().size(), envs[live[i]].agenda().group_count()};
    };
    seen.shape(static_cast<std::uint32_t>(live.size()), size, envs[live[0]].options().agenda.signals);
    if (acting != Acting::heuristic) {
      for (std::uint32_t i = 0; i < live.size(); ++i) envs[live[i]].encode(seen.slot(i));
      forward_policy(*actor.network, actor.parameters, *actor.normaliser, seen, logits);
      if (acting == Acting::sample) temper(actor, logits);
    }
    for (std::uint32_t i = 0; i < live.size(); ++i) {
      Env& env = envs[live[i]];
      if (acting == Acting::heuristic) {
        results[live[i]] = env.step(heuristic);
      } else {
        const auto pick = [&](std::span<const float> row) {
          return acting == Acting::sample ? sample_action(row, draws[live[i]]) : best_action(row);
        };
        results[live[i]] = env.step(row_of(logits, seen, i), pick);
      }
    }
  }
  std::vector<RewardVector> totals;
  totals.reserve(envs.size());
  for (const Env& env : envs) totals.push_back(env.totals());
  return totals;
}

void make_differential(std::span<Episode> episodes, double reward_per_s) {
  for (Episode& episode : episodes) {
    for (std::size_t k = 0; k < episode.size(); ++k) episode.reward[k] -= reward_per_s * episode.seconds[k];
  }
}

double mean_reward_per_s(std::span<const Episode> episodes) {
  double reward = 0;
  double seconds = 0;
  for (const Episode& episode : episodes) {
    for (std::size_t k = 0; k < episode.size(); ++k) {
      reward += episode.reward[k];
      seconds += episode.seconds[k];
    }
  }
  return seconds > 0 ? reward / seconds : 0;
}

Advantages advantages_of(std::span<const Episode> episodes, const std::vector<std::vector<double>>& values,
                         std::uint32_t group, double discount_per_s, const PpoOptions& options, const Rivals& rivals) {
  Advantages result;
  std::vector<std::vector<double>> returns;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    const Episode& episode = episodes[e];
    std::vector<double> advantage(episode.size()), to_go(episode.size());
    double next_advantage = 0;
    double next_return = values[e].back();
    for (std::size_t k = episode.size(); k-- > 0;) {
      const double gamma = std::exp(-discount_per_s * episode.seconds[k]);
      const double lambda = std::pow(options.lambda, std::min(1.0, episode.seconds[k] / options.lambda_time_s));
      const double delta = episode.reward[k] + gamma * values[e][k + 1] - values[e][k];
      next_advantage = delta + gamma * lambda * next_advantage;
      next_return = episode.reward[k] + gamma * next_return;
      advantage[k] = next_advantage;
      to_go[k] = next_return;
    }
    std::vector<double> target(episode.size());
    for (std::size_t k = 0; k < episode.size(); ++k) target[k] = advantage[k] + values[e][k];
    result.advantage.push_back(std::move(advantage));
    result.value_target.push_back(std::move(target));
    returns.push_back(std::move(to_go));
  }
  if (options.baseline == Baseline::self_critic) {
    subtract_rivals(episodes, rivals, group, discount_per_s, returns);
    result.advantage = std::move(returns);
    return result;
  }
  if (options.baseline == Baseline::group) result.advantage = std::move(returns);
  if (options.baseline != Baseline::critic && group > 1) subtract_group_means(episodes, group, result.advantage);
  return result;
}

}  // namespace gpusched
