// SPDX-License-Identifier: Apache-2.0
/// Step times of training by number of GPUs, placement and batch size, as the artifacts of Pollux (OSDI 2021) and Sia
/// (SOSP 2023) hold them.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/calibration/profile/throughput_table.hpp"

namespace gpusched {

/// Throughputs, in samples a second, from a folder with a folder for each application, in which `placements.csv` is of
/// GPU type T4 (Pollux) and `placements-TYPE.csv` of GPU type TYPE (Sia). Columns: placement (GPUs on each node, a
/// digit each), local_bsz (samples a GPU and step) and step_time (seconds).
///
/// Family APPLICATION runs at the measured batch size that gives most samples a second; family
/// "APPLICATION (batch size B)", as Gavel names its jobs, at B samples a step, with the step time interpolated linearly
/// between the nearest two batch sizes a GPU. `families` says which of these to add (null: none); one that was not
/// measured so small or large has no throughput. A gang on several nodes takes the mean step time of all placements of
/// its GPUs on several nodes; where none on one node was measured, that is also its throughput there.
///
/// Errors: no such file, or one that lacks a column or holds what is no number, with file, line and column.
Result<ThroughputTable> table_of_step_times(const std::string& folder, const NameTable* families);

/// The files that table_of_step_times() reads, sorted; none where there is no such folder.
std::vector<std::string> step_time_files(const std::string& folder);

}  // namespace gpusched
