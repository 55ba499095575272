// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/gavel.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "src/policies/throughput/linear_program.hpp"

namespace gpusched {
namespace {

double gpus_of(const Shape& shape) { return static_cast<double>(shape.gpu_milli()) / static_cast<double>(whole_gpu); }

// A job without work is over at once, but no programme may divide by nothing.
double work_left(const OracleView& view, JobId job) { return std::max(to_seconds(view.remaining(job)), 1e-6); }

}  // namespace

void Gavel::decide(const OracleView& view, Decision& decision) {
  if (jobs_.empty()) {
    jobs_.resize(view.job_count());
    given_s_.assign(type_count(), 0.0);
    empty_.emplace(view);
    began_ = view.now();
  }
  note_events(view);
  const bool round_is_over = view.now() >= round_end_ || view.running().empty();
  if (!round_is_over || active_.empty()) return;
  for (const JobId job : active_) account(job, view.now());
  // As in the artifact, an allocation of the first instant does not hold (_last_reset_time == 0 stands for none there).
  const bool may_allocate = last_allocation_ == Time::max() || last_allocation_ == began_ ||
                            view.now() - last_allocation_ >= options_.between_allocations;
  if (outdated_ && may_allocate) allocate(view);
  // With one GPU type, jobs that all run have nothing to take turns for.
  if (type_count() > 1 || view.pending_count() > 0) begin_round(view, decision);
  round_end_ = later_by(view.now(), options_.round);
  if (round_end_ != Time::max()) decision.wake(round_end_);
}

void Gavel::note_events(const View& view) {
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::submit) enter(view, event.job);
    if (!leaves_cluster(event.kind) && event.kind != EventKind::withdraw) continue;
    account(event.job, view.now());
    jobs_[index(event.job)].running_on = no_index;
    if (returns_to_queue(event.kind)) continue;
    jobs_[index(event.job)] = {};
    active_.erase(std::find(active_.begin(), active_.end(), event.job));
    outdated_ = true;
  }
}

void Gavel::enter(const View& view, JobId id) {
  Job& job = jobs_[index(id)];
  const auto before = [&](JobId a, JobId b) { return view.queue_place(a) < view.queue_place(b); };
  active_.insert(std::upper_bound(active_.begin(), active_.end(), id, before), id);
  if (view.shape(id).gpu_milli() == 0) return;
  std::vector<OnType> types(type_count());
  bool any = false;
  for (std::uint32_t type = 0; type < type_count(); ++type) {
    types[type].received_s = to_seconds(options_.round) / 2;
    if (!empty_->can_hold(view, id, type)) continue;
    any = true;
    const double speed = static_cast<double>(view.speed(id, type)) / static_cast<double>(reference_rate);
    types[type].throughput = options_.aware ? speed : 1;
  }
  if (any) job.types = std::move(types);
  outdated_ = outdated_ || any;
}

// Adds the time that a job ran in this round to the accounts.
void Gavel::account(JobId id, Time until) {
  Job& job = jobs_[index(id)];
  if (job.running_on == no_index || job.types.empty()) return;
  const double seconds = to_seconds(until - job.since);
  job.types[job.running_on].received_s += seconds;
  given_s_[job.running_on] += seconds;
  job.since = until;
}

void Gavel::allocate(const OracleView& view) {
  restart_accounts(view);
  std::vector<JobId> jobs;
  for (const JobId job : active_) {
    if (!jobs_[index(job)].types.empty()) jobs.push_back(job);
  }
  outdated_ = false;
  if (jobs.empty()) return;
  if (options_.objective == GavelObjective::finish_time_fairness) note_isolated(view, jobs);
  const Allocation allocation = solve(view, jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (std::uint32_t type = 0; type < type_count(); ++type) {
      jobs_[index(jobs[i])].types[type].allocation = allocation[i][type];
    }
  }
}

// Deficits take over what the last allocation promised and did not keep; all accounts begin anew.
void Gavel::restart_accounts(const View& view) {
  const double passed_s = last_allocation_ == Time::max() ? 0 : to_seconds(view.now() - last_allocation_);
  const double initial_s = to_seconds(options_.round) / 2;
  given_s_.assign(type_count(), 0.0);
  for (const JobId job : active_) {
    std::vector<OnType>& types = jobs_[index(job)].types;
    for (std::size_t type = 0; type < types.size(); ++type) {
      types[type].deficit_s += types[type].allocation * passed_s - (types[type].received_s - initial_s);
      types[type].received_s = initial_s;
      given_s_[type] += initial_s;
    }
  }
  last_allocation_ = view.now();
}

