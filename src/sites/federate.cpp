// SPDX-License-Identifier: Apache-2.0
#include "src/sites/federate.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/strict_json.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/sim/run_fields.hpp"
#include "src/sim/scenario.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {
namespace {

// The rows of conditions that sites take.
FieldTable site_conditions(ConditionOptions& options) {
  FieldTable rows;
  for (Field& row : condition_table(options)) {
    if (row.path == "placement" || row.path.starts_with("preemption.") || row.path == "kill_at_limit")
      rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<PolicySpec>> routers_of(const FederateOptions& options) {
  std::vector<PolicySpec> all;
  for (const std::string& text : options.routers) {
    auto specs = parse_routers(text);
    if (!specs) return Unexpected{in_option("routers", specs.error())};
    all.insert(all.end(), specs->begin(), specs->end());
  }
  if (all.empty()) return bad_option("routers", "expected at least one router");
  return all;
}

Result<PolicySpec> policy_of(const FederateOptions& options, const PolicyRegistry& registry) {
  auto specs = parse_policies(registry, options.policy);
  if (!specs) return Unexpected{in_option("policy", specs.error())};
  if (specs->size() != 1) return bad_option("policy", "expected one policy, not " + std::to_string(specs->size()));
  return specs->front();
}

// Placement "count": nodes become numbers.
Result<void> pool(SitesOfRun& sites) {
  for (SiteId site = 0; site < sites.clusters.size(); ++site) {
    Cluster& cluster = sites.clusters[site];
    const bool by_device = std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [](const Node& node) {
      return node.mig != no_index || node.sharing == SharingMode::time_slicing;
    });
    if (by_device || !sites.powers[site].is_empty() || !sites.failures[site].is_empty()) {
      return bad_option("placement", "count leaves site '" + sites.world.sites[site].name +
                                         "' no nodes, which its power, failures, mig or sharing are about");
    }
    cluster = cluster.pooled();
  }
  return {};
}

std::vector<ServiceOverSites> figures_of_services(const FederateInput& input, const Federation& federation) {
  std::vector<ServiceOverSites> all;
  for (const SiteService& service : input.sites.world.services) {
    detail::FiguresOfService sum(service.name);
    ServiceOverSites one;
    double fastest = 0, bound = 0;
    for (const SitePart& part : service.parts) {
      detail::FiguresOfService own(service.name);
      own.add(federation.engine(part.site), part.service);
      one.at.push_back(std::move(own).figures());
      sum.add(federation.engine(part.site), part.service);
      fastest = std::max(fastest, part.speed);
      bound += one.at.back().lower_bound_gpu_hours * part.speed;
    }
    one.all = std::move(sum).figures();
    one.all.lower_bound_gpu_hours = bound / fastest;  // all might have been served at the fastest site
    all.push_back(std::move(one));
  }
  return all;
}

// Watches one run, site by site.
class SiteWatch {
 public:
  explicit SiteWatch(RouterRun& run) : run_(&run) {}
  void operator()(SiteId site, const OracleView& view, std::span<const Event> events) {
    run_->logs[site].observe(view, events);
    run_->intervals[site].observe(view, events);
    run_->histories[site].observe(view, events);
    run_->estimates[site].observe(view, events);
    if (!run_->timelines.empty()) run_->timelines[site].observe(view, events);
  }

 private:
  RouterRun* run_;
};

std::string first_left(const FederateInput& input, const Federation& federation) {
  for (std::uint32_t i = 0; i < input.trace.jobs.size(); ++i) {
    const SiteId site = federation.site_of(JobId{i});
    if (site != no_site && federation.engine(site).view().phase(JobId{i}) == JobPhase::done) continue;
    return ", first '" + input.trace.jobs.external_id(JobId{i}) + "'" +
           (site == no_site ? "" : " at site '" + input.sites.world.sites[site].name + "'");
  }
  return {};
}

std::string why(FederationEnd end, const FederateInput& input, const Federation& federation) {
  const std::uint32_t rows = input.trace.jobs.size() - federation.finished();
  const std::string left = std::to_string(rows) + (input.sites.services.is_empty() ? " jobs" : " jobs and replicas");
  switch (end) {
    case FederationEnd::waits: return "left " + left + " waiting for ever" + first_left(input, federation);
    case FederationEnd::goes_on: return "leaves " + left + " unfinished for ever" + first_left(input, federation);
    case FederationEnd::stopped: return "was interrupted";
    case FederationEnd::wrong_router: {
      const JobId job = federation.wrong_route();
      return "sends job '" + input.trace.jobs.external_id(job) + "' of site '" +
             input.sites.world.sites[input.sites.world.place(job).home].name +
             "' to no site where it fits and to which it and its data have links";
    }
    case FederationEnd::finished: break;
  }
  return {};
}

// What is wrong with the books of a finished run.
std::optional<std::string> fault_of(const RouterRun& run) {
  for (SiteId site = 0; site < run.federation->site_count(); ++site) {
    if (auto fault = fault_of_account(run.federation->engine(site), run.logs[site])) return fault;
  }
  return fault_of_sites(*run.federation, run.accounts);
}

}  // namespace

FieldTable federate_fields(FederateOptions& o) {
  FieldTable fields{
      {"trace.path", "--trace", "trace file, - for standard input, or synthetic:NAME", &o.trace},
      {"trace.format", "--format", "format of the trace; auto looks at its first lines", &o.format},
      {"trace.columns", "--columns", "columns of a csv: submit=NAME[:UNIT],gpus=NAME,duration=NAME,...", &o.columns}};
  append_fields(fields, reading_fields(o));
  append_fields(
      fields, {{"sites", "--sites", "JSON of sites, links between them, and where jobs and data live", &o.sites},
               {"services", "--services", "JSON of services: where they are served, and where their requests are from",
                &o.services},
               {.path = "routers",
                .flag = "--router",
                .meaning = "routers to compare: NAME[{parameter=value,...}][,...]",
                .target = &o.routers,
                .split = split_routers},
               {"policy", "--policy", "the policy of every site", &o.policy},
               {"seed", "--seed", "seed of everything random", &o.seed}});
  append_fields(fields, site_conditions(o.conditions));
  append_fields(fields,
                {{"output.folder",
                  "--out",
                  "folder for sites.csv, transfers.csv, jobs.csv and services.csv of each router, and manifest.json",
                  &o.out,
                  {},
                  false},
                 {"output.timeline",
                  "--timeline",
                  "also write timeline.csv: how many jobs wait and run at each site, and how many GPUs are in use",
                  &o.timeline,
                  {},
                  false},
                 {"output.json", "--json", "print one JSON object instead of tables", &o.json, {}, false}});
  return fields;
}

Result<std::set<std::string>> read_federate_file(FederateOptions& options, const std::string& path) {
  const auto text = read_text_input(path);
  if (!text) return Unexpected{text.error()};
  const auto json = read_fields(federate_fields(options), *text, path);
  if (!json) return Unexpected{json.error()};
  return given_paths(federate_fields(options), config_of(*json));
}

std::string federate_schema() {
  FederateOptions defaults;
  return fields_schema(federate_fields(defaults), "gpusched federate", "What `gpusched federate --config FILE` takes.");
}

Result<FederateInput> load_federate(const FederateOptions& options, const PolicyRegistry& registry) {
  if (options.trace.empty()) {
    return bad_option("trace.path", options.services.empty() ? "is missing; give a trace"
                                                             : "is missing; services over sites need a job at least");
  }
  if (options.sites.empty()) return bad_option("sites", "is missing; give a file of sites");
  if (options.timeline && options.out.empty())
    return bad_option("output.timeline", "expected --out FOLDER with --timeline");
  FederateInput input;
  auto routers = routers_of(options);
  if (!routers) return Unexpected{routers.error()};
  input.routers = *std::move(routers);
  auto policy = policy_of(options, registry);
  if (!policy) return Unexpected{policy.error()};
  input.policy = *std::move(policy);
  if (auto checked = check_condition_options(options.conditions); !checked) return Unexpected{checked.error()};
  auto trace = read_trace(options.trace, {.format = options.format,
                                          .columns = options.columns,
                                          .where = options.where,
                                          .qos = options.qos,
                                          .seed = options.seed,
                                          .drop_bad_rows = options.drop_bad_rows,
                                          .backlog = options.backlog});
  if (!trace) return Unexpected{trace.error()};
  input.trace = *std::move(trace);
  if (input.trace.jobs.size() == 0)
    return Unexpected{Error{.message = "no jobs are left to run", .file = options.trace}};
  const SiteFiles files{.sites = options.sites, .services = options.services, .trace = options.trace};
  auto sites = read_served_sites(files, input.trace.jobs, options.seed);
  if (!sites) return Unexpected{sites.error()};
  input.sites = *std::move(sites);
  for (const PolicySpec& router : input.routers) {
    auto made = make_router(router, {.world = &input.sites.world, .seed = options.seed});
    if (!made) return Unexpected{in_option("routers", made.error())};
  }
  const bool counts = options.conditions.placement == count_placement;
  if (!counts) input.options.placement = *placement_from_name(options.conditions.placement);
  if (counts) {
    if (auto done = pool(input.sites); !done) return Unexpected{done.error()};
  }
  if (auto done = check_fits_sites(input.sites, files, input.trace.jobs); !done) return Unexpected{done.error()};
  input.options.preemption = options.conditions.preemption;
  input.options.seed = options.seed;
  input.kill_at_limit = options.conditions.kill_at_limit;
  input.timeline = options.timeline;
  return input;
}

Result<RouterRun> run_router(const FederateInput& input, const PolicySpec& router, const PolicyRegistry& registry,
                             const std::atomic<bool>& stop) {
  const JobTable& jobs = input.trace.jobs;
  auto made = make_router(router, {.world = &input.sites.world, .seed = input.options.seed});
  if (!made) return Unexpected{in_option("routers", made.error())};
  std::vector<SiteSetup> sites;
  RouterRun run;
  run.router = router.text;
  for (SiteId site = 0; site < input.sites.clusters.size(); ++site) {
    const Cluster& cluster = input.sites.clusters[site];
    const PolicyContext context{
        .jobs = &jobs, .cluster = &cluster, .seed = input.options.seed, .power = &input.sites.powers[site]};
    auto policy = make_policy(registry, input.policy, context);
    if (!policy) return Unexpected{in_option("policy", policy.error())};
    run.clairvoyant = policy->clairvoyant();
    auto estimator = known_estimator(registry, input.policy, context, run.clairvoyant);
    if (!estimator) return Unexpected{in_option("policy", estimator.error())};
    run.estimates.emplace_back(*std::move(estimator), jobs.size());
    const auto given = [](const auto& model) { return model.is_empty() ? nullptr : &model; };
    EngineOptions options = input.options;
    options.seed = site_seed(options.seed, input.sites.world.sites, site);
    sites.push_back({.cluster = &cluster,
                     .policy = *std::move(policy),
                     .options = options,
                     .inputs = {.failures = given(input.sites.failures[site]),
                                .power = given(input.sites.powers[site]),
                                .services = given(input.sites.services),
                                .kill_at_limit = input.kill_at_limit}});
  }
  run.logs.resize(sites.size(), RunLog(MeasureWindow{}));
  run.intervals.resize(sites.size());
  run.histories.resize(sites.size());
  if (input.timeline) run.timelines.resize(sites.size());
  run.federation = std::make_unique<Federation>(jobs, input.sites.world, sites, *std::move(made), input.sites.options);
  const auto begin = std::chrono::steady_clock::now();
  try {
    const FederationEnd end = run.federation->run(SiteWatch(run), [&] { return stop.load(std::memory_order_relaxed); });
    run.why_unfinished = why(end, input, *run.federation);
  } catch (const PolicyFailure& failure) {
    run.why_unfinished = failure.why();
  }
  run.sim_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!run.why_unfinished.empty()) return run;
  run.accounts = site_accounts(*run.federation);
  run.services = figures_of_services(input, *run.federation);
  if (const auto fault = fault_of(run)) run.why_unfinished = "has wrong books: " + *fault;
  return run;
}

}  // namespace gpusched
