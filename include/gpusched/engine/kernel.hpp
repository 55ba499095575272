// SPDX-License-Identifier: Apache-2.0
/// Kernel: moves jobs between their queues and their nodes. It knows of effects only what effect_list.hpp lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/saved_states.hpp"

namespace gpusched::detail {

/// What Engine is made of: RunAccount, SavedStates and this. Effects are handed it by their hooks and may call what is
/// public.
class Kernel : public SavedStates {
 public:
  Kernel(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options, const RunInputs& inputs) {
    state.jobs = &jobs;
    state.runtime = inputs.runtime != nullptr && inputs.runtime->is_uniform() ? nullptr : inputs.runtime;
    state.options = options;
    state.cluster = ClusterState(cluster, jobs.gpu_specs(), Rng(options.seed).split("placement"));
    if (state.runtime != nullptr && !state.runtime->spans().is_empty()) state.cluster.keep_gangs_near();
    state.demands = DemandTable(jobs, cluster);
    if (inputs.hosted != nullptr) {
      state.states.share(*inputs.hosted, inputs.engine);
    } else {
      state.states.open(jobs.size());
    }
    state.coming = inputs.hosted != nullptr ? 0 : jobs.size();
    state.expected = jobs.size();
    state.queues.resize(cluster.vcs.size() + 1);
    if (!cluster.vcs.empty()) match_virtual_clusters(jobs, cluster);
    if (jobs.size() > 0) state.now = jobs.submit(JobId{0});
    state.effects = Effects(EffectWorld{.jobs = jobs,
                                        .cluster = cluster,
                                        .options = options,
                                        .inputs = inputs,
                                        .cuts_cards = state.cluster.mig().are_dynamic()});
    if (state.effects.hold_jobs_back()) state.queue_numbers.resize(jobs.size(), no_index);
    if (state.effects.keep_seats()) {
      state.occupancy.open(jobs.size(), state.cluster.node_count(), state.cluster.card_count());
    }
    if (options.preemption.any() || state.effects.count_costs()) state.saved.resize(jobs.size());
    if (!state.saved.empty() || state.effects.keep_accounts()) state.accounts.resize(jobs.size());
    call([this](auto& effect) {
      if constexpr (requires { effect.open(*this); }) effect.open(*this);
    });
  }

  /// Goes on from a state, which is copied.
  explicit Kernel(const EngineState& from) { state = from; }

  /// From now on this is what somebody imagines who knows no future: no job comes, no node fails or comes back, no user
  /// changes a job.
  GPUSCHED_RARE void forget_future() {
    state.coming = state.arrived;
    state.expected = std::min(state.expected, state.arrived);
    call([](auto& effect) {
      if constexpr (requires { effect.forget_future(); }) effect.forget_future();
    });
    state.effects.refresh();
  }

  /// Nor what comes of its jobs: they are those of `believed`, of which each has one attempt. Precondition: as
  /// Engine::imagined().
  GPUSCHED_RARE void believe(const JobTable& believed, std::span<const Belief> beliefs) {
    state.jobs = &believed;
    for (const Belief& belief : beliefs) {
      if (!state.states.is_here(index(belief.job))) continue;  // it runs elsewhere, if at all
      if (state[belief.job].clock_runs()) settle_now(belief.job);
      call([this, &belief](auto& effect) {
        if constexpr (requires { effect.believed(*this, belief.job); }) effect.believed(*this, belief.job);
      });
      believe_left(belief.job, belief.left);
    }
  }

  /// So many jobs come after all: the next rows of the table. Precondition: may_draw().
  GPUSCHED_RARE void draw(std::uint32_t jobs) {
    state.coming = state.arrived + jobs;
    state.expected += jobs;
  }
  /// No effect knows more of a job to come than the table of jobs says.
  [[nodiscard]] bool may_draw() const {
    const Effects& effects = state.effects;
    return !(effects.get<TimeLimits>().active() || effects.get<Changes>().active() || effects.get<Stages>().active() ||
             effects.get<Sizes>().active() || effects.get<Dependencies>().active() ||
             effects.get<Services>().active() || effects.get<Trials>().active() || effects.get<Limits>().active());
  }

  // ---- for effects ----

  /// Tells policies and observers of something that happened.
  GPUSCHED_HOT void emit(Event event) {
    if (state.changes().resizes() && event.job != no_job) event.shape = state.shape_id(event.job);
    state.events.push_back(event);
  }

  /// Tells effects that the measured span begins, or ends.
  void tell_marked(bool begins) {
    call([this, &begins](auto& effect) {
      if constexpr (requires { effect.marked(*this, begins); }) effect.marked(*this, begins);
    });
  }

  /// True when every job that is expected is done.
  [[nodiscard]] bool all_finished() const { return state.finished == state.expected; }

  /// A submitted job joins its queue for the first time.
  void enter_queue(JobId job) {
    state[job].remaining = state.jobs->attempt_work(job, 0);
    state[job].phase = JobPhase::pending;
    if (state.effects.any()) {
      call([this, &job](auto& effect) {
        if constexpr (requires { effect.joins(*this, job); }) effect.joins(*this, job);
      });
    }
    state.join_queue(job);
    if (state.effects.any() && is_barred(job)) return;
    emit({EventKind::submit, job});
  }

  /// A limit takes a job out of its queue, which keeps its place there, or lets it in again.
  /// \{
  GPUSCHED_RARE void hold_back(JobId job) {
    leave_for_limit(job);
    emit({EventKind::withdraw, job});
  }
  GPUSCHED_RARE void let_go(JobId job) {
    state.effects.get<Limits>().let_go(job);
    return_to_queue(job);
    emit({EventKind::submit, job});
  }
  /// \}
  /// The jobs of whose new priorities policies are yet to be told, by id.
  [[nodiscard]] std::vector<JobId> reprioritized() const {
    std::vector<JobId> jobs;
    for (const Event& event : state.events) {
      if (event.kind == EventKind::reprioritize) jobs.push_back(event.job);
    }
    std::sort(jobs.begin(), jobs.end());
    return jobs;
  }
  /// A user gave a job that waits another size.
  void tell_asked(JobId job) {
    if (state.limits().active()) state.effects.get<Limits>().asks(job, state.shape(job), state.now);
  }

  /// See Engine::share().
  void share(HostedJobs& jobs) { state.states.share(jobs, state.states.engine()); }

  /// A host lets a submitted job in, which joins its queue.
  GPUSCHED_RARE void join(JobId job) {
    state.states.enter(index(job), state.now, state.joined++);
    --state.away;
    if (is_held_back(job)) return;
    const Time left = state[job].remaining;
    enter_queue(job);
    if (state[job].first_start != Time::max()) state[job].remaining = left;  // it ran elsewhere
  }
  /// A host takes a job out that waits, or one that runs, which keeps what a preemption would leave it.
  GPUSCHED_RARE void leave(JobId job) {
    const bool runs = state[job].phase == JobPhase::running;
    if (runs) {
      end_run(job, EndOfRun::departed);
      ++state[job].preemptions;
    } else {
      state.leave_queue(job);
    }
    state[job].phase = JobPhase::future;
    state[job].stands_last = false;
    state.states.exit(index(job));
    ++state.away;
    emit({runs ? EventKind::finish : EventKind::withdraw, job});
  }
  /// So many jobs were submitted, wherever; those that this engine did not know of wait for their host.
  GPUSCHED_RARE void tell_submitted(std::uint32_t jobs) {
    state.states.forget_gone();
    state.away += jobs - state.arrived;
    state.arrived = jobs;
  }
  /// So many jobs finish here in all. What is booked when the last of them has ended is booked now if it has.
  GPUSCHED_RARE void expect(std::uint32_t jobs, bool others_go_on) {
    const bool goes_on = !all_finished();
    state.expected = jobs;
    state.others_go_on = others_go_on;
    if (goes_on && all_finished() && state.power().active()) state.effects.get<Power>().ended(*this, no_job);
  }

  /// The runs on a node end, by id, because it goes down; it comes back with nothing on it.
  GPUSCHED_RARE void lose_node(NodeId node) {
    for (const JobId job : state.occupancy.jobs_on(node)) {
      const bool waits = state[job].phase == JobPhase::pending;  // its user gave it another size at this instant
      end_run(job, EndOfRun::killed);
      ++state.saved[index(job)].kills;
      if (waits) {
        forget_resized(job);
        continue;
      }
      return_to_queue(job);
      emit({EventKind::kill, job, node});
    }
    call([this, &node](auto& effect) {
      if constexpr (requires { effect.cleared(*this, node); }) effect.cleared(*this, node);
    });
  }

  /// A user gives a job up that is not done. What was done so far counts as useful. One that waits for others never
  /// comes to wait in its queue.
  GPUSCHED_RARE void give_up(JobId job) {
    const JobPhase phase = state[job].phase;
    if (phase == JobPhase::running) {
      end_run(job, EndOfRun::cancelled);
      emit({EventKind::finish, job});
    } else if (phase == JobPhase::pending) {
      state.leave_queue(job);
      emit({EventKind::withdraw, job});
    } else {
      if (state.limits().holds(job)) {
        state.effects.get<Limits>().let_go(job);
      } else {
        state.effects.get<Dependencies>().cancel(job);
      }
      emit({EventKind::refuse, job});
    }
    end_job(job);
  }

  /// A job that runs ends well, or one that waits leaves its queue: it is held back as if it had just been submitted,
  /// and may join its queue again, with all of its work. Precondition: it runs or waits.
  GPUSCHED_RARE void take_back(JobId job) {
    if (state[job].phase == JobPhase::running) {
      end_run(job, EndOfRun::cancelled);
      emit({EventKind::finish, job});
    } else if (state.limits().holds(job)) {
      state.effects.get<Limits>().let_go(job);
    } else {
      state.leave_queue(job);
      emit({EventKind::withdraw, job});
    }
    JobState& run = state[job];
    run.phase = JobPhase::future;
    run.must_restart = run.stands_last = false;
    if (!state.saved.empty()) state.saved[index(job)].was_killed = false;
  }

  /// A job that is held back is done for good.
  GPUSCHED_RARE void retire(JobId job) { end_job(job); }

  /// A user gives a running job another size: it gives its capacity back and waits, and the decision of this instant
  /// says whether its run goes on (settle_resized).
  GPUSCHED_RARE void interrupt(JobId job) {
    JobState& run = state[job];
    forget_reprioritized(job);
    state.cluster.release(run.grants, state.held_shape(job), state.queue_of(job));
    give_back_limits(job);
    state.unlink(state.running, job);
    state.resized.push_back({.job = job, .grants = run.grants, .tasks = state.held_shape(job).tasks});
    run.grants = no_index;
    run.preempted_now = true;
    state.effects.get<Sizes>().release(job);
    return_to_queue(job);
    emit({EventKind::kill, job});
  }

  // ---- an instant ----

  /// When the next planned event is due, plans that have changed since included.
  [[nodiscard]] Time next_event_time() const {
    // What replicas and trials would have come to that were told to end.
    const bool ends_runs = state.effects.get<Services>().active() || state.effects.get<Trials>().active();
    if (ends_runs && all_finished()) return Time::max();
    const Time planned = state.planned.empty() ? Time::max() : state.planned.top().time;
    const Time submit = state.arrived < state.coming ? state.jobs->submit(JobId{state.arrived}) : Time::max();
    const Time own = std::min(planned, submit);
    return state.effects.any() && !all_finished() ? next_time_of_effects(own) : own;
  }

  /// Applies all events of this instant: ends of runs and timers, what each effect brings, submissions.
  GPUSCHED_HOT void happen_all() {
    while (planned_due()) happen();
    if (state.effects.any()) happen_of_effects();
    bool refused = false;
    while (submission_due()) refused = !arrive() || refused;
    if (refused) react();  // who waited for that job alone
  }

  /// Applies one of them, submissions first; none, when the plan that was due had changed.
  GPUSCHED_RARE void happen_once() {
    if (submission_due()) {
      static_cast<void>(arrive());
    } else if (planned_due()) {
      happen();
    } else {
      bool happened = false;
      call([this, &happened](auto& effect) {
        if constexpr (requires { effect.happen(*this); }) {
          if (happened || effect.next_time() != state.now) return;
          effect.happen(*this);
          happened = true;
        }
      });
    }
    react();
  }

  /// What follows from all that happened, or was commanded, at this instant.
  void react() {
    if (state.effects.any()) react_of_effects();
  }

  // ---- commands ----

