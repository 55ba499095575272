// SPDX-License-Identifier: Apache-2.0
/// The tables of a report: runs side by side, with intervals of their differences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"
#include "src/report/figure.hpp"
#include "src/report/run_folder.hpp"

namespace gpusched {

/// A table; its first column holds names. The page escapes the cells.
struct ReportTable {
  std::string title, caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// The name, with a star where the policy knows true run times; `star_note` explains it below a table.
std::string marked(const std::string& name, bool clairvoyant);
inline constexpr const char* star_note = " * knows true run times, which no real scheduler does.";

/// "[-3.1%, +2.0%]".
std::string interval_cell(const ConfidenceInterval& interval);

/// How a figure of two runs of the same jobs differs.
struct RunDifference {
  double relative = 0;  ///< (ours - theirs) / theirs of the means over all jobs
  Result<PairedIntervals> intervals;
};

/// The difference in mean completion time, from batches of consecutive jobs in order of submission (batch means: Law
/// and Carson, Operations Research 27(5), 1979), which both runs are seen on: a block bootstrap over them sees that
/// neighbours depend on each other. The Error's message is paired_intervals()', or that the runs are not of the same
/// jobs.
RunDifference completion_difference(const ReplayRun& ours, const ReplayRun& theirs);

/// Of each run from the first of its folder. Of the first itself from the run of the same policy in the first of all
/// folders, or the first run there, where both ran the same jobs; else nothing.
using Differences = std::vector<std::optional<RunDifference>>;
Differences differences_of(const std::vector<ReplayRun>& runs);

/// One row a run.
ReportTable replay_table(const std::vector<ReplayRun>& runs, const Differences& differences);
/// One row a policy and trace, as evaluate compared them.
ReportTable evaluation_table_of(const std::vector<EvaluationRow>& rows);
/// One row a policy, trace and effect, as evaluate compared whole logs.
ReportTable effect_table_of(const std::vector<EffectRow>& rows);
/// One row a world and figure, as compare found them.
ReportTable world_table_of(const std::vector<WorldRow>& rows);
/// The differences as a figure; nothing where no run is compared.
std::optional<Figure> difference_figure(const std::vector<ReplayRun>& runs, const Differences& differences);

}  // namespace gpusched
