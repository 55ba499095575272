// SPDX-License-Identifier: Apache-2.0
#include "src/search/candidate_runs.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/base/parallel.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/policy_text.hpp"
#include "src/sim/site_stretch.hpp"
#include "src/sweep/sweep_file.hpp"

namespace gpusched {
namespace {

// First measured jobs of `count` windows within the jobs [begin, end).
Result<std::vector<std::uint32_t>> spaced_windows(const Search& search, std::uint64_t count, std::uint64_t begin,
                                                  std::uint64_t end, const std::string& key) {
  const std::uint64_t length = search.warmup_jobs + search.window_jobs;
  const std::uint64_t room = end > begin ? end - begin : 0;
  if (room / length < count) {
    return Unexpected{Error{.message = counted(room / length, "window") + " of " + std::to_string(length) +
                                       " jobs (warm-up included) fit into jobs " + std::to_string(begin) + " to " +
                                       std::to_string(end) + ", not " + std::to_string(count),
                            .field = "/windows/" + key}};
  }
  std::vector<std::uint32_t> starts;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = count > 1 ? i * (room - length) / (count - 1) : 0;
    starts.push_back(static_cast<std::uint32_t>(begin + gap + search.warmup_jobs));
  }
  return starts;
}

Unexpected in_search_file(const Search& search, Error error) {
  error.file = search.file;
  return Unexpected{error};
}

// A sweep whose runs are the policies in the windows: window by window, so that a worker prepares each window once.
Result<Sweep> sweep_of(const Search& search, std::span<const std::string> policies,
                       std::span<const std::uint32_t> windows) {
  Json list = Json::array();
  for (const std::uint32_t start : windows) {
    for (const std::string& policy : policies) {
      CandidateText candidate = parts_of_candidate(policy);
      const RoutedPolicy routed = routed_policy(candidate.policy);
      Json run = {
          {"policy", routed.policy},
          {"window", {{"first_job", start - search.warmup_jobs}, {"jobs", search.warmup_jobs + search.window_jobs}}},
          {"measure", {{"warmup_jobs", search.warmup_jobs}, {"measure_jobs", search.window_jobs}}}};
      if (!routed.router.empty()) run["router"] = routed.router;
      for (auto& [key, value] : candidate.conditions.items()) run[key] = std::move(value);
      list.push_back(std::move(run));
    }
  }
  return read_sweep_json(json_text({{"base", search.base}, {"list", std::move(list)}}, -1), search.file);
}

// An objective of which the runs have no figure.
Unexpected unknown_objective(const Search& search, std::size_t number) {
  const std::string name = search.objectives()[number].name, needed = power_that_tells(name);
  return in_search_file(search, {.message = name + " is not known here" + (needed.empty() ? "" : "; give " + needed),
                                 .field = "/objectives/" + std::to_string(number)});
}

// False where no file can tell the figure.
bool may_know(const std::string& figure, const ConditionOptions& conditions) {
  if (is_service_figure(figure)) return !conditions.services.empty();
  if (is_study_figure(figure)) return !conditions.trials.empty();
  if (power_that_tells(figure).empty() || !conditions.power.empty()) return true;
  return figure != "carbon_kg" && figure != "cost_usd" && !conditions.speeds.profiles.empty();
}

}  // namespace

Result<SearchWindows> search_windows(const Search& search, std::uint32_t trace_jobs) {
  const auto split = static_cast<std::uint64_t>(search.train_share * trace_jobs);
  auto train = spaced_windows(search, search.train_windows, 0, split, "train");
  if (!train) return in_search_file(search, train.error());
  auto held_out = spaced_windows(search, search.held_out_windows, split, trace_jobs, "held_out");
  if (!held_out) return in_search_file(search, held_out.error());
  return SearchWindows{*std::move(train), *std::move(held_out)};
}

Result<CandidateRuns> CandidateRuns::load(const Search& search, const PolicyRegistry& registry) {
  CandidateRuns runs(search, registry);
  const std::vector<std::string> any{"fifo"};
  const std::vector<std::uint32_t> somewhere{static_cast<std::uint32_t>(search.warmup_jobs)};
  const auto sweep = sweep_of(search, any, somewhere);
  if (!sweep) return Unexpected{sweep.error()};
  const auto point = sweep->point(0);
  if (!point) return in_search_file(search, point.error());
  runs.scenario_ = point->run;
  if (runs.scenario_.trace == "-") {
    return in_search_file(search, {.message = "expected a file: a search that goes on later must read the trace again",
                                   .field = "/base/trace"});
  }
  if (auto done = runs.read_input(*point); !done) return Unexpected{done.error()};
  if (auto done = runs.check_figures(); !done) return Unexpected{done.error()};
  if (auto done = runs.check_conditions(*point); !done) {
    return in_search_file(search, {.message = done.error().to_string(), .field = "/base"});
  }
  auto windows = search_windows(search, runs.trace_jobs());
  if (!windows) return Unexpected{windows.error()};
  runs.windows_ = *std::move(windows);
  std::set<std::string> meanings;
  for (const std::string& compared : search.compare) {
    const RoutedPolicy routed = routed_policy(compared);
    const auto specs = parse_contestants(registry, std::vector<std::string>{routed.policy});
    if (!specs) return in_search_file(search, {.message = specs.error().to_string(), .field = "/compare"});
    for (const PolicySpec& spec : *specs) {
      std::string text = routed_text(spec.text, routed.router);
      if (!meanings.insert(routed_text(canonical_text(spec, registry), routed.router)).second) {
        return in_search_file(search, {.message = "'" + text + "' is there twice", .field = "/compare"});
      }
      runs.heuristics_.push_back(std::move(text));
      if (auto made = runs.check(runs.heuristics_.back()); !made) {
        return in_search_file(search, {.message = made.error().to_string(), .field = "/compare"});
      }
    }
  }
  return runs;
}

