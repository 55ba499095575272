// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/capacity_profile.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <tuple>

namespace gpusched {

CapacityProfile::CapacityProfile(const Cluster& cluster, const JobTable& jobs) {
  for (const Shape& shape : jobs.shapes()) {
    by_node_ = by_node_ || shape.gpu_milli_per_task > whole_gpu || shape.is_share() || shape.cpu_milli_per_task > 0 ||
               shape.memory_mib_per_task > 0;
  }
  for (const Node& node : cluster.nodes) {
    const Node& first = cluster.nodes.front();
    by_node_ = by_node_ || node.vc != first.vc || node.vc_group != first.vc_group || node.gpu_type != first.gpu_type ||
               node.mig != no_index;
  }
  for (std::uint32_t id = 0; id < cluster.nodes.size(); ++id) {
    const Node& node = cluster.nodes[id];
    if (by_node_ || cells_ == 0) {
      ++cells_;
      node_of_cell_.push_back(NodeId{id});
      const bool tells_cards = !node.counts_only && node.gpus <= ClusterState::max_devices_per_node;
      cards_of_cell_.push_back(tells_cards ? node.gpus : no_index);
      empty_.push_back(0);
    }
    empty_.back() += node.gpus * whole_gpu;
    if (by_node_) empty_.insert(empty_.end(), {node.cpu_milli, node.memory_mib});
  }
  for (const VirtualCluster& vc : cluster.vcs) empty_.push_back(vc.quota);
  quotas_ = static_cast<std::uint32_t>(cluster.vcs.size());
  first_slice_.resize(cells_);
  model_.resize(cells_);
  for (std::uint32_t cell = 0; cell < cells_ && by_node_; ++cell) {
    const Node& node = cluster.nodes[cell];
    if (node.mig == no_index || cards_of_cell_[cell] == no_index) continue;
    has_slices_ = true;
    first_slice_[cell] = empty_.size();
    model_[cell] = &mig_models[cluster.migs[node.mig].model];
    empty_.resize(empty_.size() + std::size_t{node.gpus} * most_mig_slices, whole_gpu);
  }
  begins_.assign(1, Time{std::numeric_limits<std::int64_t>::min()});
  free_ = empty_;
}

std::vector<CapacityProfile::Part> CapacityProfile::parts_of(const View& view, JobId job) const {
  std::vector<Part> parts;
  if (!by_node_) return parts;
  view.for_each_grant(job, [&](const Grant& grant) {
    Part part{.cell = index(grant.node), .tasks = grant.tasks};
    if (has_slices(part.cell)) {
      part.devices = grant.devices;
      part.slice = grant.slice;
    }
    parts.push_back(part);
  });
  return parts;
}

CapacityProfile::Started CapacityProfile::start(const View& view, Decision& decision, JobId job,
                                                std::vector<Part>& parts) const {
  if (!by_node_) return decision.start(job) == Verdict::ok ? Started::on_parts : Started::no;
  std::vector<Grant> grants;
  for (const Part& part : parts) {
    grants.push_back({.devices = part.devices, .node = NodeId{part.cell}, .tasks = part.tasks, .slice = part.slice});
  }
  if (decision.start_exactly(job, grants) == Verdict::ok) return Started::on_parts;
  if (decision.start(job) != Verdict::ok) return Started::no;
  parts = parts_of(view, job);
  return Started::elsewhere;
}

void CapacityProfile::drop_before(Time now) {
  const std::size_t current = step_at(now);
  if (current * 2 < begins_.size()) return;  // moving the rest up is paid by as many steps that are gone
  begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(current));
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(current * width()));
}

std::size_t CapacityProfile::step_at(Time t) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), t) - begins_.begin()) - 1;
}

std::size_t CapacityProfile::split_at(Time t) {
  const std::size_t step = step_at(t);
  if (begins_[step] == t) return step;
  begins_.insert(begins_.begin() + static_cast<std::ptrdiff_t>(step) + 1, t);
  free_.insert(free_.begin() + static_cast<std::ptrdiff_t>((step + 1) * width()), width(), 0);
  std::copy_n(free_.begin() + static_cast<std::ptrdiff_t>(step * width()), width(),
              free_.begin() + static_cast<std::ptrdiff_t>((step + 1) * width()));
  return step + 1;
}

void CapacityProfile::join(std::size_t step) {
  if (step == 0 || step == begins_.size() || !std::ranges::equal(row(step - 1), row(step))) return;
  begins_.erase(begins_.begin() + static_cast<std::ptrdiff_t>(step));
  const auto first = free_.begin() + static_cast<std::ptrdiff_t>(step * width());
  free_.erase(first, first + static_cast<std::ptrdiff_t>(width()));
}

void CapacityProfile::change(Time start, Time end, const Gang& gang, int sign) {
  start = std::max(start, begins_.front());
  if (!(start < end)) return;
  const std::size_t first = split_at(start);
  const std::size_t last = split_at(end);
  if (width() == 1) {  // one number a step: a loop that compilers vectorise, in which backfilling spends its time
    const std::int64_t gpu_milli = sign * gang.shape.gpu_milli();
    std::for_each(free_.begin() + static_cast<std::ptrdiff_t>(first), free_.begin() + static_cast<std::ptrdiff_t>(last),
                  [gpu_milli](std::int64_t& free) { free += gpu_milli; });
  } else {
    for (std::size_t step = first; step < last; ++step) add(step, gang, sign);
  }
  join(last);
  join(first);
}

void CapacityProfile::add(std::size_t step, const Gang& gang, int sign) {
  std::int64_t* const lanes = &free_[step * width()];
  const std::int64_t gpu_milli = sign * gang.shape.gpu_milli();
  if (const std::size_t quota = quota_lane(gang.queue); quota < width()) lanes[quota] += gpu_milli;
  if (!by_node_) {
    lanes[0] += gpu_milli;
    return;
  }
  for (const Part& part : gang.parts) add_part(lanes, part, gang.shape, sign);
}

void CapacityProfile::add_part(std::int64_t* lanes, const Part& part, const Shape& shape, int sign) const {
  const std::int64_t tasks = sign * std::int64_t{part.tasks};
  std::int64_t* const cell = lanes + part.cell * lanes_per_cell();
  cell[0] += tasks * shape.gpu_milli_per_task;
  cell[1] += tasks * shape.cpu_milli_per_task;
  cell[2] += tasks * shape.memory_mib_per_task;
  const std::int64_t milli = sign * (shape.is_share() && part.slice == 0 ? shape.gpu_milli_per_task : whole_gpu);
  const MigSlices slices = part.devices == 0 ? MigSlices{0} : slices_of(part.cell, part.slice);
  for (std::uint64_t bits = part.devices; bits != 0; bits &= bits - 1) {
    std::int64_t* const lane = lanes + slice_lane(part.cell, static_cast<std::uint32_t>(std::countr_zero(bits)));
    for (std::uint32_t s = 0; s < most_mig_slices; ++s) lane[s] += (slices >> s & 1) != 0 ? milli : 0;
  }
}

MigSlices CapacityProfile::slices_of(std::uint32_t cell, std::uint8_t slice) const {
  if (slice == 0) return static_cast<MigSlices>(~MigSlices{0});
  const MigInstance instance = mig_instance(slice);
  return model_[cell]->profiles()[instance.profile].slices(instance.start);
}

bool CapacityProfile::is_free(Time start, Time end, const Gang& gang) const {
  const std::int64_t wanted = gang.shape.gpu_milli();
  for (std::size_t step = step_at(start); step < begins_.size() && begins_[step] < end; ++step) {
    if (!holds(row(step), quota_lane(gang.queue), wanted)) return false;
    if (!by_node_ && row(step)[0] < wanted) return false;
    if (has_slices_ && !parts_are_free(step, gang)) return false;
    for (const Part& part : gang.parts) {
      if (!has_slices(part.cell) && tasks_in(row(step), part.cell, gang.shape, nullptr) < part.tasks) return false;
    }
  }
  return true;
}

// Precondition: some cell has slices. Nothing of what the gang takes there is then more than there is.
bool CapacityProfile::parts_are_free(std::size_t step, const Gang& gang) const {
  const Row before = row(step);
  std::vector<std::int64_t> after(before.begin(), before.end());
  for (const Part& part : gang.parts) {
    if (has_slices(part.cell)) add_part(after.data(), part, gang.shape, -1);
  }
  for (std::size_t lane = 0; lane < after.size(); ++lane) {
    if (after[lane] < 0 && after[lane] < before[lane]) return false;
  }
  return true;
}

bool CapacityProfile::is_overdrawn(Time start, Time end) const {
  for (std::size_t step = step_at(start); step < begins_.size() && begins_[step] < end; ++step) {
    if (std::ranges::any_of(row(step), [](std::int64_t free) { return free < 0; })) return true;
  }
  return false;
}

// Precondition: by_node().
std::int64_t CapacityProfile::tasks_in(Row row, std::uint32_t cell, const Shape& shape,
                                       const ClusterState* cluster) const {
  const std::int64_t* const free = &row[std::size_t{cell} * 3];
  std::int64_t tasks = shape.tasks;
  if (shape.gpu_milli_per_task > 0) tasks = std::min(tasks, free[0] / shape.gpu_milli_per_task);
  if (shape.gpu_milli_per_task > 0 && has_slices(cell)) {
    std::int64_t sum = 0;
    for (std::uint32_t d = 0; d < cards_of_cell_[cell]; ++d) sum += tasks_on(row, cell, d, shape, *cluster);
    tasks = std::min(tasks, shape.is_share() ? sum : sum / (shape.gpu_milli_per_task / whole_gpu));
  } else if (shape.is_share()) {  // none of them on two cards
    tasks = std::min(tasks, std::int64_t{cards_of_cell_[cell]} * (whole_gpu / shape.gpu_milli_per_task));
  }
  if (shape.cpu_milli_per_task > 0) tasks = std::min(tasks, free[1] / shape.cpu_milli_per_task);
  if (shape.memory_mib_per_task > 0) tasks = std::min(tasks, free[2] / shape.memory_mib_per_task);
  return std::max<std::int64_t>(tasks, 0);
}

MigSlices CapacityProfile::held_slices(Row row, std::uint32_t cell, std::uint32_t device) const {
  const Row lanes = row.subspan(slice_lane(cell, device), most_mig_slices);
  unsigned held = 0;
  for (std::uint32_t s = 0; s < most_mig_slices; ++s) held |= lanes[s] < whole_gpu ? 1u << s : 0u;
  return static_cast<MigSlices>(held);
}

// Of whole GPUs: 1 where the GPU is one that such a task may have a part of.
std::int64_t CapacityProfile::tasks_on(Row row, std::uint32_t cell, std::uint32_t device, const Shape& shape,
                                       const ClusterState& cluster) const {
  const MigSlices held = held_slices(row, cell, device);
  if (!shape.is_share()) return held == 0 && (cluster.node(NodeId{cell}).whole_devices >> device & 1) != 0 ? 1 : 0;
  const std::uint32_t card = cluster.card(NodeId{cell}, device);
  if (cluster.mig().model(card) != nullptr) return cluster.mig().tasks_beside(card, shape, held);
  return std::max<std::int64_t>(row[slice_lane(cell, device)], 0) / shape.gpu_milli_per_task;
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
                                           const std::vector<bool>& allowed, const ClusterState& cluster) const {
  if (!holds(row, quota_lane(queue), shape.gpu_milli())) return 0;
  std::int64_t tasks = 0;
  for (std::uint32_t cell = 0; cell < cells_ && tasks < shape.tasks; ++cell) {
    if (allowed[cell]) tasks += tasks_in(row, cell, shape, &cluster);
  }
  return tasks;
}

// One cell for the whole gang, the one with the least room to spare; else the roomiest cells first.
std::vector<CapacityProfile::Part> CapacityProfile::choose(Row row, const Shape& shape,
                                                           const std::vector<bool>& allowed,
                                                           const ClusterState& cluster) const {
  std::vector<std::tuple<std::int64_t, MilliGpu, std::uint32_t>> cells;  // tasks (negative), free, cell
  for (std::uint32_t cell = 0; cell < cells_; ++cell) {
    const std::int64_t tasks = allowed[cell] ? tasks_in(row, cell, shape, &cluster) : 0;
    if (tasks > 0) cells.emplace_back(-tasks, row[cell * lanes_per_cell()], cell);
  }
  std::sort(cells.begin(), cells.end());
  std::vector<Part> parts;
  std::int64_t left = shape.tasks;
  for (const auto& [tasks, free, cell] : cells) {
    if (left == 0) break;
    const auto here = static_cast<std::uint32_t>(std::min(left, -tasks));
    left -= here;
    if (!has_slices(cell) || shape.gpu_milli_per_task == 0) {
      parts.push_back({.cell = cell, .tasks = here});
    } else {
      std::vector<std::int64_t> rest(row.begin(), row.end());
      choose_slices(rest, cell, here, shape, cluster, parts);
    }
  }
  return parts;
}

