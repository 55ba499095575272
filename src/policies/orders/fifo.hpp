// SPDX-License-Identifier: Apache-2.0
/// First in, first out: the baseline of every scheduler paper.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/policies/queues/job_heaps.hpp"

namespace gpusched {

/// Starts waiting jobs in order of submission; the first that does not fit blocks all behind it in its scheduling queue
/// (virtual cluster). O(1) an event and a start.
struct Fifo {
  [[nodiscard]] std::string_view name() const { return "fifo"; }

  void decide(const View& view, Decision& decision) {
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      const JobRange waiting = view.queue(queue);
      while (!waiting.empty() && decision.start(waiting.front()) == Verdict::ok) {
      }
    }
  }
};

/// Order of submission, passing over what does not fit: "first fit job" in the Tiresias simulator. O(shapes) an event.
struct FifoSkip {
  [[nodiscard]] std::string_view name() const { return "fifo-skip"; }

  void decide(const View& view, Decision& decision) {
    for (const Event& event : view.events()) {
      const View then = view.at(event);
      if (enters_queue(event.kind)) waiting_.push(then, event.job, then.queue_place(event.job).number);
      if (event.kind == EventKind::withdraw) waiting_.erase(then, event.job);
    }
    decision.keep_order();
    waiting_.start_in_order(view, decision, true);
  }

 private:
  JobHeaps<std::uint32_t> waiting_;
};

}  // namespace gpusched
