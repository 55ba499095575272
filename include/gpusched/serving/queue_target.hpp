// SPDX-License-Identifier: Apache-2.0
/// Replicas by queueing theory: the least with which M/M/c keeps a promise of a latency (erlang.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/serving/erlang.hpp"
#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// What QueueTarget is given.
struct QueueTargetOptions {
  ReplicaLimits limits = {};             ///< of the answer; the most where no number keeps the promise
  LatencyTarget target = {};             ///< the promise
  std::int32_t at_once = 1;              ///< requests that a replica serves at once, each a server of the queue; from 1
  double service_s = 0;                  ///< mean service time; 0: as observed
  Time window = whole_seconds(60);       ///< over which the rate of arrivals is taken
  Time down_window = whole_seconds(60);  ///< the largest wish of this long counts before going down
  Time period = whole_seconds(15);       ///< between two answers
};

/// The least c for which the tail of M/M/(c x at_once) is within the promise at the present rate. Keeps what there is
/// while no service time is known.
class QueueTarget {
 public:
  /// By options.
  explicit QueueTarget(const QueueTargetOptions& options = {}) : options_(options), history_(options.window) {}

  /// The number of replicas wanted. O(servers).
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& load) {
    if (last_.stands(load.now)) return last_.answer;
    history_.add(load);
    wishes_.add(load.now, wished(load), options_.down_window);
    return last_.give(wishes_.largest(), load.now, options_.period);
  }
  /// How often it is to be asked.
  [[nodiscard]] Time period() const { return options_.period; }

 private:
  [[nodiscard]] std::int32_t wished(const ServiceLoad& load) const {
    const double service_s = options_.service_s > 0 ? options_.service_s : load.mean_service_s;
    if (!(service_s > 0)) return options_.limits.clamp(std::max(load.replicas(), load.held() > 0 ? 1 : 0));
    const double rate = history_.rate(options_.window);
    if (!(rate > 0)) return options_.limits.clamp(load.held() > 0 ? 1 : 0);
    return options_.limits.clamp(
        least_replicas(rate, 1 / service_s, options_.target, options_.at_once, options_.limits.most));
  }

  QueueTargetOptions options_;
  LoadHistory history_;
  AnswerPeriod last_;
  LatestWishes wishes_;
};

}  // namespace gpusched
