// SPDX-License-Identifier: Apache-2.0
/// Limits: how much the jobs of a user, an account, a queue or a QOS hold at once, and which jobs wait for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/data/job_limits.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched {

/// Jobs that limits hold back.
struct HeldBack {
  std::uint64_t holds = 0;     ///< how often a limit came to hold a job back so far
  std::uint32_t jobs = 0;      ///< that are held back
  std::int64_t gpu_milli = 0;  ///< what they ask for, in thousandths of a GPU
  friend bool operator==(const HeldBack&, const HeldBack&) = default;  ///< field by field
};

namespace detail {

/// An effect: a job that would exceed a limit if it ran beside those that run is held back: it stands in no queue, and
/// no policy sees it, so that it blocks nobody (Slurm's reasons QOSMaxJobsPerUserLimit and the like). It takes its
/// place again when it may run. A decision that starts one job too many has that start refused. What a decision started
/// counts at once; who is held back is settled before the next decision, which follows at the same instant if that
/// changed. A policy may think better of it each time (two jobs outrank each other while they wait, as a start costs
/// time; or the job that limits let in and out changes its plan): a job that was held back several times at one instant
/// stays so until something else happens, or time would stand still. A job whose submission exceeds a limit, or that
/// exceeds one by itself, is refused and is done (Slurm's MaxSubmitJobs, and the QOS flag DenyOnLimit). A replica of a
/// service is held back as a job is, and nobody submits it: it is never refused. Source:
/// slurm.schedmd.com/resource_limits.html.
class Limits {
 public:
  /// No limits.
  Limits() = default;
  explicit Limits(const EffectWorld& world) : limits_(world.cluster.limits, world.jobs) {
    if (limits_.is_empty()) return;
    buckets_.resize(limits_.buckets().size());
    jobs_.resize(world.jobs.size());
    replicas_ = world.jobs.replicas();
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      const JobId job{i};
      if (i >= replicas_ && i < world.jobs.in_front()) continue;
      jobs_[i].group = group_of(limits_.set_of(job), JobLimits::amounts_of(world.jobs.shape(job)));
    }
  }

  /// True when some limit may hold.
  [[nodiscard]] bool active() const { return !limits_.is_empty(); }
  /// Jobs that are held back.
  [[nodiscard]] std::uint32_t out_of_queues() const { return held_back_.jobs; }
  /// The same, with what they ask for together.
  [[nodiscard]] const HeldBack& held_back() const { return held_back_; }

  // ---- submissions ----
  /// A job is submitted: true when that is refused.
  [[nodiscard]] bool refuses(JobId job) {
    Job& now = jobs_[index(job)];
    if (now.group == no_index || index(job) < replicas_) return false;
    const JobLimits::Set& set = set_of(now);
    now.refused_by = limits_.exceeded_by_one(job, groups_[now.group].asks);
    for (const std::uint32_t number : set.buckets) {
      const JobLimits::Bucket& bucket = limits_.buckets()[number];
      if (now.refused_by == no_index && buckets_[number].submitted >= bucket.submitted) now.refused_by = bucket.rule;
    }
    if (now.refused_by != no_index) return true;
    for (const std::uint32_t bucket : set.counted) ++buckets_[bucket].submitted;
    return false;
  }
  /// The limit that refused the job's submission: the number of its rule in Cluster::limits; no_index: none did.
  [[nodiscard]] std::uint32_t refused_by(JobId job) const { return active() ? jobs_[index(job)].refused_by : no_index; }

  template <class Kernel>
  void ended(Kernel&, JobId job) {
    const Job& now = jobs_[index(job)];
    if (now.group == no_index || now.refused_by != no_index || index(job) < replicas_) return;
    for (const std::uint32_t bucket : set_of(now).counted) --buckets_[bucket].submitted;
  }

