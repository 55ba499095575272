// SPDX-License-Identifier: Apache-2.0
#include "src/policies/elastic/sizing.hpp"

#include <algorithm>

namespace gpusched {

SizedJob SizedJobs::sized(const View& view, JobId job) const {
  const Shape& shape = view.shape(job);
  SizedJob sized{.job = job,
                 .curve = view.curve(job),
                 .phase = view.curve_phase(job),
                 .milli_per_task = shape.gpu_milli_per_task,
                 .least = shape.tasks,
                 .most = shape.tasks,
                 .held = view.phase(job) == JobPhase::running ? view.held_tasks(job) : 0,
                 .pinned = pinned_[index(job)]};
  if (sized.curve != nullptr) {
    sized.least = sized.curve->min_tasks;
    sized.most = sized.curve->max_tasks;
  }
  return sized;
}

// Of the first job listed that has its place or a later one.
std::size_t SizedJobs::place_of(const View& view, JobId job) const {
  const auto before = [&](const SizedJob& a, const QueuePlace& b) { return view.queue_place(a.job) < b; };
  const auto at = std::lower_bound(listed_.begin(), listed_.end(), view.queue_place(job), before);
  return static_cast<std::size_t>(at - listed_.begin());
}

void SizedJobs::observe(const View& view) {
  if (waits_for_.empty()) {
    waits_for_.assign(view.job_count(), nowhere);
    pinned_.assign(view.job_count(), false);
    for (const JobId job : view.running()) touch(view, job);
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      for (const JobId job : view.queue(queue)) touch(view, job);
    }
    return;
  }
  for (const Event& event : view.events()) {
    if (concerns_job(event.kind) && event.kind != EventKind::refuse) touch(view, event.job);
  }
  if (!all_may_change_) return;
  std::vector<JobId> listed;
  for (const SizedJob& job : listed_) listed.push_back(job.job);
  for (const JobId job : listed) touch(view, job);
}

void SizedJobs::adopt(const View& view) {
  const std::vector<bool> pinned = pinned_;
  *this = {};
  observe(view);
  all_may_change_ = true;
  for (std::uint32_t job = 0; job < pinned.size(); ++job) {
    const JobPhase phase = view.phase(JobId{job});
    if (pinned[job] && (phase == JobPhase::running || phase == JobPhase::pending)) pin(view, JobId{job}, true);
  }
}

// Puts the job where it belongs now.
void SizedJobs::touch(const View& view, JobId job) {
  if (MilliGpu& least = waits_for_[index(job)]; least != nowhere) {
    waiting_[least].erase(view.queue_place(job));
    least = nowhere;
  }
  const JobPhase phase = view.phase(job);
  if (phase == JobPhase::running || (phase == JobPhase::pending && pinned_[index(job)])) return list(view, job);
  const std::size_t at = place_of(view, job);
  if (at < listed_.size() && listed_[at].job == job) listed_.erase(listed_.begin() + static_cast<std::ptrdiff_t>(at));
  if (phase == JobPhase::pending) wait(view, job);
}

void SizedJobs::list(const View& view, JobId job) {
  const std::size_t at = place_of(view, job);
  if (at < listed_.size() && listed_[at].job == job) {
    listed_[at] = sized(view, job);
  } else {
    listed_.insert(listed_.begin() + static_cast<std::ptrdiff_t>(at), sized(view, job));
  }
}

void SizedJobs::wait(const View& view, JobId job) {
  const SizedJob waiting = sized(view, job);
  const MilliGpu least = waiting.milli(waiting.least);
  waits_for_[index(job)] = least;
  waiting_[least].insert(view.queue_place(job));
}

void SizedJobs::pin(const View& view, JobId job, bool pinned) {
  pinned_[index(job)] = pinned;
  touch(view, job);
}

void SizedJobs::reset(const View& view) {
  for (SizedJob& job : listed_) {
    job.size = 0;
    if (job.curve != nullptr) job.phase = view.curve_phase(job.job);
  }
}

// The first of those that wait whose least size fits, at that place or behind it; nobody's where there is none.
QueuePlace SizedJobs::next_waiting(const QueuePlace& from, MilliGpu free) const {
  QueuePlace next;
  for (auto jobs = waiting_.begin(); jobs != waiting_.end() && jobs->first <= free; ++jobs) {
    const auto at = jobs->second.lower_bound(from);
    if (at != jobs->second.end() && *at < next) next = *at;
  }
  return next;
}

void SizedJobs::give_least_sizes(const View& view, MilliGpu& free) {
  QueuePlace waiting = next_waiting({.number = 0, .job = JobId{0}}, free);
  for (std::size_t at = 0;;) {
    // Those listed before the next one that waits have their turn first. What they take, it may not find any more.
    const std::size_t turn = waiting.job == no_job ? listed_.size() : place_of(view, waiting.job);
    for (; at < turn; ++at) {
      SizedJob& job = listed_[at];
      if (job.pinned || job.milli(job.least) > free) continue;
      job.size = job.least;
      free -= job.milli(job.least);
    }
    if (waiting.job == no_job) return;
    const MilliGpu wanted = waits_for_[index(waiting.job)];
    if (wanted <= free) {
      free -= wanted;
      waiting_[wanted].erase(waiting);
      waits_for_[index(waiting.job)] = nowhere;
      list(view, waiting.job);
      listed_[at].size = listed_[at].least;
      ++at;
    }
    waiting = next_waiting({.number = waiting.number, .job = JobId{index(waiting.job) + 1}}, free);
  }
}

void SizedJobs::carry_out(const View& view, Decision& decision) {
  give_sizes(listed_, decision);
  std::size_t kept = 0;
  for (std::size_t at = 0; at < listed_.size(); ++at) {
    SizedJob& job = listed_[at];
    if (job.size != job.held || all_may_change_) {  // something was tried
      const bool runs = view.phase(job.job) == JobPhase::running;
      job.held = runs ? view.held_tasks(job.job) : 0;
      if (!runs && !job.pinned) {
        wait(view, job.job);
        continue;
      }
    }
    if (kept != at) listed_[kept] = job;
    ++kept;
  }
  listed_.resize(kept);
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
