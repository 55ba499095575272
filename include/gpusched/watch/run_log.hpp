// SPDX-License-Identifier: Apache-2.0
/// RunLog: watches a run for what the final state does not tell. compute_metrics() reads it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/measure_window.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/watch/measured_span.hpp"

namespace gpusched {

/// An Observer of constant cost an event and 8 bytes a job; under limits of O(log jobs), and of O(1) for each job that
/// follows another. Reuse needs a fresh one for each run.
class RunLog {
 public:
  /// Watches a run for the metrics of the jobs of `window`.
  explicit RunLog(MeasureWindow window = {}) : span_(window) {}

  /// Follows the events of an instant.
  void observe(const OracleView& view, std::span<const Event> events) {
    if (contention_us_.empty()) begin(view, events);
    if (view.has_limits()) take_in_barred(view);
    pass_time(view.now());
    for (const Event& event : events) {
      if (!concerns_job(event.kind)) continue;
      if (!follows_.empty() && view.phase(event.job) == JobPhase::done) note_over(view, event.job);
      const auto asked = [&view, &event] { return view.at(event).shape(event.job).gpu_milli(); };
      switch (event.kind) {
        case EventKind::submit:
          submit(event.job, asked(), view.now() - view.submit(event.job));
          ++waiting_;
          break;
        case EventKind::finish: finish(event.job, asked(), view.released_gpu_milli(event.job)); break;
        case EventKind::withdraw:
          if (stays(view, event.job)) {
            held_back_[index(event.job)] = asked();
          } else {
            finish(event.job, asked(), 0);
          }
          --waiting_;
          break;
        case EventKind::refuse: refuse(event.job); break;
        case EventKind::retry:
        case EventKind::kill:
        case EventKind::preempt:
          held_ -= view.released_gpu_milli(event.job);
          ++waiting_;
          break;
        case EventKind::start:
          held_ += view.held_gpu_milli(event.job);
          --waiting_;
          break;
        default: break;
      }
    }
    if (!released_.empty()) take_in_released(view);
    withheld_ = view.cluster().withheld_gpu_milli();
    idle_ = view.cluster().free_gpu_milli();
    max_waiting_ = std::max(max_waiting_, waiting_);
  }

  /// Mean of max(1, GPUs asked for by all jobs in the system / GPUs of the cluster) over the job's life, times the
  /// length of that life, in microseconds. Precondition: the job finished.
  [[nodiscard]] double contention_us(JobId job) const { return contention_us_[index(job)]; }
  /// GPU time from the first submission to the last end of the measured jobs, in microseconds times thousandths of a
  /// GPU: held by any job, measured or not; of nodes out of service, which no job held; of the others, likewise; and of
  /// all GPUs. The first three sum to the last, or fault_of_account() says so.
  /// \{
  [[nodiscard]] detail::WideInt held() const { return at_end_.held - at_begin_.held; }
  [[nodiscard]] detail::WideInt withheld() const { return at_end_.withheld - at_begin_.withheld; }
  [[nodiscard]] detail::WideInt idle() const { return at_end_.idle - at_begin_.idle; }
  [[nodiscard]] detail::WideInt capacity() const {
    return detail::WideInt{capacity_} * (at_end_.passed - at_begin_.passed).us;
  }
  /// \}
  /// As withheld(), from the first measured submission to the last.
  [[nodiscard]] detail::WideInt withheld_while_submitting() const {
    return sums_.withheld_while_submitting - at_begin_.withheld_while_submitting;
  }
  /// The longest queue, after any instant's events or decision.
  [[nodiscard]] std::int64_t max_waiting_jobs() const { return max_waiting_; }

  /// GPU-seconds of thousandths of a GPU times microseconds.
  static double gpu_seconds(detail::WideInt milli_us) {
    return static_cast<double>(milli_us) / (static_cast<double>(whole_gpu) * microseconds_per_second);
  }

 private:
  // Until the first instant that is seen nobody ran. The first submission may lie before it: that job waits for others.
  void begin(const OracleView& view, std::span<const Event> events) {
    contention_us_.resize(view.job_count());
    if (view.has_limits()) begin_limits(view);
    span_.begin(view);
    capacity_ = view.cluster().total_gpus() * whole_gpu;
    withheld_ = view.cluster().withheld_gpu_milli();
    for (const Event& event : events) {
      if (event.kind != EventKind::node_down && event.kind != EventKind::node_up) continue;
      const MilliGpu milli = view.cluster().node_gpus(event.node) * whole_gpu;
      withheld_ += event.kind == EventKind::node_up ? milli : -milli;
    }
    idle_ = capacity_ - withheld_;
  }

  void begin_limits(const OracleView& view) {
    held_back_.assign(view.job_count(), not_held_back);
    const Dependencies& before = view.jobs().dependencies();
    if (before.is_empty()) return;
    is_over_.resize(view.job_count());
    for (std::uint32_t i = 0; i < view.job_count(); ++i) {
      follows_.push_back(static_cast<std::uint32_t>(before.of(JobId{i}).size()));
    }
  }

  void pass_time(Time now) {
    span_.pass(
        now,
        [this](Time span) {
          const auto us = static_cast<double>(span.us);
          const auto gpus = static_cast<double>(std::max<MilliGpu>(capacity_, 1));
          contended_us_ += demand_ <= capacity_ ? us : us * (static_cast<double>(demand_) / gpus);
          sums_.add(*this, span);
        },
        [this] { at_begin_ = sums_; });
  }

