// SPDX-License-Identifier: Apache-2.0
/// VectorEnv: many training environments stepped together, with the semantics of Gymnasium's VectorEnv.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/learn/detail/worker_team.hpp"
#include "gpusched/learn/env.hpp"
#include "gpusched/learn/observation.hpp"
#include "gpusched/learn/window.hpp"

namespace gpusched {

/// When a finished environment starts its next episode (Gymnasium's AutoresetMode).
enum class AutoresetMode : std::uint8_t {
  next_step,  ///< at the next step(), which ignores its action and brings no reward
  same_step,  ///< at once; the last observation of the old episode is in final_observation
  disabled,   ///< when reset_done() is called
};

/// What a step of all environments brought; borrowed from the VectorEnv until its next call.
struct Batch {
  Observation observation;          ///< of the open choices
  std::vector<StepResult> results;  ///< [environments]
  /// Environments whose episode ended at this step, ascending, and (same_step) their last observations in this order.
  std::vector<std::uint32_t> ended;
  Observation final_observation;              ///< see ended
  std::vector<RewardVector> episode_totals;   ///< of the ended episodes
  std::vector<std::uint32_t> episode_window;  ///< of the ended episodes: number of the window
};

/// The environments, how many, and who steps them.
struct VectorEnvOptions {
  EnvOptions env = {};                                 ///< of every environment
  AutoresetMode autoreset = AutoresetMode::same_step;  ///< when a finished environment starts anew
  std::uint32_t environments = 16;                     ///< how many; a multiple of environments_per_window
  std::uint32_t environments_per_window = 1;           ///< so many neighbours get the same windows
  std::uint32_t threads = 1;                           ///< never changes a result
  /// Asked between windows while an environment looks for one with a choice, by all threads: true gives up, and the
  /// environment stays done. Empty: never.
  std::function<bool()> interrupted = {};
  /// Shown each environment after its step, by the thread that stepped it, before it starts anew. Empty: nobody is.
  std::function<void(std::uint32_t e, const Env& env)> watch = {};
  /// Where the windows of each world begin, ascending from 0: the episodes of an environment go through the worlds by
  /// turns, its neighbours a world ahead. Empty: an episode draws one of all windows.
  std::vector<std::uint32_t> worlds = {};
};

/// True when some window offers a choice on some of the clusters: without any, no episode could begin. Asks
/// `interrupted`, if there is one, between windows, and then says true. Costs the first windows of an episode each.
inline bool offers_choice(std::span<const Window> windows, std::span<const Cluster> clusters, const EnvOptions& options,
                          const std::function<bool()>& interrupted = {}) {
  for (const Cluster& cluster : clusters) {
    Env env(cluster, options);
    for (const Window& window : windows) {
      if ((interrupted && interrupted()) || !env.reset(window).done()) return true;
    }
  }
  return false;
}

/// Environments stepped together. Windows are drawn by seed, set of neighbours and episode number, so that an
/// environment's episodes do not depend on the others. Not copyable; save() is the snapshot.
class VectorEnv {
 public:
  /// Everything that changes, as a value.
  struct State {
    std::vector<Env> envs;                ///< [environments]
    std::vector<std::uint64_t> episodes;  ///< [environments]: number of the open episode, from 0
    std::vector<std::uint32_t> windows;   ///< [environments]: window of the open episode
    std::vector<std::uint8_t> done;       ///< [environments]: 1 = over and not started anew
    std::uint64_t seed = 0;               ///< of reset()
    std::vector<std::uint64_t> seeds;     ///< [environments], in place of it; empty: it holds
  };

  /// Borrows windows, scales (empty, or one for each window: Env::reset) and cluster. Preconditions: offers_choice();
  /// environments is a multiple of environments_per_window.
  VectorEnv(std::span<const Window> windows, std::span<const double> scales, const Cluster& cluster,
            const VectorEnvOptions& options)
      : VectorEnv(windows, scales, std::span(&cluster, 1), options) {}

  /// An environment of several clusters: each episode draws one as it draws its window.
  VectorEnv(std::span<const Window> windows, std::span<const double> scales, std::span<const Cluster> clusters,
            const VectorEnvOptions& options)
      : windows_(windows),
        scales_(scales),
        clusters_(clusters),
        options_(options),
        team_(std::max(1u, options.threads)) {
    GPUSCHED_ASSERT(!windows.empty() && !clusters.empty(), "no windows or no cluster");
    GPUSCHED_ASSERT(scales.empty() || scales.size() == windows.size(), "one scale for each window");
    GPUSCHED_ASSERT(options.environments_per_window > 0 && options.environments % options.environments_per_window == 0,
                    "every window has as many environments");
    state_.envs.assign(options.environments, Env(clusters.front(), options.env));
    state_.done.assign(options.environments, 0);
    state_.windows.assign(options.environments, 0);
    state_.episodes.assign(options.environments, 0);
    standing_.assign(options.environments, {});
  }

