// SPDX-License-Identifier: Apache-2.0
/// Kubernetes' default scheduler: filter and score, one pod after the other.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/policies/packing/node_walk.hpp"
#include "src/policies/queues/ranked_classes.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The scores of kube-scheduler's plugins, 0 to 100 (kubernetes/kubernetes, pkg/scheduler/framework/plugins/
/// noderesources). `requested` counts the pod to be placed. A resource that the node does not have (capacity 0) has no
/// score. \{
std::int64_t least_allocated_score(std::int64_t requested, std::int64_t capacity);
std::int64_t most_allocated_score(std::int64_t requested, std::int64_t capacity);
/// 100 x (1 - the standard deviation of the two parts requested); 100 where the node has only one of the resources.
std::int64_t balanced_allocation_score(std::int64_t requested_cpu, std::int64_t cpu, std::int64_t requested_memory,
                                       std::int64_t memory);
/// \}

/// How many feasible nodes kube-scheduler looks for before it scores them. `percentage`: percentageOfNodesToScore; 0 =
/// its default, 50 less one for each 125 nodes, at least 5. Never fewer than 100 of them.
std::uint32_t feasible_nodes_to_find(std::uint32_t nodes, std::uint32_t percentage);

/// Pods start in order of priority, then of creation; one that fits no node is passed over. The feasible nodes are
/// looked for in a circle, from where the last search ended, until there are feasible_nodes_to_find(); of those of the
/// best score one is drawn.
///
/// The engine starts a gang whole or not at all, which Kubernetes does not. To see what it does instead, split the
/// trace with split_into_pods() and set `pods`: then every pod is a job, holds its GPUs as soon as it is bound, and
/// works from the moment when the last pod of its job is bound. Jobs that each hold a part of what they need wait for
/// one another for ever: the deadlock that gang scheduling avoids.
class K8s {
 public:
  struct Options {
    bool most_allocated = false;   ///< NodeResourcesFit's strategy: MostAllocated, not LeastAllocated
    bool gpus = false;             ///< NodeResourcesFit scores GPUs alone, not CPU and memory
    std::uint32_t percentage = 0;  ///< percentageOfNodesToScore
    Rng rng = Rng{};               ///< draws among nodes of equal score
    /// Pods of each JobTable group when the jobs are pods; empty when they are whole jobs.
    std::vector<std::uint32_t> pods_in_group = {};
  };

  explicit K8s(Options options) : options_(std::move(options)), bound_(options_.pods_in_group.size()) {}

  [[nodiscard]] std::string_view name() const { return "k8s"; }
  void decide(const View& view, Decision& decision);
  /// It took over: the jobs that run are where they truly are.
  void adopt(const View& view);

 private:
  // What pods requested of a node, at least kube-scheduler's non-zero requests each.
  struct Load {
    std::int64_t cpu_capacity = 0;  // thousandths of a core; 0 = not known
    std::int64_t memory_capacity = 0;
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
  };

  void prepare(const View& view);
  bool bind(const View& view, Decision& decision, JobId job);
  [[nodiscard]] bool has_room(const ClusterState& cluster, const Shape& shape, std::uint32_t queue);
  [[nodiscard]] NodeId choose(const ClusterState& cluster, const Shape& shape, std::uint32_t queue, Rng& rng);
  [[nodiscard]] std::int64_t score(const ClusterState& cluster, const Shape& shape, NodeId node) const;
  [[nodiscard]] std::int64_t fit_score(std::int64_t requested, std::int64_t capacity) const;
  void note_change(JobId job, const Shape& shape, int sign);
  void note_bound(const View& view, Decision& decision, JobId pod);

  Options options_;
  std::vector<std::vector<JobId>> bound_;  // [group]: bound pods of a job that is not complete
  RankedClasses waiting_;
  NodeWalk nodes_;
  std::uint32_t next_start_ = 0;                  // where the next search for nodes begins
  std::vector<Load> loads_;                       // by node
  std::vector<std::vector<NodeTasks>> nodes_of_;  // by job
  std::vector<std::uint32_t> placed_;             // by node: pods of the present job already placed there
  std::vector<NodeId> best_;                      // of the present search
};

/// One job for each task of each job, in a group named after it. Pod k is created `creation_interval` x k after its
/// job's submission, as a controller does that creates one pod after the other. Errors: none of its own (Result of the
/// builder).
Result<JobTable> split_into_pods(const JobTable& jobs, Time creation_interval);

}  // namespace gpusched
