// SPDX-License-Identifier: Apache-2.0
/// OnlineScheduler: a policy that decides for a host. The host, a simulator or a cluster, owns the clock and the jobs:
/// it says what was submitted, finished and cancelled, asks for the decision of that instant and carries it out.
///
/// A host that ends each job after its duration gets the history of simulate() over the same jobs, event by event.
///
///   OnlineScheduler scheduler(cluster, make);       // make(jobs, cluster) gives a policy
///   scheduler.submit({.id = "a", .duration = whole_seconds(60), .shape = {.gpu_milli_per_task = whole_gpu}});
///   const auto commands = scheduler.decide(Time{}); // start "a" on node 0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/policy.hpp"

namespace gpusched {

/// A job as its host submits it. Names may be empty ("unknown").
struct OnlineJob {
  std::string id;               ///< distinct, not empty
  Time duration = Time::max();  ///< how long it will run; max() = not known, which clairvoyant policies refuse
  Time estimate = Time::max();  ///< run time that the user asked for; max() = none
  Shape shape{};                ///< what it asks for; gpu_spec below replaces Shape::gpu_spec
  std::string user = {};        ///< as JobRecord::user
  std::string group = {};       ///< as JobRecord::group
  std::string vc = {};          ///< as JobRecord::vc
  std::string name = {};        ///< as JobRecord::name
  std::string family = {};      ///< as JobRecord::family
  std::string gpu_spec = {};    ///< allowed GPU types, as GpuDemand takes them
  std::int32_t priority = 0;    ///< larger is more urgent
  Time deadline = Time::max();  ///< max() = none
};

/// What the host is to do with a job.
enum class OnlineAction : std::uint8_t {
  start,    ///< start it, or resume it after a preemption, on `nodes`
  preempt,  ///< suspend it; its nodes are free from now on
  move,     ///< let it run on, on `nodes` instead of those that it has
};

/// Tasks of a gang on one node.
struct OnlinePart {
  NodeId node = no_node;      ///< where
  std::uint32_t tasks = 0;    ///< how many of the gang's tasks
  std::uint64_t devices = 0;  ///< bit d: GPU d of the node; 0 where GPUs are only counted

  /// Field by field.
  friend bool operator==(const OnlinePart&, const OnlinePart&) = default;
};

/// One command of a decision; the host carries them out in order.
struct OnlineCommand {
  OnlineAction action = OnlineAction::start;  ///< what to do
  JobId job = no_job;                         ///< OnlineScheduler::id() gives its name
  std::vector<OnlinePart> nodes = {};         ///< none for preempt

  /// Field by field.
  friend bool operator==(const OnlineCommand&, const OnlineCommand&) = default;
};

/// Makes the policy of a run. `jobs` outlives the policy. Called again when jobs come that were not announced.
using OnlinePolicyMaker = std::function<Result<AnyPolicy>(const JobTable& jobs, const Cluster& cluster)>;

/// One host's scheduler. Errors leave it unusable: a host whose picture of the jobs differs cannot be served on.
///
/// Jobs announced before the first decision, with their submission, cost what they cost in simulate(). A job that was
/// not announced, or is submitted at another time, costs a repetition of the whole history, because policies prepare
/// themselves for the jobs of a table: n such jobs cost O(n^2) decisions. Repeated decisions must be the same again.
///
/// Limits. Jobs run at the reference rate and have one attempt; a policy that changes how long a running job takes
/// (hold, adjust_work) is refused when it does.
class OnlineScheduler {
 public:
  /// A scheduler for that cluster. Only with `nodes_may_fail` may its nodes go out of service.
  OnlineScheduler(Cluster cluster, OnlinePolicyMaker make, const EngineOptions& options = {},
                  bool nodes_may_fail = false)
      : cluster_(std::move(cluster)), make_(std::move(make)), options_(options), nodes_may_fail_(nodes_may_fail) {
    is_down_.resize(cluster_.nodes.size());
  }

  /// Tells of a job that will be submitted at `submit` by submit(id). Only before the first decision. Errors: as
  /// submit().
  Result<void> announce(OnlineJob job, Time submit) {
    if (!steps_.empty()) return unexpected("job '" + job.id + "' is announced after the first decision");
    if (auto checked = check(job, submit); !checked) return checked;
    const std::string id = job.id;
    numbers_.emplace(id, no_index);
    announced_.push_back({.job = std::move(job), .submit = submit});
    announced_numbers_.emplace(id, static_cast<std::uint32_t>(announced_.size() - 1));
    return {};
  }

