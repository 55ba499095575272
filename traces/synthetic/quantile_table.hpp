// SPDX-License-Identifier: Apache-2.0
/// Evaluates a QuantileTable quickly, and makes one from observations.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "traces/synthetic/synthetic.hpp"

namespace gpusched {

/// The quantile function of a table, ready for many draws.
class QuantileFunction {
 public:
  /// Precondition: the table has passed check_model().
  explicit QuantileFunction(const QuantileTable& table) : probability_(table.probability) {
    for (const double value : table.value) log_value_.push_back(std::log1p(value));
  }

  /// The value below which a share `p` of the observations lies; p in [0, 1].
  [[nodiscard]] double operator()(double p) const {
    const auto above = std::upper_bound(probability_.begin() + 1, probability_.end() - 1, p);
    const auto i = static_cast<std::size_t>(above - probability_.begin());
    const double share = (p - probability_[i - 1]) / (probability_[i] - probability_[i - 1]);
    return std::expm1(log_value_[i - 1] + share * (log_value_[i] - log_value_[i - 1]));
  }

 private:
  std::vector<double> probability_, log_value_;
};

/// The table of `observed` (sorted here; not empty) at fixed probabilities, denser towards both ends.
QuantileTable quantile_table(std::vector<double> observed);

}  // namespace gpusched
