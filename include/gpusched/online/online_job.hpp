// SPDX-License-Identifier: Apache-2.0
/// OnlineJob and OnlineCommand: what a host and its scheduler tell each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_record.hpp"

namespace gpusched {

/// A job as its host submits it. Names may be empty ("unknown").
struct OnlineJob {
  std::string id;               ///< distinct, not empty
  Time duration = Time::max();  ///< how long it will run; max() = not known, which clairvoyant policies refuse
  Time estimate = Time::max();  ///< run time that the user asked for; max() = none
  Shape shape{};                ///< what it asks for; gpu_spec below replaces Shape::gpu_spec
  std::string user = {};        ///< as JobRecord::user
  std::string group = {};       ///< as JobRecord::group
  std::string vc = {};          ///< as JobRecord::vc
  std::string name = {};        ///< as JobRecord::name
  std::string family = {};      ///< as JobRecord::family
  std::string gpu_spec = {};    ///< allowed GPU types, as GpuDemand takes them
  std::int32_t priority = 0;    ///< larger is more urgent
  Time deadline = Time::max();  ///< max() = none
};

/// What the host is to do with a job.
enum class OnlineAction : std::uint8_t {
  start,    ///< start it, or resume it after a preemption, on `nodes`
  preempt,  ///< suspend it; its nodes are free from now on
  move,     ///< let it run on, on `nodes` instead of those that it has
  cancel,   ///< give it up for good: it waits, perhaps since a preemption of this decision
};

/// Tasks of a gang on one node.
struct OnlinePart {
  NodeId node = no_node;      ///< where
  std::uint32_t tasks = 0;    ///< how many of the gang's tasks
  std::uint64_t devices = 0;  ///< bit d: GPU d of the node; 0 where GPUs are only counted

  /// Field by field.
  friend bool operator==(const OnlinePart&, const OnlinePart&) = default;
};

/// One command of a decision; the host carries them out in order.
struct OnlineCommand {
  OnlineAction action = OnlineAction::start;  ///< what to do
  JobId job = no_job;                         ///< OnlineScheduler::id() gives its name
  std::vector<OnlinePart> nodes = {};         ///< of a start or a move

  /// Field by field.
  friend bool operator==(const OnlineCommand&, const OnlineCommand&) = default;
};

}  // namespace gpusched
