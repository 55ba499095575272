// SPDX-License-Identifier: Apache-2.0
#include "src/sim/site_stretch.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "gpusched/sites/site_accounts.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/sim/metric_table.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {
namespace {

// How many jobs wait at a job's site when it joins.
class SiteQueues {
 public:
  SiteQueues(std::size_t sites, std::uint32_t jobs) : waiting_(sites), found_(jobs, no_index) {}

  void observe(SiteId site, std::span<const Event> events) {
    for (const Event& event : events) {
      std::uint32_t& waiting = waiting_[site];
      if (event.kind == EventKind::submit && found_[index(event.job)] == no_index) found_[index(event.job)] = waiting;
      if (event.kind == EventKind::preempt || enters_queue(event.kind)) ++waiting;
      if (event.kind == EventKind::start || event.kind == EventKind::withdraw) --waiting;
      most_ = std::max<std::int64_t>(most_, waiting);
    }
  }
  [[nodiscard]] std::uint32_t found(JobId job) const { return found_[index(job)]; }
  [[nodiscard]] std::int64_t most() const { return most_; }

 private:
  std::vector<std::uint32_t> waiting_, found_;
  std::int64_t most_ = 0;
};

// What became of a job.
struct RoutedOutcome {
  Time jct{}, wait{};
  double slowdown = 1;

