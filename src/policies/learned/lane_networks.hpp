// SPDX-License-Identifier: Apache-2.0
/// The parts of score_network.hpp that run on the processor's vectors, shared by acting and learning: the kernel
/// networks' scores and the critic.
#pragma once

#include "src/policies/learned/lanes/lane_stack.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

constexpr bool is_kernel(const NetworkSpec& spec) {
  return spec.kind == NetworkKind::kernel || spec.kind == NetworkKind::sc20_kernel;
}

/// Whether FusedLearner (src/rl/ppo) learns this network: the kernel networks, index without hidden units and without
/// terms of places or signals, and all that steer.
constexpr bool learns_on_lanes(const NetworkSpec& spec) {
  if (spec.hidden > 0 || ((spec.places || spec.signals) && !spec.steers())) return false;
  return spec.steers() || is_kernel(spec) || spec.kind == NetworkKind::index;
}

/// A kernel network's layers. It scores WAIT as a job whose features are all 0, beside the global features if it sees
/// them.
LaneStack kernel_scorer(const NetworkLayout& layout, const LaneKernels& kernels);

/// Columns that a kernel network needs for the states from `first` to before `end`: their tokens and, behind them, WAIT
/// of each state, or one for all where it is the same.
inline std::size_t kernel_columns(const NetworkSpec& spec, const Observation& seen, std::uint32_t first,
                                  std::uint32_t end) {
  return seen.job_begin[end] - seen.job_begin[first] + (spec.kind == NetworkKind::kernel ? end - first : 1);
}
/// Where among them WAIT of state `s` is.
inline std::size_t wait_column(const NetworkSpec& spec, const Observation& seen, std::uint32_t first, std::uint32_t end,
                               std::uint32_t s) {
  return seen.job_begin[end] - seen.job_begin[first] + (spec.kind == NetworkKind::kernel ? s - first : 0);
}
/// Writes their normalised features, and zeros behind them.
void fill_kernel_inputs(const NetworkSpec& spec, const Observation& seen, std::uint32_t first, std::uint32_t end,
                        const Normaliser& normaliser, std::size_t columns, float* sheet);

/// The critic's layers.
LaneStack critic_stack(const NetworkLayout& layout, const LaneKernels& kernels);

/// Writes critic_features() of `states` states into a sheet of whole_lanes(states) columns.
void fill_critic_inputs(const float* features, std::size_t states, float* sheet);

}  // namespace gpusched
