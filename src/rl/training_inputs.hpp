// SPDX-License-Identifier: Apache-2.0
/// The files that a training run reads, by their SHA-256: a run goes on with the same ones, or its losses would be of
/// different inputs.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/rl/train_config.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// A file and what it held.
struct TrainingInput {
  std::string path, sha256;
};

/// The trace, and what cluster, conditions, teacher and the constraints' reference are read from. Without
/// TrainConfig::init, of which a run that goes on reads nothing.
std::vector<TrainingInput> training_inputs(const TrainConfig& config, const TraceReport& trace);

/// Writes them into the folder of a run, or of several seeds' runs, as inputs.json.
Result<void> write_training_inputs(const std::string& folder, const std::vector<TrainingInput>& inputs);

/// Removes inputs.json of a run that did not begin.
void forget_training_inputs(const std::string& folder);

/// Whether `folder` holds inputs.json; of one seed's run, the folder of all.
bool knows_training_inputs(const std::string& folder);

/// Error: an input is not what the run began with, its file named; inputs.json cannot be read. Precondition:
/// knows_training_inputs(folder).
Result<void> check_training_inputs(const std::string& folder, const std::vector<TrainingInput>& inputs);

}  // namespace gpusched
