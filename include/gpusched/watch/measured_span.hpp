// SPDX-License-Identifier: Apache-2.0
/// MeasuredSpan: the clock of observers that integrate over the span of the measured jobs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gpusched/core/types.hpp"
#include "gpusched/data/measure_window.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched::detail {

/// Tells the time that passed since the last instant, divided where the measured span begins: with the submission of
/// its first job, whatever is observed then.
class MeasuredSpan {
 public:
  explicit MeasuredSpan(MeasureWindow window) : window_(window) {}

  /// Before the first pass(). Precondition: the table has jobs.
  void begin(const OracleView& view) {
    const std::uint32_t jobs = view.job_count();
    window_ = {window_.first, window_.end(jobs) - std::min(window_.first, jobs)};
    begin_ = view.jobs().submit(JobId{std::min(window_.first, jobs - 1)});
    last_submit_ = view.jobs().submit(JobId{std::max(window_.end(jobs), 1u) - 1});
    last_ = std::min(view.now(), begin_);
  }

  /// Calls add(span) for the time since the last call, and mark() at the begin of the measured span.
  template <class Add, class Mark>
  void pass(Time now, Add add, Mark mark) {
    if (begin_ <= now && !std::exchange(begun_, true)) {
      add(begin_ - last_);
      last_ = begin_;
      mark();
    }
    if (now == last_) return;  // after the decision of an instant
    add(now - last_);
    last_ = now;
  }

  /// Of the time that pass() adds at present, what passes before the last measured submission.
  [[nodiscard]] Time while_submitting(Time span) const { return std::clamp(last_submit_ - last_, Time{}, span); }

  /// True when the job is measured: the span goes on at least until it ends.
  [[nodiscard]] bool measures(JobId job) const { return index(job) - window_.first < window_.count; }

 private:
  MeasureWindow window_;
  Time begin_{}, last_submit_{}, last_{};
  bool begun_ = false;
};

}  // namespace gpusched::detail
