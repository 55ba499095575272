// SPDX-License-Identifier: Apache-2.0
/// Reads services (ServiceModel): what serves requests beside the jobs, and every request. Compiled part.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/serving/service_model.hpp"
#include "gpusched/sites/site_world.hpp"

namespace gpusched {

/// A JSON object {"services": [SERVICE, ...], "list_requests": false, "memory": {"model": 0.7, "kv_blocks": 0.7}}, the
/// last a what-if (MemoryParts). A SERVICE:
///   {"name": "chat", "begin_s": 0,
///    "requests": {"log": "FILE.csv"} or {"rate_per_s": 3.5, "duration_s": 3600, "arrivals": "poisson"} or
///                {"rate_file": "FILE.csv", "duration_s": 3600},
///    "serves": {"seconds": 0.2} or {"mean_s": 0.2} or {"batch_s": [0.1, 0.15], "delay_s": 0.01} or
///              {"base_s": 0.1, "prompt_token_s": 0.0001, "output_token_s": 0.02} or {"logged": true},
///    "at_once": 1, "timeout_s": 30, "lost": "retry", "promise": {"part": 0.99, "within_s": 1},
///    "queue": "service" or "replica", "router": "least-loaded", "round-robin", "random" or "session",
///    "replica": {"tasks": 1, "gpus": 1, "cpus": 4, "memory_gib": 16, "gpu_type": "A100@24GiB"},
///    "least": 1, "most": 4, "autoscaler": {"rule": "hpa", "target": 0.7},
///    "start": {"cold_s": 60, "warm_s": 5, "keep_warm_s": 600},
///    "user": "web", "vc": "", "priority": 10, "family": ""}
/// A log is csv: TIMESTAMP (a date), ContextTokens, GeneratedTokens as Azure's; or arrival_s and, if one likes,
/// prompt_tokens, output_tokens, service_s, session. With "llm" in the replica (read_llm_engine()) there is no "serves"
/// and no "at_once", and a promise may hold "first_token_s" and "per_token_s". A log's first request comes when the
/// service begins. A path is taken from the folder of the file that names it.
///
/// Where `jobs` has no replicas yet, they are added as its first rows, "NAME:0" on. `seed` draws arrivals and service
/// times. Errors: file, line, field or JSON path and what was expected; a promise that the time of service alone
/// breaks; a replica that `cluster` never holds.
Result<ServiceModel> read_services(const std::string& path, JobTable& jobs, const Cluster& cluster, std::uint64_t seed);
/// The same from the text itself; `file` is for messages and the paths that the text names.
Result<ServiceModel> services_from_json(std::string_view text, const std::string& file, JobTable& jobs,
                                        const Cluster& cluster, std::uint64_t seed);

/// Services over sites: each service of `model` is one at one of its sites.
struct ServicesOverSites {
  ServiceModel model;                 ///< for the engines of all sites
  std::vector<SiteService> services;  ///< for SiteWorld
};
/// As read_services(), where each SERVICE has "sites" (read_service_sites()) and no "most"; a row is "NAME@SITE:0". Its
/// clusters are check_room_at_sites()'s.
Result<ServicesOverSites> read_services_over_sites(const std::string& path, JobTable& jobs, const SiteWorld& sites,
                                                   std::uint64_t seed);
/// Error: a replica that the cluster of its site never holds. `clusters`: by site; `file`: for the message.
Result<void> check_room_at_sites(const ServiceModel& model, std::span<const SiteService> services, const JobTable& jobs,
                                 std::span<const Cluster> clusters, const std::string& file);

/// The files that a file of services names, none where it cannot be read.
std::vector<std::string> files_of_services(const std::string& path);

/// The requests of a log, their times from the first one's on. `served_s`: its column service_s, where it has one.
struct RequestLog {
  std::vector<ServiceRequest> requests;
  bool has_service_times = false;  ///< ServiceRequest::work is that of the log
  bool has_tokens = false;         ///< it tells both numbers of tokens
  bool has_sessions = false;       ///< it tells whose session a request belongs to
};
/// From csv, as above. Errors: a column is missing, a time is before the one above it, a number is negative.
Result<RequestLog> request_log_from_csv(std::string_view text, const std::string& file);

}  // namespace gpusched
