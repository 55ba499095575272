// SPDX-License-Identifier: Apache-2.0
/// CMA-ES: minimises a noisy function of a few hundred numbers at most without its gradient, by moving and reshaping
/// the normal distribution that it draws candidates from (Hansen, The CMA Evolution Strategy: A Tutorial,
/// arXiv:1604.00772, section B; positive recombination weights only).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {

struct CmaEsOptions {
  double step = 0.3;             ///< initial standard deviation of every number
  std::uint32_t population = 0;  ///< candidates of a generation; 0: 4 + 3 ln(dimensions), at least 12
};

/// Everything that a search needs to go on exactly; the covariance column by column.
struct CmaEsState {
  std::vector<double> mean, covariance, path, step_path;
  double step = 0;
  std::uint64_t generation = 0;
  std::array<std::uint64_t, 2> rng{};  ///< Rng::state()
};

/// Deterministic: the same start, options, stream and losses give the same candidates.
class CmaEs {
 public:
  /// Precondition: `start` is not empty.
  CmaEs(std::span<const double> start, const CmaEsOptions& options, Rng rng);
  CmaEs(CmaEs&&) noexcept;
  CmaEs& operator=(CmaEs&&) noexcept;
  ~CmaEs();

  [[nodiscard]] std::uint32_t population() const;
  /// The next generation's candidates, `population()` of them; valid until the next call.
  const std::vector<std::vector<double>>& ask();
  /// Their losses, in the same order; less is better, ties go to the earlier. Precondition: ask() came before, all are
  /// finite.
  void tell(std::span<const double> losses);

  /// The distribution's centre and its overall standard deviation.
  [[nodiscard]] std::vector<double> mean() const;
  [[nodiscard]] double step() const;

  /// Between tell() and ask(). Precondition of restore(): as many dimensions as this search has (fits()).
  [[nodiscard]] CmaEsState state() const;
  [[nodiscard]] bool fits(const CmaEsState& state) const;
  void restore(const CmaEsState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpusched
