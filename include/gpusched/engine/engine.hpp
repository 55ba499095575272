// SPDX-License-Identifier: Apache-2.0
/// Engine: moves jobs through time. A value: a copy is a snapshot that runs on independently; thousands live in one
/// process. It knows no policy, file or thread, and borrows the JobTable and the RunInputs, which must outlive it.
///
/// Three ways to run, one mechanism:
///  - simulate(engine, policy, observers...) (simulate.hpp);
///  - `while (engine.advance()) { decide on engine.view(); command engine.decision(); engine.apply(); }`;
///  - the same with advance_to(t) under another simulator's clock.
///
/// Behind it: kernel.hpp moves jobs between queues and nodes, saved_states.hpp knows what starting and stopping costs,
/// run_account.hpp is the home of rates, ends and the ledger, and each file of effects/ is something that may happen
/// besides. run_results.hpp is what is read.
#pragma once

#include <cstdint>
#include <span>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/run_results.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// One simulation: jobs, cluster and clock. See the head of this file for its three ways to run.
class Engine : public RunResults {
 public:
  /// An empty cluster before the first event. Virtual clusters of jobs and machines are matched by name; jobs of a
  /// virtual cluster that the machines do not have form a queue of their own and may run anywhere. A job whose shape
  /// does not fit the empty cluster waits for ever, so check the shapes first (ClusterState::fits_when_empty).
  Engine(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options = {}, const RunInputs& inputs = {})
      : RunResults(jobs, cluster, options, inputs) {}

  /// What somebody may imagine who sees `view`, before any command of its instant: the same state, and from there on an
  /// engine of its own in which no job is submitted, no node fails or comes back, and no user changes a job. Jobs do
  /// what they truly will. What `view` borrows must outlive it.
  static Engine known(const View& view) {
    Engine engine(detail::StateOf::get(view));
    engine.kernel_.forget_future();
    return engine;
  }
  /// The same for who does not know run times: jobs do what is believed of them, in one attempt. Precondition:
  /// `beliefs` names every job that waits, runs or is held back (for others, by a limit); `believed`, which is
  /// borrowed, is the table of BelievedJobs that know their work.
  static Engine imagined(const View& view, const JobTable& believed, std::span<const Belief> beliefs) {
    Engine engine = known(view);
    engine.kernel_.believe(believed, beliefs);
    return engine;
  }
  /// The same, where so many jobs are submitted later on: the rows of `believed` behind those that were submitted,
  /// which somebody drew. Precondition: draws_jobs().
  static Engine imagined(const View& view, const JobTable& believed, std::span<const Belief> beliefs,
                         std::uint32_t drawn) {
    Engine engine = imagined(view, believed, beliefs);
    engine.kernel_.draw(drawn);
    return engine;
  }
  /// Whether jobs to come can be drawn: not where they may be stopped at limits, are changed by users, elastic, wait
  /// for others, or have stages, nor beside services and studies.
  [[nodiscard]] bool draws_jobs() const { return kernel_.may_draw(); }

  /// The open decision of this instant. Commands take effect at apply().
  [[nodiscard]] Decision decision() { return Decision(kernel_.state); }

  /// The time of the next planned event; Time::max() when nothing happens unless a decision starts a job. May be too
  /// early: a plan that has been changed since still counts until its time has come.
  [[nodiscard]] Time next_event_time() const { return kernel_.next_event_time(); }

  /// Moves to the next instant at which something happens and applies all of its events (or one of them:
  /// EngineOptions::one_event_a_step). False when nothing is left. True without any event after 65,536 instants that
  /// brought none (transfers, faults that nobody notices): a host may want to look up; nothing is to be decided then.
  /// Precondition: the last decision was applied.
  bool advance() { return advance_to(Time::max()); }

  /// The same, but not beyond `t`: when nothing happens up to and including `t`, the clock stands at `t` (unless t is
  /// Time::max()) and the answer is false. `sees_holds`: true also, without an event, where limits come to hold back
  /// other jobs than before (View::held_back()), of which no policy is told.
  bool advance_to(Time t, bool sees_holds = false) {
    detail::EngineState& state = kernel_.state;
    GPUSCHED_ASSERT(state.commands.empty() && state.resized.empty(), "apply() the decision before advancing");
    state.events.clear();
    const HeldBack held = state.limits().held_back();
    for (std::uint32_t silent = 0;; ++silent) {
      if (silent == most_silent_instants) return true;
      const Time next = next_event_time();
      if (next == Time::max() || next > t) {
        if (t != Time::max() && t > state.now) state.now = t;
        return false;
      }
      state.now = next;
      if (state.options.one_event_a_step) {
        kernel_.happen_once();
      } else {
        kernel_.happen_all();
      }
      if (state.events.empty()) {  // only plans that had changed
        if (sees_holds && state.limits().held_back() != held) return true;
        continue;
      }
      state.events_seen += state.events.size();
      return true;
    }
  }

