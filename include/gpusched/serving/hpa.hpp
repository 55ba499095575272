// SPDX-License-Identifier: Apache-2.0
/// The horizontal pod autoscaler of Kubernetes with its default behaviour (kubernetes.io, "Horizontal Pod Autoscaling";
/// pkg/controller/podautoscaler of its source).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// What Hpa is given.
struct HpaOptions {
  /// What is measured; each is a mean over the ready replicas.
  enum class Metric : std::uint8_t {
    busy,  ///< requests in service a replica, over what it serves at once: the share of it that is busy
    held,  ///< requests in service and waiting a replica
  };
  ReplicaLimits limits = {};              ///< of the answer; the least counts as 1 where it is 0
  Metric metric = Metric::busy;           ///< what is measured
  double target = 0.7;                    ///< of the metric; above 0
  double at_once = 1;                     ///< requests that a replica serves at once (busy); above 0
  double tolerance = 0.1;                 ///< no change while metric / target is so near to 1
  Time period = whole_seconds(15);        ///< between two answers
  Time down_window = whole_seconds(300);  ///< the largest wish of this long counts before going down
};

/// ceil(ready x metric / target), not within the tolerance, down to the largest wish of the last 300 s, up to twice as
/// many or four more at a time. Replicas that start count as idle when that speaks against going up, and are left out
/// of a wish to go down. Asked before a period is over it answers as before.
class Hpa {
 public:
  /// By options.
  explicit Hpa(const HpaOptions& options = {}) : options_(options) {
    options_.limits.least = std::max(options_.limits.least, 1);
    options_.limits.most = std::max(options_.limits.most, options_.limits.least);
  }

  /// The number of replicas wanted.
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& load) {
    if (last_.stands(load.now)) return last_.answer;
    const std::int32_t current = last_.asked ? last_.answer : load.replicas();
    if (!last_.asked) wishes_.add(load.now, current, options_.down_window);
    const std::int32_t wish = wished(load, current);
    wishes_.add(load.now, wish, options_.down_window);
    const std::int32_t steady = std::clamp(current, wish, wishes_.largest());
    const std::int64_t most_up = std::max<std::int64_t>(2LL * current, current + 4LL);
    return last_.give(options_.limits.clamp(std::min<std::int64_t>(steady, most_up)), load.now, options_.period);
  }
  /// How often it is to be asked.
  [[nodiscard]] Time period() const { return options_.period; }

 private:
  [[nodiscard]] std::int32_t wished(const ServiceLoad& load, std::int32_t current) const {
    if (load.ready <= 0) return options_.limits.clamp(current);  // nothing is measured
    const double sum = options_.metric == HpaOptions::Metric::busy
                           ? static_cast<double>(load.in_flight) / options_.at_once
                           : static_cast<double>(load.held());
    double counted = load.ready;
    double ratio = sum / counted / options_.target;
    if (is_near(ratio)) return options_.limits.clamp(current);
    if (ratio > 1 && load.starting > 0) {
      counted = load.replicas();
      ratio = sum / counted / options_.target;
      if (is_near(ratio) || ratio < 1) return options_.limits.clamp(current);
    }
    return options_.limits.clamp(static_cast<std::int64_t>(std::min(std::ceil(ratio * counted), 1e9)));
  }
  [[nodiscard]] bool is_near(double ratio) const { return std::abs(ratio - 1) <= options_.tolerance; }

  HpaOptions options_;
  AnswerPeriod last_;
  LatestWishes wishes_;
};

}  // namespace gpusched
