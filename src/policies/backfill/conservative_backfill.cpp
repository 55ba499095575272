// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/conservative_backfill.hpp"

#include <algorithm>
#include <utility>

#include "src/policies/backfill/backfill.hpp"

namespace gpusched {

namespace {

// Its user gave a running job another size: that it is withdrawn and submitted again follows.
bool is_resized(const Event& event) { return event.kind == EventKind::kill && event.node == no_node; }

}  // namespace

void ConservativeBackfill::decide(const OracleView& view, Decision& decision) {
  // A wake for a start that was moved since is no event: believed ends are corrected at events.
  const bool only_woken = view.events().size() == 1 && view.events().front().kind == EventKind::wake;
  if (only_woken && view.now() != next_wake_) return;
  const bool surprised = ends_.observe(view);
  queue_.observe(view);
  note_events(view);
  profile_.drop_before(view.now());
  if (surprised || stale_) {
    stale_ = false;
    settle(view);
    improve(view);
  }
  do {
    if (std::exchange(refused_, false)) improve(view);
    take_in(view);
  } while (start_due(view, decision) || refused_);  // each start lets another job have a reservation
  wake_for_next(view, decision);
}

void ConservativeBackfill::note_events(const View& view) {
  if (runs_.empty()) runs_.resize(view.job_count());
  for (const Event& event : view.events()) {
    if (leaves_cluster(event.kind)) {
      departed_.push_back(std::exchange(runs_[index(event.job)], Plan{}));
      for (Plan& plan : plans_) plan.refused = false;
    }
    if (is_resized(event)) resized_.push_back(event.job);
    if (enters_queue(event.kind) && !is_resized(event)) enter(view, event.job);
    if (event.kind == EventKind::withdraw) withdraw(view.at(event), event.job);
    if (event.kind != EventKind::reprioritize) continue;
    sorted_ = 0;
    stale_ = true;
  }
  moved_.insert(moved_.end(), ends_.moved().begin(), ends_.moved().end());
}

// A job that has no reservation takes its place among those that wait for one. One that its user gave another size had
// one, or ran: it is not behind others because of that, and gets the next one in order of priority, in settle().
void ConservativeBackfill::enter(const View& view, JobId job) {
  if (std::erase(resized_, job) > 0 && plans_.size() < depth_) {
    plans_.push_back({.job = job,
                      .shape = view.shape_id(job),
                      .start = Time{-end_of_time.us},
                      .length = std::max(ends_.estimate(job), Time{1})});
    stale_ = true;
    return;
  }
  const auto before = [&](JobId a, JobId b) { return view.queue_place(a) < view.queue_place(b); };
  const auto first = unplanned_.begin() + static_cast<std::ptrdiff_t>(next_unplanned_);
  unplanned_.insert(std::upper_bound(first, unplanned_.end(), job, before), job);
}

// Gives the job's reservation up, if it has one.
void ConservativeBackfill::withdraw(const View& view, JobId job) {
  const auto plan = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& other) { return other.job == job; });
  if (plan == plans_.end()) {
    if (std::find(resized_.begin(), resized_.end(), job) != resized_.end()) return;  // it ran
    unplanned_.erase(
        std::find(unplanned_.begin() + static_cast<std::ptrdiff_t>(next_unplanned_), unplanned_.end(), job));
    return;
  }
  if (view.phase(job) == JobPhase::pending) resized_.push_back(job);
  change(view, *plan, plan->start, plan->end(), +1);
  if (static_cast<std::size_t>(plan - plans_.begin()) < sorted_) --sorted_;
  plans_.erase(plan);
  room_again_ = stale_ = true;
}

// Makes reservations for new jobs, up to `depth` in all.
void ConservativeBackfill::take_in(const View& view) {
  while (next_unplanned_ < unplanned_.size() && plans_.size() < depth_) {
    const JobId job = unplanned_[next_unplanned_++];
    plans_.push_back({.job = job, .shape = view.shape_id(job), .length = std::max(ends_.estimate(job), Time{1})});
    reserve(view, plans_.back());
  }
  if (next_unplanned_ == unplanned_.size()) {
    unplanned_.clear();
    next_unplanned_ = 0;
  }
}

// Updates the profile: ends of running jobs first, then the plans that still hold, then new plans for the others.
void ConservativeBackfill::settle(const View& view) {
  sort_by_priority(view);
  mend_plans(view, settle_ends(view));
}

