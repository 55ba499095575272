// SPDX-License-Identifier: Apache-2.0
/// Decision: the commands a policy gives at one instant, each checked as it is given against the capacity that the
/// earlier ones leave. A refused command changes nothing; Engine::apply then carries out the rest and cannot fail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "gpusched/engine/engine_state.hpp"

namespace gpusched {

/// The answer to a command.
enum class Verdict : std::uint8_t {
  ok,            ///< accepted
  does_not_fit,  ///< capacity, quota, GPU type or placement rule
  wrong_phase,   ///< starting a job that is not pending, preempting one that is not running, cancelling one that is
                 ///< neither
  in_the_past,   ///< a wake not after now
  no_power,      ///< the cluster might exceed a power cap
  wrong_size,    ///< a number of tasks with which the job cannot run
  over_limit,  ///< a limit of its user, account, queue or QOS; whom that holds back is settled before the next decision
};

/// Borrowed from the engine for one instant; not kept.
class Decision {
 public:
  /// Used by Engine::decision().
  explicit Decision(detail::EngineState& state) : state_(&state) {}

  /// For a policy that offers its jobs in order and passes over those without room: from the first start on that a
  /// limit refuses, no other job starts in this decision. Whom the limit holds back then leaves its queue, and there is
  /// another decision at this instant, in which nobody overtakes those who were passed over with it.
  void keep_order() { state_->keeps_order = true; }

  /// Starts a pending job on nodes chosen by the run's placement rule: the whole gang or nothing. An elastic job gets
  /// what it asks for.
  Verdict start(JobId job) { return start(job, state_->options.placement); }

  /// The same with another placement rule than the run's.
  GPUSCHED_HOT Verdict start(JobId job, Placement rule) {
    if ((*state_)[job].phase != JobPhase::pending) return Verdict::wrong_phase;
    if (is_barred(job, state_->shape(job))) return Verdict::over_limit;
    return commit_start(job, place(job, state_->shape(job), rule), state_->shape(job));
  }

  /// Starts a pending elastic job with so many tasks (View::curve), chosen by the run's placement rule; a rigid
  /// one with those that it asks for. Another size for a running job: preempt() and this in one decision, for the price
  /// of a preemption.
  Verdict start_with(JobId job, std::uint32_t tasks) {
    if ((*state_)[job].phase != JobPhase::pending) return Verdict::wrong_phase;
    const ElasticCurve* const curve = state_->sizes().curve(*state_->jobs, job);
    Shape shape = state_->shape(job);
    if (curve == nullptr ? tasks != shape.tasks : tasks < curve->min_tasks || tasks > curve->max_tasks) {
      return Verdict::wrong_size;
    }
    shape.tasks = tasks;
    if (is_barred(job, shape)) return Verdict::over_limit;
    const Verdict verdict = commit_start(job, place(job, shape, state_->options.placement), shape);
    if (verdict == Verdict::ok && curve != nullptr) sizes()[job].shape = shape;
    return verdict;
  }

  /// The same on GPUs of one type alone, chosen by the run's placement rule.
  Verdict start_on_type(JobId job, std::uint32_t gpu_type) {
    if ((*state_)[job].phase != JobPhase::pending) return Verdict::wrong_phase;
    const Placement rule = state_->rule_for(job, state_->options.placement);
    const Shape& shape = state_->shape(job);
    if (is_barred(job, shape)) return Verdict::over_limit;
    return commit_start(job, state_->cluster.place_on_type(shape, quota_vc(job), rule, gpu_type), shape);
  }

  /// Starts a pending job on nodes of the policy's choice, which must add up to its gang.
  Verdict start_on(JobId job, std::span<const NodeTasks> nodes) {
    if ((*state_)[job].phase != JobPhase::pending) return Verdict::wrong_phase;
    const Shape& shape = state_->shape(job);
    if (is_barred(job, shape)) return Verdict::over_limit;
    return commit_start(job, state_->cluster.place_on(shape, quota_vc(job), nodes.data(), nodes.size()), shape);
  }

  /// The same on GPUs and MIG instances of the policy's choice (ClusterState::place_exactly).
  Verdict start_exactly(JobId job, std::span<const Grant> grants) {
    if ((*state_)[job].phase != JobPhase::pending) return Verdict::wrong_phase;
    const Shape& shape = state_->shape(job);
    if (is_barred(job, shape)) return Verdict::over_limit;
    return commit_start(job, state_->cluster.place_exactly(shape, quota_vc(job), grants), shape);
  }

