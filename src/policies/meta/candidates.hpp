// SPDX-License-Identifier: Apache-2.0
/// Candidates: which members are tried next within a budget.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {

/// The sets of Deng et al., "Exploring Portfolio Scheduling for Long-Term Execution of Scientific Workloads in IaaS
/// Clouds", SC'13, with a budget of events in place of time: the *smart* did best when they were tried last, the
/// *stale* were smart and have not been tried since for want of budget, the *poor* did worse. Each set may spend a part
/// of the budget by its size: the smart, best first, then the stale, the longest untried first, then poor ones by
/// chance. Of those tried, the best `share` are smart from then on and the others poor; smart ones that were not tried
/// are stale. All are smart in the beginning, in the order in which they are named. A trial that began within its part
/// is ended.
class Candidates {
 public:
  enum class Set : std::uint8_t { smart, stale, poor };
  /// The word for a set.
  static std::string_view word(Set set) {
    static constexpr std::string_view words[] = {"smart", "stale", "poor"};
    return words[static_cast<std::size_t>(set)];
  }

  /// `share` in (0, 1]; `budget` in events, 0: all are tried always.
  Candidates(std::size_t count, std::uint64_t budget, double share, Rng rng)
      : budget_(budget), share_(share), rng_(rng), states_(count) {}

  [[nodiscard]] Set set(std::size_t candidate) const { return states_[candidate].set; }

  /// Tries candidates. `trial(candidate)` gives its value, lower is better, and the events that it took. `first` is
  /// tried in any case, before the others and at the cost of its own set.
  void choose(std::size_t first, const std::function<std::pair<double, std::uint64_t>(std::size_t)>& trial) {
    ++rounds_;
    double left[3];
    for (const Set set : {Set::smart, Set::stale, Set::poor}) {
      left[static_cast<std::size_t>(set)] = budget_ == 0
                                                ? std::numeric_limits<double>::infinity()
                                                : static_cast<double>(budget_) * static_cast<double>(of(set).size()) /
                                                      static_cast<double>(states_.size());
    }
    std::vector<std::size_t> tried;
    const auto attempt = [&](std::size_t candidate) {
      State& state = states_[candidate];
      const auto [value, events] = trial(candidate);
      state.value = value;
      state.tried = rounds_;
      left[static_cast<std::size_t>(state.set)] -= static_cast<double>(events);
      tried.push_back(candidate);
    };
    attempt(first);
    std::vector<std::size_t> untried;
    for (const Set set : {Set::smart, Set::stale, Set::poor}) {
      for (const std::size_t candidate : in_turn(set)) {
        if (candidate == first) continue;
        if (left[static_cast<std::size_t>(set)] > 0) {
          attempt(candidate);
        } else if (set == Set::smart) {
          untried.push_back(candidate);
        }
      }
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [&](std::size_t a, std::size_t b) { return states_[a].value < states_[b].value; });
    const auto smart = static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(tried.size())));
    for (std::size_t i = 0; i < tried.size(); ++i) states_[tried[i]].set = i < smart ? Set::smart : Set::poor;
    for (const std::size_t candidate : untried) states_[candidate].set = Set::stale;
  }

 private:
  struct State {
    Set set = Set::smart;
    double value = 0;         // when it was tried last
    std::uint64_t tried = 0;  // in which round; 0: never
  };

  [[nodiscard]] std::vector<std::size_t> of(Set set) const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].set == set) all.push_back(i);
    }
    return all;
  }

  [[nodiscard]] std::vector<std::size_t> in_turn(Set set) const {
    std::vector<std::size_t> all = of(set);
    if (set == Set::smart) {
      std::stable_sort(all.begin(), all.end(),
                       [&](std::size_t a, std::size_t b) { return states_[a].value < states_[b].value; });
    } else if (set == Set::stale) {
      std::stable_sort(all.begin(), all.end(),
                       [&](std::size_t a, std::size_t b) { return states_[a].tried < states_[b].tried; });
    } else {
      Rng rng = rng_.split(rounds_);
      for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[rng.below(i)]);
    }
    return all;
  }

  std::uint64_t budget_;
  double share_;
  Rng rng_;
  std::uint64_t rounds_ = 0;
  std::vector<State> states_;
};

}  // namespace gpusched