  /// Carries out the open decision. Afterwards events() are what it did to jobs, in order.
  void apply() {
    detail::EngineState& state = kernel_.state;
    state.events.clear();
    if (!state.resized.empty()) kernel_.settle_resized();
    bool cancels = false;
    for (const detail::Command& command : state.commands) {
      switch (command.kind) {
        case detail::CommandKind::start:
          if (!command.withdrawn) kernel_.begin_run(command.job);
          break;
        case detail::CommandKind::preempt: kernel_.preempt(command); break;
        case detail::CommandKind::cancel:
          kernel_.withdraw(command.job);
          cancels = true;
          break;
        case detail::CommandKind::wake:
          if (command.time <= end_of_time) state.planned.push(command.time, EventKind::wake, no_job, 0);
          break;
        case detail::CommandKind::adjust:
          if (kernel_.works(command.job)) kernel_.adjust(command.job, command.time);
          break;
        case detail::CommandKind::move:
          if (kernel_.works(command.job)) kernel_.move(command.job);
          break;
        case detail::CommandKind::hold:
        case detail::CommandKind::resume:
          if (kernel_.works(command.job)) kernel_.hold(command.job, command.kind == detail::CommandKind::hold);
          break;
        case detail::CommandKind::limit_power: kernel_.limit_power(command.job, command.time); break;
      }
    }
    if (cancels) kernel_.end_cancelled();
    state.commands.clear();
    kernel_.end_order();
    state.cluster.refresh_index();
    kernel_.react();
#ifdef GPUSCHED_VALIDATE
    GPUSCHED_ASSERT(consistent(), "capacity or jobs are not conserved");
#endif
  }

  // ---- jobs of a host (RunInputs::hosted) ----

  /// The first `jobs` of the table have been submitted by now; that is no event here. Between advance_to() and the
  /// decision. Precondition: `jobs` does not fall.
  void tell_submitted(std::uint32_t jobs) {
    GPUSCHED_ASSERT(jobs >= kernel_.state.arrived, "submitted jobs became fewer");
    kernel_.tell_submitted(jobs);
  }
  /// A submitted job joins its queue now: an event of this instant. It is submitted now as far as policies see. Between
  /// advance_to() and the decision. Precondition: it is in no queue and never ran here.
  void join(JobId job) {
    GPUSCHED_ASSERT(waits_for_host(job), "a job joins that is not submitted, or is here already");
    kernel_.join(job);
    ++kernel_.state.events_seen;
  }
  /// A job leaves for elsewhere, and may join again: an event of this instant, withdraw, or finish of one that runs: it
  /// is preempted, and what it did is its own wherever it runs next. As join(). Precondition: it waits in its queue or
  /// runs; where it may leave after it ran, accounts are kept.
  void leave(JobId job) {
    GPUSCHED_ASSERT(view().phase(job) == JobPhase::pending || view().phase(job) == JobPhase::running,
                    "a job leaves that neither waits nor runs");
    kernel_.leave(job);
    ++kernel_.state.events_seen;
  }
  /// True when the job was submitted and is at no engine of the host, for want of join().
  [[nodiscard]] bool waits_for_host(JobId job) const {
    return index(job) < state().arrived && state().states.is_nowhere(index(job));
  }
  /// Its jobs are those of `jobs` from now on, which is borrowed: a copy of what it shares with others. A copied engine
  /// has its own otherwise.
  void share(HostedJobs& jobs) { kernel_.share(jobs); }
  /// gpu_time() is what the job held at this engine alone, from now on: for hosts that move jobs that ran. Before the
  /// first event.
  void keep_accounts() { kernel_.keep_accounts(); }
  /// The run is over when so many jobs have finished here: those of the table, as long as nobody says otherwise. Until
  /// then nodes fail and meters count; signals and timers alone keep it going only while `others_go_on`.
  void expect(std::uint32_t jobs, bool others_go_on) {
    const detail::EngineState& state = kernel_.state;
    if (state.expected != jobs || state.others_go_on != others_go_on) kernel_.expect(jobs, others_go_on);
  }

  // ---- services whose replicas somebody outside sets (ToldReplicas) ----

  /// Moves their requests to the present, so that what became of them can be looked at. As tell_submitted().
  void look_at_requests() {
    if (has_services()) kernel_.state.effects.get<detail::Services>().look(kernel_);
  }
  /// So many replicas of a service from this instant on, once it has begun; what that changes are events of the next
  /// advance(), at this instant. As tell_submitted(). Precondition: the service has that rule.
  void tell_replicas(std::uint32_t service, std::int32_t replicas) {
    kernel_.state.effects.get<detail::Services>().tell(kernel_, service, replicas);
  }

  // ---- services whose requests somebody outside tells (ServiceSpec::is_told) ----

  /// Moves the requests of a service to `now`, from which on the next advance() is still to go. Precondition: nothing
  /// is due before `now`, and this engine serves it.
  void look_at_requests(std::uint32_t service, Time now) {
    kernel_.state.effects.get<detail::Services>().look(service, now);
  }
  /// A request of a service arrives, at ServiceRequest::arrival after its begin. As look_at_requests(), at that
  /// instant; arrivals do not fall.
  void tell_request(std::uint32_t service, const ServiceRequest& request) {
    kernel_.state.effects.get<detail::Services>().tell(service, request);
  }
  /// No request of the service is told any more. As look_at_requests().
  void end_requests(std::uint32_t service, Time now) {
    kernel_.state.effects.get<detail::Services>().end_telling(service, now);
  }

  /// Re-derives from the jobs what the cluster and the lists should hold: the capacity that running jobs do not hold is
  /// free, and every job is in exactly one phase. O(jobs + GPUs); after every apply() with GPUSCHED_VALIDATE.
  [[nodiscard]] bool consistent() const { return kernel_.is_consistent(); }

  /// What the last advance() or apply() brought, in order.
  [[nodiscard]] std::span<const Event> events() const { return state().events; }
  /// Events so far: submissions, finishes, retries, wakes, and what failures of nodes and changes of jobs brought.
  [[nodiscard]] std::uint64_t events_seen() const { return state().events_seen; }

  /// After so many instants without an event advance() returns.
  static constexpr std::uint32_t most_silent_instants = 65'536;

 private:
  explicit Engine(const detail::EngineState& from) : RunResults(from) {}
};

}  // namespace gpusched
