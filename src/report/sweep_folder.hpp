// SPDX-License-Identifier: Apache-2.0
/// Reading back what `sweep --out` wrote.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/strict_json.hpp"
#include "src/sim/grid_comparison.hpp"

namespace gpusched {

/// A row of runs.csv that has figures.
struct SweepRunRow {
  std::string id;  ///< its folder below `runs`, where there is one
  GridRun grid;
  std::optional<double> worst_decile_slowdown;
};

/// What `sweep --out` wrote.
struct SweepInput {
  std::string folder;
  std::vector<std::string> keys;  ///< that vary
  std::vector<SweepRunRow> runs;
  double all = 0, missing = 0, failed = 0;  ///< runs of the sweep; without figures for now, and for good
};

/// Errors: no runs.csv beside the manifest, a key that it lacks, no run with figures.
Result<SweepInput> read_sweep_folder(const std::string& folder, const Json& manifest);

}  // namespace gpusched
