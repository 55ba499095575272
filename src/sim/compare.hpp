// SPDX-License-Identifier: Apache-2.0
/// Compare: a base scenario and worlds beside it that differ in any of its fields, run on the same jobs and compared by
/// the method of evaluate: what `gpusched compare` does, for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/world_variation.hpp"

namespace gpusched {

/// Jobs of a window, at most.
inline constexpr std::uint64_t most_window_jobs = 1'000'000'000;

/// How worlds are compared.
struct CompareOptions {
  std::vector<std::string> metrics = {};  ///< names of metric_table(); empty: the usual ones
  std::string mode = "auto";              ///< log, windows, or auto: log where it is long enough
  std::uint64_t window_jobs = 1024;       ///< of each window, side by side
  std::uint64_t threads = 1;              ///< worlds that run at the same time; 0: one for each processor
};

/// A world, read and checked.
struct LoadedWorld {
  World world;
  ReplayInput input;          ///< but its conditions, which are in `options`
  EvaluationOptions options;  ///< how it runs
  bool same_jobs = true;      ///< as the base has: the same names and times of submission
};

/// Everything that a comparison needs.
struct ComparePlan {
  std::vector<LoadedWorld> worlds;  ///< the base first
  std::vector<const MetricInfo*> metrics;
  CompareOptions options;

  /// Runs that it is made of, at most.
  [[nodiscard]] std::uint64_t runs() const;
};

/// One figure of one world beside the base's.
struct WorldFigure {
  const MetricInfo* metric = nullptr;
  std::size_t world = 0;              ///< in ComparePlan::worlds, above 0
  std::optional<double> value, base;  ///< of the whole run; nothing where it did not end or does not know it
  /// 95 % of the relative difference, or of the difference where the figure may be 0; nothing where there is none.
  std::optional<ConfidenceInterval> interval = {};
  bool relative = true;                                           ///< what the interval is of
  std::optional<double> window_mean = {}, base_window_mean = {};  ///< where windows are compared
  std::optional<double> p_holm = {};                              ///< corrected for the worlds
  std::string verdict = {};  ///< better, worse, or why there is none, in the words of evaluate

  /// value / base - 1; nothing where one is unknown or the base is 0.
  [[nodiscard]] std::optional<double> relative_difference() const;
};

/// What came of it.
struct CompareOutcome {
  std::string mode;                               ///< log or windows
  std::string note;                               ///< why windows and not the log; else empty
  std::vector<std::string> failures;              ///< by world; why its run did not end, else ""
  std::vector<bool> clairvoyant;                  ///< by world
  std::vector<std::optional<Metrics>> metrics;    ///< by world, of all jobs; nothing where the run did not end
  std::vector<std::vector<WorldFigure>> figures;  ///< [metric][world - 1]
};

/// Reads every world. Errors are the user's: bad input or usage, a metric that does not exist or that no world knows.
Result<ComparePlan> load_comparison(std::vector<World> worlds, const CompareOptions& options,
                                    const PolicyRegistry& registry);

/// Runs every world and compares them; the result does not depend on the number of threads. Errors: a policy that
/// cannot be made, a base that did not end, an interruption.
Result<CompareOutcome> run_comparison(const ComparePlan& plan, const PolicyRegistry& registry,
                                      EvaluationProgress& progress);

}  // namespace gpusched