  /// Would start(job) be accepted? Changes nothing lasting.
  [[nodiscard]] bool fits(JobId job) {
    const Shape& shape = state_->shape(job);
    if (!is_within_limits(job, shape)) return false;
    const std::uint32_t grants = place(job, shape, state_->options.placement);
    if (grants == no_index) return false;
    const bool is_powered = !power().active() || power().admits(*state_, job, grants, false);
    state_->cluster.release(grants, shape, quota_vc(job));
    state_->cluster.free_grants(grants);
    return is_powered;
  }

  /// Stops a running job and frees its capacity for the commands that follow. It waits at the end of its queue. One
  /// that this decision started never ran: its start is taken back, which costs nothing and is no preemption.
  Verdict preempt(JobId job) {
    detail::JobState& state = (*state_)[job];
    if (state.phase != JobPhase::running) return Verdict::wrong_phase;
    if (power().active()) power().admits(*state_, job, no_index);
    state_->cluster.release(state.grants, state_->held_shape(job), quota_vc(job));
    if (limits().active()) limits().give_back(job, state_->now);
    if (state.starting) find_last(job, detail::CommandKind::start)->withdrawn = true;
    state_->commands.push_back({.kind = detail::CommandKind::preempt,
                                .withdrawn = state.starting,
                                .job = job,
                                .grants = state.grants,
                                .time = {}});
    state.grants = no_index;
    state.preempted_now = state.preempted_now || !state.starting;
    state.starting = false;
    move_to_queue(job, state);
    return Verdict::ok;
  }

  /// Takes a preemption of this decision back, if exactly what the job held is still free: it then runs on as if
  /// nothing had happened. A job that was vacated before held nothing.
  Verdict restore(JobId job) {
    detail::JobState& state = (*state_)[job];
    detail::Command* const command = find_preempt(job);
    if (state.phase != JobPhase::pending || command == nullptr) return Verdict::wrong_phase;
    if (command->grants == no_index) return Verdict::does_not_fit;
    const bool may_run = !limits().active() || limits().admits_again(job, state_->held_shape(job), state_->now);
    if (!may_run) return Verdict::over_limit;
    if (!state_->cluster.retake(command->grants, state_->held_shape(job), quota_vc(job))) return Verdict::does_not_fit;
    if (power().active() && !power().takes_back(*state_, job, command->grants)) {
      state_->cluster.release(command->grants, state_->held_shape(job), quota_vc(job));
      return Verdict::no_power;
    }
    state.grants = command->grants;
    state.starting = command->withdrawn;
    state.preempted_now = state.preempted_now && state.starting;
    if (state.starting) find_last(job, detail::CommandKind::start)->withdrawn = false;
    *command = {.kind = detail::CommandKind::wake, .time = Time::max()};  // a command that does nothing
    if (limits().active()) limits().take(job, state_->held_shape(job), state_->now);
    move_to_running(job, state);
    return Verdict::ok;
  }

  /// Gives up a job that waits, or preempts one that runs and gives it up: it is done without having done its work.
  /// What it did stays booked as after a preemption. Replicas of services and tasks of studies are not a policy's to
  /// give up.
  Verdict cancel(JobId job) {
    detail::JobState& state = (*state_)[job];
    if (is_told_when_to_end(job)) return Verdict::wrong_phase;
    if (state.phase == JobPhase::running) preempt(job);
    if (state.phase != JobPhase::pending) return Verdict::wrong_phase;
    state_->leave_queue(job);
    state.phase = JobPhase::done;
    state.cancelled_by = detail::Canceller::policy;
    add(detail::CommandKind::cancel, job);
    return Verdict::ok;
  }

  /// Frees what a running job holds while it runs on, so that move_on() can give it other nodes. By the end of the
  /// decision the job must have been moved or preempted; until then ClusterState::for_each_idle_level() must not be
  /// asked.
  Verdict vacate(JobId job) {
    detail::JobState& state = (*state_)[job];
    if (state.phase != JobPhase::running) return Verdict::wrong_phase;
    if (power().active()) power().admits(*state_, job, no_index);
    state_->cluster.defer_index();
    state_->cluster.release(state.grants, state_->held_shape(job), quota_vc(job));
    state_->cluster.free_grants(state.grants);
    state.grants = GPUSCHED_NOTE_VACATED(no_index);
    return Verdict::ok;
  }

