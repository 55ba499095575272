// SPDX-License-Identifier: Apache-2.0
/// Minimisation of a function of few variables without derivatives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace gpusched {

/// The best point that the downhill simplex method finds (Nelder and Mead, Computer Journal 7(4), 1965), beginning with
/// `start` and, for each variable, `start` moved by its step. The simplex is made anew around the best point until that
/// no longer helps, so that a collapsed one is no end. `f` may be infinite where it is not defined, but not at `start`.
template <class F>
std::vector<double> nelder_mead(const F& f, std::vector<double> start, const std::vector<double>& step) {
  using Point = std::pair<double, std::vector<double>>;
  const std::size_t n = start.size();
  constexpr int most_steps_a_variable = 400, most_simplexes = 8;
  constexpr double close = 1e-9;
  const auto lower = [](const Point& a, const Point& b) { return a.first < b.first; };
  const auto at = [&](std::vector<double> x) {
    const double value = f(x);
    return Point{value, std::move(x)};
  };
  Point best = at(std::move(start));
  for (int simplex = 0; simplex < most_simplexes; ++simplex) {
    std::vector<Point> points{best};
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> x = best.second;
      x[i] += simplex % 2 == 0 ? step[i] : -step[i];
      points.push_back(at(std::move(x)));
    }
    for (std::size_t steps = 0; steps < most_steps_a_variable * n; ++steps) {
      std::sort(points.begin(), points.end(), lower);
      Point& worst = points.back();
      if (worst.first - points.front().first <= close * (std::abs(points.front().first) + close)) break;
      // The point at so many times the distance of the worst from the centre of the others.
      const auto moved = [&](double times) {
        std::vector<double> x(n);
        for (std::size_t i = 0; i < n; ++i) {
          double centre = 0;
          for (std::size_t k = 0; k < n; ++k) centre += points[k].second[i] / static_cast<double>(n);
          x[i] = centre + times * (worst.second[i] - centre);
        }
        return at(std::move(x));
      };
      Point reflected = moved(-1);
      if (reflected.first < points.front().first) {
        Point expanded = moved(-2);
        worst = std::min(std::move(reflected), std::move(expanded), lower);
        continue;
      }
      if (reflected.first < points[n - 1].first) {
        worst = std::move(reflected);
        continue;
      }
      Point contracted = moved(reflected.first < worst.first ? -0.5 : 0.5);
      if (contracted.first < std::min(reflected.first, worst.first)) {
        worst = std::move(contracted);
        continue;
      }
      for (std::size_t k = 1; k <= n; ++k) {
        std::vector<double> x = points[k].second;
        for (std::size_t i = 0; i < n; ++i) x[i] = 0.5 * (x[i] + points.front().second[i]);
        points[k] = at(std::move(x));
      }
    }
    Point lowest = *std::min_element(points.begin(), points.end(), lower);
    const bool helped = lowest.first < best.first - 1e-7 * std::abs(best.first);
    if (lowest.first < best.first) best = std::move(lowest);
    if (!helped && simplex > 0) break;
  }
  return best.second;
}

}  // namespace gpusched