  /// Number of environments.
  [[nodiscard]] std::uint32_t size() const { return options_.environments; }
  /// Environment `e`, below size().
  [[nodiscard]] const Env& env(std::uint32_t e) const { return state_.envs[e]; }

  /// Starts first episodes in every environment.
  const Batch& reset(std::uint64_t seed) {
    state_.seed = seed;
    state_.seeds.clear();
    return begin_all();
  }

  /// The same with a seed for each environment, which then has the episodes of the first of a VectorEnv of that seed.
  const Batch& reset(std::span<const std::uint64_t> seeds) {
    GPUSCHED_ASSERT(seeds.size() == size(), "one seed for each environment");
    state_.seeds.assign(seeds.begin(), seeds.end());
    return begin_all();
  }

  /// One action for each environment; those of done environments are ignored. Precondition: each other is allowed.
  const Batch& step(std::span<const std::uint32_t> actions) {
    GPUSCHED_ASSERT(actions.size() == size(), "one action for each environment");
    return step_each([&actions](Env& env, std::uint32_t e) { return env.step(actions[e]); });
  }

  /// Mode preempt: scores of the batch's tokens, laid out as Observation::prior.
  const Batch& step(std::span<const float> scores) {
    GPUSCHED_ASSERT(scores.size() == batch_.observation.prior.size(), "one score for each token");
    return step_each([this, &scores](Env& env, std::uint32_t e) {
      return env.step(scores.subspan(std::size_t{batch_.observation.job_begin[e]} + e, env.agenda().size()));
    });
  }

  /// A heuristic's steps, in any mode.
  const Batch& step(Heuristic heuristic) {
    return step_each([&heuristic](Env& env, std::uint32_t) { return env.step(heuristic); });
  }

  /// AutoresetMode::disabled: starts new episodes where the last one is done.
  const Batch& reset_done() {
    for_each([this](std::uint32_t e) {
      if (state_.done[e] != 0) begin_episode(e);
    });
    collect({});
    return batch_;
  }

  /// The allowed action that `heuristic` prefers, for every environment that is not done. Computed by the threads
  /// that hold the environments, since one thread alone would need longer than for a step.
  void heuristic_actions(Heuristic heuristic, std::span<std::uint32_t> actions) {
    GPUSCHED_ASSERT(actions.size() == size(), "one action for each environment");
    for_each([this, &actions, &heuristic](std::uint32_t e) {
      if (state_.done[e] == 0) actions[e] = state_.envs[e].agenda().heuristic_action(heuristic);
    });
  }

  /// What the last call brought.
  [[nodiscard]] const Batch& batch() const { return batch_; }
  /// True when the episode of `e` is over and was not started anew.
  [[nodiscard]] bool is_done(std::uint32_t e) const { return state_.done[e] != 0; }
  /// The window of environment `e`'s episode.
  [[nodiscard]] std::uint32_t window(std::uint32_t e) const { return state_.windows[e]; }

  /// A snapshot for restore().
  [[nodiscard]] State save() const { return state_; }
  /// Goes on exactly from where save() was called.
  const Batch& restore(const State& state) {
    state_ = state;
    for_each([this](std::uint32_t e) { stand(e); });
    batch_.results.assign(size(), {});
    collect({});
    return batch_;
  }

 private:
  // What the caller's thread must know of an environment after a step, packed, because it comes out of another core's
  // cache: reading it from the environments and results themselves took as long as the step.
  struct Standing {
    std::uint32_t tokens = 0, groups = 0;
    bool ended = false;  // its episode, at the last step
  };

  const Batch& begin_all() {
    state_.episodes.assign(size(), 0);
    batch_.results.assign(size(), {});
    for_each([this](std::uint32_t e) { begin_episode(e); });
    collect({});
    return batch_;
  }

  template <class Work>
  void for_each(Work work) {
    team_.for_each(size(), std::move(work));
  }

