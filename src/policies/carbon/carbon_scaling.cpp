// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/carbon_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace gpusched {
namespace {

// Where nobody's turn is yet, and behind all turns.
constexpr DueJobs::Turn first_turn{Time{std::numeric_limits<std::int64_t>::min()}, {0, JobId{0}}};
constexpr DueJobs::Turn last_turn{Time::max(), {}};

// The sizes of a job.
struct JobSizes {
  JobSizes(const View& view, JobId job)
      : curve(view.curve(job)),
        phase(view.curve_phase(job)),
        least(curve == nullptr ? view.shape(job).tasks : curve->min_tasks),
        most(curve == nullptr ? least : curve->max_tasks) {}

  // Work an hour, in hours at the size that it asks for.
  [[nodiscard]] double rate(std::uint32_t tasks) const {
    if (curve == nullptr) return 1;
    return static_cast<double>(curve->rate(tasks, phase)) / static_cast<double>(reference_rate);
  }
  [[nodiscard]] std::vector<ReplicaPoint> points() const {
    std::vector<ReplicaPoint> all;
    for (std::uint32_t tasks = least; tasks <= most; ++tasks) all.push_back({static_cast<double>(tasks), rate(tasks)});
    return all;
  }
  [[nodiscard]] std::uint32_t fastest() const {
    std::uint32_t best = least;
    for (std::uint32_t tasks = least; tasks <= most; ++tasks) {
      if (rate(tasks) > rate(best)) best = tasks;
    }
    return best;
  }
  // Of so many replicas that a plan has.
  [[nodiscard]] std::uint32_t tasks(std::uint32_t replicas) const { return replicas == 0 ? 0 : least + replicas - 1; }

  const ElasticCurve* curve;
  std::uint32_t phase, least, most;
};

double hours_of(Time time) { return to_seconds(time) / 3600; }

}  // namespace

std::optional<DueJobs::Turn> DueJobs::next(const Turn& last, MilliGpu free) const {
  std::optional<Turn> next;
  for (auto kind = turns_.begin(); kind != turns_.end() && kind->first <= free; ++kind) {
    const auto turn = kind->second.upper_bound(last);
    if (turn != kind->second.end() && (!next || *turn < *next)) next = *turn;
  }
  return next;
}

void CarbonScaling::decide(const OracleView& view, Decision& decision) {
  estimator_.observe(view);
  plans_.resize(view.job_count());
  for (const Event& event : view.events()) note(view.at(event), event);
  for (const JobId job : came_) {
    come(view, job);
    settle(view, decision, job);
  }
  came_.clear();
  while (!turns_.empty() && turns_.begin()->first <= view.now()) {
    const JobId job{turns_.begin()->second};
    begin_slot(view, job);
    settle(view, decision, job);
  }
  give(view, decision);
  const Time next = turns_.empty() ? Time::max() : turns_.begin()->first;
  if (next != Time::max() && next != awake_at_) decision.wake(next);
  awake_at_ = next;
}

void CarbonScaling::note(const View& view, const Event& event) {
  if (event.kind == EventKind::withdraw) withdraw(view, event.job);
  if (leaves_cluster(event.kind)) set_turn(event.job, Time::max());
  if (event.kind == EventKind::finish) plan_of(event.job).sizes = std::vector<std::uint32_t>();  // frees it
  if (enters_queue(event.kind)) came_.push_back(event.job);
}

void CarbonScaling::withdraw(const View& view, JobId job) {
  unlist(view, job);
  if (plan_of(job).in_heap) rigid_.erase(view, job);
  plan_of(job).in_heap = false;
  std::erase(came_, job);
  set_turn(job, Time::max());
}

void CarbonScaling::come(const OracleView& view, JobId job) {
  Plan& plan = plan_of(job);
  if (plan.attempt != view.attempt(job)) {
    plan.attempt = view.attempt(job);
    plan.believed = std::clamp(estimator_.estimate(view, job), Time{1}, longest_planned);
  }
  if (plan.latest_end == Time::max()) {
    const bool is_replica = index(job) < replicas_;
    plan.latest_end = is_replica ? view.submit(job) : options_.slack.latest_end(view, job, plan.believed);
  }
  plan_anew(view, job, left_of(view, job));
}

// What it is believed to have left: of the attempt in whole, less what it has done, which who runs it knows.
Time CarbonScaling::left_of(const OracleView& view, JobId job) {
  const Plan& plan = plan_of(job);
  return std::max(plan.believed - view.jobs().attempt_work(job, plan.attempt) + view.remaining(job), Time{1});
}

void CarbonScaling::begin_slot(const OracleView& view, JobId job) {
  Plan& plan = plan_of(job);
  const Time left = left_of(view, job);
  if (left <= negligible && view.phase(job) == JobPhase::running && view.now() < plan.latest_end) {
    plan.wanted = view.held_tasks(job);  // it ends now, or nobody knows when
    return set_turn(job, plan.latest_end);
  }
  const bool is_as_planned =
      std::abs(static_cast<double>(left.us) - plan.left_us) <= static_cast<double>(negligible.us);
  const bool foresees = options_.forecast.kind == Forecast::Kind::perfect;
  if (!foresees || !is_as_planned || plan.at + 1 >= plan.sizes.size()) return plan_anew(view, job, left);
  ++plan.at;
  enter_slot(view, job, static_cast<double>(left.us));
}

void CarbonScaling::plan_anew(const OracleView& view, JobId job, Time left) {
  if (plan_slots(view, job, left)) {
    enter_slot(view, job, static_cast<double>(left.us));
  } else {
    hurry(view, job);
  }
}

// False when the work cannot be done by the latest end.
bool CarbonScaling::plan_slots(const OracleView& view, JobId job, Time left) {
  Plan& plan = plan_of(job);
  const Time span = std::min(plan.latest_end, later_by(view.now(), longest_planned + longest_planned)) - view.now();
  if (span <= Time{}) return false;
  const std::int64_t slots = std::clamp<std::int64_t>(span.us / options_.slot.us, 1, most_slots);
  plan.slot = slots == 1 ? std::min(options_.slot, span) : options_.slot;
  if (slots == most_slots) plan.slot = Time{span.us / slots};
  const Time end = view.now() + Time{slots * plan.slot.us};
  const JobSizes sizes(view, job);
  const ReplicaPlan planned =
      carbon_scaler_plan(expected_slots(*signal_, options_.forecast, view.now(), end, plan.slot), sizes.points(),
                         hours_of(std::max(left - negligible, Time{1})), plan.slot);
  if (!planned.in_time) return false;
  plan.sizes.clear();
  plan.at = 0;
  for (const std::uint32_t replicas : planned.replicas) plan.sizes.push_back(sizes.tasks(replicas));
  return true;
}

void CarbonScaling::enter_slot(const View& view, JobId job, double left_us) {
  Plan& plan = plan_of(job);
  plan.wanted = plan.sizes[plan.at];
  const double rate = plan.wanted == 0 ? 0 : JobSizes(view, job).rate(plan.wanted);
  plan.left_us = std::max(left_us - rate * static_cast<double>(plan.slot.us), 0.0);
  set_turn(job, view.now() + plan.slot);
}

// As fast as it can at once. An elastic job tries to grow when a slot begins.
void CarbonScaling::hurry(const View& view, JobId job) {
  const JobSizes sizes(view, job);
  plan_of(job).sizes.clear();
  plan_of(job).wanted = sizes.fastest();
  set_turn(job, sizes.curve == nullptr ? Time::max() : view.now() + options_.slot);
}

// Takes what the job is to have no longer, and lists it where it is to have more.
void CarbonScaling::settle(const View& view, Decision& decision, JobId job) {
  const std::uint32_t wanted = plan_of(job).wanted;
  const JobSizes sizes(view, job);
  const MilliGpu per_task = view.shape(job).gpu_milli_per_task;
  if (view.phase(job) == JobPhase::pending) {
    unlist(view, job);
    if (wanted > 0) list(view, job, sizes.least * per_task);
    return;
  }
  const std::uint32_t held = view.held_tasks(job);
  if (wanted == 0) {
    decision.preempt(job);
  } else if (wanted < held) {
    if (!resize(decision, job, wanted, sizes.least)) list(view, job, sizes.least * per_task);
  } else if (wanted > held) {
    list(view, job, per_task);
    growing_.push_back(job);
  }
}

void CarbonScaling::list(const View& view, JobId job, MilliGpu milli) {
  Plan& plan = plan_of(job);
  if (view.curve(job) != nullptr) {
    plan.due_milli = milli;
    elastic_.add(milli, turn_of(view, job));
  } else if (!plan.in_heap) {
    plan.in_heap = true;
    rigid_.push(view, job, plan.latest_end.us);
  }
}

void CarbonScaling::unlist(const View& view, JobId job) {
  MilliGpu& milli = plan_of(job).due_milli;
  if (milli >= 0) elastic_.remove(milli, turn_of(view, job));
  milli = -1;
}

