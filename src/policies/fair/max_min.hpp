// SPDX-License-Identifier: Apache-2.0
/// Max-min fairness over GPUs: whoever holds the fewest GPUs goes next.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/owners.hpp"

namespace gpusched {

/// Progressive filling: again and again the earliest job that fits starts of the owner who holds the fewest GPUs and
/// has such a job; ties go to the owner named first in the trace. O(log owners) a start and O(waiting owners x shapes)
/// an event.
///
/// With preemption, a job that does not fit may take GPUs from owners who hold more: their running jobs stop, those of
/// the owner with the most GPUs first and of one owner the newest first, as long as each owner keeps at least what the
/// taker then has, and only if that makes room. Every preemption makes the holdings more equal, so the loop ends.
/// O(owners + running log running) for the first job of a shape that does not fit.
class MaxMin {
 public:
  explicit MaxMin(OwnerColumn column, bool preempts = false) : column_(column), preempts_(preempts) {}

  [[nodiscard]] std::string_view name() const { return "max-min"; }
  void decide(const View& view, Decision& decision);

 private:
  struct Owner {
    MilliGpu held = 0;
    std::uint32_t waiting = 0;
    std::vector<std::deque<JobId>> by_shape;  // in order of submission; empty until it is first needed
  };

  [[nodiscard]] std::uint32_t number_of(const View& view, JobId job) const { return owner_of(column_, view, job); }
  void note_events(const View& view);
  JobId first_that_may_fit(const View& view, const Owner& owner) const;
  void wait(const View& view, JobId job);
  void started(const View& view, JobId job);
  bool start_by_force(const View& view, Decision& decision, JobId job);
  [[nodiscard]] std::vector<JobId> victims_for(const View& view, JobId job) const;

  OwnerColumn column_;
  bool preempts_;
  std::vector<Owner> owners_;
  std::set<std::pair<MilliGpu, std::uint32_t>> hungry_;  // (held, owner) of those with waiting jobs
  std::vector<std::vector<std::uint8_t>> blocked_;       // [scheduling queue][shape], of this instant
};

}  // namespace gpusched
