// SPDX-License-Identifier: Apache-2.0
/// How much longer a job is believed to run by who looks ahead.
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

}  // namespace gpusched