// Updates the ends of running jobs in the profile. Returns the latest time at which one now holds capacity that it did
// not hold before.
Time ConservativeBackfill::settle_ends(const View& view) {
  Time taken_until = view.now();
  for (const Plan& run : departed_) {
    if (!(view.now() < run.end())) continue;
    change(view, run, view.now(), run.end(), +1);
    room_again_ = true;
  }
  departed_.clear();
  for (const JobId job : moved_) {
    if (view.phase(job) != JobPhase::running) continue;
    Plan& run = runs_[index(job)];
    const Time held = std::max(run.end(), view.now());
    const Time end = ends_.end(job);
    change(view, run, held, end, -1);
    // NOLINTNEXTLINE(readability-suspicious-call-argument): the line above in reverse, where the end is earlier
    change(view, run, end, held, +1);
    room_again_ = room_again_ || end < held;
    taken_until = std::max(taken_until, end);
    run.length = end - run.start;
  }
  moved_.clear();
  return taken_until;
}

// Plans that no longer fit beside the running jobs are taken out of the profile. In priority order, those that still
// fit are put back, and the others get the earliest hole. A plan whose time is not overdrawn still fits.
void ConservativeBackfill::mend_plans(const View& view, Time taken_until) {
  std::vector<Plan*> doubtful, broken;
  const bool some_are_overdrawn = profile_.is_overdrawn(view.now(), Time::max());
  for (Plan& plan : plans_) {
    if (plan.start < view.now() ||
        (some_are_overdrawn && profile_.is_overdrawn(plan.start, std::min(plan.end(), taken_until)))) {
      doubtful.push_back(&plan);
    }
  }
  for (const Plan* plan : doubtful) change(view, *plan, plan->start, plan->end(), +1);
  for (Plan* plan : doubtful) {
    const CapacityProfile::Gang gang{view.shape_of_id(plan->shape), view.queue_of(plan->job), plan->parts};
    if (plan->start >= view.now() && profile_.is_free(plan->start, plan->end(), gang)) {
      change(view, *plan, plan->start, plan->end(), -1);
    } else {
      broken.push_back(plan);
    }
  }
  for (Plan* plan : broken) reserve(view, *plan);
  room_again_ = room_again_ || !broken.empty();
}

// Moves plans to earlier holes; each can at least keep its own. Where nodes matter, a plan may also get better nodes at
// the same start.
void ConservativeBackfill::improve(const View& view) {
  if (!room_again_ && !profile_.by_node()) return;
  room_again_ = false;
  for (Plan& plan : plans_) {
    if (profile_.by_node()) {
      change(view, plan, plan.start, plan.end(), +1);
      reserve(view, plan);
      continue;
    }
    const auto earlier = profile_.earliest(earliest_start(view, plan), plan.start, plan.length,
                                           view.shape_of_id(plan.shape), view.queue_of(plan.job));
    if (!earlier) continue;
    change(view, plan, plan.start, plan.end(), +1);
    plan.start = *earlier;
    change(view, plan, plan.start, plan.end(), -1);
    room_again_ = true;  // for those before it, when they are looked at next
  }
}

// Insertion sort: in a fixed order only new plans are unsorted, and in an ageing one few have been overtaken.
void ConservativeBackfill::sort_by_priority(const View& view) {
  const auto before = [&](const Plan& a, const Plan& b) {
    const std::uint32_t queue_a = view.queue_of(a.job);
    const std::uint32_t queue_b = view.queue_of(b.job);
    return queue_a != queue_b ? queue_a < queue_b : queue_.waiting().before(view, a.job, b.job);
  };
  const std::size_t from = queue_.order().ages() ? 0 : sorted_;
  for (auto at = plans_.begin() + static_cast<std::ptrdiff_t>(from); at != plans_.end(); ++at) {
    if (at == plans_.begin() || !before(*at, *(at - 1))) continue;
    std::rotate(std::upper_bound(plans_.begin(), at, *at, before), at, at + 1);
  }
  sorted_ = plans_.size();
}

void ConservativeBackfill::reserve(const View& view, Plan& plan) {
  auto hole = profile_.find(earliest_start(view, plan), plan.length, view.shape_of_id(plan.shape),
                            view.queue_of(plan.job), view.cluster());
  GPUSCHED_ASSERT(hole.has_value(), "every job fits the empty cluster");
  plan.start = hole->start;
  plan.parts = std::move(hole->parts);
  change(view, plan, plan.start, plan.end(), -1);
}

