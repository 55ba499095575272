// SPDX-License-Identifier: Apache-2.0
/// What who looks ahead believes of jobs, and knows of those that are done.
#pragma once

#include <algorithm>

#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

/// What is left by the estimator of the job's present attempt, from a second to ten years. A job that outlived its
/// prediction is believed to run for as long again.
inline Time believed_left(AnyDurationEstimator& estimator, const OracleView& view, JobId job) {
  constexpr Time least = whole_seconds(1), most = whole_seconds(std::int64_t{10} * 365 * 86400);
  const Time whole = std::clamp(estimator.estimate(view, job), least, most);
  const Time ran = view.attempt(job) == 0 ? view.ran(job) : Time{};
  return whole > ran ? std::max(whole - ran, least) : std::clamp(ran, least, most);
}

/// Of a job that is done its work or, where it was cancelled or reached its limit, what it ran.
inline Time known_work(const OracleView& view, JobId job) {
  const bool was_cut = view.is_cancelled(job) || view.limit_left(job) == Time{};
  return was_cut ? std::min(view.ran(job), view.work(job)) : view.work(job);
}

}  // namespace gpusched
