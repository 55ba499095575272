// SPDX-License-Identifier: Apache-2.0
#include "src/sim/slurm_parameters.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/number_text.hpp"
#include "src/policies/backfill/backfill.hpp"

namespace gpusched {
namespace {

// By virtual cluster of the table, from 1 on, what `value` says of its partition; 1 of those without one.
template <class Value>
std::vector<double> by_partition(const SlurmConf& conf, const JobTable& jobs, Value value) {
  std::vector<double> values(jobs.vcs().size() > 0 ? jobs.vcs().size() - 1 : 0, 1.0);
  for (const SlurmPartition& partition : conf.partitions) {
    const std::uint32_t vc = jobs.vcs().find(partition.name);
    if (vc != no_index && vc > 0) values[vc - 1] = value(partition);
  }
  return values;
}

// PriorityJobFactor over the greatest.
std::vector<double> partition_factors(const SlurmConf& conf, const JobTable& jobs) {
  double most = 0;
  for (const SlurmPartition& partition : conf.partitions) most = std::max(most, partition.job_factor);
  return by_partition(conf, jobs,
                      [most](const SlurmPartition& partition) { return most > 0 ? partition.job_factor / most : 0; });
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

// One that may be preempted, or preempts: a QOS or a partition.
struct PreemptedClass {
  std::string name;
  SlurmPreempted own = {};
  double tier = 0;
  std::vector<std::string> preempts = {};
};

// Those that have jobs.
std::vector<PreemptedClass> preempted_classes(const SlurmSite& site, const JobTable& jobs) {
  std::vector<PreemptedClass> classes;
  if (site.conf->preempt_type == SlurmPreemptType::partition) {
    for (const SlurmPartition& partition : site.conf->partitions) {
      if (jobs.vcs().find(partition.name) == no_index) continue;
      classes.push_back({.name = partition.name, .own = partition.preempted, .tier = partition.tier});
    }
  } else if (site.conf->preempt_type == SlurmPreemptType::qos && site.qos) {
    for (const SlurmQos& row : site.qos->rows) {
      if (jobs.qos_names().find(row.name) == no_index) continue;
      classes.push_back({.name = row.name, .own = row.preempted, .preempts = row.preempts});
    }
  }
  return classes;
}

void add_preemption(const SlurmSite& site, const JobTable& jobs, std::map<std::string, ParameterValue>& parameters) {
  const SlurmPreempted& of_cluster = site.conf->preempted;
  std::vector<std::string> rights, grace, exempt, cancels, suspends;
  const std::vector<PreemptedClass> classes = preempted_classes(site, jobs);
  for (const PreemptedClass& below : classes) {
    SlurmPreemptMode mode = below.own.mode.value_or(of_cluster.mode.value_or(SlurmPreemptMode::off));
    if (mode == SlurmPreemptMode::off) continue;
    if (mode == SlurmPreemptMode::requeue && !site.conf->requeues) mode = SlurmPreemptMode::cancel;
    if (mode == SlurmPreemptMode::cancel) cancels.push_back(below.name);
    if (mode == SlurmPreemptMode::suspend) suspends.push_back(below.name);
    for (const PreemptedClass& above : classes) {
      const bool is_listed =
          std::find(above.preempts.begin(), above.preempts.end(), below.name) != above.preempts.end();
      if (is_listed || above.tier > below.tier) rights.push_back(above.name + ">" + below.name);
    }
    const Time least = below.own.exempt.value_or(of_cluster.exempt.value_or(Time{}));
    if (below.own.grace.value_or(Time{}).us > 0) grace.push_back(below.name + "=" + exact_seconds(*below.own.grace));
    if (least.us > 0) exempt.push_back(below.name + "=" + exact_seconds(least));
  }
  const bool by_qos = site.conf->preempt_type != SlurmPreemptType::partition;
  parameters["preempts"] = std::move(rights);
  parameters["preempts_by"] = std::string(by_qos ? "qos" : "partition");
  parameters["grace_s"] = std::move(grace);
  parameters["exempt_s"] = std::move(exempt);
  parameters["cancels"] = std::move(cancels);
  parameters["suspends"] = std::move(suspends);
  parameters["youngest_first"] = site.conf->youngest_first;
  parameters["requeues"] = site.conf->requeues;
}

std::map<std::string, ParameterValue> parameters_of(const SlurmSite& site, const JobTable& jobs) {
  const SlurmConf& conf = *site.conf;
  constexpr double without_decay_s = 1e12;
  const auto weight = [&](double value) { return conf.multifactor ? value : 0.0; };
  std::map<std::string, ParameterValue> parameters{
      {"weight_age", weight(conf.weight_age)},
      {"weight_fair_share", weight(conf.weight_fair_share)},
      {"weight_size", weight(conf.weight_size)},
      {"weight_partition", weight(conf.weight_partition)},
      {"weight_qos", weight(conf.weight_qos * qos_scale(site, jobs))},
      {"max_age_s", std::max(1.0, to_seconds(conf.max_age))},
      {"half_life_s", conf.half_life == Time{} ? without_decay_s : to_seconds(conf.half_life)},
      {"partition_factors", partition_factors(conf, jobs)},
      {"partition_tiers", by_partition(conf, jobs, [](const SlurmPartition& partition) { return partition.tier; })},
      {"bf_window_s", to_seconds(conf.bf_window)},
      {"bf_max_job_test", conf.bf_max_job_test},
      {"bf_interval_s", to_seconds(conf.bf_interval)}};
  add_preemption(site, jobs, parameters);
  return parameters;
}

}  // namespace

void set_slurm_parameters(const SlurmSite& site, const JobTable& jobs, bool may_backfill,
                          const PolicyRegistry& registry, std::span<PolicySpec> policies) {
  if (!site.conf) return;
  const auto easy = parse_backfill("easy");
  for (PolicySpec& policy : policies) {
    set_slurm_parameters(site, jobs, may_backfill, registry, held_policies(registry, policy));
    if (policy.name != "slurm") continue;
    // Whose rights they are and what they are is said in one place.
    const bool has_own_rights = policy.given.contains("preempts");
    for (auto& [name, value] : parameters_of(site, jobs)) {
      const bool of_rights =
          name == "preempts_by" || name == "grace_s" || name == "exempt_s" || name == "cancels" || name == "suspends";
      if (!has_own_rights || !of_rights) policy.given.try_emplace(name, value);
    }
    if (may_backfill && site.conf->backfills && easy) backfill_by_default(registry, *easy, {&policy, 1});
  }
}

}  // namespace gpusched
