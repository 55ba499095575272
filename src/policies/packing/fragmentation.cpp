// SPDX-License-Identifier: Apache-2.0
#include "src/policies/packing/fragmentation.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpusched {

std::vector<TypicalPod> typical_pods(const JobTable& jobs, double coverage) {
  // Ordered by the tie rule, so that a stable sort by count completes it. GPU demands go by name: their numbers follow
  // the order of the rows, which must not matter.
  using Kind = std::tuple<std::int64_t, MilliGpu, std::uint32_t, std::string_view>;
  std::map<Kind, std::uint32_t, std::greater<>> counts;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const Shape& shape = jobs.shape(JobId{i});
    ++counts[{shape.cpu_milli_per_task, card_milli_of(shape), cards_of(shape), jobs.gpu_specs()[shape.gpu_spec]}];
  }
  std::vector<std::pair<Kind, std::uint32_t>> kinds(counts.begin(), counts.end());
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::uint64_t covered = 0;
  std::vector<TypicalPod> pods;
  for (const auto& [kind, count] : kinds) {
    const auto& [cpu_milli, card_milli, cards, gpu_spec] = kind;
    pods.push_back({cpu_milli, cards, card_milli, jobs.gpu_specs().find(gpu_spec), static_cast<double>(count)});
    covered += count;
    if (static_cast<double>(covered) >= coverage * jobs.size()) break;
  }
  for (TypicalPod& pod : pods) pod.share /= static_cast<double>(covered);
  return pods;
}

double fragmentation(const std::vector<TypicalPod>& pods, const NodeCapacity& node, const ClusterState& cluster) {
  MilliGpu idle = 0;
  for (const MilliGpu left : node.card_left) idle += left;
  double sum = 0;
  for (const TypicalPod& pod : pods) {
    MilliGpu too_small = 0;
    std::uint32_t fitting = 0;
    for (const MilliGpu left : node.card_left) {
      if (left >= pod.card_milli) {
        ++fitting;
      } else {
        too_small += left;
      }
    }
    const Shape demand{.gpu_milli_per_task = whole_gpu, .gpu_spec = pod.gpu_spec};
    const bool anywhere = pod.gpu_spec == 0 && !cluster.devices_differ();
    const bool fits = pod.cards > 0 && fitting >= pod.cards && pod.cpu_milli <= node.cpu_milli &&
                      (anywhere || cluster.node_allowed(node.node, demand, no_index));
    sum += pod.share * static_cast<double>(fits ? too_small : idle);
  }
  return sum;
}

}  // namespace gpusched
