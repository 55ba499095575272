// SPDX-License-Identifier: Apache-2.0
/// OnlineRun: the engine and the policy that follow a host, over one table of jobs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/growing_jobs.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/online/online_job.hpp"
#include "gpusched/policy/adopted_policy.hpp"

namespace gpusched {

/// Makes the policy of a run. `jobs` outlives the policy. Called again when jobs come that were not announced.
using OnlinePolicyMaker = std::function<Result<AnyPolicy>(const JobTable& jobs, const Cluster& cluster)>;

namespace detail {

/// What a host said before one decision, and the decision. Jobs are rows of the table.
struct OnlineStep {
  /// When a job that runs is taken to end, from this step on.
  struct Plan {
    std::uint32_t job = 0;
    Time end{};
  };
  Time now{};
  std::vector<std::uint32_t> ended = {}, cancelled = {};
  std::vector<Plan> plans = {};  ///< before the decision, of jobs that go on
  std::vector<OnlineCommand> commands = {};
  std::vector<std::vector<Grant>> grants = {};  ///< of each command
};

/// A table of jobs and what runs over it. Engine and policy borrow the table, so it stays where it is.
class OnlineRun {
 public:
  /// Over the jobs of `table` and so many that may come; GrowingJobs says what `like` is.
  OnlineRun(JobTable table, std::uint32_t spare, const JobTable* like, const Cluster& cluster,
            const EngineOptions& options, NodeFailures outages)
      : jobs_(std::move(table), spare, like),
        failures_(std::move(outages)),
        engine_(jobs_.table(), cluster, options, {.failures = &failures_}),
        loading_(options.preemption.checkpoint + options.preemption.restart),
        starts_(jobs().size()),
        ends_(jobs().size()) {}
  OnlineRun(const OnlineRun&) = delete;
  OnlineRun& operator=(const OnlineRun&) = delete;
  ~OnlineRun() = default;

  /// Makes the policy, which takes over where `adopts`. Errors: a job does not fit the empty cluster, or the policy
  /// refuses the jobs.
  Result<void> open(const OnlinePolicyMaker& make, const Cluster& cluster, bool adopts) {
    for (std::uint32_t i = 0; i < jobs_.count(); ++i) {
      if (is_known_to_fit(JobId{i}, &cluster)) continue;
      return unexpected("job '" + id(JobId{i}) + "' does not fit the empty cluster");
    }
    auto policy = make(jobs(), cluster);
    if (!policy) return Unexpected{policy.error()};
    policy_.emplace(*std::move(policy));
    adopts_ = adopts;
    expect_jobs(adopts);  // nodes fail while jobs are followed, whoever waits
    for (std::uint32_t i = 0; i < jobs_.count(); ++i) {
      if (auto checked = check_duration(JobId{i}); !checked) return checked;
    }
    return {};
  }

  /// Jobs, and spare rows behind them.
  [[nodiscard]] const JobTable& jobs() const { return jobs_.table(); }
  /// Rows that are jobs.
  [[nodiscard]] std::uint32_t count() const { return jobs_.count(); }
  /// Follows the host.
  [[nodiscard]] const Engine& engine() const { return engine_; }
  /// Jobs that lost their nodes in the last decision, by the end of a node.
  [[nodiscard]] const std::vector<std::uint32_t>& killed() const { return killed_; }

  /// A job comes that the table did not have. False where that is for another table to have. Errors: as open().
  Result<bool> add(const JobRecord& job) {
    if (!jobs_.add(job)) return false;
    const JobId added{jobs_.count() - 1};
    if (!is_known_to_fit(added, nullptr)) return false;
    if (auto checked = check_duration(added); !checked) return Unexpected{checked.error()};
    return true;
  }

