// SPDX-License-Identifier: Apache-2.0
#include "src/policies/static_partition.hpp"

namespace gpusched {
namespace {

const NameTable& names_of(OwnerColumn column, const JobTable& jobs) {
  return column == OwnerColumn::user ? jobs.users() : jobs.vcs();
}

std::uint32_t owner_in(OwnerColumn column, const JobTable& jobs, JobId job) {
  return column == OwnerColumn::user ? jobs.user(job) : jobs.vc(job);
}

/// Whole GPUs by weight, the remainder one each to the first owners; owners without jobs get none.
std::vector<MilliGpu> quotas_of(OwnerColumn column, const OwnerWeights& weights, const PolicyContext& context) {
  std::vector<std::int64_t> weight(names_of(column, *context.jobs).size(), 0);
  for (std::uint32_t i = 0; i < context.jobs->size(); ++i) {
    const std::uint32_t owner = owner_in(column, *context.jobs, JobId{i});
    weight[owner] = weights.milli(owner);
  }
  std::int64_t weight_sum = 0;
  for (const std::int64_t w : weight) weight_sum += w;
  std::vector<MilliGpu> quotas;
  std::int64_t left = context.cluster->total_gpus();
  for (const std::int64_t w : weight) {
    const std::int64_t gpus = weight_sum == 0 ? 0 : mul_div(context.cluster->total_gpus(), w, weight_sum);
    quotas.push_back(gpus * whole_gpu);
    left -= gpus;
  }
  for (std::size_t i = 0; i < quotas.size() && left > 0; ++i) {
    if (weight[i] == 0) continue;
    quotas[i] += whole_gpu;
    --left;
  }
  return quotas;
}

Result<AnyPolicy> make(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column("static-partition", parameters, context);
  if (!column) return Unexpected{column.error()};
  const JobTable& jobs = *context.jobs;
  std::vector<MilliGpu> quotas = quotas_of(*column, OwnerWeights(parameters.list("weights")), context);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const std::uint32_t owner = owner_in(*column, jobs, JobId{i});
    if (jobs.shape(JobId{i}).gpu_milli() <= quotas[owner]) continue;
    return unexpected("static-partition: job " + jobs.external_id(JobId{i}) + " wants " +
                      std::to_string((jobs.shape(JobId{i}).gpu_milli() + whole_gpu - 1) / whole_gpu) +
                      " GPUs, and the partition of '" + names_of(*column, jobs)[owner] + "' has " +
                      std::to_string(quotas[owner] / whole_gpu) + "; it would wait for ever: give other weights");
  }
  return AnyPolicy(StaticPartition(*column, std::move(quotas)));
}

}  // namespace

PolicyInfo static_partition_info() {
  return {.name = "static-partition",
          .summary = "every owner has a fixed part of the GPUs, first come first served; idle parts are never lent",
          .source = "textbook; the practice that shared schedulers replaced",
          .complexity = "O(owners x shapes + log n)",
          .parameters = {owner_parameter("user"), weights_parameter()},
          .make = make};
}

}  // namespace gpusched
