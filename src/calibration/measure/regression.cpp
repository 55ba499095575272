// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/regression.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

namespace gpusched {
namespace {

using Vector5 = Eigen::Matrix<double, 5, 1>;  // ln t0, ln P, ln W, ln gamma, ln L
using Matrix5 = Eigen::Matrix<double, 5, 5>;

constexpr double least_t0_us = 1e-3;
constexpr double most_t0_us = 1e9;
constexpr double most_gamma = 10;  // beyond it the knee is sharp to within 7 %

Roofline roofline_of(const Vector5& x) {
  return {std::exp(x[0]), std::exp(x[1]), std::exp(x[2]), std::exp(x[3]), std::exp(x[4])};
}

/// ln(predicted) and its derivatives by the logarithms of the parameters.
double log_prediction(const Vector5& x, const WorkPoint& point, Vector5* gradient) {
  const Roofline model = roofline_of(x);
  const double compute = point.flops / (model.p_tflops * 1e6);
  const double memory = point.bytes / (model.w_gbs * 1e3);
  const double g = model.gamma;
  const double chain = point.depth * model.step_ns * 1e-3;
  const double larger = std::max({compute, memory, chain});
  const double c = std::pow(compute / larger, g);
  const double m = std::pow(memory / larger, g);
  const double l = std::pow(chain / larger, g);
  const double sum = c + m + l;
  const double norm = larger * std::pow(sum, 1 / g);
  const double total = model.t0_us + norm;
  if (gradient != nullptr) {
    const double share_c = c / sum;
    const double share_m = m / sum;
    const double share_l = l / sum;
    const auto weighted_log = [&](double share, double part) { return part > 0 ? share * std::log(part / larger) : 0; };
    const double by_gamma =
        -std::log(sum) / (g * g) +
        (weighted_log(share_c, compute) + weighted_log(share_m, memory) + weighted_log(share_l, chain)) / g;
    *gradient << model.t0_us, -norm * share_c, -norm * share_m, norm * by_gamma * g, norm * share_l;
    *gradient /= total;
  }
  return std::log(total);
}

/// Bounds of the parameters, in logs. A rate that limits no point is not determined by the points: it stays below
/// `rate_limit` times the rates that they reached.
constexpr double rate_limit = 100;
constexpr double step_range = 1e4;
struct Box {
  Vector5 least, most;

