// SPDX-License-Identifier: Apache-2.0
/// RequestRouter: which replica gets a request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// How requests find replicas.
enum class RoutingRule : std::uint8_t {
  shared_queue,  ///< one queue first come first served for all; the free replica of the least number takes its head
  least_loaded,  ///< a queue a replica; to the one with the fewest requests waiting and in service, the least number
                 ///< among equals
  round_robin,   ///< a queue a replica; to the next one by number
  session,       ///< a queue a replica; to where the session's last request went while that one takes requests, else as
                 ///< least_loaded
  random,        ///< a queue a replica; to any, each as likely
};

/// The memory of a rule. A value.
class RequestRouter {
 public:
  /// By `rule`; shared_queue chooses as least_loaded where a choice is needed at all. `seed`: of random.
  explicit RequestRouter(RoutingRule rule = RoutingRule::shared_queue, std::uint64_t seed = 0)
      : rule_(rule), rng_(seed) {}
  /// As given.
  [[nodiscard]] RoutingRule rule() const { return rule_; }

  /// One of `replicas`, numbers ascending; -1 when there is none. `load(number)`: its requests. O(replicas) for the
  /// rules that look at loads.
  template <class Load>
  [[nodiscard]] std::int32_t choose(std::span<const std::int32_t> replicas, std::uint64_t session, Load load) {
    if (replicas.empty()) return -1;
    if (rule_ == RoutingRule::round_robin) {
      const auto next = std::upper_bound(replicas.begin(), replicas.end(), last_);
      return last_ = next == replicas.end() ? replicas.front() : *next;
    }
    if (rule_ == RoutingRule::random) return replicas[rng_.below(replicas.size())];
    if (rule_ == RoutingRule::session) {
      const auto known = sessions_.find(session);
      if (known != sessions_.end() && std::binary_search(replicas.begin(), replicas.end(), known->second)) {
        return known->second;
      }
    }
    std::int32_t chosen = replicas.front();
    auto least = load(chosen);
    for (const std::int32_t replica : replicas.subspan(1)) {
      if (const auto its = load(replica); its < least) {
        chosen = replica;
        least = its;
      }
    }
    if (rule_ == RoutingRule::session) sessions_[session] = chosen;
    return chosen;
  }

 private:
  RoutingRule rule_;
  Rng rng_;
  std::int32_t last_ = -1;
  std::unordered_map<std::uint64_t, std::int32_t> sessions_;  // looked up alone, never in its own order
};

}  // namespace gpusched
