// SPDX-License-Identifier: Apache-2.0
/// The QOS of a Slurm cluster, as `sacctmgr show qos -P` prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/world/slurm_conf.hpp"

namespace gpusched {

/// A row of that table.
struct SlurmQos {
  std::string name;
  std::int32_t priority = 0;
  std::optional<std::int64_t> most_gpus;  ///< gres/gpu of GrpTRES: what all its jobs hold at once; none: no limit
  std::uint64_t line = 0;
};

/// The table, and what of it a run does not use.
struct SlurmQosTable {
  std::string path;
  std::vector<SlurmQos> rows;
  std::vector<UnusedSetting> unused;
};

/// Reads the table: a header line with the columns Name and Priority, and perhaps others, between bars. Errors carry
/// file, line and column.
Result<SlurmQosTable> read_slurm_qos(const std::string& path);

}  // namespace gpusched
