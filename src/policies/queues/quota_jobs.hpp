// SPDX-License-Identifier: Apache-2.0
/// QuotaJobs: the jobs of queues that have quotas of GPUs, as schedulers of Kubernetes see them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/owners.hpp"

namespace gpusched {

/// The jobs that wait in each queue, higher priorities first and of equal ones by their places, those that run, and
/// what a queue holds and asks for. Jobs of a queue that are alike in priority, scheduling queue and demand are a kind:
/// when one of them cannot start, none of the later ones can at that instant.
class QuotaJobs {
 public:
  /// The next job of a queue.
  struct Head {
    std::uint32_t queue = 0;  ///< whose
    std::int32_t priority = 0;
    QueuePlace place = {};

    [[nodiscard]] JobId job() const { return place.job; }
    /// The least comes first.
    [[nodiscard]] std::pair<std::int64_t, QueuePlace> rank() const { return {-std::int64_t{priority}, place}; }
  };

  /// A running job. The least priority comes first, of equal ones the job of the latest place.
  struct Running {
    std::int32_t priority = 0;
    std::uint32_t lateness = 0;  ///< falls with the number of the place
    JobId job = no_job;
    Time began{};  ///< its present run
    // NOLINTNEXTLINE(modernize-use-nullptr): as Shape's
    friend auto operator<=>(const Running&, const Running&) = default;
  };

  /// `queues`: as many as owners have numbers.
  QuotaJobs(OwnerColumn column, std::uint32_t queues) : column_(column), queues_(queues) {}