// What is free, by turns.
void CarbonScaling::give(const View& view, Decision& decision) {
  DueJobs::Turn last = first_turn;
  const auto give_elastic_before = [&](const DueJobs::Turn& end) {
    for (;;) {
      const auto next = elastic_.next(last, view.cluster().free_gpu_milli());
      if (!next || !(*next < end)) return;
      last = *next;
      give_elastic(view, decision, next->place.job);
    }
  };
  rigid_.start_in_order(true, settles_larger(view.options().placement, view), [&](JobId job) {
    Plan& plan = plan_of(job);
    if (plan.wanted > 0) {
      give_elastic_before(turn_of(view, job));
      if (decision.start(job) != Verdict::ok) return false;
    }
    plan.in_heap = false;
    return true;
  });
  give_elastic_before(last_turn);
  for (const JobId job : growing_) {
    if (view.phase(job) == JobPhase::running) unlist(view, job);
  }
  growing_.clear();
}

void CarbonScaling::give_elastic(const View& view, Decision& decision, JobId job) {
  const MilliGpu per_task = view.shape(job).gpu_milli_per_task;
  const bool runs = view.phase(job) == JobPhase::running;
  const std::uint32_t held = runs ? view.held_tasks(job) : 0;
  const std::uint32_t least = runs ? held + 1 : JobSizes(view, job).least;
  const MilliGpu room = per_task == 0 ? plan_of(job).wanted : view.cluster().free_gpu_milli() / per_task;
  const auto most = static_cast<std::uint32_t>(std::min<MilliGpu>(plan_of(job).wanted, held + room));
  if (!runs) {
    if (start_largest(decision, job, most, least)) unlist(view, job);
  } else if (!resize(decision, job, most, least)) {
    unlist(view, job);
    list(view, job, JobSizes(view, job).least * per_task);
  }
}

// Starts it with the most tasks that fit; false when none do.
bool CarbonScaling::start_largest(Decision& decision, JobId job, std::uint32_t most, std::uint32_t least) {
  for (std::uint32_t tasks = most; tasks >= least && tasks > 0; --tasks) {
    if (decision.start_with(job, tasks) == Verdict::ok) return true;
  }
  return false;
}

// Stops a running job and starts it with the most tasks that fit, or leaves it as it was. False when it waits now.
bool CarbonScaling::resize(Decision& decision, JobId job, std::uint32_t most, std::uint32_t least) {
  if (most < least) return true;
  decision.preempt(job);
  return start_largest(decision, job, most, least) || decision.restore(job) == Verdict::ok;
}

void CarbonScaling::set_turn(JobId job, Time time) {
  Plan& plan = plan_of(job);
  if (plan.next != Time::max()) turns_.erase({plan.next, index(job)});
  if (time != Time::max()) turns_.emplace(time, index(job));
  plan.next = time;
}

namespace {

Result<AnyPolicy> make_carbonscaler(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto signal = signal_of("carbonscaler", parameters, context);
  if (!signal) return Unexpected{signal.error()};
  if ((*signal)->is_empty()) return lacks_signal("policy carbonscaler", parameters);
  const auto slack = slack_of("carbonscaler", parameters, context);
  if (!slack) return Unexpected{slack.error()};
  auto estimator = make_duration_estimator(parameters, context);
  if (!estimator) return Unexpected{estimator.error()};
  const CarbonScalingOptions options{
      .forecast = forecast_of(parameters, context), .slack = *slack, .slot = from_seconds(parameters.number("slot_s"))};
  return AnyPolicy(CarbonScaling(options, **signal, *std::move(estimator), context.jobs->replicas()));
}

std::vector<ParameterInfo> carbonscaler_parameters() {
  std::vector<ParameterInfo> all = signal_parameters();
  for (ParameterInfo& parameter : slack_parameters()) all.push_back(std::move(parameter));
  all.push_back({.name = "slot_s",
                 .fallback = 3600.0,
                 .meaning = "a job's size holds for so long, from its arrival on",
                 .least = 1,
                 .most = 86'400});
  for (ParameterInfo& parameter : estimate_parameters("requested")) all.push_back(std::move(parameter));
  return all;
}

}  // namespace

PolicyInfo carbonscaler_info() {
  return {.name = "carbonscaler",
          .summary = "elastic: jobs are larger while electricity is clean or cheap, smaller or suspended else",
          .source =
              "Hanafy et al., CarbonScaler, POMACS 7(3), 2023, Algorithm 1, for each job as if it were alone; draws go "
              "with tasks",
          .complexity = "O(shapes + log waiting), and a plan for each job and slot",
          .parameters = carbonscaler_parameters(),
          .make = make_carbonscaler,
          .preemptive = true,
          .asymmetries = {{Symmetry::time_scale, "waits, slots and forecasts are of hours and days of the clock"}}};
}

}  // namespace gpusched
