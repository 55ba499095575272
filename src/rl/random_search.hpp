// SPDX-License-Identifier: Apache-2.0
/// Random search: draws candidates around a centre, which moves to the best of them. The plainest search, for
/// comparison: an evolution strategy (1, population) whose step never changes (Rechenberg, Evolutionsstrategie, 1973).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {

struct RandomSearchOptions {
  double step = 0.1;              ///< standard deviation of every number around the centre
  std::uint32_t population = 16;  ///< candidates of a generation
};

/// Everything that a search needs to go on exactly.
struct RandomSearchState {
  std::vector<double> mean;  ///< the centre
  std::uint64_t generation = 0;
};

/// Deterministic: the same start, options, stream and losses give the same candidates.
class RandomSearch {
 public:
  /// Precondition: `start` is not empty, at least one candidate.
  RandomSearch(std::span<const double> start, const RandomSearchOptions& options, Rng rng);

  [[nodiscard]] std::uint32_t population() const { return options_.population; }
  /// The next generation's candidates; valid until the next call.
  const std::vector<std::vector<double>>& ask();
  /// Their losses, in the same order; less is better, ties go to the earlier. Precondition: ask() came before.
  void tell(std::span<const double> losses);

  [[nodiscard]] const std::vector<double>& mean() const { return state_.mean; }
  [[nodiscard]] double step() const { return options_.step; }

  /// Between tell() and ask(). Precondition of restore(): fits().
  [[nodiscard]] const RandomSearchState& state() const { return state_; }
  [[nodiscard]] bool fits(const RandomSearchState& state) const { return state.mean.size() == state_.mean.size(); }
  void restore(RandomSearchState state);

 private:
  RandomSearchOptions options_;
  Rng rng_;
  RandomSearchState state_;
  std::vector<std::vector<double>> candidates_;
};

}  // namespace gpusched