  /// Jobs whose size was changed at this instant: the run of each goes on if the decision started it on some of its
  /// nodes with no more tasks, and else is over.
  GPUSCHED_RARE void settle_resized() {
    for (const Resized& resized : std::exchange(state.resized, {})) {
      const bool goes_on = state[resized.job].starting && keeps_nodes(resized);
      if (goes_on) {
        go_on(resized.job);
      } else {
        end_run(resized.job, EndOfRun::resized);
      }
      state[resized.job].preempted_now = false;
      state.cluster.free_grants(resized.grants);
    }
  }

  GPUSCHED_HOT void begin_run(JobId job) {
    if (!state[job].starting) return;  // it goes on
    JobState& run = state[job];
    if (run.first_start == Time::max()) run.first_start = state.now;
    run.since = state.now;
    run.starting = run.held = false;
    const Time waits = state.effects.any() ? begin_under_effects(job) : Time{};
    run.rate = rate_of(job);
    begin_costs(job, waits);
    plan_finish(job);
    emit({EventKind::start, job});
  }

  /// A decision is carried out. One that Decision::keep_order() cut short goes on at this instant.
  void end_order() {
    state.keeps_order = false;
    if (std::exchange(state.is_cut_short, false)) state.effects.get<Limits>().ask_again(state.now);
  }

  /// A run that a decision stopped, and whose capacity it freed.
  void preempt(const Command& command) {
    state.cluster.free_grants(command.grants);
    if (command.withdrawn) return;
    end_run(command.job, EndOfRun::preempted);
    state[command.job].preempted_now = false;
    ++state[command.job].preemptions;
    emit({EventKind::preempt, command.job});
  }

  /// A running job was given other nodes, which may have another rate.
  GPUSCHED_RARE void move(JobId job) {
    if (state.effects.any())
      move_under_effects(job, false);
    else
      adapt_rate(job);
    emit({EventKind::move, job});
  }

  /// A decision gave up a job, which it took out of its queue.
  GPUSCHED_RARE void withdraw(JobId job) { emit({EventKind::withdraw, job}); }
  /// Ends those jobs once all is booked that the decision stopped.
  GPUSCHED_RARE void end_cancelled() {
    for (const Command& command : state.commands) {
      if (command.kind == CommandKind::cancel) end_job(command.job);
    }
  }

  using SavedStates::adjust;

  GPUSCHED_RARE void hold(JobId job, bool held) {
    keep_accounts();
    state[job].held = held;
    adapt_rate(job);
  }

  /// Precondition: the state knows what nodes draw, or nothing happens.
  GPUSCHED_RARE void limit_power(JobId job, Time microwatts) {
    Power& power = state.effects.get<Power>();
    if (power.active()) power.limit_power(*this, job, static_cast<double>(microwatts.us) / 1e6);
  }

  /// The job runs, and not just because a command that is yet to be carried out says so.
  [[nodiscard]] bool works(JobId job) const { return state[job].phase == JobPhase::running && !state[job].starting; }

  // ---- checks ----

  /// As Engine::consistent().
  [[nodiscard]] bool is_consistent() const {
    ClusterState cluster = state.cluster;
    std::uint32_t out_of_queues = 0;
    bool agree = true;
    state.effects.for_each([&agree, &cluster, &out_of_queues](const auto& effect) {
      if constexpr (requires { effect.audit_nodes(cluster); }) agree = agree && effect.audit_nodes(cluster);
      if constexpr (requires { effect.out_of_queues(); }) out_of_queues += effect.out_of_queues();
    });
    if (!agree) return false;
    std::uint32_t waiting = 0;
    for (const JobList& queue : state.queues) {
      for (std::uint32_t at = queue.first; at != no_index; at = state.states[at].next, ++waiting) {
        if (state.states[at].phase != JobPhase::pending || state.states[at].grants != no_index) return false;
      }
      if (!placed_are_listed(static_cast<std::uint32_t>(&queue - state.queues.data()))) return false;
    }
    std::uint32_t running = 0;
    for (std::uint32_t at = state.running.first; at != no_index; at = state.states[at].next, ++running) {
      const JobId job{at};
      const JobState& run = state[job];
      std::uint32_t tasks = 0;
      for (std::uint32_t grant = run.grants; grant != no_index; grant = cluster.grant(grant).next) {
        tasks += cluster.grant(grant).tasks;
      }
      if (run.phase != JobPhase::running || tasks != state.held_shape(job).tasks || !agrees(job)) return false;
      cluster.release(run.grants, state.held_shape(job), state.queue_of(job));
    }
    return cluster.all_free() && waiting + running + state.finished + out_of_queues + state.away == state.arrived;
  }