  /// `shortest_step_ns`: the least time of any point over its depth, which no step can exceed.
  Box(const std::array<double, 2>& reached, double shortest_step_ns) {
    const auto [p, w] = reached;
    least << std::log(least_t0_us), std::log(p / rate_limit), std::log(w / rate_limit), 0,
        std::log(shortest_step_ns / step_range);
    most << std::log(most_t0_us), std::log(rate_limit * p), std::log(rate_limit * w), std::log(most_gamma),
        std::log(shortest_step_ns);
  }
};

Vector5 clamped(const Vector5& x, const Box& box) { return x.cwiseMax(box.least).cwiseMin(box.most); }

double huber(double residual, double scale) {
  const double a = std::abs(residual);
  return a <= scale ? 0.5 * a * a : scale * (a - 0.5 * scale);
}

double loss(const Vector5& x, std::span<const WorkPoint> points, std::span<const double> log_times, double scale) {
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    sum += huber(log_prediction(x, points[i], nullptr) - log_times[i], scale);
  }
  return sum;
}

/// Levenberg-Marquardt with Huber weights of a fixed scale.
Vector5 descend(Vector5 x, std::span<const WorkPoint> points, std::span<const double> log_times, double scale,
                const Box& box) {
  double damping = 1e-3;
  double best = loss(x, points, log_times, scale);
  for (int iteration = 0; iteration < 100 && damping < 1e9; ++iteration) {
    Matrix5 hessian = Matrix5::Zero();
    Vector5 slope = Vector5::Zero();
    for (std::size_t i = 0; i < points.size(); ++i) {
      Vector5 gradient;
      const double residual = log_prediction(x, points[i], &gradient) - log_times[i];
      const double weight = std::abs(residual) <= scale ? 1 : scale / std::abs(residual);
      hessian += weight * gradient * gradient.transpose();
      slope += weight * residual * gradient;
    }
    Matrix5 damped = hessian;
    damped.diagonal() += damping * (hessian.diagonal().array() + 1e-9).matrix();
    const Vector5 next = clamped(x - damped.ldlt().solve(slope), box);
    const double next_loss = loss(next, points, log_times, scale);
    if (std::isfinite(next_loss) && next_loss < best) {
      const bool settled = best - next_loss < 1e-10 * best;
      x = next;
      best = next_loss;
      damping = std::max(damping / 5, 1e-9);
      if (settled) break;
    } else {
      damping *= 4;
    }
  }
  return x;
}

/// The fastest rates that any point reached: TFLOP/s, GB/s.
std::array<double, 2> reached_rates(std::span<const WorkPoint> points) {
  std::array<double, 2> rates{};
  for (const WorkPoint& point : points) {
    rates[0] = std::max(rates[0], point.flops / point.time_us / 1e6);
    rates[1] = std::max(rates[1], point.bytes / point.time_us / 1e3);
  }
  return rates;
}

/// Nanoseconds; 1 where no point has depth, which leaves the parameter without effect.
double shortest_step_ns(std::span<const WorkPoint> points) {
  double shortest = std::numeric_limits<double>::max();
  for (const WorkPoint& point : points) {
    if (point.depth > 0) shortest = std::min(shortest, 1e3 * point.time_us / point.depth);
  }
  return shortest < std::numeric_limits<double>::max() ? shortest : 1;
}

bool has_depth(std::span<const WorkPoint> points) {
  return std::any_of(points.begin(), points.end(), [](const WorkPoint& point) { return point.depth > 0; });
}

/// Starts: the fastest point's rates as ceilings, several launch times, knees and, where points have depth, steps.
Vector5 best_fit(std::span<const WorkPoint> points, std::span<const double> log_times, const Box& box) {
  const auto [p, w] = reached_rates(points);
  const double shortest = std::exp(*std::min_element(log_times.begin(), log_times.end()));
  const double step_ns = shortest_step_ns(points);
  constexpr double rough_scale = 0.2;
  Vector5 best = Vector5::Zero();
  double best_loss = std::numeric_limits<double>::max();
  for (const double t0_share : {0.1, 0.7}) {
    for (const double gamma : {1.3, 3.0}) {
      for (const double step_share : has_depth(points) ? std::vector{0.7, 0.01} : std::vector{0.01}) {
        Vector5 start;
        start << std::log(t0_share * shortest), std::log(p), std::log(w), std::log(gamma),
            std::log(step_share * step_ns);
        const Vector5 x = descend(clamped(start, box), points, log_times, rough_scale, box);
        const double x_loss = loss(x, points, log_times, rough_scale);
        if (x_loss < best_loss) {
          best = x;
          best_loss = x_loss;
        }
      }
    }
  }
  return best;
}

/// 1.345 robust standard deviations: Huber's constant for 95 % efficiency on normal noise.
double huber_scale(std::vector<double> residuals) {
  for (double& r : residuals) r = std::abs(r);
  return std::max(1.345 * 1.4826 * quantile(std::move(residuals), 0.5), 1e-4);
}

std::vector<double> log_times_of(std::span<const WorkPoint> points) {
  std::vector<double> logs;
  for (const WorkPoint& point : points) logs.push_back(std::log(point.time_us));
  return logs;
}

/// Draws log times around a fit: the prediction plus a residual of some point.
std::vector<double> resampled(std::span<const double> log_predicted, std::span<const double> residuals, Rng& rng) {
  std::vector<double> logs;
  for (const double predicted : log_predicted) logs.push_back(predicted - residuals[rng.below(residuals.size())]);
  return logs;
}

/// Residuals as large as the noise behind them: a fit bends towards each point by the point's leverage h, which leaves
/// a residual sqrt(1 - h) too small (Davison & Hinkley, Bootstrap Methods and their Application, section 6.2.3).
/// `gradients` are the derivatives of the predictions by the parameters, one row a point.
std::vector<double> without_leverage(std::span<const double> residuals, const Eigen::MatrixXd& gradients) {
  const Eigen::MatrixXd basis =
      gradients.colPivHouseholderQr().householderQ() * Eigen::MatrixXd::Identity(gradients.rows(), gradients.cols());
  std::vector<double> widened;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double leverage = basis.row(static_cast<Eigen::Index>(i)).squaredNorm();
    widened.push_back(residuals[i] / std::sqrt(std::max(1 - leverage, 0.05)));
  }
  return widened;
}

