// SPDX-License-Identifier: Apache-2.0
#include "src/policies/elastic/sizing.hpp"

#include <algorithm>

namespace gpusched {

std::vector<SizedJob> jobs_to_size(const View& view) {
  std::vector<SizedJob> jobs;
  const auto add = [&](JobId job, bool runs) {
    const Shape& shape = view.shape(job);
    SizedJob sized{.job = job,
                   .curve = view.curve(job),
                   .phase = view.curve_phase(job),
                   .milli_per_task = shape.gpu_milli_per_task,
                   .least = shape.tasks,
                   .most = shape.tasks,
                   .held = runs ? view.held_tasks(job) : 0};
    if (sized.curve != nullptr) {
      sized.least = sized.curve->min_tasks;
      sized.most = sized.curve->max_tasks;
    }
    jobs.push_back(sized);
  };
  for (const JobId job : view.running()) add(job, true);
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) add(job, false);
  }
  std::sort(jobs.begin(), jobs.end(),
            [&](const SizedJob& a, const SizedJob& b) { return view.queue_place(a.job) < view.queue_place(b.job); });
  return jobs;
}

void give_least_sizes(std::span<SizedJob> jobs, MilliGpu& free) {
  for (SizedJob& job : jobs) {
    if (job.milli(job.least) > free) continue;
    job.size = job.least;
    free -= job.milli(job.least);
  }
}

void give_sizes(std::span<const SizedJob> jobs, Decision& decision) {
  for (const SizedJob& job : jobs) {
    if (job.held != 0 && job.size != job.held) decision.preempt(job.job);
  }
  for (const SizedJob& job : jobs) {
    if (job.size == 0 || job.size == job.held || decision.start_with(job.job, job.size) == Verdict::ok) continue;
    if (job.held != 0 && decision.restore(job.job) == Verdict::ok) continue;
    for (std::uint32_t tasks = job.size; tasks-- > job.least;) {
      if (decision.start_with(job.job, tasks) == Verdict::ok) break;
    }
  }
  for (const SizedJob& job : jobs) {
    if (job.held != 0 && job.size == 0) decision.restore(job.job);
  }
}

bool SizingRounds::begins(const View& view, Decision& decision) {
  if (view.now() < next_ || (view.pending_count() == 0 && view.running().empty())) return false;
  next_ = later_by(view.now(), length_);
  decision.wake(next_);
  return true;
}

}  // namespace gpusched