  // ---- who waits ----
  /// The job comes to wait in its queue, or leaves it.
  /// \{
  void joins_queue(JobId job) { put(job, Stay::queue); }
  void leaves_queue(JobId job) { take_out(job); }
  /// \}
  /// The job waits, and would exceed a limit if it ran.
  [[nodiscard]] bool bars(JobId job) const {
    const Job& now = jobs_[index(job)];
    return now.group != no_index && !has_room(groups_[now.group]);
  }
  /// It left its queue for that.
  void hold_back(JobId job) {
    put(job, Stay::back);
    ++held_back_.jobs;
    ++held_back_.holds;
  }
  /// True between hold_back() and let_go().
  [[nodiscard]] bool holds(JobId job) const { return active() && jobs_[index(job)].stay == Stay::back; }
  /// It may join its queue again, or is done.
  void let_go(JobId job) {
    take_out(job);
    --held_back_.jobs;
  }
  /// A job that waits asks for something else from now on.
  void asks(JobId job, const Shape& shape, Time now) {
    Job& waiting = jobs_[index(job)];
    if (waiting.group == no_index) return;
    const Stay stay = waiting.stay;
    take_out(job);
    waiting.group = group_of(limits_.set_of(job), JobLimits::amounts_of(shape));
    if (stay != Stay::elsewhere) put(job, stay);
    look_at(waiting, now);
  }

  // ---- who runs ----
  /// True when the job may run with that shape beside those that run.
  [[nodiscard]] bool admits(JobId job, const Shape& shape) const {
    const Job& now = jobs_[index(job)];
    return now.group == no_index || (limits_.allow_alone(job, shape) && has_room_for(job, shape));
  }
  /// The same, whatever it may ask for alone. Precondition: a limit holds for it.
  [[nodiscard]] bool has_room_for(JobId job, const Shape& shape) const {
    return has_room(set_of(jobs_[index(job)]), JobLimits::amounts_of(shape));
  }
  /// True when the job may go on with that shape: no limit is exceeded further than when this instant began. (Those
  /// that are not bound may have taken more than a limit has.)
  [[nodiscard]] bool admits_again(JobId job, const Shape& shape, Time now) const {
    const Job& of = jobs_[index(job)];
    if (of.group == no_index) return true;
    const LimitAmounts asks = JobLimits::amounts_of(shape);
    const std::vector<std::uint32_t>& bound_by = set_of(of).buckets;
    return limits_.allow_alone(job, shape) &&
           std::all_of(bound_by.begin(), bound_by.end(), [this, &asks, &now](std::uint32_t number) {
             const Bucket& bucket = buckets_[number];
             LimitAmounts sum = bucket.held;
             add(sum, number, asks, +1);
             return has_room(number, asks) || (bucket.changed == now && JobLimits::within(sum, bucket.held_before));
           });
  }
  /// A job gets what that shape asks for, or gives back what it had.
  /// \{
  void take(JobId job, const Shape& shape, Time now) {
    jobs_[index(job)].has = JobLimits::amounts_of(shape);
    count(jobs_[index(job)], +1, now);
  }
  void give_back(JobId job, Time now) {
    count(jobs_[index(job)], -1, now);
    jobs_[index(job)].has = nothing;
  }
  /// \}

  // ---- time ----
  /// Another decision is wanted now, once those are held back that have to be.
  void ask_again(Time now) {
    asks_again_ = true;
    due_ = now;
  }
  /// Now, when what runs has changed since the last time.
  [[nodiscard]] Time next_time() const { return due_; }
  template <class Kernel>
  GPUSCHED_RARE void happen(Kernel& kernel) {
    due_ = Time::max();
    std::vector<JobId> leave, join;
    for (const std::uint32_t bucket : std::exchange(changed_, {})) {
      buckets_[bucket].has_changed = false;
      for (const std::uint32_t number : buckets_[bucket].groups) {
        const Group& group = groups_[number];
        if (group.in_queue.empty() && group.back.empty()) continue;
        const bool may_run = has_room(group);
        std::vector<JobId>& flips = may_run ? join : leave;
        const std::vector<JobId>& jobs = may_run ? group.back : group.in_queue;
        flips.insert(flips.end(), jobs.begin(), jobs.end());
      }
    }
    for (std::vector<JobId>* const flips : {&leave, &join}) {
      std::sort(flips->begin(), flips->end(),
                [&kernel](JobId a, JobId b) { return kernel.state.queue_place(a) < kernel.state.queue_place(b); });
      flips->erase(std::unique(flips->begin(), flips->end()), flips->end());
    }
    const std::vector<JobId> reprioritized = leave.empty() ? std::vector<JobId>{} : kernel.reprioritized();
    for (const JobId job : leave) {
      // Policies look for who leaves under the priority that they were told of: a job that has another one since this
      // instant leaves before the next decision.
      if (std::binary_search(reprioritized.begin(), reprioritized.end(), job)) {
        mark(jobs_[index(job)]);
      } else {
        count_turn(jobs_[index(job)], kernel.state.now);
        kernel.hold_back(job);
      }
    }
    for (const JobId job : join) {
      if (takes_turns(jobs_[index(job)], kernel.state.now)) {
        put_off_.push_back(job);
        put_off_at_ = kernel.state.now;
      } else {
        kernel.let_go(job);
      }
    }
    if (std::exchange(asks_again_, false)) kernel.emit({EventKind::wake});
  }
  template <class Kernel>
  void react(Kernel& kernel) {
    if (!put_off_.empty()) look_again(kernel);
    if (!changed_.empty()) due_ = kernel.state.now;
  }

