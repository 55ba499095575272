// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_site.hpp"

#include <algorithm>
#include <utility>

#include "gpusched/data/job_limits.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/world/slurm_conf_lines.hpp"
#include "traces/core/job_records.hpp"

namespace gpusched {

std::string SlurmSite::qos_weights() const {
  std::string text;
  if (!qos) return text;
  for (const SlurmQos& row : qos->rows) {
    // A field of csv: names may hold commas.
    std::string field;
    for (const char c : row.name) field += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += (text.empty() ? "\"" : ",\"") + field + "=" + std::to_string(row.priority) + "\"";
  }
  return text;
}

std::vector<std::string> SlurmSite::files() const {
  std::vector<std::string> all = conf ? conf->files : std::vector<std::string>{};
  if (qos) all.push_back(qos->path);
  return all;
}

std::vector<std::string> SlurmSite::unused_lines() const {
  std::vector<std::string> lines;
  for (const std::string& file : files()) {
    std::vector<std::pair<std::string, std::uint64_t>> keys;  // in order of appearance, with their number
    std::uint64_t settings = 0;
    for (const UnusedSetting& setting : unused) {
      if (setting.file != file) continue;
      ++settings;
      const auto known =
          std::find_if(keys.begin(), keys.end(), [&](const auto& entry) { return entry.first == setting.key; });
      if (known == keys.end()) {
        keys.emplace_back(setting.key, 1);
      } else {
        ++known->second;
      }
    }
    if (settings == 0) continue;
    std::vector<std::string> names;
    for (const auto& [key, count] : keys) names.push_back(count == 1 ? key : key + " (" + std::to_string(count) + ")");
    lines.push_back(file + ": " + counted(settings, "setting", "settings") + " not used: " + joined(names, ", "));
  }
  return lines;
}

namespace {

// What says who preempts whom, where nobody does.
void name_unused_preemption(SlurmSite& site) {
  const SlurmPreemptType type = site.conf ? site.conf->preempt_type : SlurmPreemptType::none;
  const auto add = [&site](const std::vector<UnusedSetting>& settings) {
    site.unused.insert(site.unused.end(), settings.begin(), settings.end());
  };
  const bool has_table = type != SlurmPreemptType::qos || site.qos;
  if (site.conf && (type == SlurmPreemptType::none || !has_table)) add(site.conf->of_preemption);
  if (site.qos && type != SlurmPreemptType::qos) add(site.qos->of_preemption);
}

}  // namespace

Result<SlurmSite> read_slurm_site(const std::string& conf, const std::string& qos) {
  SlurmSite site;
  if (!conf.empty()) {
    auto read = read_slurm_conf(conf);
    if (!read) return Unexpected{read.error()};
    site.conf = *std::move(read);
    site.unused = site.conf->unused;
    if (site.conf->multifactor && site.conf->weight_fair_share > 0 && site.conf->fair_tree) {
      site.notes.push_back(conf +
                           ": fair-share is the classic one here, as with PriorityFlags=NO_FAIR_TREE, not the "
                           "fair tree");
    }
  }
  if (!qos.empty()) {
    auto read = read_slurm_qos(qos);
    if (!read) return Unexpected{read.error()};
    site.qos = *std::move(read);
    site.unused.insert(site.unused.end(), site.qos->unused.begin(), site.qos->unused.end());
  }
  name_unused_preemption(site);
  return site;
}

namespace {

// The rule of one limit, without whose jobs it is of.
LimitRule rule_of(const SlurmQos& row, const SlurmQosLimit& limit) {
  return {.name = row.name + ":" + limit.column,
          .per = limit.per,
          .most = limit.most,
          .submitted = limit.submitted,
          .wall = limit.wall};
}

// Whom a partition takes, whether limits are enforced or not. AllowQos and AllowAccounts stand in for what they deny.
void add_rights(const SlurmPartition& partition, const SlurmSite& site, std::vector<LimitRule>& limits) {
  const auto rule = [&partition](const char* key) {
    return LimitRule{.name = partition.name + ":" + key, .vcs = {partition.name}};
  };
  if (partition.wall < Time::max()) {
    LimitRule longest = rule("MaxTime");
    longest.per = LimitOwner::job;
    longest.wall = partition.wall;
    if (site.qos) {
      for (const SlurmQos& row : site.qos->rows) {
        if (row.lifts_max_time) longest.except_qos.push_back(row.name);
      }
    }
    limits.push_back(longest);
  }
  LimitRule allowed = rule("AllowQos"), denied_qos = rule("DenyQos"), denied_accounts = rule("DenyAccounts");
  allowed.allow_qos = partition.allow_qos;
  denied_qos.qos = partition.deny_qos;
  denied_accounts.accounts = partition.deny_accounts;
  denied_qos.submitted = denied_accounts.submitted = 0;
  if (!allowed.allow_qos.empty()) limits.push_back(allowed);
  if (!denied_qos.qos.empty() && allowed.allow_qos.empty()) limits.push_back(denied_qos);
  if (!denied_accounts.accounts.empty() && !partition.allows_accounts) limits.push_back(denied_accounts);
}

Result<const SlurmQos*> qos_of(const SlurmPartition& partition, const SlurmQosTable& table) {
  const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                [&](const SlurmQos& other) { return same_slurm_word(other.name, partition.qos); });
  if (row != table.rows.end()) return &*row;
  return Unexpected{Error{.message = "expected a QOS of " + table.path + ", found '" + partition.qos + "'",
                          .file = partition.file,
                          .line = partition.line,
                          .field = "QOS"}};
}

}  // namespace