AllocationJob Gavel::as_programmed(const OracleView& view, JobId id) const {
  AllocationJob job{.throughput = {}, .gpus = gpus_of(view.shape(id))};
  for (const OnType& type : jobs_[index(id)].types) job.throughput.push_back(type.throughput);
  if (reads_work_left()) job.remaining = work_left(view, id);
  if (options_.objective == GavelObjective::finish_time_fairness) {
    const Job& account = jobs_[index(id)];
    job.elapsed = to_seconds(view.now() - view.submit(id));
    job.isolated = account.isolated_s + account.left_s / account.isolated_throughput;
  }
  return job;
}

// What the jobs did since the last allocation, in the time that it would have taken on the share that they had then.
void Gavel::note_isolated(const OracleView& view, const std::vector<JobId>& jobs) {
  for (const JobId id : jobs) {
    Job& job = jobs_[index(id)];
    const double left_s = work_left(view, id);
    if (job.isolated_throughput > 0) job.isolated_s += (job.left_s - left_s) / job.isolated_throughput;
    job.left_s = left_s;
    AllocationJob shared{.throughput = {}, .gpus = gpus_of(view.shape(id))};
    for (const OnType& type : job.types) shared.throughput.push_back(type.throughput);
    job.isolated_throughput = isolated_throughput(options_.gpus, shared, static_cast<double>(jobs.size()));
  }
}

Allocation Gavel::solve(const OracleView& view, const std::vector<JobId>& jobs) const {
  if (runs_in_order()) return in_order_of_arrival(view, jobs);
  AllocationProblem problem{.gpus = options_.gpus, .jobs = {}};
  std::map<std::uint32_t, std::uint32_t> entity_of_owner;
  using Kind = std::tuple<std::vector<double>, double, std::uint32_t, double, double, double>;
  std::map<Kind, std::size_t> kinds;
  std::vector<std::size_t> kind_of;
  for (const JobId id : jobs) {
    AllocationJob job = as_programmed(view, id);
    if (options_.objective == GavelObjective::water_filling) {
      const auto entities = static_cast<std::uint32_t>(entity_of_owner.size());
      job.entity = entity_of_owner.try_emplace(owner_of(options_.owners, view, id), entities).first->second;
    }
    const auto [kind, is_new] = kinds.try_emplace(
        Kind{job.throughput, job.gpus, job.entity, job.remaining, job.elapsed, job.isolated}, problem.jobs.size());
    kind_of.push_back(kind->second);
    if (is_new) {
      problem.jobs.push_back(std::move(job));
    } else {
      ++problem.jobs[kind->second].count;
    }
  }
  const Allocation of_kinds = allocation_of(problem, entity_of_owner.size());
  Allocation allocation;
  for (const std::size_t kind : kind_of) allocation.push_back(of_kinds[kind]);
  return allocation;
}

Allocation Gavel::allocation_of(const AllocationProblem& problem, std::size_t entities) const {
  switch (options_.objective) {
    case GavelObjective::makespan: return least_makespan(problem);
    case GavelObjective::finish_time_fairness: return finish_time_fair(problem);
    case GavelObjective::water_filling: return water_filling(problem, std::vector<double>(entities, 1.0));
    default: return max_min_fair(problem);
  }
}

Allocation Gavel::in_order_of_arrival(const View& view, const std::vector<JobId>& jobs) const {
  Allocation allocation(jobs.size(), std::vector<double>(type_count(), 0.0));
  std::vector<double> left = options_.gpus;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::vector<OnType>& types = jobs_[index(jobs[i])].types;
    if (options_.objective == GavelObjective::last_type) {
      const auto last = std::find_if(options_.types_by_name.rbegin(), options_.types_by_name.rend(),
                                     [&](std::uint32_t type) { return types[type].throughput > 0; });
      allocation[i][*last] = 1;
      continue;
    }
    const double gpus = gpus_of(view.shape(jobs[i]));
    std::uint32_t best = no_index;
    for (const std::uint32_t type : options_.types_by_name) {
      const bool has_room = types[type].throughput > 0 && left[type] >= gpus;
      if (has_room && (best == no_index || types[type].throughput > types[best].throughput)) best = type;
    }
    if (best == no_index) break;
    allocation[i][best] = 1;
    left[best] -= gpus;
  }
  return allocation;
}

