// SPDX-License-Identifier: Apache-2.0
/// Search: the file of `gpusched search`, which says what is searched, by which figures, and on which windows.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_table.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/search/search_space.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sweep/sweep_store.hpp"

namespace gpusched {

/// The objective that is a measured time: microseconds of the simulation, on the wall clock, for each of its events. It
/// differs from run to run.
inline constexpr const char* latency_objective = "decision_latency_us";

/// A figure that is searched for the best of.
struct FigureObjective {
  std::string name;
  const MetricInfo* metric = nullptr;  ///< nullptr: latency_objective

  /// Nothing where the run does not know it.
  [[nodiscard]] std::optional<double> value(const SweepResult& result) const;
  /// What is minimised: the mean itself, or of a share that is better when larger, what is missing to 1. Never below 0.
  [[nodiscard]] double loss(double mean) const;
};

/// A search as the user wrote it.
struct Search {
  std::string file;  ///< for messages
  Json document;     ///< as it was read
  Json base;         ///< what every run has: keys of a sweep's base
  std::vector<SearchedPolicy> policies;
  std::vector<std::string> objective_names, compare;
  std::string method = "nsga2";
  std::uint64_t population = 32, generations = 10;
  std::uint64_t front = 0;  ///< found policies that are run on the held-out windows, at most; 0: the population
  std::uint64_t window_jobs = 256, warmup_jobs = 0;
  std::uint64_t train_windows = 4, held_out_windows = 4;
  double train_share = 0.5;  ///< of the trace's jobs, from the first on: training windows lie there
  std::uint64_t rungs = 3;   ///< of method halving
  std::uint64_t keep = 3;    ///< one of so many goes on to the next rung
  std::uint64_t seed = 0;    ///< of the search; that of the runs is /base/seed
  std::string out;
  std::uint64_t threads = 1;  ///< runs at the same time; 0: one for each processor
  Time time_limit{};          ///< of a run, on the wall clock; 0: none

  /// One for each of objective_names.
  [[nodiscard]] std::vector<FigureObjective> objectives() const;
  /// False when a figure is a measured time.
  [[nodiscard]] bool repeatable() const;
};

/// Every field but base and policies. The pointers live as long as `search`.
FieldTable search_own_fields(Search& search);

/// Reads a search from JSON, or from the "config" of a search's manifest. `file` is for messages only. Errors: not
/// JSON, a key that does not exist (with its path and the nearest name), a value of another type, a range that the
/// parameter does not have.
Result<Search> read_search_json(const std::string& text, const std::string& file, const PolicyRegistry& registry);
/// read_search_json() of a file.
Result<Search> read_search_file(const std::string& path, const PolicyRegistry& registry);

/// What cannot be seen field by field. Errors name the path in the file.
Result<void> check_search(const Search& search);

/// The JSON Schema (draft 2020-12) of such files; docs/search.schema.json is this text.
std::string search_schema();

}  // namespace gpusched
