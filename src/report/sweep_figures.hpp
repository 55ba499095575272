// SPDX-License-Identifier: Apache-2.0
/// What a report shows of a sweep: its runs by what varies, averaged over seeds and windows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/report/comparison.hpp"
#include "src/report/figure.hpp"
#include "src/report/sweep_folder.hpp"
#include "src/sim/grid_comparison.hpp"

namespace gpusched {

/// "40 of 100 runs are missing", a line for whatever is not there.
std::vector<std::string> sweep_notes(const SweepInput& sweep);

/// compare_grid() of its runs.
std::vector<GridComparison> compare_sweep(const SweepInput& sweep);

/// Policies compared in each setting; nothing where the policy does not vary.
std::optional<ReportTable> sweep_table(const SweepInput& sweep, const std::vector<GridComparison>& comparisons);

/// Differences, a curve for each key of numbers, and the Pareto front of each setting. `number` tells sweeps of one
/// page apart.
std::vector<Figure> sweep_page_figures(const SweepInput& sweep, const std::vector<GridComparison>& comparisons,
                                       std::size_t number);

}  // namespace gpusched
