// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/sc20_backfill.hpp"

#include <algorithm>
#include <utility>

#include "src/policies/backfill/backfill.hpp"

namespace gpusched {

void Sc20Backfill::decide(const OracleView& view, Decision& decision) {
  queue_.observe(view);
  if (chosen_.empty()) chosen_.resize(view.queue_count());
  for (const Event& event : view.events()) {
    if (event.kind != EventKind::withdraw) continue;
    Chosen& chosen = chosen_[view.queue_of(event.job)];
    if (chosen.job == event.job) chosen.job = no_job;
  }
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    Chosen& chosen = chosen_[queue];
    for (;;) {
      const bool fresh = chosen.job == no_job;
      if (fresh) {
        queue_.waiting().begin_pass(view, queue);
        chosen.job = queue_.waiting().first(queue, view.now());
        if (chosen.job == no_job) break;
      }
      if (start(chosen.job, view, decision)) {
        chosen.job = no_job;
        continue;
      }
      if (fresh) {
        reservation_.make(view, queue_.ends(), chosen.job);
        chosen.reserved = reservation_.time();
      }
      start_before(chosen, queue, view, decision);
      break;
    }
  }
}

bool Sc20Backfill::start(JobId job, const View& view, Decision& decision) {
  if (decision.start(job) != Verdict::ok) return false;
  queue_.start(view, job);
  return true;
}

// One pass in order of submission over those that should end strictly before the reserved instant.
void Sc20Backfill::start_before(const Chosen& chosen, std::uint32_t queue, const View& view, Decision& decision) {
  const Time longest = chosen.reserved - view.now() - Time{1};
  lanes_.clear();
  for (const std::uint32_t shape : queue_.waiting().demands(queue)) {
    if (shape == view.demand(chosen.job) || !view.cluster().may_fit(view.shape_of_demand(shape), queue)) continue;
    const JobId first = queue_.first_within(view, queue, shape, longest);
    if (first != no_job) lanes_.push_back({.shape = shape, .first = first});
  }
  while (!lanes_.empty()) {
    const auto next = std::min_element(lanes_.begin(), lanes_.end(), [&](const Lane& a, const Lane& b) {
      return view.queue_place(a.first) < view.queue_place(b.first);
    });
    // When one of a shape does not fit, none does.
    const bool started = start(next->first, view, decision);
    next->first = started ? queue_.first_within(view, queue, next->shape, longest) : no_job;
    if (next->first == no_job) lanes_.erase(next);
  }
}

BackfillInfo sc20_backfill_info() {
  BackfillInfo info{
      .name = "sc20",
      .summary =
          "the chosen job stays chosen until it fits; meanwhile others start in order of submission if they should end "
          "before",
      .source =
          "RLScheduler (SC'20) artifact; quirks: the reservation is never made anew, ends strictly before it, no room "
          "beside it is used",
      .complexity = "O(shapes + log n) a start; the reservation of a chosen job, O(nodes + running jobs)",
      .parameters = estimate_parameters("requested"),
      .make = [](PriorityOrder order, AnyDurationEstimator estimator, const PolicyParameters& parameters,
                 const PolicyContext& context) {
        return AnyPolicy(Sc20Backfill(std::move(order), std::move(estimator), overrun_rule(parameters, *context.jobs)));
      }};
  info.parameters.push_back(overrun_parameter("kill"));  // the artifact's
  return info;
}

}  // namespace gpusched