 private:
  // PlacedJobs has the jobs of a queue that were not preempted, in their order.
  [[nodiscard]] bool placed_are_listed(std::uint32_t queue) const {
    if (!state.placed.active()) return true;
    std::uint32_t placed = state.placed.first(queue);
    for (std::uint32_t at = state.queues[queue].first; at != no_index; at = state.states[at].next) {
      if (state.states[at].stands_last) continue;
      if (at != placed) return false;
      placed = state.placed.next(queue, placed);
    }
    return placed == no_index;
  }

  // The seats of a running job are its grants, its rate is the product of its factors, and its effects agree.
  [[nodiscard]] bool agrees(JobId job) const {
    if (state[job].rate != rate_of(job) || !seats_are_grants(job)) return false;
    bool right = true;
    state.effects.for_each([this, &right, &job](const auto& effect) {
      if constexpr (requires { effect.audit(state, job); }) right = right && effect.audit(state, job);
    });
    return right;
  }

  template <class Visit>
  void call(Visit visit) {
    state.effects.for_each(visit);
  }

  void match_virtual_clusters(const JobTable& jobs, const Cluster& cluster) {
    const auto none = static_cast<std::uint32_t>(cluster.vcs.size());
    state.queue_of_vc.assign(jobs.vcs().size(), none);
    for (std::uint32_t vc = 0; vc < none; ++vc) {
      const std::uint32_t named = jobs.vcs().find(cluster.vcs[vc].name);
      if (named != no_index) state.queue_of_vc[named] = vc;
    }
  }

  [[nodiscard]] bool planned_due() const { return !state.planned.empty() && state.planned.top().time == state.now; }
  [[nodiscard]] bool submission_due() const {
    const auto submits = state.jobs->submits();
    return state.arrived < state.coming && submits[state.arrived] == state.now;
  }

  [[nodiscard]] GPUSCHED_RARE Time next_time_of_effects(Time own) const {
    return state.effects.next_time(own, state.others_go_on);
  }

  GPUSCHED_RARE void happen_of_effects() {
    call([this](auto& effect) {
      if constexpr (requires { effect.happen(*this); }) {
        while (effect.next_time() == state.now && !all_finished()) effect.happen(*this);
      }
    });
    react_of_effects();
  }

  GPUSCHED_RARE void react_of_effects() {
    if (!state.touched.empty()) {
      state.told.swap(state.touched);
      for (const NodeId node : state.told) {
        call([this, &node](auto& effect) {
          if constexpr (requires { effect.touched(*this, node); }) effect.touched(*this, node);
        });
      }
      state.told.clear();
    }
    call([this](auto& effect) {
      if constexpr (requires { effect.react(*this); }) effect.react(*this);
    });
  }

  // Precondition: submission_due(). False: a limit refuses the job.
  bool arrive() {
    const JobId job{state.arrived++};
    if (state.effects.any() && state.limits().active() && state.effects.get<Limits>().refuses(job)) {
      state.effects.get<Dependencies>().refuse(job);
      end_job(job);
      emit({EventKind::refuse, job});
      return false;
    }
    if (!is_held_back(job)) enter_queue(job);
    return true;
  }

  // An effect keeps a job that was submitted from its queue.
  bool is_held_back(JobId job) {
    bool held_back = false;
    if (!state.effects.any()) return held_back;
    call([this, &held_back, &job](auto& effect) {
      if constexpr (requires { effect.holds_back(*this, job); }) held_back = effect.holds_back(*this, job) || held_back;
    });
    return held_back;
  }

  // A limit holds back a job that just joined its queue: it has a place there, and nobody saw it.
  GPUSCHED_RARE bool is_barred(JobId job) {
    if (!state.limits().active() || !state.limits().bars(job)) return false;
    leave_for_limit(job);
    return true;
  }

  void leave_for_limit(JobId job) {
    state.leave_queue(job);
    state[job].phase = JobPhase::future;
    state.effects.get<Limits>().hold_back(job);
  }

  void give_back_limits(JobId job) {
    if (state.limits().active()) state.effects.get<Limits>().give_back(job, state.now);
  }