  /// The node is out of service when the run begins, and stays so until node_up(). Only before the first decision.
  /// Errors: no such node; it was told before.
  Result<void> out_at_start(NodeId node) {
    const std::string name = "node " + std::to_string(index(node));
    if (!steps_.empty()) return unexpected(name + " is out from the start, told after the first decision");
    if (auto known = check_node(node, false); !known) return known;
    is_down_[index(node)] = true;
    changes_.push_back({.time = Time{} - end_of_time, .node = node, .up = false});
    return {};
  }

  /// The announced job of that id is submitted at the instant of the next decision. Errors: it is unknown, or was
  /// submitted before.
  Result<void> submit(const std::string& id) {
    const auto known = announced_numbers_.find(id);
    if (known == announced_numbers_.end()) return unknown(id);
    if (numbers_.at(id) != no_index) return unexpected("job '" + id + "' was submitted before");
    Announced& announced = announced_[known->second];
    announced.gone = true;
    add(announced.job, known->second);
    return {};
  }

  /// A job that was not announced is submitted at the instant of the next decision. Errors: its id is empty or known,
  /// it asks for no task, a time is negative; decide() refuses what the empty cluster could not hold.
  Result<void> submit(OnlineJob job) {
    if (auto checked = check(job, Time{}); !checked) return checked;
    numbers_.emplace(job.id, no_index);
    add(std::move(job), no_index);
    return {};
  }

  /// A running job did its work at the instant of the next decision. Errors: it does not run, or is unknown.
  Result<void> finish(const std::string& id) {
    const auto job = submitted(id);
    if (!job) return Unexpected{job.error()};
    if (states_[*job] != State::running)
      return unexpected("job '" + id + "' " + word(states_[*job]) + ", it does not run");
    end_at_next(*job);
    return {};
  }

  /// A job is given up at the instant of the next decision: it stops if it runs, and leaves its queue if it waits.
  /// Errors: it ended before, or is unknown.
  Result<void> cancel(const std::string& id) {
    const auto job = submitted(id);
    if (!job) return Unexpected{job.error()};
    if (states_[*job] == State::running) {
      end_at_next(*job);
    } else if (states_[*job] == State::waiting) {
      states_[*job] = State::cancelled;
      next_.cancelled.push_back(*job);
    } else {
      return unexpected("job '" + id + "' " + word(states_[*job]) + " before");
    }
    return {};
  }

  /// A node goes out of service at the instant of the next decision: the jobs that run there lose their nodes and the
  /// work since they started last, and wait again. Costs a repetition of the history. Errors: nodes may not fail here,
  /// or preemption costs time; no such node; it is out of service.
  Result<void> node_down(NodeId node) { return change_node(node, false); }
  /// A node comes back, empty. Errors: as node_down(); it is in service.
  Result<void> node_up(NodeId node) { return change_node(node, true); }

  /// The decision of the instant `now`, with all that was submitted, finished, cancelled and changed since the last
  /// one. All events of an instant belong before one call; a later call at the same instant may not submit. Errors:
  /// time goes backwards, an instant that the policy asked for was passed over, a job does not fit the empty cluster,
  /// the policy refuses the jobs or changes how long one runs. What the policy throws passes through.
  Result<std::vector<OnlineCommand>> decide(Time now) {
    if (failed_) return unexpected("the scheduler cannot go on after an error");
    failed_ = true;  // until this call is through
    if (auto checked = check_time(now); !checked) return Unexpected{checked.error()};
    next_.now = now;
    for (Submission& job : pending_) job.submit = now;
    for (NodeChange& change : changes_now_) change.time = now;
    const bool as_announced = run_ != nullptr && changes_now_.empty() && arrivals_are_as_announced(now);
    changes_.insert(changes_.end(), changes_now_.begin(), changes_now_.end());
    changes_now_.clear();
    for (Submission& job : pending_) submitted_.push_back(std::move(job));
    pending_.clear();
    if (!as_announced) {
      if (auto checked = check_wakes(now); !checked) return Unexpected{checked.error()};
      if (auto rebuilt = rebuild(now); !rebuilt) return Unexpected{rebuilt.error()};
    }
    auto commands =
        run_ == nullptr ? Result<std::vector<OnlineCommand>>(std::vector<OnlineCommand>{}) : take(next_, !as_announced);
    if (!commands) return commands;
    if (run_ != nullptr) {
      for (const std::uint32_t job : run_->killed) states_[job] = State::waiting;
    }
    for (const OnlineCommand& command : *commands) {
      states_[index(command.job)] = command.action == OnlineAction::preempt ? State::waiting : State::running;
    }
    next_.commands = *commands;
    steps_.push_back(std::exchange(next_, {}));
    failed_ = false;
    return commands;
  }

