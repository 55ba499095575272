// SPDX-License-Identifier: Apache-2.0
/// PolicySearch: what `gpusched search` does. Candidates are chosen on training windows; the front is then run on the
/// held-out windows beside the heuristics. Every run is stored, so that the same search goes on where it was stopped:
/// it proposes the same candidates again and finds their figures.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/search/candidate_runs.hpp"
#include "src/search/search_file.hpp"
#include "src/search/trainings.hpp"

namespace gpusched {

/// After the first population and after each generation.
struct GenerationReport {
  std::uint32_t generation = 0;
  std::uint64_t candidates = 0;       ///< different ones so far
  std::uint64_t failed = 0;           ///< of them without figures
  std::uint64_t front = 0;            ///< of them dominated by no other in the training windows
  double hypervolume = 0;             ///< of the front, a share of the box below the reference point
  double population_hypervolume = 0;  ///< of those who live in this generation
};

/// A policy that was proposed.
struct FoundPolicy {
  std::string policy;       ///< as --policy takes it
  std::string description;  ///< of a training its configuration's values; else the policy
  std::uint32_t generation = 0;
  PolicyFigures train;
};

/// A row of the comparison.
struct FrontRow {
  bool found = false;  ///< by the search; else one of `compare`
  std::string policy, description;
  bool clairvoyant = false;  ///< reads true run times
  PolicyFigures train, held_out;
  bool on_front = false;     ///< in the held-out windows no row dominates it
  std::string dominated_by;  ///< a row of the other kind that does, in the held-out windows; empty: none
};

/// Hypervolumes of one set of windows. The box reaches from the best that is possible to 1.1 times the worst of the
/// heuristics in each objective.
struct SearchVolumes {
  std::vector<double> reference;  ///< losses
  double found = 0, heuristics = 0, both = 0;
  double blind = 0;  ///< of the heuristics that do not know true run times
};

struct SearchOutcome {
  std::vector<GenerationReport> generations;
  std::vector<FoundPolicy> candidates;  ///< in the order in which they were proposed
  std::vector<FrontRow> rows;           ///< found ones by their first objective, then `compare`
  SearchVolumes train, held_out;
};

/// What a search is told of its surroundings.
struct SearchContext {
  TrainingMethod* ppo = nullptr;            ///< train_by_ppo() where trainings may use it: it loads LibTorch
  const std::atomic<bool>* stop = nullptr;  ///< once true, no further run begins and the search ends with an Error
  std::function<void(const GenerationReport&)> watch = {};
};

/// Carries the search out. Errors: those of the user's input, a heuristic that fails, `stop`, and files that cannot be
/// written; `outcome` then holds generations, and candidates with figures, as far as it got. Preconditions:
/// has_pagmo(), check_search(), `runs` has its store.
Result<void> search_policies(const Search& search, CandidateRuns& runs, const SearchContext& context,
                             SearchOutcome& outcome);

/// Why no candidate has figures, by the first one; "" where one has.
std::string why_all_failed(const SearchOutcome& outcome);

/// Before anything runs: whether the corners of the space can be made. Errors name the path in the file.
Result<void> check_space(const Search& search, const CandidateRuns& runs);

}  // namespace gpusched
