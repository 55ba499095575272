// SPDX-License-Identifier: Apache-2.0
/// WaitLog: the life of one job in intervals, with what kept it waiting in each. What `gpusched explain` tells.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/view.hpp"
#include "src/sim/wait_cause.hpp"

namespace gpusched {

/// Jobs with earlier places (View::queue_place) that wait in the same queue or in one with which it shares nodes.
struct JobsAhead {
  std::uint32_t count = 0;
  MilliGpu gpu_milli = 0;  ///< that they ask for together
  JobId first = no_job;    ///< the earliest of them
};

/// What a job does from an instant on.
struct WaitSpan {
  enum class Kind : std::uint8_t {
    dependencies,  ///< it waits for the end of other jobs
    waiting,       ///< it waits in its queue
    running,
    done,
  };
  Kind kind = Kind::waiting;
  Time since{};
  WaitCause cause = WaitCause::no_gpus;              ///< of waiting
  MilliGpu least_free = 0, most_free = 0;            ///< of waiting: WaitState::free_milli in the course of it
  JobsAhead ahead_at_begin = {}, ahead_at_end = {};  ///< of waiting
  std::uint32_t limit = no_index;                    ///< of WaitCause::limit: a rule of Cluster::limits
  JobId waits_for = no_job;                          ///< of dependencies: the first that has not ended; none: all have,
                                                     ///< and the delay behind them has not passed
  std::uint32_t started = 0, overtook = 0;           ///< other jobs that started in it; of these, behind its place
  std::vector<NodeId> nodes = {};                    ///< of running
  std::uint32_t run = 0;                             ///< of running: its number, from 1 on
};

/// An Observer. While the job waits, an event costs O(nodes + waiting jobs).
class WaitLog {
 public:
  /// Watches `job` on `cluster`, which must outlive this.
  WaitLog(JobId job, const Cluster& cluster) : job_(job), cluster_(&cluster) {}

  void observe(const OracleView& view, std::span<const Event> events);

  [[nodiscard]] JobId job() const { return job_; }
  /// In order of time, from the submission to `done`, each unlike the one before. Call once, when the run has ended.
  [[nodiscard]] std::vector<WaitSpan> take() &&;

 private:
  [[nodiscard]] WaitSpan state_now(const OracleView& view) const;
  [[nodiscard]] JobsAhead jobs_ahead(const View& view) const;
  void begin_waiting_for_others(const OracleView& view, std::span<const Event> events);
  void keep();

  JobId job_;
  const Cluster* cluster_;
  std::vector<WaitSpan> spans_;
  std::set<JobId> started_;                         // other jobs, in the last of these
  std::vector<std::uint32_t> queues_;               // its own, and those with which it shares nodes
  WaitSpan now_;                                    // of the last instant seen, which may be seen again
  std::vector<std::pair<JobId, bool>> starts_now_;  // other jobs that started then; whether they are behind its place
  bool is_begun_ = false;                           // now_ holds one
  std::uint32_t runs_ = 0;                          // that the job began
};

}  // namespace gpusched
