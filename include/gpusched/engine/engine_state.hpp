// SPDX-License-Identifier: Apache-2.0
/// EngineState: everything that a run changes, as one copyable value. View reads it, Decision edits it under checks,
/// Engine moves it through time; nobody else touches it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "gpusched/engine/card_sharing.hpp"
#include "gpusched/engine/cluster_state.hpp"
#include "gpusched/engine/demand_table.hpp"
#include "gpusched/engine/event_queue.hpp"
#include "gpusched/engine/node_outages.hpp"
#include "gpusched/engine/node_stages.hpp"
#include "gpusched/engine/open_changes.hpp"
#include "gpusched/engine/open_dependencies.hpp"

namespace gpusched {

/// How much work lies between the periodic checkpoints of a run.
enum class CheckpointRule : std::uint8_t {
  fixed,  ///< PreemptionCost::checkpoint_interval
  /// sqrt(2 C M), C: the time to write one, M: the mean time between failures of the job's nodes (Young, CACM 17(9),
  /// 1974); no checkpoints where nothing fails
  young,
  /// the higher-order estimate sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 2M / 9) - C, or M where C >= 2M (Daly, FGCS
  /// 22(3), 2006)
  daly,
};

/// What stopping and starting again costs. The first two costs prolong the job at its next start after a preemption;
/// after a failure of a node, the second alone.
struct PreemptionCost {
  Time checkpoint{};           ///< to write the state that is kept
  Time restart{};              ///< to load it again
  Time checkpoint_interval{};  ///< 0: state is saved at the preemption, no work is lost, but a failure loses the run;
                               ///< > 0: work since the last multiple of this interval of work in the run is lost by
                               ///< both; the costs are not work
  /// Another than fixed takes the place of checkpoint_interval; then a preemption saves all that was done, too.
  CheckpointRule rule = CheckpointRule::fixed;
  Time periodic_checkpoint{};  ///< to write each of those of an interval, while the work rests; none at the run's end.
                               ///< Nothing where checkpoints are transfers (StageModel)

  /// True when anything costs time.
  [[nodiscard]] bool any() const { return checkpoint + restart + checkpoint_interval > Time{}; }
};

/// How a run behaves, besides its policy.
struct EngineOptions {
  Placement placement = Placement::consolidate;  ///< rule for gangs whose nodes the policy does not choose
  PreemptionCost preemption = {};                ///< none by default: preemption is free
  std::uint64_t seed = 0;                        ///< of the random placement
  /// An instant's events come one at a time, submissions first, with a decision between any two: the stepping of
  /// RLScheduler's simulator (SC'20). Otherwise all events of an instant are applied before anyone decides.
  bool one_event_a_step = false;
};

/// Where a job is in its life.
enum class JobPhase : std::uint8_t {
  future,   ///< not submitted yet, or waits for the end of others
  pending,  ///< waits in its queue
  running,  ///< holds nodes
  done,     ///< finished
};

namespace detail {

/// One job's changing part. One record per job instead of one array per field, because an event touches nearly
/// all of it.
struct JobState {
  Time remaining{};  ///< work left of the present attempt; as of `since` while the clock runs
  Time since{};      ///< start of the present run, or of the last re-plan
  Time first_start = Time::max();
  Time end = Time::max();
  Time ran{};                       ///< wall time running, overhead included; as of `since` while the clock runs
  std::uint32_t grants = no_index;  ///< head of the grant list
  std::uint32_t generation = 0;     ///< of the planned finish; a re-plan makes older plans stale
  std::uint32_t preemptions = 0;
  std::uint32_t previous = no_index, next = no_index;  ///< neighbours in the waiting queue or the running list
  RatePpm rate = reference_rate;
  std::uint16_t attempt = 0;
  JobPhase phase = JobPhase::future;
  bool must_restart = false;  ///< the next start pays the preemption cost
  /// The open decision preempted the job: until apply() ends its run, the time since `since` is not yet in `ran`.
  bool preempted_now = false;
  bool starting = false;  ///< the open decision started the job
  bool held = false;      ///< running, but told not to work

