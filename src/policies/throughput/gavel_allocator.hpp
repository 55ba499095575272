// SPDX-License-Identifier: Apache-2.0
/// Gavel's allocations (Narayanan et al., OSDI'20, section 4): which fraction of its time each job should run on which
/// GPU type. How rounds give jobs these fractions is another question (gavel.hpp, artifact_rounds.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/throughput/allocation.hpp"

namespace gpusched {

/// What the allocation is to reach.
enum class GavelObjective : std::uint8_t {
  max_min,               ///< max_min_fair()
  water_filling,         ///< water_filling() between owners
  makespan,              ///< least_makespan(), from the true work left
  finish_time_fairness,  ///< finish_time_fair(), from the true work left
  fifo,  ///< jobs in order of arrival, each on the GPU type where it is fastest of those with room; the first that fits
         ///< none ends the list
};

/// A job that is to get an allocation. Throughputs and work left are in one unit of the job's own: steps and steps a
/// second, or seconds on its reference device.
struct AllocatedJob {
  JobId id = no_job;
  double gpus = 1;                      ///< of the gang
  double age_s = 0;                     ///< time since it came
  double left = 0;                      ///< work
  std::vector<double> throughput = {};  ///< by GPU type; 0: it cannot run there
};

/// GPUs of a gang, a share counting as its fraction.
inline double gang_gpus(const Shape& shape) {
  return static_cast<double>(shape.gpu_milli()) / static_cast<double>(whole_gpu);
}

/// The GPU types of a cluster.
struct GpuTypes {
  explicit GpuTypes(const Cluster& cluster);
  std::vector<double> gpus;            ///< by type
  std::vector<std::uint32_t> by_name;  ///< the types in order of their names, which no order of nodes changes

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(gpus.size()); }
};

/// Makes allocations by one objective. The order of jobs and nodes does not matter: the programme has its rows in order
/// of what they say, and its columns in order of the types' names. Where it has several optima, these decide.
class GavelAllocator {
 public:
  /// `aware`: false as if all GPU types were equally fast; types that all jobs can use alike then count as one, whose
  /// part of a job's time is spread evenly over their GPUs. `owners`: of water_filling.
  GavelAllocator(GavelObjective objective, bool aware, OwnerColumn owners, GpuTypes types)
      : objective_(objective), aware_(aware), owners_(owners), types_(std::move(types)) {}

  [[nodiscard]] bool reads_work_left() const {
    return objective_ == GavelObjective::makespan || objective_ == GavelObjective::finish_time_fairness;
  }
  /// Whether it tells GPU types apart by speed.
  [[nodiscard]] bool aware() const { return aware_; }
  /// A job whose allocation is 0 everywhere does not run, even where there is room.
  [[nodiscard]] bool serves_in_order() const { return objective_ == GavelObjective::fifo; }

  /// Of jobs in order of arrival, each of which can run somewhere.
  Allocation allocate(const View& view, const std::vector<AllocatedJob>& jobs);
  /// The job ended, or was withdrawn.
  void forget(JobId job) { shares_.erase(job); }

 private:
  // Of finish_time_fairness. What the job did would have taken isolated_s on its share; at the last allocation it had
  // left to do, isolated_throughput a second.
  struct Share {
    double isolated_s = 0, left = 0, isolated_throughput = 0;
  };

  [[nodiscard]] Allocation in_order_of_arrival(const std::vector<AllocatedJob>& jobs) const;
  [[nodiscard]] AllocationProblem problem_of(const View& view, const std::vector<AllocatedJob>& jobs,
                                             std::vector<std::size_t>& kind_of);
  [[nodiscard]] Allocation solve(const AllocationProblem& problem) const;
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> columns(const std::vector<AllocatedJob>& jobs) const;
  double isolated_time(JobId id, const AllocationJob& job, const std::vector<double>& gpus, double jobs);

  GavelObjective objective_;
  bool aware_;
  OwnerColumn owners_;
  GpuTypes types_;
  std::map<JobId, Share> shares_;
};

}  // namespace gpusched
