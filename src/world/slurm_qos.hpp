// SPDX-License-Identifier: Apache-2.0
/// The QOS of a Slurm cluster, as `sacctmgr show qos -P` prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/limit_rules.hpp"
#include "src/world/slurm_conf.hpp"

namespace gpusched {

/// A limit of a QOS: a column, of which each kind of TRES is one. Source: sacctmgr(1), slurm.schedmd.com/qos.html.
struct SlurmQosLimit {
  std::string column;                ///< as in the header: "MaxTRESPU"
  std::string value;                 ///< as written: "gres/gpu=8"
  LimitOwner per = LimitOwner::all;  ///< Grp...: all jobs; ...PU: each user; ...PA: each account; MaxTRES: each job
  LimitAmounts most = {};
  std::int64_t submitted = unlimited;
  Time wall = Time::max();  ///< MaxWall: the longest time that a job may request

  /// True when the other limits the same in another QOS.
  [[nodiscard]] bool is_like(const SlurmQosLimit& other) const;
};

/// A row of that table.
struct SlurmQos {
  std::string name;
  std::int32_t priority = 0;
  std::vector<SlurmQosLimit> limits;
  std::vector<std::string> preempts;  ///< the QOS whose jobs it may preempt
  SlurmPreempted preempted = {};
  bool lifts_max_time = false;  ///< flag PartitionTimeLimit: MaxTime of partitions does not hold for its jobs
  std::uint64_t line = 0;
};

/// The table, and what of it a run does not use.
struct SlurmQosTable {
  std::string path;
  std::vector<SlurmQos> rows;
  std::vector<UnusedSetting> unused;
  std::vector<UnusedSetting> of_preemption = {};  ///< those settings, which slurm.conf may leave without use
};

/// Reads the table: a header line with the columns Name and Priority, and perhaps others, between bars. Errors carry
/// file, line and column.
Result<SlurmQosTable> read_slurm_qos(const std::string& path);

}  // namespace gpusched
