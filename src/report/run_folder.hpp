// SPDX-License-Identifier: Apache-2.0
/// Reading back what `replay`, `federate`, `evaluate`, `compare`, `train`, `sweep` and `search` wrote by --out.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "src/base/strict_json.hpp"
#include "src/report/over_time.hpp"
#include "src/report/search_folder.hpp"
#include "src/report/site_folder.hpp"
#include "src/report/sweep_folder.hpp"

namespace gpusched {

/// A row of jobs.csv.
struct JobRow {
  std::string name;
  Time submit{}, end{}, wait{}, completion{};
  bool measured = true;  ///< inside the window that the metrics are of
  bool averaged = true;  ///< measured, and averages count it: not refused, and nobody would cancel it
  bool passed = false;   ///< its status says that it succeeded
  MilliGpu gpu_milli = 0;
  Time ran{};
};

/// A row of intervals.csv.
struct IntervalRow {
  std::uint32_t job = 0;   ///< place in ReplayRun::jobs
  std::uint32_t node = 0;  ///< place in ReplayRun::nodes
  MilliGpu gpu_milli = 0;
  Time start{}, end{};
};

/// One policy of a folder of replay.
struct ReplayRun {
  std::string label;   ///< the policy; with its folder where several folders have that policy
  std::string folder;  ///< of the replay, as the user named it
  std::string policy, run_times;
  bool clairvoyant = false;
  std::string trace, cluster;
  double gpus = 0;  ///< of the cluster
  Json summary;     ///< summary.json: metrics, saturation, splits
  std::vector<JobRow> jobs;
  std::vector<std::string> nodes;      ///< in natural order: node2 before node10
  std::vector<IntervalRow> intervals;  ///< in order of start
  std::vector<ServiceRun> services = {};
  std::vector<PowerRow> power = {};  ///< where the timeline was kept
  bool of_sweep = false;             ///< one of a sweep's runs, which its own figures hold all of

  /// A metric of summary.json; nothing where it is null or not there.
  [[nodiscard]] std::optional<double> metric(std::string_view name) const;
};

/// A row of comparison.csv of evaluate; texts as they stand there, "" where there is none.
struct EvaluationRow {
  std::string folder, trace, name, run_times, figure, against, verdict;
  bool clairvoyant = false;
  std::optional<double> mean;
  std::optional<double> relative_difference, relative_low, relative_high, win_rate;
  std::optional<double> p_holm = {}, rank_biserial = {};  ///< of the signed-rank test; older files have none
  /// Of the difference, of the whole log, and what windows say; older files have none.
  std::optional<double> p_mean = {}, log_difference = {};
  std::string typical = {}, why = {};
};

/// A row of effects.csv of evaluate: one effect of one policy on a whole log, or a policy without comparison.
struct EffectRow {
  std::string folder, trace, name, run_times, figure, against, figure_verdict, grows;
  bool clairvoyant = false;
  double batches = 0, unended = 0;
  std::string effect = {};  ///< "" for the policy that the others are compared with
  std::optional<double> ours = {}, theirs = {}, difference = {}, low = {}, high = {}, p_holm = {};
  bool relative = false;  ///< what the difference is: a share of theirs
  std::string verdict = {};
};

/// A row of compare.csv: one figure of one world.
struct WorldRow {
  std::string folder, world, figure, mode, verdict;
  std::optional<double> value, base, difference, low, high, p_holm;
  bool relative = true;  ///< what the interval is of
};

/// metrics.csv of one training run.
struct TrainingRun {
  std::string folder, label;  ///< seeds of one training share the folder
  struct Point {
    double iteration = 0;
    std::optional<double> loss, validation;  ///< as a ratio to the heuristic's
  };
  std::vector<Point> points;
};

/// What the folders hold, in the order in which they were named.
struct ReportInput {
  std::vector<ReplayRun> replays;
  std::vector<EvaluationRow> evaluations;
  std::vector<EffectRow> effects;
  std::vector<WorldRow> worlds = {};
  std::vector<TrainingRun> trainings;
  std::vector<SweepInput> sweeps;
  std::vector<SearchInput> searches;
  std::vector<FederationInput> federations = {};
  std::vector<std::string> notes;  ///< what a reader should know: warnings of the runs, policies that did not finish
};

/// Reads every folder. Errors: a folder that is no run, one that did not finish, or files that do not belong together.
Result<ReportInput> read_run_folders(const std::vector<std::string>& folders);

}  // namespace gpusched
