// SPDX-License-Identifier: Apache-2.0
/// The figures of a report, computed from what runs wrote.
#pragma once

#include <vector>

#include "src/report/figure.hpp"
#include "src/report/run_folder.hpp"

namespace gpusched {

/// Of the policies that replay ran: distributions, levels over time, groups of jobs, fronts, load curves, nodes. A
/// figure that has nothing to show (one virtual cluster, one load) is left out.
std::vector<Figure> replay_figures(const std::vector<ReplayRun>& runs);

/// Intervals of differences that evaluate found, and learning curves.
std::vector<Figure> evaluation_figures(const std::vector<EvaluationRow>& rows);
std::vector<Figure> training_figures(const std::vector<TrainingRun>& runs);

}  // namespace gpusched
