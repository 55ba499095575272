// SPDX-License-Identifier: Apache-2.0
#include "src/rl/es_gradient.hpp"

#include <cmath>
#include <utility>

#include "gpusched/core/config.hpp"

namespace gpusched {

EsGradient::EsGradient(std::span<const double> start, const EsOptions& options, Rng rng)
    : options_(options), rng_(rng) {
  GPUSCHED_ASSERT(!start.empty() && options.pairs > 0, "nothing to search");
  state_.mean.assign(start.begin(), start.end());
  state_.momentum.assign(start.size(), 0.0);
  state_.power.assign(start.size(), 0.0);
}

// A pure function of the generation and the pair: nothing of it has to be kept to go on.
std::vector<double> EsGradient::direction(std::uint32_t pair) const {
  Rng draw = rng_.split(state_.generation).split(pair);
  std::vector<double> direction(state_.mean.size());
  for (double& value : direction) value = draw.normal();
  return direction;
}

const std::vector<std::vector<double>>& EsGradient::ask() {
  candidates_.clear();
  for (std::uint32_t pair = 0; pair < options_.pairs; ++pair) {
    const std::vector<double> along = direction(pair);
    for (const double side : {options_.step, -options_.step}) {
      std::vector<double> candidate = state_.mean;
      for (std::size_t i = 0; i < candidate.size(); ++i) candidate[i] += side * along[i];
      candidates_.push_back(std::move(candidate));
    }
  }
  return candidates_;
}

void EsGradient::tell(std::span<const double> losses) {
  GPUSCHED_ASSERT(losses.size() == candidates_.size(), "one loss for each candidate");
  gradient_.assign(state_.mean.size(), 0.0);
  for (std::size_t pair = 0; pair < options_.pairs; ++pair) {
    const std::vector<double> along = direction(static_cast<std::uint32_t>(pair));
    const double slope = (losses[2 * pair] - losses[2 * pair + 1]) / (2 * options_.step * options_.pairs);
    for (std::size_t i = 0; i < along.size(); ++i) gradient_[i] += slope * along[i];
  }
  ++state_.generation;
  constexpr double keep = 0.9, keep_power = 0.99, least = 1e-8;
  const auto generation = static_cast<double>(state_.generation);
  const double started = 1 - std::pow(keep, generation), started_power = 1 - std::pow(keep_power, generation);
  for (std::size_t i = 0; i < gradient_.size(); ++i) {
    state_.momentum[i] = keep * state_.momentum[i] + (1 - keep) * gradient_[i];
    state_.power[i] = keep_power * state_.power[i] + (1 - keep_power) * gradient_[i] * gradient_[i];
    state_.mean[i] -=
        options_.learning_rate * state_.momentum[i] / started / (std::sqrt(state_.power[i] / started_power) + least);
  }
}

bool EsGradient::fits(const EsState& state) const {
  const std::size_t n = state_.mean.size();
  return state.mean.size() == n && state.momentum.size() == n && state.power.size() == n;
}

void EsGradient::restore(EsState state) {
  GPUSCHED_ASSERT(fits(state), "the state of a search of other dimensions");
  state_ = std::move(state);
}

}  // namespace gpusched
