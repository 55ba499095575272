// SPDX-License-Identifier: Apache-2.0
/// How fast waiting jobs are on the GPU types of the cluster: what AgendaOptions::node_speeds tells.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpusched/data/rate.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/observation.hpp"

namespace gpusched::detail {

/// The job's speed on a GPU type; 1 is that of the device that its run time is of.
inline float relative_speed(const View& view, JobId job, std::uint32_t gpu_type) {
  return static_cast<float>(view.speed(job, gpu_type)) / static_cast<float>(reference_rate);
}

/// ln(a / b), of positive numbers.
inline float log_ratio(float a, float b) { return a >= b ? fast_log1p(a / b - 1.0f) : -fast_log1p(b / a - 1.0f); }

/// GPUs of one type.
struct GpusOfType {
  float all = 0, free = 0;
};

/// By GPU type. O(groups of the ClusterState).
inline std::vector<GpusOfType> gpus_by_type(const ClusterState& cluster) {
  std::vector<GpusOfType> types;
  cluster.for_each_idle_level(
      [&types](std::uint32_t type, std::uint32_t gpus, std::uint32_t idle, std::uint32_t nodes) {
        if (types.size() <= type) types.resize(type + 1);
        types[type].all += static_cast<float>(gpus) * static_cast<float>(nodes);
        types[type].free += static_cast<float>(idle) * static_cast<float>(nodes);
      });
  return types;
}

/// A GPU type that could take a job now.
struct TypeWithRoom {
  std::uint32_t gpu_type;
  std::uint32_t tasks = 0;  ///< that fit on its nodes together
  bool on_one_node = false;
};

/// Fills `types` with the GPU types that could take the whole job now, the fastest for it first. O(nodes x types).
inline void list_types_with_room(const View& view, JobId job, std::vector<TypeWithRoom>& types) {
  types.clear();
  const Shape& shape = view.shape(job);
  const ClusterState& cluster = view.cluster();
  for (std::uint32_t id = 0; id < cluster.node_count(); ++id) {
    const NodeId node{id};
    const std::uint32_t fit = cluster.tasks_that_fit(node, shape);
    if (fit == 0 || !cluster.node_allowed(node, shape, view.queue_of(job))) continue;
    const std::uint32_t type = cluster.node_gpu_type(node);
    auto at = std::find_if(types.begin(), types.end(), [type](const TypeWithRoom& of) { return of.gpu_type == type; });
    if (at == types.end()) at = types.insert(at, {.gpu_type = type});
    at->tasks += std::min(fit, shape.tasks - std::min(shape.tasks, at->tasks));
    at->on_one_node = at->on_one_node || fit >= shape.tasks;
  }
  std::erase_if(types, [&shape](const TypeWithRoom& of) { return of.tasks < shape.tasks; });
  std::stable_sort(types.begin(), types.end(), [&view, &job](const TypeWithRoom& a, const TypeWithRoom& b) {
    return view.speed(job, a.gpu_type) > view.speed(job, b.gpu_type);
  });
}

/// A job's speeds on the GPU types that the cluster has and the job may use.
struct JobSpeeds {
  float best = 1;                  ///< the greatest
  std::uint32_t best_type = 0;     ///< where that is, the first of equals
  bool one_type_holds_it = false;  ///< some type has GPUs enough for it, busy or not
};

/// Those of the jobs that have waited, looked up once. A value.
class TypeSpeeds {
 public:
  /// Precondition of what follows for this job.
  void look_up(const View& view, JobId job) {
    const ClusterState& cluster = view.cluster();
    if (gpus_.empty()) gpus_ = gpus_by_type(cluster);
    losses_.resize(gpus_.size());
    if (jobs_.size() <= index(job)) {
      jobs_.resize(index(job) + 1);
      for (auto& of_type : losses_) of_type.resize(jobs_.size(), cannot);
    }
    const auto allowed = [&cluster, &view, &job](auto visit) {
      for (const std::uint32_t number : cluster.allowed_classes(view.shape(job), view.queue_of(job))) {
        const std::uint32_t type = cluster.node_class(number).gpu_type;
        visit(type, relative_speed(view, job, type));
      }
    };
    JobSpeeds own{.best = 0};
    allowed([this, &own, &view, &job](std::uint32_t type, float speed) {
      own.one_type_holds_it = own.one_type_holds_it || gpus_[type].all >= gpus_of(view.shape(job));
      if (speed <= own.best) return;
      own.best = speed;
      own.best_type = type;
    });
    if (own.best == 0) own.best = 1;
    allowed([this, &job, &own](std::uint32_t type, float speed) {
      losses_[type][index(job)] = log_ratio(speed, own.best);
    });
    jobs_[index(job)] = own;
  }

  [[nodiscard]] const JobSpeeds& operator[](JobId job) const { return jobs_[index(job)]; }

  /// place_rate of the job on a GPU type of the cluster; far below any where it may not run there.
  [[nodiscard]] float loss(JobId job, std::uint32_t gpu_type) const { return losses_[gpu_type][index(job)]; }

 private:
  static constexpr float cannot = -1e9f;

  std::vector<GpusOfType> gpus_;            // by GPU type, as at the first call
  std::vector<JobSpeeds> jobs_;             // by job
  std::vector<std::vector<float>> losses_;  // by GPU type and job
};

}  // namespace gpusched::detail
