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
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Whose share is kept fair.
enum class FairParty : std::uint8_t { user, group, vc };

/// Progressive filling: again and again the party that holds the fewest GPUs and has a waiting job
/// that fits gets its earliest such job started; ties go to the party named first in the trace. O(log parties) a start
/// and O(waiting parties x shapes) an event.
///
/// With preemption, a job that does not fit may take GPUs from richer parties: their running jobs stop, of the richest
/// party and newest first, as long as each party keeps at least what the taker then has, if that makes room. Whoever is
/// poorer gains, nobody falls below the taker, so that it comes to an end. O(parties + running log running) for the
/// first job of a shape that does not fit.
class MaxMin {
 public:
  explicit MaxMin(FairParty party, bool preempts = false) : party_(party), preempts_(preempts) {}

  [[nodiscard]] std::string_view name() const { return "max-min"; }
  void decide(const View& view, Decision& decision);

 private:
  struct Party {
    MilliGpu held = 0;
    std::uint32_t waiting = 0;
    std::vector<std::deque<JobId>> by_shape;  // in order of submission; empty until it is first needed
  };

  [[nodiscard]] std::uint32_t party_of(const View& view, JobId job) const;
  void note_events(const View& view);
  JobId first_that_may_fit(const View& view, const Party& party) const;
  void wait(const View& view, JobId job);
  void started(const View& view, JobId job);
  bool start_by_force(const View& view, Decision& decision, JobId job);
  [[nodiscard]] std::vector<JobId> victims_for(const View& view, JobId job) const;

  FairParty party_;
  bool preempts_;
  std::vector<Party> parties_;
  std::set<std::pair<MilliGpu, std::uint32_t>> hungry_;  // (held, party) of those with waiting jobs
  std::vector<std::vector<std::uint8_t>> blocked_;       // [scheduling queue][shape], of this instant
};

PolicyInfo max_min_info();

}  // namespace gpusched
