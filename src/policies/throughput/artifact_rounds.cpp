// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/artifact_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "src/policies/throughput/gavel_parameters.hpp"
#include "src/policies/throughput/jobs_without_type.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t roundings = 2;  // microseconds

// Work that passes in `span` at that rate, as the engine rounds it.
Time work_in(Time span, RatePpm rate) { return {mul_div(span.us, rate, reference_rate)}; }

}  // namespace

void ArtifactRounds::decide(const OracleView& view, Decision& decision) {
  if (!empty_) {
    jobs_.resize(view.job_count());
    empty_.emplace(view);
  }
  note_events(view);
  const bool ran = !stops_.empty();
  if (ran && (view.now() < round_end_ || is_ending(view))) return;
  end_round(view);
  // A round after which nobody is left is followed by one of nobody, and that by an allocation to nobody, which holds.
  if (ran || !active_.empty()) begin_round(view, decision);
}

void ArtifactRounds::note_events(const OracleView& view) {
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::submit) enter(view, event.job);
    if (event.kind == EventKind::withdraw) {
      std::erase_if(stops_, [&](const Stop& stop) { return stop.job == event.job; });
      leave(event.job);
    }
    if (!leaves_cluster(event.kind)) continue;
    Job& job = jobs_[index(event.job)];
    job.running_on = no_index;
    if (returns_to_queue(event.kind)) continue;
    // Its time in this round is counted at the end of that.
    job.over = std::any_of(stops_.begin(), stops_.end(), [&](const Stop& stop) { return stop.job == event.job; });
    if (!job.over) leave(event.job);
  }
}

// A job that ends in this round is late: its start cost time. It is waited for, or jobs that take turns would pay for
// ever and get nothing.
bool ArtifactRounds::is_ending(const OracleView& view) {
  bool is_late = false;
  for (Stop& stop : stops_) {
    const Job& job = jobs_[index(stop.job)];
    const bool runs_on = !job.over && job.running_on != no_index && view.remaining(stop.job).us > roundings;
    const bool was_late = std::exchange(stop.is_late, stop.ends && runs_on);
    if (was_late || stop.is_late) stop.at_s = to_seconds(view.now());
    is_late = is_late || stop.is_late;
  }
  return is_late;
}

std::span<const double> ArtifactRounds::measured(const View& view, JobId id) const {
  if (options_.runtime == nullptr) return {};
  return options_.runtime->throughputs(view.family(id), view.shape(id));
}

void ArtifactRounds::enter(const OracleView& view, JobId id) {
  const auto before = [&](JobId a, JobId b) { return view.queue_place(a) < view.queue_place(b); };
  active_.insert(std::upper_bound(active_.begin(), active_.end(), id, before), id);
  std::vector<double> throughputs = speeds_where_it_fits(*empty_, view, id, types_.count());
  if (throughputs.empty()) return;
  const std::span<const double> known = measured(view, id);
  Job& job = jobs_[index(id)];
  job = {.typed = true, .in_steps = !known.empty()};
  if (job.in_steps) job.reference = known.front();
  for (std::size_t type = 0; type < throughputs.size() && job.in_steps; ++type) {
    if (throughputs[type] > 0) throughputs[type] = known[1 + type];
  }
  job.engine_left = view.remaining(id);
  job.total = to_seconds(job.engine_left) * job.reference;
  accounts_.enter(id, throughputs);
  outdated_ = true;
}

void ArtifactRounds::leave(JobId id) {
  Job& job = jobs_[index(id)];
  if (job.typed) accounts_.leave(id);
  job = {};
  std::visit([&](auto& allocator) { allocator.forget(id); }, allocator_);
  active_.erase(std::find(active_.begin(), active_.end(), id));
  outdated_ = true;
}