Result<void> set_slurm_limits(SlurmSite& site, Cluster& cluster) {
  std::vector<std::pair<std::string, const SlurmQos*>> of_partitions;
  for (const SlurmPartition& partition : site.conf ? site.conf->partitions : std::vector<SlurmPartition>{}) {
    add_rights(partition, site, cluster.limits);
    if (partition.qos.empty()) continue;
    if (!site.qos) {
      site.unused.push_back({partition.file, partition.line, "PartitionName:QOS", partition.qos});
      continue;
    }
    const auto row = qos_of(partition, *site.qos);
    if (!row) return Unexpected{row.error()};
    of_partitions.emplace_back(partition.name, *row);
  }
  if (!site.qos) return {};
  for (const SlurmQos& row : site.qos->rows) {
    for (const SlurmQosLimit& limit : row.limits) {
      if (!site.conf || !site.conf->enforces_limits) {
        site.unused.push_back({site.qos->path, row.line, row.name + ":" + limit.column, limit.value});
        continue;
      }
      LimitRule rule = rule_of(row, limit);
      rule.qos = {row.name};
      for (const auto& [partition, qos] : of_partitions) {
        const bool stands_in = std::any_of(qos->limits.begin(), qos->limits.end(),
                                           [&](const SlurmQosLimit& other) { return other.is_like(limit); });
        if (qos == &row) {
          rule.or_vcs.push_back(partition);
        } else if (stands_in) {
          rule.unbound_vcs.push_back(partition);
        }
      }
      cluster.limits.push_back(rule);
    }
  }
  return {};
}

Result<Trace> request_partition_limits(const SlurmSite& site, const std::vector<LimitRule>& limits, Trace trace) {
  if (!site.conf) return trace;
  std::vector<Time> limit_of_vc(trace.jobs.vcs().size(), Time::max());
  for (const SlurmPartition& partition : site.conf->partitions) {
    const std::uint32_t vc = trace.jobs.vcs().find(partition.name);
    if (vc != no_index) limit_of_vc[vc] = std::min(partition.wall, partition.default_wall);
  }
  const JobLimits all(limits, trace.jobs);
  const auto limit_of = [&](JobId job) {
    const Time limit = limit_of_vc[trace.jobs.vc(job)];
    if (trace.jobs.estimate(job) < Time::max() || limit == Time::max()) return Time::max();
    return std::min(limit, all.set(all.set_of(job)).wall);
  };
  std::uint64_t changed = 0;
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) changed += limit_of(JobId{i}) < Time::max() ? 1 : 0;
  if (changed == 0) return trace;
  JobTableBuilder builder;
  builder.reserve(trace.jobs.size());
  TableRecord record_of(trace.jobs);
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    JobRecord record = record_of(JobId{i});
    record.estimate = std::min(record.estimate, limit_of(JobId{i}));
    builder.add(record);
  }
  auto jobs = std::move(builder).build();
  if (!jobs) return Unexpected{jobs.error()};
  trace.jobs = *std::move(jobs);
  trace.report.notes.push_back(counted(changed, "job") + " without a requested run time " +
                               (changed == 1 ? "requests" : "request") + " DefaultTime or MaxTime of the partition");
  return trace;
}

}  // namespace gpusched
