// SPDX-License-Identifier: Apache-2.0
/// IdleLog: GPU time that was free while jobs waited, and why none of them had it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/measured_span.hpp"
#include "src/sim/wait_cause.hpp"

namespace gpusched {

/// An Observer. An instant counts for `policy` where some waiting job fits; for `power_cap` where power caps refuse all
/// that do; else for the cause of the waiting demand of the fewest GPUs; for `limit` where limits hold back all that
/// wait. An event costs O(demands that wait) and at least one look at all nodes while GPUs are free; under caps, for
/// each demand that fits, one at the jobs.
class IdleLog {
 public:
  /// Watches a run on `cluster`, which must outlive this, from the first measured submission to the last measured end.
  IdleLog(const Cluster& cluster, MeasureWindow window) : cluster_(&cluster), span_(window) {}

  void observe(const OracleView& view, std::span<const Event> events);

  /// GPU-hours by WaitCause. Precondition: the run has ended.
  [[nodiscard]] double gpu_hours(WaitCause cause) const {
    const auto place = static_cast<std::size_t>(cause);
    return static_cast<double>(at_end_[place] - at_begin_[place]) / (3.6e9 * whole_gpu);
  }

 private:
  static constexpr std::size_t causes = wait_cause_names.size();
  using Sums = std::array<detail::WideInt, causes>;  // thousandths of a GPU times microseconds
  // What jobs that wait ask for, the smallest first: GPU thousandths, shape, queue.
  using Demand = std::tuple<MilliGpu, std::uint32_t, std::uint32_t>;

  void wait(const View& view, JobId job, int sign);
  [[nodiscard]] WaitCause cause_now(const View& view) const;

  const Cluster* cluster_;
  detail::MeasuredSpan span_;
  std::map<Demand, std::uint32_t> waiting_;  // jobs of each
  MilliGpu free_ = 0;                        // since the last instant, while jobs waited
  WaitCause cause_ = WaitCause::no_gpus;
  bool is_begun_ = false;
  Sums sums_ = {}, at_begin_ = {}, at_end_ = {};
};

}  // namespace gpusched
