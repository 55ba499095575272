// SPDX-License-Identifier: Apache-2.0
/// Rehearsal: how a policy that was never asked learns who runs: it starts those jobs once more, on a copy of the
/// state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched::detail {

/// Policies keep accounts of the jobs that they started: who runs since when, under which key, for whom. The rehearsal
/// makes a policy keep them of jobs that another one started. On a copy of the state nobody runs and all nodes are in
/// service; each job that runs comes at the instant since which its present run goes on as it does, alone, and the
/// policy starts it. Whatever nodes it chooses there, the job is put where it truly is, unless the policy places all
/// jobs afresh at every event from a memory of its own (AnyPolicy::places_afresh). What time the job has run, what is
/// left of it and when it started first are as they are. A job that the policy does not start, even when it is called
/// at the instants that it asked for, is withdrawn again, and stays unknown. O(jobs of the table), and a decision for
/// each job that runs.
class Rehearsal {
 public:
  /// At the instant of `view`, before any command. Copies the state.
  explicit Rehearsal(const View& view) : state_(StateOf::get(view)), end_(view.now()) {
    for (const JobId job : view.running()) {
      Run run{.job = job, .state = state_[job], .grants = {}, .size = {}};
      view.for_each_grant(job, [&run](const Grant& grant) { run.grants.push_back(grant); });
      std::reverse(run.grants.begin(), run.grants.end());  // a list grows at its front
      if (state_.sizes().active()) run.size = state_.sizes()[job];
      runs_.push_back(std::move(run));
    }
    std::stable_sort(runs_.begin(), runs_.end(),
                     [](const Run& a, const Run& b) { return a.state.since < b.state.since; });
    number_of_.resize(state_.states.size());
    for (std::uint32_t i = 0; i < runs_.size(); ++i) number_of_[index(runs_[i].job)] = i;
    state_.effects.get<Limits>() = {};  // those that run are within them
    state_.effects.refresh();
    clear();
  }

  /// The policy starts the jobs that run.
  template <class P>
  void play(P& policy) {
    is_free_ = policy.places_afresh();
    for (const Run& run : runs_) {
      state_.now = std::max(state_.now, run.state.since);
      submit(run);
      decide(policy);
      wait_for_start(policy);
    }
    withdraw_rest(policy);
  }

  /// Jobs that run and that the policy does not know, by id.
  [[nodiscard]] std::vector<JobId> unknown() const {
    std::vector<JobId> jobs;
    for (const Run& run : runs_) {
      if (state_[run.job].phase != JobPhase::running) jobs.push_back(run.job);
    }
    std::sort(jobs.begin(), jobs.end());
    return jobs;
  }
  /// Instants after the last one shown at which the policy asked to be called, ascending.
  [[nodiscard]] const std::vector<Time>& wakes() const { return wakes_; }

 private:
  // A run as it is.
  struct Run {
    JobId job = no_job;
    JobState state;
    std::vector<Grant> grants;
    Sizes::Size size;
  };

  // A policy that acts at times of its own gets so many of them for each job.
  static constexpr int most_waits = 3;

  void clear() {
    for (std::uint32_t i = 0; i < state_.cluster.node_count(); ++i) {
      if (!state_.cluster.is_up(NodeId{i})) state_.cluster.reinstate(NodeId{i});
    }
    for (const Run& run : runs_) {
      Power& power = state_.effects.get<Power>();
      if (power.active()) power.admits(state_, run.job, no_index);
      give_back(run.job);
      state_[run.job].phase = JobPhase::future;
    }
    state_.running = {};
    for (JobList& queue : state_.queues) {
      for (std::uint32_t at = queue.first; at != no_index; at = state_.states[at].next) {
        state_.states[at].phase = JobPhase::future;
      }
      queue = {};
    }
    state_.events.clear();
    state_.commands.clear();
    state_.resized.clear();
    state_.cluster.refresh_index();
    if (!runs_.empty()) state_.now = std::min(end_, runs_.front().state.since);
  }