  // Applies the earliest planned event, which is due now.
  GPUSCHED_HOT void happen() {
    const EventQueue::Entry due = state.planned.top();
    state.planned.pop();
    if (due.kind() == EventKind::wake) {
      // Several wakes for one instant are one event.
      if (state.events.empty() || state.events.back().kind != EventKind::wake) emit({EventKind::wake, no_job});
      return;
    }
    const JobState& run = state[due.job];
    if (run.phase != JobPhase::running || run.generation != due.generation) return;
    if (!state.effects.any() || !pass_milestone(due.job)) finish_attempt(due.job);
  }

  // The planned event was no end of the run: a checkpoint begins to move, or an effect changes something.
  GPUSCHED_RARE bool pass_milestone(JobId job) {
    const Time save = next_save(job), milestone = next_milestone(job);
    if (save > Time{} && save >= milestone) {
      settle_now(job);
      state.effects.get<Stages>().save(job, parts_of(job), state.now);
      adapt_rate(job);
      return true;
    }
    if (milestone == Time{}) return false;
    bool passed = false;
    call([this, &passed, &job, &milestone](auto& effect) {
      if constexpr (requires { effect.pass_milestone(*this, job); }) {
        if (passed || effect.next_milestone(job) != milestone) return;
        effect.pass_milestone(*this, job);
        passed = true;
      }
    });
    return true;
  }

  GPUSCHED_HOT void finish_attempt(JobId job) {
    JobState& run = state[job];
    GPUSCHED_ASSERT(run.grants != no_index, "a vacated job was neither moved nor preempted");
    end_run(job, EndOfRun::finished);
    if (run.attempt + 1u < state.jobs->attempts(job)) {
      ++run.attempt;
      run.remaining = state.jobs->attempt_work(job, run.attempt);
      return_to_queue(job);
      emit({EventKind::retry, job});
      return;
    }
    emit({EventKind::finish, job});
    end_job(job);
  }

  // A job that ran comes back to its place in its queue.
  void return_to_queue(JobId job) {
    state[job].phase = JobPhase::pending;
    state.put_back(job);
  }

  // A run ends, whatever ends it: the one place. Its work left, its account and its seats are settled afterwards; what
  // becomes of the job is the caller's business. Where a decision is asked first, the capacity is free already.
  GPUSCHED_HOT void end_run(JobId job, EndOfRun why) {
    JobState& run = state[job];
    if (why != EndOfRun::preempted && why != EndOfRun::resized && run.phase == JobPhase::running) {
      forget_reprioritized(job);
      state.cluster.release(run.grants, state.held_shape(job), state.queue_of(job));
      state.cluster.free_grants(run.grants);
      if (state.effects.any()) give_back_limits(job);
      run.grants = no_index;
      state.unlink(state.running, job);
    }
    if (state.occupancy.active()) give_up_seats(job);
    const bool saves =
        why == EndOfRun::finished || why == EndOfRun::cancelled || is_kept_at_end(job, why == EndOfRun::killed);
    if (why == EndOfRun::finished) {
      settle_run(job);
    } else {
      roll_back(job, saves);
      run.must_restart = why != EndOfRun::cancelled;
      if (!state.saved.empty()) state.saved[index(job)].was_killed = why == EndOfRun::killed;
    }
    close_account(job, saves);
    if (state.effects.any()) end_under_effects(job, why);
  }

  // Who sees that the job waits again reads its new priority then.
  void forget_reprioritized(JobId job) {
    if (!state.changes().active()) return;
    std::erase_if(state.events,
                  [job](const Event& event) { return event.kind == EventKind::reprioritize && event.job == job; });
  }

  // Its run cannot go on.
  void forget_resized(JobId job) {
    const auto it = std::find_if(state.resized.begin(), state.resized.end(),
                                 [job](const Resized& resized) { return resized.job == job; });
    state.cluster.free_grants(it->grants);
    state.resized.erase(it);
    state[job].preempted_now = false;
  }

  // For good: it ran to its end, or was cancelled.
  void end_job(JobId job) {
    JobState& run = state[job];
    run.phase = JobPhase::done;
    run.remaining = {};
    run.end = state.now;
    ++state.finished;
    if (!state.effects.any()) return;
    call([this, &job](auto& effect) {
      if constexpr (requires { effect.ended(*this, job); }) effect.ended(*this, job);
    });
  }

