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
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/online/online_job.hpp"
#include "gpusched/online/online_run.hpp"

namespace gpusched {

/// How a scheduler may meet jobs that were not announced, which depends on its policy. Nobody checks that.
struct OnlineGrowth {
  /// The policy reads jobs when they are submitted, and prepares for none but by their owners, demands and columns.
  bool takes_new_jobs = false;
  /// So many jobs that are over are kept for what it decides; then it takes over anew, and they are forgotten.
  std::uint32_t remembers = no_index;
  /// Where its first jobs bring no estimate, it learns from those that are over, and keeps all.
  bool learns_without_estimates = false;
};

/// One host's scheduler. Errors leave it unusable: a host whose picture of the jobs differs cannot be served on.
///
/// Jobs announced before the first decision, with their submission, cost what they cost in simulate(). So do others if
/// OnlineGrowth allows it, but for the first job of an owner or demand: that costs a repetition of the history, as
/// every such job does where policies prepare themselves for the jobs of a table: n of them cost O(n^2) decisions.
/// A scheduler that forgets keeps no jobs that are over: instead of a repetition, its policy takes over anew
/// (AdoptedPolicy), and memory is that of the jobs that wait and run. So it does from the first time on that repeated
/// decisions are not the same again, since the policy prepares itself for a job that only came now.
///
/// Limits. Jobs run at the reference rate and have one attempt; a policy that changes how long a running job takes
/// (hold, adjust_work) is refused when it does.
class OnlineScheduler {
 public:
  /// A scheduler for that cluster. Only with `nodes_may_fail` may its nodes go out of service.
  OnlineScheduler(Cluster cluster, OnlinePolicyMaker make, const EngineOptions& options = {},
                  bool nodes_may_fail = false, OnlineGrowth growth = {})
      : cluster_(std::move(cluster)),
        make_(std::move(make)),
        options_(options),
        growth_(growth),
        nodes_may_fail_(nodes_may_fail) {
    is_down_.resize(cluster_.nodes.size());
  }

  /// Tells of a job that will be submitted at `submit` by submit(id). Only before the first decision. Errors: as
  /// submit().
  Result<void> announce(OnlineJob job, Time submit) {
    if (last_) return unexpected("job '" + job.id + "' is announced after the first decision");
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
    if (last_) return unexpected(name + " is out from the start, told after the first decision");
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
    last_ = next_.now = now;
    for (NodeChange& change : changes_now_) change.time = now;
    const bool nodes_change = !changes_now_.empty();
    changes_.insert(changes_.end(), changes_now_.begin(), changes_now_.end());
    changes_now_.clear();
    auto expected = take_pending(now);
    if (!expected) return Unexpected{expected.error()};
    if (!*expected || nodes_change) {
      if (auto taken = take_anew(now); !taken) return Unexpected{taken.error()};
    } else if (run_ != nullptr) {
      if (auto taken = run_->take(next_, false); !taken) return Unexpected{taken.error()};
    }
    if (run_ != nullptr) {
      for (const std::uint32_t job : run_->killed()) states_[job] = State::waiting;
    }
    for (const OnlineCommand& command : next_.commands) {
      states_[index(command.job)] = state_after(command.action);
    }
    std::vector<OnlineCommand> commands = next_.commands;
    // What is never repeated is followed for the jobs' sake alone.
    const bool is_history =
        growth_.remembers > 0 || growth_.learns_without_estimates || !next_.commands.empty() || !next_.plans.empty();
    if (is_history) steps_.push_back(std::move(next_));
    next_ = {};
    failed_ = false;
    return commands;
  }

  /// The latest instant at which the host must call decide() again, with or without events: the policy may have asked
  /// to be. It may be earlier than needed. Time::max(): no need.
  [[nodiscard]] Time next_call() const {
    const Time next = run_ == nullptr ? Time::max() : run_->engine().next_event_time();
    return next.us < end_of_time.us / 2 ? next : Time::max();  // a job without a duration has its planned end beyond
  }

