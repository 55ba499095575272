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
  steps_ = StepList(empty_);
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

void CapacityProfile::change(Time start, Time end, const Gang& gang, int sign) {
  start = std::max(start, steps_.front());
  if (!(start < end)) return;
  Step first = steps_.split(start);
  const std::size_t blocks = steps_.blocks();
  const Step last = steps_.split(end);
  if (steps_.blocks() != blocks) first = steps_.at(start);
  if (width() == 1) {
    steps_.add(first, last, sign * gang.shape.gpu_milli());
  } else {
    for (Step step = first; !(step == last); step = steps_.next(step)) add(steps_.lanes(step), gang, sign);
  }
  steps_.join(last);
  steps_.join(first);
}

// From the last end backwards: what is held before an end is what is held behind it, and the gang.
void CapacityProfile::take_from(Time now, std::span<const Holder> holders) {
  std::vector<Time> begins;
  std::vector<std::int64_t> rows, row = empty_;
  for (auto holder = holders.rbegin(); holder != holders.rend();) {
    const Time end = holder->end;
    const std::vector<std::int64_t> behind = row;
    for (; holder != holders.rend() && holder->end == end; ++holder) add(row.data(), holder->gang, -1);
    if (row == behind) continue;
    begins.push_back(end);
    rows.insert(rows.end(), behind.begin(), behind.end());
  }
  if (begins.empty()) return;
  begins.push_back(now);
  rows.insert(rows.end(), row.begin(), row.end());
  for (std::size_t step = begins.size(); step-- > 0;)
    steps_.append(begins[step], Row(rows).subspan(step * width(), width()));
}

void CapacityProfile::add(std::int64_t* lanes, const Gang& gang, int sign) const {
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
  Step step = steps_.at(start);
  if (width() == 1) return steps_.first_below(step, wanted, end) == steps_.end();
  for (; !(step == steps_.end()) && steps_.begin(step) < end; step = steps_.next(step)) {
    const Row row = steps_.row(step);
    if (!holds(row, quota_lane(gang.queue), wanted)) return false;
    if (!by_node_ && row[0] < wanted) return false;
    if (has_slices_ && !parts_are_free(row, gang)) return false;
    for (const Part& part : gang.parts) {
      if (!has_slices(part.cell) && tasks_in(row, part.cell, gang.shape, nullptr) < part.tasks) return false;
    }
  }
  return true;
}

