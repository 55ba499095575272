// SPDX-License-Identifier: Apache-2.0
/// What a search is asked for but its base and its policies: the options of `gpusched search`.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/types.hpp"
#include "src/base/field_table.hpp"

namespace gpusched {

struct SearchSettings {
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
};

/// The pointers live as long as `search`.
FieldTable search_fields(SearchSettings& search);

}  // namespace gpusched