std::vector<Gavel::Candidate> Gavel::candidates(std::uint32_t type) const {
  std::vector<Candidate> list;
  for (const JobId job : active_) {
    if (jobs_[index(job)].types.empty()) continue;
    const OnType& here = jobs_[index(job)].types[type];
    if (here.throughput <= 0 || (runs_in_order() && here.allocation <= 0)) continue;
    const double given_s = given_s_[type];
    // No job received anything yet: jobs rank by their allocations.
    const double priority = given_s > 0 ? here.allocation * given_s / here.received_s : here.allocation * 1e9;
    list.push_back({job, type, priority, here.deficit_s, here.allocation});
  }
  std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.deficit != b.deficit ? a.deficit > b.deficit : a.allocation > b.allocation;
  });
  return list;
}

// Of the GPUs of each type, those that jobs without a type leave.
std::vector<double> Gavel::gpus_left(const View& view) const {
  std::vector<double> left = options_.gpus;
  for (const JobId job : view.running()) {
    if (!jobs_[index(job)].types.empty()) continue;
    const double gpus = static_cast<double>(view.shape(job).gpu_milli_per_task) / static_cast<double>(whole_gpu);
    view.for_each_grant(
        job, [&](const Grant& grant) { left[view.cluster().node_gpu_type(grant.node)] -= grant.tasks * gpus; });
  }
  return left;
}

// The jobs that run in the coming round, with their GPU types; the others of each list come after.
std::pair<std::vector<Gavel::Candidate>, std::vector<Gavel::Candidate>> Gavel::choose(const View& view) {
  std::vector<double> left = gpus_left(view);
  std::vector<Candidate> chosen, others;
  for (const JobId job : active_) jobs_[index(job)].place = no_index;
  for (std::uint32_t type = 0; type < type_count(); ++type) {
    for (const Candidate& candidate : candidates(type)) {
      const double gpus = gpus_of(view.shape(candidate.job));
      std::uint32_t& place = jobs_[index(candidate.job)].place;
      if (place != no_index || gpus > left[type] + 1e-9) {
        others.push_back(candidate);
        continue;
      }
      left[type] -= gpus;
      place = type;
      chosen.push_back(candidate);
    }
  }
  return {std::move(chosen), std::move(others)};
}

void Gavel::begin_round(const View& view, Decision& decision) {
  auto [chosen, others] = choose(view);
  for (const JobId id : active_) {
    Job& job = jobs_[index(id)];
    if (job.types.empty() || job.running_on == no_index || job.running_on == job.place) continue;
    decision.preempt(id);
    job.running_on = no_index;
  }
  // The largest gangs first, so that they find nodes; then whoever else still fits, where the nodes refused one.
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Candidate& a, const Candidate& b) {
    return view.shape(a.job).gpu_milli() > view.shape(b.job).gpu_milli();
  });
  bool refused = false;
  const auto start = [&](const Candidate& candidate) {
    Job& job = jobs_[index(candidate.job)];
    if (job.running_on != no_index) return;
    if (decision.start_on_type(candidate.job, candidate.type) != Verdict::ok) {
      refused = true;
      return;
    }
    job.running_on = candidate.type;
    job.since = view.now();
  };
  std::for_each(chosen.begin(), chosen.end(), start);
  if (refused) std::for_each(others.begin(), others.end(), start);
  start_without_type(view, decision);
}

void Gavel::start_without_type(const View& view, Decision& decision) {
  for (const JobId job : active_) {
    if (jobs_[index(job)].types.empty() && view.phase(job) == JobPhase::pending) decision.start(job);
  }
}