  RoutedOutcome(const Federation& federation, JobId job) {
    const Engine& engine = federation.engine(federation.site_of(job));
    jct = engine.end(job) - federation.eligible(job);
    wait = jct - engine.ran(job);
    const Time bound = std::max(detail::length_of(engine, job), slowdown_bound);
    slowdown = std::max(1.0, static_cast<double>(jct.us) / static_cast<double>(bound.us));
  }
};

// Its policy gave it up: no average counts it.
bool is_cancelled(const Federation& federation, JobId job) {
  return federation.engine(federation.site_of(job)).is_cancelled(job);
}

// On sites that are not unlimited.
GpuTime limited_gpu_time(const Federation& federation, JobId job) {
  GpuTime sum;
  for (SiteId site = 0; site < federation.site_count(); ++site) {
    const bool was_here = site == federation.site_of(job) || federation.moves(job) > 0;
    if (was_here && !federation.view().world().sites[site].is_unlimited) sum += federation.engine(site).gpu_time(job);
  }
  return sum;
}

void add_gpu_time_of_sites(const Federation& federation, const GpuTime& time, Metrics& metrics) {
  double gpus = 0;
  bool counts_costs = false;
  for (SiteId site = 0; site < federation.site_count(); ++site) {
    const Engine& engine = federation.engine(site);
    counts_costs = counts_costs || engine.counts_costs();
    if (!federation.view().world().sites[site].is_unlimited)
      gpus += static_cast<double>(engine.view().cluster().total_gpus());
  }
  const double capacity_s = gpus * metrics.makespan_s;
  if (capacity_s <= 0) return;
  metrics.gpu_allocation = RunLog::gpu_seconds(time.held()) / capacity_s;
  metrics.gpu_utilization = RunLog::gpu_seconds(time.useful) / capacity_s;
  if (!counts_costs) return;
  metrics.gpu_overhead = RunLog::gpu_seconds(time.overhead) / capacity_s;
  metrics.gpu_lost = RunLog::gpu_seconds(time.lost) / capacity_s;
  metrics.goodput = metrics.gpu_allocation > 0 ? metrics.gpu_utilization / metrics.gpu_allocation : 1;
}

// A site's carbon stands in the file of sites or in that of its power.
bool knows(const SitesOfRun& sites, bool carbon) {
  const auto knows_power = [carbon](const PowerModel& power) {
    return carbon ? power.knows_carbon() : !power.is_empty();
  };
  const auto knows_carbon = [](const Site& site) { return !site.carbon_g_per_kwh.is_empty(); };
  return std::any_of(sites.powers.begin(), sites.powers.end(), knows_power) ||
         (carbon && std::any_of(sites.world.sites.begin(), sites.world.sites.end(), knows_carbon));
}

void add_accounts(const Federation& federation, const SitesOfRun& sites, Metrics& metrics) {
  SiteAccount sum;
  for (const SiteAccount& account : site_accounts(federation)) sum += account;
  metrics.cost_usd = sum.egress_usd() + sum.rent_usd() + sum.bill.usd();
  if (knows(sites, false)) metrics.energy_kwh = sum.bill.kwh() + sum.network_kwh();
  if (knows(sites, true)) metrics.carbon_kg = sum.bill.carbon_kg() + sum.network_carbon_kg();
}

void add_deadlines(const Federation& federation, const JobTable& jobs, MeasureWindow measured, Metrics& metrics) {
  double with_deadline = 0, missed = 0, tardiness_us = 0;
  for (std::uint32_t i = measured.first; i < measured.end(jobs.size()); ++i) {
    const JobId job{i};
    if (jobs.deadline(job) == Time::max() || is_cancelled(federation, job)) continue;
    ++with_deadline;
    const Time late = federation.engine(federation.site_of(job)).end(job) - jobs.deadline(job);
    missed += late > Time{} ? 1 : 0;
    tardiness_us += static_cast<double>(std::max(late, Time{}).us);
  }
  if (with_deadline == 0) return;
  metrics.deadline_miss_rate = missed / with_deadline;
  metrics.avg_tardiness_s = detail::seconds(tardiness_us / with_deadline);
}

Metrics metrics_of(const Federation& federation, const SiteStretch& stretch) {
  const JobTable& jobs = *stretch.jobs;
  const std::uint32_t first = stretch.measured.first, end = stretch.measured.end(jobs.size());
  Metrics metrics{.jobs = end - first};
  std::vector<std::int64_t> jcts, waits;
  std::vector<double> slowdowns;
  detail::WideInt jct_sum = 0, wait_sum = 0;
  double slowdown_sum = 0, kills = 0, cancelled = 0;
  bool counts_costs = false;
  GpuTime time;
  Time last_end = jobs.submit(JobId{first});
  for (std::uint32_t i = first; i < end; ++i) {
    const JobId job{i};
    const Engine& engine = federation.engine(federation.site_of(job));
    last_end = std::max(last_end, engine.end(job));
    metrics.preemptions += engine.preemptions(job);
    counts_costs = counts_costs || engine.counts_costs();
    kills += engine.kills(job);
    time += limited_gpu_time(federation, job);
    if (engine.is_cancelled(job)) {
      ++cancelled;
      continue;
    }
    const RoutedOutcome outcome(federation, job);
    jcts.push_back(outcome.jct.us);
    waits.push_back(outcome.wait.us);
    slowdowns.push_back(outcome.slowdown);
    jct_sum += outcome.jct.us;
    wait_sum += outcome.wait.us;
    slowdown_sum += outcome.slowdown;
  }
  detail::add_averages(metrics, jcts, waits, slowdowns, jct_sum, wait_sum, slowdown_sum);
  metrics.last_end_s = to_seconds(last_end);
  metrics.makespan_s = to_seconds(last_end - jobs.submit(JobId{first}));
  add_gpu_time_of_sites(federation, time, metrics);
  if (counts_costs) metrics.kills = kills;
  if (cancelled > 0) metrics.policy_cancelled_jobs = cancelled;
  if (first == jobs.in_front() && end == jobs.size()) add_accounts(federation, stretch.sites, metrics);
  add_deadlines(federation, jobs, stretch.measured, metrics);
  std::vector<const Engine*> engines;
  for (SiteId site = 0; site < federation.site_count(); ++site) engines.push_back(&federation.engine(site));
  const AllRequests requests = figures_of_all_requests(engines);
  metrics.slo_attainment = requests.slo_attainment;
  metrics.p99_latency_s = requests.p99_latency_s;
  for (SiteId site = 0; site < federation.site_count(); ++site) metrics.events += federation.engine(site).events_seen();
  return metrics;
}

// As find_saturation(), without the offered load.
Saturation saturation_of(const Federation& federation, const SiteStretch& stretch, const SiteQueues& queues) {
  const std::uint32_t first = stretch.measured.first, end = stretch.measured.end(stretch.jobs->size());
  const std::uint32_t count = end - first;
  const Time last_submit = stretch.jobs->submit(JobId{end - 1});
  Saturation found{.max_waiting_jobs = queues.most()};
  detail::WideInt wait_of_quarter[4] = {};
  for (std::uint32_t i = first; i < end; ++i) {
    if (is_cancelled(federation, JobId{i})) continue;
    wait_of_quarter[std::uint64_t{i - first} * 4 / count] += RoutedOutcome(federation, JobId{i}).wait.us;
    if (federation.engine(federation.site_of(JobId{i})).first_start(JobId{i}) > last_submit) ++found.backlog_jobs;
  }
  found.saturated =
      found.backlog_jobs >= 10 && found.backlog_jobs >= count / 20 && wait_of_quarter[3] > 2 * wait_of_quarter[1];
  return found;
}

JobLog job_log_of(const Federation& federation, const SiteStretch& stretch, const SiteQueues& queues) {
  JobLog log;
  const std::uint32_t end = stretch.measured.end(stretch.jobs->size());
  const Time last_submit = stretch.jobs->submit(JobId{end - 1});
  for (std::uint32_t i = stretch.measured.first; i < end; ++i) {
    const JobId job{i};
    if (is_cancelled(federation, job)) continue;
    const RoutedOutcome outcome(federation, job);
    log.job.push_back(i - stretch.jobs->in_front());
    log.jct_s.push_back(to_seconds(outcome.jct));
    log.wait_s.push_back(to_seconds(outcome.wait));
    log.slowdown.push_back(outcome.slowdown);
    log.found.push_back(queues.found(job));
    log.censored.push_back(federation.engine(federation.site_of(job)).end(job) > last_submit);
  }
  return log;
}

// Why the run ended, where not all jobs did.
std::string why_ended(FederationEnd end, const Federation& federation, const JobTable& jobs) {
  const std::string left =
      std::to_string(jobs.size() - federation.finished()) + (jobs.replicas() == 0 ? " jobs" : " jobs and replicas");
  switch (end) {
    case FederationEnd::waits: return "left " + left + " waiting for ever";
    case FederationEnd::goes_on: return "leaves " + left + " unfinished for ever";
    case FederationEnd::stopped: return "was interrupted";
    case FederationEnd::wrong_router:
      return "sends job '" + jobs.external_id(federation.wrong_route()) +
             "' to no site where it fits and to which it and its data have links";
    case FederationEnd::finished: break;
  }
  return {};
}

Result<std::vector<SiteSetup>> setups_of(const SiteStretch& stretch, const PolicyRegistry& registry,
                                         const StretchOptions& how) {
  std::vector<SiteSetup> sites;
  for (SiteId site = 0; site < stretch.sites.clusters.size(); ++site) {
    const Cluster& cluster = stretch.sites.clusters[site];
    auto policy = make_policy(registry, stretch.policy,
                              {.jobs = stretch.jobs,
                               .cluster = &cluster,
                               .seed = how.seed,
                               .past = how.past,
                               .power = &stretch.sites.powers[site]});
    if (!policy) return Unexpected{policy.error()};
    const auto given = [](const auto& model) { return model.is_empty() ? nullptr : &model; };
    EngineOptions options = stretch.engine;
    const std::uint64_t seed = given(stretch.sites.failures[site]) != nullptr ? how.seed : options.seed;
    options.seed = site_seed(seed, stretch.sites.world.sites, site);
    sites.push_back({.cluster = &cluster,
                     .policy = *std::move(policy),
                     .options = options,
                     .inputs = {.failures = given(stretch.sites.failures[site]),
                                .power = given(stretch.sites.powers[site]),
                                .services = given(stretch.sites.services),
                                .kill_at_limit = stretch.kill_at_limit}});
  }
  return sites;
}

Result<AnyRouter> router_of(const SiteStretch& stretch, std::uint64_t seed) {
  const auto routers = parse_routers(stretch.router);
  if (!routers) return Unexpected{in_option("router", routers.error())};
  if (routers->size() != 1) return bad_option("router", "expected one router, not '" + stretch.router + "'");
  auto router = make_router(routers->front(), {.world = &stretch.sites.world, .seed = seed});
  if (!router) return Unexpected{in_option("router", router.error())};
  return router;
}

}  // namespace