  /// The id of a submitted job, which has this number until the next decision. Precondition: job < submitted().
  [[nodiscard]] const std::string& id(JobId job) const { return submitted_[index(job)].job.id; }
  /// Jobs submitted before the last decision, without those that were forgotten; their JobId is their order: by
  /// submission, and in one instant by id as in a JobTable.
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
  [[nodiscard]] const Engine* engine() const { return run_ == nullptr ? nullptr : &run_->engine(); }

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

  static State state_after(OnlineAction action) {
    if (action == OnlineAction::cancel) return State::cancelled;
    return action == OnlineAction::preempt ? State::waiting : State::running;
  }
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
    if (!last_) return {};
    if (now < *last_) return unexpected("time goes back from " + instant(*last_) + " to " + instant(now));
    if (now == *last_ && growth_.remembers < no_index && !changes_now_.empty()) {
      return unexpected("a node changes at " + instant(now) + " after that instant was decided");
    }
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

  // The order of a JobTable, in which the host's own order of an instant counts for nothing.
  static bool comes_before(const OnlineJob& a, const OnlineJob& b) {
    const auto number = [](const std::string& id) {
      std::int64_t value = 0;
      const auto [end, status] = std::from_chars(id.data(), id.data() + id.size(), value);
      return status == std::errc{} && end == id.data() + id.size() ? std::optional(value) : std::nullopt;
    };
    const auto x = number(a.id), y = number(b.id);
    return x && y && *x != *y ? *x < *y : natural_less(a.id, b.id);
  }

  // The jobs that come now are submitted. True when the run knows them: they are what its table expects at this
  // instant, and no other is, or it can take them.
  Result<bool> take_pending(Time now) {
    std::sort(pending_.begin(), pending_.end(),
              [](const Submission& a, const Submission& b) { return comes_before(a.job, b.job); });
    Result<bool> known = are_expected(now);
    if (!*known && are_new()) known = add_pending(now);
    for (Submission& job : pending_) {
      job.submit = now;
      numbers_[job.job.id] = static_cast<std::uint32_t>(submitted_.size());
      submitted_.push_back(std::move(job));
    }
    pending_.clear();
    return known;
  }

  [[nodiscard]] bool are_expected(Time now) const {
    if (run_ == nullptr) return false;
    const auto submits = run_->jobs().submits();
    std::size_t at = submitted_.size();
    for (const Submission& job : pending_) {
      if (at >= submits.size() || submits[at] != now || job.announced == no_index) return false;
      if (expected_[at++] != job.announced) return false;
    }
    return at == submits.size() || submits[at] > now;
  }

  // Nobody else is expected in their place, and the policy takes them as they come.
  [[nodiscard]] bool are_new() const {
    return growth_.takes_new_jobs && run_ != nullptr && run_->count() == submitted_.size();
  }

  Result<bool> add_pending(Time now) {
    for (const Submission& job : pending_) {
      const auto added = run_->add(record(job.job, now));
      if (!added || !*added) return added;
    }
    return true;
  }

  // Takes the step over a table that has the jobs which come now.
  Result<void> take_anew(Time now) {
    std::unique_ptr<detail::OnlineRun> before = std::move(run_);
    const detail::OnlineStep told = next_;
    if (before == nullptr || !is_time_to_forget(before->jobs())) {
      auto taken = repeat_all(before.get(), now);
      if (taken && *taken && run_ != nullptr) taken = run_->take(next_, true);
      if (!taken) return Unexpected{taken.error()};
      if (*taken) return before == nullptr ? Result<void>() : before->check_wakes(told);
      if (before == nullptr) return decides_before(now);
      growth_.remembers = 0;  // what this policy prepares from later jobs makes it decide otherwise before they came
    }
    return take_over(std::move(before), told, now);
  }