/// The 95 % interval of a positive parameter: symmetric in logs, from the spread of its bootstrap draws and Student's t
/// (Cornish-Fisher: t = z + (z^3 + z) / 4 df), which needs far fewer draws than percentiles do.
ParameterInterval interval_of(double estimate, std::span<const double> log_draws, std::size_t degrees_of_freedom) {
  if (log_draws.size() < 2 || !(estimate > 0)) return {0, estimate, Bound::at_most};
  const auto n = static_cast<double>(log_draws.size());
  double mean = 0;
  for (const double draw : log_draws) mean += draw / n;
  double variance = 0;
  for (const double draw : log_draws) variance += (draw - mean) * (draw - mean) / (n - 1);
  const double t = 1.96 + 2.37 / static_cast<double>(std::max<std::size_t>(degrees_of_freedom, 1));
  return {estimate * std::exp(-t * std::sqrt(variance)), estimate * std::exp(t * std::sqrt(variance)), Bound::both};
}

/// The parameters that the points do not determine: by linear theory (noise^2 times the inverse of the gradients'
/// products) the 95 % interval of such a parameter reaches further than tenfold. Refits do not show this, because they
/// stay near their start.
std::array<bool, 5> undetermined(const Eigen::MatrixXd& gradients, double noise) {
  Eigen::MatrixXd products = gradients.transpose() * gradients;
  products.diagonal().array() += 1e-10 * products.trace();
  const Eigen::VectorXd variance =
      noise * noise * products.ldlt().solve(Eigen::MatrixXd::Identity(products.rows(), products.cols())).diagonal();
  const double most_deviation = std::log(10.0) / 1.96;
  std::array<bool, 5> lost{};
  for (Eigen::Index k = 0; k < variance.size(); ++k) {
    lost[static_cast<std::size_t>(k)] = std::sqrt(variance[k]) > most_deviation;
  }
  return lost;
}

/// The interval of a parameter that was searched for between `least` and `most` (all in logs). Draws that end there say
/// that the points do not determine it on that side: the interval is then of percentiles and open.
ParameterInterval interval_in_box(double log_estimate, const std::vector<double>& log_draws,
                                  std::size_t degrees_of_freedom, double least, double most) {
  constexpr double touch = 1e-6;
  const auto share_of = [&](auto touches) {
    return static_cast<double>(std::count_if(log_draws.begin(), log_draws.end(), touches)) /
           static_cast<double>(std::max<std::size_t>(log_draws.size(), 1));
  };
  constexpr double tail = 0.025;
  const bool above = log_estimate > most - touch || share_of([&](double x) { return x > most - touch; }) > tail;
  const bool below = log_estimate < least + touch || share_of([&](double x) { return x < least + touch; }) > tail;
  if (above) return {std::exp(std::min(log_estimate, quantile(log_draws, tail))), std::exp(most), Bound::at_least};
  if (below) return {std::exp(least), std::exp(std::max(log_estimate, quantile(log_draws, 1 - tail))), Bound::at_most};
  return interval_of(std::exp(log_estimate), log_draws, degrees_of_freedom);
}

/// The interval of a parameter that was 0 in some of the `draws`: up to the 97.5th percentile of all.
ParameterInterval interval_from_zero(std::span<const double> log_draws, std::size_t draws) {
  std::vector<double> values(draws, 0);
  std::transform(log_draws.begin(), log_draws.end(), values.begin(), [](double draw) { return std::exp(draw); });
  return {0, quantile(std::move(values), 0.975), Bound::at_most};
}

struct Line {
  double t0_us = 0;
  double us_per_byte = 0;
};

/// Reweighted least squares of (t0 + s B)/t = 1: least absolute relative error.
Line fit_line(std::span<const WorkPoint> points, std::span<const double> times) {
  const auto n = static_cast<Eigen::Index>(points.size());
  Eigen::MatrixX2d design(n, 2);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    design.row(i) << 1 / times[at], points[at].bytes / times[at];
  }
  // Columns are scaled to one size; bytes are a million times larger than microseconds.
  const Eigen::RowVector2d size = design.cwiseAbs().colwise().maxCoeff();
  design.col(0) /= size[0];
  design.col(1) /= size[1];
  Eigen::VectorXd weight = Eigen::VectorXd::Ones(n);
  Eigen::Vector2d x = Eigen::Vector2d::Zero();
  for (int iteration = 0; iteration < 30; ++iteration) {
    x = (weight.asDiagonal() * design).colPivHouseholderQr().solve(weight);
    if (x[0] < 0) {  // a launch cannot take less than no time: the line through the origin
      const Eigen::VectorXd slope = weight.asDiagonal() * design.col(1);
      x = Eigen::Vector2d(0, slope.dot(weight) / slope.squaredNorm());
    }
    const Eigen::ArrayXd residual = (design * x).array() - 1;
    weight = residual.abs().max(1e-3).rsqrt().matrix();
  }
  return {x[0] / size[0], x[1] / size[1]};
}

}  // namespace