  /// Gives a vacated job nodes of the policy's choice. It runs on without a pause, cost or preemption: for published
  /// simulators that place every job afresh at each event.
  Verdict move_on(JobId job, std::span<const NodeTasks> nodes) {
    detail::JobState& state = (*state_)[job];
    if (state.phase != JobPhase::running || state.grants != no_index) return Verdict::wrong_phase;
    const std::uint32_t grants =
        state_->cluster.place_on(state_->held_shape(job), quota_vc(job), nodes.data(), nodes.size());
    if (grants == no_index) return Verdict::does_not_fit;
    if (!has_power(job, grants, state_->held_shape(job))) return Verdict::no_power;
    state.grants = grants;
    add(detail::CommandKind::move, job);
    return Verdict::ok;
  }

  /// Calls visit(JobId) for the jobs that this decision has started so far, in order.
  template <class Visit>
  void for_each_start(Visit visit) const {
    for (const detail::Command& command : state_->commands) {
      if (command.kind == detail::CommandKind::start && !command.withdrawn) visit(command.job);
    }
  }

  /// Calls visit(JobId) for the jobs that it has cancelled so far, in order.
  template <class Visit>
  void for_each_cancel(Visit visit) const {
    for (const detail::Command& command : state_->commands) {
      if (command.kind == detail::CommandKind::cancel) visit(command.job);
    }
  }

  /// Asks for a decision at time `t`, whatever else happens.
  Verdict wake(Time t) {
    if (t <= state_->now) return Verdict::in_the_past;
    add(detail::CommandKind::wake, no_job, t);
    return Verdict::ok;
  }

  /// Adds `change` (it may be negative, but not below zero work left) to the work left of a running job: start-up and
  /// checkpoint costs that published simulators charge by rules of their own.
  Verdict adjust_work(JobId job, Time change) {
    if ((*state_)[job].phase != JobPhase::running) return Verdict::wrong_phase;
    add(detail::CommandKind::adjust, job, GPUSCHED_CHANGE(change, state_->remaining_now((*state_)[job])));
    return Verdict::ok;
  }

  /// A running job keeps its place and does no work until resume(): it waits there for something outside the engine. It
  /// is not held when it starts again.
  Verdict hold(JobId job) { return set_held(job, detail::CommandKind::hold); }
  /// Ends hold().
  Verdict resume(JobId job) { return set_held(job, detail::CommandKind::resume); }

  /// Sets the power limit of the GPUs of a running job, in this run and later ones, to the greatest setting (GpuPower)
  /// that is not above `watts` on any GPU type of the cluster, or to the least there is: types have as many levels, and
  /// all of a job's GPUs the same one. A cap may set them lower.
  Verdict limit_power(JobId job, double watts) {
    if ((*state_)[job].phase != JobPhase::running) return Verdict::wrong_phase;
    add(detail::CommandKind::limit_power, job, Time{Signal::to_micro(watts)});
    return Verdict::ok;
  }

 private:
  // Quotas and node ownership follow the scheduling queue, of which the last belongs to jobs of no virtual cluster.
  [[nodiscard]] std::uint32_t quota_vc(JobId job) const { return state_->queue_of(job); }

  [[nodiscard]] bool is_told_when_to_end(JobId job) const {
    const auto& trials = state_->effects.get<detail::Trials>();
    return state_->is_replica(job) || (trials.active() && trials.is_trial(job));
  }

  [[nodiscard]] detail::Sizes& sizes() { return state_->effects.get<detail::Sizes>(); }
  [[nodiscard]] detail::Limits& limits() { return state_->effects.get<detail::Limits>(); }
  // A limit refuses the job's start, or has refused another one before.
  [[nodiscard]] bool is_barred(JobId job, const Shape& shape) {
    if (!limits().active()) return false;
    const bool is_over = !limits().admits(job, shape);
    if (is_over && state_->keeps_order && !limits().has_room_for(job, shape)) state_->is_cut_short = true;
    return is_over || state_->is_cut_short;
  }
  [[nodiscard]] bool is_within_limits(JobId job, const Shape& shape) {
    return !limits().active() || limits().admits(job, shape);
  }
  [[nodiscard]] detail::Power& power() { return state_->effects.get<detail::Power>(); }

