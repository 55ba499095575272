// SPDX-License-Identifier: Apache-2.0
/// Shortest remaining time first and shortest remaining service first, preemptive, clairvoyant.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/view.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// At every event the runnable jobs, in order of remaining time (SRTF) or remaining time x GPUs (SRSF), get the cluster
/// greedily: a job that does not fit is passed over, and running jobs that others outrank are preempted. Among equal
/// keys the job that has had its key longest goes first.
///
/// The outcome is that of emptying the cluster and walking the whole order, but the walk is never made. Time passing
/// only moves running jobs forward, which changes no outcome; so between events the assignment stays greedy, and an
/// event costs only the jobs it starts, the jobs they displace, and one test a shape: O(shapes x log n). The first
/// waiting job of a shape is its best, and when it cannot be placed, no other of that shape can.
class ShortestRemaining {
 public:
  explicit ShortestRemaining(bool by_service) : by_service_(by_service) {}

  [[nodiscard]] std::string_view name() const { return by_service_ ? "srsf" : "srtf"; }

  void decide(const OracleView& view, Decision& decision) {
    if (shapes_.empty()) shapes_.resize(std::size_t{view.queue_count()} * view.shape_count());
    note_started(view);
    touched_.assign(view.queue_count(), false);
    for (const Event& event : view.events()) note(view, event);
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      if (touched_[queue] && !view.queue(queue).empty()) fill(queue, view, decision);
    }
  }

 private:
  // A job in the order: its key, since when it has had it, and whether it came with this instant's arrivals, which line
  // up behind jobs that ran until now. Of two that run, the one whose key falls more slowly was ahead before they met.
  struct Waiting {
    std::int64_t key = 0;
    std::int64_t since = 0;
    bool arrived = false;
    MilliGpu slope = 0;  // GPUs under SRSF; all keys fall alike under SRTF
    JobId job = no_job;
    friend bool operator<(const Waiting& a, const Waiting& b) {
      if (a.key != b.key) return a.key < b.key;
      if (a.since != b.since) return a.since < b.since;
      if (a.arrived != b.arrived) return b.arrived;
      if (a.slope != b.slope) return a.slope < b.slope;
      return index(a.job) < index(b.job);
    }
  };
  // A running job: within a shape the order of ends is the order of keys, at any time.
  struct Running {
    std::int64_t end = 0;
    JobId job = no_job;
    friend bool operator<(const Running& a, const Running& b) {
      return a.end != b.end ? a.end < b.end : index(a.job) < index(b.job);
    }
  };
  struct ShapeJobs {
    std::set<Waiting> waiting;
    std::set<Running> running;
  };

  ShapeJobs& jobs_of(std::uint32_t queue, std::uint32_t shape, const View& view) {
    return shapes_[std::size_t{queue} * view.shape_count() + shape];
  }
  ShapeJobs& jobs_of(JobId job, const View& view) { return jobs_of(view.queue_of(job), view.shape_id(job), view); }

  [[nodiscard]] Waiting rank(JobId job, bool arrived, const OracleView& view) const {
    const Time remaining = view.remaining(job);
    const MilliGpu gpu_milli = view.shape(job).gpu_milli();
    const std::int64_t key = by_service_ ? mul_div(remaining.us, gpu_milli, whole_gpu) : remaining.us;
    return {key, view.now().us, arrived, by_service_ ? gpu_milli : 0, job};
  }

  // The jobs that the last decision started have an end now.
  void note_started(const OracleView& view) {
    for (const JobId job : started_) {
      // A job of no work has already ended at this instant and is not running any more.
      if (view.phase(job) == JobPhase::running) {
        jobs_of(job, view).running.insert({view.expected_end(job).us, job});
      }
    }
    started_.clear();
  }

  void note(const OracleView& view, const Event& event) {
    if (event.job == no_job) return;
    touched_[view.queue_of(event.job)] = true;
    if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
      jobs_of(event.job, view).running.erase({view.now().us, event.job});
    }
    if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
      jobs_of(event.job, view).waiting.insert(rank(event.job, true, view));
    }
  }

  void fill(std::uint32_t queue, const OracleView& view, Decision& decision) {
    blocked_.assign(view.shape_count(), false);
    for (;;) {
      const std::uint32_t shape = best_waiting(queue, view);
      if (shape == no_index) return;
      ShapeJobs& jobs = jobs_of(queue, shape, view);
      const Waiting candidate = *jobs.waiting.begin();
      if (!place(queue, candidate, view, decision)) {
        blocked_[shape] = true;
        continue;
      }
      jobs.waiting.erase(candidate);
    }
  }

  // The shape whose first waiting job comes first of all, among those not blocked.
  std::uint32_t best_waiting(std::uint32_t queue, const View& view) {
    std::uint32_t best = no_index;
    const Waiting* least = nullptr;
    for (std::uint32_t shape = 0; shape < view.shape_count(); ++shape) {
      const auto& waiting = jobs_of(queue, shape, view).waiting;
      if (blocked_[shape] || waiting.empty()) continue;
      if (least == nullptr || *waiting.begin() < *least) {
        least = &*waiting.begin();
        best = shape;
      }
    }
    return best;
  }

  bool place(std::uint32_t queue, const Waiting& candidate, const OracleView& view, Decision& decision) {
    if (decision.restore(candidate.job) ==
        Verdict::ok) {  // displaced earlier in this decision, and still has its place
      jobs_of(candidate.job, view).running.insert({view.expected_end(candidate.job).us, candidate.job});
      return true;
    }
    if (decision.start(candidate.job) != Verdict::ok && !displace(queue, candidate, view, decision)) return false;
    started_.push_back(candidate.job);
    return true;
  }

  // Preempts the lowest-ranked running jobs behind the candidate until it fits. Those that need not have gone get their
  // place back when their turn in the order comes.
  bool displace(std::uint32_t queue, const Waiting& candidate, const OracleView& view, Decision& decision) {
    if (!could_fit(queue, candidate, view)) return false;
    victims_.clear();
    bool placed = false;
    while (!placed) {
      const JobId victim = last_running_behind(queue, candidate, view);
      if (victim == no_job) break;
      victims_.push_back(rank(victim, false, view));
      jobs_of(victim, view).running.erase({view.expected_end(victim).us, victim});
      decision.preempt(victim);
      placed = decision.start(candidate.job) == Verdict::ok;
    }
    for (const Waiting& victim : victims_) {
      if (placed) {
        jobs_of(victim.job, view).waiting.insert(victim);
      } else {
        decision.restore(victim.job);
        jobs_of(victim.job, view).running.insert({view.expected_end(victim.job).us, victim.job});
      }
    }
    return placed;
  }

  // Do the free GPUs and those of every running job behind the candidate suffice? Necessary, and cheap to refuse.
  bool could_fit(std::uint32_t queue, const Waiting& candidate, const OracleView& view) {
    const Shape& wanted = view.shape(candidate.job);
    MilliGpu missing = wanted.gpu_milli() - view.cluster().available_gpu_milli(wanted, queue);
    for (std::uint32_t shape = 0; shape < view.shape_count() && missing > 0; ++shape) {
      const auto& running = jobs_of(queue, shape, view).running;
      for (auto last = running.rbegin(); last != running.rend() && missing > 0; ++last) {
        if (!(candidate < rank(last->job, false, view))) break;
        missing -= view.shape(last->job).gpu_milli();
      }
    }
    return missing <= 0;
  }

  JobId last_running_behind(std::uint32_t queue, const Waiting& candidate, const OracleView& view) {
    Waiting last = candidate;
    for (std::uint32_t shape = 0; shape < view.shape_count(); ++shape) {
      const auto& running = jobs_of(queue, shape, view).running;
      if (running.empty()) continue;
      const Waiting candidate_victim = rank(running.rbegin()->job, false, view);
      if (last < candidate_victim) last = candidate_victim;
    }
    return last.job == candidate.job ? no_job : last.job;
  }

  bool by_service_;
  std::vector<ShapeJobs> shapes_;  // [queue * shape_count + shape]
  std::vector<JobId> started_;
  std::vector<Waiting> victims_;
  std::vector<bool> touched_, blocked_;
};

PolicyInfo srtf_info();
PolicyInfo srsf_info();

}  // namespace gpusched
