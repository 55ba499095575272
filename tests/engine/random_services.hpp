// SPDX-License-Identifier: Apache-2.0
/// Services with random requests, times and rules, in whole seconds.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gpusched/core/rng.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched::test {

inline Time drawn_s(Rng& rng, std::int64_t least, std::int64_t most) {
  return whole_seconds(least + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most - least + 1))));
}

inline Autoscaler drawn_rule(Rng& rng, const ServiceSpec& service) {
  const ReplicaLimits limits{.least = static_cast<std::int32_t>(rng.below(2)),
                             .most = static_cast<std::int32_t>(service.most)};
  switch (rng.below(7)) {
    case 0: return Autoscaler(FixedReplicas(static_cast<std::int32_t>(1 + rng.below(service.most))));
    case 1:
      return Autoscaler(Hpa({.limits = limits,
                             .metric = rng.below(2) == 0 ? HpaOptions::Metric::busy : HpaOptions::Metric::held,
                             .period = drawn_s(rng, 1, 5),
                             .down_window = drawn_s(rng, 1, 15)}));
    case 2:
      return Autoscaler(Kpa({.limits = limits,
                             .concurrency = 1 + rng.uniform(),
                             .stable_window = drawn_s(rng, 5, 12),
                             .panic_window = drawn_s(rng, 1, 4),
                             .to_zero_after = drawn_s(rng, 1, 9),
                             .period = drawn_s(rng, 1, 3)}));
    case 3:
      return Autoscaler(RequestRate({.limits = limits,
                                     .rate_per_replica = 0.1 + rng.uniform(),
                                     .window = drawn_s(rng, 2, 9),
                                     .up_after = drawn_s(rng, 2, 6),
                                     .down_after = drawn_s(rng, 2, 12),
                                     .period = drawn_s(rng, 1, 2)}));
    case 4:
      return Autoscaler(FunctionReplicas({.limits = limits,
                                          .at_once = static_cast<std::int32_t>(service.at_once),
                                          .keep_alive = FixedKeepAlive(drawn_s(rng, 0, 20))}));
    case 5:
      return Autoscaler(FunctionReplicas(
          {.limits = limits,
           .keep_alive = HistogramKeepAlive(
               {.bins = 20, .bin = drawn_s(rng, 1, 3), .head_margin = 1, .tail_margin = 1, .least_samples = 2})}));
    default:
      return Autoscaler(QueueTarget({.limits = limits,
                                     .target = {.within_s = 12, .quantile = 0.8},
                                     .window = drawn_s(rng, 3, 12),
                                     .down_window = drawn_s(rng, 1, 9),
                                     .period = drawn_s(rng, 1, 5)}));
  }
}

inline ServiceSpec drawn_service(Rng& rng, int number) {
  ServiceSpec service{.name = "s" + std::to_string(number), .most = 1 + static_cast<std::uint32_t>(rng.below(4))};
  service.begin = drawn_s(rng, 0, rng.below(2) == 0 ? 0 : 20);
  const std::uint64_t requests = 3 + rng.below(40), gap = 1 + rng.below(6);
  Time at{};
  for (std::uint64_t i = 0; i < requests; ++i) {
    at += drawn_s(rng, 0, static_cast<std::int64_t>(rng.below(10) == 0 ? 40 : gap));
    service.requests.push_back({.arrival = at, .work = drawn_s(rng, 1, 8)});
  }
  if (rng.below(3) == 0) {
    service.batches = {drawn_s(rng, 1, 3), drawn_s(rng, 2, 5), drawn_s(rng, 3, 7)};
    service.batch_delay = drawn_s(rng, 0, 4);
  } else {
    service.at_once = 1 + static_cast<std::uint32_t>(rng.below(2));
  }
  const std::array rules{RoutingRule::shared_queue, RoutingRule::least_loaded, RoutingRule::round_robin};
  service.routing = rules[rng.below(3)];
  if (rng.below(2) == 0) service.timeout = drawn_s(rng, 2, 20);
  service.lost = rng.below(2) == 0 ? LostRequests::retry : LostRequests::drop;
  service.cold_start = drawn_s(rng, 0, 6);
  service.warm_start = drawn_s(rng, 0, service.cold_start.us / microseconds_per_second);
  service.keep_warm = rng.below(2) == 0 ? Time{} : drawn_s(rng, 1, 40);
  service.mean_service_s = 4;
  service.autoscaler = drawn_rule(rng, service);
  return service;
}

}  // namespace gpusched::test
