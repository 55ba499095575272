// SPDX-License-Identifier: Apache-2.0
/// Bandits: which of several arms is pulled next, from the rewards of those pulled before. Rewards lie in [0, 1].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {

/// EXP3 of Auer, Cesa-Bianchi, Freund and Schapire, "The Nonstochastic Multiarmed Bandit Problem", SIAM J. Comput.
/// 32(1), 2002, section 3. Against any rewards, in expectation over its draws, the best arm alone brings at most (e -
/// 1) gamma G + K ln K / gamma more, where G is at least what that arm brings (theorem 3.1).
class Exp3 {
 public:
  /// `gamma` in (0, 1]: how much is explored.
  Exp3(std::size_t arms, double gamma, Rng rng) : gamma_(gamma), rng_(rng), log_weights_(arms) {}

  /// The arm to pull.
  [[nodiscard]] std::size_t choose();
  /// What the arm that was chosen last brought.
  void learn(double reward);
  /// The chance of each arm.
  [[nodiscard]] std::vector<double> chances() const;

 private:
  double gamma_;
  Rng rng_;
  std::vector<double> log_weights_;
  std::size_t chosen_ = 0;
  double chance_ = 1;  // with which that was chosen
};

/// UCB1 of Auer, Cesa-Bianchi and Fischer, "Finite-time Analysis of the Multiarmed Bandit Problem", Machine Learning
/// 47, 2002. Where each arm draws its rewards alike and independently, the regret after n pulls is at most 8 sum(ln n /
/// gap) + (1 + pi^2 / 3) sum(gap) over the arms below the best one (theorem 1). With a discount below 1, discounted UCB
/// of Garivier and Moulines, "On Upper-Confidence Bound Policies for Switching Bandit Problems", ALT 2011, with padding
/// 2 sqrt(xi ln n / N): for rewards that change at times.
class UpperConfidence {
 public:
  /// `discount` in (0, 1]: 1 is UCB1, and `xi` means nothing.
  explicit UpperConfidence(std::size_t arms, double discount = 1, double xi = 0.6)
      : discount_(discount), xi_(xi), pulls_(arms), sums_(arms) {}

  /// The arm to pull: each once, then the one of the highest bound, of equals the first.
  [[nodiscard]] std::size_t choose();
  /// What the arm that was chosen last brought.
  void learn(double reward);

 private:
  double discount_, xi_;
  std::vector<double> pulls_, sums_;  // by arm, discounted
  std::size_t chosen_ = 0;
};

}  // namespace gpusched
