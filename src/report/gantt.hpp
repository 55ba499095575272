// SPDX-License-Identifier: Apache-2.0
/// Which job held which GPUs of which node when, as rectangles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/report/run_folder.hpp"

namespace gpusched {

/// What one job held of one node: GPU thousandths [low, high) counted from the node's first GPU. A job whose GPUs do
/// not lie side by side has several.
struct GanttBox {
  std::uint32_t interval = 0;  ///< place in ReplayRun::intervals
  MilliGpu low = 0, high = 0;
};

/// The boxes of some nodes.
struct Gantt {
  std::vector<std::uint32_t> nodes;  ///< shown, ascending
  MilliGpu node_milli = 0;           ///< the most that a shown node had in use
  std::vector<GanttBox> boxes;       ///< in order of start
  bool cut = false;                  ///< even one node had too many intervals: those with the most GPU time are shown
};

/// The nodes of a run, all of them or, where they have more than `most` intervals, evenly spaced ones. A job takes the
/// lowest GPUs that are free: csv files tell how many GPUs it held, not which.
Gantt gantt_of(const ReplayRun& run, std::size_t most);

}  // namespace gpusched
