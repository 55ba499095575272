// SPDX-License-Identifier: Apache-2.0
/// The figures of a report, computed from what runs wrote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/report/figure.hpp"
#include "src/report/run_folder.hpp"

namespace gpusched {

/// Of the policies that replay ran: distributions, levels over time, groups of jobs, fronts, load curves, nodes. A
/// figure that has nothing to show (one virtual cluster, one load) is left out.
std::vector<Figure> replay_figures(const std::vector<ReplayRun>& runs);

/// A point of a trade-off; `group` had the same jobs and cluster.
struct FrontPoint {
  std::string group, run;
  double x = 0, y = 0;
  bool on_front = true;
};
/// Mean completion time against another figure, with the Pareto front of each group; nothing of fewer than two points.
std::optional<Figure> front_figure_of(std::vector<FrontPoint> points, std::string id, std::string title,
                                      const char* y_title);

/// Intervals of differences that evaluate and compare found, and learning curves.
std::vector<Figure> world_figures(const std::vector<WorldRow>& rows);
std::vector<Figure> evaluation_figures(const std::vector<EvaluationRow>& rows);
std::vector<Figure> effect_figures(const std::vector<EffectRow>& rows);
std::vector<Figure> training_figures(const std::vector<TrainingRun>& runs);

}  // namespace gpusched
