// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/daily_cycle.hpp"

#include <algorithm>
#include <cmath>

namespace gpusched {
namespace {

constexpr double day_s = 86'400;
constexpr double least_weight = 1e-6;

}  // namespace

bool DailyCycle::has_weight(const GammaDistribution& count) {
  const double begin = static_cast<double>(first) + 0.5;
  return count.cdf(begin + slots) - count.cdf(begin) > least_weight;
}

DailyCycle::DailyCycle(const GammaDistribution& count) {
  double sum = 0, below = count.cdf(static_cast<double>(first) + 0.5);
  for (std::size_t k = first + 1; k <= first + slots; ++k) {
    const double upto = count.cdf(static_cast<double>(k) + 0.5);
    weight_[(k - 1) % slots] = std::max(0.0, upto - below);
    sum += weight_[(k - 1) % slots];
    below = upto;
  }
  for (double& weight : weight_) weight *= slots / sum;
  for (std::size_t slot = 0; slot < slots; ++slot) upto_s_[slot + 1] = upto_s_[slot] + weight_[slot] * slot_s;
}

double DailyCycle::clock_s(double weighted_s) const {
  const double day = std::floor(weighted_s / upto_s_.back());
  const double rest = weighted_s - day * upto_s_.back();
  const auto above = std::upper_bound(upto_s_.begin() + 1, upto_s_.end() - 1, rest);
  const auto slot = static_cast<std::size_t>(above - upto_s_.begin()) - 1;
  const double share = weight_[slot] > 0 ? (rest - upto_s_[slot]) / weight_[slot] : 0;
  return day * day_s + static_cast<double>(slot) * slot_s + std::clamp(share, 0.0, slot_s);
}

double DailyCycle::weighted_s(double clock_s) const {
  const double day = std::floor(clock_s / day_s);
  const double rest = clock_s - day * day_s;
  const auto slot = std::min(static_cast<std::size_t>(rest / slot_s), slots - 1);
  return day * upto_s_.back() + upto_s_[slot] + (rest - static_cast<double>(slot) * slot_s) * weight_[slot];
}

}  // namespace gpusched
