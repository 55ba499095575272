// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/slurm.hpp"

#include <set>

#include "src/policies/fair/slurm_log.hpp"

namespace gpusched {
namespace {

Result<Slurm> slurm_from(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column("slurm", parameters, context);
  if (!column) return Unexpected{column.error()};
  Slurm::Options options{.column = *column,
                         .shares = OwnerWeights(parameters.list("weights")),
                         .share_sum_milli = 0,
                         .weight_age = parameters.number("weight_age"),
                         .weight_fair_share = parameters.number("weight_fair_share"),
                         .weight_size = parameters.number("weight_size"),
                         .weight_partition = parameters.number("weight_partition"),
                         .weight_qos = parameters.number("weight_qos"),
                         .max_age_s = parameters.number("max_age_s"),
                         .half_life_s = parameters.number("half_life_s"),
                         .partition_factors = parameters.list("partition_factors"),
                         .skip = parameters.flag("skip")};
  std::set<std::uint32_t> owners;
  const JobTable& jobs = *context.jobs;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    owners.insert(*column == OwnerColumn::user ? jobs.user(job) : jobs.vc(job));
    options.least_qos = i == 0 ? jobs.priority(job) : std::min(options.least_qos, jobs.priority(job));
    options.most_qos = i == 0 ? jobs.priority(job) : std::max(options.most_qos, jobs.priority(job));
  }
  for (const std::uint32_t owner : owners) options.share_sum_milli += options.shares.milli(owner);
  options.share_sum_milli = std::max<std::int64_t>(options.share_sum_milli, 1);
  return Slurm(std::move(options));
}

ParameterInfo weight(std::string name, double fallback, std::string meaning) {
  return {.name = std::move(name), .fallback = fallback, .meaning = std::move(meaning), .most = 1e9};
}

}  // namespace

PolicyInfo slurm_info() {
  return {.name = "slurm",
          .summary = "multifactor priority: age, fair-share with half-life, job size, partition and QoS",
          .source =
              "Slurm documentation, \"Multifactor Priority Plugin\" (classic fair-share, factor 2^-(U/S)); "
              "QoS = the job's priority, partition = its virtual cluster; priorities are integers as in Slurm",
          .complexity = "O(owners x priorities x shapes + log n)",
          .parameters = {owner_parameter("user"),
                         weights_parameter(),
                         weight("weight_age", 1000, "PriorityWeightAge"),
                         weight("weight_fair_share", 10000, "PriorityWeightFairshare"),
                         weight("weight_size", 1000, "PriorityWeightJobSize; larger jobs first"),
                         weight("weight_partition", 1000, "PriorityWeightPartition"),
                         weight("weight_qos", 2000, "PriorityWeightQOS"),
                         {.name = "max_age_s",
                          .fallback = 604'800.0,
                          .meaning = "waiting time from which on the age factor is 1 (PriorityMaxAge)",
                          .least = 1},
                         {.name = "half_life_s",
                          .fallback = 604'800.0,
                          .meaning = "half-life of past usage (PriorityDecayHalfLife)",
                          .least = 1},
                         {.name = "partition_factors",
                          .fallback = std::vector<double>{},
                          .meaning = "factors of the virtual clusters in order of their first job; others 1",
                          .most = 1},
                         {.name = "skip",
                          .fallback = true,
                          .meaning = "pass over jobs that do not fit; false: the first of them blocks its queue"}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            auto policy = slurm_from(parameters, context);
            if (!policy) return Unexpected{policy.error()};
            return AnyPolicy(*std::move(policy));
          }};
}

Result<Slurm> make_slurm(const PolicySpec& spec, const PolicyContext& context) {
  const auto parameters = complete_parameters(slurm_info(), spec);
  if (!parameters) return Unexpected{parameters.error()};
  return slurm_from(*parameters, context);
}

}  // namespace gpusched
