// SPDX-License-Identifier: Apache-2.0
/// SlurmConf: what of a slurm.conf a run uses, and which of its settings it does not. Meanings and defaults are those
/// of slurm.conf(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "src/world/slurm_machines.hpp"

namespace gpusched {

/// A setting of a file of Slurm that changes nothing in a run.
struct UnusedSetting {
  std::string file;
  std::uint64_t line = 0;
  std::string key;    ///< "SlurmUser", "PartitionName:MaxNodes", "SchedulerParameters:defer", "normal:GrpWall"
  std::string value;  ///< as written
};

/// By what jobs preempt others: PreemptType.
enum class SlurmPreemptType : std::uint8_t { none, qos, partition };

/// What becomes of a job that is preempted: PreemptMode.
enum class SlurmPreemptMode : std::uint8_t { off, requeue, suspend, cancel };

/// On what terms jobs of a QOS or partition are preempted. GANG, WITHIN and PRIORITY change nothing: they are named as
/// not used.
struct SlurmPreempted {
  std::optional<SlurmPreemptMode> mode = {};  ///< PreemptMode; none: as of the cluster
  std::optional<Time> grace = {};             ///< GraceTime
  std::optional<Time> exempt = {};            ///< PreemptExemptTime
};

/// A PartitionName line: a virtual cluster.
struct SlurmPartition {
  std::string name;
  double job_factor = 1;  ///< PriorityJobFactor
  double tier = 1;        ///< PriorityTier: who goes first, and preempts whom under preempt/partition_prio
  SlurmPreempted preempted = {};
  Time wall = Time::max();          ///< MaxTime
  Time default_wall = Time::max();  ///< DefaultTime: what jobs without a request request, instead of MaxTime
  std::vector<std::string> allow_qos = {}, deny_qos = {}, deny_accounts = {};  ///< AllowQos, DenyQos, DenyAccounts
  bool allows_accounts = false;  ///< AllowAccounts lists some, whose subaccounts nobody here knows: it is not used
  std::string qos;               ///< the partition's own QOS, whose limits are those of the partition; empty: none
  std::string file;              ///< where it is described
  std::uint64_t line = 0;
};

/// The settings of one cluster.
struct SlurmConf {
  bool multifactor = false;      ///< PriorityType is priority/multifactor, not priority/basic: first in, first out
  double weight_age = 0;         ///< PriorityWeightAge
  double weight_fair_share = 0;  ///< PriorityWeightFairshare
  double weight_size = 0;        ///< PriorityWeightJobSize
  double weight_partition = 0;   ///< PriorityWeightPartition
  double weight_qos = 0;         ///< PriorityWeightQOS
  Time max_age = whole_seconds(7 * 86'400);    ///< PriorityMaxAge
  Time half_life = whole_seconds(7 * 86'400);  ///< PriorityDecayHalfLife; 0: usage does not decay
  bool fair_tree = true;                       ///< PriorityFlags lacks NO_FAIR_TREE
  bool backfills = true;                       ///< SchedulerType is sched/backfill and bf_interval is not -1
  Time bf_window = whole_seconds(86'400);      ///< SchedulerParameters bf_window
  double bf_max_job_test = 500;                ///< SchedulerParameters bf_max_job_test
  Time bf_interval = whole_seconds(30);        ///< SchedulerParameters bf_interval
  SlurmPreemptType preempt_type = SlurmPreemptType::none;  ///< PreemptType
  SlurmPreempted preempted = {};                           ///< of the cluster; without a mode nobody is preempted
  bool youngest_first = false;                             ///< SchedulerParameters preempt_youngest_first
  bool requeues = true;                           ///< JobRequeue; false: who is stopped, or loses a node, is cancelled
  std::vector<UnusedSetting> of_preemption = {};  ///< those settings of the cluster, which others may leave without use
  bool enforces_limits = false;                   ///< AccountingStorageEnforce has limits, safe or all
  std::vector<SlurmPartition> partitions;
  std::optional<SlurmCluster> cluster;  ///< of the NodeName lines; none without such lines
  std::vector<UnusedSetting> unused;
  std::vector<std::string> files;  ///< that were read
};

/// Reads a PreemptMode: the word of it that says what becomes of jobs; words that change nothing are added to `unused`.
/// False where one is unknown, or two say it.
bool read_slurm_preempt_mode(std::string_view text, std::optional<SlurmPreemptMode>& mode,
                             std::vector<std::string>& unused);

/// Reads the file and those that it includes. A node's cores and memory are unlimited where it does not say them; nodes
/// that no partition has, or whose State is down, drained, failing or future, are left out. Errors carry file, line and
/// key.
Result<SlurmConf> read_slurm_conf(const std::string& path);

}  // namespace gpusched
