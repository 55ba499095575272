// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/gamma_distribution.hpp"

#include <cmath>

namespace gpusched {
namespace {

constexpr int most_terms = 100'000;
constexpr double relative_error = 1e-14;

// Stirling's series, from 10 on; below by the recurrence. std::lgamma writes a global variable.
double log_gamma(double x) {
  double shift = 0;
  for (; x < 10; x += 1) shift += std::log(x);
  const double square = 1 / (x * x);
  const double series = (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680))) / x;
  return (x - 0.5) * std::log(x) - x + 0.91893853320467274 + series - shift;
}

// The sum of x^n / (a (a + 1) ... (a + n)).
double lower_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < most_terms && term > sum * relative_error; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return sum;
}

// The continued fraction of the upper function, by Lentz's method.
double upper_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, value = d;
  for (int n = 1; n < most_terms; ++n) {
    const double numerator = n * (a - n);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (std::abs(d) < tiny ? tiny : d);
    c = std::abs(c) < tiny ? tiny : c;
    value *= d * c;
    if (std::abs(d * c - 1) < relative_error) break;
  }
  return value;
}

}  // namespace

double GammaDistribution::cdf(double x) const {
  const double z = x / scale;
  if (!(z > 0)) return 0;
  const double factor = std::exp(shape * std::log(z) - z - log_gamma(shape));
  return z < shape + 1 ? factor * lower_series(shape, z) : 1 - factor * upper_fraction(shape, z);
}

double GammaDistribution::draw(Rng& rng) const {
  if (shape < 1) {
    const double larger = GammaDistribution{shape + 1, scale}.draw(rng);
    return larger * std::pow(1 - rng.uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double normal = rng.normal(), root = 1 + c * normal;
    if (root <= 0) continue;
    const double cube = root * root * root;
    if (std::log(1 - rng.uniform()) < 0.5 * normal * normal + d * (1 - cube + std::log(cube))) return d * cube * scale;
  }
}

}  // namespace gpusched
