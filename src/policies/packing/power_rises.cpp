// SPDX-License-Identifier: Apache-2.0
#include "src/policies/packing/power_rises.hpp"

#include <algorithm>

namespace gpusched {

void PowerRises::began(const View& view, JobId job) {
  const detail::EngineState& state = detail::StateOf::get(view);
  view.for_each_grant(job, [&](const Grant& grant) {
    NodeRuns& runs = runs_[index(grant.node)];
    const detail::Occupant occupant =
        draws_.occupant(state, grant.node, job, grant.tasks, state.card_of(job, grant), top_level());
    runs.occupants.insert(std::upper_bound(runs.occupants.begin(), runs.occupants.end(), occupant), occupant);
    runs.mw = -1;
  });
}

void PowerRises::left(NodeId node, JobId job) {
  NodeRuns& runs = runs_[index(node)];
  std::erase_if(runs.occupants, [job](const detail::Occupant& occupant) { return occupant.job == job; });
  runs.mw = -1;
}

std::int64_t PowerRises::measure(NodeId node, const std::vector<detail::Occupant>& occupants) {
  there_.clear();
  for (const detail::Occupant& occupant : occupants) there_.push_back(&occupant);
  if (parts_.size() < occupants.size()) parts_.resize(occupants.size());
  return draws_.measure(node, detail::NodePhase::on, there_, std::span(parts_).first(occupants.size())).mw;
}

std::int32_t PowerRises::watts(const View& view, JobId job, NodeId node, std::uint32_t device) {
  NodeRuns& runs = runs_[index(node)];
  if (runs.mw < 0) runs.mw = measure(node, runs.occupants);
  const std::uint32_t card = device == no_index ? no_index : view.cluster().card(node, device);
  const detail::Occupant task = draws_.occupant(detail::StateOf::get(view), node, job, 1, card, top_level());
  with_task_ = runs.occupants;
  with_task_.insert(std::upper_bound(with_task_.begin(), with_task_.end(), task), task);
  return static_cast<std::int32_t>((measure(node, with_task_) - runs.mw) / 1000);
}

}  // namespace gpusched