  /// The first limit that holds the job back: the number of its rule in Cluster::limits; no_index: none does.
  [[nodiscard]] std::uint32_t barring_rule(JobId job) const {
    if (!active() || jobs_[index(job)].group == no_index) return no_index;
    const Group& group = groups_[jobs_[index(job)].group];
    for (const std::uint32_t bucket : limits_.set(group.set).buckets) {
      if (!has_room(bucket, group.asks)) return limits_.buckets()[bucket].rule;
    }
    return no_index;
  }

  template <class State>
  [[nodiscard]] bool audit(const State& state, JobId job) const {
    return jobs_[index(job)].group == no_index || jobs_[index(job)].has == JobLimits::amounts_of(state.held_shape(job));
  }
  // What buckets count is what jobs have.
  template <class ClusterState>
  [[nodiscard]] bool audit_nodes(const ClusterState&) const {
    std::vector<LimitAmounts> held(buckets_.size(), nothing);
    for (const Job& job : jobs_) {
      if (job.group == no_index) continue;
      for (const std::uint32_t bucket : set_of(job).counted) add(held[bucket], bucket, job.has, +1);
    }
    for (std::uint32_t i = 0; i < held.size(); ++i) {
      if (!(held[i] == buckets_[i].held)) return false;
    }
    return true;
  }

 private:
  static constexpr LimitAmounts nothing{.gpu_milli = 0, .cpu_milli = 0, .memory_mib = 0, .jobs = 0};
  static constexpr std::uint32_t most_turns = 4;  // at one instant; runs that settle take up to three

  enum class Stay : std::uint8_t { elsewhere, queue, back };

  struct Job {
    std::uint32_t group = no_index;  ///< no_index: no limit holds for it
    std::uint32_t slot = 0;          ///< in the list of its group that its stay names
    Stay stay = Stay::elsewhere;
    std::uint32_t refused_by = no_index;
    std::uint32_t turns = 0;  ///< how often it was held back at the instant `turned`
    Time turned = Time::max();
    LimitAmounts has = nothing;  ///< while it runs
  };
  // Jobs of the same limits that ask for the same: all of them may run, or none.
  struct Group {
    std::uint32_t set = 0;
    LimitAmounts asks = {};
    std::vector<JobId> in_queue = {}, back = {};
  };
  struct Bucket {
    LimitAmounts held = nothing;
    LimitAmounts held_before = nothing;  ///< before its first change at the instant `changed`
    Time changed = Time::max();
    std::int64_t submitted = 0;
    std::vector<std::uint32_t> groups = {};
    bool has_changed = false;
  };

  [[nodiscard]] const JobLimits::Set& set_of(const Job& job) const { return limits_.set(groups_[job.group].set); }

  std::uint32_t group_of(std::uint32_t set, const LimitAmounts& asks) {
    const auto key = std::tuple(set, asks.gpu_milli, asks.cpu_milli, asks.memory_mib);
    const auto [place, added] = numbers_.try_emplace(key, static_cast<std::uint32_t>(groups_.size()));
    if (!added) return place->second;
    groups_.push_back({.set = set, .asks = asks});
    for (const std::uint32_t bucket : limits_.set(set).buckets) buckets_[bucket].groups.push_back(place->second);
    return place->second;
  }

  [[nodiscard]] bool has_room(std::uint32_t bucket, const LimitAmounts& asks) const {
    LimitAmounts sum = buckets_[bucket].held;
    add(sum, bucket, asks, +1);
    return JobLimits::within(sum, limits_.buckets()[bucket].most);
  }
  [[nodiscard]] bool has_room(const JobLimits::Set& set, const LimitAmounts& asks) const {
    for (const std::uint32_t bucket : set.buckets) {
      if (!has_room(bucket, asks)) return false;
    }
    return true;
  }
  [[nodiscard]] bool has_room(const Group& group) const { return has_room(limits_.set(group.set), group.asks); }

