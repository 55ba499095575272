// SPDX-License-Identifier: Apache-2.0
/// Ranking: the decisions of a scheduler that preempts. Waiting and running jobs stand in one order by scores that
/// the agent or a heuristic gives them, and the cluster is given out in that order. A job is scored again only when its
/// attained service or its waiting time enters another level. Levels double in length, so that a job is scored a
/// logarithmic number of times and jobs do not preempt each other back and forth.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/learn/doubling_levels.hpp"
#include "gpusched/learn/job_history.hpp"
#include "gpusched/learn/observation.hpp"
#include "gpusched/learn/service_life.hpp"
#include "gpusched/policy/preemptive_order.hpp"

namespace gpusched {

/// The order of all jobs, waiting and running, by the scores they were last given; see the head of this file. A value.
class Ranking {
 public:
  /// Levels of attained GPU service, in GPU-microseconds: every doubling has four. With one level each, the average
  /// completion time of las on Philly is 1.5 % longer.
  static constexpr DoublingLevels service_levels{whole_seconds(60).us, 4};
  /// Levels of a job's total waiting time, in microseconds: one level for each doubling.
  static constexpr DoublingLevels wait_levels{whole_seconds(60).us, 1};

  /// `forecasts`: log_gittins() may be asked without forecast(). Of `history` it takes what is for mode preempt.
  explicit Ranking(bool forecasts, JobHistory history = {}) : life_(std::move(history.life)), forecasts_(forecasts) {}

  /// A job began to wait, after its submission or after an attempt that ended; `known_s` is its known run time.
  void wait(const View& view, JobId id, float known_s) {
    if (jobs_.empty()) jobs_.resize(view.job_count());
    Job& job = jobs_[index(id)];
    const bool again = std::exchange(job.submitted, true);
    if (forecasts_ && !again) life_.submit(view, id);
    if (forecasts_ && again) life_.pass(view, id);
    if (job.running) leave(view, id);
    job.present = true;
    job.known_s = known_s;
    job.milli = view.shape(id).gpu_milli();
    job.gpus = gpus_of(view.shape(id));
    order_.wait(view, id, Key{});
    ask_for(id);
    plan(view, id);
  }

  /// A waiting job left its queue: for good, or to join it anew.
  void withdraw(const View& view, JobId id) {
    Job& job = jobs_[index(id)];
    order_.withdraw(view, id);
    job.present = false;
    job.due_us = never;
    if (std::exchange(job.asked, false)) asked_.erase(std::find(asked_.begin(), asked_.end(), id));
    if (forecasts_ && view.phase(id) == JobPhase::done) life_.withdraw(view, id);
  }

  /// A job ended.
  void finish(const View& view, JobId id) {
    leave(view, id);
    life_.finish(view, id);
  }

  /// From now on log_gittins() may be asked. A forecast that nobody reads is not kept, since it costs time at every
  /// event. It is the same when it begins here, because cross() has noted every level by now and the view tells of all
  /// jobs. O(jobs) the first time. Precondition: cross() was called at this instant.
  void forecast(const View& view) {
    if (std::exchange(forecasts_, true)) return;
    for (std::uint32_t i = 0; i < view.arrived(); ++i) life_.catch_up(view, JobId{i});
  }

  /// Asks for the scores of the jobs whose Gittins index changed most when this one ended. Precondition: as
  /// log_gittins().
  void ask_near(JobId ended) {
    life_.for_each_near(ended, [this](JobId id) {
      if (jobs_[index(id)].present) ask_for(id);
    });
  }

  /// Lists the jobs that entered a level by now. Call once an instant, after wait() and finish().
  void cross(const View& view) {
    while (!crossings_.empty() && crossings_.front().time_us <= view.now().us) {
      const Crossing due = crossings_.front();
      pop_crossing();
      if (jobs_[index(due.job)].due_us != due.time_us) continue;
      if (forecasts_) life_.pass(view, due.job);
      ask_for(due.job);
      plan(view, due.job);
    }
  }

  /// Asks for the scores of all jobs again, because another agent or heuristic gives them from now on.
  void rank_anew(const View& view) {
    for (const JobId job : view.running()) ask_for(job);
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      for (const JobId job : view.queue(queue)) ask_for(job);
    }
  }

