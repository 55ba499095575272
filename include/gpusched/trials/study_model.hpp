// SPDX-License-Identifier: Apache-2.0
/// StudyModel: the studies of a run: searches whose trials are rows of the job table (JobTable::in_front).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/trials/trial_search.hpp"

namespace gpusched {

/// One study. Its rows in the job table are `tasks` in sequence, from `first_row` on.
struct StudySpec {
  std::string name;                           ///< of the study
  std::uint32_t first_row = 0;                ///< id of its first task in the job table
  Time begin{};                               ///< after the first submission of the trace
  std::uint32_t workers = 1;                  ///< tasks that wait or run at once, at most
  TrialRungs rungs;                           ///< where results are looked at
  TrialSearch search;                         ///< as it begins
  std::vector<TrialTask> tasks = {};          ///< those of search.tasks()
  std::vector<Time> units = {};               ///< how long a unit of each trial takes, at the reference rate
  std::vector<double> losses = {};            ///< of trial t at rung r: [t * rungs.count() + r]
  std::optional<double> target = {};          ///< loss that is enough
  bool stops_at_target = false;               ///< all of it ends then
  bool asks_late = true;                      ///< what waits for a GPU follows results that come meanwhile
  std::vector<double> report_gpu_hours = {};  ///< after which the best loss so far is told

  /// The loss of a trial at the end of a rung.
  [[nodiscard]] double loss(std::uint32_t trial, std::uint32_t rung) const {
    return losses[trial * rungs.count() + rung];
  }
  /// Number of the task of a trial and rung in `tasks`. Precondition: it is there.
  [[nodiscard]] std::uint32_t number_of(const TrialTask& task) const {
    const auto before = [](const TrialTask& a, const TrialTask& b) {
      return a.trial != b.trial ? a.trial < b.trial : a.rung < b.rung;
    };
    return static_cast<std::uint32_t>(std::lower_bound(tasks.begin(), tasks.end(), task, before) - tasks.begin());
  }
  /// Work of a task at the reference rate.
  [[nodiscard]] Time work(const TrialTask& task) const { return Time{units[task.trial].us * (task.to - task.from)}; }
};

/// All of them.
struct StudyModel {
  std::vector<StudySpec> studies;  ///< in the order of their rows

  /// True when there are none.
  [[nodiscard]] bool is_empty() const { return studies.empty(); }
  /// The row behind those of all studies; 0 without any.
  [[nodiscard]] std::uint32_t end_row() const {
    if (studies.empty()) return 0;
    return studies.back().first_row + static_cast<std::uint32_t>(studies.back().tasks.size());
  }
};

}  // namespace gpusched
