// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_site.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"

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
  return site;
}

Result<void> set_slurm_quotas(SlurmSite& site, Cluster& cluster) {
  const auto not_used = [&](const SlurmQos& row) {
    site.unused.push_back(
        {site.qos->path, row.line, row.name + ":GrpTRES", "gres/gpu=" + std::to_string(*row.most_gpus)});
  };
  std::map<std::string, MilliGpu> quotas;  // by partition
  std::vector<std::string> of_partitions;
  for (const SlurmPartition& partition : site.conf ? site.conf->partitions : std::vector<SlurmPartition>{}) {
    if (partition.qos.empty()) continue;
    if (!site.qos) {
      site.unused.push_back({partition.file, partition.line, "PartitionName:QOS", partition.qos});
      continue;
    }
    const auto& rows = site.qos->rows;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const SlurmQos& q) { return q.name == partition.qos; });
    if (row == rows.end()) {
      return Unexpected{Error{.message = "expected a QOS of " + site.qos->path + ", found '" + partition.qos + "'",
                              .file = partition.file,
                              .line = partition.line,
                              .field = "QOS"}};
    }
    of_partitions.push_back(row->name);
    if (row->most_gpus) quotas[partition.name] = *row->most_gpus * whole_gpu;
  }
  const bool enforces = site.conf && site.conf->enforces_limits;
  for (const SlurmQos& row : site.qos ? site.qos->rows : std::vector<SlurmQos>{}) {
    const auto uses = std::count(of_partitions.begin(), of_partitions.end(), row.name);
    // The jobs of several partitions would share one limit, which quotas of virtual clusters do not.
    if (row.most_gpus && (!enforces || uses != 1)) not_used(row);
    if (uses < 2) continue;
    for (const SlurmPartition& partition : site.conf->partitions) {
      if (partition.qos == row.name) quotas.erase(partition.name);
    }
  }
  if (!enforces) return {};
  for (VirtualCluster& vc : cluster.vcs) {
    const auto quota = quotas.find(vc.name);
    if (quota == quotas.end()) continue;
    vc.quota = quota->second;
    quotas.erase(quota);
  }
  for (const auto& [partition, quota] : quotas) {
    site.notes.push_back("the cluster has no virtual cluster '" + partition + "' for the limit of its QOS");
  }
  return {};
}

}  // namespace gpusched
