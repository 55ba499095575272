// SPDX-License-Identifier: Apache-2.0
/// Reading back what `search --out` wrote.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {

/// A row of front.csv: a policy on the held-out windows.
struct SearchPolicyRow {
  std::string policy;  ///< of a training its configuration's values
  bool found = false, clairvoyant = false;
  bool on_front = false;                        ///< no row dominates it in all objectives
  std::string dominated_by, message;            ///< message: why it has no figures
  std::vector<std::optional<double>> held_out;  ///< by objective
};

/// A row of generations.csv.
struct SearchGeneration {
  double generation = 0, hypervolume = 0, population_hypervolume = 0;
};

/// What `search --out` wrote.
struct SearchInput {
  std::string folder;
  std::vector<std::string> objectives;
  std::vector<SearchPolicyRow> policies;
  std::vector<SearchGeneration> generations;
  std::optional<double> compared_hypervolume;  ///< of the policies compared, in the training windows
  bool repeatable = true;
};

/// Errors: a file is missing, or has other columns than the manifest says.
Result<SearchInput> read_search_folder(const std::string& folder, const Json& manifest);

}  // namespace gpusched
