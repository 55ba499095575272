// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/hierarchical_shares.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace gpusched {

HierarchicalShares::HierarchicalShares(const Cluster& cluster, Options options) : options_(options), nodes_(1) {
  for (const gpusched::Node& node : cluster.nodes) {
    total_[0] += node.gpus * whole_gpu;
    total_[1] = std::min(unlimited, total_[1] + node.cpu_milli);
    total_[2] = std::min(unlimited, total_[2] + node.memory_mib);
  }
  for (std::int64_t& total : total_) total = total == unlimited ? 0 : total;
}

std::uint32_t HierarchicalShares::add(std::uint32_t parent, std::int64_t weight_milli) {
  nodes_.push_back({.parent = parent, .weight_milli = weight_milli});
  count_in_parent(nodes_.back(), +1);
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

void HierarchicalShares::submitted(std::uint32_t leaf, const Shape& shape) { wait(leaf, shape, +1); }

void HierarchicalShares::withdrawn(std::uint32_t leaf, const Shape& shape) { wait(leaf, shape, -1); }

void HierarchicalShares::started(std::uint32_t leaf, const Shape& shape) {
  hold(leaf, shape, +1);
  wait(leaf, shape, -1);
}

void HierarchicalShares::left(std::uint32_t leaf, const Shape& shape) { hold(leaf, shape, -1); }

bool HierarchicalShares::refresh() {
  std::uint8_t saturated = 0;
  for (std::size_t r = 0; r < total_.size(); ++r) {
    if (options_.rescale && total_[r] > 0 && held_[r] >= total_[r]) saturated |= static_cast<std::uint8_t>(1u << r);
  }
  if (saturated == saturated_) return false;
  const std::uint8_t before = std::exchange(saturated_, saturated);
  if (is_blocked(nodes_[root].wants)) {  // nothing can start, and nothing is compared
    saturated_ = before;
    return false;
  }
  for (auto number = static_cast<std::uint32_t>(nodes_.size()); number-- > 1;) {
    if (!nodes_[number].groups.empty()) update(number);
  }
  return true;
}

bool HierarchicalShares::has_fallen() { return std::exchange(has_fallen_, false); }

std::vector<std::uint32_t> HierarchicalShares::take_changed() { return std::exchange(changed_, {}); }

std::uint8_t HierarchicalShares::resources_of(const Shape& shape) const {
  const Resources wanted{shape.gpu_milli_per_task, shape.cpu_milli_per_task, shape.memory_mib_per_task};
  std::uint8_t set = 0;
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    if (total_[r] > 0 && wanted[r] > 0) set |= static_cast<std::uint8_t>(1u << r);
  }
  return set;
}

bool HierarchicalShares::is_blocked(Wants wants) const {
  for (std::uint8_t set = 0; set < 8; ++set) {
    if ((wants >> set & 1) != 0 && (set & saturated_) == 0) return false;
  }
  return true;
}

void HierarchicalShares::wait(std::uint32_t leaf, const Shape& shape, int sign) {
  const std::uint8_t set = resources_of(shape);
  std::uint32_t& jobs = nodes_[leaf].wanted_by[set];
  jobs += static_cast<std::uint32_t>(sign);
  const bool first_or_last = jobs == (sign > 0 ? 1u : 0u);
  if (first_or_last) leaf_changed(leaf, static_cast<Wants>(nodes_[leaf].wants ^ (1u << set)));
}

void HierarchicalShares::hold(std::uint32_t leaf, const Shape& shape, int sign) {
  const Resources each{shape.gpu_milli_per_task, shape.cpu_milli_per_task, shape.memory_mib_per_task};
  for (std::size_t r = 0; r < each.size(); ++r) {
    const std::int64_t change = sign * std::int64_t{shape.tasks} * each[r];
    held_[r] += change;
    nodes_[leaf].amount[r] += change;
  }
  leaf_changed(leaf, nodes_[leaf].wants);
}