// Counts the time and the steps of the round that is over.
void ArtifactRounds::end_round(const OracleView& view) {
  const bool ran = !stops_.empty();
  if (!ran) now_s_ = to_seconds(view.now());
  if (!first_s_) first_s_ = round_start_s_ = now_s_;
  if (ran && round_end_s_) round_start_s_ = round_end_s_;
  std::sort(stops_.begin(), stops_.end(),
            [](const Stop& a, const Stop& b) { return std::tuple(-a.at_s, a.job) < std::tuple(-b.at_s, b.job); });
  if (ran) round_end_s_ = now_s_ = stops_.front().at_s;
  for (const Stop& stop : stops_) {
    accounts_.receive(stop.job, stop.type, stop.at_s - *round_start_s_);
    Job& job = jobs_[index(stop.job)];
    job.engine_left -= work_in(view.now() - round_begin_, view.speed(stop.job, stop.type));
    if (job.over) leave(stop.job);
  }
  stops_.clear();
  for (const JobId id : active_) {
    Job& job = jobs_[index(id)];
    if (!job.typed) continue;
    const Time left = view.remaining(id);
    if (std::abs((left - job.engine_left).us) > roundings) {
      job.total = to_seconds(left) * job.reference;
      job.done = 0;
    } else {
      job.done += job.steps;
    }
    job.steps = 0;
    job.engine_left = left;
  }
}

bool ArtifactRounds::may_allocate() const {
  return !last_allocation_s_ || *last_allocation_s_ == *first_s_ || now_s_ - *last_allocation_s_ >= options_.reset_s;
}

void ArtifactRounds::begin_round(const OracleView& view, Decision& decision) {
  if (outdated_ && may_allocate()) allocate(view);
  const bool all_came = view.arrived() == view.job_count();
  if (!choose(view) && all_came && outdated_) {
    allocate(view);
    choose(view);
  }
  move_jobs(view, decision);
  start_without_type(view, decision, active_, [&](JobId job) { return jobs_[index(job)].typed; });
  plan(view, decision);
  if (!stops_.empty()) {
    decision.wake(round_end_);
  } else if (!all_came) {
    decision.wake(view.listed(JobId{view.arrived()}));
  }
}

void ArtifactRounds::allocate(const OracleView& view) {
  std::vector<AllocatedJob> jobs;
  std::vector<JobId> typed;
  for (const JobId id : active_) {
    Job& job = jobs_[index(id)];
    if (!job.typed) continue;
    job.allocated = true;
    typed.push_back(id);
    AllocatedJob entry{.id = id,
                       .gpus = gang_gpus(view.shape(id)),
                       .age_s = now_s_ - to_seconds(view.submit(id)),
                       .left = std::max(job.total - job.done, 0.0)};
    for (const TimeOnType& type : accounts_.of(id)) entry.throughput.push_back(type.throughput);
    jobs.push_back(std::move(entry));
  }
  accounts_.restart(last_allocation_s_ ? now_s_ - *last_allocation_s_ : 0, typed);
  last_allocation_s_ = now_s_;
  outdated_ = false;
  if (jobs.empty()) return;
  const Allocation allocation = std::visit([&](auto& allocator) { return allocator.allocate(view, jobs); }, allocator_);
  for (std::size_t i = 0; i < jobs.size(); ++i) accounts_.promise(jobs[i].id, allocation[i]);
}

// Those that may run on a GPU type, in the order in which it takes them.
std::vector<JobId> ArtifactRounds::queue_of(std::uint32_t type) const {
  struct Candidate {
    JobId job = no_job;
    double priority = 0, deficit = 0, allocation = 0;
  };
  const bool in_order = std::visit([](const auto& allocator) { return allocator.serves_in_order(); }, allocator_);
  std::vector<Candidate> list;
  for (const JobId id : active_) {
    if (!jobs_[index(id)].typed || throughput(id, type) <= 0) continue;
    const TimeOnType& here = accounts_.of(id)[type];
    const double given_s = accounts_.given_s(type);
    const double fraction = given_s == 0 ? 0 : here.received_s / given_s;
    const double priority = fraction > 0 ? here.allocation / fraction : here.allocation * 1e9;
    if (!in_order || priority > 0) list.push_back({id, priority, here.deficit_s, here.allocation});
  }
  std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.priority, a.deficit, a.allocation) > std::tuple(b.priority, b.deficit, b.allocation);
  });
  std::vector<JobId> jobs;
  jobs.reserve(list.size());
  for (const Candidate& candidate : list) jobs.push_back(candidate.job);
  return jobs;
}

