// SPDX-License-Identifier: Apache-2.0
#include "src/policies/packing/power_rises.hpp"

#include <algorithm>

namespace gpusched {

PowerRises::NodeRuns& PowerRises::runs_on(NodeId node) {
  if (runs_.empty()) runs_.resize(model_->kind_of.size());
  return runs_[index(node)];
}

void PowerRises::began(const View& view, JobId job) {
  const auto level = static_cast<std::uint8_t>(draws_.table().top());
  view.for_each_grant(job, [&](const Grant& grant) {
    NodeRuns& runs = runs_on(grant.node);
    const detail::Occupant occupant{
        .job = job, .tasks = grant.tasks, .card = detail::StateOf::get(view).card_of(job, grant), .level = level};
    runs.occupants.insert(std::upper_bound(runs.occupants.begin(), runs.occupants.end(), occupant), occupant);
    runs.mw = -1;
  });
}

void PowerRises::left(NodeId node, JobId job) {
  NodeRuns& runs = runs_on(node);
  std::erase_if(runs.occupants, [job](const detail::Occupant& occupant) { return occupant.job == job; });
  runs.mw = -1;
}

std::int64_t PowerRises::measure(const View& view, NodeId node, const std::vector<detail::Occupant>& occupants) {
  if (parts_.size() < occupants.size()) parts_.resize(occupants.size());
  const std::span<detail::OccupantDraw> parts = std::span(parts_).first(occupants.size());
  return draws_.measure(detail::StateOf::get(view), node, detail::NodePhase::on, occupants, parts).mw;
}

std::int32_t PowerRises::watts(const View& view, JobId job, NodeId node, std::uint32_t device) {
  NodeRuns& runs = runs_on(node);
  if (runs.mw < 0) runs.mw = measure(view, node, runs.occupants);
  const detail::Occupant task{.job = job,
                              .tasks = 1,
                              .card = device == no_index ? no_index : view.cluster().card(node, device),
                              .level = static_cast<std::uint8_t>(draws_.table().top())};
  with_task_ = runs.occupants;
  with_task_.insert(std::upper_bound(with_task_.begin(), with_task_.end(), task), task);
  return static_cast<std::int32_t>((measure(view, node, with_task_) - runs.mw) / 1000);
}

}  // namespace gpusched