  // False, and the grants are given back, when a cap might be exceeded.
  bool has_power(JobId job, std::uint32_t grants, const Shape& shape) {
    if (!power().active() || power().admits(*state_, job, grants)) return true;
    state_->cluster.release(grants, shape, quota_vc(job));
    state_->cluster.free_grants(grants);
    return false;
  }

  std::uint32_t place(JobId job, const Shape& shape, Placement rule) {
    if (!state_->resized.empty()) {
      if (const std::uint32_t same = place_where_it_ran(job, shape); same != no_index) return same;
    }
    return state_->cluster.place(shape, quota_vc(job), state_->rule_for(job, rule), state_->speeds(job));
  }

  // A job whose user made it smaller at this instant keeps the nodes on which it has the most tasks.
  GPUSCHED_RARE std::uint32_t place_where_it_ran(JobId job, const Shape& shape) {
    const auto resized = std::find_if(state_->resized.begin(), state_->resized.end(),
                                      [job](const detail::Resized& other) { return other.job == job; });
    if (resized == state_->resized.end() || shape.tasks > resized->tasks) return no_index;
    std::map<NodeId, std::uint32_t> held;
    for (std::uint32_t at = resized->grants; at != no_index; at = state_->cluster.grant(at).next) {
      held[state_->cluster.grant(at).node] += state_->cluster.grant(at).tasks;
    }
    std::vector<NodeTasks> nodes;
    for (const auto& [node, tasks] : held) nodes.push_back({.node = node, .tasks = tasks});
    std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.tasks > b.tasks; });
    std::uint32_t left = shape.tasks;
    for (NodeTasks& part : nodes) left -= part.tasks = std::min(part.tasks, left);
    std::erase_if(nodes, [](const NodeTasks& part) { return part.tasks == 0; });
    return state_->cluster.place_on(shape, quota_vc(job), nodes.data(), nodes.size());
  }

  GPUSCHED_HOT Verdict commit_start(JobId job, std::uint32_t grants, const Shape& shape) {
    if (grants == no_index) return Verdict::does_not_fit;
    if (!has_power(job, grants, shape)) return Verdict::no_power;
    detail::JobState& state = (*state_)[job];
    state.grants = grants;
    if (sizes().active()) sizes()[job].shape = state_->shape(job);
    if (limits().active()) limits().take(job, shape, state_->now);
    if (!state.preempted_now) state.since = state_->now;
    state.starting = true;
    move_to_running(job, state);
    add(detail::CommandKind::start, job);
    return Verdict::ok;
  }

  Verdict set_held(JobId job, detail::CommandKind kind) {
    if ((*state_)[job].phase != JobPhase::running) return Verdict::wrong_phase;
    add(kind, job);
    return Verdict::ok;
  }

  void add(detail::CommandKind kind, JobId job, Time time = {}) {
    state_->commands.push_back({.kind = kind, .job = job, .time = time});
  }

  void move_to_running(JobId job, detail::JobState& state) {
    state_->leave_queue(job);
    state.phase = JobPhase::running;
    state_->append(state_->running, job);
  }

  void move_to_queue(JobId job, detail::JobState& state) {
    state_->unlink(state_->running, job);
    state.phase = JobPhase::pending;
    state_->join_queue_last(job);
  }

  // The latest preemption of `job` in this decision that no later start followed. Decisions hold few commands, and the
  // one looked for is among the last.
  detail::Command* find_preempt(JobId job) {
    for (auto command = state_->commands.rbegin(); command != state_->commands.rend(); ++command) {
      if (command->job != job) continue;
      return command->kind == detail::CommandKind::preempt ? &*command : nullptr;
    }
    return nullptr;
  }

  // The latest command of that kind for `job`. Precondition: there is one.
  detail::Command* find_last(JobId job, detail::CommandKind kind) {
    auto command = state_->commands.rbegin();
    while (command->job != job || command->kind != kind) ++command;
    return &*command;
  }

  detail::EngineState* state_;
};

}  // namespace gpusched