Result<RooflineEstimate> fit_roofline(std::span<const WorkPoint> points, std::uint32_t bootstraps, Rng rng) {
  if (points.size() < least_roofline_points) {
    return unexpected("a roofline fit needs at least " + std::to_string(least_roofline_points) + " points, found " +
                      std::to_string(points.size()));
  }
  for (const WorkPoint& point : points) {
    if (!(point.flops > 0 && point.bytes > 0 && point.time_us > 0)) {
      return unexpected("a roofline fit needs points with work, bytes and time above 0");
    }
  }
  const std::vector<double> log_times = log_times_of(points);
  std::vector<double> log_predicted(points.size());
  std::vector<double> residuals(points.size());
  const auto take_residuals = [&](const Vector5& x) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      log_predicted[i] = log_prediction(x, points[i], nullptr);
      residuals[i] = log_predicted[i] - log_times[i];
    }
  };
  const double step_ns = shortest_step_ns(points);
  const std::size_t parameters = has_depth(points) ? 5 : 4;
  const Box box(reached_rates(points), step_ns);
  Vector5 x = best_fit(points, log_times, box);
  take_residuals(x);
  const double scale = huber_scale(residuals);
  x = descend(x, points, log_times, scale, box);
  take_residuals(x);

  RooflineEstimate estimate{.fit = roofline_of(x), .ci95 = {}};
  if (parameters == 4) estimate.fit.step_ns = 0;
  for (const double r : residuals) estimate.train_mape_ratio += std::abs(std::expm1(r));
  estimate.train_mape_ratio /= static_cast<double>(points.size());
  Eigen::MatrixXd gradients(static_cast<Eigen::Index>(points.size()), static_cast<Eigen::Index>(parameters));
  for (std::size_t i = 0; i < points.size(); ++i) {
    Vector5 gradient;
    log_prediction(x, points[i], &gradient);
    gradients.row(static_cast<Eigen::Index>(i)) = gradient.head(gradients.cols()).transpose();
  }
  const std::vector<double> noise = without_leverage(residuals, gradients);
  std::array<std::vector<double>, 5> drawn;
  for (std::uint32_t b = 0; b < bootstraps; ++b) {
    Rng draw = rng.split(b);
    const std::vector<double> logs = resampled(log_predicted, noise, draw);
    const Vector5 again = descend(x, points, logs, scale, box);
    for (std::size_t k = 0; k < parameters; ++k) drawn[k].push_back(again[static_cast<Eigen::Index>(k)]);
  }
  const std::array<bool, 5> lost = undetermined(gradients, scale / 1.345);
  for (std::size_t k = 0; k < parameters; ++k) {
    const auto at = static_cast<Eigen::Index>(k);
    estimate.ci95[k] = interval_in_box(x[at], drawn[k], points.size() - parameters, box.least[at], box.most[at]);
  }
  // The interval of a parameter that the points do not determine: t0 is at most the shortest time, a rate at least the
  // highest that some point reached.
  const auto [reached_p, reached_w] = reached_rates(points);
  const double shortest = std::exp(*std::min_element(log_times.begin(), log_times.end()));
  if (lost[0]) estimate.ci95[0] = {0, shortest, Bound::at_most};
  const auto at_least = [&](std::size_t k, double low) {
    ParameterInterval& interval = estimate.ci95[k];
    if (!lost[k] && interval.bound != Bound::at_least) return;
    interval = {std::min(low, interval.low), std::exp(box.most[static_cast<Eigen::Index>(k)]), Bound::at_least};
  };
  at_least(1, reached_p);
  at_least(2, reached_w);
  if (lost[3]) at_least(3, 1);
  if (lost[4]) estimate.ci95[4] = {0, step_ns, Bound::at_most};
  return estimate;
}