// Gives jobs places in the coming round; false: none of them will run.
bool ArtifactRounds::choose(const OracleView& view) {
  std::vector<std::uint32_t> types(types_.by_name.rbegin(), types_.by_name.rend());
  if (shuffler_) shuffler_->shuffle(types);
  std::vector<double> left = gpus_left(view, types_.gpus, [&](JobId job) { return jobs_[index(job)].typed; });
  for (const JobId id : active_) jobs_[index(id)].place = no_index;
  bool any = false;
  for (const std::uint32_t type : types) {
    for (const JobId id : queue_of(type)) {
      Job& job = jobs_[index(id)];
      const double gpus = gang_gpus(view.shape(id));
      if (job.place != no_index || gpus > left[type] + 1e-9) continue;
      left[type] -= gpus;
      job.place = type;
      any = any || job.allocated;
    }
  }
  return any;
}

void ArtifactRounds::move_jobs(const OracleView& view, Decision& decision) {
  std::vector<JobId> waiting;
  for (const JobId id : active_) {
    Job& job = jobs_[index(id)];
    if (job.running_on != no_index && job.running_on != job.place) {
      decision.preempt(id);
      job.running_on = no_index;
    }
    if (job.typed && job.allocated && job.running_on == no_index) waiting.push_back(id);
  }
  // The largest gangs first, so that they find nodes; then whoever else still fits, where the nodes refused one.
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](JobId a, JobId b) { return view.shape(a).gpu_milli() > view.shape(b).gpu_milli(); });
  bool refused = false;
  for (const JobId id : waiting) {
    const std::uint32_t place = jobs_[index(id)].place;
    if (place != no_index) refused = !start(decision, id, place) || refused;
  }
  if (!refused) return;
  for (auto type = types_.by_name.rbegin(); type != types_.by_name.rend(); ++type) {
    for (const JobId id : queue_of(*type)) {
      if (jobs_[index(id)].allocated && jobs_[index(id)].running_on == no_index) start(decision, id, *type);
    }
  }
}

bool ArtifactRounds::start(Decision& decision, JobId id, std::uint32_t type) {
  if (decision.start_on_type(id, type) != Verdict::ok) return false;
  jobs_[index(id)].running_on = type;
  return true;
}

// The steps of the running jobs in this round, and its end. The engine is told to end a job then, or not before the
// round is over.
void ArtifactRounds::plan(const OracleView& view, Decision& decision) {
  round_begin_ = view.now();
  double end_s = now_s_;
  for (const JobId id : active_) {
    Job& job = jobs_[index(id)];
    if (!job.typed || job.running_on == no_index) continue;
    const double each_s = throughput(id, job.running_on), most = each_s * options_.round_s;
    job.steps = std::min(job.in_steps && most >= 1 ? std::floor(most) : most, job.total - job.done);
    stops_.push_back({id, job.running_on, now_s_ + job.steps / each_s});
    end_s = std::max(end_s, stops_.back().at_s);
  }
  for (Stop& stop : stops_) {
    const Job& job = jobs_[index(stop.job)];
    stop.ends = job.total - (job.done + job.steps) <= 0;
  }
  // A round of no time is one of jobs that end at once.
  const bool goes_on = std::none_of(stops_.begin(), stops_.end(), [](const Stop& stop) { return stop.ends; });
  round_end_ = std::max(from_seconds(end_s), view.now() + Time{goes_on ? 1 : 0});
  for (const Stop& stop : stops_) {
    const Job& job = jobs_[index(stop.job)];
    const RatePpm rate = view.speed(stop.job, stop.type);
    if (stop.ends) {
      set_left(view, decision, stop.job, work_in(std::max(from_seconds(stop.at_s) - view.now(), Time{}), rate));
    } else {
      const Time least = work_in(round_end_ - view.now(), rate) + Time{1};
      set_left(view, decision, stop.job, std::max(from_seconds((job.total - job.done) / job.reference), least));
    }
  }
}

