// SPDX-License-Identifier: Apache-2.0
/// SlowWorld: a run of everything at once, computed anew at each instant from the rules alone. It is told what a policy
/// decides, and finds for itself when what happens.
///
/// The order of an instant (ARCHITECTURE.md, "The engine"): ends of runs and timers; then what each effect brings: jobs
/// reach their run time limits, users change jobs, transfers end, nodes fail and come back, jobs that waited for others
/// join their queues; then submissions; then the policy decides. Rates follow from who is where when all of that is
/// done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "tests/world_reference/slow_run.hpp"
#include "tests/world_reference/slow_storage.hpp"

namespace gpusched::test {

/// A command of a decision, as it was carried out.
struct ToldCommand {
  gpusched::detail::CommandKind kind = gpusched::detail::CommandKind::wake;
  JobId job = no_job;
  Time time{};                    ///< of a wake; the change of an adjust; microwatts of a limit
  bool takes_back = false;        ///< a preemption of a job that the decision had started: it never ran
  std::vector<Grant> nodes = {};  ///< of a start or a move
  Shape shape = {};               ///< what the job holds from then on
};

/// A job of it.
struct SlowJob {
  JobPhase phase = JobPhase::future;
  std::uint32_t attempt = 0;
  std::int64_t work_left = 0;  ///< of the attempt, what the present run did left out
  Shape asked = {};
  std::uint32_t shape_id = 0;
  std::int32_t priority = 0;
  Time eligible{};                  ///< submitted, and nothing that it waits for was still to end
  std::uint32_t joined = no_index;  ///< how many joined a queue before it
  bool must_restart = false, was_killed = false, is_cancelled = false, was_preempted_last = false;
  Time first_start = Time::max(), end = Time::max(), ran{};
  std::uint32_t preemptions = 0, kills = 0;
  SlowAccount account;                     ///< of all runs that are over
  gpusched::detail::WideInt held_gpu = 0;  ///< exact: microseconds times thousandths of a GPU
  double watts = -1;                       ///< power limit; -1: none
  Time counted_from{};                     ///< what it had run in all when its run time limit began anew
  std::uint32_t limited_attempt = 0;       ///< whose limit that is
  // While it runs.
  bool is_held = false;
  std::vector<Grant> nodes = {};
  Shape held = {};
  SlowRun run = {};
  std::uint32_t curve_phase = 0;
  Time limit_end = Time::max();  ///< when it has run for as long as it asked for; Time::max(): never
  // Its user gave it another size at this instant while it ran there.
  bool is_resized = false;
};

class SlowWorld {
 public:
  /// All are borrowed.
  SlowWorld(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options, const RunInputs& inputs);

  /// Moves to the next instant at which something happens that a policy sees. False: nothing is left.
  bool advance();
  /// Carries out a decision.
  void decide(std::span<const ToldCommand> commands);

  [[nodiscard]] Time now() const { return now_; }
  /// What the last advance() or decide() brought, in no order.
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] const SlowJob& job(JobId job) const { return jobs_[index(job)]; }
  [[nodiscard]] const StartCounts& starts(JobId job) const { return storage_.counts(job); }
  [[nodiscard]] bool has_stages() const { return storage_.active(); }
  /// Work left of the present attempt, what it still has to load and to write included.
  [[nodiscard]] Time remaining(JobId job) const;
  /// When a running job is over at its present rate.
  [[nodiscard]] static Time expected_end(const SlowJob& job) { return std::min(job.run.when_left(0), job.limit_end); }
  [[nodiscard]] bool is_in_service(NodeId node) const;
  /// Thousandths of GPUs, of cores and MiB that jobs hold there.
  struct Held {
    MilliGpu gpu = 0;
    std::int64_t cpu = 0, memory = 0;
    std::map<std::uint32_t, MilliGpu> devices = {};  ///< by GPU of the node, where it tells them apart
  };
  [[nodiscard]] Held held(NodeId node) const;
  /// GPU time since the first submission of all nodes out of service that no job held, and of the others, likewise.
  [[nodiscard]] gpusched::detail::WideInt withheld_time() const { return withheld_; }
  [[nodiscard]] gpusched::detail::WideInt idle_time() const { return idle_; }

 private:
  struct SlowNode {
    enum class Absence : std::uint8_t { none, drained, down } recorded = Absence::none;
    bool is_spare = false;
    Time empty_since{}, ready{};  // of sleep
    bool is_empty = true, is_asleep = false;
  };
  // Something that fails by a law.
  struct SlowUnit {
    enum class Next : std::uint8_t { fault, down, up } next = Next::down;
    Time time = Time::max();
    bool is_down = false, is_faulty = false;
    std::uint32_t draws = 0;
  };

