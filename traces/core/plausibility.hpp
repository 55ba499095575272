// SPDX-License-Identifier: Apache-2.0
/// What of a trace can hardly be meant: most often a unit of time that was read as another.
#pragma once

#include <string>
#include <vector>

#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A line for each of these that is true: no job has a GPU; all jobs come at once; no job takes any time; the median
/// run time is below 10 seconds or above 30 days; a job runs for more than 10 years; submissions span more than 20
/// years. Precondition: there are jobs.
std::vector<std::string> plausibility_notes(const JobTable& jobs);

}  // namespace gpusched
