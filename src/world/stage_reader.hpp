// SPDX-License-Identifier: Apache-2.0
/// Reads what runs go through before they work (StageModel). Compiled part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/stage_model.hpp"

namespace gpusched {

/// A model made for a table of jobs.
struct StagesOfJobs {
  StageModel model;
  std::vector<std::string> notes = {};  ///< values of the file that no job has
};

/// A JSON object:
///   {"provision_s": 20, "keep_alive_s": 600, "cache_gib": 500, "transfer_gib_per_s": 1, "storage_gib_per_s": 10,
///    "uplink_gib_per_s": 5,
///    "images": {"by": "user", "gib": 12, "unpack_s": 30, "load_s": 2, "of": {"alice": {"gib": 20}}},
///    "weights": {"by": "family", "gib": 5, "load_s": 10}, "checkpoint_gib_per_gpu": 2}
/// Every key is optional, but something must take time, and what moves needs `transfer_gib_per_s`. `by` (user, group,
/// vc, name or family): each value in that column of `jobs` has an image (or weights) of its own, as large and slow as
/// the object says, and `of` says otherwise for some of them; without it, all jobs share one.
///
/// A value of `of` that no job has is noted: one file may serve many traces. Errors: file and JSON path, and what was
/// expected there.
Result<StagesOfJobs> read_stages(const std::string& path, const JobTable& jobs);
/// The same from the text itself; `file` is for messages only.
Result<StagesOfJobs> stages_from_json(std::string_view text, const std::string& file, const JobTable& jobs);

}  // namespace gpusched
