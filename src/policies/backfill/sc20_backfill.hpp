// SPDX-License-Identifier: Apache-2.0
/// RLScheduler's variant of EASY backfilling, around any PriorityOrder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "src/policies/backfill/backfill_queue.hpp"
#include "src/policies/backfill/easy_backfill.hpp"

namespace gpusched {

/// RLScheduler's variant (SC'20): the chosen job stays chosen until it fits, whatever arrives; its reservation is made
/// once; meanwhile jobs start in order of submission if they fit and should end strictly before it. By
/// default estimates are not corrected (OverrunRule::kill). An event costs as much as with EASY, but the cluster is
/// copied once a chosen job. The engine applies all events of an instant before a decision, which the protocol of the
/// paper does not: for its figures see sc20_protocol.hpp.
class Sc20Backfill {
 public:
  Sc20Backfill(PriorityOrder order, AnyDurationEstimator estimator, OverrunRule overrun)
      : name_(order.name + "+sc20"),
        queue_(std::move(order), std::move(estimator), overrun, BackfillQueue::First::by_submission) {}

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool clairvoyant() const { return queue_.clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);

 private:
  struct Chosen {
    JobId job = no_job;
    Time reserved{};
  };
  // Waiting jobs of one shape that may start before the chosen one.
  struct Lane {
    std::uint32_t shape = 0;
    JobId first = no_job;  // by submission
  };

  bool start(JobId job, const View& view, Decision& decision);
  void start_before(const Chosen& chosen, std::uint32_t queue, const View& view, Decision& decision);

  std::string name_;
  BackfillQueue queue_;
  Reservation reservation_;
  std::vector<Chosen> chosen_;  // of each scheduling queue
  std::vector<Lane> lanes_;
};

}  // namespace gpusched