  // Where there is no limit nothing is counted.
  void add(LimitAmounts& to, std::uint32_t bucket, const LimitAmounts& amounts, std::int64_t sign) const {
    const LimitAmounts& most = limits_.buckets()[bucket].most;
    if (most.gpu_milli < unlimited) to.gpu_milli += sign * amounts.gpu_milli;
    if (most.cpu_milli < unlimited) to.cpu_milli += sign * amounts.cpu_milli;
    if (most.memory_mib < unlimited) to.memory_mib += sign * amounts.memory_mib;
    if (most.jobs < unlimited) to.jobs += sign * amounts.jobs;
  }

  void count(const Job& job, std::int64_t sign, Time now) {
    if (job.group == no_index) return;
    for (const std::uint32_t number : set_of(job).counted) {
      Bucket& bucket = buckets_[number];
      if (std::exchange(bucket.changed, now) != now) bucket.held_before = bucket.held;
      add(bucket.held, number, job.has, sign);
    }
    look_at(job, now);
  }

  // Those who share a limit with the job may have to leave their queues, or join them.
  void look_at(const Job& job, Time now) {
    mark(job);
    if (!changed_.empty()) due_ = now;
  }
  void mark(const Job& job) {
    for (const std::uint32_t bucket : set_of(job).counted) {
      if (!std::exchange(buckets_[bucket].has_changed, true)) changed_.push_back(bucket);
    }
  }

  static void count_turn(Job& job, Time now) {
    job.turns = job.turned == now ? job.turns + 1 : 1;
    job.turned = now;
  }
  static bool takes_turns(const Job& job, Time now) { return job.turned == now && job.turns >= most_turns; }

  // Something has happened since, or nothing more will: those that were put off may be let go. An instant without
  // events is none: a run that has just begun may bring one soon, again and again.
  template <class Kernel>
  GPUSCHED_RARE void look_again(Kernel& kernel) {
    const auto& state = kernel.state;
    if (state.now == put_off_at_) arrived_ = state.arrived;
    const bool happened = state.now != put_off_at_ && (!state.events.empty() || state.arrived != arrived_);
    if (!happened && kernel.next_event_time() != Time::max()) return;
    for (const JobId job : std::exchange(put_off_, {})) {
      mark(jobs_[index(job)]);
      jobs_[index(job)].turned = Time::max();
    }
  }

  [[nodiscard]] std::vector<JobId>& list_of(const Job& job) {
    Group& group = groups_[job.group];
    return job.stay == Stay::queue ? group.in_queue : group.back;
  }
  void put(JobId id, Stay stay) {
    Job& job = jobs_[index(id)];
    if (job.group == no_index) return;
    job.stay = stay;
    if (stay == Stay::back) held_back_.gpu_milli += groups_[job.group].asks.gpu_milli;
    job.slot = static_cast<std::uint32_t>(list_of(job).size());
    list_of(job).push_back(id);
  }
  void take_out(JobId id) {
    Job& job = jobs_[index(id)];
    if (job.stay == Stay::elsewhere) return;
    if (job.stay == Stay::back) held_back_.gpu_milli -= groups_[job.group].asks.gpu_milli;
    std::vector<JobId>& list = list_of(job);
    jobs_[index(list.back())].slot = job.slot;
    list[job.slot] = list.back();
    list.pop_back();
    job.stay = Stay::elsewhere;
  }

  JobLimits limits_;
  std::vector<Bucket> buckets_;  // as those of limits_
  std::vector<Job> jobs_;
  std::vector<Group> groups_;
  std::map<std::tuple<std::uint32_t, MilliGpu, std::int64_t, std::int64_t>, std::uint32_t> numbers_;  // of groups
  std::vector<std::uint32_t> changed_;                                                                // buckets
  Time due_ = Time::max();
  bool asks_again_ = false;
  std::vector<JobId> put_off_;  // until something happens after that
  Time put_off_at_ = Time::max();
  HeldBack held_back_;
  std::uint32_t replicas_ = 0;
  std::uint32_t arrived_ = 0;  // by the end of that instant
};

}  // namespace detail
}  // namespace gpusched