  void give_back(JobId job) {
    state_.cluster.release(state_[job].grants, state_.held_shape(job), state_.queue_of(job));
    state_.cluster.free_grants(state_[job].grants);
    state_[job].grants = no_index;
  }

  void submit(const Run& run) {
    JobState& state = state_[run.job];
    state = run.state;
    state.grants = no_index;
    state.phase = JobPhase::pending;
    state_.append(state_.queues[state_.queue_of(run.job)], run.job);
    state_.events = {{EventKind::submit, run.job}};
  }

  template <class P>
  void decide(P& policy) {
    Decision decision(state_);
    policy.decide(OracleView(state_), decision);
    settle();
  }

  [[nodiscard]] bool is_anyone_waiting() const {
    return std::any_of(state_.queues.begin(), state_.queues.end(), [](const JobList& queue) { return queue.size > 0; });
  }

  template <class P>
  void wait_for_start(P& policy) {
    for (int waits = 0; waits < most_waits && is_anyone_waiting(); ++waits) {
      if (wakes_.empty() || wakes_.front() > end_) return;
      state_.now = std::max(state_.now, wakes_.front());
      std::erase_if(wakes_, [this](Time wake) { return wake <= state_.now; });
      state_.events = {{EventKind::wake, no_job}};
      decide(policy);
    }
  }

  // What a policy preempts here waits again.
  template <class P>
  void withdraw_rest(P& policy) {
    for (int rounds = 0; rounds < most_waits && is_anyone_waiting(); ++rounds) {
      state_.events.clear();
      for (JobList& queue : state_.queues) {
        for (std::uint32_t at = queue.first; at != no_index; at = state_.states[at].next) {
          state_.events.push_back({EventKind::withdraw, JobId{at}});
        }
        queue = {};
      }
      for (const Event& event : state_.events) state_[event.job].phase = JobPhase::done;
      decide(policy);
    }
  }

  // Carries out what the policy commanded.
  void settle() {
    std::vector<JobId> placed;
    for (const Command& command : state_.commands) {
      const bool places = command.kind == CommandKind::start || command.kind == CommandKind::move;
      if (command.kind == CommandKind::preempt) stop(command);
      if (command.kind == CommandKind::wake && command.time <= end_of_time) wakes_.push_back(command.time);
      if (places && state_[command.job].phase == JobPhase::running) placed.push_back(command.job);
    }
    std::sort(placed.begin(), placed.end());
    placed.erase(std::unique(placed.begin(), placed.end()), placed.end());
    for (const JobId job : placed) {
      if (!is_free_) give_back(job);
    }
    for (const JobId job : placed) put_back(job);
    state_.commands.clear();
    state_.cluster.refresh_index();
    std::sort(wakes_.begin(), wakes_.end());
    wakes_.erase(std::unique(wakes_.begin(), wakes_.end()), wakes_.end());
  }

  void stop(const Command& command) {
    state_.cluster.free_grants(command.grants);
    JobState& state = state_[command.job];
    if (state.phase != JobPhase::pending) return;
    state.ran = state_.ran_now(state);
    state.remaining = state_.remaining_now(state);
    state.since = state_.now;
    state.preempted_now = state.starting = false;
  }

  // Where the job truly runs, as it does.
  void put_back(JobId job) {
    const Run& run = runs_[number_of_[index(job)]];
    JobState& state = state_[job];
    state.starting = state.preempted_now = false;
    state.since = run.state.since;
    state.ran = run.state.ran;
    state.remaining = run.state.remaining;
    if (state_.sizes().active()) state_.effects.get<Sizes>()[job] = run.size;
    if (!is_free_)
      state.grants = state_.cluster.place_exactly(state_.held_shape(job), state_.queue_of(job), run.grants);
  }

  EngineState state_;
  Time end_;
  bool is_free_ = false;                  // jobs stay where the policy puts them
  std::vector<Run> runs_;                 // by the instant since which they go on
  std::vector<std::uint32_t> number_of_;  // by job, of its run
  std::vector<Time> wakes_;
};

}  // namespace gpusched::detail
