// SPDX-License-Identifier: Apache-2.0
/// Search: the file of `gpusched search`, which says what is searched, by which figures, and on which windows.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/search/search_settings.hpp"
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
struct Search : SearchSettings {
  std::string file;  ///< for messages
  Json document;     ///< as it was read
  Json base;         ///< what every run has: keys of a sweep's base
  std::vector<SearchedPolicy> policies;

  /// One for each of objective_names.
  [[nodiscard]] std::vector<FigureObjective> objectives() const;
  /// False when a figure is a measured time.
  [[nodiscard]] bool repeatable() const;
};

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