void HierarchicalShares::leaf_changed(std::uint32_t number, Wants wants) {
  Node& leaf = nodes_[number];
  count_in_parent(leaf, -1);
  leaf.wants = wants;
  for (std::size_t r = 0; r < total_.size(); ++r) {
    leaf.held[r] = total_[r] > 0 ? mul_div(leaf.amount[r], whole, total_[r]) : 0;
  }
  set_share(leaf, 0);
  count_in_parent(leaf, +1);
  for (std::uint32_t above = leaf.parent; above != root && update(above);) above = nodes_[above].parent;
}

// Computes an inner node anew from its groups; false if it stays as it was.
bool HierarchicalShares::update(std::uint32_t number) {
  Node& node = nodes_[number];
  Node now = {.weight_milli = node.weight_milli};
  sum_up(node, now.held);
  for (std::size_t set = 0; set < node.wanted_by.size(); ++set) {
    if (node.wanted_by[set] > 0) now.wants |= static_cast<Wants>(1u << set);
  }
  set_share(now, saturated_);
  if (now.held == node.held && now.wants == node.wants && now.exact_share == node.exact_share) return false;
  count_in_parent(node, -1);
  has_fallen_ = has_fallen_ || now.share < node.share;
  if (node.parent == root && now.share != node.share) changed_.push_back(number);
  node.held = now.held;
  node.wants = now.wants;
  node.exact_share = now.exact_share;
  node.share = now.share;
  count_in_parent(node, +1);
  return true;
}

void HierarchicalShares::sum_up(const Node& node, Resources& held) const {
  std::optional<std::int64_t> least;
  for (const auto& [wants, group] : node.groups) {
    if (group.exact_shares.empty() || is_blocked(wants)) continue;
    least = std::min(least.value_or(*group.exact_shares.begin()), *group.exact_shares.begin());
  }
  for (const auto& [wants, group] : node.groups) {
    const bool in_full = !options_.rescale || is_blocked(wants);
    for (std::size_t r = 0; r < held.size(); ++r) {
      const Wide part = in_full ? group.held[r] : (group.by_share[r] * least.value_or(0) + whole / 2) / whole;
      held[r] += static_cast<std::int64_t>(part);
    }
  }
}

void HierarchicalShares::set_share(Node& node, std::uint8_t left_out) {
  constexpr std::int64_t grain = 1000;  // 1e-9
  std::int64_t dominant = 0;
  for (std::size_t r = 0; r < node.held.size(); ++r) {
    if ((left_out >> r & 1) == 0) dominant = std::max(dominant, node.held[r]);
  }
  node.exact_share = mul_div(dominant, 1000, node.weight_milli);
  node.share = (node.exact_share + grain / 2) / grain * grain;
}

void HierarchicalShares::count_in_parent(const Node& node, int sign) {
  Node& parent = nodes_[node.parent];
  for (std::size_t set = 0; set < node.wanted_by.size(); ++set) {
    if ((node.wants >> set & 1) != 0) parent.wanted_by[set] += static_cast<std::uint32_t>(sign);
  }
  if (node.parent == root) {
    for (std::size_t set = 0; set < parent.wanted_by.size(); ++set) {
      parent.wants = static_cast<Wants>((parent.wants & ~(1u << set)) | (parent.wanted_by[set] > 0 ? 1u << set : 0u));
    }
    return;  // the root's share is never read
  }
  Group& group = parent.groups[node.wants];
  for (std::size_t r = 0; r < node.held.size(); ++r) {
    group.held[r] += sign * Wide{node.held[r]};
    if (node.exact_share > 0) group.by_share[r] += sign * (Wide{node.held[r]} * whole / node.exact_share);
  }
  if (options_.skip_empty && node.held == Resources{}) return;
  if (sign > 0) {
    group.exact_shares.insert(node.exact_share);
  } else {
    group.exact_shares.erase(group.exact_shares.find(node.exact_share));
  }
}

}  // namespace gpusched
