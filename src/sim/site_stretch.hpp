// SPDX-License-Identifier: Apache-2.0
/// Runs over several sites for what compares runs: evaluations, sweeps and searches.
#pragma once

#include <string>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/measure_window.hpp"
#include "gpusched/sites/federation.hpp"
#include "src/conditions/condition_options.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/stretch_run.hpp"
#include "src/world/sites_reader.hpp"

namespace gpusched {

/// What is run over sites.
struct SiteStretch {
  const JobTable* jobs = nullptr;  ///< borrowed
  SitesOfRun sites;                ///< of these jobs
  PolicySpec policy;               ///< of every site
  std::string router;              ///< as parse_routers() takes it, one
  EngineOptions engine = {};
  bool kill_at_limit = false;
  MeasureWindow measured = {};
};

/// Of the sites of a whole table those of the jobs of its slice from `first` on (JobTable::slice).
SitesOfRun sites_of_slice(const SitesOfRun& sites, std::uint32_t first, const JobTable& slice);

/// Metrics are of the measured jobs: GPU time on sites that are not unlimited, energy, carbon (of networks, too) and
/// money (egress, GPUs, electricity) of the whole run where all are measured, and all requests of services. Errors:
/// policy or router cannot be made.
Result<StretchRun> run_at_sites(const SiteStretch& stretch, const PolicyRegistry& registry, const StretchOptions& how);

/// What run_at_sites() would refuse.
Result<void> check_at_sites(const SiteStretch& stretch, const PolicyRegistry& registry);
/// Errors: a condition that sites do not take, or state themselves; the field is its path.
Result<void> check_conditions_of_sites(const ConditionOptions& options);
/// Why runs over these sites, of which all jobs are measured or not, do not know the metric of that name; empty where
/// they do.
std::string lacks_site_figure(const std::string& name, const SitesOfRun& sites, bool measures_all);

}  // namespace gpusched
