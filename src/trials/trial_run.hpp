// SPDX-License-Identifier: Apache-2.0
/// run_trials(): a search on a number of workers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gpusched/trials/trial_search.hpp"

namespace gpusched {

/// The loss of a trial that was trained for so many units.
using TrialLoss = std::function<double(std::uint32_t trial, TrialUnits units)>;

/// A better trial than all before.
struct TrialRecord {
  TrialUnits time = 0;  ///< when it was found
  TrialUnits work = 0;  ///< of all workers by then, tasks under way in full
  std::uint32_t trial = 0;
  double loss = 0;
};

/// What a search did.
struct TrialRun {
  std::vector<std::uint32_t> by_rung;    ///< tasks of each rung
  TrialUnits work = 0;                   ///< of all workers
  std::optional<TrialUnits> first_full;  ///< when a trial was first trained to the last rung
  TrialUnits end = 0;                    ///< when nothing was left to do
  std::vector<TrialRecord> records;      ///< in order of time
};

/// Runs a search, which is told of all that it asked for, on `workers` workers, each of which trains a unit in a unit
/// of time. A worker that is free asks at once, the earlier freed first; of tasks that end at one instant, that which
/// began first is told first, and its worker asks before the next is told.
TrialRun run_trials(TrialSearch& search, const TrialRungs& rungs, std::uint32_t workers, const TrialLoss& loss);

}  // namespace gpusched