  /// The latest instant at which the host must call decide() again, with or without events: the policy may have asked
  /// to be. It may be earlier than needed. Time::max(): no need.
  [[nodiscard]] Time next_call() const {
    const Time next = run_ == nullptr ? Time::max() : run_->engine.next_event_time();
    return next < end_of_time ? next : Time::max();  // a job without a duration has its planned end beyond
  }

  /// The id of a submitted job. Precondition: job < submitted().
  [[nodiscard]] const std::string& id(JobId job) const { return submitted_[index(job)].job.id; }
  /// Jobs submitted before the last decision; their JobId is their order.
  [[nodiscard]] std::uint32_t submitted() const { return static_cast<std::uint32_t>(submitted_.size()); }
  /// Jobs that neither finished nor were cancelled.
  [[nodiscard]] std::uint32_t unfinished() const {
    return static_cast<std::uint32_t>(std::count_if(states_.begin(), states_.end(), [](State state) {
      return state == State::waiting || state == State::running;
    }));
  }
  /// The machines.
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  /// The engine that follows the host; null before the first job. Valid until the next call of decide().
  [[nodiscard]] const Engine* engine() const { return run_ == nullptr ? nullptr : &run_->engine; }

 private:
  enum class State : std::uint8_t { waiting, running, ended, cancelled };

  struct Announced {
    OnlineJob job;
    Time submit{};
    bool gone = false;  // submitted
  };

  struct Submission {
    OnlineJob job;
    Time submit{};
    std::uint32_t announced = no_index;  // its number there
  };

  // What a host said before one decision, and the decision.
  struct Step {
    Time now{};
    std::vector<std::uint32_t> ended = {}, cancelled = {};
    std::vector<OnlineCommand> commands = {};
  };

  // A table of jobs and what runs over it. Engine and policy borrow the table, so a Run stays where it is.
  struct Run {
    Run(JobTable table, const Cluster& cluster, const EngineOptions& options, NodeFailures outages)
        : jobs(std::move(table)),
          failures(std::move(outages)),
          engine(jobs, cluster, options, {.failures = &failures}),
          starts(jobs.size()),
          ends(jobs.size()) {}
    JobTable jobs;
    NodeFailures failures;
    Engine engine;
    std::optional<AnyPolicy> policy;
    std::vector<std::uint32_t> announced;  // of each job of the table, its number among the announced
    std::vector<std::uint64_t> starts;     // of each job, the number of its last start; 0 = does not run
    std::vector<Time> ends;                // of each running job, the planned end
    std::vector<std::uint32_t> killed;     // in the last decision, by the end of a node
    std::uint64_t start_count = 0;
  };

  static std::string word(State state) {
    if (state == State::waiting) return "waits";
    if (state == State::running) return "runs";
    return state == State::ended ? "ended" : "was cancelled";
  }
  static Unexpected unknown(const std::string& id) { return unexpected("no job '" + id + "' is known"); }
  static std::string instant(Time t) { return std::to_string(t.us) + " us"; }

  [[nodiscard]] Result<void> check(const OnlineJob& job, Time submit) const {
    const auto refuse = [&job](const std::string& why) { return unexpected("job '" + job.id + "' " + why); };
    if (job.id.empty()) return unexpected("a job has an empty id");
    if (numbers_.contains(job.id)) return refuse("is known already; ids must be distinct");
    if (job.shape.tasks == 0) return refuse("asks for 0 tasks");
    if (job.duration < Time{} || job.estimate < Time{}) return refuse("has a negative run time");
    if (submit < Time{} - end_of_time || submit > end_of_time) return refuse("is submitted beyond the end of time");
    if (job.duration != Time::max() && job.duration > end_of_time) return refuse("runs beyond the end of time");
    return {};
  }