  /// True while time passes for the job since `since`.
  [[nodiscard]] bool clock_runs() const { return phase == JobPhase::running || preempted_now; }
};

/// What the runs of one job cost beside its work, so far. Kept apart from JobState, because most runs have no such
/// costs.
struct RunCosts {
  Time overhead{};                ///< wall time of loading and saving, of runs that are over
  Time lost{};                    ///< wall time of work that no checkpoint kept, likewise
  Time ran_before{};              ///< wall time of the runs before the present one
  Time loading{};                 ///< of the present run: work that is loading, and comes first
  Time carried{};                 ///< loading that the last run left to the next one
  Time after_wait = Time::max();  ///< of the present run: work left when its MIG cards are ready; max(): they were
  Time interval{};                ///< of the present run: work between its checkpoints; 0: none
  Time saving{};                  ///< of the present run: what a checkpoint takes, as work
  Time passed{};                  ///< of the present run: work that passed before it was settled last
  Time stalled{};                 ///< of the present run: wall time without work
  Time moving{};                  ///< of the present run: wall time in which it waited for transfers
  Time save_at{};                 ///< of the present run: work left when its next checkpoint begins to move; 0: none
  Time kept_left{};               ///< of the present run: work that was left when the last of these began
  std::uint32_t saves = 0;        ///< of the present run: checkpoints until its end
  std::uint32_t kills = 0;        ///< by nodes that went down
  bool was_killed = false;        ///< the next start follows a failure
  bool saves_now = false;         ///< a checkpoint moves
};

/// A doubly linked list through JobState::previous and next.
struct JobList {
  std::uint32_t first = no_index, last = no_index;
  std::uint32_t size = 0;
};

/// Sums of microseconds times GPUs exceed 64 bits.
__extension__ using WideInt = __int128;

/// How large the runs of one job are and were. Kept apart from JobState, because most runs know no elastic jobs.
struct JobSize {
  Shape shape{};            ///< what the job holds by the commands so far, or held last
  MilliGpu milli = 0;       ///< GPUs of the present run, or of the last one
  MilliGpu released = 0;    ///< GPUs of the last run that ended
  std::uint32_t phase = 0;  ///< of its curve, in the present run
  Time phase_left{};        ///< of the present run: work left when its phase ends; 0: it is the last one
  Time ran_before{};        ///< wall time of the runs before the present one
  Time overhead_before{};   ///< RunCosts::overhead when the present run began
  Time lost_before{};       ///< RunCosts::lost, likewise
  /// Microseconds times thousandths of a GPU, of the runs that are over. Exact: attained service must not fall behind
  /// what a policy counts on.
  /// \{
  WideInt held = 0, overhead = 0, lost = 0;
  /// \}
};

/// A command of a Decision; `time` is the instant of a wake or the change of an adjust.
enum class CommandKind : std::uint8_t { start, preempt, wake, adjust, move, hold, resume };
struct Command {
  CommandKind kind = CommandKind::wake;
  bool withdrawn = false;  ///< start: a later preempt of the same decision took it back; preempt: that one
  JobId job = no_job;
  std::uint32_t grants = no_index;  ///< preempt: what the job held
  Time time{};
};

struct EngineState {
  const JobTable* jobs = nullptr;         // borrowed
  const RuntimeModel* runtime = nullptr;  // borrowed; null = reference rate everywhere
  const ElasticModel* elastic = nullptr;  // borrowed; null = every job is rigid
  EngineOptions options;

  Time now{};
  std::uint32_t arrived = 0;  ///< jobs submitted so far = id of the next arrival
  std::uint32_t finished = 0;
  std::uint64_t events_seen = 0;
  EventQueue planned;
  NodeOutages outages;            ///< inactive unless nodes can fail
  NodeStages stages;              ///< inactive unless runs have stages
  OpenDependencies dependencies;  ///< inactive unless jobs wait for others
  OpenChanges changes;            ///< inactive unless users change jobs
  ClusterState cluster;
  CardSharing sharing;                      ///< inactive unless rates depend on who shares a card
  std::uint64_t reconfigurations = 0;       ///< of MIG cards
  std::int64_t reconfiguration_gpu_us = 0;  ///< GPU-microseconds that passed, or will, in them
  DemandTable demands;                      ///< of the jobs, as far as this cluster tells them apart
  std::vector<std::uint32_t> queue_of_vc;   ///< scheduling queue of each JobTable vc; empty: all in queue 0
  std::vector<JobList> queues;
  JobList running;
  std::vector<JobState> states;
  std::vector<RunCosts> costs;    ///< by job; empty unless stopping or starting a job costs time or nodes can fail
  std::vector<JobSize> sizes;     ///< by job; empty when every job is rigid
  std::vector<Time> worked;       ///< of each job: work that passed while it ran; empty when that equals `ran`
  std::vector<Event> events;      ///< of this instant
  std::vector<Command> commands;  ///< of the open decision

