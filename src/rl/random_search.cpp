// SPDX-License-Identifier: Apache-2.0
#include "src/rl/random_search.hpp"

#include <algorithm>
#include <utility>

#include "gpusched/core/config.hpp"

namespace gpusched {

RandomSearch::RandomSearch(std::span<const double> start, const RandomSearchOptions& options, Rng rng)
    : options_(options), rng_(rng) {
  GPUSCHED_ASSERT(!start.empty() && options.population > 0, "nothing to search");
  state_.mean.assign(start.begin(), start.end());
}

// Pure functions of generation and candidate: nothing of the draws has to be kept to go on.
const std::vector<std::vector<double>>& RandomSearch::ask() {
  candidates_.assign(options_.population, state_.mean);
  for (std::uint32_t i = 0; i < options_.population; ++i) {
    Rng draw = rng_.split(state_.generation).split(i);
    for (double& value : candidates_[i]) value += options_.step * draw.normal();
  }
  return candidates_;
}

void RandomSearch::tell(std::span<const double> losses) {
  GPUSCHED_ASSERT(losses.size() == candidates_.size(), "one loss for each candidate");
  const auto best = std::min_element(losses.begin(), losses.end()) - losses.begin();
  state_.mean = candidates_[static_cast<std::size_t>(best)];
  ++state_.generation;
}

void RandomSearch::restore(RandomSearchState state) {
  GPUSCHED_ASSERT(fits(state), "the state of a search of other dimensions");
  state_ = std::move(state);
}

}  // namespace gpusched
