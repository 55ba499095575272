// SPDX-License-Identifier: Apache-2.0
/// The discretised queues of the Tiresias simulator (Gu et al., NSDI'19; github.com/SymbioticLab/Tiresias), in the two
/// forms that published results used: the simulator's own `dlas-gpu`, here `tiresias@code`, and its descendant in the
/// Muri artifact, `tiresias@muri` ("Tiresias-L"). Quirks that both share:
///  - GPUs are counted, nodes play no part; greedy, passing over what does not fit;
///  - within a queue running jobs move before pending ones only after jobs were placed, so that a job demoted or
///    admitted at an event is still considered behind the pending jobs of its queue, and may be preempted;
///  - one demotion a job and event, in order of admission.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/policies/event_overhead.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Whose program LasQueues follows.
enum class LasQueuesForm : std::uint8_t {
  tiresias,  ///< the check for a demotion is due at now + floor((limit - executed) / GPUs) with executed in seconds,
             ///< not GPU-seconds, and so late on several GPUs; jobs can be promoted; no overhead
  muri,  ///< the check is due at now + ceil(limit / GPUs) - executed; overhead at every event, which counts as executed
};

/// `tiresias@code` and `tiresias@muri`. O(runnable jobs) an event. The muri form keeps account of the work left, which
/// its overhead prolongs, and so asks for an OracleView; its decisions do not depend on run times.
template <LasQueuesForm form>
class LasQueues {
  static constexpr bool is_muri = form == LasQueuesForm::muri;
  using RunView = std::conditional_t<is_muri, OracleView, View>;

 public:
  /// `limits_gpu_s`: attained service, in whole GPU-seconds and ascending, at which a job leaves queue 0, 1, ...;
  /// `promote_knob`: a job pending for `promote_knob` times what it executed returns to queue 0; 0 = never.
  LasQueues(std::vector<std::int64_t> limits_gpu_s, std::int64_t promote_knob)
      : limits_(std::move(limits_gpu_s)), promote_knob_(promote_knob), queues_(limits_.size() + 1) {}

  [[nodiscard]] std::string_view name() const { return is_muri ? "tiresias@muri" : "tiresias@code"; }

  void decide(const RunView& view, Decision& decision) {
    // A check that other events overtook: they planned another, if any is due.
    const bool only_wake = view.events().size() == 1 && view.events().front().kind == EventKind::wake;
    if (only_wake && view.now() != next_check_) return;
    if (jobs_.empty()) jobs_.resize(view.job_count());
    note_events(view);
    bring_up_to_now(view);
    place_all(view, decision);
    running_before_pending();
    if constexpr (is_muri) overhead_.plan(view.now(), decision, running_, 0);
    plan_check(view, decision);
    last_event_ = view.now();
  }

 private:
  struct Job {
    Time executed{};  // since the start or the last promotion, overhead included
    Time pending{};   // since the last run
    std::uint32_t gpus = 0;
    std::uint32_t queue = 0;
    bool running = false;
    bool ever_ran = false;
  };

  Job& operator[](JobId job) { return jobs_[index(job)]; }