Result<BandwidthEstimate> fit_bandwidth(std::span<const WorkPoint> points, std::uint32_t bootstraps, Rng rng) {
  if (points.size() < 3)
    return unexpected("a bandwidth fit needs at least 3 points, found " + std::to_string(points.size()));
  std::vector<double> times;
  for (const WorkPoint& point : points) times.push_back(point.time_us);
  const Line line = fit_line(points, times);
  if (!(line.us_per_byte > 0)) return unexpected("a bandwidth fit needs times that grow with bytes");
  BandwidthEstimate estimate{.t0_us = line.t0_us, .w_gbs = 1e-3 / line.us_per_byte, .ci95 = {}};
  std::vector<double> log_predicted;
  std::vector<double> residuals;
  for (const WorkPoint& point : points) {
    log_predicted.push_back(std::log(estimate.predict_us(point.bytes)));
    residuals.push_back(log_predicted.back() - std::log(point.time_us));
    estimate.train_mape_ratio += std::abs(std::expm1(residuals.back())) / static_cast<double>(points.size());
  }
  Eigen::MatrixXd gradients(static_cast<Eigen::Index>(points.size()), 2);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double time = estimate.predict_us(points[i].bytes);
    gradients.row(static_cast<Eigen::Index>(i)) << 1 / time, points[i].bytes * line.us_per_byte / time;
  }
  const std::vector<double> noise = without_leverage(residuals, gradients);
  std::array<std::vector<double>, 2> drawn;
  for (std::uint32_t b = 0; b < bootstraps; ++b) {
    Rng draw = rng.split(b);
    std::vector<double> again_times = resampled(log_predicted, noise, draw);
    for (double& t : again_times) t = std::exp(t);
    const Line again = fit_line(points, again_times);
    if (again.t0_us > 0) drawn[0].push_back(std::log(again.t0_us));
    if (again.us_per_byte > 0) drawn[1].push_back(std::log(1e-3 / again.us_per_byte));
  }
  estimate.ci95 = {drawn[0].size() < bootstraps ? interval_from_zero(drawn[0], bootstraps)
                                                : interval_of(estimate.t0_us, drawn[0], points.size() - 2),
                   interval_of(estimate.w_gbs, drawn[1], points.size() - 2)};
  return estimate;
}

double fit_power_beta(double idle_w, double active_w, std::span<const PowerPoint> points) {
  double xy = 0;
  double xx = 0;
  for (const PowerPoint& point : points) {
    const double rise = (point.watts - idle_w) / (active_w - idle_w);
    if (point.utilisation <= 0 || point.utilisation >= 1 || !(rise > 0)) continue;
    const double x = std::log(point.utilisation);
    xy += x * std::log(rise);
    xx += x * x;
  }
  return xx > 0 ? xy / xx : 1;
}

std::vector<std::vector<double>> complete_interference(const std::vector<std::vector<double>>& slowdown) {
  const auto size = static_cast<Eigen::Index>(slowdown.size());
  const auto known = [&](Eigen::Index a, Eigen::Index b) {
    return slowdown[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] > 0;
  };
  const auto extra = [&](Eigen::Index a, Eigen::Index b) {
    return slowdown[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] - 1;
  };
  Eigen::VectorXd sensitivity = Eigen::VectorXd::Ones(size);
  Eigen::VectorXd pressure = Eigen::VectorXd::Ones(size);
  for (int iteration = 0; iteration < 100; ++iteration) {
    for (Eigen::Index a = 0; a < size; ++a) {
      double xy = 0;
      double xx = 1e-12;
      for (Eigen::Index b = 0; b < size; ++b) {
        if (!known(a, b)) continue;
        xy += pressure[b] * extra(a, b);
        xx += pressure[b] * pressure[b];
      }
      sensitivity[a] = xy / xx;
    }
    for (Eigen::Index b = 0; b < size; ++b) {
      double xy = 0;
      double xx = 1e-12;
      for (Eigen::Index a = 0; a < size; ++a) {
        if (!known(a, b)) continue;
        xy += sensitivity[a] * extra(a, b);
        xx += sensitivity[a] * sensitivity[a];
      }
      pressure[b] = xy / xx;
    }
  }
  std::vector<std::vector<double>> filled = slowdown;
  for (Eigen::Index a = 0; a < size; ++a) {
    for (Eigen::Index b = 0; b < size; ++b) {
      if (known(a, b)) continue;
      filled[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] =
          std::max(1.0, 1 + sensitivity[a] * pressure[b]);
    }
  }
  return filled;
}

ErrorSummary summarise_errors(std::span<const double> predicted, std::span<const double> timed) {
  GPUSCHED_ASSERT(predicted.size() == timed.size(), "one prediction for each timed value");
  std::vector<double> errors;
  double sum = 0;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    errors.push_back(std::abs(predicted[i] / timed[i] - 1));
    sum += errors.back();
  }
  const auto n = static_cast<std::uint32_t>(errors.size());
  return {.mape_ratio = n == 0 ? 0 : sum / n, .p90_ratio = quantile(std::move(errors), 0.9), .n = n};
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace gpusched