  JobState& operator[](JobId job) { return states[GPUSCHED_CHECKED(index(job), states, "no such job")]; }
  const JobState& operator[](JobId job) const { return states[GPUSCHED_CHECKED(index(job), states, "no such job")]; }

  [[nodiscard]] std::uint32_t queue_of(JobId job) const { return queue_of_vc.empty() ? 0 : queue_of_vc[jobs->vc(job)]; }

  /// True when jobs may come to ask for something else; then `sizes` is not empty.
  [[nodiscard]] bool resizes() const { return !sizes.empty() && changes.resizes(); }
  /// Number of what the job asks for now, in JobTable::shapes().
  [[nodiscard]] std::uint32_t shape_id(JobId job) const {
    const std::uint32_t listed = jobs->shape_id(job);
    return resizes() ? changes.shape_id(job) : listed;
  }
  /// What the job asks for now.
  [[nodiscard]] GPUSCHED_HOT const Shape& shape(JobId job) const { return jobs->shapes()[shape_id(job)]; }

  /// What the job holds by the commands so far, or held last: another number of tasks than it asks for, perhaps.
  [[nodiscard]] const Shape& held_shape(JobId job) const {
    return sizes.empty() ? shape(job) : sizes[index(job)].shape;
  }

  /// When the job was submitted, or might run first because others that it waits for had ended.
  [[nodiscard]] Time submit(JobId job) const {
    return dependencies.active() ? dependencies.eligible(job) : jobs->submit(job);
  }

  /// Larger is more urgent.
  [[nodiscard]] std::int32_t priority(JobId job) const {
    return changes.active() ? changes.priority(job) : jobs->priority(job);
  }

  /// The job's rates by GPU type, alone on its GPUs; none where it runs at the reference rate on all.
  [[nodiscard]] std::span<const RatePpm> speeds(JobId job) const {
    return runtime == nullptr ? std::span<const RatePpm>{} : runtime->rates(jobs->family(job), shape(job));
  }

  /// The factor on the rate of a job that holds nodes: what its span costs it. Precondition: there is a runtime model.
  [[nodiscard]] SpanFactor span_factor(JobId job) const {
    const SpanModel& spans = runtime->spans();
    if (spans.is_empty()) return {};
    return spans.factor(jobs->family(job), held_shape(job), cluster.span_of((*this)[job].grants));
  }

  /// The rule that places this job where `rule` is the run's: Placement::skew is another one for each family.
  [[nodiscard]] Placement rule_for(JobId job, Placement rule) const {
    if (rule != Placement::skew) return rule;
    const bool skewed = runtime != nullptr && runtime->spans().is_skewed(jobs->family(job));
    return skewed ? Placement::consolidate : Placement::best_fit;
  }

  void append(JobList& list, JobId job) {
    JobState& state = (*this)[job];
    state.previous = list.last;
    state.next = no_index;
    (list.last == no_index ? list.first : states[list.last].next) = index(job);
    list.last = index(job);
    ++list.size;
  }

  GPUSCHED_HOT void unlink(JobList& list, JobId job) {
    const JobState& state = (*this)[job];
    (state.previous == no_index ? list.first : states[state.previous].next) = state.next;
    (state.next == no_index ? list.last : states[state.next].previous) = state.previous;
    --list.size;
  }

  /// Wall time that the job ran up to `now`, overhead included.
  [[nodiscard]] Time ran_now(const JobState& state) const {
    return state.clock_runs() ? state.ran + (now - state.since) : state.ran;
  }

  /// Work left of the job's present attempt at `now`.
  [[nodiscard]] Time remaining_now(const JobState& state) const {
    if (!state.clock_runs()) return state.remaining;
    return state.remaining - work_done(state.rate, now - state.since);
  }

  /// Work that passes in `span` at `rate`, rounded down.
  static Time work_done(RatePpm rate, Time span) {
    if (rate == reference_rate) return span;
    return {mul_div(span.us, rate, reference_rate)};
  }

  /// Time that `work` takes at `rate`, rounded up, so that a finish never comes early; Time::max() when it never comes.
  /// With work_done() the one home of rounding.
  static Time time_needed(RatePpm rate, Time work) {
    if (rate == reference_rate) return work;
    return rate == 0 ? Time::max() : Time{mul_div_up(work.us, reference_rate, rate)};
  }

  /// When a running job's present attempt ends if nothing changes; Time::max() = never.
  static Time planned_end(const JobState& state) {
    return later_by(state.since, time_needed(state.rate, state.remaining));
  }
};

}  // namespace detail
}  // namespace gpusched