  /// Brings the engine to the step's instant, lets the policy decide and writes that down. `repeats`: over a table that
  /// the host's policy did not have; what a policy prepares from the jobs of a table may make it ask for instants of
  /// which the host knew nothing (a capacity profile has a cell for each node only where jobs need it). It may if it
  /// decides nothing there; false: it decided something. Errors: the host passed over an instant
  /// that the policy asked for; the policy changed how long a job runs.
  Result<bool> take(OnlineStep& step, bool repeats) {
    step.plans.clear();
    step.commands.clear();
    step.grants.clear();
    killed_.clear();
    if (engine_.view().now() > step.now) return true;  // before the first job
    for (const std::uint32_t job : step.cancelled) engine_.cancel_at(JobId{job}, step.now);
    plan_ends(step);
    while (engine_.advance_to(Time{step.now.us - 1})) {
      if (!repeats) return passed_over(engine_.view().now());
      if (auto decided = decide_once(step); !decided) return Unexpected{decided.error()};
      if (!step.commands.empty()) return false;
    }
    if (!engine_.advance_to(step.now) && !adopts_) return true;
    forget_ended();
    if (auto decided = decide_once(step); !decided) return Unexpected{decided.error()};
    return true;
  }

  /// Takes a step once more. False: it decided otherwise. Errors: as take().
  Result<bool> repeat(const OnlineStep& step) {
    OnlineStep again{.now = step.now, .ended = step.ended, .cancelled = step.cancelled};
    const auto taken = take(again, true);
    if (!taken || !*taken) return taken;
    return again.commands == step.commands;
  }

  /// The jobs of a step go where they went, whatever the policy would say. False where they cannot.
  bool follow(const OnlineStep& step) {
    for (const OnlineStep::Plan& plan : step.plans) plan_end(JobId{plan.job}, plan.end);
    while (engine_.advance_to(Time{step.now.us - 1})) engine_.apply();
    engine_.advance_to(step.now);
    Decision decision = engine_.decision();
    bool followed = true;
    // A start that was taken back and restored stands before a stop that made its room.
    for (const OnlineAction action : {OnlineAction::preempt, OnlineAction::start}) {  // who was cancelled is forgotten
      for (std::size_t i = 0; i < step.commands.size() && followed; ++i) {
        const OnlineCommand& command = step.commands[i];
        if (command.action == OnlineAction::move) followed = false;
        if (command.action != action || !followed) continue;
        const bool stops = action == OnlineAction::preempt;
        const Verdict verdict =
            stops ? decision.preempt(command.job) : decision.start_exactly(command.job, step.grants[i]);
        followed = verdict == Verdict::ok;
      }
    }
    engine_.apply();
    return followed;
  }

  /// What a policy that takes over is told besides the steps: of each job, as here.
  struct Takeover {
    Time now{};  ///< the last decision before it
    std::vector<std::uint64_t> starts = {};
    std::vector<Time> ends = {};
    std::uint64_t start_count = 0;
    std::optional<AdoptedPolicy> before = std::nullopt;  ///< who decided until then
  };
  /// Of the jobs kept[i], which will be the jobs i.
  [[nodiscard]] Takeover takeover(std::span<const std::uint32_t> kept) const {
    Takeover jobs{.now = engine_.view().now(), .start_count = start_count_, .before = policy_};
    if (adopts_ && before_ != nullptr) jobs.before = *before_;  // nobody has inherited from it yet
    for (const std::uint32_t job : kept) {
      jobs.starts.push_back(job < count() ? starts_[job] : 0);
      jobs.ends.push_back(job < count() ? ends_[job] : Time{});
    }
    return jobs;
  }
  /// Goes on behind the steps that were followed. Borrows who decided before for the next one.
  void continue_from(const Takeover& jobs) {
    while (engine_.advance_to(jobs.now)) engine_.apply();
    expect_jobs(false);
    std::copy(jobs.starts.begin(), jobs.starts.end(), starts_.begin());
    std::copy(jobs.ends.begin(), jobs.ends.end(), ends_.begin());
    start_count_ = jobs.start_count;
    before_ = &*jobs.before;
  }
  /// Error: job i does not run as job kept[i] of `before`, since a decision moved it.
  [[nodiscard]] Result<void> check_same(const OnlineRun& before, std::span<const std::uint32_t> kept) const {
    const OracleView there = before.engine_.view(), here = engine_.view();
    for (std::uint32_t i = 0; i < kept.size(); ++i) {
      if (kept[i] >= before.count()) continue;
      const bool runs = there.phase(JobId{kept[i]}) == JobPhase::running;
      const bool same = runs == (here.phase(JobId{i}) == JobPhase::running) &&
                        (!runs || (here.expected_end(JobId{i}) == there.expected_end(JobId{kept[i]}) &&
                                   grants_of(here, JobId{i}) == grants_of(there, JobId{kept[i]})));
      if (same) continue;
      return unexpected("policy " + std::string(policy_->name()) + " moved job '" + id(JobId{i}) +
                        "', which a scheduler that forgets jobs cannot follow");
    }
    return {};
  }