  // ---- time ----
  [[nodiscard]] Time next_time() const;
  [[nodiscard]] Time next_of_runs() const;
  [[nodiscard]] Time next_outage() const;
  [[nodiscard]] Time due(const SlowJob& job) const;
  void pass(Time to);
  void happen();

  // ---- what happens ----
  void end_what_is_due();
  void ring();
  void end_at_limits();
  void change_jobs();
  void change(const JobChange& change);
  void end_transfers();
  void change_nodes();
  void change_recorded(const NodeChange& change);
  void change_unit(std::uint32_t number);
  void plan_unit(std::uint32_t number, Time from);
  void lose(NodeId node);
  void call_spares();
  void come_back(NodeId node, bool was_in_service, std::span<const NodeId> later,
                 std::span<const char> later_were_in_service);
  [[nodiscard]] Time may_run_from(JobId id) const;
  void release_waiting();
  void submit();
  void sleep();

  // ---- runs ----
  void start(const ToldCommand& command);
  void begin_limit(JobId job);
  void begin_costs(JobId job, Time waits);
  [[nodiscard]] std::int64_t interval_of(JobId job, RatePpm rate) const;
  void move(const ToldCommand& command, bool shrinks = false);
  void go_on_resized(JobId job, const ToldCommand& command);
  void preempt(JobId job);
  // Ends a run before its work is done, unless it `finished`.
  void end_run(JobId job, gpusched::detail::EndOfRun why);
  void leave_nodes(JobId job);
  void wait(JobId job);
  void join(JobId job);
  void finish_job(JobId job);
  void settle(JobId job);
  Time wake(JobId job);

  // ---- rates ----
  [[nodiscard]] bool stands_still(JobId job) const;
  [[nodiscard]] RatePpm rate_now(JobId job) const;
  [[nodiscard]] RatePpm working_rate(JobId job) const;
  [[nodiscard]] RatePpm rate_of_task(JobId job, const Grant& task, Span span) const;
  [[nodiscard]] std::int64_t extra_of(JobId job, const Grant& task, std::size_t place) const;
  [[nodiscard]] Span span_of(JobId job) const;
  [[nodiscard]] RatePpm power_speed(JobId job) const;
  void adapt_rate(JobId job);
  void adapt_costs(JobId job);
  void adapt_rates();

  // ---- others ----
  [[nodiscard]] bool runs(JobId job) const { return jobs_[index(job)].phase == JobPhase::running; }
  [[nodiscard]] bool counts_costs() const;
  [[nodiscard]] bool is_faulty(NodeId node) const;
  [[nodiscard]] const ElasticCurve* curve(JobId job) const;
  [[nodiscard]] std::int64_t left_at_phase_end(const SlowJob& it, JobId job) const;
  [[nodiscard]] std::set<NodeId> nodes_of(JobId job) const;
  [[nodiscard]] std::map<NodeId, MilliGpu> parts_of(JobId job) const;
  [[nodiscard]] bool tells_gpus_apart(NodeId node) const;
  [[nodiscard]] std::uint32_t out(NodeId alike) const;
  [[nodiscard]] std::uint32_t spares_of(NodeId alike) const;
  [[nodiscard]] bool are_alike(NodeId a, NodeId b) const;
  [[nodiscard]] bool all_done() const { return done_ == jobs_.size(); }
  [[nodiscard]] bool all_nodes_work() const;
  // Nothing keeps the node from working, but that it may be a spare.
  [[nodiscard]] bool is_sound(NodeId node) const;
  template <class Visit>
  void for_each_running(Visit visit) {
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].phase == JobPhase::running) visit(JobId{i}, jobs_[i]);
    }
  }
  void emit(EventKind kind, JobId job, NodeId node = no_node) { events_.push_back({kind, job, node}); }

  const JobTable* table_;
  const Cluster* cluster_;
  EngineOptions options_;
  RunInputs inputs_;
  Time now_{};
  std::vector<SlowJob> jobs_;
  std::vector<SlowNode> nodes_;
  std::vector<SlowUnit> units_;
  SlowStorage storage_;
  std::multiset<Time> wakes_;
  std::vector<Event> events_;
  std::uint32_t arrived_ = 0, done_ = 0, joined_ = 0;
  std::size_t next_change_ = 0, next_recorded_ = 0;
  gpusched::detail::WideInt withheld_ = 0, idle_ = 0;
};

}  // namespace gpusched::test
