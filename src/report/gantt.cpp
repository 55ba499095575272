// SPDX-License-Identifier: Apache-2.0
#include "src/report/gantt.hpp"

#include <algorithm>
#include <utility>

namespace gpusched {
namespace {

// The GPUs of one node: what is in use, as boxes that have not ended.
class NodeLanes {
 public:
  // Gives `interval` the lowest free thousandths and returns its boxes.
  std::vector<GanttBox> place(const ReplayRun& run, std::uint32_t interval) {
    const IntervalRow& row = run.intervals[interval];
    std::erase_if(used_, [&](const GanttBox& box) { return run.intervals[box.interval].end <= row.start; });
    std::vector<GanttBox> boxes;
    MilliGpu left = row.gpu_milli, free_from = 0;
    for (std::size_t i = 0; left > 0; ++i) {
      const MilliGpu free_to = i < used_.size() ? used_[i].low : free_from + left;
      if (const MilliGpu taken = std::min(left, free_to - free_from); taken > 0) {
        boxes.push_back({interval, free_from, free_from + taken});
        left -= taken;
      }
      if (i < used_.size()) free_from = used_[i].high;
    }
    used_.insert(used_.end(), boxes.begin(), boxes.end());
    std::sort(used_.begin(), used_.end(), [](const GanttBox& a, const GanttBox& b) { return a.low < b.low; });
    return boxes;
  }

 private:
  std::vector<GanttBox> used_;  // by rising place, none over another
};

std::vector<std::uint32_t> evenly_spaced(std::size_t count, std::size_t all) {
  std::vector<std::uint32_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = static_cast<std::uint32_t>((2 * i + 1) * all / (2 * count));
  return places;
}

// The intervals on these nodes, by start.
std::vector<std::uint32_t> intervals_on(const ReplayRun& run, const std::vector<std::uint32_t>& nodes) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < run.intervals.size(); ++i) {
    if (std::binary_search(nodes.begin(), nodes.end(), run.intervals[i].node)) found.push_back(i);
  }
  return found;
}

// Of `intervals` the `most` with the most GPU time, by start.
std::vector<std::uint32_t> largest(const ReplayRun& run, std::vector<std::uint32_t> intervals, std::size_t most) {
  const auto gpu_time = [&](std::uint32_t i) {
    const IntervalRow& row = run.intervals[i];
    return static_cast<double>(row.gpu_milli) * to_seconds(row.end - row.start);
  };
  std::stable_sort(intervals.begin(), intervals.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return gpu_time(a) > gpu_time(b); });
  intervals.resize(std::min(intervals.size(), most));
  std::sort(intervals.begin(), intervals.end());
  return intervals;
}

void add_boxes(const ReplayRun& run, const std::vector<std::uint32_t>& intervals, Gantt& gantt) {
  std::vector<NodeLanes> lanes(gantt.nodes.size());
  for (const std::uint32_t i : intervals) {
    const auto node = std::lower_bound(gantt.nodes.begin(), gantt.nodes.end(), run.intervals[i].node);
    for (const GanttBox& box : lanes[static_cast<std::size_t>(node - gantt.nodes.begin())].place(run, i)) {
      gantt.node_milli = std::max(gantt.node_milli, box.high);
      gantt.boxes.push_back(box);
    }
  }
}

}  // namespace

Gantt gantt_of(const ReplayRun& run, std::size_t most) {
  constexpr std::size_t most_nodes = 64;  // that a screen can show
  Gantt gantt;
  std::vector<std::uint32_t> intervals;
  std::size_t count = std::min(run.nodes.size(), most_nodes);
  for (;; count = count * 4 / 5) {
    gantt.nodes = evenly_spaced(count, run.nodes.size());
    intervals = intervals_on(run, gantt.nodes);
    if (intervals.size() <= most || count <= 1) break;
  }
  gantt.cut = intervals.size() > most;
  add_boxes(run, gantt.cut ? largest(run, std::move(intervals), most) : intervals, gantt);
  return gantt;
}

}  // namespace gpusched
