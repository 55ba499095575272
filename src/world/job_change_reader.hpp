// SPDX-License-Identifier: Apache-2.0
/// Reads what users do to jobs that were submitted (JobChanges). Compiled part.
#pragma once

#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A csv with the columns time_s (seconds on the trace's clock, after the job's submission), job (its id in the trace),
/// change and value: cancel (no value), priority (a whole number) or gpus (how many the job asks for from then on, in
/// tasks as large as before, which the empty cluster must hold). Rows in any order, at most one for a job and an
/// instant. Sizes that no job of the table asks for are added to its shapes. Errors: file, line and field, and what was
/// expected there.
Result<JobChanges> read_job_changes(const std::string& path, JobTable& jobs, const Cluster& cluster);
/// The same from the text itself; `file` is for messages only.
Result<JobChanges> job_changes_from_csv(std::string_view text, const std::string& file, JobTable& jobs,
                                        const Cluster& cluster);

}  // namespace gpusched
