// SPDX-License-Identifier: Apache-2.0
#include "src/sim/slurm_parameters.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/policies/backfill/backfill.hpp"

namespace gpusched {
namespace {

// PriorityJobFactor over the greatest, by virtual cluster of the table, from 1 on; jobs of others have 1.
std::vector<double> partition_factors(const SlurmConf& conf, const JobTable& jobs) {
  double most = 0;
  for (const SlurmPartition& partition : conf.partitions) most = std::max(most, partition.job_factor);
  std::vector<double> factors(jobs.vcs().size() > 0 ? jobs.vcs().size() - 1 : 0, 1.0);
  for (const SlurmPartition& partition : conf.partitions) {
    const std::uint32_t vc = jobs.vcs().find(partition.name);
    if (vc != no_index && vc > 0) factors[vc - 1] = most > 0 ? partition.job_factor / most : 0;
  }
  return factors;
}

// The policy divides by the greatest priority of the jobs, Slurm by that of all QOS.
double qos_scale(const SlurmSite& site, const JobTable& jobs) {
  std::int32_t of_jobs = 0, of_table = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) of_jobs = std::max(of_jobs, jobs.priority(JobId{i}));
  if (site.qos) {
    for (const SlurmQos& row : site.qos->rows) of_table = std::max(of_table, row.priority);
  }
  return of_table > 0 ? static_cast<double>(of_jobs) / of_table : 1;
}

std::map<std::string, ParameterValue> parameters_of(const SlurmSite& site, const JobTable& jobs) {
  const SlurmConf& conf = *site.conf;
  constexpr double without_decay_s = 1e12;
  const auto weight = [&](double value) { return conf.multifactor ? value : 0.0; };
  return {{"weight_age", weight(conf.weight_age)},
          {"weight_fair_share", weight(conf.weight_fair_share)},
          {"weight_size", weight(conf.weight_size)},
          {"weight_partition", weight(conf.weight_partition)},
          {"weight_qos", weight(conf.weight_qos * qos_scale(site, jobs))},
          {"max_age_s", std::max(1.0, to_seconds(conf.max_age))},
          {"half_life_s", conf.half_life == Time{} ? without_decay_s : to_seconds(conf.half_life)},
          {"partition_factors", partition_factors(conf, jobs)},
          {"bf_window_s", to_seconds(conf.bf_window)},
          {"bf_max_job_test", conf.bf_max_job_test},
          {"bf_interval_s", to_seconds(conf.bf_interval)}};
}

}  // namespace

void set_slurm_parameters(const SlurmSite& site, const JobTable& jobs, bool may_backfill,
                          const PolicyRegistry& registry, std::span<PolicySpec> policies) {
  if (!site.conf) return;
  const auto easy = parse_backfill("easy");
  for (PolicySpec& policy : policies) {
    if (policy.name != "slurm") continue;
    for (auto& [name, value] : parameters_of(site, jobs)) policy.given.try_emplace(name, value);
    if (may_backfill && site.conf->backfills && easy) backfill_by_default(registry, *easy, {&policy, 1});
  }
}

}  // namespace gpusched