  /// Jobs whose scores are asked for; job i has rows 2 i and 2 i + 1.
  [[nodiscard]] std::span<const JobId> asked() const { return asked_; }

  /// Writes rank_features floats: the row of the job as it would wait.
  void describe(const View& view, JobId id, float* out) const {
    const Job& job = jobs_[index(id)];
    const float ran_s = ran_seconds(view, id);
    out[rank_running] = 0.0f;
    out[rank_service] = service_doublings(view, id) / 10;
    out[rank_wait] = wait_levels.doublings(wait_levels.level(waited_us(view, id))) / 10;
    out[rank_gpus] = std::log1p(job.gpus) / 5;
    out[rank_known] = std::log1p(job.known_s) / 10;
    out[rank_left] = std::log1p(left_seconds(ran_s, job.known_s)) / 10;
    out[rank_overrun] = ran_s > job.known_s ? std::log(ran_s / std::max(job.known_s, 1.0f)) / 10 : 0.0f;
    out[rank_ending] = std::log(life_.ended_share(view.shape_id(id), view.attained_gpu_us(id))) / 5;
    out[rank_attempts] = std::log1p(static_cast<float>(view.attempt(id))) / 3;
  }

  /// How often the job's attained GPU service doubled, by its level (DoublingLevels::doublings).
  [[nodiscard]] float service_doublings(const View& view, JobId id) const {
    return service_levels.doublings(service_levels.level(view.attained_gpu_us(id)));
  }
  /// Natural logarithm of the job's Gittins index (ServiceLife::gittins_index). Precondition: forecasts were asked
  /// for, from the start or by forecast().
  [[nodiscard]] float log_gittins(const View& view, JobId id) const {
    GPUSCHED_ASSERT(forecasts_, "no forecast is kept");
    return static_cast<float>(std::log(life_.gittins_index(view, id)));
  }
  /// Known run time less the time run, in seconds; rank_left says what it is for a job that ran longer than known.
  [[nodiscard]] float left_seconds(const View& view, JobId id) const {
    return left_seconds(ran_seconds(view, id), jobs_[index(id)].known_s);
  }
  /// The known run time, in seconds.
  [[nodiscard]] float known_seconds(JobId id) const { return jobs_[index(id)].known_s; }
  /// True while the job runs.
  [[nodiscard]] bool runs(JobId id) const { return jobs_[index(id)].running; }
  /// GPUs of the job, a share counting as its fraction.
  [[nodiscard]] float gpus(JobId id) const { return jobs_[index(id)].gpus; }

