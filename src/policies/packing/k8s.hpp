// SPDX-License-Identifier: Apache-2.0
/// Kubernetes' default scheduler: filter and score, one pod after the other.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "src/policies/queues/class_queues.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Pods start in order of priority, then of creation; one that fits no node is passed over. Each goes to the node of
/// the best score among those that can take it.
///
/// The engine starts a gang whole or not at all, which Kubernetes does not. To see what it does instead, split the
/// trace with split_into_pods() and set `pods`: then every pod is a job, holds its GPUs as soon as it is bound, and
/// works from the moment when the last pod of its job is bound. Jobs that each hold a part of what they need wait for
/// one another for ever: the deadlock that gang scheduling avoids.
class K8s {
 public:
  enum class Score : std::uint8_t { least_allocated, most_allocated };

  /// `pods_in_group[g]`: pods of each JobTable group when the jobs are pods; empty when they are whole jobs.
  K8s(Score score, std::vector<std::uint32_t> pods_in_group)
      : score_(score), pods_in_group_(std::move(pods_in_group)), bound_(pods_in_group_.size()) {}

  [[nodiscard]] std::string_view name() const { return "k8s"; }
  void decide(const View& view, Decision& decision);

 private:
  bool bind(const View& view, Decision& decision, JobId job);
  [[nodiscard]] NodeId best_node(const View& view, const Shape& shape, std::uint32_t vc);
  void note_bound(const View& view, Decision& decision, JobId pod);

  Score score_;
  std::vector<std::uint32_t> pods_in_group_;
  std::vector<std::vector<JobId>> bound_;  // [group]: bound pods of a job that is not complete
  ClassQueues waiting_;
  std::vector<NodeTasks> choice_;
  std::map<std::uint32_t, std::uint32_t> placed_;  // [node]: pods of the present job already placed there
};

/// One job for each task of each job, in a group named after it. Pod k is created `creation_interval` x k after its
/// job's submission, as a controller does that creates one pod after the other. Errors: none of its own (Result of the
/// builder).
Result<JobTable> split_into_pods(const JobTable& jobs, Time creation_interval);

}  // namespace gpusched
