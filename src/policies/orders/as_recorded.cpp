// SPDX-License-Identifier: Apache-2.0
#include "src/policies/orders/as_recorded.hpp"

#include <algorithm>
#include <functional>

namespace gpusched {

void AsRecorded::decide(const View& view, Decision& decision) {
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::withdraw) withdraw(view.at(event), event.job);
    if (!enters_queue(event.kind)) continue;
    const bool retries = event.kind != EventKind::submit;
    const Time recorded = jobs_->start(event.job);
    const Time start = retries || recorded == Time::max() ? view.now() : recorded;
    if (start <= view.now()) {
      due_.push(view.at(event), event.job, start.us);
    } else {
      later_.emplace_back(start.us, index(event.job));
      std::push_heap(later_.begin(), later_.end(), std::greater<>());
    }
  }
  while (!later_.empty() && later_.front().first <= view.now().us) {
    std::pop_heap(later_.begin(), later_.end(), std::greater<>());
    due_.push(view, JobId{later_.back().second}, later_.back().first);
    later_.pop_back();
  }
  due_.start_in_order(view, decision, true);
  if (later_.empty()) return;
  const Time next{later_.front().first};
  if (next == awake_at_) return;
  awake_at_ = next;
  decision.wake(next);
}

void AsRecorded::withdraw(const View& view, JobId job) {
  if (std::erase_if(later_, [&](const auto& start) { return start.second == index(job); }) > 0) {
    std::make_heap(later_.begin(), later_.end(), std::greater<>());
  } else {
    due_.erase(view, job);
  }
}

PolicyInfo as_recorded_info() {
  return {.name = "as-recorded",
          .summary = "every job at the start that the trace records: what the cluster's own scheduler did",
          .source = "the trace; a job that finds no room then starts as soon as there is, the earliest recorded first",
          .complexity = "O(shapes + log waiting)",
          .make = [](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            if (context.jobs->has_starts()) return AnyPolicy(AsRecorded(*context.jobs));
            return unexpected("policy as-recorded: the trace has no recorded start times (column start)");
          }};
}

}  // namespace gpusched