Result<void> check_at_sites(const SiteStretch& stretch, const PolicyRegistry& registry) {
  if (const auto router = router_of(stretch, 0); !router) return Unexpected{router.error()};
  if (const auto sites = setups_of(stretch, registry, {}); !sites) return Unexpected{sites.error()};
  return {};
}

SitesOfRun sites_of_slice(const SitesOfRun& sites, std::uint32_t first, const JobTable& slice) {
  SitesOfRun part = sites;
  if (part.world.jobs.empty()) return part;
  const auto begin = sites.world.jobs.begin();
  const std::ptrdiff_t replicas = slice.in_front(), from = first;
  part.world.jobs.assign(begin, begin + replicas);
  part.world.jobs.insert(part.world.jobs.end(), begin + from, begin + from + slice.size() - replicas);
  return part;
}

Result<StretchRun> run_at_sites(const SiteStretch& stretch, const PolicyRegistry& registry, const StretchOptions& how) {
  auto router = router_of(stretch, how.seed);
  if (!router) return Unexpected{router.error()};
  auto sites = setups_of(stretch, registry, how);
  if (!sites) return Unexpected{sites.error()};
  StretchRun run{.clairvoyant = sites->front().policy.clairvoyant(), .metrics = {}};
  Federation federation(*stretch.jobs, stretch.sites.world, *sites, *std::move(router), stretch.sites.options);
  SiteQueues queues(sites->size(), stretch.jobs->size());
  try {
    const FederationEnd end = federation.run(
        [&](SiteId site, const OracleView&, std::span<const Event> events) { queues.observe(site, events); },
        [&] { return how.stop != nullptr && how.stop->load(std::memory_order_relaxed); });
    run.failure = why_ended(end, federation, *stretch.jobs);
  } catch (const PolicyFailure& failure) {
    run.failure = failure.why();
  }
  if (!run.failure.empty()) return run;
  if (const auto fault = fault_of_sites(federation, site_accounts(federation))) {
    run.failure = "has wrong books: " + *fault;
    return run;
  }
  run.metrics = metrics_of(federation, stretch);
  run.saturation = saturation_of(federation, stretch, queues);
  run.left_out = hash_of_left_out(stretch.measured.first, stretch.measured.end(stretch.jobs->size()),
                                  [&](JobId job) { return is_cancelled(federation, job); });
  if (how.keep_jobs) run.jobs = job_log_of(federation, stretch, queues);
  return run;
}

