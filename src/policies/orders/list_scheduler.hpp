// SPDX-License-Identifier: Apache-2.0
/// ListScheduler: starts waiting jobs in a PriorityOrder, without preemption. Most published orders are this policy
/// with a score of their own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "gpusched/engine/decision.hpp"
#include "src/policies/queues/ordered_queue.hpp"
#include "src/policies/seam/priority_order.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The first job that does not fit blocks its scheduling queue, or is passed over with `skip`.
/// O(demands x log n) an event at most, O(demands + log^2 n) amortised in an order that ages.
class ListScheduler {
 public:
  ListScheduler(PriorityOrder order, bool skip) : queue_(std::move(order)), skip_(skip) {}

  [[nodiscard]] std::string_view name() const { return queue_.order().name; }
  [[nodiscard]] bool clairvoyant() const { return queue_.order().estimator.clairvoyant(); }

  void decide(const OracleView& view, Decision& decision) {
    decision.keep_order();
    queue_.observe(view);
    WaitingJobs& waiting = queue_.waiting();
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      waiting.begin_pass(view, queue);
      for (JobId job = waiting.first(queue, view.now()); job != no_job; job = waiting.first(queue, view.now())) {
        if (decision.start(job) == Verdict::ok) {
          waiting.erase(view, job);
        } else if (skip_) {
          waiting.pass_over(view, job);
        } else {
          break;
        }
      }
    }
  }

 private:
  OrderedQueue queue_;
  bool skip_;
};

/// Completes the registry row of a policy that is nothing but a score: parameters skip, best_speed, estimate and
/// noise_sigma, the order for backfilling, and the maker. `score` and `growth` are as in PriorityOrder; they get the
/// row's parameters.
struct ListPolicy {
  using Formula = std::function<double(const JobFacts&)>;
  std::function<Formula(const PolicyParameters&)> score;
  std::function<Formula(const PolicyParameters&)> growth = {};
  std::string estimate = "requested";  ///< default estimator
  /// What the jobs must have, if anything: an error when they lack it.
  std::function<Result<void>(const JobTable&)> needs = {};
};
PolicyInfo list_policy_info(PolicyInfo row, const ListPolicy& policy);

}  // namespace gpusched