  [[nodiscard]] bool keeps_nodes(const Resized& resized) const {
    const auto held = [this, &resized](NodeId node) {
      for (std::uint32_t at = resized.grants; at != no_index; at = state.cluster.grant(at).next) {
        if (state.cluster.grant(at).node == node) return true;
      }
      return false;
    };
    for (std::uint32_t at = state[resized.job].grants; at != no_index; at = state.cluster.grant(at).next) {
      if (!held(state.cluster.grant(at).node)) return false;
    }
    return state.held_shape(resized.job).tasks <= resized.tasks;
  }

  // The run of a job that was given another size goes on with that.
  void go_on(JobId job) {
    settle_now(job);
    state.effects.get<Sizes>().take(job);
    state[job].starting = false;
    const std::uint32_t plan = state[job].generation;
    move_under_effects(job, true);
    if (state[job].generation == plan) replan(job, {}, state[job].rate);
    emit({EventKind::start, job});
  }

  GPUSCHED_RARE Time begin_under_effects(JobId job) {
    if (state.occupancy.active()) take_seats(job);
    Time waits{};
    call([this, &waits, &job](auto& effect) {
      if constexpr (requires { effect.begin(*this, job); }) waits = later_by(waits, effect.begin(*this, job));
    });
    return waits;
  }

  // `shrinks`: it keeps some of its nodes, and waits on for what it waited for.
  GPUSCHED_RARE void move_under_effects(JobId job, bool shrinks) {
    const std::vector<NodeId> before = state.occupancy.active() ? state.occupancy.nodes_of(job) : std::vector<NodeId>{};
    if (state.occupancy.active()) {
      give_up_seats(job);
      state.occupancy.leave(job);
      take_seats(job);
    }
    bool may_wait = false;
    Time waits{};
    call([this, &waits, &job, &before, &may_wait](auto& effect) {
      if constexpr (requires { effect.moved(*this, job, before); }) {
        waits = later_by(waits, effect.moved(*this, job, before));
        may_wait = true;
      }
    });
    adapt_rate(job);
    if (!may_wait || state.saved.empty()) return;  // where nothing costs time, nobody waits
    if (!shrinks || waits.us > 0) wait_again(job, waits, shrinks);
  }

  GPUSCHED_RARE void end_under_effects(JobId job, EndOfRun why) {
    call([this, &job, &why](auto& effect) {
      if constexpr (requires { effect.end(*this, job, why); }) effect.end(*this, job, why);
    });
    if (state.occupancy.active()) state.occupancy.leave(job);
  }

  void take_seats(JobId job) {
    for (std::uint32_t at = state[job].grants; at != no_index; at = state.cluster.grant(at).next) {
      const Grant& grant = state.cluster.grant(at);
      const std::uint32_t seat =
          state.occupancy.enter(job, grant.node, state.card_of(job, grant), grant.tasks, grant.slice);
      touch(grant.node);
      call([this, &seat](auto& effect) {
        if constexpr (requires { effect.seated(*this, seat); }) effect.seated(*this, seat);
      });
    }
  }

  // The seats are still there; Occupancy::leave() takes them away.
  void give_up_seats(JobId job) {
    for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
         at = state.occupancy.seat(at).next_of_job) {
      touch(state.occupancy.seat(at).node);
      call([this, &at](auto& effect) {
        if constexpr (requires { effect.unseated(*this, at); }) effect.unseated(*this, at);
      });
    }
  }

  // Effects that ask are told of the node in react().
  void touch(NodeId node) {
    call([this, &node](auto& effect) {
      if constexpr (requires { effect.touched(*this, node); }) {
        if (state.touched.empty() || state.touched.back() != node) state.touched.push_back(node);
      }
    });
  }

  [[nodiscard]] bool seats_are_grants(JobId job) const {
    if (!state.occupancy.active()) return true;
    using Place = std::pair<NodeId, std::uint32_t>;
    std::vector<Place> seats, grants;
    for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
         at = state.occupancy.seat(at).next_of_job) {
      seats.emplace_back(state.occupancy.seat(at).node, state.occupancy.seat(at).card);
    }
    for (std::uint32_t at = state[job].grants; at != no_index; at = state.cluster.grant(at).next) {
      grants.emplace_back(state.cluster.grant(at).node, state.card_of(job, state.cluster.grant(at)));
    }
    return std::is_permutation(seats.begin(), seats.end(), grants.begin(), grants.end());
  }
};

}  // namespace gpusched::detail
