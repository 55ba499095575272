// SPDX-License-Identifier: Apache-2.0
/// What the rows of Slurm's accounting mean, in text or JSON.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/core/logged_runs.hpp"
#include "traces/core/slurm_tres.hpp"

namespace gpusched {

/// What the state says of the times: whether the job waits, runs or was cancelled.
void take_slurm_state(std::string_view state, LoggedTimes& times);

/// What a run asks for: the request; or the allocation where that has another number of GPUs (--exclusive takes all of
/// a node, a resized job has what it has now). Where that names no type, it is the other's, because the run time is
/// known for that type only. `nodes`: 0 where the row does not say.
SlurmTres slurm_demand(const SlurmTres& requested, const SlurmTres& allocated, std::int64_t nodes);

/// Splits "17+1" into the job's id and its component. False when the component is no number.
bool split_slurm_id(std::string_view text, LoggedRun& run);

}  // namespace gpusched
