// SPDX-License-Identifier: Apache-2.0
/// ProgressWatch: tells a run that would go on for ever from one that gets somewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/event_queue.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched::detail {

/// Jobs that preempt each other for ever, whose runs all end before a checkpoint keeps anything, or a policy that only
/// asks to be woken: whatever runs cost, such a run shows in the work that is left. It is looked at after every few
/// thousand events. A run makes progress while jobs end or are submitted, while the least work ever left falls so fast
/// that a thousand million events will do it all, or while the next submission comes nearer as fast. Three looks
/// without progress in which jobs were preempted are enough; while nodes will fail or come back, chance has more time,
/// as long as it may yet bring a job that it starts to its end. O(jobs) a look, of which there is one in `jobs` events
/// at most.
class ProgressWatch {
 public:
  /// Of a run that is about to begin.
  explicit ProgressWatch(const OracleView& view) : fails_(view.nodes_can_fail()), runs_(fails_ ? view.job_count() : 0) {
    plan(view);
  }

  /// After each instant and each decision; no event also counts.
  GPUSCHED_HOT void observe(const OracleView& view, std::span<const Event> events) {
    seen_ += std::max<std::size_t>(events.size(), 1);
    if (fails_) {
      for (const Event& event : events) follow(view, event);
    }
    if (seen_ >= next_look_) look(view);
  }

  /// True from then on.
  [[nodiscard]] bool endless() const { return endless_; }

 private:
  static constexpr double most_events = 1e9;
  static constexpr std::uint32_t looks_of_turns = 3, looks_of_chance = 256;
  static constexpr std::uint64_t enough_kills = 1000, many_kills = 16'000;

  // A job's present or latest run.
  struct Run {
    Time ran_before{};          // what the job had run when it began
    std::uint64_t stretch = 0;  // in which it began
  };

  // The longest run that a failure ended.
  GPUSCHED_RARE void follow(const OracleView& view, const Event& event) {
    if (event.kind == EventKind::start) {
      runs_[index(event.job)] = {view.ran(event.job), stretch_};
    } else if (event.kind == EventKind::kill && event.node != no_node) {
      ++kills_;
      longest_ = std::max(longest_, view.ran(event.job) - runs_[index(event.job)].ran_before);
    }
  }

  GPUSCHED_RARE void look(const OracleView& view) {
    const double left = work_left_s(view);
    const bool comes_and_goes = view.arrived() != arrived_ || view.finished() != finished_;
    if (comes_and_goes || progresses(view, left)) {
      idle_looks_ = 0;
      kills_ = 0;
      preemptions_before_ = preemptions_;
      longest_ = {};
      ++stretch_;
    } else {
      ++idle_looks_;
      const bool turns = preemptions_ > preemptions_before_ && !view.nodes_will_change();
      endless_ = idle_looks_ >= (turns ? looks_of_turns : looks_of_chance) ||
                 (kills_ >= enough_kills && left > 0 && shortest_to_do() > 3 * to_seconds(longest_));
    }
    least_left_ = comes_and_goes ? left : std::min(least_left_, left);
    plan(view);
  }

  [[nodiscard]] bool progresses(const OracleView& view, double left) const {
    const auto events = static_cast<double>(seen_ - last_look_);
    const auto will_do = [events](double whole, double part) {
      return part > 0 && whole / part * events <= most_events;
    };
    if (will_do(left, least_left_ - left)) return true;
    if (view.arrived() == view.job_count()) return false;
    const Time next = view.jobs().submit(JobId{view.arrived()});
    return will_do(to_seconds(next - view.now()), to_seconds(view.now() - last_time_));
  }

  // Seconds of work that submitted jobs still have to do; notes the least that one of them must do in one run, and how
  // often those jobs were preempted.
  double work_left_s(const OracleView& view) {
    double sum = 0;
    preemptions_ = 0;
    shortest_ = shortest_started_ = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = 0; i < view.arrived(); ++i) {
      if (view.phase(JobId{i}) == JobPhase::done) continue;
      sum += to_seconds(view.work_left(JobId{i}));
      preemptions_ += view.preemptions(JobId{i});
      const double to_keep_s = to_seconds(view.work_to_keep(JobId{i}));
      shortest_ = std::min(shortest_, to_keep_s);
      if (is_started(view, JobId{i})) shortest_started_ = std::min(shortest_started_, to_keep_s);
    }
    return sum;
  }

  // A job that did not start in so many failures waits for the end of others, however short it is.
  [[nodiscard]] double shortest_to_do() const { return kills_ >= many_kills ? shortest_started_ : shortest_; }

  // It runs, or began to since there was progress.
  [[nodiscard]] bool is_started(const OracleView& view, JobId job) const {
    return !fails_ || view.phase(job) == JobPhase::running || runs_[index(job)].stretch == stretch_;
  }

  void plan(const OracleView& view) {
    arrived_ = view.arrived();
    finished_ = view.finished();
    last_time_ = view.now();
    last_look_ = seen_;
    next_look_ = seen_ + 4096 + 16 * std::uint64_t{arrived_};
  }

  bool fails_ = false;  // nodes can
  bool endless_ = false;
  std::uint64_t seen_ = 0, last_look_ = 0, next_look_ = 0;  // events
  std::uint32_t arrived_ = 0, finished_ = 0;                // jobs, at the last look
  Time last_time_{};                                        // likewise
  double least_left_ = std::numeric_limits<double>::infinity();
  double shortest_ = 0, shortest_started_ = 0;  // seconds; of all jobs, and of those that is_started() names
  std::uint32_t idle_looks_ = 0;
  std::uint64_t kills_ = 0;  // since there was progress
  std::uint64_t preemptions_ = 0,
                preemptions_before_ = 0;  // of jobs that are not done; the same, when there was progress
  Time longest_{};                        // of the runs that were killed since
  std::uint64_t stretch_ = 1;             // how often there was progress
  std::vector<Run> runs_;                 // by job; where nodes can fail
};

}  // namespace gpusched::detail
