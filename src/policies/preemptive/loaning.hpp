// SPDX-License-Identifier: Apache-2.0
/// Capacity loaning: idle servers of services are lent to jobs, whole, and taken back where services need them.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "src/policies/preemptive/loaned_servers.hpp"
#include "src/policies/queues/ordered_queue.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The last nodes of the cluster are servers of services: of replicas, and of jobs of a high priority. The others
/// belong to jobs. Each kind starts in its own order, on the fullest node that holds it.
///
/// Jobs use their own nodes, then servers that are lent, then idle ones; services never share a server with jobs. A
/// service that finds no room on the other servers takes lent ones back, whole, one after the other by LoanedServers'
/// cost until it has room, or none where that never suffices. Jobs that were on them wait again at their places. So no
/// service waits while taking servers back would give it room. A service that the servers could never hold, empty, is
/// placed as a job.
///
/// Lyra's inference scheduler, which says when servers are lent and needed, is here the autoscaler; Lyra's elastic
/// scaling is left out. O(servers + nodes) for each demand that waits, at every event.
class Loaning {
 public:
  struct Options {
    std::uint32_t first_server = 0;     ///< the number of the first node that belongs to services
    bool lends = true;                  ///< false: a partition, nothing is lent
    std::int32_t service_priority = 1;  ///< jobs of this priority or more are services, too
    bool skip = false;                  ///< jobs without room let others pass
    std::uint32_t replicas = 0;         ///< the first rows of the table, which are services
  };

  /// `order`: of the jobs; services come by submission. `empty`: the cluster without jobs.
  Loaning(Options options, PriorityOrder order, ClusterState empty);

  [[nodiscard]] std::string_view name() const { return "loaning"; }
  [[nodiscard]] bool clairvoyant() const { return jobs_.order().estimator.clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);
  /// It took over: the jobs that run are where they truly are.
  void adopt(const View& view);

  /// Whether the servers, or with `of_services` false the other nodes, hold a job of this shape when they are empty.
  [[nodiscard]] bool could_hold(const Shape& shape, std::uint32_t queue, bool of_services) const;

 private:
  // Servers in one of these states may be used.
  struct Uses {
    bool own_nodes = false, serving = false, lent = false, idle = false;
  };
  struct Stopped {
    JobId job = no_job;
    std::vector<std::uint32_t> held;  // its servers
  };

  [[nodiscard]] std::uint32_t nodes() const { return empty_.node_count(); }
  [[nodiscard]] bool is_service(const View& view, JobId job);
  [[nodiscard]] OrderedQueue& queue_for(JobId job) { return service_[index(job)] != 0 ? services_ : jobs_; }
  void note(const OracleView& then, const Event& event);
  void recount(const View& view);
  void enter(const View& view, JobId job);

  void start_services(const OracleView& view, Decision& decision, std::uint32_t queue);
  void start_jobs(const OracleView& view, Decision& decision, std::uint32_t queue);
  bool start_job(const View& view, Decision& decision, JobId job);
  bool start_on(const View& view, Decision& decision, JobId job, const Uses& uses);
  [[nodiscard]] bool may_use(const Uses& uses, NodeId node) const;

  bool reclaim_for(const OracleView& view, Decision& decision, JobId job);
  [[nodiscard]] bool would_hold(const View& view, JobId job) const;
  [[nodiscard]] std::vector<JobId> jobs_to_stop(const View& view, std::uint32_t server) const;
  void let_run_on(const OracleView& view, Decision& decision, const std::vector<Stopped>& stopped);

  Options options_;
  OrderedQueue services_, jobs_;
  ClusterState empty_;
  LoanedServers servers_;
  std::vector<std::uint8_t> service_;                                 // by job: it joined its queue as a service
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> holdable_;  // by queue and shape: servers could hold it
  std::vector<NodeTasks> chosen_;
};

/// Nodes for a whole gang among `candidates`: the one of fewest free GPUs that holds all that is left of it, else that
/// which holds the most tasks; of equal ones the first. Empty: it does not fit. O(nodes x nodes used).
void choose_best_fit(const Capacity& cluster, const Shape& shape, std::uint32_t queue,
                     const std::vector<NodeId>& candidates, std::vector<NodeTasks>& chosen);

}  // namespace gpusched
