// SPDX-License-Identifier: Apache-2.0
/// CarbonScaler (Hanafy et al., POMACS 7(3), 2023) on the measured profiles of its authors' carbonAdvisor: one job with
/// a deadline, in slots of an hour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/signal.hpp"
#include "src/policies/carbon/carbon_scaler.hpp"

namespace gpusched {

/// A model's speed and draw on one replica, two, ...
struct ScaleProfile {
  std::string model;
  std::vector<ReplicaPoint> points;
};

/// Reads carbonAdvisor's profiles: a block for each model, with replicas by number from 1 on, each with power (W) and
/// throughput; other keys are passed over. The part of YAML that these files use: mappings by indentation. Errors carry
/// file, line and key.
Result<std::vector<ScaleProfile>> read_scale_profiles(const std::string& path);
/// The same from the text itself; `file` is for messages only.
Result<std::vector<ScaleProfile>> scale_profiles_from_yaml(std::string_view text, const std::string& file);

/// Hours.
struct ScaleOptions {
  int work_h = 24;  ///< of one replica
  int deadline_h = 48;
  Forecast forecast{.kind = Forecast::Kind::perfect};
};

struct ScaleResult {
  double carbon_g = 0, energy_kwh = 0;            ///< of the plan
  double base_carbon_g = 0, base_energy_kwh = 0;  ///< of one replica at once
  bool in_time = false;
};

/// Plans one job at the signal's time 0, in g/kWh.
ScaleResult run_carbon_scaler(const ScaleProfile& profile, const Signal& carbon, const ScaleOptions& options);

}  // namespace gpusched
