// SPDX-License-Identifier: Apache-2.0
/// Max-min fairness over GPUs: whoever holds the fewest GPUs goes next.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/queues/ranked_classes.hpp"

namespace gpusched {

/// Progressive filling: again and again the earliest job that fits starts of the owner who holds the fewest GPUs and
/// has such a job; ties go to the owner whose first job came first. O(shapes + log n) an
/// event, O(shapes x log n) a start.
///
/// With preemption, a job that does not fit may take GPUs from owners who hold more: their running jobs stop, those of
/// the owner with the most GPUs first and of one owner the newest first, as long as each owner keeps at least what the
/// taker then has, and only if that makes room. Every preemption makes the holdings more equal, so the loop ends.
/// O(running log running) for the first job of a shape that does not fit.
class MaxMin {
 public:
  explicit MaxMin(OwnerColumn column, bool preempts = false) : column_(column), preempts_(preempts) {}

  [[nodiscard]] std::string_view name() const { return "max-min"; }
  void decide(const View& view, Decision& decision);

 private:
  struct ByHeld;  // the order of waiting_

  [[nodiscard]] std::uint32_t number_of(const View& view, JobId job) const { return owner_of(column_, view, job); }
  void note_events(const View& view);
  void wait(const View& view, JobId job);
  bool start_first(const View& view, Decision& decision);
  void hold(const View& view, JobId job, std::int64_t sign);
  [[nodiscard]] std::vector<JobId> victims_for(const View& view, JobId job) const;

  OwnerColumn column_;
  bool preempts_;
  PerOwner<MilliGpu> held_;  // GPU thousandths
  RankedClasses waiting_;
};

}  // namespace gpusched