// The trace, and the cluster or the sites.
Result<void> CandidateRuns::read_input(const SweepPoint& point) {
  if (point.sites.empty()) {
    auto input = load_input(input_request(scenario_));
    if (!input) return Unexpected{input.error()};
    input_ = std::make_unique<RunInput>(*std::move(input));
    return {};
  }
  auto trace = read_requested_trace(input_request(scenario_));
  if (!trace) return Unexpected{trace.error()};
  JobTable served = trace->jobs;  // of which the sites are; runs read services anew
  auto sites =
      read_fitting_sites({.sites = point.sites, .services = scenario_.conditions.services, .trace = scenario_.trace},
                         served, scenario_.seed);
  if (!sites) return Unexpected{sites.error()};
  input_ = std::make_unique<RunInput>(RunInput{.trace = *std::move(trace), .cluster = {.name = point.sites}});
  sites_ = std::make_unique<SitesOfRun>(*std::move(sites));
  router_ = point.router;
  return {};
}

// Every objective is known to the runs.
Result<void> CandidateRuns::check_figures() const {
  const std::vector<FigureObjective> objectives = search_->objectives();
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    const std::string& name = objectives[i].name;
    if (sites_ == nullptr) {
      if (!may_know(name, scenario_.conditions)) return unknown_objective(*search_, i);
      continue;
    }
    const std::string lack =
        name == latency_objective ? "" : lacks_site_figure(name, *sites_, search_->warmup_jobs == 0);
    if (!lack.empty()) return in_search_file(*search_, {.message = lack, .field = "/objectives/" + std::to_string(i)});
  }
  const auto is_trained = [](const SearchedPolicy& policy) { return policy.training.has_value(); };
  if (sites_ != nullptr && std::any_of(search_->policies.begin(), search_->policies.end(), is_trained))
    return in_search_file(*search_, {.message = "expected no training beside sites", .field = "/policies"});
  return {};
}

Result<void> CandidateRuns::check_conditions(const SweepPoint& point) const {
  SweepPoint copy = point;
  copy.policy.clear();
  copy.run.policies.clear();
  copy.parameters.clear();
  if (!point.sites.empty() || !tried_.insert(json_text(sweep_point_json(copy), -1)).second) return {};
  const Scenario& run = point.run;
  if (auto checked = check_condition_options(run.conditions); !checked) return checked;
  std::optional<RunInput> other;
  if (run.trace != scenario_.trace || run.cluster != scenario_.cluster || run.seed != scenario_.seed) {
    auto input = load_input(input_request(run));
    if (!input) return Unexpected{input.error()};
    other.emplace(*std::move(input));
  }
  const RunInput& input = other ? *other : *input_;
  JobTable jobs = input.trace.jobs;
  const auto loaded = load_conditions(run.conditions, jobs, input.cluster, run.seed);
  return loaded ? Result<void>{} : Result<void>{Unexpected{loaded.error()}};
}

Result<void> CandidateRuns::check(const std::string& policy) const {
  if (policy.find(" with ") != std::string::npos) {
    const std::vector<std::uint32_t> somewhere{static_cast<std::uint32_t>(search_->warmup_jobs)};
    const auto sweep = sweep_of(*search_, {&policy, 1}, somewhere);
    if (!sweep) return Unexpected{Error{.message = sweep.error().message, .field = sweep.error().field}};
    const auto point = sweep->point(0);
    if (!point) return Unexpected{point.error()};
    if (auto fit = check_conditions(*point); !fit) return fit;
  }
  const RoutedPolicy routed = routed_policy(parts_of_candidate(policy).policy);
  const auto specs = parse_policies(*registry_, routed.policy);
  if (!specs) return Unexpected{specs.error()};
  if (sites_ != nullptr) {
    return check_at_sites({.jobs = &input_->trace.jobs,
                           .sites = *sites_,
                           .policy = specs->front(),
                           .router = routed.router.empty() ? router_ : routed.router},
                          *registry_);
  }
  if (!routed.router.empty()) return unexpected("'" + policy + "' has a router, and /base no sites");
  const auto made = make_policy(*registry_, specs->front(),
                                {.jobs = &input_->trace.jobs, .cluster = &input_->cluster, .seed = scenario_.seed});
  if (!made) return Unexpected{made.error()};
  return {};
}

