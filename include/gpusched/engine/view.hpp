// SPDX-License-Identifier: Apache-2.0
/// View: what a policy may know at an instant. It holds no true run time; a policy that wants those takes an
/// OracleView, which is visible in its signature and printed beside its results. Views are cheap to copy and borrow the
/// engine: valid until the engine moves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

#include "gpusched/engine/engine_state.hpp"

namespace gpusched {

class View;

namespace detail {
/// The state behind a view, for what copies it: Engine::known(), Rehearsal.
struct StateOf {
  static const EngineState& get(const View& view);
};
}  // namespace detail

/// The jobs of a waiting queue in their order, or all that run. Starting or preempting a
/// job takes it out of its list: advance the iterator before commanding the job it stood at.
class JobRange {
 public:
  /// A forward iterator over job ids.
  class Iterator {
   public:
    /// What a std::forward_iterator has.
    /// \{
    using value_type = JobId;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    using reference = JobId;
    using pointer = const JobId*;
    Iterator() = default;
    Iterator(const detail::EngineState* state, std::uint32_t at) : state_(state), at_(at) {}
    JobId operator*() const { return JobId{at_}; }
    Iterator& operator++() {
      at_ = state_->states[at_].next;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    /// \}

   private:
    const detail::EngineState* state_ = nullptr;
    std::uint32_t at_ = no_index;
  };

  /// Used by View: a list of `state`, borrowed.
  JobRange(const detail::EngineState* state, const detail::JobList* list) : state_(state), list_(list) {}
  /// The jobs of the list, first to last.
  /// \{
  [[nodiscard]] Iterator begin() const { return {state_, list_->first}; }
  [[nodiscard]] Iterator end() const { return {state_, no_index}; }
  /// \}
  /// True when the list has no job.
  [[nodiscard]] bool empty() const { return list_->first == no_index; }
  /// Jobs in the list; O(1).
  [[nodiscard]] std::uint32_t size() const { return list_->size; }
  /// The first job. Precondition: not empty.
  [[nodiscard]] JobId front() const { return JobId{list_->first}; }

 private:
  const detail::EngineState* state_;
  const detail::JobList* list_;
};

/// Everything observable without knowing the future.
class View {
 public:
  /// Used by the engine.
  explicit View(const detail::EngineState& state) : state_(&state) {}
  /// What policies keep of a job changes with its events: use `view.at(event)` wherever an event is noted. There the
  /// event's job asks for what it asked for when that happened; its user may have changed it since, at this instant.
  [[nodiscard]] View at(const Event& event) const { return {*state_, event, shown_}; }

  /// The present instant.
  [[nodiscard]] Time now() const { return state_->now; }
  /// What happened at this instant, in order; lets a policy keep its order incrementally.
  [[nodiscard]] std::span<const Event> events() const { return shown_ != nullptr ? *shown_ : state_->events; }

  // ---- jobs as submitted ----
  /// Jobs of the whole table, arrived or not.
  [[nodiscard]] std::uint32_t job_count() const { return state_->jobs->size(); }
  /// Instant of submission; of a job that waited for the end of others, the last of these.
  [[nodiscard]] Time submit(JobId job) const { return state_->submit(job); }
  /// Instant at which the trace submits the job, whether or not it waits for others then. Ascends with the job's id.
  [[nodiscard]] Time listed(JobId job) const { return state_->jobs->submit(job); }
  /// The user's own estimate, or Time::max().
  [[nodiscard]] Time estimate(JobId job) const { return state_->jobs->estimate(job); }
  /// What the job asks for now, or at() an event.
  [[nodiscard]] GPUSCHED_HOT const Shape& shape(JobId job) const { return state_->jobs->shapes()[shape_id(job)]; }
  /// The shape of that number, below shape_count().
  [[nodiscard]] const Shape& shape_of_id(std::uint32_t shape) const { return state_->jobs->shapes()[shape]; }
  /// Number of the job's shape, below shape_count().
  [[nodiscard]] GPUSCHED_HOT std::uint32_t shape_id(JobId job) const {
    return job == event_job_ && event_shape_ != no_index ? event_shape_ : state_->shape_id(job);
  }
  /// Distinct shapes of the whole table.
  [[nodiscard]] std::uint32_t shape_count() const { return static_cast<std::uint32_t>(state_->jobs->shapes().size()); }
  /// Number of the job's demand, below demand_count(). Jobs of one demand want the same as far as this cluster tells
  /// them apart (DemandTable): they fit together, or none does. Policies keep one queue per demand.
  [[nodiscard]] std::uint32_t demand(JobId job) const { return state_->demands.of_shape(shape_id(job)); }
  /// Distinct demands of the whole table.
  [[nodiscard]] std::uint32_t demand_count() const { return state_->demands.size(); }
  /// A shape that stands for the demand of that number.
  [[nodiscard]] const Shape& shape_of_demand(std::uint32_t demand) const {
    return shape_of_id(state_->demands.shape_of(demand));
  }
  /// Number of the job's name of that kind in the JobTable; 0 = unknown.
  /// \{
  [[nodiscard]] std::uint32_t user(JobId job) const { return state_->jobs->user(job); }
  [[nodiscard]] std::uint32_t group(JobId job) const { return state_->jobs->group(job); }
  [[nodiscard]] std::uint32_t vc(JobId job) const { return state_->jobs->vc(job); }
  [[nodiscard]] std::uint32_t qos(JobId job) const { return state_->jobs->qos(job); }
  [[nodiscard]] std::uint32_t name(JobId job) const { return state_->jobs->name(job); }
  [[nodiscard]] std::uint32_t family(JobId job) const { return state_->jobs->family(job); }
  /// \}
  /// Larger is more urgent; 0 where the trace has none.
  [[nodiscard]] std::int32_t priority(JobId job) const { return state_->priority(job); }
  /// Instant by which it should have ended, or Time::max().
  [[nodiscard]] Time deadline(JobId job) const { return state_->jobs->deadline(job); }
  /// The names behind user(), name() and family(); number 0 is "".
  /// \{
  [[nodiscard]] const NameTable& users() const { return state_->jobs->users(); }
  [[nodiscard]] const NameTable& names() const { return state_->jobs->names(); }
  [[nodiscard]] const NameTable& families() const { return state_->jobs->families(); }
  /// \}

