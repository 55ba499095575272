// SPDX-License-Identifier: Apache-2.0
#include "src/policies/meta/guard_rule.hpp"

#include <cmath>
#include <limits>

#include "src/base/statistics.hpp"

namespace gpusched {

PastFigures figures_of_past(const std::vector<JobResult>& jobs, const WeightedFigure& figure, std::size_t stretches) {
  PastFigures past;
  past.value = figure.of(jobs);
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto at = [&](std::size_t number) {
      return jobs.begin() + static_cast<std::ptrdiff_t>(jobs.size() * number / stretches);
    };
    past.stretches.push_back(figure.of({at(i), at(i + 1)}));
  }
  for (std::size_t i = 0; i < past.limited.size(); ++i) past.limited[i] = limited_figures()[i].of(jobs);
  return past;
}

double highest_difference(std::span<const double> values, std::span<const double> other) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < values.size(); ++i) differences.push_back(values[i] - other[i]);
  const double scale = mean_of(other), mean = mean_of(differences);
  if (!(scale > 0)) return std::numeric_limits<double>::infinity();
  double squares = 0;
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  const auto count = static_cast<double>(differences.size());
  const double error = std::sqrt(squares / (count - 1) / count);
  return (mean + student_t_quantile(count - 1) * error) / scale;
}

bool may_replace(const PastFigures& figures, const PastFigures& other, double margin) {
  if (highest_difference(figures.stretches, other.stretches) >= -margin) return false;
  for (std::size_t i = 0; i < figures.limited.size(); ++i) {
    if (figures.limited[i] > other.limited[i] * (1 + margin)) return false;
  }
  return true;
}

}  // namespace gpusched
