// SPDX-License-Identifier: Apache-2.0
/// LoanedServers: which jobs and which services are on the servers of the services, and which server to take back
/// first.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// What taking servers back costs: a part of a preempted job. Sums of 1/k up to k = 36 are exact.
using ServerCost = std::int64_t;

/// A value. A server is lent while a job is on it, in service while a service is, else idle.
///
/// Lyra's server preemption cost (Li et al., EuroSys 2023, section 4): each job on the server counts 1 over the number
/// of servers that it holds, as one preemption frees all of them. The server of least cost is taken back, its jobs are
/// preempted, which lowers the costs of their other servers, and so on: a greedy rule for a problem that is NP-hard.
class LoanedServers {
 public:
  /// The cost of one job: lcm(1, ..., 36).
  static constexpr ServerCost whole_job = [] {
    ServerCost product = 1;
    for (ServerCost k = 2; k <= 36; ++k) product = std::lcm(product, k);
    return product;
  }();

  explicit LoanedServers(std::uint32_t servers) : servers_(servers) {}

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(servers_.size()); }

  /// A job, or a replica of a service, now holds these servers, each named once. Precondition: it holds none.
  void enter(JobId job, const std::vector<std::uint32_t>& servers, bool is_service);
  /// It holds none of them any more, if it did.
  void leave(JobId job);
  /// Nobody is anywhere.
  void clear();

  [[nodiscard]] bool is_lent(std::uint32_t server) const { return !servers_[server].jobs.empty(); }
  [[nodiscard]] bool serves(std::uint32_t server) const { return servers_[server].services > 0; }
  [[nodiscard]] bool is_idle(std::uint32_t server) const { return !is_lent(server) && !serves(server); }
  /// The jobs on a server, services left out, in the order in which they came.
  [[nodiscard]] const std::vector<JobId>& jobs(std::uint32_t server) const { return servers_[server].jobs; }
  /// The servers that a job or replica holds.
  [[nodiscard]] const std::vector<std::uint32_t>& held(JobId job) const;
  /// The cost of taking a server back.
  [[nodiscard]] ServerCost cost(std::uint32_t server) const;

  /// The lent server of least cost, of equal ones the first, among those for which accept(server); none: none is.
  template <class Accept>
  [[nodiscard]] std::optional<std::uint32_t> cheapest(Accept accept) const {
    std::optional<std::uint32_t> best;
    ServerCost least = 0;
    for (std::uint32_t server = 0; server < size(); ++server) {
      if (!is_lent(server) || !accept(server)) continue;
      const ServerCost own = cost(server);
      if (best && own >= least) continue;
      best = server;
      least = own;
    }
    return best;
  }

 private:
  struct Server {
    std::vector<JobId> jobs = {};
    std::uint32_t services = 0;  // replicas
  };
  struct Held {
    std::vector<std::uint32_t> servers;
    bool is_service = false;
  };

  std::vector<Server> servers_;
  std::map<JobId, Held> held_;
};

}  // namespace gpusched
