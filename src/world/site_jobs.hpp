// SPDX-License-Identifier: Apache-2.0
/// Where the jobs of a trace are submitted and their data lives. Compiled part.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/sites/site_world.hpp"

namespace gpusched {

/// What homes go by.
enum class HomeColumn : std::uint8_t { none, vc, user, group };

/// What a file of sites says of jobs.
struct SiteJobs {
  HomeColumn column = HomeColumn::none;
  std::map<std::string, SiteId> of = {};  ///< homes by its names
  SiteId otherwise = 0;
  std::string file = {};  ///< a csv of job_id, site, data_gb, output_gb, checkpoint_gb, data_set; empty: none
};

/// The names of all sites, by SiteId.
std::vector<std::string> site_names(const SiteWorld& world);

/// True where the file is a csv whose first line names job_id and any of the other columns.
bool has_site_columns(const std::string& path);

/// By JobId; empty where all are at the first site, without data. Of the csv that `told` names, or of `trace` where
/// that is a csv with such columns; that file is added to `files`. Errors: file, line and column, and what was
/// expected.
Result<std::vector<JobPlace>> places_of_jobs(const SiteJobs& told, const std::string& trace, const JobTable& jobs,
                                             const SiteWorld& world, std::vector<std::string>& files,
                                             std::vector<std::string>& notes);

}  // namespace gpusched