  // Steps every environment that is not done by `step_one`.
  template <class StepOne>
  const Batch& step_each(StepOne step_one) {
    for_each([this, &step_one](std::uint32_t e) {
      if (state_.done[e] == 0) {
        batch_.results[e] = step_one(state_.envs[e], e);
        state_.done[e] = batch_.results[e].done() ? 1 : 0;
        if (options_.watch) options_.watch(e, state_.envs[e]);
        stand(e);
        standing_[e].ended = state_.done[e] != 0;
        return;
      }
      batch_.results[e] = {};
      standing_[e].ended = false;
      if (options_.autoreset == AutoresetMode::next_step) begin_episode(e);
    });
    std::vector<std::uint32_t> ended;
    for (std::uint32_t e = 0; e < size(); ++e) {
      if (standing_[e].ended) ended.push_back(e);
    }
    collect(std::move(ended));
    return batch_;
  }

  // Draws windows until one has a choice. Where as many draws as there are windows found none, all are tried in turn.
  void begin_episode(std::uint32_t e) {
    const std::uint32_t set = e / options_.environments_per_window;
    const Rng draws = state_.seeds.empty() ? Rng(state_.seed).split("windows").split(set)
                                           : Rng(state_.seeds[e]).split("windows").split(0);
    const std::uint64_t all = std::uint64_t{windows_.size()} * clusters_.size();
    for (std::uint64_t tried = 0;; ++tried) {
      GPUSCHED_ASSERT(tried < 2 * all, "no window offers a choice");
      const auto [first, end] = windows_of_turn(set + state_.episodes[e]);
      Rng draw = draws.split(state_.episodes[e]++);
      std::uint64_t window = first + draw.below(end - first);
      std::uint64_t cluster = clusters_.size() > 1 ? draw.below(clusters_.size()) : 0;
      if (tried >= all) {
        window = (tried - all) % windows_.size();
        cluster = (tried - all) / windows_.size();
      }
      state_.windows[e] = static_cast<std::uint32_t>(window);
      if (clusters_.size() > 1) state_.envs[e].move_to(clusters_[cluster]);
      const StepResult opened = state_.envs[e].reset(windows_[window], scales_.empty() ? 1.0 : scales_[window]);
      state_.done[e] = opened.done() ? 1 : 0;
      if (!opened.done() || (options_.interrupted && options_.interrupted())) break;
    }
    stand(e);
  }

  // First window and end of those that an episode draws from.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> windows_of_turn(std::uint64_t turn) const {
    const std::vector<std::uint32_t>& begins = options_.worlds;
    if (begins.size() < 2) return {0, windows_.size()};
    const std::size_t world = turn % begins.size();
    return {begins[world], world + 1 < begins.size() ? begins[world + 1] : windows_.size()};
  }

  // Notes where environment `e` stands.
  void stand(std::uint32_t e) {
    const Agenda& agenda = state_.envs[e].agenda();
    standing_[e] = {agenda.size(), agenda.group_count(), false};
  }

  // Records the ended episodes, resets them (same_step), and writes every environment's observation.
  void collect(std::vector<std::uint32_t> ended) {
    batch_.ended = std::move(ended);
    batch_.episode_totals.clear();
    batch_.episode_window.clear();
    for (const std::uint32_t e : batch_.ended) {
      batch_.episode_totals.push_back(state_.envs[e].totals());
      batch_.episode_window.push_back(state_.windows[e]);
    }
    const bool now = options_.autoreset == AutoresetMode::same_step;
    encode(batch_.final_observation, now ? std::span<const std::uint32_t>(batch_.ended) : std::span<std::uint32_t>{});
    if (now && !batch_.ended.empty()) {  // by the thread that steps it, which then has its memory to itself
      for_each([this](std::uint32_t e) {
        if (standing_[e].ended) begin_episode(e);
      });
    }
    if (everyone_.size() != size()) {
      everyone_.resize(size());
      for (std::uint32_t e = 0; e < size(); ++e) everyone_[e] = e;
    }
    encode(batch_.observation, everyone_);
  }

  void encode(Observation& observation, std::span<const std::uint32_t> envs) {
    const auto count = static_cast<std::uint32_t>(envs.size());
    observation.shape(
        count,
        [this, &envs](std::uint32_t i) {
          const Standing& standing = standing_[envs[i]];
          return std::pair{standing.tokens, standing.groups};
        },
        options_.env.agenda.signals);
    if (count == 0) return;
    team_.for_each(count, [this, &envs, &observation](std::uint32_t i) {
      state_.envs[envs[i]].encode(observation.slot(i));
      state_.envs[envs[i]].encode_privileged(observation.privileged.data() + std::size_t{i} * privileged_features);
    });
  }

  std::span<const Window> windows_;
  std::span<const double> scales_;
  std::span<const Cluster> clusters_;
  VectorEnvOptions options_;
  State state_;
  Batch batch_;
  std::vector<std::uint32_t> everyone_;
  std::vector<Standing> standing_;
  detail::WorkerTeam team_;
};

}  // namespace gpusched
