// SPDX-License-Identifier: Apache-2.0
/// Federate: the jobs of a trace over several sites, under one router after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/sites/site_accounts.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "gpusched/watch/interval_log.hpp"
#include "gpusched/watch/metrics.hpp"
#include "gpusched/watch/service_figures.hpp"
#include "src/base/field_table.hpp"
#include "src/conditions/condition_options.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/cluster_level_log.hpp"
#include "src/sim/estimate_log.hpp"
#include "src/world/sites_reader.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// What the user asks for.
struct FederateOptions {
  std::string trace;  ///< as Scenario's, the same below
  std::string format = "auto";
  std::string columns;
  std::string where;
  bool drop_bad_rows = false;
  bool backlog = false;
  std::string qos;
  std::string sites;                          ///< the file of sites
  std::string services;                       ///< that of services over them; empty: none
  std::vector<std::string> routers{"local"};  ///< each as parse_routers() takes it
  std::string policy = "fifo";                ///< of every site
  std::uint64_t seed = 0;
  ConditionOptions conditions;  ///< placement and the costs of preemption
  std::string out;              ///< folder for files; empty: none
  bool timeline = false;        ///< timeline.csv among them
  bool json = false;            ///< one JSON object instead of tables
};

/// Every field of `options`, in the order of a file. The pointers live as long as it.
FieldTable federate_fields(FederateOptions& options);
/// Sets what a file gives; as read_scenario_file().
Result<std::set<std::string>> read_federate_file(FederateOptions& options, const std::string& path);
/// The JSON Schema of such files.
std::string federate_schema();

/// What every run needs, read once.
struct FederateInput {
  Trace trace;
  SitesOfRun sites;
  PolicySpec policy;
  std::vector<PolicySpec> routers;
  EngineOptions options;
  bool kill_at_limit = false;
  bool timeline = false;  ///< RouterRun::timelines are kept
};

/// Reads trace and sites and resolves every name. Errors are the user's.
Result<FederateInput> load_federate(const FederateOptions& options, const PolicyRegistry& registry);

/// How a service over sites was served.
struct ServiceOverSites {
  ServiceFigures all;                   ///< at all its sites together
  std::vector<ServiceFigures> at = {};  ///< by part (SiteService::parts)
};

/// What one router did.
struct RouterRun {
  std::string router;          ///< as written
  bool clairvoyant = false;    ///< the policy of the sites is
  std::string why_unfinished;  ///< empty: all jobs ended; else what follows is not filled in
  std::unique_ptr<Federation> federation;
  std::vector<SiteAccount> accounts;            ///< by site
  std::vector<ServiceOverSites> services = {};  ///< in the order of their file
  std::vector<RunLog> logs;                     ///< by site
  std::vector<IntervalLog> intervals;           ///< by site
  std::vector<HistoryHash> histories;           ///< by site
  std::vector<EstimateLog> estimates;           ///< by site
  std::vector<ClusterLevelLog> timelines = {};  ///< by site, when asked for
  double sim_seconds = 0;                       ///< wall time of the run alone
};

/// Runs one router over all jobs; `stop` ends it without a result. Errors: a policy or router refuses its parameters or
/// this input.
Result<RouterRun> run_router(const FederateInput& input, const PolicySpec& router, const PolicyRegistry& registry,
                             const std::atomic<bool>& stop);

}  // namespace gpusched