  // ---- what is known of speeds ----
  /// How fast the job runs alone on GPUs of each type (Cluster::gpu_types), relative to the device that its run time is
  /// of: what a scheduler measured or looked up. None where it runs at the reference rate on all types.
  [[nodiscard]] std::span<const RatePpm> speeds(JobId job) const { return state_->speeds(job); }
  /// The same for one GPU type.
  [[nodiscard]] RatePpm speed(JobId job, std::uint32_t gpu_type) const {
    const std::span<const RatePpm> known = speeds(job);
    return gpu_type < known.size() ? known[gpu_type] : reference_rate;
  }
  /// The factor on these speeds while the tasks of the job are that far apart, on GPUs of that type; reference_rate
  /// = 1.
  [[nodiscard]] RatePpm span_speed(JobId job, std::uint32_t gpu_type, Span span) const {
    if (state_->runtime == nullptr || state_->runtime->spans().is_empty()) return reference_rate;
    return state_->runtime->spans().factor(family(job), shape(job), span).on(gpu_type);
  }

  // ---- jobs as they are ----
  /// Where the job is in its life, commands of the open decision included.
  [[nodiscard]] JobPhase phase(JobId job) const { return seen(job).phase; }
  /// Wall time that the job ran up to now(), all its runs and attempts together, start-up costs included. Exact at
  /// every moment: a job that the open decision started or preempted has what it had when the decision began. O(1).
  [[nodiscard]] Time ran(JobId job) const { return state_->ran_now(seen(job)); }
  /// Attained GPU service in GPU-microseconds: ran() times GPUs held, a share counting as its fraction (rounded down).
  [[nodiscard]] std::int64_t attained_gpu_us(JobId job) const {
    if (state_->sizes().active()) return attained_at_all_sizes(job);
    return mul_div(ran(job).us, shape(job).gpu_milli(), whole_gpu);
  }
  /// First start, or Time::max() when it never ran.
  [[nodiscard]] Time first_start(JobId job) const { return seen(job).first_start; }
  /// Start of the present run, or the last change of its rate or work. Precondition: running.
  [[nodiscard]] Time running_since(JobId job) const { return (*state_)[job].since; }
  /// How often the job was preempted so far.
  [[nodiscard]] std::uint32_t preemptions(JobId job) const { return seen(job).preemptions; }
  /// True when the job was cancelled before it ended; it is done then.
  [[nodiscard]] bool is_cancelled(JobId job) const { return (*state_)[job].is_cancelled(); }
  /// How much longer the present attempt may run before it is ended at the run time that its user asked for;
  /// Time::max(): for ever.
  [[nodiscard]] Time limit_left(JobId job) const {
    const detail::JobState& run = (*state_)[job];
    return state_->effects.get<detail::TimeLimits>().left(job, state_->ran_now(run), run.attempt);
  }
  /// 0-based number of the present attempt.
  [[nodiscard]] std::uint32_t attempt(JobId job) const { return (*state_)[job].attempt; }
  /// The grants of a running job: calls visit(const Grant&) for each.
  template <class Visit>
  void for_each_grant(JobId job, Visit visit) const {
    for (std::uint32_t at = (*state_)[job].grants; at != no_index; at = state_->cluster.grant(at).next) {
      visit(state_->cluster.grant(at));
    }
  }

