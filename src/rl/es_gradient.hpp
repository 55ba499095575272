// SPDX-License-Identifier: Apache-2.0
/// ES gradient: minimises a noisy function of many numbers by Adam, along a gradient that is estimated from pairs of
/// candidates on opposite sides of the centre: mean over pairs of (loss+ - loss-) / (2 step) times the pair's direction
/// (Salimans et al., arXiv:1703.03864, section 2; mirrored pairs as in Brockhoff et al., PPSN 2010). Where both of a
/// pair meet the same luck, most of the noise cancels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {

struct EsOptions {
  double step = 0.05;           ///< standard deviation of every number around the centre
  std::uint32_t pairs = 512;    ///< of a generation
  double learning_rate = 0.01;  ///< of Adam (Kingma and Ba, arXiv:1412.6980; means over 10 and 100 generations)
};

/// Everything that a search needs to go on exactly.
struct EsState {
  std::vector<double> mean;             ///< the centre
  std::vector<double> momentum, power;  ///< running means of the gradient and of its square
  std::uint64_t generation = 0;
};

/// Deterministic: the same start, options, stream and losses give the same candidates.
class EsGradient {
 public:
  /// Precondition: `start` is not empty, at least one pair.
  EsGradient(std::span<const double> start, const EsOptions& options, Rng rng);

  /// Candidates of a generation: 2 and 2 + 1 are pair 1, and so on.
  [[nodiscard]] std::uint32_t population() const { return 2 * options_.pairs; }
  /// The next generation's candidates; valid until the next call.
  const std::vector<std::vector<double>>& ask();
  /// Their losses, in the same order; less is better. Precondition: ask() came before.
  void tell(std::span<const double> losses);

  [[nodiscard]] const std::vector<double>& mean() const { return state_.mean; }
  [[nodiscard]] double step() const { return options_.step; }
  /// The estimate that the last tell() made.
  [[nodiscard]] const std::vector<double>& gradient() const { return gradient_; }

  /// Between tell() and ask(). Precondition of restore(): fits().
  [[nodiscard]] const EsState& state() const { return state_; }
  [[nodiscard]] bool fits(const EsState& state) const;
  void restore(EsState state);

 private:
  [[nodiscard]] std::vector<double> direction(std::uint32_t pair) const;

  EsOptions options_;
  Rng rng_;
  EsState state_;
  std::vector<double> gradient_;
  std::vector<std::vector<double>> candidates_;
};

}  // namespace gpusched
