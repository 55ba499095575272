// SPDX-License-Identifier: Apache-2.0
/// PriorityOrder: the order in which a list-scheduling policy starts waiting jobs, a score for each. The list
/// scheduler, every way of backfilling and the SC'20 evaluation protocol use it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

/// The facts about a job from which its score is computed.
struct JobFacts {
  double submit_s = 0;
  double requested_s = 0;  ///< the estimated run time
  double processors = 1;   ///< GPUs; a job that asks for none counts its tasks
  double wait_s = 0;       ///< since submission
  double deadline_s = 0;   ///< an instant; infinite when there is none
  double priority = 0;     ///< larger is more urgent
};

/// GPUs of a shape, a share counting as its fraction; tasks when it asks for none.
inline double processors_of(const Shape& shape) {
  return shape.gpu_milli() > 0 ? static_cast<double>(shape.gpu_milli()) / static_cast<double>(whole_gpu)
                               : static_cast<double>(shape.tasks);
}

/// A score, smallest first; ties go to the earlier place (QueuePlace).
struct PriorityOrder {
  std::string name;
  std::function<double(const JobFacts&)> score;
  /// Empty: the score is computed once, when the job begins to wait. Otherwise jobs are ordered at any instant by
  /// growth x wait, greatest first; it must be the order of `score`. A linear form lets the times of overtaking be
  /// computed in advance.
  std::function<double(const JobFacts&)> growth;
  AnyDurationEstimator estimator;

  [[nodiscard]] bool ages() const { return static_cast<bool>(growth); }
};

/// Seconds of `t`; infinite for Time::max().
inline double seconds_or_infinity(Time t) {
  return t == Time::max() ? std::numeric_limits<double>::infinity() : to_seconds(t);
}

/// The facts of a job at view.now(), with `requested` as its estimate.
inline JobFacts facts_of(const View& view, JobId job, Time requested) {
  // A microsecond is the least time there is: it keeps ratios finite.
  return {.submit_s = to_seconds(view.submit(job)),
          .requested_s = to_seconds(std::max(requested, Time{1})),
          .processors = processors_of(view.shape(job)),
          .wait_s = to_seconds(view.now() - view.submit(job)),
          .deadline_s = seconds_or_infinity(view.deadline(job)),
          .priority = static_cast<double>(view.priority(job))};
}

}  // namespace gpusched
