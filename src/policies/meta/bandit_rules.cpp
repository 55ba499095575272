// SPDX-License-Identifier: Apache-2.0
#include "src/policies/meta/bandit_rules.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpusched {

std::vector<double> Exp3::chances() const {
  const double most = *std::max_element(log_weights_.begin(), log_weights_.end());
  std::vector<double> chances;
  for (const double weight : log_weights_) chances.push_back(std::exp(weight - most));
  const double sum = std::accumulate(chances.begin(), chances.end(), 0.0);
  const auto arms = static_cast<double>(chances.size());
  for (double& chance : chances) chance = (1 - gamma_) * chance / sum + gamma_ / arms;
  return chances;
}

std::size_t Exp3::choose() {
  const std::vector<double> all = chances();
  double left = rng_.uniform();
  chosen_ = 0;
  while (chosen_ + 1 < all.size() && left >= all[chosen_]) left -= all[chosen_++];
  chance_ = all[chosen_];
  return chosen_;
}

void Exp3::learn(double reward) {
  log_weights_[chosen_] += gamma_ * reward / chance_ / static_cast<double>(log_weights_.size());
}

std::size_t UpperConfidence::choose() {
  const auto unknown = std::find(pulls_.begin(), pulls_.end(), 0.0);
  if (unknown != pulls_.end()) return chosen_ = static_cast<std::size_t>(unknown - pulls_.begin());
  const double log_all = std::log(std::accumulate(pulls_.begin(), pulls_.end(), 0.0));
  const auto bound = [&](std::size_t arm) {
    const double padding = discount_ == 1 ? std::sqrt(2 * log_all / pulls_[arm])
                                          : 2 * std::sqrt(std::max(xi_ * log_all, 0.0) / pulls_[arm]);
    return sums_[arm] / pulls_[arm] + padding;
  };
  chosen_ = 0;
  for (std::size_t arm = 1; arm < pulls_.size(); ++arm) {
    if (bound(arm) > bound(chosen_)) chosen_ = arm;
  }
  return chosen_;
}

void UpperConfidence::learn(double reward) {
  for (std::size_t arm = 0; arm < pulls_.size() && discount_ < 1; ++arm) {
    pulls_[arm] *= discount_;
    sums_[arm] *= discount_;
  }
  pulls_[chosen_] += 1;
  sums_[chosen_] += reward;
}

}  // namespace gpusched