  Result<void> check_time(Time now) const {
    if (now < Time{} - end_of_time || now > end_of_time) return unexpected(instant(now) + " is beyond the end of time");
    if (steps_.empty()) return {};
    const Time last = steps_.back().now;
    if (now < last) return unexpected("time goes back from " + instant(last) + " to " + instant(now));
    if (!pending_.empty() && !submitted_.empty() && submitted_.back().submit == now) {
      return unexpected("job '" + pending_.front().job.id + "' is submitted at " + instant(now) +
                        " after the submissions of that instant were decided; submit them before one decision");
    }
    return {};
  }

  void add(OnlineJob job, std::uint32_t announced) {
    numbers_[job.id] = static_cast<std::uint32_t>(states_.size());
    states_.push_back(State::waiting);
    pending_.push_back({.job = std::move(job), .submit = {}, .announced = announced});
  }

  // The number of a job that a decision has seen.
  [[nodiscard]] Result<std::uint32_t> submitted(const std::string& id) const {
    const auto known = numbers_.find(id);
    if (known == numbers_.end()) return unknown(id);
    if (known->second == no_index) return unexpected("job '" + id + "' is announced, but not submitted");
    if (known->second >= submitted_.size()) return unexpected("job '" + id + "' is submitted at this very instant");
    return known->second;
  }

  // There is such a node, and it is not in or out of service already.
  [[nodiscard]] Result<void> check_node(NodeId node, bool up) const {
    const std::string name = "node " + std::to_string(index(node));
    if (index(node) >= is_down_.size())
      return unexpected("no " + name + "; there are " + std::to_string(is_down_.size()));
    if (is_down_[index(node)] != up) return unexpected(name + " is " + (up ? "in" : "out of") + " service already");
    return {};
  }

  Result<void> change_node(NodeId node, bool up) {
    const std::string name = "node " + std::to_string(index(node));
    const PreemptionCost& cost = options_.preemption;
    if (!nodes_may_fail_) return unexpected(name + " changes, but the scheduler was made for nodes that do not");
    if (cost.checkpoint + cost.restart > Time{}) return unexpected(name + " changes, which needs free preemption");
    if (auto known = check_node(node, up); !known) return known;
    is_down_[index(node)] = !up;
    changes_now_.push_back({.node = node, .up = up});
    return {};
  }

  // What is known to the host so far. A change beyond the end of time makes the engine follow nodes from the beginning.
  [[nodiscard]] NodeFailures failures() const {
    NodeFailures failures;
    std::vector<NodeChange> changes = changes_;
    if (nodes_may_fail_) changes.push_back({.time = end_of_time, .node = NodeId{0}, .up = false});
    failures.add_changes(changes);
    return failures;
  }

  void end_at_next(std::uint32_t job) {
    states_[job] = State::ended;
    next_.ended.push_back(job);
  }

  // The jobs submitted now are what the table expects at this instant, and no other.
  [[nodiscard]] bool arrivals_are_as_announced(Time now) const {
    const auto submits = run_->jobs.submits();
    std::size_t at = submitted_.size();
    for (const Submission& job : pending_) {
      if (at >= submits.size() || submits[at] != now || job.announced == no_index) return false;
      if (run_->announced[at++] != job.announced) return false;
    }
    return at == submits.size() || submits[at] > now;
  }

  // A table of all jobs that came and of those that are still announced for later, and the history over it.
  Result<void> rebuild(Time now) {
    JobTableBuilder builder;
    std::vector<std::uint32_t> later;
    run_.reset();
    for (const Submission& job : submitted_) add_row(builder, job.job, job.submit);
    for (std::uint32_t i = 0; i < announced_.size(); ++i) {
      if (!announced_[i].gone && announced_[i].submit > now) later.push_back(i);
    }
    std::stable_sort(later.begin(), later.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return announced_[a].submit < announced_[b].submit; });
    for (const std::uint32_t i : later) add_row(builder, announced_[i].job, announced_[i].submit);
    if (builder.size() == 0) return {};
    auto table = std::move(builder).build();
    if (!table) return Unexpected{table.error()};
    run_ = std::make_unique<Run>(*std::move(table), cluster_, options_, failures());
    for (const Submission& job : submitted_) run_->announced.push_back(job.announced);
    run_->announced.insert(run_->announced.end(), later.begin(), later.end());
    if (auto checked = check_shapes(); !checked) return checked;
    auto policy = make_(run_->jobs, cluster_);
    if (!policy) return Unexpected{policy.error()};
    run_->policy = *std::move(policy);
    if (auto checked = check_durations(); !checked) return checked;
    return repeat_history();
  }

