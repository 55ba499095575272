// SPDX-License-Identifier: Apache-2.0
/// The baselines as the Muri artifact (Zhao et al., SIGCOMM'22; github.com/Rivendile/Muri) runs them: `srtf@muri`,
/// `srsf@muri` and `tiresias@muri`. They reproduce the artifact, not the papers. Quirks that all three share:
///  - a running job loses a start-up overhead at every event, not only when it starts (muri_overhead), but its
///    predicted end does not include it;
///  - at every event the cluster is emptied and all runnable jobs are placed afresh, so that running jobs move to other
///    nodes at no cost; a preempted job loses no work;
///  - jobs stand in one list, which every event sorts stably; a new job is appended to it.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/published/event_overhead.hpp"
#include "src/policies/queues/gang_nodes.hpp"
#include "src/policies/queues/waiting_by_size.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// `srtf@muri` (key: remaining time) and `srsf@muri` (remaining time x GPUs). Every runnable job is tried in
/// order of the key, passing over those that do not fit, on the nodes that YarnPlacement gives. Further quirk:
/// predicted ends are collected in policy order, and one within a relative 1e-9 of an end already collected is moved to
/// it; that job then ends there, whether or not work is left. The list is kept in two parts, because running jobs
/// change places in it and waiting jobs do not: O(running jobs + log waiting) an event, since every running job may
/// move.
class MuriShortest {
 public:
  explicit MuriShortest(bool by_service) : by_service_(by_service) {}

  [[nodiscard]] std::string_view name() const { return by_service_ ? "srsf@muri" : "srtf@muri"; }

  void decide(const OracleView& view, Decision& decision);
  static constexpr bool places_afresh = true;
  /// It took over: the jobs that run move from where they truly are.
  void adopt(const View& view);

 private:
  // Where a job stands in the list: a stable sort leaves it behind those that had the same key before it.
  struct Place {
    std::int64_t key = 0;   // microseconds, times GPUs under SRSF
    std::uint64_t tie = 0;  // number of the instant at which it got the key, then its number within that instant
    // NOLINTNEXTLINE(modernize-use-nullptr): as Shape's
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Run {
    OverheadAccount account = {};
    std::uint64_t tie = 0;
    JobId job = no_job;
    std::uint32_t gpus = 0;
    std::uint32_t node = no_index;  // of a job on one node; on several: nodes_
  };

  using Waiting = WaitingBySize<Place>;

  static Place last_place() { return {.key = std::numeric_limits<std::int64_t>::max(), .tie = 0}; }
  static constexpr std::uint64_t first_arrival = std::uint64_t{1} << 31;  // after all running jobs

  [[nodiscard]] std::int64_t key_of(Time remaining, std::uint32_t gpus) const {
    return by_service_ ? mul_div(remaining.us, gpus, 1) : remaining.us;
  }
  [[nodiscard]] Place place_of(const Run& run) const { return {key_of(run.account.remaining, run.gpus), run.tie}; }
  [[nodiscard]] std::uint64_t tie_of(std::uint64_t number) const { return instant_ << 32 | number; }

  void drop_ended(const OracleView& view);
  void progress(Time span);
  void admit(const OracleView& view);
  void place_all(const OracleView& view, Decision& decision);
  void start_before(const Place& place, const OracleView& view);
  enum class Found : std::uint8_t { nothing, same, others };

  Found find_nodes(Run& run);
  void move_and_start(Decision& decision);
  template <class Use>
  void on_nodes(const Run& run, Use use) const {
    if (run.gpus > nodes_left_.node_gpus()) return use(nodes_[index(run.job)]);
    const NodeTasks only{NodeId{run.node}, run.gpus};
    use(std::span(&only, 1));
  }

  void put_back_refused();
  void put_back(const Run& run);
  std::vector<Run>::iterator find_running(JobId job);

  bool by_service_;
  Time last_event_{};
  std::uint64_t instant_ = 0;  // number of the present one
  std::vector<Run> running_;   // in order of place
  Waiting waiting_;
  EventOverhead overhead_;
  YarnPlacement nodes_left_;
  std::vector<GangNodes> nodes_;  // by job, of running jobs on several nodes
  // Of the open decision:
  GangNodes chosen_;
  std::vector<Run> started_, preempted_;
  std::vector<std::uint32_t> moved_;  // into running_
  std::vector<JobId> refused_;
};

}  // namespace gpusched
