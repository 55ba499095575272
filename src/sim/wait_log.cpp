// SPDX-License-Identifier: Apache-2.0
#include "src/sim/wait_log.hpp"

#include <algorithm>
#include <utility>

namespace gpusched {
namespace {

// Those whose jobs may run on some node on which jobs of `queue` may; the last one is of jobs of no virtual cluster.
std::vector<std::uint32_t> queues_beside(const Cluster& cluster, std::uint32_t queue) {
  const auto queues = static_cast<std::uint32_t>(cluster.vcs.size() + 1);
  const auto serves = [&](const Node& node, std::uint32_t whose) {
    return whose + 1 == queues || cluster.owners_serve(node.vc, node.vc_group, whose);
  };
  std::vector<std::uint32_t> beside;
  for (std::uint32_t other = 0; other < queues; ++other) {
    const bool meets = other == queue || std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [&](const Node& node) {
                         return serves(node, queue) && serves(node, other);
                       });
    if (meets) beside.push_back(other);
  }
  return beside;
}

// Whether the job goes on doing what it did.
bool continues(const WaitSpan& before, const WaitSpan& after) {
  if (before.kind != after.kind) return false;
  switch (before.kind) {
    case WaitSpan::Kind::dependencies: return before.waits_for == after.waits_for;
    case WaitSpan::Kind::waiting: return before.cause == after.cause && before.limit == after.limit;
    case WaitSpan::Kind::running: return before.run == after.run && before.nodes == after.nodes;
    case WaitSpan::Kind::done: break;
  }
  return true;
}

}  // namespace

JobsAhead WaitLog::jobs_ahead(const View& view) const {
  JobsAhead ahead;
  const QueuePlace place = view.queue_place(job_);
  for (const std::uint32_t queue : queues_) {
    for (const JobId other : view.queue(queue)) {
      if (other == job_ || !(view.queue_place(other) < place)) continue;
      if (ahead.count++ == 0 || view.queue_place(other) < view.queue_place(ahead.first)) ahead.first = other;
      ahead.gpu_milli += view.shape(other).gpu_milli();
    }
  }
  return ahead;
}

WaitSpan WaitLog::state_now(const OracleView& view) const {
  WaitSpan span{.kind = WaitSpan::Kind::done, .since = view.now()};
  switch (view.phase(job_)) {
    case JobPhase::future: {
      if (span.limit = view.limit_of(job_); span.limit != no_index) {
        span.kind = WaitSpan::Kind::waiting;
        span.cause = WaitCause::limit;
        break;
      }
      span.kind = WaitSpan::Kind::dependencies;
      for (const JobId other : view.jobs().dependencies().of(job_)) {
        if (view.phase(other) == JobPhase::done) continue;
        span.waits_for = other;
        break;
      }
      break;
    }
    case JobPhase::pending: {
      const WaitState state = wait_state(view, *cluster_, view.shape(job_), view.queue_of(job_), view.placement(job_));
      span.kind = WaitSpan::Kind::waiting;
      const bool is_capped = state.cause == WaitCause::policy && power_cap_refuses(view, job_);
      span.cause = is_capped ? WaitCause::power_cap : state.cause;
      span.least_free = span.most_free = state.free_milli;
      span.ahead_at_begin = span.ahead_at_end = jobs_ahead(view);
      break;
    }
    case JobPhase::running:
      span.kind = WaitSpan::Kind::running;
      span.run = runs_;
      view.for_each_grant(job_, [&](const Grant& grant) { span.nodes.push_back(grant.node); });
      std::sort(span.nodes.begin(), span.nodes.end());
      span.nodes.erase(std::unique(span.nodes.begin(), span.nodes.end()), span.nodes.end());
      break;
    case JobPhase::done: break;
  }
  return span;
}

// Nothing happens when a job is submitted that waits for others, and so nothing was seen.
void WaitLog::begin_waiting_for_others(const OracleView& view, std::span<const Event> events) {
  now_ = {.kind = WaitSpan::Kind::dependencies, .since = view.listed(job_)};
  is_begun_ = true;
  for (const JobId other : view.jobs().dependencies().of(job_)) {
    const bool ends_now = std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.job == other && (event.kind == EventKind::finish || event.kind == EventKind::withdraw);
    });
    if (view.phase(other) == JobPhase::done && !ends_now) continue;
    now_.waits_for = other;
    return;
  }
}

void WaitLog::observe(const OracleView& view, std::span<const Event> events) {
  const bool is_submitted = view.listed(job_) <= view.now();
  if (!is_submitted || (is_begun_ && now_.kind == WaitSpan::Kind::done)) return;
  if (!is_begun_ && view.listed(job_) < view.now()) begin_waiting_for_others(view, events);
  const bool is_again = is_begun_ && now_.since == view.now();
  if (is_begun_ && !is_again) keep();
  if (queues_.empty()) queues_ = queues_beside(*cluster_, view.queue_of(job_));
  for (const Event& event : events) {
    if (event.kind != EventKind::start) continue;
    if (event.job == job_) {
      ++runs_;
    } else if (view.phase(job_) == JobPhase::pending) {
      starts_now_.emplace_back(event.job, view.queue_place(job_) < view.queue_place(event.job));
    }
  }
  now_ = state_now(view);
  is_begun_ = true;
}

// What was seen last held until now.
void WaitLog::keep() {
  if (spans_.empty() || !continues(spans_.back(), now_)) {
    spans_.push_back(std::move(now_));
    started_.clear();
  } else {
    WaitSpan& span = spans_.back();
    span.least_free = std::min(span.least_free, now_.least_free);
    span.most_free = std::max(span.most_free, now_.most_free);
    span.ahead_at_end = now_.ahead_at_end;
  }
  for (const auto& [job, is_behind] : std::exchange(starts_now_, {})) {
    if (spans_.back().kind != WaitSpan::Kind::waiting || !started_.insert(job).second) continue;
    ++spans_.back().started;
    if (is_behind) ++spans_.back().overtook;
  }
}

std::vector<WaitSpan> WaitLog::take() && {
  if (is_begun_) keep();
  return std::move(spans_);
}

}  // namespace gpusched
