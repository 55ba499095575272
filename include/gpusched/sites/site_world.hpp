// SPDX-License-Identifier: Apache-2.0
/// SiteWorld: sites, the links between them, and where jobs and data live. Immutable while a run lasts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/signal.hpp"
#include "gpusched/sites/site_services.hpp"

namespace gpusched {

/// Position of a site in SiteWorld::sites; ties go to the smaller one.
using SiteId = std::uint32_t;
/// No site.
inline constexpr SiteId no_site = no_index;

/// Sums of bytes times prices exceed 64 bits.
__extension__ using SiteSum = __int128;

/// Of transfers and prices: 1 GB is 10^9 bytes, 1 Mbps 10^6 bits a second.
inline constexpr double bytes_per_gb = 1e9;
inline constexpr double bytes_per_s_per_mbps = 125'000;  ///< bytes a second of 1 Mbps

/// A way from one site to another, in that direction.
struct SiteLink {
  double bytes_per_s = 0;             ///< of all transfers on it; above 0
  Time round_trip{};                  ///< what a transfer takes besides its bytes; 0 or more
  std::int64_t micro_usd_per_gb = 0;  ///< paid by the origin: millionths of USD; 0 or more
};

/// A site, besides its machines, which are its engine's.
struct Site {
  std::string name = {};         ///< distinct
  Signal carbon_g_per_kwh = {};  ///< of its electricity; empty: not known
  Signal usd_per_mwh = {};       ///< of its electricity; empty: not known
  double usd_per_gpu_h = 0;      ///< for GPUs that jobs hold
  bool is_unlimited = false;     ///< a cloud: as many GPUs as anybody asks for
  /// Bytes a second of all transfers that leave it, and that come to it.
  /// \{
  double uplink = std::numeric_limits<double>::infinity();
  double downlink = std::numeric_limits<double>::infinity();
  /// \}
};

/// Data that jobs share. A copy that came to a site stays there.
struct DataSet {
  std::string name = {};        ///< distinct
  std::int64_t bytes = 0;       ///< 0 or more
  std::vector<SiteId> at = {};  ///< where it is when the run begins; at least one
};

/// The seed of what is random at a site of several, of the run's; that of an only site is the run's own.
inline std::uint64_t site_seed(std::uint64_t seed, const std::vector<Site>& sites, SiteId site) {
  return sites.size() == 1 ? seed : Rng(seed).split("site").split(sites[site].name).next();
}

/// What a job is, beside its row of the JobTable.
struct JobPlace {
  SiteId home = 0;                    ///< where it is submitted, and its own data lives; of a replica: its site
  std::int64_t bytes = 0;             ///< of its own data
  std::int64_t output_bytes = 0;      ///< what jobs after it need of it, from where it ran
  std::int64_t checkpoint_bytes = 0;  ///< of its state, which follows it from where it ran
  std::uint32_t data_set = no_index;  ///< which it reads, in SiteWorld::data_sets
};

/// All of it, a plain value.
struct SiteWorld {
  std::vector<Site> sites = {};                     ///< by SiteId; at least one
  std::vector<std::optional<SiteLink>> links = {};  ///< [from * sites + to]; nothing: no way
  std::vector<DataSet> data_sets = {};              ///< by number
  std::vector<JobPlace> jobs = {};                  ///< by JobId; empty: all at the first site, without data
  std::vector<SiteService> services = {};           ///< beside the jobs
  /// Energy of moving a byte, in nanojoules: 0.06 kWh/GB (Aslan et al., J. Industrial Ecology 22(4), 2018: 2015).
  std::int64_t network_nj_per_byte = 216'000;

  /// The link from one site to another; null: none.
  [[nodiscard]] const SiteLink* link(SiteId from, SiteId to) const {
    const std::size_t at = std::size_t{from} * sites.size() + to;
    return at < links.size() && links[at] ? &*links[at] : nullptr;
  }
  /// What is known of a job.
  [[nodiscard]] JobPlace place(JobId job) const { return jobs.empty() ? JobPlace{} : jobs[index(job)]; }
};

/// How jobs move.
struct FederationOptions {
  Time every{};                  ///< waiting jobs are routed anew so often; 0: never
  std::uint32_t most_moves = 1;  ///< that one job makes then
  /// Running jobs are routed anew, too, after those that wait. One that moves is preempted, its checkpoint follows it
  /// over the link, and its next start costs what PreemptionCost says.
  bool moves_running = false;
};

/// The machines of an unlimited site: one pool that holds all jobs of the table at once, at most 10^9 GPUs.
inline Cluster cloud_for(const JobTable& jobs) {
  constexpr std::int64_t most = 1'000'000'000;
  std::int64_t gpus = 1;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    gpus = std::min(most,
                    gpus + (std::min(most * whole_gpu, jobs.shape(JobId{i}).gpu_milli()) + whole_gpu - 1) / whole_gpu);
  }
  return {.name = "unlimited", .nodes = {{.gpus = static_cast<std::uint32_t>(gpus), .counts_only = true}}};
}

}  // namespace gpusched
