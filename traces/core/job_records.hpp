// SPDX-License-Identifier: Apache-2.0
/// A table's jobs as the records that it was built from, for tables made of a part of another.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// Everything that the table holds of a job. The record borrows from the table, from `id` and from `attempts`.
JobRecord record_of(const JobTable& jobs, JobId job, const std::string& id, std::vector<Time>& attempts);

/// The jobs that `where` asks for (JobFilter); the others are counted as dropped. Errors: not such a text, or no job is
/// left.
Result<Trace> keep_jobs(Trace trace, const std::string& where);

}  // namespace gpusched
