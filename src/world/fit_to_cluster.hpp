// SPDX-License-Identifier: Apache-2.0
/// Jobs that ask for more than a cluster has: refused, left out or made smaller.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/sites/site_world.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// What to do with a job that asks for more than the cluster has.
enum class Oversize : std::uint8_t { refuse, drop, clamp };

/// As written by a user. Precondition: "error", "drop" or "clamp".
constexpr Oversize oversize_from_word(std::string_view word) {
  if (word == "drop") return Oversize::drop;
  return word == "clamp" ? Oversize::clamp : Oversize::refuse;
}

/// Makes every job fit the empty cluster: refuses with an error that names the first that does not, drops such jobs
/// (the report counts them), or clamps gangs to as many tasks as fit.
Result<Trace> fit_to_cluster(Trace trace, const Cluster& cluster, Oversize mode);

/// Error: a job fits none of the empty clusters of `sites`, or none to which links lead from its home. `file`: the
/// trace, for the message.
Result<void> check_fits_a_site(const JobTable& jobs, std::span<const Cluster> sites, const SiteWorld& world,
                               const std::string& file);

}  // namespace gpusched
