// SPDX-License-Identifier: Apache-2.0
/// Bursting: a job waits at home for as long as a waiting policy says, then goes to a cloud.
#pragma once

#include <string_view>

#include "gpusched/sites/router.hpp"
#include "src/policies/burst/waiting.hpp"

namespace gpusched {

/// Starburst's waiting policies (waiting.hpp) as a router. Run times are those that RouterView::predicted() expects. A
/// job whose home is the cloud stays there, as does one that went there; one that may not run at home goes at once.
struct BurstRouter {
  BurstPolicy policy = {};  ///< how long
  SiteId cloud = 0;         ///< where then
  /// A job waits at home too where it may not run, as in Starburst's simulator, whose queue takes such jobs.
  bool waits_anywhere = false;
  [[nodiscard]] std::string_view name() const { return "burst"; }
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    const SiteId home = view.home(job);
    if (home == cloud || !view.may_run(job, cloud)) return {home};
    if (view.place(job) == cloud || (!waits_anywhere && !view.may_run(job, home))) return {cloud};
    constexpr double longest_h = 1e9;
    const double gpus = static_cast<double>(view.shape(job).gpu_milli()) / static_cast<double>(whole_gpu);
    const double wait_h = burst_wait_h(policy, to_seconds(view.predicted(job)) / 3600, gpus);
    return {.site = home,
            .until = later_by(view.eligible(job), from_seconds(std::min(wait_h, longest_h) * 3600)),
            .then = cloud};
  }
};

}  // namespace gpusched
