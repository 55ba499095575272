// SPDX-License-Identifier: Apache-2.0
// Student's t, of statistics.hpp.
#include <cmath>
#include <cstddef>
#include <iterator>

#include "src/base/statistics.hpp"

namespace gpusched {

double student_t_quantile(double degrees_of_freedom) {
  static constexpr double few[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  const double whole = std::floor(degrees_of_freedom);
  if (whole < static_cast<double>(std::size(few))) {
    const auto place = static_cast<std::size_t>(whole) - 1;
    return few[place] + (degrees_of_freedom - whole) * (few[place + 1] - few[place]);
  }
  // Abramowitz and Stegun, 26.7.5: 1e-5 off at most from ten degrees of freedom on.
  constexpr double z = 1.959964, z2 = z * z;
  constexpr double first = z * (z2 + 1) / 4, second = z * ((5 * z2 + 16) * z2 + 3) / 96,
                   third = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  return z + (first + (second + third / degrees_of_freedom) / degrees_of_freedom) / degrees_of_freedom;
}

namespace {

// The regularised incomplete beta function by its continued fraction (Lentz's method; Abramowitz and Stegun, 26.5.8).
// Precondition: x < (a + 1) / (a + b + 2), where it converges fast.
double incomplete_beta(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  double fraction = 1, numerator = 1, denominator = 0;
  for (int step = 0; step <= 300; ++step) {
    const double m = step / 2;
    const double term = step == 0       ? 1
                        : step % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                        : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    denominator = 1 + term * denominator;
    denominator = 1 / (std::abs(denominator) < tiny ? tiny : denominator);
    numerator = 1 + term / numerator;
    if (std::abs(numerator) < tiny) numerator = tiny;
    fraction *= numerator * denominator;
    if (std::abs(numerator * denominator - 1) < 1e-12) break;
  }
  return front * (fraction - 1);
}

}  // namespace

double student_t_p(double t, double degrees_of_freedom) {
  const double half = degrees_of_freedom / 2;
  const double x = degrees_of_freedom / (degrees_of_freedom + t * t);
  if (x >= 1) return 1;
  if (x <= 0) return 0;
  return x < (half + 1) / (half + 2.5) ? incomplete_beta(half, 0.5, x) : 1 - incomplete_beta(0.5, half, 1 - x);
}

}  // namespace gpusched