  /// The host must not have passed over an instant that the policy asked for, when it comes to `step`. Leaves this run
  /// unusable.
  Result<void> check_wakes(OnlineStep step) {
    if (engine_.view().now() > step.now) return {};
    plan_ends(step);
    while (engine_.advance_to(Time{step.now.us - 1})) {
      for (const Event& event : engine_.events()) {
        if (event.kind == EventKind::wake) return passed_over(engine_.view().now());
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::string id(JobId job) const { return jobs().external_id(job); }
  static std::string instant(Time t) { return std::to_string(t.us) + " us"; }

  // Nodes change where jobs may still come, and nobody is here.
  void expect_jobs(bool adopts) { engine_.expect(jobs().size(), adopts || jobs_.count() < jobs().size()); }

  // By the jobs so far, where there is no cluster to try.
  bool is_known_to_fit(JobId job, const Cluster* cluster) {
    const View view = engine_.view();
    const auto kind = std::pair(view.shape_id(job), view.queue_of(job));
    if (fitting_.contains(kind)) return true;
    if (cluster == nullptr) return false;
    if (!ClusterState::fits_when_empty(*cluster, jobs().gpu_specs(), view.shape(job), kind.second)) return false;
    return fitting_.insert(kind).second;
  }

  [[nodiscard]] Result<void> check_duration(JobId job) const {
    if (!policy_->clairvoyant() || jobs().work(job) != end_of_time) return {};
    return unexpected("policy " + std::string(policy_->name()) + " reads run times, and job '" + id(job) +
                      "' comes without its duration");
  }

  static std::vector<OnlinePart> grants_of(const View& view, JobId job) {
    std::vector<OnlinePart> grants;
    view.for_each_grant(job, [&grants](const Grant& grant) {
      grants.push_back({.node = grant.node, .tasks = grant.tasks, .devices = grant.devices});
    });
    return grants;
  }

  [[nodiscard]] static Unexpected passed_over(Time t) {
    return unexpected("the policy asked to decide at " + instant(t) + ", which was passed over");
  }

  // The jobs that the step ends do so now, all others later: a job that should have ended and did not is assumed to
  // take as long again, at least a second. In order of their starts, as simulate() ends jobs of one instant.
  void plan_ends(OnlineStep& step) {
    std::vector<std::uint32_t>& ended = step.ended;
    std::sort(ended.begin(), ended.end(), [this](auto a, auto b) { return starts_[a] < starts_[b]; });
    for (const std::uint32_t job : ended) plan_end(JobId{job}, step.now);
    const OracleView view = engine_.view();
    for (const JobId job : view.running()) {
      const bool ends = std::find(ended.begin(), ended.end(), index(job)) != ended.end();
      if (ends || view.expected_end(job) > step.now) continue;
      // The engine stands before the step.
      const Time ran = view.ran(job) + view.remaining(job) + (step.now - view.expected_end(job));
      step.plans.push_back({index(job), later_by(step.now, std::max(ran, whole_seconds(1)))});
    }
    for (const OnlineStep::Plan& plan : step.plans) plan_end(JobId{plan.job}, plan.end);
  }

  void plan_end(JobId job, Time end) {
    const OracleView view = engine_.view();
    if (view.expected_end(job) != end) {
      engine_.decision().adjust_work(job, end - view.now() - view.remaining(job));
      engine_.apply();
    }
    ends_[index(job)] = end;
  }

  void forget_ended() {
    for (const Event& event : engine_.events()) {
      if (leaves_cluster(event.kind)) starts_[index(event.job)] = 0;
      if (event.kind == EventKind::kill) killed_.push_back(index(event.job));
    }
  }

  Result<void> decide_once(OnlineStep& step) {
    const OracleView view = engine_.view();
    Decision decision = engine_.decision();
    if (std::exchange(adopts_, false)) {
      policy_->adopt(view, decision, before_);
    } else {
      policy_->decide(view, decision);
    }
    note_starts();
    engine_.apply();
    for (const Event& event : engine_.events()) note(event, step);
    for (const JobId job : view.running()) {
      if (view.expected_end(job) == ends_[index(job)]) continue;
      return unexpected("policy " + std::string(policy_->name()) + " changed how long job '" + id(job) +
                        "' runs, which a host cannot carry out");
    }
    return {};
  }

  // The ends of the jobs that the open decision started.
  void note_starts() {
    const OracleView view = engine_.view();
    for (const JobId job : view.running()) {
      if (starts_[index(job)] != 0) continue;
      const Time loading = view.preemptions(job) > 0 ? loading_ : Time{};
      ends_[index(job)] = later_by(view.now(), later_by(view.remaining(job), loading));
    }
  }

  void note(const Event& event, OnlineStep& step) {
    const OracleView view = engine_.view();
    std::uint64_t& start = starts_[index(event.job)];
    OnlineCommand command{.job = event.job, .nodes = {}};
    std::vector<Grant> grants;
    if (event.kind == EventKind::preempt) {
      start = 0;
      command.action = OnlineAction::preempt;
    } else if (event.kind == EventKind::withdraw) {
      command.action = OnlineAction::cancel;
    } else {
      if (event.kind == EventKind::move) {
        command.action = OnlineAction::move;
      } else {
        // Stopped and started again in one decision: its end was not foreseen.
        const bool again =
            std::any_of(step.commands.begin(), step.commands.end(), [&event](const OnlineCommand& earlier) {
              return earlier.job == event.job && earlier.action == OnlineAction::preempt;
            });
        if (again) ends_[index(event.job)] = view.expected_end(event.job);
        start = ++start_count_;
      }
      if (view.phase(event.job) == JobPhase::running) {
        view.for_each_grant(event.job, [&command, &grants](const Grant& grant) {
          command.nodes.push_back({.node = grant.node, .tasks = grant.tasks, .devices = grant.devices});
          grants.push_back(grant);
        });
      }
    }
    std::reverse(grants.begin(), grants.end());  // a list of grants grows at its front
    step.commands.push_back(std::move(command));
    step.grants.push_back(std::move(grants));
  }

  GrowingJobs jobs_;
  NodeFailures failures_;
  Engine engine_;
  Time loading_;  // before a job works again that was preempted
  std::optional<AdoptedPolicy> policy_;
  const AdoptedPolicy* before_ = nullptr;                      // whom it inherits from
  bool adopts_ = false;                                        // at its first decision
  std::set<std::pair<std::uint32_t, std::uint32_t>> fitting_;  // shapes and queues
  std::vector<std::uint64_t> starts_;  // of each job, the number of its last start; 0 = does not run
  std::vector<Time> ends_;             // of each running job, the planned end
  std::vector<std::uint32_t> killed_;
  std::uint64_t start_count_ = 0;
};

}  // namespace detail
}  // namespace gpusched
