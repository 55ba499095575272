// SPDX-License-Identifier: Apache-2.0
/// Rules that set the number of replicas of a service. A rule is a copyable class with
///
///     std::int32_t wanted(const ServiceLoad& load);   // how many replicas there should be now
///     Time period() const;                            // how often it is to be asked; Time::max(): once
///
/// whose members are its memory; it starts and ends nothing. One that is asked whenever a request comes or ends also
/// has
///
///     Time look_again() const;   // when it is to be asked though none does; Time::max(): not
///
/// A further one is a file and its place in `Autoscaler`.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <variant>

#include "gpusched/serving/fixed_replicas.hpp"
#include "gpusched/serving/function_replicas.hpp"
#include "gpusched/serving/hpa.hpp"
#include "gpusched/serving/kpa.hpp"
#include "gpusched/serving/queue_target.hpp"
#include "gpusched/serving/request_rate.hpp"
#include "gpusched/serving/service_load.hpp"
#include "gpusched/serving/told_replicas.hpp"

namespace gpusched {

/// What every rule offers.
template <class T>
concept AutoscalerRule = std::copyable<T> && requires(T rule, const ServiceLoad& load) {
  { rule.wanted(load) } -> std::same_as<std::int32_t>;
  { rule.period() } -> std::same_as<Time>;
};

/// What those offer that are asked whenever a request comes or ends.
template <class T>
concept FollowsRequests = AutoscalerRule<T> && requires(const T& rule) {
  { rule.look_again() } -> std::same_as<Time>;
};

static_assert(FollowsRequests<FunctionReplicas>);
static_assert(AutoscalerRule<FixedReplicas> && AutoscalerRule<Hpa> && AutoscalerRule<Kpa> &&
              AutoscalerRule<RequestRate> && AutoscalerRule<QueueTarget> && AutoscalerRule<ToldReplicas>);

/// One of the rules, as a value.
class Autoscaler {
 public:
  /// All rules.
  using Rule = std::variant<FixedReplicas, Hpa, Kpa, RequestRate, QueueTarget, ToldReplicas, FunctionReplicas>;

  /// Follows `rule`; without, one replica for ever.
  explicit Autoscaler(Rule rule = {}) : rule_(std::move(rule)) {}

  /// The number of replicas wanted. Precondition: load.now does not fall.
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& load) {
    return std::visit([&load](auto& rule) { return rule.wanted(load); }, rule_);
  }
  /// How often it is to be asked; Time::max(): once. A rule that went to zero (Kpa) wants to be asked when a request
  /// comes.
  [[nodiscard]] Time period() const {
    return std::visit([](const auto& rule) { return rule.period(); }, rule_);
  }
  /// It is to be asked whenever a request comes or ends.
  [[nodiscard]] bool follows_requests() const {
    return std::visit([]<class R>(const R&) { return FollowsRequests<R>; }, rule_);
  }
  /// When it is to be asked besides; Time::max(): not.
  [[nodiscard]] Time look_again() const {
    return std::visit(
        []<class R>(const R& rule) {
          if constexpr (FollowsRequests<R>) return rule.look_again();
          return Time::max();
        },
        rule_);
  }
  /// So many replicas from now on. Precondition: it is told them (ToldReplicas).
  void tell(std::int32_t replicas) {
    auto* const told = std::get_if<ToldReplicas>(&rule_);
    GPUSCHED_ASSERT(told != nullptr, "a rule is told a number that it works out by itself");
    told->tell(replicas);
  }

 private:
  Rule rule_;
};

}  // namespace gpusched