// Whole GPUs: the lowest-numbered. Instances: one that is there already, then the least, then the GPU with the least
// left.
void CapacityProfile::choose_slices(std::vector<std::int64_t>& row, std::uint32_t cell, std::uint32_t tasks,
                                    const Shape& shape, const ClusterState& cluster, std::vector<Part>& parts) const {
  if (!shape.is_share()) {
    Part part{.cell = cell, .tasks = tasks};
    std::int64_t gpus = tasks * (shape.gpu_milli_per_task / whole_gpu);
    for (std::uint32_t d = 0; gpus > 0; ++d) {
      if (tasks_on(row, cell, d, shape, cluster) == 0) continue;
      part.devices |= std::uint64_t{1} << d;
      --gpus;
    }
    parts.push_back(part);
    return;
  }
  for (; tasks > 0; --tasks) {
    Part best;
    std::tuple<bool, std::uint32_t, std::int64_t> least{};
    for (std::uint32_t d = 0; d < cards_of_cell_[cell]; ++d) {
      if (tasks_on(row, cell, d, shape, cluster) == 0) continue;
      const std::uint32_t card = cluster.card(NodeId{cell}, d);
      const std::uint8_t slice = cluster.mig().choose_slice(card, shape, held_slices(row, cell, d));
      const Row lanes = Row(row).subspan(slice_lane(cell, d), most_mig_slices);
      const std::tuple rank{slice != 0 && !cluster.mig().is_ready(card, slice),
                            slice == 0 ? most_mig_slices : mig_instance(slice).profile,
                            std::accumulate(lanes.begin(), lanes.end(), std::int64_t{0})};
      if (best.tasks > 0 && rank >= least) continue;
      best = {.cell = cell, .tasks = 1, .devices = std::uint64_t{1} << d, .slice = slice};
      least = rank;
    }
    add_part(row.data(), best, shape, -1);
    parts.push_back(best);
  }
}

std::optional<CapacityProfile::Hole> CapacityProfile::find(Time now, Time length, const Shape& shape,
                                                           std::uint32_t queue, const ClusterState& cluster) const {
  if (!by_node_) {
    if (!cluster.node_allowed(node_of_cell_.front(), shape, queue)) return std::nullopt;
    const auto start = earliest(now, Time::max(), length, shape, queue);
    return start ? std::optional(Hole{*start, {}}) : std::nullopt;
  }
  const std::vector<bool> allowed = allowed_cells(shape, queue, cluster);
  const auto fits = [&](Row row) { return capacity_for(row, shape, queue, allowed, cluster) >= shape.tasks; };
  std::vector<std::int64_t> common;
  for (std::size_t start = step_at(now); start < begins_.size();) {
    const Time begin = std::max(begins_[start], now);
    common.assign(row(start).begin(), row(start).end());
    std::size_t resume = start + 1;
    bool holds = fits(common);
    for (std::size_t step = start + 1; holds && step < begins_.size() && begins_[step] < begin + length; ++step) {
      for (std::size_t i = 0; i < common.size(); ++i) {
        common[i] = std::min(common[i], row(step)[i]);
      }
      holds = fits(common);
      // A step without room by itself rules out every start up to it.
      if (!holds && !fits(row(step))) resume = step + 1;
    }
    if (holds) return Hole{begin, choose(common, shape, allowed, cluster)};
    start = resume;
  }
  return std::nullopt;
}

std::optional<Time> CapacityProfile::earliest(Time from, Time before, Time length, const Shape& shape,
                                              std::uint32_t queue) const {
  const std::int64_t wanted = shape.gpu_milli();
  const std::size_t quota = quota_lane(queue);
  const std::size_t width = this->width();
  const auto fits = [&](std::size_t step) {
    const std::int64_t* const free = &free_[step * width];
    return free[0] >= wanted && (quota == width || free[quota] >= wanted);
  };
  Time begin = from;
  for (std::size_t step = step_at(from); step < begins_.size();) {
    while (!fits(step)) {
      if (++step == begins_.size()) return std::nullopt;
      begin = begins_[step];
    }
    if (!(begin < before)) return std::nullopt;
    const Time until = std::min(begin + length, before);
    do ++step;
    while (step < begins_.size() && begins_[step] < until && fits(step));
    if (step == begins_.size() || begins_[step] >= until) return begin;
  }
  return std::nullopt;
}

}  // namespace gpusched
