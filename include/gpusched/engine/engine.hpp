// SPDX-License-Identifier: Apache-2.0
/// Engine: moves jobs through time. A value: a copy is a snapshot that runs on independently; thousands live in one
/// process. It knows no policy, file or thread, and borrows the JobTable and RuntimeModel, which must outlive it.
///
/// Three ways to run, one mechanism:
///  - simulate(engine, policy, observers...) (simulate.hpp);
///  - `while (engine.advance()) { decide on engine.view(); command engine.decision(); engine.apply(); }`;
///  - the same with advance_to(t) under another simulator's clock.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/engine_state.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// One simulation: jobs, cluster and clock. See the head of this file for its three ways to run.
class Engine {
 public:
  /// An empty cluster before the first event. Virtual clusters of jobs and machines are matched by name; jobs of a
  /// virtual cluster that the machines do not have form a queue of their own and may run anywhere. A job whose shape
  /// does not fit the empty cluster waits for ever, so check the shapes first (ClusterState::fits_when_empty).
  /// `runtime`, `failures`, `stages`, `elastic` and `changes`: how fast jobs run, when nodes fail, what runs go through
  /// before they work, which jobs may run at another size, what users do to jobs; null = at the reference rate, never,
  /// nothing, none, nothing.
  Engine(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options = {},
         const RuntimeModel* runtime = nullptr, const NodeFailures* failures = nullptr,
         const StageModel* stages = nullptr, const ElasticModel* elastic = nullptr,
         const JobChanges* changes = nullptr) {
    state_.jobs = &jobs;
    state_.runtime = runtime != nullptr && runtime->is_uniform() ? nullptr : runtime;
    state_.options = options;
    state_.cluster = ClusterState(cluster, jobs.gpu_specs(), Rng(options.seed).split("placement"));
    state_.demands = DemandTable(jobs, cluster);
    state_.states.resize(jobs.size());
    state_.dependencies = detail::OpenDependencies(jobs);
    if (changes != nullptr) state_.changes = detail::OpenChanges(*changes, jobs);
    if (state_.runtime != nullptr) state_.worked.resize(jobs.size());
    const bool turns = std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [](const Node& node) {
      return node.sharing == SharingMode::time_slicing && node.gpus > 0;
    });
    if (turns && state_.runtime == nullptr) {
      static const RuntimeModel at_reference_rate;
      state_.runtime = &at_reference_rate;
      state_.worked.resize(jobs.size());
    }
    const bool interference = turns || (state_.runtime != nullptr && state_.runtime->has_interference());
    const bool spans = state_.runtime != nullptr && !state_.runtime->spans().is_empty();
    if (interference) state_.sharing = detail::CardSharing(jobs.size(), state_.cluster.card_count());
    if (spans) state_.cluster.keep_gangs_near();
    const bool can_fail = failures != nullptr && !failures->is_empty();
    if (stages != nullptr) state_.stages = detail::NodeStages(*stages, jobs, cluster);
    const bool waits = state_.cluster.cuts_cards() || state_.stages.active();
    if (options.preemption.any() || can_fail || waits) state_.costs.resize(jobs.size());
    static const ElasticModel rigid;
    if (elastic != nullptr && !elastic->is_empty()) {
      begin_elastic(*elastic);
    } else if (state_.changes.resizes()) {
      begin_elastic(rigid);  // what a job held is not what it asks for in the end
    }
    state_.queues.resize(cluster.vcs.size() + 1);
    if (!cluster.vcs.empty()) match_virtual_clusters(jobs, cluster);
    if (jobs.size() > 0) state_.now = jobs.submit(JobId{0});
    if (can_fail) begin_failures(*failures);
  }

  /// A host gives a job up at `time`; no effect if it has ended by then. Preconditions: `time` is not before now and
  /// after the job's submission; the last decision was applied.
  void cancel_at(JobId job, Time time) {
    GPUSCHED_ASSERT(!(time < state_.now), "a job is cancelled in the past");
    state_.changes.add({.time = time, .job = job}, *state_.jobs);
  }

  /// The state as of now; valid until the engine moves.
  [[nodiscard]] OracleView view() const { return OracleView(state_); }
  /// The open decision of this instant. Commands take effect at apply().
  [[nodiscard]] Decision decision() { return Decision(state_); }

  /// The time of the next planned event; Time::max() when nothing happens unless a decision starts a job. May be too
  /// early: a plan that has been changed since still counts until its time has come.
  [[nodiscard]] Time next_event_time() const {
    const Time planned = state_.planned.empty() ? Time::max() : state_.planned.top().time;
    const Time submit = state_.arrived < state_.jobs->size() ? state_.jobs->submit(JobId{state_.arrived}) : Time::max();
    Time next = planned < submit ? planned : submit;
    const Time rare = std::min(state_.stages.next_time(), state_.changes.next_time());
    if (rare < next && !all_finished()) next = rare;
    return state_.outages.active() ? std::min(next, next_change_of_nodes(next)) : next;
  }

  /// Moves to the next instant at which something happens and applies all of its events (or one of them:
  /// EngineOptions::one_event_a_step). False when nothing is left.
  /// Precondition: the last decision was applied.
  bool advance() { return advance_to(Time::max()); }

  /// The same, but not beyond `t`: when nothing happens up to and including `t`, the clock stands at `t` (unless t is
  /// Time::max()) and the answer is false.
  bool advance_to(Time t) {
    GPUSCHED_ASSERT(state_.commands.empty(), "apply() the decision before advancing");
    state_.events.clear();
    for (;;) {
      const Time next = next_event_time();
      if (next == Time::max() || next > t) {
        if (t != Time::max() && t > state_.now) state_.now = t;
        return false;
      }
      state_.now = next;
      const bool is_done = state_.changes.next_time() == next && change_jobs();
      if (is_done) {
        adapt_rates();
        if (state_.dependencies.active()) release();
      } else if (state_.options.one_event_a_step) {
        happen_once();
        adapt_rates();
        if (state_.dependencies.active()) release();
      } else {
        while (!state_.planned.empty() && state_.planned.top().time == next) happen();
        while (end_of_transfer_due()) end_transfer();
        while (change_of_nodes_due()) change_nodes();
        adapt_rates();
        if (state_.dependencies.active()) release();
        while (submission_due()) arrive();
      }
      if (state_.events.empty()) continue;  // only plans that had changed
      state_.events_seen += state_.events.size();
      return true;
    }
  }

  /// Carries out the open decision. Afterwards events() are its starts and preemptions, in order.
  void apply() {
    state_.events.clear();
    for (const detail::Command& command : state_.commands) {
      switch (command.kind) {
        case detail::CommandKind::start:
          if (!command.withdrawn) begin_run(command.job);
          break;
        case detail::CommandKind::preempt: end_run(command); break;
        case detail::CommandKind::wake:
          if (command.time <= end_of_time) state_.planned.push(command.time, EventKind::wake, no_job, 0);
          break;
        case detail::CommandKind::adjust:
          if (works(command.job)) adjust(command.job, command.time);
          break;
        case detail::CommandKind::move:
          if (works(command.job)) move(command.job);
          break;
        case detail::CommandKind::hold:
        case detail::CommandKind::resume:
          if (!works(command.job)) break;
          state_[command.job].held = command.kind == detail::CommandKind::hold;
          adapt_rate(command.job);
          break;
      }
    }
    state_.commands.clear();
    state_.cluster.refresh_index();
    adapt_rates();
#ifdef GPUSCHED_VALIDATE
    GPUSCHED_ASSERT(consistent(), "capacity or jobs are not conserved");
#endif
  }

  /// Re-derives from the jobs what the cluster and the lists should hold: the capacity that running jobs do not hold is
  /// free, and every job is in exactly one phase. O(jobs + GPUs); after every apply() with GPUSCHED_VALIDATE.
  [[nodiscard]] bool consistent() const {
    ClusterState cluster = state_.cluster;
    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
      const bool is_down = state_.outages.active() && state_.outages.is_down(NodeId{i});
      if (cluster.is_up(NodeId{i}) == is_down) return false;
      if (is_down) cluster.reinstate(NodeId{i});
    }
    std::uint32_t waiting = 0;
    for (const detail::JobList& queue : state_.queues) {
      for (const JobId job : JobRange(&state_, &queue)) {
        if (state_[job].phase != JobPhase::pending || state_[job].grants != no_index) return false;
        ++waiting;
      }
    }
    std::uint32_t running = 0;
    for (const JobId job : JobRange(&state_, &state_.running)) {
      const detail::JobState& state = state_[job];
      std::uint32_t tasks = 0;
      for (std::uint32_t at = state.grants; at != no_index; at = cluster.grant(at).next) {
        tasks += cluster.grant(at).tasks;
      }
      if (state.phase != JobPhase::running || tasks != state_.held_shape(job).tasks) return false;
      if (state.rate != rate_of(job, state) || !seats_are_grants(job, state)) return false;
      cluster.release(state.grants, state_.held_shape(job), state_.queue_of(job));
      ++running;
    }
    const std::uint32_t accounted =
        waiting + running + state_.finished + state_.dependencies.held_back() + state_.changes.outside();
    return cluster.all_free() && accounted == state_.arrived;
  }

  /// What the last advance() or apply() brought, in order.
  [[nodiscard]] std::span<const Event> events() const { return state_.events; }
  /// True when every job of the table has finished.
  [[nodiscard]] bool all_finished() const { return state_.finished == state_.jobs->size(); }
  /// Events so far: submissions, finishes, retries, wakes, and what failures of nodes and changes of jobs brought.
  [[nodiscard]] std::uint64_t events_seen() const { return state_.events_seen; }

  // ---- results, read when a job is done (or Time::max() / so far before) ----
  /// The table that the engine runs.
  [[nodiscard]] const JobTable& jobs() const { return *state_.jobs; }
  /// Instant of submission; of a job that waited for the end of others, the last of these. Waiting counts from here.
  [[nodiscard]] Time submit(JobId job) const { return state_.submit(job); }
  /// Instant of the first start.
  [[nodiscard]] Time first_start(JobId job) const { return state_[job].first_start; }
  /// Instant at which the job finished.
  [[nodiscard]] Time end(JobId job) const { return state_[job].end; }
  /// Wall time running, preemption costs and lost work included.
  [[nodiscard]] Time ran(JobId job) const { return state_.ran_now(state_[job]); }
  /// The part of ran() that advanced the job: without preemption costs, lost work and what adjust_work() added. At the
  /// reference rate that is its work; a GPU twice as fast needs half the time. Precondition: the job finished.
  [[nodiscard]] Time useful_time(JobId job) const {
    if (is_cancelled(job)) return ran(job) - overhead(job) - lost(job);
    const Time work = state_.jobs->work(job);
    if (state_.worked.empty()) return work;
    const Time worked = state_.worked[index(job)];
    return worked.us == 0 ? Time{} : Time{mul_div(ran(job).us, work.us, worked.us)};
  }
  /// True when users change jobs.
  [[nodiscard]] bool has_changes() const { return state_.changes.active(); }
  /// True when the job was cancelled before it ended; end() is that instant, and first_start() may be Time::max().
  [[nodiscard]] bool is_cancelled(JobId job) const { return state_.changes.is_cancelled(job); }
  /// True when users cancel the job at some time. Whether it ends before that, its policy decides: averages over jobs
  /// leave it out, so that they are of the same jobs under all policies.
  [[nodiscard]] bool may_be_cancelled(JobId job) const { return state_.changes.cancels(job); }
  /// True when some job may run at another size than it asks for.
  [[nodiscard]] bool has_elastic_jobs() const { return !state_.sizes.empty(); }
  /// What the job held, and the parts of it that were overhead() and lost(), in microseconds times thousandths of a
  /// GPU, of runs that are over. Precondition: has_elastic_jobs().
  /// \{
  [[nodiscard]] detail::WideInt held(JobId job) const { return state_.sizes[index(job)].held; }
  [[nodiscard]] detail::WideInt overhead_held(JobId job) const { return state_.sizes[index(job)].overhead; }
  [[nodiscard]] detail::WideInt lost_held(JobId job) const { return state_.sizes[index(job)].lost; }
  /// \}
  /// How often the layout of a MIG card was changed for a job so far.
  [[nodiscard]] std::uint64_t reconfigurations() const { return state_.reconfigurations; }
  /// GPU time of these changes, in which the slices (of compute; a GPU that leaves MIG mode: the whole) serve nobody.
  /// Counted in full when a change begins. A job's ran() contains its own.
  [[nodiscard]] Time reconfiguration_gpu_time() const { return {state_.reconfiguration_gpu_us}; }
  /// How often the job was preempted.
  [[nodiscard]] std::uint32_t preemptions(JobId job) const { return state_[job].preemptions; }
  /// True when overhead() and lost() are counted: stopping a job costs something, or nodes can fail.
  [[nodiscard]] bool counts_costs() const { return !state_.costs.empty(); }
  /// How often a node that went down stopped the job.
  [[nodiscard]] std::uint32_t kills(JobId job) const { return view().kills(job); }
  /// What the job's starts found on their nodes. Nothing where runs have no stages.
  [[nodiscard]] StartCounts starts(JobId job) const {
    return state_.stages.active() ? state_.stages.counts(job) : StartCounts{};
  }
  /// True when runs have stages.
  [[nodiscard]] bool has_stages() const { return state_.stages.active(); }
  /// The part of ran() in which the job started, loaded and saved its state, of runs that are over.
  [[nodiscard]] Time overhead(JobId job) const {
    return state_.costs.empty() ? Time{} : state_.costs[index(job)].overhead;
  }
  /// The part of ran() that no checkpoint kept and that was done again, of runs that are over.
  [[nodiscard]] Time lost(JobId job) const { return state_.costs.empty() ? Time{} : state_.costs[index(job)].lost; }

 private:
  void match_virtual_clusters(const JobTable& jobs, const Cluster& cluster) {
    const auto none = static_cast<std::uint32_t>(cluster.vcs.size());
    state_.queue_of_vc.assign(jobs.vcs().size(), none);
    for (std::uint32_t vc = 0; vc < none; ++vc) {
      const std::uint32_t named = jobs.vcs().find(cluster.vcs[vc].name);
      if (named != no_index) state_.queue_of_vc[named] = vc;
    }
  }

  // Applies the earliest planned event, which is due now.
  GPUSCHED_HOT void happen() {
    const EventQueue::Entry due = state_.planned.top();
    state_.planned.pop();
    if (due.kind() == EventKind::wake) {
      // Several wakes for one instant are one event.
      if (state_.events.empty() || state_.events.back().kind != EventKind::wake) {
        state_.events.push_back({EventKind::wake, no_job});
      }
      return;
    }
    detail::JobState& state = state_[due.job];
    if (state.phase != JobPhase::running || state.generation != due.generation) return;
    if (next_save(due.job) > Time{} && next_save(due.job) >= end_of_phase(due.job)) {
      begin_save(due.job, state);
    } else if (end_of_phase(due.job) > Time{}) {
      begin_phase(due.job, state);
    } else {
      finish_attempt(due.job, state);
    }
  }

  GPUSCHED_HOT void finish_attempt(JobId job, detail::JobState& state) {
    GPUSCHED_ASSERT(state.grants != no_index, "a vacated job was neither moved nor preempted");
    release_nodes(job, state);
    const Time passed = settle_run(job, state);
    if (!state_.costs.empty()) {
      const detail::RunCosts& costs = state_.costs[index(job)];
      end_costs(job, state, passed, costs.loading + times(costs.saves, costs.saving), {});
    }
    if (!state_.sizes.empty()) end_size(job, state);
    state_.unlink(state_.running, job);
    if (state.attempt + 1u < state_.jobs->attempts(job)) {
      ++state.attempt;
      state.remaining = state_.jobs->attempt_work(job, state.attempt);
      state.phase = JobPhase::pending;
      state_.append(state_.queues[state_.queue_of(job)], job);
      state_.events.push_back({EventKind::retry, job});
      return;
    }
    state_.events.push_back({EventKind::finish, job});
    end_job(job, state);
  }

  // For good: it ran to its end, or was cancelled.
  void end_job(JobId job, detail::JobState& state) {
    state.phase = JobPhase::done;
    state.remaining = {};
    state.end = state_.now;
    ++state_.finished;
    if (state_.dependencies.active()) state_.dependencies.end(job, state_.arrived, state_.now);
  }

  // ---- changes of jobs ----

  // The changes that are due. True: nothing else is to happen before the policy decides.
  GPUSCHED_RARE bool change_jobs() {
    if (state_.changes.outside() > 0) {
      for (const JobId job : state_.changes.bring_back()) wait_in_queue(job);
      return true;
    }
    while (state_.changes.is_due(state_.now) && !all_finished()) {
      change_job();
      if (state_.options.one_event_a_step) return true;
    }
    return false;
  }

  void change_job() {
    const JobChange change = state_.changes.pop();
    GPUSCHED_ASSERT(index(change.job) < state_.arrived, "a job changes before it is submitted");
    const JobPhase phase = state_[change.job].phase;
    if (phase == JobPhase::done) return;
    if (change.kind == JobChange::Kind::cancel) return cancel(change.job);
    if (change.kind == JobChange::Kind::size) return resize(change.job, change.shape);
    if (change.priority == state_.changes.priority(change.job)) return;
    state_.changes.set_priority(change.job, change.priority);
    if (phase != JobPhase::future) state_.events.push_back({EventKind::reprioritize, change.job});
  }

  // What was done so far counts as useful. One that waits for others never comes to wait in its queue.
  void cancel(JobId job) {
    detail::JobState& state = state_[job];
    const JobPhase phase = state.phase;
    state_.changes.cancel(job);
    if (phase == JobPhase::running) {
      stop_cancelled(job, state);
    } else if (phase == JobPhase::pending) {
      state_.unlink(state_.queues[state_.queue_of(job)], job);
      state_.events.push_back({EventKind::withdraw, job});
    } else {
      state_.dependencies.cancel(job);
    }
    end_job(job, state);
  }

  void stop_cancelled(JobId job, detail::JobState& state) {
    release_nodes(job, state);
    forget_wait(job, state);
    roll_back(job, state, loading_of(job), true);
    if (!state_.sizes.empty()) end_size(job, state);
    state_.unlink(state_.running, job);
    state_.events.push_back({EventKind::finish, job});
  }

  // The job leaves its queue, after its nodes if it runs, and comes back with the other shape in change_jobs(). Until
  // then policies see its present shape, to which their books refer.
  void resize(JobId job, std::uint32_t shape) {
    detail::JobState& state = state_[job];
    if (state_.shape_id(job) == shape) return;
    if (state.phase == JobPhase::future) return state_.changes.set_shape(job, shape);
    if (state.phase == JobPhase::running) {
      release_nodes(job, state);
      suspend(job, state);
      state_.unlink(state_.running, job);
      state_.events.push_back({EventKind::kill, job});
    } else {
      state_.unlink(state_.queues[state_.queue_of(job)], job);
    }
    state.phase = JobPhase::future;
    state_.events.push_back({EventKind::withdraw, job});
    state_.changes.take_out(job, shape, state_.now);
  }

  // A run ends. Who sees that its job waits again reads its new priority then.
  GPUSCHED_HOT void release_nodes(JobId job, detail::JobState& state) {
    if (state_.changes.active()) std::erase(state_.events, Event{EventKind::reprioritize, job});
    state_.cluster.release(state.grants, state_.held_shape(job), state_.queue_of(job));
    state_.cluster.free_grants(state.grants);
    state.grants = no_index;
    leave_cards(job);
  }

  // For EngineOptions::one_event_a_step; nothing, when the plan due had changed.
  void happen_once() {
    if (submission_due()) {
      arrive();
    } else if (!state_.planned.empty() && state_.planned.top().time == state_.now) {
      happen();
    } else if (end_of_transfer_due()) {
      end_transfer();
    } else {
      change_nodes();
    }
  }

  // ---- stages ----

  [[nodiscard]] bool end_of_transfer_due() const { return state_.stages.next_time() == state_.now && !all_finished(); }

  GPUSCHED_RARE void end_transfer() {
    state_.stages.end_transfer([this](JobId job) { work_on(job); });
  }

  // The last transfer that the job waited for ended.
  void work_on(JobId job) {
    detail::JobState& state = state_[job];
    detail::RunCosts& costs = state_.costs[index(job)];
    settle_now(job, state);
    state_.stages.work_on(job);
    if (std::exchange(costs.saves_now, false)) {
      costs.kept_left = std::min(state.remaining, costs.after_wait);  // a move may have added a wait
      costs.save_at = std::max(costs.kept_left - costs.interval, Time{});
    }
    adapt_rate(job);
  }

  // Gets the nodes that a job holds ready, and returns what it waits for after its transfers.
  Time begin_stages(JobId job, const detail::JobState& state) {
    return state_.stages.begin(job, parts_of(job, state), state_.now);
  }

  GPUSCHED_RARE void begin_save(JobId job, detail::JobState& state) {
    state_.costs[index(job)].saves_now = true;
    settle_now(job, state);
    state_.stages.save(job, parts_of(job, state), state_.now);
    adapt_rate(job);
  }

  // Work left when the job's next checkpoint begins to move; 0: none will.
  [[nodiscard]] Time next_save(JobId job) const {
    return state_.costs.empty() ? Time{} : state_.costs[index(job)].save_at;
  }

  // The GPUs that the job holds by node.
  std::span<const detail::NodeStages::Part> parts_of(JobId job, const detail::JobState& state) {
    parts_.clear();
    const Shape& shape = state_.held_shape(job);
    for (std::uint32_t at = state.grants; at != no_index; at = state_.cluster.grant(at).next) {
      const Grant& grant = state_.cluster.grant(at);
      const MilliGpu milli = grant.tasks * shape.gpu_milli_per_task;
      const auto known =
          std::find_if(parts_.begin(), parts_.end(), [&](const auto& part) { return part.node == grant.node; });
      if (known == parts_.end()) {
        parts_.push_back({.node = grant.node, .milli = milli});
      } else {
        known->milli += milli;
      }
    }
    return parts_;
  }

  // ---- elastic jobs ----

  void begin_elastic(const ElasticModel& elastic) {
    state_.elastic = &elastic;
    state_.sizes.resize(state_.jobs->size());
    state_.worked.resize(state_.jobs->size());
    for (std::uint32_t i = 0; i < state_.jobs->size(); ++i) {
      detail::JobSize& size = state_.sizes[i];
      size.shape = state_.jobs->shape(JobId{i});
      size.milli = size.released = size.shape.gpu_milli();
    }
  }

  // Before the costs of the start are added to the work left.
  GPUSCHED_RARE void begin_size(JobId job, const detail::JobState& state) {
    detail::JobSize& size = state_.sizes[index(job)];
    size.milli = size.shape.gpu_milli();
    size.ran_before = state.ran;
    if (!state_.costs.empty()) {
      size.overhead_before = state_.costs[index(job)].overhead;
      size.lost_before = state_.costs[index(job)].lost;
    }
    const ElasticCurve* const curve = state_.elastic->curve(*state_.jobs, job);
    if (curve == nullptr) return;
    const Time work = state_.jobs->attempt_work(job, state.attempt);
    size.phase = curve->phase_at(state.remaining, work);
    size.phase_left = curve->left_after(size.phase, work);
  }

  // The GPU time of a run that is over, whose costs are counted.
  GPUSCHED_RARE void end_size(JobId job, const detail::JobState& state) {
    detail::JobSize& size = state_.sizes[index(job)];
    const auto gpu_time = [&](Time span) { return detail::WideInt{span.us} * size.milli; };
    size.held += gpu_time(state.ran - size.ran_before);
    size.phase_left = {};
    size.released = size.milli;
    if (state_.costs.empty()) return;
    size.overhead += gpu_time(state_.costs[index(job)].overhead - size.overhead_before);
    size.lost += gpu_time(state_.costs[index(job)].lost - size.lost_before);
  }

  [[nodiscard]] RatePpm size_factor(JobId job) const {
    const ElasticCurve* const curve = state_.elastic->curve(*state_.jobs, job);
    const detail::JobSize& size = state_.sizes[index(job)];
    return curve == nullptr ? reference_rate : curve->rate(size.shape.tasks, size.phase);
  }

  // Work left when the present phase of the job's curve ends; 0: it has no other.
  [[nodiscard]] Time end_of_phase(JobId job) const {
    return state_.sizes.empty() ? Time{} : state_.sizes[index(job)].phase_left;
  }

  GPUSCHED_RARE void begin_phase(JobId job, detail::JobState& state) {
    settle_now(job, state);
    detail::JobSize& size = state_.sizes[index(job)];
    size.phase_left = state_.elastic->curve(*state_.jobs, job)
                          ->left_after(++size.phase, state_.jobs->attempt_work(job, state.attempt));
    replan(job, state, {}, rate_of(job, state));
  }

  // ---- failures of nodes ----

  void begin_failures(const NodeFailures& failures) {
    state_.outages = detail::NodeOutages(failures, state_.cluster.node_count(), state_.now,
                                         Rng(state_.options.seed).split("failures"));
    if (failures.spares() > 0) state_.outages.keep_spares(kinds_of_nodes());
    for (std::uint32_t i = 0; i < state_.cluster.node_count(); ++i) {
      if (state_.outages.is_down(NodeId{i})) state_.cluster.withhold(NodeId{i});
    }
    call_spares();
    state_.events.clear();  // nobody saw the spares go
  }

  [[nodiscard]] std::vector<std::uint32_t> kinds_of_nodes() const {
    std::vector<std::uint32_t> kinds;
    for (std::uint32_t i = 0; i < state_.cluster.node_count(); ++i) {
      kinds.push_back(state_.cluster.node(NodeId{i}).node_class);
    }
    return kinds;
  }

  // Laws never end, so the changes that matter no more are not events: when all jobs are done, or when all nodes work
  // and jobs wait although nothing else will happen. `others`: when the next event of another kind comes.
  [[nodiscard]] Time next_change_of_nodes(Time others) const {
    const bool idle = others == Time::max() && state_.outages.all_work();
    return idle || all_finished() ? Time::max() : state_.outages.next_time();
  }

  [[nodiscard]] bool change_of_nodes_due() const {
    return state_.outages.active() && !all_finished() && state_.outages.next_time() == state_.now;
  }

  void change_nodes() {
    using Kind = detail::NodeOutages::Kind;
    const detail::NodeOutages::Change change = state_.outages.pop();
    for (const NodeId node : change.nodes) {
      if (change.kind == Kind::fault) {
        stall(node);
        continue;
      }
      const bool up = change.kind == Kind::up;
      if (change.was_fault) state_.outages.count_fault(node, true);
      if (change.kind == Kind::down || change.kind == Kind::stop) stop_node(node);
      if (change.kind == Kind::stop || !state_.outages.count_cause(node, up)) continue;
      if (up && state_.outages.rests(node)) continue;
      if (up) {
        state_.cluster.reinstate(node);
      } else {
        state_.cluster.withhold(node);
      }
      state_.events.push_back({up ? EventKind::node_up : EventKind::node_down, no_job, node});
    }
    call_spares();
  }

  // Spares come into service for nodes of their kind that are down.
  void call_spares() {
    for (NodeId node = state_.outages.call_spare(); node != no_node; node = state_.outages.call_spare()) {
      state_.cluster.reinstate(node);
      state_.events.push_back({EventKind::node_up, no_job, node});
    }
  }

  void stall(NodeId node) {
    state_.outages.count_fault(node, false);
    state_.outages.for_each_job_on(
        node, [&](JobId job) { return runs_on(job, node); }, [&](JobId job) { adapt_rate(job); });
  }

  void stop_node(NodeId node) {
    for (const JobId job : state_.outages.take_jobs_on(node, [&](JobId other) { return runs_on(other, node); })) {
      kill(job, node);
    }
    if (state_.stages.active()) state_.stages.clear(node, state_.now);
  }

  [[nodiscard]] bool runs_on(JobId job, NodeId node) const {
    for (std::uint32_t at = state_[job].grants; at != no_index; at = state_.cluster.grant(at).next) {
      if (state_.cluster.grant(at).node == node) return true;
    }
    return false;
  }

  // Stops a job whose node went down: it waits again, with the work that its last periodic checkpoint kept.
  void kill(JobId job, NodeId node) {
    detail::JobState& state = state_[job];
    release_nodes(job, state);
    detail::RunCosts& costs = state_.costs[index(job)];
    forget_wait(job, state);
    roll_back(job, state, costs.loading, false);
    if (!state_.sizes.empty()) end_size(job, state);
    state.must_restart = costs.was_killed = true;
    ++costs.kills;
    state_.unlink(state_.running, job);
    state.phase = JobPhase::pending;
    state_.append(state_.queues[state_.queue_of(job)], job);
    state_.events.push_back({EventKind::kill, job, node});
  }

  void enter_nodes(JobId job, const detail::JobState& state) {
    for (std::uint32_t at = state.grants; at != no_index; at = state_.cluster.grant(at).next) {
      const NodeId node = state_.cluster.grant(at).node;
      state_.outages.enter(node, job);
      if (state_.outages.is_crowded(node, state_.cluster.node_gpus(node))) {
        state_.outages.forget_left(node, [&](JobId other) { return runs_on(other, node); });
      }
    }
  }

  [[nodiscard]] bool submission_due() const {
    const auto submits = state_.jobs->submits();
    return state_.arrived < submits.size() && submits[state_.arrived] == state_.now;
  }

  // Precondition: submission_due().
  void arrive() {
    const JobId job{state_.arrived++};
    if (state_.dependencies.active() && !state_.dependencies.submit(job)) return;
    enter_queue(job);
  }

  // The jobs whose last predecessor ended.
  GPUSCHED_RARE void release() {
    for (const JobId job : state_.dependencies.take_ready()) enter_queue(job);
  }

  void enter_queue(JobId job) {
    state_[job].remaining = state_.jobs->attempt_work(job, 0);
    wait_in_queue(job);
  }

  void wait_in_queue(JobId job) {
    state_[job].phase = JobPhase::pending;
    state_.append(state_.queues[state_.queue_of(job)], job);
    state_.events.push_back({EventKind::submit, job});
  }

  void begin_run(JobId job) {
    detail::JobState& state = state_[job];
    if (state.first_start == Time::max()) state.first_start = state_.now;
    state.since = state_.now;
    state.starting = state.held = false;
    if (!state_.sizes.empty()) begin_size(job, state);
    if (state_.sharing.active()) join_cards(job, state);
    if (state_.costs.empty()) {
      state.rate = rate_of(job, state);
    } else {
      begin_costs(job, state);
    }
    plan_finish(job, state);
    state_.events.push_back({EventKind::start, job});
  }

  // The same where starting or stopping a job costs time.
  GPUSCHED_RARE void begin_costs(JobId job, detail::JobState& state) {
    const Time ready = state_.stages.active() ? begin_stages(job, state) : Time{};
    state.rate = rate_of(job, state);
    if (state_.outages.active()) enter_nodes(job, state);
    add_costs(job, state, std::max(ready, reconfigure(state)));
  }

  void end_run(const detail::Command& command) {
    state_.cluster.free_grants(command.grants);
    if (command.withdrawn) return;
    detail::JobState& state = state_[command.job];
    leave_cards(command.job);
    suspend(command.job, state);
    state.preempted_now = false;
    ++state.preemptions;
    state_.events.push_back({EventKind::preempt, command.job});
  }

  // Ends a run that is to go on later. Without periodic checkpoints, whatever was done is saved now, and be it loading.
  void suspend(JobId job, detail::JobState& state) {
    const bool is_periodic = !state_.costs.empty() && state_.costs[index(job)].interval.us > 0;
    const bool saves_now = !is_periodic || state_.options.preemption.rule != CheckpointRule::fixed;
    forget_wait(job, state);
    roll_back(job, state, is_periodic ? loading_of(job) : Time{}, saves_now);
    if (!state_.sizes.empty()) end_size(job, state);
    state.must_restart = true;
  }

  // The job runs, and not just because a command that is yet to be carried out says so.
  [[nodiscard]] bool works(JobId job) const { return state_[job].phase == JobPhase::running && !state_[job].starting; }

  // Counts the time that a running job ran up to now, and returns the work that passed in it.
  Time settle(JobId job, detail::JobState& state) {
    const Time span = state_.now - state.since;
    const Time done = detail::EngineState::work_done(state.rate, span);
    state.ran += span;
    state.since = state_.now;
    if (state.rate == 0 && !state_.costs.empty()) {
      detail::RunCosts& costs = state_.costs[index(job)];
      (state_.stages.active() && state_.stages.waits(job) ? costs.moving : costs.stalled) += span;
    }
    if (!state_.worked.empty()) state_.worked[index(job)] += done;
    return done;
  }

  // The same of a run that goes on.
  void settle_now(JobId job, detail::JobState& state) {
    const Time done = settle(job, state);
    state.remaining -= done;
    if (state_.costs.empty()) return;
    Time& passed = state_.costs[index(job)].passed;
    passed = later_by(passed, done);
  }

  // The same for the whole run, which is over.
  Time settle_run(JobId job, detail::JobState& state) {
    const Time before = state_.costs.empty() ? Time{} : std::exchange(state_.costs[index(job)].passed, {});
    state.remaining = later_by(state.remaining, before);
    return later_by(settle(job, state), before);
  }

  // Adds what a start costs to the work that is left. `waits`: until its nodes and their MIG cards are ready, without
  // transfers.
  void add_costs(JobId job, detail::JobState& state, Time waits) {
    const PreemptionCost& cost = state_.options.preemption;
    detail::RunCosts& costs = state_.costs[index(job)];
    const RatePpm rate = working_rate(job, state);
    costs.ran_before = state.ran;
    costs.loading = std::exchange(costs.carried, {});
    costs.saving = costs.stalled = costs.moving = {};
    costs.after_wait = Time::max();
    costs.saves = 0;
    costs.interval = interval_of(job, state, rate);
    costs.save_at = {};
    costs.saves_now = false;
    if (state_.stages.moves_checkpoints()) {
      costs.kept_left = state.remaining;
      if (costs.interval.us > 0) costs.save_at = std::max(state.remaining - costs.interval, Time{});
    } else if (costs.interval.us > 0 && cost.periodic_checkpoint.us > 0 && state.remaining.us > 0) {
      costs.saving = detail::EngineState::work_done(rate, cost.periodic_checkpoint);
      costs.saves = static_cast<std::uint32_t>(
          std::min<std::int64_t>((state.remaining.us - 1) / costs.interval.us, no_index - 1));
      state.remaining = later_by(state.remaining, times(costs.saves, costs.saving));
    }
    if (!state.must_restart && waits.us == 0) return;
    Time load = waits;
    if (state.must_restart) load += costs.was_killed ? cost.restart : cost.checkpoint + cost.restart;
    const Time loading = detail::EngineState::work_done(rate, load);
    costs.loading = later_by(costs.loading, loading);
    state.remaining = later_by(state.remaining, loading);
    if (waits.us > 0) costs.after_wait = state.remaining - detail::EngineState::work_done(rate, waits);
    state.must_restart = costs.was_killed = false;
  }

  // Work between the checkpoints of a run that begins, whose rate is `rate`.
  [[nodiscard]] Time interval_of(JobId job, const detail::JobState& state, RatePpm rate) {
    const PreemptionCost& cost = state_.options.preemption;
    if (cost.rule == CheckpointRule::fixed) return cost.checkpoint_interval;
    double rate_per_s = 0;
    for (std::uint32_t at = state.grants; at != no_index && state_.outages.active();
         at = state_.cluster.grant(at).next) {
      rate_per_s += state_.outages.rate_per_s(state_.cluster.grant(at).node);
    }
    if (rate_per_s == 0) return {};
    const bool moves = state_.stages.moves_checkpoints();
    const double write_s =
        moves ? state_.stages.checkpoint_s(parts_of(job, state)) : to_seconds(cost.periodic_checkpoint);
    const double mean_s = 1 / rate_per_s;
    double interval_s = std::sqrt(2 * write_s * mean_s);
    if (cost.rule == CheckpointRule::daly) {
      const double part = write_s / (2 * mean_s);
      interval_s = part < 1 ? interval_s * (1 + std::sqrt(part) / 3 + part / 9) - write_s : mean_s;
    }
    const Time interval = from_seconds(std::min(interval_s, to_seconds(end_of_time)));
    return std::max(detail::EngineState::work_done(rate, interval), Time{1});
  }

  static Time times(std::uint32_t count, Time span) { return {mul_div(count, span.us, 1)}; }

  [[nodiscard]] Time loading_of(JobId job) const {
    return state_.costs.empty() ? Time{} : state_.costs[index(job)].loading;
  }

  // Ends a run before its attempt is done: what is left is what the run began with, less what is kept of it. Loading
  // comes first, and no checkpoint keeps it. `saves_now`: all that was done is kept.
  void roll_back(JobId job, detail::JobState& state, Time loading, bool saves_now) {
    const Time passed = settle_run(job, state);
    const Time done = loading < passed ? passed - loading : Time{};
    ++state.generation;
    if (state_.costs.empty()) {  // then nothing costs time, and all is saved
      state.remaining -= done;
      return;
    }
    detail::RunCosts& costs = state_.costs[index(job)];
    const Time interval = costs.interval;
    Time kept = saves_now ? done : Time{}, saving{};
    if (state_.stages.moves_checkpoints()) {
      if (!saves_now) kept = std::max(state.remaining - loading - costs.kept_left, Time{});
    } else if (interval.us > 0) {
      const std::int64_t cycle = interval.us + costs.saving.us;
      const std::int64_t saved = done.us / cycle, rest = done.us % cycle;
      kept = Time{saved * interval.us};
      saving = Time{saved * costs.saving.us};
      if (saves_now) {
        kept.us += std::min(rest, interval.us);
        saving.us += std::max<std::int64_t>(rest - interval.us, 0);
      }
    }
    state.remaining = state.remaining - loading - times(costs.saves, costs.saving) - kept;
    const Time loaded = std::min(passed, costs.loading);
    costs.carried = costs.loading - std::max(loading, loaded);
    end_costs(job, state, passed, loaded + saving, done - kept - saving);
  }

  // Leaves the stages of a run that is over, and counts the wall time that it spent on overhead and on work that is
  // lost, both given as work. What it stood still is lost, and what it waited for transfers is overhead.
  void end_costs(JobId job, const detail::JobState& state, Time passed, Time overhead, Time lost) {
    if (state_.stages.active()) state_.stages.end(job, state_.now);
    detail::RunCosts& costs = state_.costs[index(job)];
    costs.lost += costs.stalled;
    costs.overhead += costs.moving;
    const Time span = state.ran - costs.ran_before - costs.stalled - costs.moving;
    if (passed.us == 0) return;
    costs.overhead += Time{mul_div(span.us, overhead.us, passed.us)};
    costs.lost += Time{mul_div(span.us, lost.us, passed.us)};
  }

  // Makes MIG cards such as the job's grants need them, and returns how long its slowest task waits for that.
  Time reconfigure(const detail::JobState& state) {
    Time longest{};
    if (!state_.cluster.cuts_cards()) return longest;
    for (std::uint32_t at = state.grants; at != no_index; at = state_.cluster.grant(at).next) {
      const Capacity::Reconfiguration change = state_.cluster.configure(state_.cluster.grant(at));
      state_.reconfigurations += change.cards;
      state_.reconfiguration_gpu_us += mul_div(change.time.us, change.milli, whole_gpu);
      longest = std::max(longest, change.time);
    }
    return longest;
  }

  // Other nodes may have another rate; then the work left takes another time.
  void move(JobId job) {
    if (state_.sharing.active()) {
      leave_cards(job);
      join_cards(job, state_[job]);
    }
    if (state_.outages.active()) enter_nodes(job, state_[job]);
    if (state_.stages.active()) settle_now(job, state_[job]);
    const Time ready = state_.stages.active() ? begin_stages(job, state_[job]) : Time{};
    if (state_.stages.active() && !state_.stages.waits(job)) work_on(job);  // it left what it waited for
    adapt_rate(job);
    if (state_.cluster.cuts_cards() || state_.stages.active()) {
      wait_again(job, state_[job], std::max(ready, reconfigure(state_[job])));
    }
    state_.events.push_back({EventKind::move, job});
  }

  // More or less work, as its policy says.
  void adjust(JobId job, Time change) {
    detail::JobState& state = state_[job];
    settle_now(job, state);
    if (!state_.costs.empty()) {
      detail::RunCosts& costs = state_.costs[index(job)];
      if (costs.after_wait != Time::max()) costs.after_wait += change;
      if (costs.save_at > Time{}) costs.save_at = std::max(costs.save_at + change, Time{});
      costs.kept_left = std::max(costs.kept_left + change, Time{});
    }
    replan(job, state, change, state.rate);
  }

  // Who leaves the nodes and cards that it waits for does not wait on.
  void forget_wait(JobId job, detail::JobState& state) {
    if (state_.costs.empty()) return;
    detail::RunCosts& costs = state_.costs[index(job)];
    if (costs.after_wait == Time::max()) return;
    const Time unserved = std::max(state_.remaining_now(state) - costs.after_wait, Time{});
    costs.after_wait = Time::max();
    costs.loading -= unserved;
    state.remaining -= unserved;
  }

  // A moved job waits for its new nodes and cards, which counts as loading. Precondition: costs are counted.
  void wait_again(JobId job, detail::JobState& state, Time waits) {
    detail::RunCosts& costs = state_.costs[index(job)];
    if (waits.us == 0 && costs.after_wait == Time::max()) return;
    settle_now(job, state);
    forget_wait(job, state);
    const Time loading = detail::EngineState::work_done(working_rate(job, state), waits);
    if (waits.us > 0) costs.after_wait = state.remaining;
    costs.loading = later_by(costs.loading, loading);
    replan(job, state, loading, state.rate);
  }

  // Gives a running job `change` more work and the rate `rate` from now on. Precondition: it is settled.
  void replan(JobId job, detail::JobState& state, Time change, RatePpm rate) {
    state.remaining += change;
    GPUSCHED_ASSERT(state.remaining.us >= 0, "work left cannot be negative");
    state.rate = rate;
    ++state.generation;
    plan_finish(job, state);
  }

  GPUSCHED_HOT void plan_finish(JobId job, const detail::JobState& state) {
    const Time work = std::max(state.remaining - std::max(next_save(job), end_of_phase(job)), Time{});
    const Time end = later_by(state.since, detail::EngineState::time_needed(state.rate, work));
    if (end <= end_of_time) state_.planned.push(end, EventKind::finish, job, state.generation);
  }

  // What a running job's rate depends on may have changed.
  void adapt_rate(JobId job) {
    detail::JobState& state = state_[job];
    const RatePpm rate = rate_of(job, state);
    if (rate == state.rate) return;
    settle_now(job, state);
    replan(job, state, {}, rate);
  }

  // Updates the rates of all jobs on cards that a task joined or left at this instant.
  void adapt_rates() {
    if (state_.sharing.any_affected()) state_.sharing.for_each_affected([&](JobId job) { adapt_rate(job); });
  }

  void join_cards(JobId job, const detail::JobState& state) {
    if (!state_.shape(job).is_share()) return;
    for (std::uint32_t at = state.grants; at != no_index; at = state_.cluster.grant(at).next) {
      const Grant& grant = state_.cluster.grant(at);
      if (grant.devices == 0) continue;
      const detail::NodeState& node = state_.cluster.node(grant.node);
      detail::CardSharing::Place place{.card = card_of(grant), .gpu_type = node.gpu_type};
      if (node.sharing == SharingMode::time_slicing) place.company = detail::CardCompany::in_turns;
      if (grant.slice != 0) {
        place.company = detail::CardCompany::apart;
        place.profile = Capacity::instance(grant).profile;
      }
      state_.sharing.join(*state_.runtime, job, state_.jobs->family(job), place);
    }
  }

  void leave_cards(JobId job) {
    if (state_.sharing.is_seated(job)) state_.sharing.leave(*state_.runtime, job);
  }

  // Precondition: a share of one card.
  [[nodiscard]] std::uint32_t card_of(const Grant& grant) const {
    return state_.cluster.card(grant.node, static_cast<std::uint32_t>(std::countr_zero(grant.devices)));
  }

  [[nodiscard]] bool seats_are_grants(JobId job, const detail::JobState& state) const {
    if (!state_.sharing.active()) return true;
    std::vector<std::uint32_t> seats, held;
    if (!state_.sharing.audit(*state_.runtime, job, seats)) return false;
    for (std::uint32_t at = state.grants; at != no_index; at = state_.cluster.grant(at).next) {
      const Grant& grant = state_.cluster.grant(at);
      if (state_.shape(job).is_share() && grant.devices != 0) held.push_back(card_of(grant));
    }
    return std::is_permutation(seats.begin(), seats.end(), held.begin(), held.end());
  }

  [[nodiscard]] GPUSCHED_HOT RatePpm rate_of(JobId job, const detail::JobState& state) const {
    if (state.held || (state_.outages.active() && stands_still(state))) return 0;
    if (state_.stages.active() && state_.stages.waits(job)) return 0;
    return working_rate(job, state);
  }

  // The same when nothing keeps it from working.
  [[nodiscard]] RatePpm working_rate(JobId job, const detail::JobState& state) const {
    const RatePpm rate = state_.runtime == nullptr ? reference_rate : modelled_rate(job, state);
    return state_.sizes.empty() ? rate : scaled_rate(rate, size_factor(job));
  }

  // A task is on a node that does no work. Precondition: nodes can fail.
  [[nodiscard]] bool stands_still(const detail::JobState& state) const {
    for (std::uint32_t at = state.grants; at != no_index; at = state_.cluster.grant(at).next) {
      if (state_.outages.is_faulty(state_.cluster.grant(at).node)) return true;
    }
    return false;
  }

  // A gang runs at the rate of its slowest task. Precondition: there is a runtime model.
  [[nodiscard]] RatePpm modelled_rate(JobId job, const detail::JobState& state) const {
    const SpanFactor span = state_.span_factor(job);
    if (state_.sharing.is_seated(job)) return state_.sharing.rate(*state_.runtime, job, span);
    const std::span<const RatePpm> speeds = state_.speeds(job);
    RatePpm slowest = ~RatePpm{0};
    for (std::uint32_t at = state.grants; at != no_index; at = state_.cluster.grant(at).next) {
      const Grant& grant = state_.cluster.grant(at);
      const std::uint32_t type = state_.cluster.node_gpu_type(grant.node);
      RatePpm alone = type < speeds.size() ? speeds[type] : reference_rate;
      if (grant.slice != 0) {
        alone = state_.runtime->slice_rate(state_.jobs->family(job), type, Capacity::instance(grant).profile);
      }
      const RatePpm rate = scaled_rate(alone, span.on(type));
      slowest = rate < slowest ? rate : slowest;
    }
    return slowest;
  }

  detail::EngineState state_;
  std::vector<detail::NodeStages::Part> parts_;  // of parts_of()
};

}  // namespace gpusched