  static void add_row(JobTableBuilder& builder, const OnlineJob& job, Time submit) {
    builder.add({.id = job.id,
                 .submit = submit,
                 .work = job.duration == Time::max() ? end_of_time : job.duration,
                 .estimate = job.estimate,
                 .shape = job.shape,
                 .user = job.user,
                 .group = job.group,
                 .vc = job.vc,
                 .name = job.name,
                 .gpu_spec = job.gpu_spec,
                 .family = job.family,
                 .priority = job.priority,
                 .deadline = job.deadline});
  }

  [[nodiscard]] Result<void> check_shapes() const {
    const View view = run_->engine.view();
    std::set<std::pair<std::uint32_t, std::uint32_t>> fitting;
    for (std::uint32_t i = 0; i < run_->jobs.size(); ++i) {
      const JobId job{i};
      if (!fitting.emplace(view.shape_id(job), view.queue_of(job)).second) continue;
      if (ClusterState::fits_when_empty(cluster_, run_->jobs.gpu_specs(), view.shape(job), view.queue_of(job)))
        continue;
      return unexpected("job '" + run_->jobs.external_id(job) + "' does not fit the empty cluster");
    }
    return {};
  }

  [[nodiscard]] Result<void> check_durations() const {
    if (!run_->policy->clairvoyant()) return {};
    for (std::uint32_t i = 0; i < run_->jobs.size(); ++i) {
      if (run_->jobs.work(JobId{i}) != end_of_time) continue;
      return unexpected("policy " + std::string(run_->policy->name()) + " reads run times, and job '" +
                        run_->jobs.external_id(JobId{i}) + "' comes without its duration");
    }
    return {};
  }

  Result<void> repeat_history() {
    for (const Step& step : steps_) {
      const auto commands = take(step, true);
      if (!commands) return Unexpected{commands.error()};
      if (*commands != step.commands) return decides_otherwise(step.now);
    }
    return {};
  }

  [[nodiscard]] Unexpected decides_otherwise(Time t) const {
    return unexpected("policy " + std::string(run_->policy->name()) + " decides otherwise at " + instant(t) +
                      " when it knows of jobs that came later; announce all jobs before the first decision");
  }

  // The host must not have passed over an instant that the policy of the present run asked for. Leaves that run
  // unusable.
  Result<void> check_wakes(Time now) {
    if (run_ == nullptr || run_->engine.view().now() > now) return {};
    std::vector<std::uint32_t> ended = next_.ended;
    plan_ends(now, ended);
    Engine& engine = run_->engine;
    while (engine.advance_to(Time{now.us - 1})) {
      for (const Event& event : engine.events()) {
        if (event.kind == EventKind::wake) return passed_over(engine.view().now());
      }
    }
    return {};
  }

  [[nodiscard]] static Unexpected passed_over(Time t) {
    return unexpected("the policy asked to decide at " + instant(t) + ", which was passed over");
  }

  // Brings the engine to the step's instant and lets the policy decide. `repeats`: over a table that the host's policy
  // did not have; what a policy prepares from the jobs of a table may make it ask for instants of which the host knew
  // nothing (a capacity profile has a cell for each node only where jobs need it). It may if it decides nothing there.
  Result<std::vector<OnlineCommand>> take(const Step& step, bool repeats) {
    Engine& engine = run_->engine;
    std::vector<OnlineCommand> commands;
    run_->killed.clear();
    if (engine.view().now() > step.now) return commands;  // before the first job
    for (const std::uint32_t job : step.cancelled) engine.cancel_at(JobId{job}, step.now);
    std::vector<std::uint32_t> ended = step.ended;
    plan_ends(step.now, ended);
    while (engine.advance_to(Time{step.now.us - 1})) {
      if (!repeats) return passed_over(engine.view().now());
      if (auto decided = decide_once(commands); !decided) return Unexpected{decided.error()};
      if (!commands.empty()) return decides_otherwise(engine.view().now());
    }
    if (engine.advance_to(step.now)) {
      forget_ended();
      if (auto decided = decide_once(commands); !decided) return Unexpected{decided.error()};
    }
    return commands;
  }

