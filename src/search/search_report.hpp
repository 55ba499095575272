// SPDX-License-Identifier: Apache-2.0
/// The files and the table of a search.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/search/policy_search.hpp"
#include "src/sim/report.hpp"

namespace gpusched {

/// Name and content: front.csv, generations.csv, candidates.csv, manifest.json. The csv files are the same for the same
/// search, for any number of processes and however often it was interrupted. One that was `interrupted` has no front
/// and no hypervolumes yet.
std::vector<std::pair<std::string, std::string>> search_files(const Search& search, const CandidateRuns& runs,
                                                              const SearchOutcome& outcome, const Execution& execution,
                                                              bool interrupted = false);

/// The front and the heuristics on the held-out windows, and what it comes to, in sentences.
std::string search_text(const Search& search, const SearchOutcome& outcome, const TextStyle& style = {});

/// "generation 3: 96 policies, 12 on the front, hypervolume 0.4132".
std::string generation_text(const GenerationReport& report);

}  // namespace gpusched
