// SPDX-License-Identifier: Apache-2.0
/// Replicas as the containers of a function: from zero and back, each kept for a while when it has nothing to do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/serving/keep_alive.hpp"
#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// What FunctionReplicas is given.
struct FunctionReplicasOptions {
  ReplicaLimits limits{.least = 0};                               ///< of the answer
  std::int32_t at_once = 1;                                       ///< requests that a replica serves at once, from 1
  std::variant<FixedKeepAlive, HistogramKeepAlive> keep_alive{};  ///< how long an idle replica stays
};

/// A request that finds no idle replica asks for one more. A replica that becomes idle ends after the time that the
/// rule gives it; where the rule says so the last one ends at once, and one is loaded before the next request is
/// expected. The replica that became idle last is used next: with a fixed time there are as many as were needed at once
/// within it. A request takes whatever replica is free first, not the one that it asked for (FunctionHost).
class FunctionReplicas {
 public:
  /// By options.
  explicit FunctionReplicas(FunctionReplicasOptions options = {}) : options_(std::move(options)) {}

  /// The number of replicas wanted. Asked again while nothing happened it answers the same.
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& load) {
    let_time_pass(load.now);
    count_invocation(load);
    const std::int64_t needed =
        std::min<std::int64_t>((load.held() + options_.at_once - 1) / options_.at_once, options_.limits.most);
    while (busy_ > needed) release(load.now);
    if (busy_ < needed) {
      idle_until_.resize(idle_until_.size() - std::min<std::size_t>(idle_until_.size(), needed - busy_));
      busy_ = needed;
      load_at_ = Time::max();
    }
    return options_.limits.clamp(busy_ + static_cast<std::int64_t>(idle_until_.size()));
  }
  /// How often it is to be asked, besides; Time::max(): once.
  [[nodiscard]] static Time period() { return Time::max(); }
  /// When it is to be asked, besides whenever a request comes or ends; Time::max(): not.
  [[nodiscard]] Time look_again() const {
    Time next = load_at_;
    for (const Time until : idle_until_) next = std::min(next, until);
    return next;
  }

 private:
  // Replicas whose time is over end, then one is loaded that is due.
  void let_time_pass(Time now) {
    std::erase_if(idle_until_, [&now](Time until) { return until <= now; });
    if (load_at_ > now) return;
    load_at_ = Time::max();
    if (loaded_until_ > now) idle_until_.push_back(loaded_until_);
  }
  // The first request after a time without any ends that time; others found one in service.
  void count_invocation(const ServiceLoad& load) {
    if (load.arrived == arrived_) return;
    arrived_ = load.arrived;
    const Time idle = busy_ == 0 && was_used_ ? load.now - last_end_ : Time{-1};
    was_used_ = true;
    std::visit([&idle](auto& rule) { rule.invoked(0, idle); }, options_.keep_alive);
  }
  // One replica has nothing to do any more.
  void release(Time now) {
    last_end_ = now;
    --busy_;
    const KeepPlan plan = std::visit([](const auto& rule) { return rule.plan(0); }, options_.keep_alive);
    if (busy_ == 0 && idle_until_.empty() && plan.load_after.us > 0 && plan.load_after < plan.until) {
      load_at_ = later_by(now, plan.load_after);
      loaded_until_ = later_by(now, plan.until);
    } else if (plan.until.us > 0) {
      idle_until_.push_back(later_by(now, plan.until));
    }
  }

  FunctionReplicasOptions options_;
  std::int64_t busy_ = 0;         // replicas with something to do
  std::vector<Time> idle_until_;  // the others; the last to become idle last
  Time load_at_ = Time::max();    // one is loaded then,
  Time loaded_until_{};           // to stay so long
  Time last_end_{};               // of a replica's work
  std::int64_t arrived_ = 0;
  bool was_used_ = false;
};

}  // namespace gpusched
