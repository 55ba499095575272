// SPDX-License-Identifier: Apache-2.0
/// BackfillQueue: the waiting jobs and believed ends of a run, for policies that look for the first waiting job that
/// should end soon enough.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "src/policies/orders/list_scheduler.hpp"
#include "src/policies/queues/estimated_ends.hpp"
#include "src/policies/queues/length_tree.hpp"

namespace gpusched {

class BackfillQueue {
 public:
  /// Which of the jobs that are short enough comes first.
  enum class First : std::uint8_t { by_priority, by_submission };

  BackfillQueue(PriorityOrder order, AnyDurationEstimator estimator, OverrunRule overrun, First first)
      : queue_(std::move(order)), ends_(std::move(estimator), overrun), first_(first) {}

  [[nodiscard]] bool clairvoyant() const { return ends_.clairvoyant() || queue_.order().estimator.clairvoyant(); }
  [[nodiscard]] WaitingJobs& waiting() { return queue_.waiting(); }
  [[nodiscard]] const EstimatedEnds& ends() const { return ends_; }

  /// Takes in the instant's events.
  void observe(const OracleView& view) {
    ends_.observe(view);
    queue_.learn(view);
    for (const Event& event : view.events()) {
      const auto then = view.at(event);
      if (event.kind == EventKind::withdraw || moves(view, event)) forget(then, event.job);
      queue_.note(then, event);
      if (enters_queue(event.kind) || moves(view, event)) keep(then, event.job);
    }
  }

  /// The decision just started this job.
  void start(const View& view, JobId job) {
    forget(view, job);
    ends_.start(view, job);
    queue_.waiting().erase(view, job);
  }

  /// The first waiting job of a shape among those believed to run no longer than `limit`, or no_job. O(log n).
  [[nodiscard]] JobId first_within(const View& view, std::uint32_t queue, std::uint32_t shape, Time limit) {
    return many(queue, shape) ? lengths_[queue][shape].first(limit, view.now()) : scan(view, queue, shape, limit);
  }

 private:
  // With at most this many waiting jobs a linear scan is faster than keeping a tree as well.
  static constexpr std::size_t few = 64;

  [[nodiscard]] ClaimOrder order() const { return {first_ == First::by_priority && queue_.order().ages()}; }

  // Equal weights leave the order to the places, which is that of submission.
  [[nodiscard]] LengthTree::Entry entry(Claim claim) const {
    if (first_ == First::by_submission) claim.weight = 0;
    return {claim, ends_.estimate(claim.job)};
  }

  // True when those that wait are kept in a tree.
  [[nodiscard]] bool many(std::uint32_t queue, std::uint32_t shape) {
    return queue_.waiting().jobs(queue, shape).slots().size() > few;
  }

  // A waiting job that has another place in the order.
  static bool moves(const View& view, const Event& event) {
    return event.kind == EventKind::reprioritize && view.phase(event.job) == JobPhase::pending;
  }

  // Takes a job that still waits out of the tree, if there is one.
  void forget(const View& view, JobId job) {
    const std::uint32_t queue = view.queue_of(job), shape = view.demand(job);
    if (!many(queue, shape)) return;
    // The job's estimate is another one already where it was given another size.
    LengthTree::Entry kept = entry(queue_.waiting().claim(view, job));
    kept.length = kept_as_[index(job)];
    lengths_[queue][shape].erase(kept, view.now());
  }

  // Precondition: the job has just joined those that wait.
  void keep(const View& view, JobId job) {
    const std::uint32_t queue = view.queue_of(job), shape = view.demand(job);
    if (!many(queue, shape)) return;
    if (lengths_.empty()) lengths_.resize(view.queue_count());
    kept_as_.resize(view.job_count());
    if (lengths_[queue].empty()) lengths_[queue].assign(view.demand_count(), LengthTree(order()));
    LengthTree& tree = lengths_[queue][shape];
    const KineticTournament& jobs = queue_.waiting().jobs(queue, shape);
    if (tree.size() == 0) {
      fill(tree, jobs, view.now());
    } else if (tree.size() < jobs.size()) {
      tree.push(kept_entry(queue_.waiting().claim(view, job)), view.now());
    }
  }

  LengthTree::Entry kept_entry(const Claim& claim) {
    const LengthTree::Entry kept = entry(claim);
    kept_as_[index(claim.job)] = kept.length;
    return kept;
  }

  void fill(LengthTree& tree, const KineticTournament& jobs, Time now) {
    std::vector<LengthTree::Entry> entries;
    for (const Claim& claim : jobs.slots()) {
      if (claim.job != no_job) entries.push_back(kept_entry(claim));
    }
    tree.fill(entries, now);
  }

  [[nodiscard]] JobId scan(const View& view, std::uint32_t queue, std::uint32_t shape, Time limit) {
    Claim best;
    for (const Claim& claim : queue_.waiting().jobs(queue, shape).slots()) {
      if (claim.job == no_job || ends_.estimate(claim.job) > limit) continue;
      const Claim other = entry(claim).claim;
      if (best.job == no_job || order().before(other, best, view.now())) best = other;
    }
    return best.job;
  }

  OrderedQueue queue_;
  EstimatedEnds ends_;
  First first_;
  std::vector<std::vector<LengthTree>> lengths_;  // [queue][shape], each empty or of all that wait
  std::vector<Time> kept_as_;                     // by job: its length in the tree
};

}  // namespace gpusched
