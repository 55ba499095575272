// SPDX-License-Identifier: Apache-2.0
#include "src/policies/capacity_profile.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace gpusched {

CapacityProfile::CapacityProfile(const Cluster& cluster, const JobTable& jobs) {
  for (const Shape& shape : jobs.shapes()) {
    by_node_ = by_node_ || shape.gpu_milli_per_task > whole_gpu || shape.is_share() || shape.cpu_milli_per_task > 0 ||
               shape.memory_mib_per_task > 0;
  }
  for (const Node& node : cluster.nodes) {
    const Node& first = cluster.nodes.front();
    by_node_ = by_node_ || node.vc != first.vc || node.gpu_type != first.gpu_type;
  }
  for (std::uint32_t id = 0; id < cluster.nodes.size(); ++id) {
    const Node& node = cluster.nodes[id];
    if (by_node_ || cells_ == 0) {
      ++cells_;
      node_of_cell_.push_back(NodeId{id});
      empty_.push_back({.gpu_milli = 0, .cpu_milli = unlimited, .memory_mib = unlimited});
    }
    cell_of_node_.push_back(cells_ - 1);
    empty_.back().gpu_milli += node.gpus * whole_gpu;
    if (by_node_) {
      empty_.back().cpu_milli = node.cpu_milli;
      empty_.back().memory_mib = node.memory_mib;
    }
  }
  for (const VirtualCluster& vc : cluster.vcs) empty_.push_back({.gpu_milli = vc.quota});
  clear(Time{std::numeric_limits<std::int64_t>::min()});
}

void CapacityProfile::clear(Time now) {
  begins_.assign(1, now);
  free_ = empty_;
}

void CapacityProfile::drop_before(Time now) {
  const std::size_t current = step_at(now);
  if (current * 2 < begins_.size()) return;  // moving the rest up is paid by as many steps that are gone
  begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(current));
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(current * empty_.size()));
}

std::size_t CapacityProfile::step_at(Time t) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), t) - begins_.begin()) - 1;
}

std::size_t CapacityProfile::split_at(Time t) {
  const std::size_t step = step_at(t);
  if (begins_[step] == t) return step;
  const std::size_t width = empty_.size();
  begins_.insert(begins_.begin() + static_cast<std::ptrdiff_t>(step) + 1, t);
  free_.insert(free_.begin() + static_cast<std::ptrdiff_t>((step + 1) * width), width, Free{});
  std::copy_n(free_.begin() + static_cast<std::ptrdiff_t>(step * width), width,
              free_.begin() + static_cast<std::ptrdiff_t>((step + 1) * width));
  return step + 1;
}

void CapacityProfile::change(Time start, Time end, const Shape& shape, std::uint32_t queue,
                             const std::vector<Part>& parts, int sign) {
  if (!(start < end)) return;
  const std::size_t first = split_at(start);
  const std::size_t last = split_at(end);
  for (std::size_t step = first; step < last; ++step) {
    Free* const cells = &free_[step * empty_.size()];
    for (const Part& part : parts) {
      const std::int64_t tasks = sign * std::int64_t{part.tasks};
      cells[part.cell].gpu_milli += tasks * shape.gpu_milli_per_task;
      cells[part.cell].cpu_milli += tasks * shape.cpu_milli_per_task;
      cells[part.cell].memory_mib += tasks * shape.memory_mib_per_task;
    }
    if (cells_ + queue < empty_.size()) cells[cells_ + queue].gpu_milli += sign * shape.gpu_milli();
  }
}

bool CapacityProfile::is_free(Time start, Time end, const Shape& shape, std::uint32_t queue,
                              const std::vector<Part>& parts) const {
  for (std::size_t step = step_at(start); step < begins_.size() && begins_[step] < end; ++step) {
    for (const Part& part : parts) {
      if (tasks_in(row(step)[part.cell], shape) < part.tasks) return false;
    }
    if (cells_ + queue < empty_.size() && row(step)[cells_ + queue].gpu_milli < shape.gpu_milli()) return false;
  }
  return true;
}