namespace {

Result<GavelOptions> options_of(const PolicyContext& context, std::string name, const PolicyParameters& parameters) {
  GavelOptions options{.name = std::move(name),
                       .round = from_seconds(parameters.number("round_s")),
                       .between_allocations = from_seconds(parameters.number("reset_s")),
                       .gpus = std::vector<double>(context.cluster->gpu_types.size(), 0.0)};
  for (const Node& node : context.cluster->nodes) options.gpus[node.gpu_type] += node.gpus;
  options.types_by_name.resize(options.gpus.size());
  std::iota(options.types_by_name.begin(), options.types_by_name.end(), 0u);
  const std::vector<std::string>& names = context.cluster->gpu_types;
  std::sort(options.types_by_name.begin(), options.types_by_name.end(),
            [&](std::uint32_t a, std::uint32_t b) { return names[a] < names[b]; });
  return options;
}

std::vector<ParameterInfo> round_parameters() {
  return {{.name = "round_s", .fallback = 360.0, .meaning = "length of a round", .least = 1, .most = 1e9},
          {.name = "reset_s",
           .fallback = 1920.0,
           .meaning = "least time between two allocations; the rounds between follow the last one",
           .least = 0,
           .most = 1e9}};
}

GavelObjective objective_of(const std::string& word) {
  if (word == "makespan") return GavelObjective::makespan;
  if (word == "water-filling") return GavelObjective::water_filling;
  if (word == "finish-time-fairness") return GavelObjective::finish_time_fairness;
  return word == "fifo" ? GavelObjective::fifo : GavelObjective::max_min;
}

Result<AnyPolicy> make_gavel(const PolicyParameters& parameters, const PolicyContext& context) {
  auto options = options_of(context, "gavel", parameters);
  if (!options) return Unexpected{options.error()};
  options->objective = objective_of(parameters.word("objective"));
  options->aware = parameters.flag("aware");
  if (options->objective == GavelObjective::water_filling) {
    const auto owners = owner_column("gavel", parameters, context);
    if (!owners) return Unexpected{owners.error()};
    options->owners = *owners;
  }
  if (options->objective != GavelObjective::fifo && !has_lp_solver()) {
    return unexpected(std::string("policy gavel solves linear programmes by CLP, which was not found: ") +
                      how_to_get_lp_solver());
  }
  return AnyPolicy(Gavel(*std::move(options)));
}

}  // namespace

PolicyInfo gavel_info() {
  auto parameters = round_parameters();
  parameters.push_back({.name = "objective",
                        .fallback = std::string("max-min"),
                        .meaning = "max-min: LAS by throughput; water-filling: the same between owners and their jobs; "
                                   "makespan: from true run times; finish-time-fairness: the least greatest ratio to "
                                   "the time on an equal share, from true run times; fifo: the fastest GPU type with "
                                   "room",
                        .words = {"max-min", "water-filling", "makespan", "finish-time-fairness", "fifo"}});
  parameters.push_back(
      {.name = "aware", .fallback = true, .meaning = "false: as if every job were equally fast on all GPU types"});
  parameters.push_back(owner_parameter("user"));
  return {.name = "gavel",
          .summary = "rounds that give each job its share of each GPU type, by a linear programme over throughputs",
          .source =
              "Narayanan et al., Heterogeneity-aware cluster scheduling policies, OSDI'20, sections 4 and 5, and "
              "the simulator of its artifact",
          .complexity = "a linear programme of jobs x GPU types when jobs came or went; a round: O(jobs x log n)",
          .parameters = std::move(parameters),
          .make = make_gavel,
          .preemptive = true};
}

PolicyInfo fifo_gavel_info() {
  return {.name = "fifo@gavel",
          .summary = "Gavel's baseline FIFO: all jobs take turns, by rounds, on the GPU type of the last name",
          .source =
              "policies/fifo.py of Gavel's artifact (OSDI'20): the GPU type that it draws is not the one that it "
              "uses, which is the last of the list; so jobs are never out of room and share V100s, while K80s "
              "and P100s idle. Left out: when the jobs fill these exactly, a drawn type leaves the list",
          .complexity = "a round: O(jobs x log n)",
          .parameters = round_parameters(),
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            auto options = options_of(context, "fifo@gavel", parameters);
            if (!options) return Unexpected{options.error()};
            options->objective = GavelObjective::last_type;
            return AnyPolicy(Gavel(*std::move(options)));
          },
          .preemptive = true};
}

}  // namespace gpusched
