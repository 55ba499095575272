// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/carbon_starts.hpp"

#include <algorithm>
#include <string>

namespace gpusched {
namespace {

bool reads_a_signal(StartRule rule) { return rule != StartRule::no_wait && rule != StartRule::all_wait; }

}  // namespace

bool CarbonStarts::clairvoyant() const {
  const bool foresees = reads_a_signal(options_.rule) && options_.forecast.kind != Forecast::Kind::persistence;
  return foresees || estimator_.clairvoyant();
}

void CarbonStarts::decide(const OracleView& view, Decision& decision) {
  estimator_.observe(view);
  plans_.resize(view.job_count());
  for (const Event& event : view.events()) note(view.at(event), event);
  for (const JobId job : came_) plan(view, job);
  came_.clear();
  while (!turns_.empty() && turns_.begin()->first <= view.now()) {
    take_turn(view, decision, JobId{turns_.begin()->second});
  }
  start_due(view, decision);
  if (options_.reserved > 0) start_early(view, decision);
  const Time next = turns_.empty() ? Time::max() : turns_.begin()->first;
  if (next != Time::max() && next != awake_at_) decision.wake(next);
  awake_at_ = next;
}

void CarbonStarts::note(const View& view, const Event& event) {
  if (event.kind == EventKind::withdraw) withdraw(view, event.job);
  if (leaves_cluster(event.kind)) forget(event.job);
  if (enters_queue(event.kind)) came_.push_back(event.job);
}

// Its plan is over. Precondition: it is in no heap.
void CarbonStarts::forget(JobId job) {
  Plan& plan = plan_of(job);
  set_turn(job, Time::max());
  plan.left.clear();
  reserved_held_ -= plan.reserved;
  plan.reserved = 0;
}

void CarbonStarts::withdraw(const View& view, JobId job) {
  Plan& plan = plan_of(job);
  if (plan.waits_for_room) due_.erase(view, job);
  if (plan.may_be_early) early_.erase(view, job);
  plan.waits_for_room = plan.may_be_early = false;
  std::erase(came_, job);
  forget(job);
}

void CarbonStarts::plan(const OracleView& view, JobId job) {
  Plan& plan = plan_of(job);
  const bool is_replica = index(job) < replicas_;
  const Time length = std::clamp(estimator_.estimate(view, job), Time{1}, longest_planned);
  if (plan.latest_end == Time::max()) plan.latest_end = options_.slack.latest_end(view, job, length);
  const Time wait = std::clamp(plan.latest_end - view.now() - length, Time{}, longest_planned);
  plan.left = planned_runs(is_replica ? StartRule::no_wait : options_.rule, *signal_, options_.forecast,
                           {.now = view.now(),
                            .wait = wait,
                            .length = length,
                            .expected = length,
                            .step = options_.step,
                            .slot = options_.slot});
  set_turn(job, plan.left.front().begin);
  plan.may_be_early = options_.reserved > 0 && plan.next > view.now() && view.shape(job).gpu_milli() > 0;
  if (plan.may_be_early) early_.push(view, job, 0);
}

void CarbonStarts::set_turn(JobId job, Time time) {
  Plan& plan = plan_of(job);
  if (plan.next != Time::max()) turns_.erase({plan.next, index(job)});
  if (time != Time::max()) turns_.emplace(time, index(job));
  plan.next = time;
}

void CarbonStarts::take_turn(const View& view, Decision& decision, JobId job) {
  const Plan& plan = plan_of(job);
  if (plan.next == plan.left.front().begin) {
    begin_stretch(view, job);
  } else {
    end_stretch(view, decision, job);
  }
}

void CarbonStarts::begin_stretch(const View& view, JobId job) {
  Plan& plan = plan_of(job);
  if (plan.may_be_early) early_.erase(view, job);
  plan.may_be_early = false;
  due_.push(view, job, plan.left.front().begin.us);
  plan.waits_for_room = true;
  const bool is_last = plan.left.size() == 1;
  set_turn(job, is_last ? Time::max() : plan.left.front().end);
}

void CarbonStarts::end_stretch(const View& view, Decision& decision, JobId job) {
  Plan& plan = plan_of(job);
  if (plan.waits_for_room) {
    due_.erase(view, job);
    plan.waits_for_room = false;
  } else {
    decision.preempt(job);
  }
  plan.left.erase(plan.left.begin());
  set_turn(job, plan.left.front().begin);
}

void CarbonStarts::start_due(const View& view, Decision& decision) {
  due_.start_in_order(options_.skip, settles_larger(view.options().placement, view), [&](JobId job) {
    if (decision.start(job) != Verdict::ok) return false;
    plan_of(job).waits_for_room = false;
    note_start(view, job);
    return true;
  });
}

void CarbonStarts::start_early(const View& view, Decision& decision) {
  early_.start_in_order(true, settles_larger(view.options().placement, view), [&](JobId job) {
    if (!fits_reserved(view, job) || decision.start(job) != Verdict::ok) return false;
    plan_of(job).may_be_early = false;
    set_turn(job, Time::max());
    note_start(view, job);
    return true;
  });
}

bool CarbonStarts::fits_reserved(const View& view, JobId job) const {
  return reserved_held_ + view.shape(job).gpu_milli() <= options_.reserved;
}

// Whoever starts takes reserved GPUs, early or not, if all that it asks for is there.
void CarbonStarts::note_start(const View& view, JobId job) {
  if (options_.reserved == 0 || !fits_reserved(view, job)) return;
  plan_of(job).reserved = view.shape(job).gpu_milli();
  reserved_held_ += plan_of(job).reserved;
}

namespace {

CarbonStartOptions carbon_options(const PolicyParameters& parameters, const PolicyContext& context) {
  return {.rule = *value_from_name(start_rule_names, parameters.word("rule")),
          .forecast = forecast_of(parameters, context),
          .step = from_seconds(parameters.number("step_s")),
          .slot = from_seconds(parameters.number("slot_s")),
          .skip = parameters.flag("skip"),
          .reserved = static_cast<MilliGpu>(parameters.number("reserved_gpus")) * whole_gpu};
}

Result<AnyPolicy> make_carbon(const PolicyParameters& parameters, const PolicyContext& context) {
  CarbonStartOptions options = carbon_options(parameters, context);
  const auto signal = signal_of("carbon", parameters, context);
  if (!signal) return Unexpected{signal.error()};
  const std::string rule = "policy carbon: rule " + parameters.word("rule");
  if (reads_a_signal(options.rule) && (*signal)->is_empty()) return lacks_signal(rule, parameters);
  const auto slack = slack_of("carbon", parameters, context);
  if (!slack) return Unexpected{slack.error()};
  options.slack = *slack;
  if (options.reserved > 0 && suspends(options.rule)) {
    return unexpected(rule + " suspends jobs; reserved_gpus goes with the others");
  }
  auto estimator = make_duration_estimator(parameters, context);
  if (!estimator) return Unexpected{estimator.error()};
  return AnyPolicy(CarbonStarts(options, **signal, *std::move(estimator), context.jobs->replicas()));
}

std::vector<ParameterInfo> carbon_parameters() {
  constexpr double day_s = 86'400;
  std::vector<ParameterInfo> all{{.name = "rule",
                                  .fallback = std::string("carbon-time"),
                                  .meaning = "when a job that may wait starts",
                                  .words = names_in(start_rule_names)}};
  const auto add = [&all](std::vector<ParameterInfo> more) { all.insert(all.end(), more.begin(), more.end()); };
  add(signal_parameters());
  add(slack_parameters());
  add({{.name = "step_s",
        .fallback = 3600.0,
        .meaning = "between the starts that lowest-window and carbon-time try",
        .least = 1,
        .most = day_s},
       {.name = "slot_s",
        .fallback = 5.0,
        .meaning = "slot of lowest-slot and of the rules that suspend, from the job's arrival on",
        .least = 1,
        .most = day_s},
       {.name = "skip", .fallback = true, .meaning = "a job that does not fit at its start holds back no other"},
       {.name = "reserved_gpus",
        .fallback = 0.0,
        .meaning = "jobs start before their time while they fit so many GPUs (RES-First; with all-wait AllWait)",
        .most = 1e9,
        .is_count = true}});
  add(estimate_parameters("requested"));
  return all;
}

}  // namespace

PolicyInfo carbon_info() {
  return {.name = "carbon",
          .summary = "jobs wait, or are suspended, until electricity is clean or cheap",
          .source =
              "GAIA (Hanafy et al., ASPLOS 2024; github.com/umassos/GAIA), with Ecovisor (ASPLOS 2023) and "
              "WaitAwhile (Middleware 2021) as it runs them; a start reckons with the job's estimate, not the "
              "mean of its queue",
          .complexity = "O(shapes + log waiting), and a plan for each job",
          .parameters = carbon_parameters(),
          .make = make_carbon,
          .preemptive = true,
          .asymmetries = {{Symmetry::time_scale, "waits and forecasts are of hours and days of the clock"}}};
}

}  // namespace gpusched
