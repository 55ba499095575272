// SPDX-License-Identifier: Apache-2.0
/// Closed forms of queues: M/M/c by Erlang's two formulas, M/D/1. Sources: A. K. Erlang, "Solution of some problems in
/// the theory of probabilities of significance in automatic telephone exchanges", 1917; Kleinrock, "Queueing Systems",
/// volume 1, 1975. Rates are per second, spans are seconds; the load is arrivals times mean service time, in servers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gpusched {

/// P(an arrival finds all `servers` busy) where nobody waits (M/G/c/c). By the recursion B(k) = a B(k-1) / (k + a
/// B(k-1)), whose terms lie in [0, 1] for any number of servers. O(servers). Precondition: load >= 0, servers >= 0.
inline double erlang_b(std::int64_t servers, double load) {
  double blocked = 1;
  for (std::int64_t k = 1; k <= servers; ++k) blocked = load * blocked / (static_cast<double>(k) + load * blocked);
  return blocked;
}

/// P(an arrival waits) in M/M/c from erlang_b(); 1 where the servers cannot keep up.
inline double erlang_c_of_b(std::int64_t servers, double load, double blocked) {
  const double idle = 1 - load / static_cast<double>(servers);
  return servers <= 0 || !(idle > 0) ? 1 : blocked / (idle + (1 - idle) * blocked);
}

/// P(an arrival waits) in M/M/c; 1 where the servers cannot keep up. O(servers).
inline double erlang_c(std::int64_t servers, double load) {
  return erlang_c_of_b(servers, load, erlang_b(servers, load));
}

/// The queue M/M/c in its steady state, if it has one.
struct MmcQueue {
  double arrival_rate = 0;   ///< lambda, a second
  double service_rate = 1;   ///< mu of one server, a second; above 0
  std::int64_t servers = 1;  ///< c
  double waits = 0;          ///< P(an arrival waits)

  /// With P(wait) computed. O(servers). Precondition: service rate above 0, servers from 0.
  static MmcQueue of(double arrival_rate, double service_rate, std::int64_t servers) {
    return {arrival_rate, service_rate, servers, erlang_c(servers, arrival_rate / service_rate)};
  }

  /// What the servers can do beyond what arrives, a second; not above 0: the queue grows for ever.
  [[nodiscard]] double spare_rate() const { return static_cast<double>(servers) * service_rate - arrival_rate; }
  /// Mean wait in the queue (s); infinite where the servers cannot keep up.
  [[nodiscard]] double mean_wait_s() const {
    return spare_rate() > 0 ? waits / spare_rate() : std::numeric_limits<double>::infinity();
  }
  /// P(wait > t) = C exp(-(c mu - lambda) t), first come first served. Precondition: t >= 0.
  [[nodiscard]] double wait_tail(double t_s) const {
    return spare_rate() > 0 ? waits * std::exp(-spare_rate() * t_s) : 1;
  }
  /// P(wait + service > t). Precondition: t >= 0.
  [[nodiscard]] double response_tail(double t_s) const {
    const double spare = spare_rate(), mu = service_rate;
    if (!(spare > 0)) return 1;
    const double served = std::exp(-mu * t_s);
    // The sum of two exponentials; near equal rates its limit, where the quotient would cancel.
    const double apart = (spare - mu) * t_s;
    const double both = std::abs(apart) < 1e-6 ? served * (1 + mu * t_s * (1 - apart / 2))
                                               : (spare * served - mu * std::exp(-spare * t_s)) / (spare - mu);
    return std::clamp((1 - waits) * served + waits * both, 0.0, 1.0);
  }
};

/// Mean wait in the queue M/D/1 (s), by Pollaczek and Khinchine; infinite from a load of 1 on.
inline double md1_mean_wait_s(double arrival_rate, double service_s) {
  const double load = arrival_rate * service_s;
  return load < 1 ? load * service_s / (2 * (1 - load)) : std::numeric_limits<double>::infinity();
}

/// A promise of a latency: at most `1 - quantile` of the requests take longer than `within_s`.
struct LatencyTarget {
  /// What is counted.
  enum class Of : std::uint8_t {
    wait,      ///< from arrival to the begin of service
    response,  ///< from arrival to the end of service
  };
  double within_s = 1;     ///< seconds, above 0
  double quantile = 0.99;  ///< in [0, 1)
  Of of = Of::response;    ///< what is counted
};

/// The least number of servers with which M/M/c keeps `target`, at most `most`; `most + 1` where none does (a response
/// takes its service at least). O(servers).
inline std::int64_t least_servers(double arrival_rate, double service_rate, const LatencyTarget& target,
                                  std::int64_t most) {
  const double load = arrival_rate / service_rate;
  double blocked = 1;
  for (std::int64_t c = 1; c <= most; ++c) {
    blocked = load * blocked / (static_cast<double>(c) + load * blocked);
    if (!(static_cast<double>(c) > load)) continue;
    const MmcQueue queue{arrival_rate, service_rate, c, erlang_c_of_b(c, load, blocked)};
    const double late =
        target.of == LatencyTarget::Of::wait ? queue.wait_tail(target.within_s) : queue.response_tail(target.within_s);
    if (late <= 1 - target.quantile) return c;
  }
  return most + 1;
}

/// The same of replicas that each are `at_once` servers: the least number of them, at most `most`, else above it.
inline std::int64_t least_replicas(double arrival_rate, double service_rate, const LatencyTarget& target,
                                   std::int64_t at_once, std::int64_t most) {
  const std::int64_t servers = least_servers(arrival_rate, service_rate, target, most * at_once);
  return (servers + at_once - 1) / at_once;
}

/// What no rule can go below: replicas that serve `arrival_rate` when each serves `rate_at_slo` a second, the most at
/// which it keeps its promise. 0 where nothing arrives. Precondition: rate_at_slo above 0.
inline std::int64_t replicas_lower_bound(double arrival_rate, double rate_at_slo) {
  return static_cast<std::int64_t>(std::ceil(arrival_rate / rate_at_slo));
}

}  // namespace gpusched
