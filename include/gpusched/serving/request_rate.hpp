// SPDX-License-Identifier: Apache-2.0
/// Replicas by the rate of requests, as SkyServe sets them (Mao et al., "SkyServe: serving AI models across regions and
/// clouds with spot instances", EuroSys 2025; RequestRateAutoscaler of its program).
#pragma once

#include <cmath>
#include <cstdint>

#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// What RequestRate is given.
struct RequestRateOptions {
  ReplicaLimits limits = {};              ///< of the answer
  double rate_per_replica = 1;            ///< requests a second that one replica is meant for; above 0
  Time window = whole_seconds(60);        ///< over which requests are counted
  Time up_after = whole_seconds(300);     ///< more replicas when wanted without a break for so long
  Time down_after = whole_seconds(1200);  ///< fewer likewise
  Time period = whole_seconds(20);        ///< between two looks
};

/// ceil(requests of the last 60 s / 60 / rate of a replica), once more were wanted at 300 s / 20 s looks in a row, or
/// fewer at 1,200 s / 20 s. From no replica up at once. Spot instances beside others are not part of this rule.
class RequestRate {
 public:
  /// By options.
  explicit RequestRate(const RequestRateOptions& options = {}) : options_(options), history_(options.window) {}

  /// The number of replicas wanted.
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& load) {
    if (last_.stands(load.now)) return last_.answer;
    std::int32_t answer = last_.asked ? last_.answer : options_.limits.clamp(load.replicas());
    history_.add(load);
    const double rate = static_cast<double>(history_.arrivals(options_.window)) / to_seconds(options_.window);
    const std::int32_t wish =
        options_.limits.clamp(static_cast<std::int64_t>(std::ceil(rate / options_.rate_per_replica)));
    ups_ = wish > answer ? ups_ + 1 : 0;
    downs_ = wish < answer ? downs_ + 1 : 0;
    if ((answer == 0 && wish > 0) || (ups_ > 0 && ups_ >= looks(options_.up_after)) ||
        (downs_ > 0 && downs_ >= looks(options_.down_after))) {
      answer = wish;
      ups_ = downs_ = 0;
    }
    return last_.give(answer, load.now, options_.period);
  }
  /// How often it is to be asked.
  [[nodiscard]] Time period() const { return options_.period; }

 private:
  [[nodiscard]] std::int64_t looks(Time span) const { return span.us / options_.period.us; }

  RequestRateOptions options_;
  LoadHistory history_;
  AnswerPeriod last_;
  std::int64_t ups_ = 0, downs_ = 0;
};

}  // namespace gpusched
