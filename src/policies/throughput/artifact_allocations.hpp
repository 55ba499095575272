// SPDX-License-Identifier: Apache-2.0
/// Two policies of Gavel's artifact (commit c4fa400) that are not what their names say; artifact_rounds.hpp runs them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "src/policies/throughput/gavel_allocator.hpp"

namespace gpusched {

/// policies/allox.py. Quirks: a job that an allocation puts first on a worker is *held*: it keeps that GPU type until
/// it ends, whether it runs there or elsewhere, so that a type has as many free workers as it has GPUs less those of
/// the jobs held there. At an allocation the jobs that are not held, the earliest first, are matched to (worker, k) at
/// the least sum of k x work left / throughput + age; the job of the greatest k on each worker becomes held with
/// allocation 1, and all others get 0, with which they may run nevertheless. Gangs, at which the artifact stops, count
/// as their time x GPUs.
class HeldMatching {
 public:
  /// `alpha`: the part of the jobs that are not held, the earliest, which a matching looks at; as many as there are
  /// free workers at least.
  HeldMatching(double alpha, GpuTypes types) : alpha_(alpha), types_(std::move(types)) {}

  [[nodiscard]] static bool reads_work_left() { return true; }
  [[nodiscard]] static bool serves_in_order() { return false; }
  /// As GavelAllocator::allocate().
  Allocation allocate(const View& view, const std::vector<AllocatedJob>& jobs);
  void forget(JobId job) { held_.erase(job); }

 private:
  struct Held {
    std::uint32_t type = 0;
    double gpus = 0;
  };
  [[nodiscard]] std::vector<std::uint32_t> free_workers() const;

  double alpha_;
  GpuTypes types_;
  std::map<JobId, Held> held_;
};

/// policies/fifo.py. Quirk: of the GPU types with room for a job it draws one and then gives the job another, the last
/// of the list (by name: V100s), whatever room that has. So jobs are never out of room, share V100s by turns, and K80s
/// and P100s idle. Left out: a type that is full to the GPU takes the drawn one off the list; the published figures do
/// not show it.
class LastType {
 public:
  explicit LastType(GpuTypes types) : types_(std::move(types)) {}

  [[nodiscard]] static bool reads_work_left() { return false; }
  [[nodiscard]] static bool serves_in_order() { return true; }
  /// As GavelAllocator::allocate().
  [[nodiscard]] Allocation allocate(const View& view, const std::vector<AllocatedJob>& jobs) const;
  static void forget(JobId) {}

 private:
  GpuTypes types_;
};

}  // namespace gpusched