// Precondition: some cell has slices. Nothing of what the gang takes there is then more than there is.
bool CapacityProfile::parts_are_free(Row before, const Gang& gang) const {
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
  Step step = steps_.at(start);
  if (width() == 1) return !(steps_.first_below(step, 0, end) == steps_.end());
  for (; !(step == steps_.end()) && steps_.begin(step) < end; step = steps_.next(step)) {
    if (std::ranges::any_of(steps_.row(step), [](std::int64_t free) { return free < 0; })) return true;
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

std::vector<std::uint32_t> CapacityProfile::allowed_cells(const Shape& shape, std::uint32_t queue,
                                                          const ClusterState& cluster) const {
  std::vector<std::uint32_t> allowed;
  for (std::uint32_t cell = 0; cell < cells_; ++cell) {
    if (cluster.node_allowed(node_of_cell_[cell], shape, queue)) allowed.push_back(cell);
  }
  return allowed;
}

std::int64_t CapacityProfile::capacity_for(Row row, const Shape& shape, std::uint32_t queue,
                                           const std::vector<std::uint32_t>& allowed,
                                           const ClusterState& cluster) const {
  if (!holds(row, quota_lane(queue), shape.gpu_milli())) return 0;
  std::int64_t tasks = 0;
  for (const std::uint32_t cell : allowed) {
    if (tasks >= shape.tasks) break;
    tasks += tasks_in(row, cell, shape, &cluster);
  }
  return tasks;
}

void CapacityProfile::lower(std::vector<std::int64_t>& common, Row row, std::uint32_t queue,
                            const std::vector<std::uint32_t>& allowed) const {
  const auto lower_span = [&](std::size_t first, std::size_t count) {
    for (std::size_t lane = first; lane < first + count; ++lane) common[lane] = std::min(common[lane], row[lane]);
  };
  if (const std::size_t quota = quota_lane(queue); quota < width()) lower_span(quota, 1);
  for (const std::uint32_t cell : allowed) {
    lower_span(cell * lanes_per_cell(), lanes_per_cell());
    if (has_slices(cell)) lower_span(slice_lane(cell, 0), std::size_t{cards_of_cell_[cell]} * most_mig_slices);
  }
}

// One cell for the whole gang, the one with the least room to spare; else the roomiest cells first.
std::vector<CapacityProfile::Part> CapacityProfile::choose(Row row, const Shape& shape,
                                                           const std::vector<std::uint32_t>& allowed,
                                                           const ClusterState& cluster) const {
  std::vector<std::tuple<std::int64_t, MilliGpu, std::uint32_t>> cells;  // tasks (negative), free, cell
  for (const std::uint32_t cell : allowed) {
    const std::int64_t tasks = tasks_in(row, cell, shape, &cluster);
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
  const std::vector<std::uint32_t> allowed = allowed_cells(shape, queue, cluster);
  const auto fits = [&](Row row) { return capacity_for(row, shape, queue, allowed, cluster) >= shape.tasks; };
  std::vector<std::int64_t> common;
  for (Step start = steps_.at(now); !(start == steps_.end());) {
    const Time begin = std::max(steps_.begin(start), now);
    const Row first = steps_.row(start);
    Step resume = steps_.next(start);
    bool holds = fits(first);
    if (holds) common.assign(first.begin(), first.end());
    for (Step step = resume; holds && !(step == steps_.end()) && steps_.begin(step) < begin + length;
         step = steps_.next(step)) {
      lower(common, steps_.row(step), queue, allowed);
      holds = fits(common);
      // A step without room by itself rules out every start up to it.
      if (!holds && !fits(steps_.row(step))) resume = steps_.next(step);
    }
    if (holds) return Hole{begin, choose(common, shape, allowed, cluster)};
    start = resume;
  }
  return std::nullopt;
}

std::optional<Time> CapacityProfile::earliest(Time from, Time before, Time length, const Shape& shape,
                                              std::uint32_t queue) const {
  if (width() > 1) return earliest_by_rows(from, before, length, shape, queue);
  const std::int64_t wanted = shape.gpu_milli();
  Time begin = from;
  for (Step step = steps_.at(from);;) {
    const Step first = steps_.first_of(step, wanted);
    if (first == steps_.end()) return std::nullopt;
    if (!(first == step)) begin = steps_.begin(first);
    if (!(begin < before)) return std::nullopt;
    step = steps_.first_below(first, wanted, std::min(begin + length, before));
    if (step == steps_.end()) return begin;
  }
}

std::optional<Time> CapacityProfile::earliest_by_rows(Time from, Time before, Time length, const Shape& shape,
                                                      std::uint32_t queue) const {
  const std::int64_t wanted = shape.gpu_milli();
  const std::size_t quota = quota_lane(queue);
  const auto fits = [&](Step step) {
    const Row row = steps_.row(step);
    return row[0] >= wanted && holds(row, quota, wanted);
  };
  Time begin = from;
  for (Step step = steps_.at(from); !(step == steps_.end());) {
    while (!fits(step)) {
      step = steps_.next(step);
      if (step == steps_.end()) return std::nullopt;
      begin = steps_.begin(step);
    }
    if (!(begin < before)) return std::nullopt;
    const Time until = std::min(begin + length, before);
    do step = steps_.next(step);
    while (!(step == steps_.end()) && steps_.begin(step) < until && fits(step));
    if (step == steps_.end() || steps_.begin(step) >= until) return begin;
  }
  return std::nullopt;
}

}  // namespace gpusched
