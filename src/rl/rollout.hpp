// SPDX-License-Identifier: Apache-2.0
/// Rollouts: whole episodes under a network, in batches, and what PPO makes of them. No Torch: acting is
/// forward_policy().
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "src/policies/learned/score_network.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {

/// A network that acts.
struct Actor {
  const NetworkSpec* network = nullptr;
  const Normaliser* normaliser = nullptr;
  std::span<const float> parameters;
  double temperature = 1;  ///< of Acting::sample: logits are divided by it
};

/// One episode, step by step.
struct Episode {
  Observation observation;  ///< state k is environment k of it; empty unless Keep::states
  std::vector<std::uint32_t> actions;
  std::vector<float>
      weights;  ///< of a network that steers: [steps x layout.steered], its actions; `actions` are 0 then
  std::vector<float> log_probability;
  std::vector<double> reward;     ///< scalar, scaled
  std::vector<double> seconds;    ///< until the next choice
  std::vector<double> time_s;     ///< of the choice
  Observation final_observation;  ///< of a truncated episode; empty when it ended
  RewardVector totals{};
  std::uint32_t window = 0;

  [[nodiscard]] std::size_t size() const { return actions.size(); }
};

/// Appends state `e` of `from`.
void append_state(Observation& to, const Observation& from, std::uint32_t e);

/// A state of an observation, which is borrowed.
struct SeenState {
  const Observation* seen;
  std::uint32_t number;
};
/// Makes `to` these states, in this order, in the memory that it has. Precondition: `to` is none of theirs.
void copy_states(std::span<const SeenState> states, Observation& to);

/// What `env` shows at its open choice, as the one state of `seen`.
void see(const Env& env, Observation& seen);

/// What chooses in collect_episodes().
enum class Acting : std::uint8_t { sample, best, heuristic };

/// What collect_episodes() keeps of an episode beside its rewards and totals.
enum class Keep : std::uint8_t {
  rewards,  ///< nothing
  steps,    ///< what was done and when, and the last observation of a truncated episode
  states,   ///< that, and what was seen
};

/// Where a rollout's wall time went: the simulation with its observations, and the network that acts.
struct RolloutTime {
  double environment_s = 0, inference_s = 0;
};

/// One episode of a network that steers, from the open choice of `env` on: a step lasts while its weights hold, and its
/// reward is what the choices brought meanwhile. Precondition: acting is not Acting::heuristic.
Episode steer_episode(Env& env, const Actor& actor, Acting acting, Rng draws, RolloutTime* time = nullptr);

/// One in every environment of `env`, as collect_episodes() starts them.
std::vector<Episode> steer_episodes(VectorEnv& env, const Actor& actor, Acting acting, std::uint64_t seed,
                                    std::uint32_t threads, RolloutTime* time = nullptr);

/// One episode in every environment of `env` (autoreset disabled), started with `seed`. Actions of environment e are
/// drawn from the stream of (seed, e), so that nothing depends on threads or batches. `teacher` is read with
/// Acting::heuristic only. `time`: what it took is added.
std::vector<Episode> collect_episodes(VectorEnv& env, const Actor& actor, Acting acting, Heuristic teacher,
                                      std::uint64_t seed, Keep keep, RolloutTime* time = nullptr);

/// Weighted reward totals of a whole episode in each window, by a network's actions or a heuristic's, in order. With
/// Acting::sample, those of window w are drawn from the stream of (seed, w).
std::vector<RewardVector> evaluate_windows(std::span<const Window* const> windows, const Cluster& cluster,
                                           const EnvOptions& options, const Actor& actor, Acting acting,
                                           Heuristic heuristic, std::uint64_t seed = 0);

/// Rewards become differential: less what `reward_per_s` would have brought until the next choice.
void make_differential(std::span<Episode> episodes, double reward_per_s);

/// Reward a second over all of these episodes.
double mean_reward_per_s(std::span<const Episode> episodes);

/// The heuristic's episodes, and the critic's values of their last observations (0 when the episode ended).
struct Rivals {
  std::vector<Episode> episodes;
  std::vector<double> last_value;
};

/// Advantages and value targets of every step.
struct Advantages {
  std::vector<std::vector<double>> advantage;     ///< [episode][step], not normalised
  std::vector<std::vector<double>> value_target;  ///< the same shape, in units of reward
};

/// `values` are the critic's, in units of reward, [episode][steps + 1]; the last entry is that of the final observation
/// (0 when the episode ended). Groups are `group` neighbouring episodes of one window. Discounting is by simulated time
/// (rl.md 3.5): gamma = exp(-beta dt), lambda^min(1, dt / lambda_time_s). `rivals` are read with Baseline::self_critic
/// only: the heuristic's episode in the window of each group.
Advantages advantages_of(std::span<const Episode> episodes, const std::vector<std::vector<double>>& values,
                         std::uint32_t group, double discount_per_s, const PpoOptions& options,
                         const Rivals& rivals = {});

}  // namespace gpusched