  // The same without a history: a new policy takes over from the one of `before`.
  Result<void> take_over(std::unique_ptr<detail::OnlineRun> before, const detail::OnlineStep& told, Time now) {
    const std::vector<std::uint32_t> kept = forget();
    takeover_ = before->takeover(kept);
    followed_ = steps_.size();
    if (const auto followed = repeat_all(before.get(), now); !followed) return Unexpected{followed.error()};
    if (run_ == nullptr) {  // nobody is left
      auto called = before->check_wakes(told);
      names_ = std::move(before);
      return called;
    }
    if (auto same = run_->check_same(*before, kept); !same) return same;
    if (auto called = before->check_wakes(told); !called) return called;
    const auto taken = run_->take(next_, true);
    if (!taken) return Unexpected{taken.error()};
    return *taken ? Result<void>() : decides_before(now);
  }
  static Unexpected decides_before(Time now) {
    return unexpected("the policy decides before " + instant(now) + " when it knows of jobs that come then");
  }

  // A table of all jobs that came and are not forgotten, and of those that are still announced for later, and the
  // history over it. False: its policy would have decided otherwise. `before`: the run until now, if any.
  Result<bool> repeat_all(const detail::OnlineRun* before, Time now) {
    if (before != nullptr) names_ = nullptr;
    const detail::OnlineRun* const names = before != nullptr ? before : names_.get();
    const JobTable* const like = takeover_ && names != nullptr ? &names->jobs() : nullptr;
    auto table = table_of(like, now);
    if (!table) return Unexpected{table.error()};
    if (table->size() == 0) return true;
    const bool is_open = growth_.takes_new_jobs && table->size() == submitted_.size();
    const std::uint32_t spare = is_open ? std::max(table->size(), least_spare) : 0;
    run_ = std::make_unique<detail::OnlineRun>(*std::move(table), spare, like, cluster_, options_, failures());
    if (auto opened = run_->open(make_, cluster_, takeover_.has_value()); !opened) return Unexpected{opened.error()};
    return repeat_steps();
  }

  bool is_time_to_forget(const JobTable& jobs) {
    if (std::exchange(growth_.learns_without_estimates, false) && !jobs.has_estimates()) growth_.remembers = no_index;
    return growth_.remembers < no_index && submitted_.size() - unfinished() >= growth_.remembers;
  }

  // Those up to the last takeover are followed, since what decided them was forgotten.
  Result<bool> repeat_steps() {
    for (std::size_t i = 0; i < followed_; ++i) run_->follow(steps_[i]);
    if (takeover_) run_->continue_from(*takeover_);
    for (std::size_t i = followed_; i < steps_.size(); ++i) {
      const auto repeated = run_->repeat(steps_[i]);
      if (!repeated || !*repeated) return repeated;
    }
    return true;
  }

  [[nodiscard]] Result<JobTable> table_of(const JobTable* like, Time now) {
    JobTableBuilder builder = like == nullptr ? JobTableBuilder() : GrowingJobs::builder_like(*like);
    std::vector<std::uint32_t> later;
    expected_.clear();
    for (const Submission& job : submitted_) {
      builder.add(record(job.job, job.submit));
      expected_.push_back(job.announced);
    }
    for (std::uint32_t i = 0; i < announced_.size(); ++i) {
      if (!announced_[i].gone && announced_[i].submit > now) later.push_back(i);
    }
    std::sort(later.begin(), later.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Announced &x = announced_[a], &y = announced_[b];
      return x.submit != y.submit ? x.submit < y.submit : comes_before(x.job, y.job);
    });
    for (const std::uint32_t i : later) builder.add(record(announced_[i].job, announced_[i].submit));
    expected_.insert(expected_.end(), later.begin(), later.end());
    return std::move(builder).build();
  }

