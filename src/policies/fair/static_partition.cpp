// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/static_partition.hpp"

#include <algorithm>
#include <numeric>

namespace gpusched {

void StaticPartition::decide(const View& view, Decision& decision) {
  for (const Event& event : view.events()) {
    const std::uint32_t owner = event.job == no_job ? 0 : owner_of(column_, view, event.job);
    const View then = view.at(event);
    if (leaves_cluster(event.kind)) {
      held_[owner] -= then.shape(event.job).gpu_milli();
    }
    if (enters_queue(event.kind)) waiting_.push(then, event.job, owner);
    if (event.kind == EventKind::withdraw) waiting_.erase(then, event.job);
    if (event.kind == EventKind::reprioritize && view.phase(event.job) == JobPhase::pending) {
      waiting_.reprioritize(then, event.job, owner);
    }
  }
  blocked_.assign(quotas_.size(), false);
  const auto score = [](const ClassQueues::Class&) { return 0; };  // in order of submission
  waiting_.start_best(true, score, [&](const ClassQueues::Class& jobs) {
    const MilliGpu wanted = view.shape(jobs.first()).gpu_milli();
    if (blocked_[jobs.owner] || held_[jobs.owner] + wanted > quotas_[jobs.owner]) {
      blocked_[jobs.owner] = true;  // the owner's next job waits behind this one
      return Attempt::not_allowed;
    }
    if (decision.start(jobs.first()) != Verdict::ok) {
      blocked_[jobs.owner] = true;
      return Attempt::not_allowed;
    }
    held_[jobs.owner] += wanted;
    return Attempt::started;
  });
}

namespace {

struct OwnerDemand {
  std::int64_t gpu_us = 0;   // GPU time of all jobs
  std::int64_t largest = 0;  // whole GPUs of the largest one
};

std::vector<OwnerDemand> demands_of(OwnerColumn column, const JobTable& jobs) {
  std::vector<OwnerDemand> demands(names_of(column, jobs).size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    OwnerDemand& demand = demands[owner_of(column, jobs, JobId{i})];
    const MilliGpu gpus = jobs.shape(JobId{i}).gpu_milli();
    demand.gpu_us += mul_div(jobs.work(JobId{i}).us, gpus, whole_gpu);
    demand.largest = std::max(demand.largest, (gpus + whole_gpu - 1) / whole_gpu);
  }
  return demands;
}

/// Whole GPUs by weight, the remainder one each to the owners of any weight whose first jobs came first.
std::vector<std::int64_t> divide(std::int64_t gpus, const std::vector<std::int64_t>& weights) {
  const std::int64_t sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  std::vector<std::int64_t> parts;
  parts.reserve(weights.size());
  for (const std::int64_t weight : weights) parts.push_back(sum == 0 ? 0 : mul_div(gpus, weight, sum));
  std::int64_t left = gpus - std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  for (std::size_t i = 0; i < parts.size() && left > 0; ++i) {
    if (weights[i] == 0) continue;
    ++parts[i];
    --left;
  }
  return parts;
}

/// Parts by the weights that the user gave; owners without jobs get none.
std::vector<std::int64_t> parts_by_weight(const std::vector<OwnerDemand>& demands, const OwnerWeights& weights,
                                          std::int64_t gpus) {
  std::vector<std::int64_t> of_owner;
  for (std::uint32_t owner = 0; owner < demands.size(); ++owner) {
    of_owner.push_back(demands[owner].largest == 0 ? 0 : weights.milli(owner));
  }
  return divide(gpus, of_owner);
}

/// Parts by GPU time, but enough for each owner's largest job: who would get less than that gets just that, and the
/// others divide the rest.
std::vector<std::int64_t> parts_by_demand(const std::vector<OwnerDemand>& demands, std::int64_t gpus) {
  std::vector<std::int64_t> weights;
  weights.reserve(demands.size());
  for (const OwnerDemand& demand : demands) {
    weights.push_back(std::max(demand.gpu_us, std::min<std::int64_t>(demand.largest, 1)));
  }
  std::vector<std::int64_t> parts(demands.size(), 0);
  for (bool again = true; again;) {
    again = false;
    const std::vector<std::int64_t> shares = divide(gpus, weights);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (weights[i] == 0) continue;
      parts[i] = shares[i];
      if (shares[i] >= demands[i].largest) continue;
      parts[i] = demands[i].largest;
      gpus = std::max<std::int64_t>(gpus - parts[i], 0);
      weights[i] = 0;
      again = true;
      break;  // the others' shares have changed
    }
  }
  return parts;
}

Result<OwnerColumn> partition_column(const PolicyParameters& parameters, const PolicyContext& context) {
  if (parameters.word("by") != "any") return owner_column("static-partition", parameters, context);
  for (const OwnerColumn column : {OwnerColumn::user, OwnerColumn::vc}) {
    if (has_owners(column, *context.jobs)) return column;
  }
  return unexpected(
      "policy static-partition divides GPUs between users or virtual clusters, and the trace names "
      "neither (columns user, vc)");
}

Result<AnyPolicy> make_static_partition(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = partition_column(parameters, context);
  if (!column) return Unexpected{column.error()};
  const JobTable& jobs = *context.jobs;
  const std::vector<OwnerDemand> demands = demands_of(*column, jobs);
  const std::int64_t gpus = context.cluster->total_gpus();
  const bool by_demand = parameters.word("parts") == "demand";
  std::vector<MilliGpu> quotas = by_demand ? parts_by_demand(demands, gpus)
                                           : parts_by_weight(demands, OwnerWeights(parameters.list("weights")), gpus);
  const std::int64_t granted = std::accumulate(quotas.begin(), quotas.end(), std::int64_t{0});
  if (granted > gpus) {
    return unexpected("static-partition: parts that hold each owner's largest job add up to " +
                      std::to_string(granted) + " GPUs, and the cluster has " + std::to_string(gpus));
  }
  for (MilliGpu& quota : quotas) quota *= whole_gpu;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const std::uint32_t owner = owner_of(*column, jobs, JobId{i});
    if (jobs.shape(JobId{i}).gpu_milli() <= quotas[owner]) continue;
    return unexpected("static-partition: job " + jobs.external_id(JobId{i}) + " wants " +
                      std::to_string((jobs.shape(JobId{i}).gpu_milli() + whole_gpu - 1) / whole_gpu) +
                      " GPUs, and the partition of '" + names_of(*column, jobs)[owner] + "' has " +
                      std::to_string(quotas[owner] / whole_gpu) +
                      "; it would wait for ever: give other weights, or parts=demand");
  }
  return AnyPolicy(StaticPartition(*column, std::move(quotas)));
}

}  // namespace

PolicyInfo static_partition_info() {
  return {.name = "static-partition",
          .summary = "every owner has a fixed part of the GPUs, first come first served; idle parts are never lent",
          .source = "textbook; the practice that shared schedulers replaced",
          .complexity = "O(owners x shapes + log n)",
          .parameters = {{.name = "by",
                          .fallback = std::string("any"),
                          .meaning = "whose parts they are; any: users, or virtual clusters where no user is named",
                          .words = {"any", "user", "group", "vc"}},
                         {.name = "parts",
                          .fallback = std::string("weights"),
                          .meaning = "parts by weights, or by demand: the GPU time of the owner's jobs in the trace, "
                                     "and no less than its largest job",
                          .words = {"weights", "demand"}},
                         weights_parameter()},
          .make = make_static_partition};
}

}  // namespace gpusched
