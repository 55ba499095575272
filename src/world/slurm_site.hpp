// SPDX-License-Identifier: Apache-2.0
/// SlurmSite: how a Slurm cluster is configured, from slurm.conf and the table of its QOS, and what a run takes of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "src/world/slurm_conf.hpp"
#include "src/world/slurm_qos.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// Either file may be missing.
struct SlurmSite {
  std::optional<SlurmConf> conf = {};
  std::optional<SlurmQosTable> qos = {};
  std::vector<UnusedSetting> unused = {};  ///< of both files, in their order
  std::vector<std::string> notes = {};     ///< what a user should know besides

  /// The priorities of QOS as QosWeights takes them; empty without their table.
  [[nodiscard]] std::string qos_weights() const;
  /// The files that were read.
  [[nodiscard]] std::vector<std::string> files() const;
  /// A line a file that has settings which are not used, by key: "slurm.conf: 2 settings not used: ...".
  [[nodiscard]] std::vector<std::string> unused_lines() const;
};

/// Reads the two; a name that is empty is not read.
Result<SlurmSite> read_slurm_site(const std::string& conf, const std::string& qos);

/// Adds the limits of the QOS to those of the cluster, where limits are enforced (AccountingStorageEnforce): of the
/// jobs that ask for a QOS, and of all jobs of a partition whose QOS it is, for which the limits of that QOS stand in
/// for like ones of the jobs' own (slurm.schedmd.com/resource_limits.html, "Hierarchy"; qos.html, "Partition QOS"). A
/// job counts in what both use (_adjust_limit_usage() of Slurm's acct_policy.c).
/// Those that are not enforced are added to those that are not used. What a partition refuses always holds: MaxTime,
/// AllowQos, DenyQos, DenyAccounts. Error: a partition names a QOS that the table does not have.
Result<void> set_slurm_limits(SlurmSite& site, Cluster& cluster);

/// Jobs without a requested run time (TimelimitRaw Partition_Limit) request DefaultTime or MaxTime of their partition,
/// or the least of `limits`, those that hold for the run, if that is less; a note says how many.
Result<Trace> request_partition_limits(const SlurmSite& site, const std::vector<LimitRule>& limits, Trace trace);

}  // namespace gpusched
