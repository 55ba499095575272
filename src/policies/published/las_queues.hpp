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
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/policies/published/event_overhead.hpp"
#include "src/policies/queues/waiting_by_size.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Whose program LasQueues follows.
enum class LasQueuesForm : std::uint8_t {
  tiresias,  ///< the check for a demotion is due at now + floor((limit - executed) / GPUs) with executed in seconds,
             ///< not GPU-seconds, and so late on several GPUs; jobs can be promoted; no overhead
  muri,  ///< the check is due at now + ceil(limit / GPUs) - executed; overhead at every event, which counts as executed
};

/// `tiresias@code` and `tiresias@muri`. Of each queue the running jobs are a list, which changes at every event, and
/// the pending ones an order in which nothing moves: O(running jobs + log pending) an event, and with promotions O(log
/// pending) each. The muri form keeps account of the work left, which its overhead prolongs, and so asks for an
/// OracleView; its decisions do not depend on run times.
template <LasQueuesForm form>
class LasQueues {
  static constexpr bool is_muri = form == LasQueuesForm::muri;
  using RunView = std::conditional_t<is_muri, OracleView, View>;

 public:
  /// `limits_gpu_s`: attained service, in whole GPU-seconds and ascending, at which a job leaves queue 0, 1, ...;
  /// `promote_knob`: a job pending for `promote_knob` times what it executed returns to queue 0; 0 = never.
  LasQueues(std::vector<std::int64_t> limits_gpu_s, std::int64_t promote_knob)
      : limits_(std::move(limits_gpu_s)),
        promote_knob_(promote_knob),
        pending_(limits_.size() + 1),
        demoted_(limits_.size() + 1) {}

  [[nodiscard]] std::string_view name() const { return is_muri ? "tiresias@muri" : "tiresias@code"; }

  void decide(const RunView& view, Decision& decision) {
    // A check that other events overtook: they planned another, if any is due.
    const bool only_wake = view.events().size() == 1 && view.events().front().kind == EventKind::wake;
    if (only_wake && view.now() != next_check_) return;
    if (jobs_.empty()) jobs_.resize(view.job_count());
    drop_ended(view);
    progress(view.now());
    demote(view.now());
    admit(view);
    promote_starved(view);
    place_all(view, decision);
    start_chosen(view, decision);
    if constexpr (is_muri) overhead_.plan(view.now(), decision, running_, 0);
    put_back_refused();
    plan_check(view, decision);
  }

 private:
  // Of a job that is not running.
  struct Job {
    Time executed{};               // since the start or the last promotion, overhead included
    Time promotion = Time::max();  // when it has been pending for long enough
    std::int64_t place = 0;        // among the pending of its queue
    std::uint32_t queue = 0;
    std::uint32_t admission = 0;  // its number in the order of admission
  };
  struct NoAccount {};
  struct Run {
    [[no_unique_address]] std::conditional_t<is_muri, OverheadAccount, NoAccount> account = {};
    Time begun{};              // so long ago as it executed
    Time limit = Time::max();  // when it reaches the limit of its queue; never in the last
    JobId job = no_job;
    std::uint32_t gpus = 0;
    std::uint32_t queue = 0;
    std::uint32_t admission = 0;
  };
  using Pending = WaitingBySize<std::int64_t>;
  struct Promotion {
    Time time;
    JobId job;
    friend bool operator<(const Promotion& a, const Promotion& b) {
      return a.time != b.time ? a.time < b.time : index(a.job) < index(b.job);
    }
  };

  Job& operator[](JobId job) { return jobs_[index(job)]; }

