// SPDX-License-Identifier: Apache-2.0
/// How long a job waits for a cluster before it goes to a cloud that always has room: Starburst's waiting policies (Luo
/// et al., "Starburst", USENIX ATC 2024, section 4; github.com/michaelzhiluo/starburst, skyburst/waiting_policy.py).
#pragma once

#include <array>
#include <cstdint>

#include "gpusched/core/named_value.hpp"

namespace gpusched {

/// What the wait is in proportion to.
enum class BurstWait : std::uint8_t {
  no_wait,          ///< nothing: it goes at once
  constant,         ///< nothing: `factor` hours
  linear_runtime,   ///< its run time; the artifact states 1 + factor
  linear_cost,      ///< GPUs x run time
  linear_capacity,  ///< GPUs
};

/// The policies by name.
inline constexpr std::array<NamedValue<BurstWait>, 5> burst_wait_names{
    {{"no-wait", BurstWait::no_wait},
     {"constant", BurstWait::constant},
     {"linear_runtime", BurstWait::linear_runtime},
     {"linear_cost", BurstWait::linear_cost},
     {"linear_capacity", BurstWait::linear_capacity}}};

/// A policy: a kind of wait, and how much of it.
struct BurstPolicy {
  BurstWait wait = BurstWait::no_wait;
  double factor = 0;  ///< hours; per hour of run time, per GPU hour or per GPU
};

/// Hours that a job waits at most.
double burst_wait_h(const BurstPolicy& policy, double runtime_h, double gpus);

}  // namespace gpusched
