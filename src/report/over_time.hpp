// SPDX-License-Identifier: Apache-2.0
/// What a run of replay says of its services and of its power over time, read back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "src/base/level_series.hpp"

namespace gpusched {

/// A row of service_levels.csv.
struct ServicePart {
  Time begin{}, end{};
  double arrivals = 0;
  std::optional<double> in_time = {};  ///< of the arrivals; nothing without a promise
  double waiting = 0, replicas = 0;
};

/// A service of a run.
struct ServiceRun {
  std::string name;
  std::vector<ServicePart> parts = {};
  std::vector<SharePoint> latencies_s = {};  ///< ascending
};

/// A row of power.csv, which holds until the next one.
struct PowerRow {
  Time since{};
  double meter_w = 0;
  std::optional<double> carbon_kg_per_h = {}, usd_per_h = {};
  std::optional<double> headroom_w = {};  ///< the least of all caps
};

/// The services in the folder `files` ("DIR/"), in the order of the run; none where it has no such files. Errors: files
/// that are cut, or that do not belong together.
Result<std::vector<ServiceRun>> read_service_runs(const std::string& files);

/// The rows of power.csv there; none without it. Errors: a file that is cut.
Result<std::vector<PowerRow>> read_power_rows(const std::string& files);

}  // namespace gpusched