bool CandidateRuns::clairvoyant(const std::string& policy) const {
  const auto specs = parse_policies(*registry_, routed_policy(parts_of_candidate(policy).policy).policy);
  const Cluster& cluster = sites_ == nullptr ? input_->cluster : sites_->clusters.front();
  const auto made = make_policy(*registry_, specs->front(),
                                {.jobs = &input_->trace.jobs, .cluster = &cluster, .seed = scenario_.seed});
  return made->clairvoyant();
}

Result<void> CandidateRuns::open_store() {
  const std::string path = search_->out + "/" + search_database_name;
  std::error_code ignored;
  is_new_store_ = !std::filesystem::exists(path, ignored);
  auto store = SweepStore::open(path);
  if (!store) return Unexpected{store.error()};
  store_.emplace(*std::move(store));
  return {};
}

void CandidateRuns::discard_new_store() {
  if (!is_new_store_) return;
  store_.reset();
  std::error_code ignored;
  std::filesystem::remove(search_->out + "/" + search_database_name, ignored);
}

Result<SweepPlan> CandidateRuns::plan(std::span<const std::string> policies, std::span<const std::uint32_t> windows) {
  auto sweep = sweep_of(*search_, policies, windows);
  if (!sweep) return Unexpected{sweep.error()};
  auto plan = plan_sweep(*std::move(sweep), *registry_, false);  // check() has tried them
  if (!plan) return plan;
  for (const SweepInputFile& file : plan->files) {
    const auto same = [&](const SweepInputFile& known) { return known.path == file.path; };
    if (std::none_of(files_.begin(), files_.end(), same)) files_.push_back(file);
  }
  return plan;
}

Result<void> CandidateRuns::run_missing(const SweepPlan& plan, const std::atomic<bool>* stop) {
  const auto states = store_->states();
  if (!states) return Unexpected{states.error()};
  std::vector<std::uint64_t> todo;
  for (std::uint64_t i = 0; i < plan.runs.size(); ++i) {
    if (states->count(plan.runs[i].key) == 0) todo.push_back(i);
  }
  stored_ += plan.runs.size() - todo.size();
  ran_ += todo.size();
  if (todo.empty()) return {};
  SweepProgress progress;
  progress.stop = stop;
  const WorkerOptions options{.workers = search_->threads == 0 ? thread_count(0) : search_->threads,
                              .time_limit_s = to_seconds(search_->time_limit),
                              .run_folders = {}};
  return run_points(plan, *registry_, todo, options, progress, [&](std::uint64_t number, const SweepResult& result) {
    const auto point = plan.sweep.point(number);
    if (!point) return Result<void>{Unexpected{point.error()}};
    return store_->put({plan.runs[number].key, json_text(sweep_point_json(*point), -1), plan.program}, result);
  });
}

Result<PolicyFigures> CandidateRuns::figures_of(const SweepPlan& plan, std::size_t policy, std::size_t policies,
                                                std::size_t windows) const {
  const std::vector<FigureObjective> objectives = search_->objectives();
  PolicyFigures figures{.means = std::vector<double>(objectives.size(), 0)};
  for (std::size_t w = 0; w < windows; ++w) {
    const auto found = store_->find(plan.runs[w * policies + policy].key);
    if (!found) return Unexpected{found.error()};
    if (!*found) return unexpected("interrupted");
    if ((*found)->status != RunStatus::done) return PolicyFigures{.means = {}, .failure = (*found)->message};
    for (std::size_t i = 0; i < objectives.size(); ++i) {
      const auto value = objectives[i].value(**found);
      if (!value && (*found)->metrics.avg_jct_s) return unknown_objective(*search_, i);
      if (!value) {
        return PolicyFigures{.means = {}, .failure = why_no_job() + " of a window"};
      }
      figures.means[i] += *value / static_cast<double>(windows);
    }
  }
  return figures;
}

std::vector<std::optional<PolicyFigures>> CandidateRuns::stored_figures(std::span<const std::string> policies,
                                                                        std::span<const std::uint32_t> windows) {
  std::vector<std::optional<PolicyFigures>> all(policies.size());
  const auto planned = policies.empty() ? Result<SweepPlan>{Unexpected{Error{}}} : plan(policies, windows);
  for (std::size_t p = 0; planned && p < policies.size(); ++p) {
    auto figures = figures_of(*planned, p, policies.size(), windows.size());
    if (figures) all[p] = *std::move(figures);
  }
  return all;
}

Result<std::vector<PolicyFigures>> CandidateRuns::score(std::span<const std::string> policies,
                                                        std::span<const std::uint32_t> windows,
                                                        const std::atomic<bool>* stop) {
  std::vector<PolicyFigures> all;
  if (policies.empty()) return all;
  const auto planned = plan(policies, windows);
  if (!planned) return Unexpected{planned.error()};
  if (auto ran = run_missing(*planned, stop); !ran) return Unexpected{ran.error()};
  for (std::size_t p = 0; p < policies.size(); ++p) {
    auto figures = figures_of(*planned, p, policies.size(), windows.size());
    if (!figures) return Unexpected{figures.error()};
    all.push_back(*std::move(figures));
  }
  return all;
}

}  // namespace gpusched