Result<void> check_conditions_of_sites(const ConditionOptions& options) {
  ConditionOptions given = options, defaults;
  const FieldTable rows = condition_table(given), plain = condition_table(defaults);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string& path = rows[i].path;
    if (path.starts_with("preemption.") || path == "kill_at_limit" || path == "services") continue;
    const bool is_count = path == "placement" && options.placement == count_placement;
    if (is_count || (path != "placement" && field_json(rows[i]) != field_json(plain[i])))
      return bad_option(path, "is not taken beside sites, whose file says what each of them has");
  }
  return {};
}

std::string lacks_site_figure(const std::string& name, const SitesOfRun& sites, bool measures_all) {
  constexpr std::array<std::string_view, 13> always{"avg_jct_s",
                                                    "median_jct_s",
                                                    "p95_jct_s",
                                                    "p99_jct_s",
                                                    "avg_wait_s",
                                                    "p99_wait_s",
                                                    "avg_bounded_slowdown",
                                                    "worst_decile_slowdown",
                                                    "makespan_s",
                                                    "gpu_utilization",
                                                    "gpu_allocation",
                                                    "deadline_miss_rate",
                                                    "avg_tardiness_s"};
  if (std::find(always.begin(), always.end(), name) != always.end()) return {};
  if (is_service_figure(name)) return lacks_service_figure(name, sites.services);
  const bool is_account = name == "cost_usd" || name == "energy_kwh" || name == "carbon_kg";
  if (!is_account) return name + " is not known over several sites";
  if (!measures_all) return name + " is known where all jobs are measured";
  if (name == "energy_kwh" && !knows(sites, false)) return name + " is not known here; give a site power";
  if (name == "carbon_kg" && !knows(sites, true)) return name + " is not known here; give a site carbon";
  return {};
}

}  // namespace gpusched