  /// Takes in what happened. Where jobs were submitted and nothing else happened, only their queues have changed, until
  /// a job is stopped; else all may have.
  void note(const View& view) {
    try_again();
    all_changed_ = view.events().empty();
    changed_.clear();
    fresh_.clear();
    stopped_.clear();
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::submit) {
        changed_.insert(queue_of(view, event.job));
      } else {
        all_changed_ = true;
      }
      if (event.job != no_job) note(view, view.at(event), event);
    }
  }

  /// Calls visit(queue) for the queues that have changed and have waiting jobs.
  template <class Visit>
  void for_each_changed(Visit visit) const {
    if (all_changed_) return for_each_waiting(visit);
    for (const std::uint32_t queue : changed_) {
      if (waiting_.contains(queue)) visit(queue);
    }
  }
  /// Calls visit(queue) for all that have waiting jobs, by number.
  template <class Visit>
  void for_each_waiting(Visit visit) const {
    for (const std::uint32_t queue : waiting_) visit(queue);
  }

  /// The first job of the queue that was not given up at this instant.
  [[nodiscard]] std::optional<Head> head(std::uint32_t queue) const {
    std::optional<Head> best;
    if (queues_[queue].given_up == pass_) return best;
    for (const auto& [key, kind] : queues_[queue].kinds) {
      if (kind.given_up == pass_) continue;
      const Head first{
          .queue = queue, .priority = static_cast<std::int32_t>(-std::get<0>(key)), .place = *kind.jobs.begin()};
      const bool is_better = !best || first.rank() < best->rank();
      if (is_better) best = first;
    }
    return best;
  }
  /// The job cannot start at this instant, nor can any of its kind.
  void give_up(const Head& head) { queues_[head.queue].kinds.at(keys_[index(head.job())]).given_up = pass_; }
  /// The cluster had no room for a job like this at this instant, whosever it was, and no job was stopped since. \{
  void note_lack_of_room(const View& view, JobId job) { without_room_.insert({view.queue_of(job), view.demand(job)}); }
  [[nodiscard]] bool lacks_room(const View& view, JobId job) const {
    return without_room_.contains({view.queue_of(job), view.demand(job)});
  }
  /// \}
  /// No job of the queue can start at this instant.
  void give_up_queue(std::uint32_t queue) { queues_[queue].given_up = pass_; }
  /// All that was given up at this instant may be tried again.
  void try_again() {
    ++pass_;
    without_room_.clear();
  }

  /// A decision started the job, or stopped it: then all may have changed, and what was given up may be tried again. \{
  void started(const View& view, JobId job) {
    const std::uint32_t queue = queue_of(view, job);
    drop(view, job);
    hold(view, job, queue, +1);
    if (!stopped_.contains(job)) fresh_.insert(job);
  }
  void stopped(const View& view, JobId job) {
    hold(view, job, queue_of(view, job), -1);
    push(view, job);
    fresh_.erase(job);
    stopped_.insert(job);
    all_changed_ = true;
    try_again();
  }
  /// \}
  /// A run that began at this instant may be stopped only if this decision began it, which costs nothing, and has not
  /// stopped its job before: so the instant ends.
  [[nodiscard]] bool may_stop(const View& view, const Running& run) const {
    return run.began != view.now() || fresh_.contains(run.job);
  }

  /// GPU thousandths that the queue's running jobs hold, and that all of its jobs ask for. \{
  [[nodiscard]] MilliGpu held(std::uint32_t queue) const { return queues_[queue].held; }
  [[nodiscard]] MilliGpu asked(std::uint32_t queue) const { return queues_[queue].asked; }
  /// \}
  /// Its running jobs.
  [[nodiscard]] const std::set<Running>& running(std::uint32_t queue) const { return queues_[queue].running; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(queues_.size()); }
  [[nodiscard]] std::uint32_t queue_of(const View& view, JobId job) const { return owner_of(column_, view, job); }

 private:
  using Key = std::tuple<std::int64_t, std::uint32_t, std::uint32_t>;  // negative priority, scheduling queue, demand
  struct Kind {
    std::set<QueuePlace> jobs = {};
    std::uint64_t given_up = 0;  // the last pass in which it was
  };
  struct Queue {
    std::map<Key, Kind> kinds = {};  // with waiting jobs
    std::set<Running> running = {};
    MilliGpu held = 0, asked = 0;
    std::uint64_t given_up = 0;  // likewise
  };

  [[nodiscard]] static Key key_of(const View& view, JobId job) {
    return {-std::int64_t{view.priority(job)}, view.queue_of(job), view.demand(job)};
  }

  void note(const View& view, const View& then, const Event& event) {
    const std::uint32_t queue = queue_of(view, event.job);
    const MilliGpu wanted = then.shape(event.job).gpu_milli();
    if (event.kind == EventKind::finish || event.kind == EventKind::withdraw) queues_[queue].asked -= wanted;
    if (event.kind == EventKind::submit) queues_[queue].asked += wanted;
    if (leaves_cluster(event.kind)) hold(then, event.job, queue, -1);
    if (enters_queue(event.kind)) push(then, event.job);
    if (event.kind == EventKind::withdraw) drop(then, event.job);
    if (event.kind != EventKind::reprioritize) return;
    if (view.phase(event.job) == JobPhase::pending) {
      drop(then, event.job);
      push(then, event.job);
    } else if (view.phase(event.job) == JobPhase::running) {
      Running& run = runs_[index(event.job)];
      queues_[queue].running.erase(run);
      run.priority = view.priority(event.job);
      queues_[queue].running.insert(run);
    }
  }

  void push(const View& view, JobId job) {
    if (keys_.empty()) keys_.resize(view.job_count());
    const std::uint32_t queue = queue_of(view, job);
    keys_[index(job)] = key_of(view, job);
    queues_[queue].kinds[keys_[index(job)]].jobs.insert(view.queue_place(job));
    waiting_.insert(queue);
  }
  void drop(const View& view, JobId job) {
    const std::uint32_t number = queue_of(view, job);
    Queue& queue = queues_[number];
    const auto kind = queue.kinds.find(keys_[index(job)]);
    kind->second.jobs.erase(view.queue_place(job));
    if (kind->second.jobs.empty()) queue.kinds.erase(kind);
    if (queue.kinds.empty()) waiting_.erase(number);
  }
  void hold(const View& view, JobId job, std::uint32_t number, std::int64_t sign) {
    Queue& queue = queues_[number];
    queue.held += sign * view.shape(job).gpu_milli();
    if (runs_.empty()) runs_.resize(view.job_count());
    Running& run = runs_[index(job)];
    if (sign < 0) {
      queue.running.erase(run);
      return;
    }
    run = {.priority = view.priority(job), .lateness = ~view.queue_place(job).number, .job = job, .began = view.now()};
    queue.running.insert(run);
  }

  OwnerColumn column_;
  std::vector<Queue> queues_;
  std::set<std::uint32_t> waiting_;  // queues with waiting jobs
  std::set<std::uint32_t> changed_;  // queues with jobs that were submitted at this instant
  bool all_changed_ = true;
  std::set<std::pair<std::uint32_t, std::uint32_t>> without_room_;  // scheduling queue, demand
  std::vector<Key> keys_;                                           // by job: of its kind as it waits
  std::vector<Running> runs_;                                       // by job: as it runs, or ran last
  std::set<JobId> fresh_, stopped_;  // that this decision started and never stopped, and that it stopped
  std::uint64_t pass_ = 0;
};

}  // namespace gpusched
