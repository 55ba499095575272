// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/gavel.hpp"

#include <algorithm>
#include <utility>

#include "src/policies/throughput/gavel_parameters.hpp"
#include "src/policies/throughput/jobs_without_type.hpp"

namespace gpusched {

void Gavel::decide(const OracleView& view, Decision& decision) {
  if (!empty_) {
    jobs_.resize(view.job_count());
    empty_.emplace(view);
  }
  note_events(view);
  const bool round_is_over = view.now() >= round_end_ || view.running().empty();
  if (!round_is_over || active_.empty()) return;
  for (const JobId job : active_) account(job, view.now());
  const bool may_allocate =
      last_allocation_ == Time::max() || view.now() - last_allocation_ >= options_.between_allocations;
  if (outdated_ && may_allocate) allocate(view);
  // With one GPU type, jobs that all run have nothing to take turns for.
  if (types_.count() > 1 || view.pending_count() > 0) begin_round(view, decision);
  round_end_ = later_by(view.now(), options_.round);
  if (round_end_ != Time::max()) decision.wake(round_end_);
}

void Gavel::note_events(const View& view) {
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::submit) enter(view, event.job);
    if (!leaves_cluster(event.kind) && event.kind != EventKind::withdraw) continue;
    account(event.job, view.now());
    Job& job = jobs_[index(event.job)];
    job.running_on = no_index;
    if (returns_to_queue(event.kind)) continue;
    if (job.typed) accounts_.leave(event.job);
    job = {};
    allocator_.forget(event.job);
    active_.erase(std::find(active_.begin(), active_.end(), event.job));
    outdated_ = true;
  }
}

void Gavel::enter(const View& view, JobId id) {
  const auto before = [&](JobId a, JobId b) { return view.queue_place(a) < view.queue_place(b); };
  active_.insert(std::upper_bound(active_.begin(), active_.end(), id, before), id);
  const std::vector<double> speeds = speeds_where_it_fits(*empty_, view, id, types_.count());
  if (speeds.empty()) return;
  jobs_[index(id)].typed = true;
  accounts_.enter(id, speeds);
  outdated_ = true;
}

// Adds the time that a job ran in this round to the accounts.
void Gavel::account(JobId id, Time until) {
  Job& job = jobs_[index(id)];
  if (job.running_on == no_index || !job.typed) return;
  accounts_.receive(id, job.running_on, to_seconds(until - job.since));
  job.since = until;
}

void Gavel::allocate(const OracleView& view) {
  std::vector<AllocatedJob> jobs;
  std::vector<JobId> typed;
  for (const JobId id : active_) {
    if (!jobs_[index(id)].typed) continue;
    typed.push_back(id);
    AllocatedJob job{.id = id, .gpus = gang_gpus(view.shape(id)), .age_s = to_seconds(view.now() - view.submit(id))};
    if (allocator_.reads_work_left()) job.left = to_seconds(view.remaining(id));
    for (const TimeOnType& type : accounts_.of(id)) job.throughput.push_back(type.throughput);
    jobs.push_back(std::move(job));
  }
  accounts_.restart(last_allocation_ == Time::max() ? 0 : to_seconds(view.now() - last_allocation_), typed);
  last_allocation_ = view.now();
  outdated_ = false;
  if (jobs.empty()) return;
  const Allocation allocation = allocator_.allocate(view, jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) accounts_.promise(jobs[i].id, allocation[i]);
}

// Who is to run where, in the order in which they choose.
std::vector<Gavel::Turn> Gavel::turns() const {
  std::vector<Turn> turns;
  for (const JobId job : active_) {
    if (!jobs_[index(job)].typed) continue;
    for (const std::uint32_t type : types_.by_name) {
      const TimeOnType& here = accounts_.of(job)[type];
      if (here.throughput <= 0 || here.allocation <= 0) continue;
      turns.push_back({job, type, here.allocation / here.received_s, here.deficit_s, here.allocation});
    }
  }
  std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
    if (a.owed != b.owed) return a.owed > b.owed;
    return a.deficit != b.deficit ? a.deficit > b.deficit : a.allocation > b.allocation;
  });
  return turns;
}