  void note_events(const RunView& view) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
        std::erase(admitted_, event.job);
        std::erase(queues_[(*this)[event.job].queue], event.job);
      }
    }
    arrived_.clear();
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) arrived_.push_back(event.job);
    }
    for (const JobId job : arrived_) {
      (*this)[job] = {.gpus = view.shape(job).tasks};
      admitted_.push_back(job);
      queues_[0].push_back(job);
      if constexpr (is_muri) overhead_.admit(view, job);
    }
  }

  void bring_up_to_now(const RunView& view) {
    const Time span = view.now() - last_event_;
    for (std::size_t i = 0; i + arrived_.size() < admitted_.size(); ++i) {
      const JobId id = admitted_[i];
      Job& job = (*this)[id];
      if (job.running) {
        job.executed += span;
        if constexpr (is_muri) overhead_.progress(id, span);
        if (job.queue < limits_.size() && job.executed.us * job.gpus >= whole_seconds(limits_[job.queue]).us) {
          enter_queue(id, job.queue + 1);
        }
      } else if (job.ever_ran) {
        job.pending += span;
        if (promotes(job) && job.pending.us >= job.executed.us * promote_knob_) {
          job.executed = job.pending = {};
          enter_queue(id, 0);
        }
      }
    }
  }

  [[nodiscard]] bool promotes(const Job& job) const {
    return promote_knob_ > 0 && job.queue > 0 && job.executed.us > 0;
  }

  void enter_queue(JobId id, std::uint32_t queue) {
    Job& job = (*this)[id];
    std::erase(queues_[job.queue], id);
    queues_[queue].push_back(id);
    job.queue = queue;
  }

  void place_all(const RunView& view, Decision& decision) {
    std::int64_t free = view.cluster().total_gpus();
    running_.clear();
    started_.clear();
    for (const auto& queue : queues_) {
      for (const JobId id : queue) {
        Job& job = (*this)[id];
        if (job.gpus <= free) {
          free -= job.gpus;
          running_.push_back(id);
          if (!job.running) started_.push_back(id);
        } else if (job.running) {
          decision.preempt(id);
          job.running = false;
        }
      }
    }
    for (const JobId id : started_) {
      if constexpr (is_muri) overhead_.start(view, id);
      if (decision.start(id) != Verdict::ok) continue;  // CPU or memory, which the authors' program does not count
      (*this)[id].running = (*this)[id].ever_ran = true;
      (*this)[id].pending = {};
    }
  }

  void running_before_pending() {
    for (auto& queue : queues_) {
      still_pending_.clear();
      std::size_t kept = 0;
      for (const JobId id : queue) {
        if ((*this)[id].running) {
          queue[kept++] = id;
        } else {
          still_pending_.push_back(id);
        }
      }
      std::copy(still_pending_.begin(), still_pending_.end(), queue.begin() + static_cast<std::ptrdiff_t>(kept));
    }
  }

  // The next instant at which a job is looked at for a demotion or promotion alone.
  void plan_check(const RunView& view, Decision& decision) {
    Time next = Time::max();
    for (std::size_t queue = 0; queue < limits_.size(); ++queue) {
      for (const JobId id : queues_[queue]) {
        const Job& job = (*this)[id];
        if (!job.running) break;  // running jobs stand first
        next = std::min(next, view.now() + demotion_delay(job), earlier);
      }
    }
    if (promote_knob_ > 0) {
      for (const JobId id : admitted_) {
        const Job& job = (*this)[id];
        if (job.running || !promotes(job)) continue;
        const Time due = view.now() + Time{job.executed.us * promote_knob_} - job.pending;
        if (due > view.now()) next = std::min(next, due, earlier);
      }
    }
    if (next != Time::max() && next != next_check_) decision.wake(next);
    next_check_ = next;
  }

  [[nodiscard]] Time demotion_delay(const Job& job) const {
    const std::int64_t limit = limits_[job.queue];
    if constexpr (is_muri) return whole_seconds((limit + job.gpus - 1) / job.gpus) - job.executed;
    const std::int64_t executed_s = job.executed.us / microseconds_per_second;
    // The simulator knows whole seconds only, in which the delay is at least one.
    return whole_seconds(std::max<std::int64_t>((limit - executed_s) / job.gpus, 1));
  }

  static bool earlier(Time a, Time b) { return a < b; }

  std::vector<std::int64_t> limits_;  // whole GPU-seconds
  std::int64_t promote_knob_;
  Time last_event_{};
  Time next_check_ = Time::max();
  std::vector<Job> jobs_;        // by job id
  std::vector<JobId> admitted_;  // runnable jobs in order of admission
  std::vector<std::vector<JobId>> queues_;
  EventOverhead overhead_;  // of the muri form
  std::vector<JobId> arrived_, running_, started_, still_pending_;
};

using TiresiasCode = LasQueues<LasQueuesForm::tiresias>;
using TiresiasMuri = LasQueues<LasQueuesForm::muri>;

PolicyInfo tiresias_code_info();
PolicyInfo tiresias_muri_info();

}  // namespace gpusched
