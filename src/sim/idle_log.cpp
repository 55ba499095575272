// SPDX-License-Identifier: Apache-2.0
#include "src/sim/idle_log.hpp"

#include <algorithm>

namespace gpusched {

void IdleLog::wait(const View& view, JobId job, int sign) {
  const Shape& shape = view.shape(job);
  if (shape.gpu_milli_per_task == 0) return;  // it waits for no GPU
  const Demand demand{shape.gpu_milli(), view.shape_id(job), view.queue_of(job)};
  std::uint32_t& count = waiting_[demand];
  count += static_cast<std::uint32_t>(sign);
  if (count == 0) waiting_.erase(demand);
}

namespace {

// The first job that waits for such a shape in the queue, which stands for the others: they may draw more or less.
bool is_first_capped(const View& view, std::uint32_t shape, std::uint32_t queue) {
  const JobRange jobs = view.queue(queue);
  const auto first = std::find_if(jobs.begin(), jobs.end(), [&](JobId job) { return view.shape_id(job) == shape; });
  return first != jobs.end() && power_cap_refuses(view, *first);
}

}  // namespace

WaitCause IdleLog::cause_now(const View& view) const {
  if (waiting_.empty()) return WaitCause::limit;
  const bool has_caps = view.knows_power() && !view.power_model().caps.empty();
  WaitCause of_smallest = WaitCause::no_gpus;
  bool is_first = true, is_capped = false;
  for (const auto& [demand, count] : waiting_) {
    const auto& [milli, shape_id, queue] = demand;
    const Shape& shape = view.shape_of_id(shape_id);
    if (!is_first && !view.cluster().may_fit(shape, queue)) continue;
    // Rules that look at a job's family differ in which nodes they take, not in whether they find some.
    const WaitState state = wait_state(view, *cluster_, shape, queue, view.options().placement);
    if (state.cause == WaitCause::policy) {
      if (!has_caps || !is_first_capped(view, shape_id, queue)) return state.cause;
      is_capped = true;
    }
    if (is_first) of_smallest = state.cause;
    is_first = false;
  }
  return is_capped ? WaitCause::power_cap : of_smallest;
}

void IdleLog::observe(const OracleView& view, std::span<const Event> events) {
  if (!is_begun_) span_.begin(view);
  is_begun_ = true;
  span_.pass(
      view.now(), [this](Time span) { sums_[static_cast<std::size_t>(cause_)] += detail::WideInt{free_} * span.us; },
      [this] { at_begin_ = sums_; });
  for (const Event& event : events) {
    if (!concerns_job(event.kind)) continue;
    if (event.kind == EventKind::start) wait(view, event.job, -1);
    if (event.kind == EventKind::preempt || enters_queue(event.kind)) wait(view.at(event), event.job, 1);
    if (event.kind == EventKind::withdraw) wait(view.at(event), event.job, -1);
    const bool ends =
        event.kind == EventKind::finish || event.kind == EventKind::withdraw || event.kind == EventKind::refuse;
    if (ends && span_.measures(event.job)) at_end_ = sums_;
  }
  const bool some_wait = !waiting_.empty() || view.held_back().gpu_milli > 0;
  free_ = some_wait ? view.cluster().free_gpu_milli() : 0;
  if (free_ > 0) cause_ = cause_now(view);
}

}  // namespace gpusched
