// SPDX-License-Identifier: Apache-2.0
/// Reads sites, links and where jobs and data live from a JSON file. Compiled part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/power_model.hpp"
#include "gpusched/serving/service_model.hpp"
#include "gpusched/sites/site_world.hpp"

namespace gpusched {

/// What a file of sites holds, made for one table of jobs.
struct SitesOfRun {
  SiteWorld world = {};
  std::vector<Cluster> clusters = {};       ///< by SiteId; of an unlimited site cloud_for()
  std::vector<PowerModel> powers = {};      ///< by SiteId; empty ones: energy is not counted there
  std::vector<NodeFailures> failures = {};  ///< by SiteId
  ServiceModel services = {};               ///< at their sites; where their requests are from, `world` says
  FederationOptions options = {};
  std::vector<std::string> files = {};  ///< that were read, the file itself first
  bool reads_trace = false;             ///< the trace itself says where jobs and data are
  std::vector<std::string> notes = {};  ///< what a user should know, one line each
};

/// Takes out of these lines on a trace what its reader says of columns that nobody uses, where the sites use some.
void leave_out_columns_of(const SitesOfRun& sites, std::vector<std::string>& lines);

/// Reads what `--sites` names, of which docs/sites.md describes every key:
///   {"sites": [{"name": "eu", "cluster": "8x8", "carbon": "de.csv", "usd_per_mwh": 60, "power": "openb",
///               "failures": "failures.json", "usd_per_gpu_h": 1.5, "uplink_mbps": 1000, "downlink_mbps": 1000},
///              {"name": "cloud", "unlimited": true, "usd_per_gpu_h": 2.5}],
///    "links": [{"from": "eu", "to": "cloud", "mbps": 160, "rtt_ms": 70, "usd_per_gb": 0.02},
///              {"between": ["eu", "us"], "mbps": 160}],
///    "home": {"by": "vc", "of": {"lab": "eu"}, "else": "eu"},
///    "data_sets": [{"name": "images", "gb": 150, "at": ["eu"]}], "jobs": "where.csv",
///    "network_kwh_per_gb": 0.06, "migration": {"every_s": 600, "most_moves": 1, "running": false}}
/// `jobs` is a csv with job_id and any of site, data_gb, output_gb, checkpoint_gb and data_set; without it, `trace`
/// itself where that is a csv with such columns. A job's site is that of the csv, else that of `home`, else the first.
/// Files are relative to the folder of the JSON file. `seed`: of failures.
///
/// Errors: file and JSON path, or file and line, and what was expected there: an unknown site, a second link or none
/// from any site with a data set to another site, a negative price of egress.
Result<SitesOfRun> read_sites(const std::string& path, const std::string& trace, const JobTable& jobs,
                              std::uint64_t seed);

/// Which files say what there is over several sites.
struct SiteFiles {
  std::string sites;     ///< as read_sites() takes it
  std::string services;  ///< as read_services_over_sites() takes it; empty: none
  std::string trace;     ///< of the jobs
};

/// Reads sites, and the services over them, whose replicas come in front of `jobs` (JobTable::in_front).
Result<SitesOfRun> read_served_sites(const SiteFiles& files, JobTable& jobs, std::uint64_t seed);
/// Errors: a replica that fits nowhere at its site, a job that fits no site.
Result<void> check_fits_sites(const SitesOfRun& sites, const SiteFiles& files, const JobTable& jobs);
/// Both.
Result<SitesOfRun> read_fitting_sites(const SiteFiles& files, JobTable& jobs, std::uint64_t seed);

/// As read_sites(), from the text itself; `file` is for messages, and the folder of the files that it names.
Result<SitesOfRun> sites_from_json(std::string_view text, const std::string& file, const std::string& trace,
                                   const JobTable& jobs, std::uint64_t seed);

/// The files that read_sites() reads, `path` the first: for manifests. A trace that says itself where jobs are is none
/// of them.
std::vector<std::string> files_of_sites(const std::string& path);

}  // namespace gpusched