// The GPU types on which the job can run.
std::vector<std::uint32_t> Gavel::fastest_first(JobId id) const {
  std::vector<std::uint32_t> types;
  const auto here = accounts_.of(id);
  for (const std::uint32_t type : types_.by_name) {
    if (here[type].throughput > 0) types.push_back(type);
  }
  if (!allocator_.aware()) return types;
  std::stable_sort(types.begin(), types.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return here[a].throughput > here[b].throughput; });
  return types;
}

// Gives jobs places in the coming round. Returns all that may have one, in the order in which they chose.
std::vector<JobId> Gavel::choose(const View& view) {
  std::vector<double> left = gpus_left(view, types_.gpus, [&](JobId job) { return jobs_[index(job)].typed; });
  for (const JobId job : active_) jobs_[index(job)].place = no_index;
  const auto place = [&](JobId id, std::uint32_t type) {
    const double gpus = gang_gpus(view.shape(id));
    Job& job = jobs_[index(id)];
    if (job.place != no_index || gpus > left[type] + 1e-9) return;
    left[type] -= gpus;
    job.place = type;
  };
  std::vector<JobId> order;
  std::vector<bool> listed(jobs_.size(), false);
  const auto list = [&](JobId id) {
    if (!listed[index(id)]) order.push_back(id);
    listed[index(id)] = true;
  };
  for (const Turn& turn : turns()) {
    list(turn.job);
    place(turn.job, turn.type);
  }
  if (allocator_.serves_in_order()) return order;
  for (const JobId id : active_) {
    if (jobs_[index(id)].typed) list(id);
  }
  for (const JobId id : order) {
    if (jobs_[index(id)].place != no_index) continue;
    for (const std::uint32_t type : fastest_first(id)) place(id, type);
  }
  return order;
}

void Gavel::begin_round(const View& view, Decision& decision) {
  std::vector<JobId> order = choose(view);
  for (const JobId id : active_) {
    Job& job = jobs_[index(id)];
    if (!job.typed || job.running_on == no_index || job.running_on == job.place) continue;
    decision.preempt(id);
    job.running_on = no_index;
  }
  // The largest gangs first, so that they find nodes; then whoever else still fits, where the nodes refused one.
  std::stable_sort(order.begin(), order.end(),
                   [&](JobId a, JobId b) { return view.shape(a).gpu_milli() > view.shape(b).gpu_milli(); });
  bool refused = false;
  for (const JobId id : order) {
    const Job& job = jobs_[index(id)];
    if (job.place != no_index && job.running_on == no_index) refused = !start(id, job.place, view, decision) || refused;
  }
  for (std::size_t i = 0; refused && i < order.size(); ++i) {
    for (const std::uint32_t type : fastest_first(order[i])) {
      if (jobs_[index(order[i])].running_on == no_index) start(order[i], type, view, decision);
    }
  }
  start_without_type(view, decision, active_, [&](JobId job) { return jobs_[index(job)].typed; });
}

bool Gavel::start(JobId id, std::uint32_t type, const View& view, Decision& decision) {
  if (decision.start_on_type(id, type) != Verdict::ok) return false;
  jobs_[index(id)].running_on = type;
  jobs_[index(id)].since = view.now();
  return true;
}

namespace {

Result<AnyPolicy> make_gavel(const PolicyParameters& parameters, const PolicyContext& context) {
  auto allocator = gavel_allocator("gavel", parameters, context);
  if (!allocator) return Unexpected{allocator.error()};
  return AnyPolicy(Gavel({.round = from_seconds(parameters.number("round_s")),
                          .between_allocations = from_seconds(parameters.number("reset_s"))},
                         *std::move(allocator), GpuTypes(*context.cluster)));
}

}  // namespace

PolicyInfo gavel_info() {
  return {.name = "gavel",
          .summary = "rounds that give each job its share of each GPU type, by a linear programme over throughputs",
          .source = "Narayanan et al., Heterogeneity-aware cluster scheduling policies, OSDI'20, sections 4 and 5",
          .complexity = "a linear programme of jobs x GPU types when jobs came or went; a round: O(jobs x log n)",
          .parameters = gavel_parameters(),
          .make = make_gavel,
          .preemptive = true};
}

}  // namespace gpusched
