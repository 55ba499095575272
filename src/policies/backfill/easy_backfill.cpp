// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/easy_backfill.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/policies/backfill/backfill.hpp"

namespace gpusched {

void Reservation::make(const View& view, const EstimatedEnds& ends, JobId job) {
  mirror_.follow(view.cluster());
  shape_ = view.shape(job);
  vc_ = view.queue_of(job);
  rule_ = view.placement(job);
  speeds_ = view.speeds(job);
  time_ = Time::max();
  for (const EstimatedEnds::End& end : ends.ends()) {
    if (end.time > time_) return;
    mirror_.state().release_same(view.cluster(), view.grants(end.job), view.shape(end.job), view.queue_of(end.job));
    if (time_ == Time::max() && fits()) time_ = end.time;
  }
}

bool Reservation::take_beside(const Shape& shape, const ClusterState& present, std::uint32_t held) {
  ClusterState& cluster = mirror_.state();
  const std::uint32_t grants = cluster.take_same(present, held, shape, vc_);
  if (grants == no_index) return false;
  const bool fits_still = fits();
  if (!fits_still) cluster.release(grants, shape, vc_);
  cluster.free_grants(grants);
  return fits_still;
}

void EasyBackfill::decide(const OracleView& view, Decision& decision) {
  queue_.observe(view);
  reserved_job_ = no_job;
  WaitingJobs& waiting = queue_.waiting();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    waiting.begin_pass(view, queue);
    JobId head = waiting.first(queue, view.now());
    Verdict verdict = Verdict::ok;
    while (head != no_job && (verdict = decision.start(head)) == Verdict::ok) {
      queue_.start(view, head);
      head = waiting.first(queue, view.now());
    }
    // Nothing is reserved for a job that a limit holds back from now on: it is gone at the next decision, which
    // follows.
    if (head != no_job && verdict != Verdict::over_limit) backfill(queue, head, view, decision);
  }
}

void EasyBackfill::backfill(std::uint32_t queue, JobId head, const OracleView& view, Decision& decision) {
  WaitingJobs& waiting = queue_.waiting();
  waiting.pass_over(view, head);
  if (next_unlimited(queue, view) == no_job) return;
  reservation_.make(view, queue_.ends(), head);
  reserved_job_ = head;
  present_.follow(view.cluster());
  limited_.clear();
  const auto before = [&](JobId a, JobId b) { return waiting.before(view, a, b); };
  for (;;) {
    const JobId next = next_unlimited(queue, view);
    const auto limited = std::min_element(limited_.begin(), limited_.end(), before);
    if (limited != limited_.end() && (next == no_job || before(*limited, next))) {
      const JobId job = *limited;
      limited_.erase(limited);
      if (start_beside(job, true, queue, view, decision) == Beside::started) add_limited(job, queue, view);
      continue;
    }
    if (next == no_job) return;
    const Beside outcome = start_beside(next, false, queue, view, decision);
    if (outcome == Beside::no_room) waiting.pass_over(view, next);
    if (outcome != Beside::delays_head) continue;
    waiting.pass_over_demand_of(view, next);
    add_limited(next, queue, view);
  }
}

// The first waiting job of the demands that may fit and are not known to be limited, or no_job.
JobId EasyBackfill::next_unlimited(std::uint32_t queue, const View& view) {
  for (;;) {
    const JobId job = queue_.waiting().first(queue, view.now());
    if (job == no_job || view.cluster().may_fit(view.shape(job), queue)) return job;
    queue_.waiting().pass_over(view, job);
  }
}

// Of the demand of `like`, the first job that should end before the reservation stands for those that may start.
void EasyBackfill::add_limited(JobId like, std::uint32_t queue, const View& view) {
  const std::uint32_t demand = view.demand(like);
  if (queue_.waiting().jobs(queue, demand).empty()) return;
  const JobId first = queue_.first_within(view, queue, demand, reservation_.time() - view.now());
  if (first != no_job) limited_.push_back(first);
}

// Starts the job if that delays nothing. `limited`: its demand is known to have no room beside the reserved job.
EasyBackfill::Beside EasyBackfill::start_beside(JobId job, bool limited, std::uint32_t queue, const OracleView& view,
                                                Decision& decision) {
  const Shape& shape = view.shape(job);
  ClusterState& present = present_.state();
  const std::uint32_t grants = present.place(shape, queue, view.placement(job), view.speeds(job));
  if (grants == no_index) return Beside::no_room;
  nodes_.clear();
  for (std::uint32_t at = grants; at != no_index; at = present.grant(at).next) {
    const Grant& grant = present.grant(at);
    const bool on_one_device = shape.is_share() && grant.devices != 0;
    nodes_.push_back(
        {.node = grant.node,
         .tasks = grant.tasks,
         .device = on_one_device ? static_cast<std::uint32_t>(std::countr_zero(grant.devices)) : no_index});
  }
  const bool ends_in_time = view.now() + queue_.ends().estimate(job) <= reservation_.time();
  Beside outcome = Beside::delays_head;
  if (ends_in_time || (!limited && reservation_.take_beside(shape, present, grants))) {
    if (decision.start_on(job, nodes_) != Verdict::ok) return Beside::no_room;
    queue_.start(view, job);
    outcome = Beside::started;
  } else {
    present.release(grants, shape, queue);
  }
  present.free_grants(grants);
  return outcome;
}

BackfillInfo easy_backfill_info() {
  BackfillInfo info{
      .name = "easy",
      .summary = "the first waiting job has a reservation; others start where they do not delay it",
      .source = "Lifka, The ANL/IBM SP scheduling system, JSSPP'95; Mu'alem and Feitelson, TPDS 2001",
      .complexity =
          "O(shapes + log n) a start; with something to backfill, O(log n) for each job that ends by the reservation "
          "too",
      .parameters = estimate_parameters("requested"),
      .make = [](PriorityOrder order, AnyDurationEstimator estimator, const PolicyParameters& parameters,
                 const PolicyContext& context) {
        return AnyPolicy(EasyBackfill(std::move(order), std::move(estimator), overrun_rule(parameters, *context.jobs)));
      }};
  info.asymmetries = {{Symmetry::time_scale, overrun_by_the_clock}};
  info.parameters.push_back(overrun_parameter("auto"));
  return info;
}

}  // namespace gpusched
