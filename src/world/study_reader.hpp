// SPDX-License-Identifier: Apache-2.0
/// Reads studies (StudyModel): searches whose trials come beside the jobs. Compiled part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/trials/study_model.hpp"

namespace gpusched {

/// A JSON object {"studies": [STUDY, ...]}. A STUDY:
///   {"name": "cifar", "begin_s": 0,
///    "search": "asha-promotion", "asha-stopping", "hyperband", "halving" or "random",
///    "trials": 81, not with hyperband and halving, "workers": 9,
///    "eta": 3, "least_units": 1, "most_units": 27, "unit_s": 60, "asks": "late" or "early",
///    "loss": {"law": "lasting"} or {"law": "falling"} or
///            {"law": "drawn", "first": 1, "least": 0, "most": 1, "half_units": [1, 8]} or
///            {"table": "FILE.csv", "order_seed": 1},
///    "target_loss": 0.1, "stop_at_target": false, "report_gpu_hours": [1, 10],
///    "task": {"tasks": 1, "gpus": 1, "cpus": 4, "memory_gib": 16, "gpu_type": "A100"},
///    "requested": 1.5, "user": "", "vc": "", "priority": 0, "family": ""}
/// Laws: lasting: trial k has loss (7919 k mod 1000) / 1000 from the beginning. falling: it falls to that from 1 as
/// exp(-s u) after u units, s = 0.02 + (7907 k mod 1000) / 2000, so that curves cross. drawn: from `first`, halving its
/// distance every h units to a loss uniform between `least` and `most`, the logarithm of h uniform between those of
/// `half_units`. A table is csv of trial (0, 1, ...), units, loss and, if one likes, unit_s: a loss holds from its
/// units on, the first one before. "order_seed" draws which trial of the table is which. "requested": how many times
/// its run time each task asks for; else it asks for none.
///
/// Where `jobs` has no tasks yet, they are added behind the replicas in front, "NAME:TRIAL:RUNG", or "NAME:TRIAL" where
/// a trial keeps its worker. `seed` draws. Errors: file, line, field or JSON path and what was expected; a task that
/// `cluster` never holds.
Result<StudyModel> read_studies(const std::string& path, JobTable& jobs, const Cluster& cluster, std::uint64_t seed);
/// The same from the text itself; `file` is for messages and the paths that the text names.
Result<StudyModel> studies_from_json(std::string_view text, const std::string& file, JobTable& jobs,
                                     const Cluster& cluster, std::uint64_t seed);

/// The files that a file of studies names, none where it cannot be read.
std::vector<std::string> files_of_studies(const std::string& path);

}  // namespace gpusched