std::int64_t CapacityProfile::tasks_in(const Free& free, const Shape& shape) {
  std::int64_t tasks = shape.tasks;
  if (shape.gpu_milli_per_task > 0) tasks = std::min(tasks, free.gpu_milli / shape.gpu_milli_per_task);
  if (shape.cpu_milli_per_task > 0) tasks = std::min(tasks, free.cpu_milli / shape.cpu_milli_per_task);
  if (shape.memory_mib_per_task > 0) tasks = std::min(tasks, free.memory_mib / shape.memory_mib_per_task);
  return std::max<std::int64_t>(tasks, 0);
}

std::vector<bool> CapacityProfile::allowed_cells(const Shape& shape, std::uint32_t queue,
                                                 const ClusterState& cluster) const {
  std::vector<bool> allowed(cells_);
  for (std::uint32_t cell = 0; cell < cells_; ++cell) {
    allowed[cell] = cluster.node_allowed(node_of_cell_[cell], shape, queue);
  }
  return allowed;
}

std::int64_t CapacityProfile::capacity_for(Row row, const Shape& shape, std::uint32_t queue,
                                           const std::vector<bool>& allowed) const {
  if (cells_ + queue < row.size() && row[cells_ + queue].gpu_milli < shape.gpu_milli()) return 0;
  std::int64_t tasks = 0;
  for (std::uint32_t cell = 0; cell < cells_ && tasks < shape.tasks; ++cell) {
    if (allowed[cell]) tasks += tasks_in(row[cell], shape);
  }
  return tasks;
}

// One cell for the whole gang, the one with the least room to spare; else the roomiest cells first.
std::vector<CapacityProfile::Part> CapacityProfile::choose(Row row, const Shape& shape,
                                                           const std::vector<bool>& allowed) const {
  std::vector<std::tuple<std::int64_t, MilliGpu, std::uint32_t>> cells;  // tasks (negative), free, cell
  for (std::uint32_t cell = 0; cell < cells_; ++cell) {
    const std::int64_t tasks = allowed[cell] ? tasks_in(row[cell], shape) : 0;
    if (tasks > 0) cells.emplace_back(-tasks, row[cell].gpu_milli, cell);
  }
  std::sort(cells.begin(), cells.end());
  std::vector<Part> parts;
  std::int64_t left = shape.tasks;
  for (const auto& [tasks, free, cell] : cells) {
    if (left == 0) break;
    parts.push_back({cell, static_cast<std::uint32_t>(std::min(left, -tasks))});
    left -= parts.back().tasks;
  }
  return parts;
}

std::optional<CapacityProfile::Hole> CapacityProfile::find(Time now, Time length, const Shape& shape,
                                                           std::uint32_t queue, const ClusterState& cluster) const {
  const std::vector<bool> allowed = allowed_cells(shape, queue, cluster);
  const auto fits = [&](Row row) { return capacity_for(row, shape, queue, allowed) >= shape.tasks; };
  std::vector<Free> common;
  for (std::size_t start = step_at(now); start < begins_.size();) {
    const Time begin = std::max(begins_[start], now);
    common.assign(row(start).begin(), row(start).end());
    std::size_t resume = start + 1;
    bool holds = fits(common);
    for (std::size_t step = start + 1; holds && step < begins_.size() && begins_[step] < begin + length; ++step) {
      for (std::size_t i = 0; i < common.size(); ++i) {
        common[i].gpu_milli = std::min(common[i].gpu_milli, row(step)[i].gpu_milli);
        common[i].cpu_milli = std::min(common[i].cpu_milli, row(step)[i].cpu_milli);
        common[i].memory_mib = std::min(common[i].memory_mib, row(step)[i].memory_mib);
      }
      holds = fits(common);
      // A step without room by itself rules out every start up to it.
      if (!holds && !fits(row(step))) resume = step + 1;
    }
    if (holds) return Hole{begin, choose(common, shape, allowed)};
    start = resume;
  }
  return std::nullopt;
}

std::vector<CapacityProfile::Part> CapacityProfile::parts_of(const View& view, JobId job) const {
  std::vector<Part> parts;
  view.for_each_grant(job, [&](const Grant& grant) {
    const std::uint32_t cell = cell_of_node_[index(grant.node)];
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.cell == cell; });
    if (same == parts.end()) {
      parts.push_back({cell, grant.tasks});
    } else {
      same->tasks += grant.tasks;
    }
  });
  return parts;
}

}  // namespace gpusched
