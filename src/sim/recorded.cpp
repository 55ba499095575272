// SPDX-License-Identifier: Apache-2.0
#include "src/sim/recorded.hpp"

#include <algorithm>
#include <vector>

namespace gpusched {

namespace {

// The earliest that the job could have started; Time::max() where the log does not tell when a job ended that it waits
// for.
Time eligible(const JobTable& jobs, JobId job) {
  Time from = jobs.submit(job);
  for (const JobId before : jobs.dependencies().of(job)) {
    if (jobs.start(before) == Time::max()) return Time::max();
    from = std::max(from, later_by(later_by(jobs.start(before), jobs.work(before)), jobs.dependencies().delay(job)));
  }
  return from;
}

}  // namespace

std::optional<RecordedWaits> recorded_waits(const JobTable& jobs, MeasureWindow window) {
  const std::uint32_t end = window.end(jobs.size());
  RecordedWaits found{.measured = end - window.first};
  std::vector<std::int64_t> jcts, waits;
  detail::WideInt jct_sum = 0, wait_sum = 0;
  double slowdown_sum = 0;
  for (std::uint32_t i = window.first; i < end; ++i) {
    const JobId job{i};
    if (jobs.start(job) == Time::max()) continue;
    const Time from = eligible(jobs, job);
    if (from == Time::max()) continue;
    const Time wait = std::max(jobs.start(job) - from, Time{});
    const Time jct = later_by(wait, jobs.work(job));
    const Time bound = std::max(jobs.work(job), slowdown_bound);
    slowdown_sum += std::max(1.0, static_cast<double>(jct.us) / static_cast<double>(bound.us));
    jct_sum += jct.us;
    wait_sum += wait.us;
    jcts.push_back(jct.us);
    waits.push_back(wait.us);
  }
  if (jcts.empty()) return std::nullopt;
  found.jobs = static_cast<std::uint32_t>(jcts.size());
  const double count = found.jobs;
  found.avg_jct_s = detail::seconds(static_cast<double>(jct_sum) / count);
  found.median_jct_s = detail::seconds(detail::percentile(jcts, 0.50));
  found.p95_jct_s = detail::seconds(detail::percentile(jcts, 0.95));
  found.p99_jct_s = detail::seconds(detail::percentile(jcts, 0.99));
  found.avg_wait_s = detail::seconds(static_cast<double>(wait_sum) / count);
  found.p99_wait_s = detail::seconds(detail::percentile(waits, 0.99));
  found.avg_bounded_slowdown = slowdown_sum / count;
  return found;
}

}  // namespace gpusched
