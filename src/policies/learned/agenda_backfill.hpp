// SPDX-License-Identifier: Apache-2.0
/// AgendaBackfill: an Agenda's modes with backfilling under a fixed order, without the list of all waiting jobs that an
/// agent needs.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/detail/known_ends.hpp"
#include "src/policies/queues/length_tree.hpp"

namespace gpusched {

/// Makes the choices that the order prefers, in modes backfill and reserve or, with `blocks`, in mode select_blocking
/// with sc20_backfill. A choice costs O(shapes x log n), and O(running jobs) more when it starts a job.
class AgendaBackfill {
 public:
  explicit AgendaBackfill(bool blocks) : blocks_(blocks) {}

  /// A job began to wait. `key`: its place in the order, smallest first; ties go to the job that began to wait first.
  void wait(const View& view, JobId job, double key, Time known);
  /// A waiting job left its queue. O(jobs that ever waited).
  void withdraw(const View& view, JobId job);
  /// The run of a job ended.
  void end(JobId job) { ends_.end(job); }

  /// Starts what is to start. Call once an instant, after the calls for its events.
  void decide(const View& view, Decision& decision);

 private:
  // A job's turn: from when it begins to wait until it starts. Turns are numbered as they begin. A LengthTree gets the
  // number as its job id, so that ties go to the earlier turn.
  struct Turn {
    JobId job;
    std::uint32_t lane;
    Time known;
    double key;
  };
  // The turns of one shape in one scheduling queue.
  struct Lane {
    MilliGpu milli = 0;
    bool full = false;  // a job of it did not fit at this instant; starts only leave less room
    LengthTree by_key{ClaimOrder{}};
    LengthTree by_turn{ClaimOrder{}};  // blocks_ alone
  };
  using Order = LengthTree Lane::*;

  [[nodiscard]] LengthTree::Entry entry(std::uint32_t turn, Order order) const;
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b, Order order) const;
  template <class Limit>
  [[nodiscard]] std::uint32_t first(Order order, Time now, Limit limit);
  template <class Limit>
  bool start_first(Order order, const View& view, Decision& decision, Limit limit);
  bool start(std::uint32_t turn, const View& view, Decision& decision);
  void leave(std::uint32_t turn, Time now);
  [[nodiscard]] Time reservation(std::uint32_t turn, const View& view);

  bool start_one(const View& view, Decision& decision);
  void serve_chosen(const View& view, Decision& decision);

  bool blocks_;
  KnownEnds ends_;
  std::vector<Turn> turns_;
  std::vector<Lane> lanes_;            // [scheduling queue x shapes + shape]
  std::vector<std::uint32_t> active_;  // lanes with waiting jobs, unordered
  std::uint32_t chosen_ = no_index;    // the turn that blocks the others (blocks_)
  Time reserved_{};                    // for it, as of the choice
};

}  // namespace gpusched