  // Jobs that are over go, with all that was said of them, and the others get new numbers. The old numbers of those.
  std::vector<std::uint32_t> forget() {
    std::vector<std::uint32_t> kept, numbers(submitted_.size(), no_index);
    std::vector<bool> is_last(submitted_.size());  // it is over with the coming decision
    for (const auto* jobs : {&next_.ended, &next_.cancelled}) {
      for (const std::uint32_t job : *jobs) is_last[job] = true;
    }
    for (std::uint32_t job = 0; job < submitted_.size(); ++job) {
      if (is_last[job] || states_[job] == State::waiting || states_[job] == State::running) {
        numbers[job] = static_cast<std::uint32_t>(kept.size());
        numbers_[submitted_[job].job.id] = numbers[job];
        if (kept.size() < job) submitted_[kept.size()] = std::move(submitted_[job]);
        states_[kept.size()] = states_[job];
        kept.push_back(job);
      } else {
        numbers_.erase(submitted_[job].job.id);
      }
    }
    submitted_.resize(kept.size());
    states_.resize(kept.size());
    for (auto* jobs : {&next_.ended, &next_.cancelled}) {
      for (std::uint32_t& job : *jobs) job = numbers[job];
    }
    for (detail::OnlineStep& step : steps_) forget_in(step, numbers);
    std::erase_if(steps_, [](const auto& step) { return step.commands.empty() && step.plans.empty(); });
    forget_changes();
    return kept;
  }

  static void forget_in(detail::OnlineStep& step, const std::vector<std::uint32_t>& numbers) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < step.commands.size(); ++i) {
      const std::uint32_t number = numbers[index(step.commands[i].job)];
      if (number == no_index) continue;
      step.commands[i].job = JobId{number};
      if (left < i) {
        step.commands[left] = std::move(step.commands[i]);
        step.grants[left] = std::move(step.grants[i]);
      }
      ++left;
    }
    step.commands.resize(left);
    step.grants.resize(left);
    step.ended.clear();
    step.cancelled.clear();
    std::erase_if(step.plans, [&numbers](const auto& plan) { return numbers[plan.job] == no_index; });
    for (auto& plan : step.plans) plan.job = numbers[plan.job];
  }

  // What nodes did before the first job that is left was submitted: they are out of service then, or not.
  void forget_changes() {
    const Time begin = submitted_.empty() ? *last_ : submitted_.front().submit;
    std::vector<bool> is_down(is_down_.size());
    std::vector<NodeChange> later;
    for (const NodeChange& change : changes_) {
      if (change.time < begin) is_down[index(change.node)] = !change.up;
      if (change.time >= begin) later.push_back(change);
    }
    changes_.clear();
    for (std::uint32_t node = 0; node < is_down.size(); ++node) {
      if (is_down[node]) changes_.push_back({.time = Time{} - end_of_time, .node = NodeId{node}, .up = false});
    }
    changes_.insert(changes_.end(), later.begin(), later.end());
  }

  static JobRecord record(const OnlineJob& job, Time submit) {
    return {.id = job.id,
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
            .deadline = job.deadline};
  }

  // New jobs that the next table may take.
  static constexpr std::uint32_t least_spare = 256;

  Cluster cluster_;
  OnlinePolicyMaker make_;
  EngineOptions options_;
  OnlineGrowth growth_;
  std::unordered_map<std::string, std::uint32_t> numbers_;            // of submitted jobs; no_index: announced
  std::unordered_map<std::string, std::uint32_t> announced_numbers_;  // both looked up, never iterated
  std::vector<Announced> announced_;
  std::vector<Submission> submitted_;  // by JobId
  std::vector<Submission> pending_;    // since the last decision
  std::vector<State> states_;          // of submitted_, then pending_
  std::unique_ptr<detail::OnlineRun> run_;
  std::vector<std::uint32_t> expected_;  // of each job of its table, its number among the announced
  detail::OnlineStep next_;
  std::vector<detail::OnlineStep> steps_;
  std::optional<detail::OnlineRun::Takeover> takeover_;  // the last
  std::unique_ptr<detail::OnlineRun> names_;             // the last run, while there is no job: it numbers owners
  std::size_t followed_ = 0;                             // steps before it
  std::optional<Time> last_;                             // decision
  bool failed_ = false;
  bool nodes_may_fail_ = false;
  std::vector<bool> is_down_;                      // by node, as the host said last
  std::vector<NodeChange> changes_, changes_now_;  // up to the last decision; since
};

}  // namespace gpusched