void ArtifactRounds::set_left(const OracleView& view, Decision& decision, JobId id, Time left) {
  const Time change = left - view.remaining(id);
  if (change != Time{}) decision.adjust_work(id, change);
  jobs_[index(id)].engine_left = left;
}

namespace {

ArtifactOptions options_of(std::string name, const PolicyParameters& parameters, const PolicyContext& context) {
  return {.name = std::move(name),
          .round_s = parameters.number("round_s"),
          .reset_s = parameters.number("reset_s"),
          .runtime = context.runtime};
}

// _initialize_seeds() of the artifact.
std::uint64_t shuffle_seed(const PolicyContext& context) { return context.seed + 5; }

Result<AnyPolicy> make_gavel_gavel(const PolicyParameters& parameters, const PolicyContext& context) {
  auto allocator = gavel_allocator("gavel@gavel", parameters, context);
  if (!allocator) return Unexpected{allocator.error()};
  ArtifactOptions options = options_of("gavel@gavel", parameters, context);
  if (!allocator->aware()) options.shuffle_seed = shuffle_seed(context);
  return AnyPolicy(ArtifactRounds(std::move(options), *std::move(allocator), GpuTypes(*context.cluster)));
}

}  // namespace

PolicyInfo gavel_gavel_info() {
  return {.name = "gavel@gavel",
          .summary = "Gavel's allocations in the rounds of its artifact, quirk by quirk",
          .source = "scheduler.py of Gavel's artifact (OSDI'20)",
          .complexity = "a linear programme of jobs x GPU types when jobs came or went; a round: O(jobs x log n)",
          .parameters = gavel_parameters(),
          .make = make_gavel_gavel,
          .preemptive = true};
}

PolicyInfo fifo_gavel_info() {
  return {.name = "fifo@gavel",
          .summary = "Gavel's baseline FIFO: all jobs take turns, by rounds, on the GPU type of the last name",
          .source = "policies/fifo.py of Gavel's artifact (OSDI'20): jobs share the last GPU type of the list by turns",
          .complexity = "a round: O(jobs x log n)",
          .parameters = round_parameters(),
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            const GpuTypes types(*context.cluster);
            return AnyPolicy(ArtifactRounds(options_of("fifo@gavel", parameters, context), LastType(types), types));
          },
          .preemptive = true};
}

PolicyInfo allox_gavel_info() {
  auto parameters = round_parameters();
  parameters.push_back({.name = "alpha",
                        .fallback = 1.0,
                        .meaning = "part of the waiting jobs, the earliest, that a matching looks at",
                        .least = 0,
                        .most = 1});
  return {.name = "allox@gavel",
          .summary = "AlloX as Gavel's artifact runs it: matchings hold GPU types for jobs, which rounds do not heed",
          .source = "policies/allox.py of Gavel's artifact (OSDI'20)",
          .complexity = "a matching: O(waiting^3 x free GPUs); a round: O(jobs x log n)",
          .parameters = std::move(parameters),
          .make = [](const PolicyParameters& given, const PolicyContext& context) -> Result<AnyPolicy> {
            const GpuTypes types(*context.cluster);
            return AnyPolicy(ArtifactRounds(options_of("allox@gavel", given, context),
                                            HeldMatching(given.number("alpha"), types), types));
          },
          .preemptive = true};
}

}  // namespace gpusched
