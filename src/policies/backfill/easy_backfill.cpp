// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/easy_backfill.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/policies/backfill/backfill.hpp"

namespace gpusched {

void Reservation::make(const View& view, const EstimatedEnds& ends, JobId job) {
  cluster_ = view.cluster();
  shape_ = view.shape(job);
  vc_ = view.queue_of(job);
  rule_ = view.options().placement;
  time_ = Time::max();
  for (const EstimatedEnds::End& end : ends.ends()) {
    if (end.time > time_) return;
    cluster_.release(view.grants(end.job), view.shape(end.job), view.queue_of(end.job));
    if (time_ == Time::max() && fits()) time_ = end.time;
  }
}

bool Reservation::fits() {
  const std::uint32_t grants = cluster_.place(shape_, vc_, rule_);
  if (grants == no_index) return false;
  cluster_.release(grants, shape_, vc_);
  cluster_.free_grants(grants);
  return true;
}

bool Reservation::take_beside(const Shape& shape, const std::vector<NodeTasks>& nodes) {
  const std::uint32_t grants = cluster_.place_on(shape, vc_, nodes.data(), nodes.size());
  if (grants == no_index) return false;
  const bool fits_still = fits();
  if (!fits_still) cluster_.release(grants, shape, vc_);
  cluster_.free_grants(grants);
  return fits_still;
}

void EasyBackfill::decide(const OracleView& view, Decision& decision) {
  queue_.observe(view);
  reserved_job_ = no_job;
  WaitingJobs& waiting = queue_.waiting();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    waiting.begin_pass(queue);
    JobId head = waiting.first(queue, view.now());
    while (head != no_job && decision.start(head) == Verdict::ok) {
      queue_.start(view, head);
      head = waiting.first(queue, view.now());
    }
    if (head != no_job) backfill(queue, head, view, decision);
  }
}

void EasyBackfill::backfill(std::uint32_t queue, JobId head, const OracleView& view, Decision& decision) {
  if (!open_lanes(queue, head, view)) return;
  reservation_.make(view, queue_.ends(), head);
  reserved_job_ = head;
  present_ = view.cluster();
  while (!lanes_.empty()) {
    const auto before = [&](const Lane& a, const Lane& b) { return queue_.waiting().before(view, a.first, b.first); };
    const auto best = std::min_element(lanes_.begin(), lanes_.end(), before);
    if (!start_first(*best, queue, view, decision)) lanes_.erase(best);
  }
}

// The shapes that may fit now, the head's own apart. False when there are none.
bool EasyBackfill::open_lanes(std::uint32_t queue, JobId head, const View& view) {
  lanes_.clear();
  for (const std::uint32_t shape : queue_.waiting().shapes(queue)) {
    if (shape == view.demand(head) || !view.cluster().may_fit(view.shape_of_demand(shape), queue)) continue;
    KineticTournament& jobs = queue_.waiting().jobs(queue, shape);
    lanes_.push_back({.shape = shape, .first = jobs[jobs.first(view.now())].job});
  }
  return !lanes_.empty();
}

JobId EasyBackfill::first_of(const Lane& lane, std::uint32_t queue, const View& view) {
  KineticTournament& jobs = queue_.waiting().jobs(queue, lane.shape);
  if (jobs.empty()) return no_job;
  if (!lane.limited) return jobs[jobs.first(view.now())].job;
  return queue_.first_within(view, queue, lane.shape, reservation_.time() - view.now());
}

// Starts the lane's first job if that delays nothing, or learns that the lane is limited. False when the lane is done.
bool EasyBackfill::start_first(Lane& lane, std::uint32_t queue, const OracleView& view, Decision& decision) {
  const JobId job = lane.first;
  const Shape& shape = view.shape(job);
  const std::uint32_t grants = present_.place(shape, queue, view.options().placement);
  if (grants == no_index) return false;
  nodes_.clear();
  for (std::uint32_t at = grants; at != no_index; at = present_.grant(at).next) {
    const Grant& grant = present_.grant(at);
    const bool on_one_device = shape.is_share() && grant.devices != 0;
    nodes_.push_back(
        {.node = grant.node,
         .tasks = grant.tasks,
         .device = on_one_device ? static_cast<std::uint32_t>(std::countr_zero(grant.devices)) : no_index});
  }
  const bool ends_in_time = view.now() + queue_.ends().estimate(job) <= reservation_.time();
  if (ends_in_time || (!lane.limited && reservation_.take_beside(shape, nodes_))) {
    if (decision.start_on(job, nodes_) != Verdict::ok) return false;
    queue_.start(view, job);
  } else {
    present_.release(grants, shape, queue);
    lane.limited = true;
  }
  present_.free_grants(grants);
  lane.first = first_of(lane, queue, view);
  return lane.first != no_job;
}

BackfillInfo easy_backfill_info() {
  return {.name = "easy",
          .summary = "the first waiting job has a reservation; others start where they do not delay it",
          .source = "Lifka, The ANL/IBM SP scheduling system, JSSPP'95; Mu'alem and Feitelson, TPDS 2001",
          .complexity = "O(shapes + log n) a start; with something to backfill, O(nodes + running jobs) too",
          .parameters = estimate_parameters("requested"),
          .make = [](PriorityOrder order, AnyDurationEstimator estimator, const PolicyParameters&,
                     const PolicyContext&) { return AnyPolicy(EasyBackfill(std::move(order), std::move(estimator))); }};
}

}  // namespace gpusched