  /// Takes two scores for each job of asked(): as it would wait and as it would run. Larger scores come first, ties go
  /// to the earlier place (QueuePlace); a running job counts with the larger of its two scores. Precondition: all are
  /// finite.
  void rank(const View& view, std::span<const float> scores) {
    GPUSCHED_ASSERT(scores.size() >= 2 * asked_.size(), "two scores for each job");
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      Job& job = jobs_[index(asked_[i])];
      job.asked = false;
      job.waiting_score = scores[2 * i];
      job.running_score = std::max(scores[2 * i], scores[2 * i + 1]);
      order_.rekey(view, asked_[i], Key{job.running ? job.running_score : job.waiting_score});
    }
    asked_.clear();
  }

  /// Gives the cluster to the jobs in their order, and plans a wake for the next change of level that may change it. A
  /// job that does not fit preempts running jobs that come after it, the last first, if that makes room; a preemption
  /// that turns out not to be needed is taken back. Precondition: asked() is empty.
  void fill(const View& view, Decision& decision) {
    Hooks hooks{*this, view};
    order_.fill(view, decision, hooks);
    for (const JobId id : moved_) {
      Job& job = jobs_[index(id)];
      if (job.running == job.planned_running) continue;
      if (!job.running) order_.rekey(view, id, Key{job.waiting_score});
      plan(view, id);
    }
    moved_.clear();
    if (view.pending_count() > 0) ask_to_wake(decision);
  }

 private:
  struct Key {
    float score = 0;
    friend bool operator<(const Key& a, const Key& b) { return a.score > b.score; }
  };
  struct Job {
    std::int64_t due_us = never;
    MilliGpu milli = 0;
    float known_s = 0, gpus = 0;
    float waiting_score = 0, running_score = 0;
    bool submitted = false;
    bool present = false;  // it waits or runs; a limit may hold it back
    bool running = false;
    bool planned_running = false;  // as of plan()
    bool asked = false;
  };
  // When a job enters its next level; stale when the job's own time differs.
  struct Crossing {
    std::int64_t time_us;
    JobId job;
    friend bool operator<(const Crossing& a, const Crossing& b) {  // for a heap whose top is the earliest
      return a.time_us != b.time_us ? b.time_us < a.time_us : index(b.job) < index(a.job);
    }
  };
  // What PreemptiveOrder asks while it places jobs.
  struct Hooks {
    Ranking& ranking;
    const View& view;

    Key before_start(JobId id) const {
      Job& job = ranking.jobs_[index(id)];
      job.running = true;
      ranking.moved_.push_back(id);
      return Key{job.running_score};
    }
    void before_preempt(JobId id) const {
      Job& job = ranking.jobs_[index(id)];
      job.running = false;
      ranking.moved_.push_back(id);
    }
    void restored(JobId id) const { ranking.jobs_[index(id)].running = true; }
    void before_displace() const {}
    [[nodiscard]] Placement placement(JobId) const { return view.options().placement; }
  };

  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  void ask_for(JobId id) {
    if (!std::exchange(jobs_[index(id)].asked, true)) asked_.push_back(id);
  }

  // A running job left the cluster.
  void leave(const View& view, JobId id) {
    Job& job = jobs_[index(id)];
    order_.leave(view, id);
    job.running = job.present = false;
    job.due_us = never;
    if (std::exchange(job.asked, false)) asked_.erase(std::find(asked_.begin(), asked_.end(), id));
  }

  [[nodiscard]] static float ran_seconds(const View& view, JobId id) {
    return static_cast<float>(view.ran(id).us) * 1e-6f;
  }
  [[nodiscard]] std::int64_t waited_us(const View& view, JobId id) const {
    return (view.now() - view.submit(id) - view.ran(id)).us;
  }
  [[nodiscard]] static float left_seconds(float ran_s, float known_s) {
    return ran_s < known_s ? known_s - ran_s : std::max(ran_s, 1.0f);
  }

  // Plans when the job enters its next level: of service while it runs, of waiting time while it waits.
  void plan(const View& view, JobId id) {
    Job& job = jobs_[index(id)];
    job.planned_running = job.running;
    if (job.running) {
      const std::int64_t attained = view.attained_gpu_us(id);
      const std::int64_t wanted = service_levels.begin(service_levels.level(attained) + 1);
      const Time origin = view.now() - view.ran(id);  // of its run, had it had no pause
      job.due_us = job.milli == 0 ? never : origin.us + mul_div_up(wanted, whole_gpu, job.milli);
      // It may have run at other sizes before.
      if (job.milli > 0 && view.has_elastic_jobs()) {
        job.due_us = view.now().us + mul_div_up(wanted - attained, whole_gpu, job.milli);
      }
    } else {
      const std::int64_t waited = waited_us(view, id);
      job.due_us = view.now().us + wait_levels.begin(wait_levels.level(waited) + 1) - waited;
    }
    if (job.due_us == never) return;
    crossings_.push_back({job.due_us, id});
    std::push_heap(crossings_.begin(), crossings_.end());
  }

  void pop_crossing() {
    std::pop_heap(crossings_.begin(), crossings_.end());
    crossings_.pop_back();
  }

  void ask_to_wake(Decision& decision) {
    while (!crossings_.empty() && jobs_[index(crossings_.front().job)].due_us != crossings_.front().time_us) {
      pop_crossing();
    }
    if (crossings_.empty() || crossings_.front().time_us == next_wake_us_) return;
    next_wake_us_ = crossings_.front().time_us;
    decision.wake(Time{next_wake_us_});
  }

  PreemptiveOrder<Key> order_;
  std::vector<Job> jobs_;
  std::vector<JobId> asked_;
  std::vector<JobId> moved_;  // by the present fill()
  std::vector<Crossing> crossings_;
  ServiceLife life_;
  bool forecasts_;  // every job is submitted to life_
  std::int64_t next_wake_us_ = never;
};

}  // namespace gpusched