  /// How far apart the tasks of a running job are.
  [[nodiscard]] Span span(JobId job) const { return state_->cluster.span_of((*state_)[job].grants); }

  /// Head of a running job's grant list in cluster(), for policies that play the future on a copy of it.
  [[nodiscard]] std::uint32_t grants(JobId job) const { return (*state_)[job].grants; }

  // ---- elastic jobs ----
  /// True when some job of the table may run at another size than it asks for.
  [[nodiscard]] bool has_elastic_jobs() const { return state_->sizes().active(); }
  /// How fast the job is with other numbers of tasks, from min_tasks to max_tasks (Decision::start_with), less those
  /// that a limit would not let it have if it were alone; null: it is rigid.
  [[nodiscard]] const ElasticCurve* curve(JobId job) const { return state_->sizes().curve(*state_->jobs, job); }
  /// Tasks of the job's present run, commands of the open decision included; of its last run, or those that it asks
  /// for, where it does not run.
  [[nodiscard]] std::uint32_t held_tasks(JobId job) const { return state_->held_shape(job).tasks; }
  /// The part of the job's curve that its present run is in, or its last run was.
  [[nodiscard]] std::uint32_t curve_phase(JobId job) const {
    return state_->sizes().active() ? state_->sizes()[job].phase : 0;
  }
  /// GPUs that a job holds whose run has begun.
  [[nodiscard]] MilliGpu held_gpu_milli(JobId job) const {
    return state_->sizes().active() ? state_->sizes()[job].milli : shape(job).gpu_milli();
  }
  /// GPUs that a job held whose run has ended: it may have begun another since, in the same decision.
  [[nodiscard]] MilliGpu released_gpu_milli(JobId job) const {
    return state_->sizes().active() ? state_->sizes()[job].released : shape(job).gpu_milli();
  }

  // ---- lists ----
  /// Scheduling queues: one for each virtual cluster of the Cluster plus one for jobs of none, or a single one.
  [[nodiscard]] std::uint32_t queue_count() const { return static_cast<std::uint32_t>(state_->queues.size()); }
  /// The scheduling queue of the job, below queue_count().
  [[nodiscard]] std::uint32_t queue_of(JobId job) const { return state_->queue_of(job); }
  /// The job's place among all that wait, which every policy takes for the order of arrival. Precondition: it joined
  /// its queue.
  [[nodiscard]] QueuePlace queue_place(JobId job) const { return state_->queue_place(job); }
  /// Pending jobs by queue_place(); those that a decision preempted stand at the end, the last preempted last.
  [[nodiscard]] JobRange queue(std::uint32_t queue) const { return {state_, &state_->queues[queue]}; }
  /// Jobs pending in all queues; O(queues).
  [[nodiscard]] std::uint32_t pending_count() const {
    std::uint32_t sum = 0;
    for (const detail::JobList& list : state_->queues) sum += list.size;
    return sum;
  }
  /// Running jobs; the order is deterministic and has no meaning.
  [[nodiscard]] JobRange running() const { return {state_, &state_->running}; }

  /// True when nodes can fail in this run. Which are in service, cluster() tells: is_up(), up_gpus().
  [[nodiscard]] bool nodes_can_fail() const { return state_->effects.get<detail::Outages>().active(); }
  /// True while some node will yet go out of service or come back.
  [[nodiscard]] bool nodes_will_change() const {
    return state_->effects.get<detail::Outages>().next_time() != Time::max();
  }
  /// How often a node that went down stopped the job so far.
  [[nodiscard]] std::uint32_t kills(JobId job) const {
    return state_->saved.empty() ? 0 : state_->saved[index(job)].kills;
  }
  // ---- power, carbon and prices ----
  /// True when the run counts energy: RunInputs::power.
  [[nodiscard]] bool knows_power() const { return state_->power().active(); }
  /// What nodes draw, losses left out, in watts. Precondition, also of the following: knows_power().
  [[nodiscard]] double draw_w() const { return static_cast<double>(state_->power().draw_mw()) / 1e3; }
  /// Watts below the nearest power cap; infinite where there are no caps.
  [[nodiscard]] double headroom_w() const {
    const detail::PowerCaps& caps = state_->power().caps();
    return caps.size() == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(caps.headroom_mw()) / 1e3;
  }
  /// What a kilowatt-hour emits and costs at each place (PowerPlace). Policies may read what is past, and ask a
  /// Forecast for what is not.
  [[nodiscard]] std::span<const PowerPlace> places() const { return state_->power().model().places; }
  /// What GPUs draw and how fast they are under their power limits.
  [[nodiscard]] const PowerModel& power_model() const { return state_->power().model(); }