  // A limit took the job out of its queue, and may have let it in again since.
  static bool stays(const View& view, JobId job) {
    const JobPhase phase = view.phase(job);
    return view.has_limits() && (view.is_held_back(job) || phase == JobPhase::pending || phase == JobPhase::running);
  }

  // Jobs that a limit holds back since their submission, which is no event. Of those that follow others note_over()
  // tells.
  void take_in_barred(const OracleView& view) {
    while (!released_.empty() && released_.begin()->first < view.now()) {
      const auto [time, job] = *released_.begin();
      released_.erase(released_.begin());
      pass_time(time);
      hold(view, job);
    }
    listed_ = std::max(listed_, view.jobs().in_front());
    for (; listed_ < view.job_count() && view.listed(JobId{listed_}) <= view.now(); ++listed_) {
      const JobId job{listed_};
      const bool follows_others = !view.jobs().dependencies().of(job).empty();
      const bool was_no_event = view.listed(job) < view.now() || view.is_held_back(job);
      if (follows_others || !was_no_event) continue;
      pass_time(view.listed(job));
      hold(view, job);
    }
  }
  void hold(const OracleView& view, JobId job) {
    held_back_[index(job)] = view.shape(job).gpu_milli();
    enter(job, held_back_[index(job)], Time{});
  }

  // The job is over: it may have been the last that others follow.
  void note_over(const OracleView& view, JobId job) {
    if (std::exchange(is_over_[index(job)], std::uint8_t{1}) != 0) return;
    for (const JobId next : view.jobs().successors().of(job)) {
      const bool is_free = --follows_[index(next)] == 0 && is_over_[index(next)] == 0;
      if (is_free) released_.insert({view.submit(next), next});
    }
  }
  // Those that might run from now on, but that a limit holds back: no event tells of them. One that a decision set free
  // joins its queue, or is held back, in the next step of this instant.
  void take_in_released(const OracleView& view) {
    for (auto at = released_.begin(); at != released_.end() && at->first <= view.now();) {
      const JobId job = at->second;
      const bool is_held = view.is_held_back(job);
      if (is_held) hold(view, job);
      at = is_held || view.phase(job) != JobPhase::future ? released_.erase(at) : std::next(at);
    }
  }

  // `late`: how long ago it came, where it was held back until this first event.
  void submit(JobId job, MilliGpu gpus, Time late) {
    if (const MilliGpu asked = let_in(job); asked != not_held_back) {
      demand_ += gpus - asked;  // its user may have changed that
    } else {
      enter(job, gpus, late);
    }
  }

  // What a job asked for that was held back until now, or not_held_back.
  MilliGpu let_in(JobId job) {
    return held_back_.empty() ? not_held_back : std::exchange(held_back_[index(job)], not_held_back);
  }

  // It may have been here before.
  void enter(JobId job, MilliGpu gpus, Time late) {
    demand_ += gpus;
    double& contention_us = contention_us_[index(job)];
    contention_us = contended_us_ - (contention_us == 0 ? static_cast<double>(late.us) : contention_us);
  }

  void refuse(JobId job) {
    std::erase_if(released_, [job](const auto& entry) { return entry.second == job; });
    if (const MilliGpu asked = let_in(job); asked != not_held_back) {
      finish(job, asked, 0);
    } else if (span_.measures(job)) {
      at_end_ = sums_;
    }
  }

  void finish(JobId job, MilliGpu asked, MilliGpu held) {
    if (span_.measures(job)) at_end_ = sums_;
    demand_ -= asked;
    held_ -= held;
    contention_us_[index(job)] = contended_us_ - contention_us_[index(job)];
  }

  // Integrals over time, in microseconds times thousandths of a GPU.
  struct Sums {
    detail::WideInt held = 0, withheld = 0, idle = 0, withheld_while_submitting = 0;
    Time passed{};
    void add(const RunLog& log, Time span) {
      held += detail::WideInt{log.held_} * span.us;
      idle += detail::WideInt{log.idle_} * span.us;
      passed += span;
      if (log.withheld_ == 0) return;
      withheld += detail::WideInt{log.withheld_} * span.us;
      withheld_while_submitting += detail::WideInt{log.withheld_} * log.span_.while_submitting(span).us;
    }
  };

  static constexpr MilliGpu not_held_back = -1;

  detail::MeasuredSpan span_;
  // Of a job in the system: contended_us_ at its submission, less what passed before when it is submitted anew.
  std::vector<double> contention_us_;
  double contended_us_ = 0;
  MilliGpu capacity_ = 0, demand_ = 0, held_ = 0, withheld_ = 0, idle_ = 0;
  std::uint32_t listed_ = 0;  // jobs of lower ids were looked at, where there are limits
  // By job, where there are limits: what those of the system ask for that stand in no queue.
  std::vector<MilliGpu> held_back_;
  // Likewise, where jobs follow others: how many are not over yet, whether the job is, and from when it may run where
  // it need not wait for others any longer and neither joined its queue nor was seen to be held back.
  std::vector<std::uint32_t> follows_;
  std::vector<std::uint8_t> is_over_;
  std::set<std::pair<Time, JobId>> released_;
  Sums sums_, at_begin_, at_end_;
  std::int64_t waiting_ = 0, max_waiting_ = 0;
};

}  // namespace gpusched