// The profile adds up what is free of a node's cards. Where shares, or whole cards beside them, find no room on any
// card in spite of it, only the end of a running job can change that.
Time ConservativeBackfill::earliest_start(const View& view, const Plan& plan) const {
  return plan.refused && !ends_.ends().empty() ? ends_.ends().begin()->time : view.now();
}

void ConservativeBackfill::change(const View& view, const Plan& plan, Time start, Time end, int sign) {
  profile_.change(start, end, {view.shape_of_id(plan.shape), view.queue_of(plan.job), plan.parts}, sign);
}

bool ConservativeBackfill::start_due(const View& view, Decision& decision) {
  std::size_t kept = 0, sorted = 0;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    Plan& plan = plans_[i];
    const bool due = plan.start <= view.now();
    if (due && start(view, plan, decision)) {
      ends_.start(view, plan.job);
      queue_.waiting().erase(view, plan.job);
      runs_[index(plan.job)] = std::move(plan);
      continue;
    }
    if (due && !plan.refused) {
      change(view, plan, plan.start, plan.end(), +1);
      plan.refused = refused_ = room_again_ = true;
      reserve(view, plan);
    }
    if (i < sorted_) ++sorted;
    if (kept != i) plans_[kept] = std::move(plan);
    ++kept;
  }
  sorted_ = sorted;
  const bool any = kept < plans_.size();
  plans_.resize(kept);
  return any;
}

// Where the nodes of the plan have no card with room, others may (earliest_start).
bool ConservativeBackfill::start(const View& view, Plan& plan, Decision& decision) {
  std::vector<CapacityProfile::Part> parts = plan.parts;
  const CapacityProfile::Started started = profile_.start(view, decision, plan.job, parts);
  if (started != CapacityProfile::Started::elsewhere) return started != CapacityProfile::Started::no;
  change(view, plan, plan.start, plan.end(), +1);
  plan.parts = std::move(parts);
  change(view, plan, plan.start, plan.end(), -1);
  stale_ = true;  // it may stand where others have their reservations
  return true;
}

// A planned start need not be an event of its own: the job it waits for may outlive its estimate. One that outlived it
// and is believed to end at any time is an event when it does.
void ConservativeBackfill::wake_for_next(const View& view, Decision& decision) {
  const Time after = std::max(view.now(), ends_.due_any_time());
  Time next = Time::max();
  for (const Plan& plan : plans_) {
    if (plan.start > after) next = std::min(next, plan.start);
  }
  if (next != Time::max() && next != next_wake_) decision.wake(next);
  next_wake_ = next;
}

std::map<JobId, Time> ConservativeBackfill::reservations() const {
  std::map<JobId, Time> starts;
  for (const Plan& plan : plans_) starts.emplace(plan.job, plan.start);
  return starts;
}

BackfillInfo conservative_backfill_info() {
  BackfillInfo info{
      .name = "conservative",
      .summary = "every waiting job has a reservation; others start where they delay none",
      .source = "Mu'alem and Feitelson, TPDS 2001",
      .complexity = "an arrival: O(steps of the profile); an early or late end: that for every reservation",
      .parameters = estimate_parameters("requested"),
      .make = [](PriorityOrder order, AnyDurationEstimator estimator, const PolicyParameters& parameters,
                 const PolicyContext& context) -> Result<AnyPolicy> {
        const double depth = parameters.number("depth");
        return AnyPolicy(ConservativeBackfill(std::move(order), std::move(estimator),
                                              overrun_rule(parameters, *context.jobs),
                                              CapacityProfile(*context.cluster, *context.jobs),
                                              depth == 0 ? no_index : static_cast<std::uint32_t>(depth)));
      },
      .chooses_nodes = true,
      .asymmetries = {{Symmetry::time_scale, overrun_by_the_clock}}};
  info.parameters.push_back(overrun_parameter("auto"));
  info.parameters.push_back(
      {.name = "depth",
       .fallback = 0.0,
       .meaning = "most waiting jobs with a reservation, later ones wait for one; 0: all have one",
       .least = 0,
       .most = 1e9,
       .is_count = true});
  return info;
}

}  // namespace gpusched