  /// What is free now and who holds what, commands of the open decision included. What is out of service is not free.
  [[nodiscard]] const ClusterState& cluster() const { return state_->cluster; }
  /// How this run behaves.
  [[nodiscard]] const EngineOptions& options() const { return state_->options; }
  /// The rule that chooses the job's nodes in this run.
  [[nodiscard]] Placement placement(JobId job) const { return state_->rule_for(job, options().placement); }
  /// The limit that holds the job back: the number of its rule in Cluster::limits; no_index: none does.
  [[nodiscard]] std::uint32_t limit_of(JobId job) const {
    return state_->limits().holds(job) ? state_->limits().barring_rule(job) : no_index;
  }
  /// Whether some limit may hold jobs back, and whether one holds this one.
  /// \{
  [[nodiscard]] bool has_limits() const { return state_->limits().active(); }
  [[nodiscard]] bool is_held_back(JobId job) const { return state_->limits().holds(job); }
  /// \}
  /// What limits hold back: jobs that are in no queue.
  [[nodiscard]] const HeldBack& held_back() const { return state_->limits().held_back(); }
  /// Jobs submitted so far: those of id below it. Those that wait for others, or are held back, are among them, and
  /// still `future`.
  [[nodiscard]] std::uint32_t arrived() const { return state_->arrived; }
  /// Jobs finished so far, cancelled ones included.
  [[nodiscard]] std::uint32_t finished() const { return state_->finished; }

 protected:
  /// Used by at().
  View(const detail::EngineState& state, const Event& event, const std::vector<Event>* shown)
      : state_(&state), shown_(shown), event_job_(event.job), event_shape_(event.shape) {}
  /// The job's state; of one with a host that is elsewhere, that of one which was not submitted.
  [[nodiscard]] GPUSCHED_HOT const detail::JobState& seen(JobId job) const {
    return state_->states.seen(GPUSCHED_CHECKED(index(job), state_->states, "no such job"));
  }
  /// Used by OracleView::showing().
  View(const detail::EngineState& state, const std::vector<Event>& shown) : state_(&state), shown_(&shown) {}

  const detail::EngineState* state_;           ///< borrowed from the engine
  const std::vector<Event>* shown_ = nullptr;  ///< events() in place of the engine's; null: the engine's

 private:
  friend struct detail::StateOf;
  JobId event_job_ = no_job;  // of at()
  std::uint32_t event_shape_ = no_index;

  [[nodiscard]] std::int64_t attained_at_all_sizes(JobId job) const {
    const detail::JobState& state = (*state_)[job];
    const detail::JobAccount& account = state_->accounts[index(job)];
    detail::WideInt held = account.booked.held();
    if (state.clock_runs()) held += detail::WideInt{(ran(job) - account.ran_before).us} * state_->sizes()[job].milli;
    return static_cast<std::int64_t>(held / whole_gpu);
  }
};

/// A View that also knows the true run times: for clairvoyant baselines, metrics and rewards.
class OracleView : public View {
 public:
  /// Used by the engine.
  explicit OracleView(const detail::EngineState& state) : View(state) {}
  /// As View::at().
  [[nodiscard]] OracleView at(const Event& event) const { return {*state_, event, shown_}; }
  /// The same state with other events, which are borrowed: what a policy that holds another one shows it.
  [[nodiscard]] OracleView showing(const std::vector<Event>& events) const { return {*state_, events}; }

  /// Work of all attempts on the reference device.
  [[nodiscard]] Time work(JobId job) const { return state_->jobs->work(job); }
  /// Work left of the present attempt at now(); 0 when done. What a preemption or a restart of the open decision costs
  /// shows after apply().
  [[nodiscard]] Time remaining(JobId job) const { return state_->remaining_now(seen(job)); }
  /// The same without loading and checkpoints: what is done of a run counts, whether or not it will be kept.
  [[nodiscard]] Time work_left(JobId job) const { return state_->work_left(job); }
  /// Work that a run of the job must do before anything of it is kept whatever happens: all that is left, or an
  /// interval between its checkpoints.
  [[nodiscard]] Time work_to_keep(JobId job) const {
    const Time left = work_left(job);
    const Time interval = state_->saved.empty() ? Time{} : state_->saved[index(job)].interval;
    return interval.us > 0 ? std::min(left, interval) : left;
  }
  /// When a running job's present attempt ends if nothing changes. Precondition: running since before the open
  /// decision.
  [[nodiscard]] Time expected_end(JobId job) const {
    const Time planned = detail::EngineState::planned_end((*state_)[job]), left = limit_left(job);
    return left == Time::max() ? planned : std::min(planned, later_by(now(), left));
  }
  /// All columns of all jobs.
  [[nodiscard]] const JobTable& jobs() const { return *state_->jobs; }

 private:
  using View::View;
};

inline const detail::EngineState& detail::StateOf::get(const View& view) { return *view.state_; }

}  // namespace gpusched