  // The jobs of `ended` end now, all others later: a job that should have ended and did not is assumed to take as long
  // again. In order of their starts, as simulate() ends jobs of one instant.
  void plan_ends(Time now, std::vector<std::uint32_t>& ended) {
    std::sort(ended.begin(), ended.end(),
              [this](std::uint32_t a, std::uint32_t b) { return run_->starts[a] < run_->starts[b]; });
    for (const std::uint32_t job : ended) plan_end(JobId{job}, now);
    std::vector<JobId> late;
    const OracleView view = run_->engine.view();
    for (const JobId job : view.running()) {
      const bool ends = std::find(ended.begin(), ended.end(), index(job)) != ended.end();
      if (!ends && view.expected_end(job) <= now) late.push_back(job);
    }
    for (const JobId job : late) plan_end(job, later_by(now, std::max(view.ran(job), whole_seconds(1))));
  }

  void plan_end(JobId job, Time end) {
    const OracleView view = run_->engine.view();
    if (view.expected_end(job) != end) {
      run_->engine.decision().adjust_work(job, end - view.now() - view.remaining(job));
      run_->engine.apply();
    }
    run_->ends[index(job)] = end;
  }

  void forget_ended() {
    for (const Event& event : run_->engine.events()) {
      if (leaves_cluster(event.kind)) run_->starts[index(event.job)] = 0;
      if (event.kind == EventKind::kill) run_->killed.push_back(index(event.job));
    }
  }

  Result<void> decide_once(std::vector<OnlineCommand>& commands) {
    Engine& engine = run_->engine;
    const OracleView view = engine.view();
    Decision decision = engine.decision();
    run_->policy->decide(view, decision);
    note_starts();
    engine.apply();
    for (const Event& event : engine.events()) note(event, commands);
    for (const JobId job : view.running()) {
      if (view.expected_end(job) == run_->ends[index(job)]) continue;
      return unexpected("policy " + std::string(run_->policy->name()) + " changed how long job '" +
                        run_->jobs.external_id(job) + "' runs, which a host cannot carry out");
    }
    return {};
  }

  // The ends of the jobs that the open decision started.
  void note_starts() {
    const OracleView view = run_->engine.view();
    const PreemptionCost& cost = options_.preemption;
    for (const JobId job : view.running()) {
      if (run_->starts[index(job)] != 0) continue;
      const Time loading = view.preemptions(job) > 0 ? cost.checkpoint + cost.restart : Time{};
      run_->ends[index(job)] = later_by(view.now(), later_by(view.remaining(job), loading));
    }
  }

  void note(const Event& event, std::vector<OnlineCommand>& commands) {
    const OracleView view = run_->engine.view();
    std::uint64_t& start = run_->starts[index(event.job)];
    OnlineCommand command{.job = event.job, .nodes = {}};
    if (event.kind == EventKind::preempt) {
      start = 0;
      command.action = OnlineAction::preempt;
    } else {
      if (event.kind == EventKind::move) {
        command.action = OnlineAction::move;
      } else {
        // Stopped and started again in one decision: its end was not foreseen.
        const bool again = std::any_of(commands.begin(), commands.end(), [&event](const OnlineCommand& earlier) {
          return earlier.job == event.job && earlier.action == OnlineAction::preempt;
        });
        if (again) run_->ends[index(event.job)] = view.expected_end(event.job);
        start = ++run_->start_count;
      }
      if (view.phase(event.job) == JobPhase::running) {
        view.for_each_grant(event.job, [&command](const Grant& grant) {
          command.nodes.push_back({.node = grant.node, .tasks = grant.tasks, .devices = grant.devices});
        });
      }
    }
    commands.push_back(std::move(command));
  }

  Cluster cluster_;
  OnlinePolicyMaker make_;
  EngineOptions options_;
  std::unordered_map<std::string, std::uint32_t> numbers_;            // of submitted jobs; no_index: announced
  std::unordered_map<std::string, std::uint32_t> announced_numbers_;  // both looked up, never iterated
  std::vector<Announced> announced_;
  std::vector<Submission> submitted_;  // by JobId
  std::vector<Submission> pending_;    // since the last decision
  std::vector<State> states_;          // of submitted_, then pending_
  std::unique_ptr<Run> run_;
  Step next_;
  std::vector<Step> steps_;
  bool failed_ = false;
  bool nodes_may_fail_ = false;
  std::vector<bool> is_down_;                      // by node, as the host said last
  std::vector<NodeChange> changes_, changes_now_;  // up to the last decision; since
};

}  // namespace gpusched
