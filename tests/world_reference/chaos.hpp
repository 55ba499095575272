// SPDX-License-Identifier: Apache-2.0
/// Chaos: a policy that gives every command there is at random, and after a while only starts what fits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/engine/engine.hpp"

namespace gpusched::test {

struct Chaos {
  Rng rng;
  bool adjusts = false;  ///< it adds work to jobs, too
  std::uint32_t decisions = 0;

  [[nodiscard]] static std::string_view name() { return "chaos"; }

  void decide(const View& view, Decision& decision) {
    const bool is_calm = ++decisions > 50;
    const std::vector<JobId> running(view.running().begin(), view.running().end());
    std::vector<JobId> waiting;
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      waiting.insert(waiting.end(), view.queue(queue).begin(), view.queue(queue).end());
    }
    for (const JobId job : running) {
      if (is_calm) {
        decision.resume(job);
      } else {
        disturb(view, decision, job);
      }
    }
    for (const JobId job : waiting) {
      if (is_calm) {
        decision.start(job);
      } else {
        start(view, decision, job);
      }
    }
    if (!is_calm) decision.wake(view.now() + whole_seconds(1 + static_cast<std::int64_t>(rng.below(20))));
  }

  void disturb(const View& view, Decision& decision, JobId job) {
    switch (rng.below(20)) {
      case 0: decision.preempt(job); break;
      case 1:
        decision.preempt(job);
        decision.restore(job);
        break;
      case 2:
        decision.preempt(job);
        start(view, decision, job);
        break;
      case 3:
      case 4: move(view, decision, job); break;
      case 5: decision.hold(job); break;
      case 6:
      case 7: decision.resume(job); break;
      case 8:
        if (adjusts) decision.adjust_work(job, whole_seconds(static_cast<std::int64_t>(rng.below(5))));
        break;
      case 9:
      case 10:
        if (view.knows_power()) decision.limit_power(job, 80 + 10 * static_cast<double>(rng.below(15)));
        break;
      case 11:
        if (view.curve(job) == nullptr) break;
        decision.preempt(job);
        start_at_some_size(view, decision, job);
        break;
      case 12:
        if (rng.below(4) > 0) break;
        decision.preempt(job);
        decision.cancel(job);
        break;
      default: break;
    }
  }

  void start(const View& view, Decision& decision, JobId job) {
    switch (rng.below(8)) {
      case 0:
        if (rng.below(8) == 0) decision.cancel(job);
        break;
      case 1: decision.start(job, Placement::random); break;
      case 2: decision.start_on(job, choice(view, job)); break;
      case 3:
        decision.start(job);
        if (view.phase(job) == JobPhase::running) decision.preempt(job);
        break;
      case 4:
        if (view.curve(job) != nullptr) {
          start_at_some_size(view, decision, job);
          break;
        }
        [[fallthrough]];
      default: decision.start(job); break;
    }
  }

  void start_at_some_size(const View& view, Decision& decision, JobId job) {
    const ElasticCurve& curve = *view.curve(job);
    decision.start_with(job,
                        curve.min_tasks + static_cast<std::uint32_t>(rng.below(curve.max_tasks - curve.min_tasks + 1)));
  }

  void move(const View& view, Decision& decision, JobId job) {
    decision.vacate(job);
    if (decision.move_on(job, choice(view, job)) != Verdict::ok) decision.preempt(job);
  }

  // Each task on a node of its own choice; the same one twice, perhaps.
  std::vector<NodeTasks> choice(const View& view, JobId job) {
    std::vector<NodeTasks> nodes;
    const std::uint32_t tasks = view.phase(job) == JobPhase::running ? view.held_tasks(job) : view.shape(job).tasks;
    for (std::uint32_t task = 0; task < tasks; ++task) {
      const NodeId node{static_cast<std::uint32_t>(rng.below(view.cluster().node_count()))};
      nodes.push_back({.node = node, .tasks = 1});
      const std::uint32_t gpus = view.cluster().node_gpus(node);
      if (view.shape(job).is_share() && gpus > 0) nodes.back().device = static_cast<std::uint32_t>(rng.below(gpus));
    }
    return nodes;
  }
};

}  // namespace gpusched::test
