// SPDX-License-Identifier: Apache-2.0
/// A host as simple as one can be: jobs run for their durations, suspended ones go on where they were.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpusched/online/online_scheduler.hpp"
#include "gpusched/policy/simulate.hpp"

namespace gpusched::test {

/// Something that happened in a run, with the nodes of what started or moved.
struct Happening {
  Time time;
  EventKind kind;
  std::uint32_t job;
  std::vector<OnlinePart> nodes = {};
  friend bool operator==(const Happening&, const Happening&) = default;
};

/// An Observer that writes down all but submissions and wakes.
struct HappeningLog {
  void observe(const View& view, std::span<const Event> events) {
    for (const Event& event : events) {
      if (event.kind == EventKind::submit || !concerns_job(event.kind)) continue;
      Happening happening{.time = view.now(), .kind = event.kind, .job = index(event.job)};
      if (event.kind == EventKind::start || event.kind == EventKind::move) {
        view.for_each_grant(event.job, [&](const Grant& grant) {
          happening.nodes.push_back({.node = grant.node, .tasks = grant.tasks, .devices = grant.devices});
        });
      }
      happenings.push_back(std::move(happening));
    }
  }
  std::vector<Happening> happenings;
};

/// What a host tells its scheduler in advance.
struct HostManner {
  bool announces = true;                 ///< all jobs before the first decision
  bool knows = true;                     ///< the durations of jobs
  bool nodes_may_fail = false;           ///< as OnlineScheduler takes it
  std::vector<NodeChange> changes = {};  ///< of its nodes, by time
  std::vector<NodeId> out = {};          ///< of its nodes, those that are out of service when the run begins
};

inline OnlineJob online_job(const JobTable& jobs, JobId job, bool with_duration = true) {
  return {.id = jobs.external_id(job),
          .duration = with_duration ? jobs.work(job) : Time::max(),
          .estimate = jobs.estimate(job),
          .shape = jobs.shape(job),
          .user = jobs.users()[jobs.user(job)],
          .group = jobs.groups()[jobs.group(job)],
          .vc = jobs.vcs()[jobs.vc(job)],
          .name = jobs.names()[jobs.name(job)],
          .family = jobs.families()[jobs.family(job)],
          .gpu_spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec],
          .priority = jobs.priority(job),
          .deadline = jobs.deadline(job)};
}

/// Runs the jobs of a table.
class ModelHost {
 public:
  ModelHost(const JobTable& jobs, OnlineScheduler& scheduler, HostManner manner, const PreemptionCost& cost = {})
      : jobs_(&jobs), scheduler_(&scheduler), manner_(manner), loading_(cost.checkpoint + cost.restart) {
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      runs_.push_back({.left = jobs.work(JobId{i})});
      numbers_.emplace(jobs.external_id(JobId{i}), i);
    }
  }

  /// Until nothing is left to happen. Error: the scheduler's.
  Result<void> run() {
    for (const NodeId node : manner_.out) {
      if (auto told = scheduler_->out_at_start(node); !told) return told;
    }
    if (manner_.announces) {
      for (std::uint32_t i = 0; i < jobs_->size(); ++i) {
        auto told = scheduler_->announce(online_job(*jobs_, JobId{i}, manner_.knows), jobs_->submit(JobId{i}));
        if (!told) return told;
      }
    }
    for (Time now = next(); now != Time::max(); now = next()) {
      if (auto stepped = step(now); !stepped) return stepped;
    }
    return {};
  }

  [[nodiscard]] const std::vector<Happening>& happenings() const { return happenings_; }
  [[nodiscard]] std::uint32_t finished() const { return finished_; }

 private:
  struct JobRun {
    Time left{};
    Time loads{};            // before its next run works
    Time loaded{};           // when its present run has
    Time end = Time::max();  // of a running job
    std::uint64_t start = 0;
    std::vector<OnlinePart> nodes = {};
  };

  [[nodiscard]] Time next() const {
    Time at = scheduler_->next_call();
    if (arrived_ < jobs_->size()) at = std::min(at, jobs_->submit(JobId{arrived_}));
    for (const JobRun& run : runs_) at = std::min(at, run.end);
    if (changed_ < manner_.changes.size()) at = std::min(at, manner_.changes[changed_].time);
    return at;
  }

  Result<void> step(Time now) {
    std::vector<std::uint32_t> ended;
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].end == now) ended.push_back(i);
    }
    // Told in an order that means nothing; noted in the order in which simulate() ends jobs.
    for (auto job = ended.rbegin(); job != ended.rend(); ++job) {
      if (auto told = scheduler_->finish(jobs_->external_id(JobId{*job})); !told) return told;
    }
    std::sort(ended.begin(), ended.end(), [&](auto a, auto b) { return runs_[a].start < runs_[b].start; });
    for (const std::uint32_t job : ended) {
      runs_[job].end = Time::max();
      happenings_.push_back({.time = now, .kind = EventKind::finish, .job = job});
      ++finished_;
    }
    for (; changed_ < manner_.changes.size() && manner_.changes[changed_].time == now; ++changed_) {
      if (auto told = change_node(manner_.changes[changed_]); !told) return told;
    }
    for (; arrived_ < jobs_->size() && jobs_->submit(JobId{arrived_}) == now; ++arrived_) {
      const OnlineJob job = online_job(*jobs_, JobId{arrived_}, manner_.knows);
      if (auto told = manner_.announces ? scheduler_->submit(job.id) : scheduler_->submit(job); !told) return told;
    }
    const auto commands = scheduler_->decide(now);
    if (!commands) return Unexpected{commands.error()};
    for (const OnlineCommand& command : *commands) carry_out(command, now);
    return {};
  }

  // Jobs that run on a node that goes out of service wait with what was left when they started last.
  Result<void> change_node(const NodeChange& change) {
    for (std::uint32_t i = 0; i < runs_.size() && !change.up; ++i) {
      JobRun& run = runs_[i];
      const bool there =
          run.end != Time::max() &&
          std::any_of(run.nodes.begin(), run.nodes.end(), [&](const auto& part) { return part.node == change.node; });
      if (!there) continue;
      run.end = Time::max();
      happenings_.push_back({.time = change.time, .kind = EventKind::kill, .job = i});
    }
    return change.up ? scheduler_->node_up(change.node) : scheduler_->node_down(change.node);
  }

  void carry_out(const OnlineCommand& command, Time now) {
    const std::uint32_t job = numbers_.at(scheduler_->id(command.job));  // a scheduler may number them anew
    JobRun& run = runs_[job];
    EventKind kind = EventKind::move;
    if (command.action == OnlineAction::cancel) {
      kind = EventKind::withdraw;
    } else if (command.action == OnlineAction::start) {
      kind = EventKind::start;
      run.loaded = now + run.loads;
      run.end = run.loaded + run.left;
      run.start = ++starts_;
    } else if (command.action == OnlineAction::preempt) {
      kind = EventKind::preempt;
      run.left = run.end - std::max(now, run.loaded);  // a load that is interrupted is begun anew
      run.loads = loading_;
      run.end = Time::max();
    }
    run.nodes = command.nodes;
    happenings_.push_back({.time = now, .kind = kind, .job = job, .nodes = command.nodes});
  }

  const JobTable* jobs_;
  OnlineScheduler* scheduler_;
  HostManner manner_;
  Time loading_;
  std::vector<JobRun> runs_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
  std::vector<Happening> happenings_;
  std::uint32_t arrived_ = 0, finished_ = 0, changed_ = 0;
  std::uint64_t starts_ = 0;
};

}  // namespace gpusched::test
