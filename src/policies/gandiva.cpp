// SPDX-License-Identifier: Apache-2.0
#include "src/policies/gandiva.hpp"

namespace gpusched {

void Gandiva::decide(const View& view, Decision& decision) {
  if (since_.empty()) {
    since_.resize(view.job_count());
    running_.resize(view.queue_count());
  }
  note_events(view);
  serve(view, decision, view.now().us % slice_.us == 0);
  if (view.pending_count() == 0) return;
  const Time next{(view.now().us / slice_.us + 1) * slice_.us};
  if (next != next_wake_ && decision.wake(next) == Verdict::ok) next_wake_ = next;
}

void Gandiva::note_events(const View& view) {
  for (const Event& event : view.events()) {
    if (event.job == no_job) continue;
    const std::uint32_t id = index(event.job);
    if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
      running_[view.queue_of(event.job)].erase({since_[id], id});
    }
    if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
      since_[id] = view.now().us;
      waiting_[{view.queue_of(event.job), view.shape_id(event.job)}].insert({since_[id], id});
    }
  }
}

void Gandiva::serve(const View& view, Decision& decision, bool may_suspend) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> blocked;
  for (;;) {
    auto best = waiting_.end();
    for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
      if (at->second.empty() || blocked.contains(at->first)) continue;
      if (best == waiting_.end() || *at->second.begin() < *best->second.begin()) best = at;
    }
    if (best == waiting_.end()) return;
    const Turn turn = *best->second.begin();
    const JobId job{turn.second};
    // One suspended at this instant may keep its place, but does not suspend others in turn.
    const bool came_now = turn.first == view.now().us;
    const bool placed = (came_now && decision.restore(job) == Verdict::ok) || decision.start(job) == Verdict::ok ||
                        (may_suspend && !came_now && make_room(view, decision, job));
    if (!placed) {
      blocked.insert(best->first);
      continue;
    }
    if (may_suspend) blocked.clear();  // a gang that was suspended may leave room for those passed over
    best->second.erase(turn);
    since_[turn.second] = view.now().us;
    running_[view.queue_of(job)].insert({view.now().us, turn.second});
  }
}

namespace {

// What a job can free for such tasks at most: with a share that leaves, a whole GPU may fall idle.
MilliGpu most_freed(const Shape& leaving, const Shape& wanted) {
  if (wanted.is_share()) return leaving.gpu_milli();
  return leaving.tasks * ((leaving.gpu_milli_per_task + whole_gpu - 1) / whole_gpu * whole_gpu);
}

}  // namespace

// Suspends the longest-running jobs of the queue until `job` starts; when they do not suffice, nothing changes.
bool Gandiva::make_room(const View& view, Decision& decision, JobId job) {
  auto& running = running_[view.queue_of(job)];
  const Shape& wanted = view.shape(job);
  const auto has_had_its_slice = [&](const Turn& turn) { return turn.first + slice_.us <= view.now().us; };
  MilliGpu missing = wanted.gpu_milli() - view.cluster().available_gpu_milli(wanted, view.queue_of(job));
  for (auto at = running.begin(); at != running.end() && missing > 0 && has_had_its_slice(*at); ++at) {
    missing -= most_freed(view.shape(JobId{at->second}), wanted);
  }
  if (missing > 0) return false;
  std::vector<Turn> suspended;
  bool started = false;
  while (!started && !running.empty() && has_had_its_slice(*running.begin())) {
    suspended.push_back(*running.begin());
    running.erase(running.begin());
    decision.preempt(JobId{suspended.back().second});
    started = decision.start(job) == Verdict::ok;
  }
  for (const Turn& turn : suspended) {
    const JobId other{turn.second};
    if (!started) {
      decision.restore(other);
      running.insert(turn);
      continue;
    }
    since_[turn.second] = view.now().us;
    waiting_[{view.queue_of(other), view.shape_id(other)}].insert({view.now().us, turn.second});
  }
  return started;
}

PolicyInfo gandiva_info() {
  return {
      .name = "gandiva",
      .summary = "time slicing: jobs that do not fit together take turns, a slice each",
      .source = "Gandiva (OSDI'18), section 3: suspend-resume in slices of about a minute; no packing, no migration",
      .complexity = "O(shapes + log n)",
      .parameters = {{.name = "slice_s",
                      .fallback = 60.0,
                      .meaning = "seconds that a job runs before it may be suspended for a waiting one",
                      .least = 1e-3,
                      .most = 1e9}},
      .make = [](const PolicyParameters& parameters, const PolicyContext&) -> Result<AnyPolicy> {
        return AnyPolicy(Gandiva(from_seconds(parameters.number("slice_s"))));
      },
      .preemptive = true,
      .work_conserving = true};
}

}  // namespace gpusched