  void drop_ended(const RunView& view) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) running_.erase(find_running(event.job));
    }
  }

  void progress(Time now) {
    if constexpr (is_muri) {
      for (Run& run : running_) run.account.progress(now - last_event_);
    }
    last_event_ = now;
  }

  // Takes jobs that reach their limit out of running_ into demoted_, by the queue that they enter.
  void demote(Time now) {
    for (auto& entered : demoted_) entered.clear();
    if (now < next_limit_) return;
    std::erase_if(running_, [&](Run run) {
      if (now < run.limit) return false;
      enter(run, run.queue + 1);
      demoted_[run.queue].push_back(run);
      return true;
    });
    for (auto& entered : demoted_) {
      std::sort(entered.begin(), entered.end(), [](const Run& a, const Run& b) { return a.admission < b.admission; });
    }
  }

  void enter(Run& run, std::uint32_t queue) const {
    run.queue = queue;
    run.limit = queue == limits_.size()
                    ? Time::max()
                    : run.begun + Time{mul_div_up(limits_[queue], microseconds_per_second, run.gpus)};
  }

  void admit(const RunView& view) {
    for (const Event& event : view.events()) {
      if (event.kind != EventKind::submit && event.kind != EventKind::retry) continue;
      (*this)[event.job] = {.admission = admissions_++};
      if constexpr (is_muri) overhead_.admit(view, event.job);
      append_pending(event.job, view.shape(event.job).tasks);
    }
  }

  void append_pending(JobId job, std::uint32_t gpus) { insert_pending(job, gpus, last_place_++); }

  void insert_pending(JobId job, std::uint32_t gpus, std::int64_t place) {
    (*this)[job].place = place;
    pending_[(*this)[job].queue].insert(gpus, {place, job});
  }

  void promote_starved(const RunView& view) {
    promoted_.clear();
    while (!promotions_.empty() && promotions_.begin()->time <= view.now()) {
      promoted_.push_back(promotions_.extract(promotions_.begin()).value().job);
    }
    std::sort(promoted_.begin(), promoted_.end(),
              [this](JobId a, JobId b) { return (*this)[a].admission < (*this)[b].admission; });
    for (const JobId id : promoted_) {
      Job& job = (*this)[id];
      const std::uint32_t gpus = view.shape(id).tasks;
      pending_[job.queue].erase(gpus, {job.place, id});
      job.executed = {};
      job.promotion = Time::max();
      job.queue = 0;
      append_pending(id, gpus);
    }
  }

  // Leaves in running_ those that stay and those that are to start.
  void place_all(const RunView& view, Decision& decision) {
    std::int64_t free = view.cluster().total_gpus();
    std::swap(ran_, running_);
    running_.clear();
    started_.clear();
    auto run = ran_.begin();
    for (std::uint32_t queue = 0; queue < pending_.size(); ++queue) {
      const auto end = std::partition_point(run, ran_.end(), [&](const Run& other) { return other.queue == queue; });
      preempted_.clear();
      keep_or_preempt({run, end}, decision, free);
      run = end;
      const std::size_t ahead = preempted_.size();
      choose_pending(queue, view.now(), free);
      keep_or_preempt(demoted_[queue], decision, free);
      // At the end of an event running jobs stood before pending ones, and demoted jobs last: so do those preempted.
      first_place_ -= static_cast<std::int64_t>(ahead);
      for (std::size_t i = 0; i < preempted_.size(); ++i) {
        wait_again(view, preempted_[i], i < ahead ? first_place_ + static_cast<std::int64_t>(i) : last_place_++);
      }
    }
  }

  void keep_or_preempt(std::span<const Run> runs, Decision& decision, std::int64_t& free) {
    std::int64_t gpus = 0;
    for (const Run& run : runs) gpus += run.gpus;
    if (gpus <= free) {  // nearly always
      free -= gpus;
      running_.insert(running_.end(), runs.begin(), runs.end());
      return;
    }
    for (const Run& run : runs) {
      if (run.gpus <= free) {
        free -= run.gpus;
        running_.push_back(run);
      } else {
        decision.preempt(run.job);
        preempted_.push_back(run);
      }
    }
  }

  void choose_pending(std::uint32_t queue, Time now, std::int64_t& free) {
    pending_[queue].begin_walk();
    pending_[queue].walk_to(last_place_, [&](const Pending::Entry& next, std::int64_t gpus) {
      if (gpus > free) return false;
      free -= gpus;
      const Job& job = (*this)[next.job];
      Run run{.begun = now - job.executed,
              .job = next.job,
              .gpus = static_cast<std::uint32_t>(gpus),
              .admission = job.admission};
      enter(run, queue);
      started_.push_back(running_.size());
      running_.push_back(run);
      return true;
    });
  }

  void wait_again(const RunView& view, const Run& run, std::int64_t place) {
    if constexpr (is_muri) overhead_.preempt(run.job, run.account);
    Job& job = (*this)[run.job];
    job.executed = view.now() - run.begun;
    job.queue = run.queue;
    insert_pending(run.job, run.gpus, place);
    if (promote_knob_ == 0 || job.queue == 0 || job.executed.us == 0) return;
    job.promotion = view.now() + Time{job.executed.us * promote_knob_};
    promotions_.insert({job.promotion, run.job});
  }

  void start_chosen(const RunView& view, Decision& decision) {
    refused_.clear();
    for (const std::size_t i : started_) {
      Run& run = running_[i];
      if constexpr (is_muri) run.account = overhead_.start(view, run.job);
      if (decision.start(run.job) != Verdict::ok) {  // CPU or memory, which the authors' program does not count
        refused_.push_back(run.job);
        continue;
      }
      promotions_.erase({(*this)[run.job].promotion, run.job});
      (*this)[run.job].promotion = Time::max();
    }
  }

  void put_back_refused() {
    for (const JobId job : refused_) {
      const auto run = find_running(job);
      insert_pending(job, run->gpus, (*this)[job].place);
      running_.erase(run);
    }
  }

  // The next instant at which a job is looked at for a demotion or promotion alone.
  void plan_check(const RunView& view, Decision& decision) {
    Time next = promotions_.empty() ? Time::max() : promotions_.begin()->time;
    next_limit_ = Time::max();
    for (const Run& run : running_) {
      if (run.queue == limits_.size()) break;
      next_limit_ = std::min(next_limit_, run.limit, earlier);
      // A check may come late, but not by a second early.
      if (run.limit - whole_seconds(1) < next) next = std::min(next, demotion_check(run, view.now()), earlier);
    }
    if (next != Time::max() && next != next_check_) decision.wake(next);
    next_check_ = next;
  }

  [[nodiscard]] Time demotion_check(const Run& run, Time now) const {
    const std::int64_t limit = limits_[run.queue];
    if constexpr (is_muri) return run.begun + whole_seconds((limit + run.gpus - 1) / run.gpus);
    const std::int64_t executed_s = (now - run.begun).us / microseconds_per_second;
    // The simulator knows whole seconds only, in which the delay is at least one.
    return now + whole_seconds(std::max<std::int64_t>((limit - executed_s) / run.gpus, 1));
  }

  static bool earlier(Time a, Time b) { return a < b; }

  typename std::vector<Run>::iterator find_running(JobId job) {
    return std::find_if(running_.begin(), running_.end(), [&](const Run& run) { return run.job == job; });
  }

  std::vector<std::int64_t> limits_;  // whole GPU-seconds
  std::int64_t promote_knob_;
  Time last_event_{};
  Time next_check_ = Time::max();
  Time next_limit_ = Time::max();                  // when the first running job reaches its limit
  std::vector<Job> jobs_;                          // by job id
  std::vector<Run> running_;                       // by queue, in order
  std::vector<Pending> pending_;                   // by queue
  std::int64_t first_place_ = 0, last_place_ = 0;  // among the pending of any queue: the least, and above the greatest
  std::uint32_t admissions_ = 0;
  std::set<Promotion> promotions_;  // of pending jobs, all to come
  EventOverhead overhead_;          // of the muri form
  // Of the present event:
  std::vector<std::vector<Run>> demoted_;  // by the queue that they enter
  std::vector<Run> ran_, preempted_;
  std::vector<std::size_t> started_;  // into running_
  std::vector<JobId> promoted_, refused_;
};

using TiresiasCode = LasQueues<LasQueuesForm::tiresias>;
using TiresiasMuri = LasQueues<LasQueuesForm::muri>;

PolicyInfo tiresias_code_info();
PolicyInfo tiresias_muri_info();

}  // namespace gpusched
