// SPDX-License-Identifier: Apache-2.0
/// The parameters of the policy `slurm`, from slurm.conf.
#pragma once

#include <span>

#include "gpusched/data/job_table.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/world/slurm_site.hpp"

namespace gpusched {

/// Gives each policy `slurm` of the list, or that one of the list holds, what slurm.conf says; what is written with the
/// policy stays. Without a way of backfilling of its own it backfills as SchedulerType says, if `may_backfill`.
/// Priorities of QOS are parts of the greatest of their table, those of partitions of the greatest of all partitions.
/// Nothing changes without slurm.conf.
void set_slurm_parameters(const SlurmSite& site, const JobTable& jobs, bool may_backfill,
                          const PolicyRegistry& registry, std::span<PolicySpec> policies);

}  // namespace gpusched
