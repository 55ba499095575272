// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/regression.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/calibration/measure/backend.hpp"
#include "src/calibration/measure/suite.hpp"

namespace gpusched {
namespace {

constexpr AnalyticTruth truth{};

/// Medians of ten samples at the suite's matrix products; those with one row have a line of their own.
std::vector<WorkPoint> timed_gemm(std::uint64_t seed) {
  AnalyticTruth seeded = truth;
  seeded.seed = seed;
  const auto backend = make_analytic_backend(seeded);
  std::vector<WorkPoint> points;
  for (const SuitePoint& point : make_suite(*backend, SuiteScale::full, seed)) {
    const KernelCall call = point.step.front();
    if (point.role != PointRole::fit || call.kernel != Kernel::gemm_bf16 || is_row_product(call)) continue;
    points.push_back({.flops = flops_of(call),
                      .bytes = bytes_of(call),
                      .time_us = quantile(backend->time_us(point.step, 10).value(), 0.5)});
  }
  return points;
}

TEST(RooflineFit, FindsTheExactParametersOfExactTimes) {
  std::vector<WorkPoint> points = timed_gemm(1);
  const Roofline exact{7, 80, 900, 1.7};
  for (WorkPoint& point : points) point.time_us = exact.predict_us(point.flops, point.bytes);
  const auto fitted = fit_roofline(points, 20, Rng(1));
  ASSERT_TRUE(fitted) << fitted.error().to_string();
  EXPECT_NEAR(fitted->fit.t0_us, 7, 1e-3);
  EXPECT_NEAR(fitted->fit.p_tflops, 80, 1e-2);
  EXPECT_NEAR(fitted->fit.w_gbs, 900, 1e-1);
  EXPECT_NEAR(fitted->fit.gamma, 1.7, 1e-3);
  EXPECT_LT(fitted->train_mape_ratio, 1e-5);
}

// The acceptance rule of the analytic backend: P and W within 3 %, t0 within 10 %, and 95 % intervals that hold the
// truth in at least 90 % of 50 seeds, under 2 % noise and 2 % of samples three times too long.
TEST(RooflineFit, RecoversTheTruthAndItsIntervalsCoverIt) {
  constexpr int seeds = 50;
  std::array<int, 4> covered{};
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto fitted =
        fit_roofline(timed_gemm(static_cast<std::uint64_t>(seed)), 200, Rng(static_cast<std::uint64_t>(seed)));
    ASSERT_TRUE(fitted) << fitted.error().to_string();
    EXPECT_NEAR(fitted->fit.p_tflops / truth.p_tflops, 1, 0.03) << "seed " << seed;
    EXPECT_NEAR(fitted->fit.w_gbs / truth.w_gbs, 1, 0.03) << "seed " << seed;
    EXPECT_NEAR(fitted->fit.t0_us / truth.t0_us, 1, 0.10) << "seed " << seed;
    const std::array<double, 4> exact{truth.t0_us, truth.p_tflops, truth.w_gbs, truth.gamma};
    for (std::size_t k = 0; k < 4; ++k) {
      covered[k] += fitted->ci95[k].low <= exact[k] && exact[k] <= fitted->ci95[k].high ? 1 : 0;
    }
  }
  EXPECT_GE(covered[0], 0.9 * seeds) << "t0";
  EXPECT_GE(covered[1], 0.9 * seeds) << "P";
  EXPECT_GE(covered[2], 0.9 * seeds) << "W";
  EXPECT_GE(covered[3], 0.9 * seeds) << "gamma";
}

/// Points of a device of 100 TFLOP/s and 1000 GB/s (knee at 100 operations a byte), 2 % noise.
std::vector<WorkPoint> points_at(const std::vector<double>& operations_per_byte) {
  std::vector<WorkPoint> points;
  Rng rng(5);
  for (int i = 0; i < 24; ++i) {
    const double flops = 1e9 * std::pow(1.3, i);
    const double bytes = flops / operations_per_byte[static_cast<std::size_t>(i) % operations_per_byte.size()];
    points.push_back({.flops = flops,
                      .bytes = bytes,
                      .time_us = Roofline{5, 100, 1000, 2}.predict_us(flops, bytes) * rng.lognormal(0, 0.02)});
  }
  return points;
}

TEST(RooflineFit, FindsTheFloorOfWorkThatWaitsForItself) {
  std::vector<WorkPoint> points;
  const Roofline exact{4, 50, 2000, 2, 30};
  Rng rng(9);
  for (int i = 0; i < 32; ++i) {
    const double rows = std::pow(2.0, 10 * rng.uniform());
    const double depth = 256 * std::pow(2.0, 4 * rng.uniform());
    WorkPoint point{.flops = 2 * rows * 1024 * depth, .bytes = 4 * (1024 + rows) * depth, .depth = depth};
    point.time_us = exact.predict_us(point.flops, point.bytes, point.depth) * rng.lognormal(0, 0.01);
    points.push_back(point);
  }
  const auto with_floor = fit_roofline(points, 100, Rng(1));
  ASSERT_TRUE(with_floor) << with_floor.error().to_string();
  EXPECT_NEAR(with_floor->fit.step_ns, 30, 1);
  EXPECT_LE(with_floor->ci95[4].low, 30);
  EXPECT_GE(with_floor->ci95[4].high, 30);
  EXPECT_LT(with_floor->train_mape_ratio, 0.02);
  for (WorkPoint& point : points) point.depth = 0;
  const auto without = fit_roofline(points, 10, Rng(1));
  ASSERT_TRUE(without);
  EXPECT_EQ(without->fit.step_ns, 0);
  EXPECT_GT(without->train_mape_ratio, 0.05);
}

// Any bandwidth above some hundred GB/s gives these times; the interval was a tight one around where the search ended.
TEST(RooflineFit, ARateThatBoundsNoPointIsNotIdentified) {
  const auto fitted = fit_roofline(points_at({2e3, 1e4, 5e4}), 200, Rng(1));
  ASSERT_TRUE(fitted) << fitted.error().to_string();
  const ParameterInterval& p = fitted->ci95[1];
  EXPECT_EQ(p.bound, Bound::both);
  EXPECT_LE(p.low, 100);
  EXPECT_GE(p.high, 100);
  const ParameterInterval& w = fitted->ci95[2];
  EXPECT_EQ(w.bound, Bound::at_least);
  EXPECT_LT(w.low, 60);  // what the fastest point reached
  EXPECT_GT(w.high, 1000);
}

// At one intensity a slower processor with a faster memory gives the same times: refits all stayed where they began.
TEST(RooflineFit, RatesThatCannotBeToldApartAreNotIdentified) {
  const auto fitted = fit_roofline(points_at({1e3}), 200, Rng(1));
  ASSERT_TRUE(fitted) << fitted.error().to_string();
  for (const std::size_t rate : {1U, 2U}) {
    EXPECT_EQ(fitted->ci95[rate].bound, Bound::at_least) << rate;
    EXPECT_LE(fitted->ci95[rate].low, 105) << rate;  // TFLOP/s and GB/s that some point reached, alike here
  }
}

TEST(RooflineFit, RefusesTooFewOrEmptyPoints) {
  const std::vector<WorkPoint> few(7, WorkPoint{1e9, 1e6, 10});
  EXPECT_THAT(fit_roofline(few, 10, Rng(1)).error().message, testing::HasSubstr("at least 8 points, found 7"));
  std::vector<WorkPoint> empty(8, WorkPoint{1e9, 1e6, 10});
  empty[3].time_us = 0;
  EXPECT_THAT(fit_roofline(empty, 10, Rng(1)).error().message, testing::HasSubstr("above 0"));
}

TEST(BandwidthFit, FindsLaunchTimeAndBandwidthDespiteAnOutlier) {
  std::vector<WorkPoint> points;
  for (double bytes = 65536; bytes < 1e9; bytes *= 2) points.push_back({0, bytes, 4 + bytes / 2e6});
  points[5].time_us *= 3;
  const auto fitted = fit_bandwidth(points, 100, Rng(3));
  ASSERT_TRUE(fitted) << fitted.error().to_string();
  EXPECT_NEAR(fitted->w_gbs, 2000, 20);
  EXPECT_NEAR(fitted->t0_us, 4, 0.2);
  EXPECT_LE(fitted->ci95[1].low, 2000);
  EXPECT_GE(fitted->ci95[1].high, 1990);
  EXPECT_FALSE(fit_bandwidth(std::span(points).first(2), 10, Rng(1)));
  std::vector<WorkPoint> flat(5, WorkPoint{0, 0, 3});
  EXPECT_FALSE(fit_bandwidth(flat, 10, Rng(1)));
}

TEST(BandwidthFit, ALaunchTimeFarBelowAllTimesIsOnlyBoundedAbove) {
  std::vector<WorkPoint> points;
  Rng rng(8);
  for (double bytes = 1e8; bytes < 1e10; bytes *= 2) points.push_back({0, bytes, bytes / 2e6 * rng.lognormal(0, 0.01)});
  const auto fitted = fit_bandwidth(points, 200, Rng(3));
  ASSERT_TRUE(fitted) << fitted.error().to_string();
  EXPECT_EQ(fitted->ci95[0].bound, Bound::at_most);
  EXPECT_EQ(fitted->ci95[0].low, 0);
  EXPECT_EQ(fitted->ci95[1].bound, Bound::both);
}

TEST(BandwidthFit, IntervalsCoverTheTruth) {
  constexpr int seeds = 50;
  std::array<int, 2> covered{};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto backend = make_analytic_backend({.gamma = 50, .seed = seed});  // sharp knee: t0 + B/W exactly
    std::vector<WorkPoint> points;
    for (std::int64_t m = 4096; m < 100'000'000; m *= 3) {
      const KernelCall call{Kernel::copy, m};
      points.push_back({flops_of(call), bytes_of(call), quantile(backend->time_us({&call, 1}, 10).value(), 0.5)});
    }
    const auto fitted = fit_bandwidth(points, 200, Rng(seed));
    ASSERT_TRUE(fitted) << fitted.error().to_string();
    EXPECT_NEAR(fitted->w_gbs / truth.w_gbs, 1, 0.03) << "seed " << seed;
    EXPECT_NEAR(fitted->t0_us / truth.t0_us, 1, 0.10) << "seed " << seed;
    covered[0] += fitted->ci95[0].low <= truth.t0_us && truth.t0_us <= fitted->ci95[0].high ? 1 : 0;
    covered[1] += fitted->ci95[1].low <= truth.w_gbs && truth.w_gbs <= fitted->ci95[1].high ? 1 : 0;
  }
  EXPECT_GE(covered[0], 0.9 * seeds) << "t0";
  EXPECT_GE(covered[1], 0.9 * seeds) << "W";
}

TEST(TransferTable, InterpolatesInLogsAndExtrapolatesByItsLine) {
  const std::vector<std::array<double, 2>> table = {{1000, 10}, {100000, 1000}};
  EXPECT_NEAR(predict_transfer_us(table, 5, 1, 10000), 100, 1e-9);
  EXPECT_NEAR(predict_transfer_us(table, 5, 1, 1000), 10, 1e-9);
  EXPECT_NEAR(predict_transfer_us(table, 5, 1, 1e6), 5 + 1000, 1e-9);
}

TEST(PowerFit, FindsTheExponent) {
  std::vector<PowerPoint> points;
  for (const double u : {0.25, 0.5, 0.75, 1.0}) points.push_back({u, 60 + 340 * std::pow(u, 0.8)});
  EXPECT_NEAR(fit_power_beta(60, 400, points), 0.8, 1e-9);
  EXPECT_EQ(fit_power_beta(60, 400, {}), 1);
}

TEST(Interference, ALeftOutPairIsFoundAgain) {
  const std::vector<double> sensitivity = {0.2, 0.8, 0.5, 1};
  const std::vector<double> pressure = {1, 0.5, 0.1, 0.9};
  std::vector<std::vector<double>> slowdown(4, std::vector<double>(4));
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) slowdown[a][b] = 1 + sensitivity[a] * pressure[b];
  }
  const double left_out = slowdown[1][3];
  slowdown[1][3] = 0;
  EXPECT_NEAR(complete_interference(slowdown)[1][3], left_out, 1e-6);
  EXPECT_EQ(default_slowdown(0.3, 0.4), 1);
  EXPECT_EQ(default_slowdown(0.75, 0.75), 1.5);
}

TEST(Errors, SummaryIsMeanAndNinetiethPercentile) {
  const std::vector<double> timed(11, 100);
  std::vector<double> predicted;
  for (int i = 0; i <= 10; ++i) predicted.push_back(100 + i);
  const ErrorSummary summary = summarise_errors(predicted, timed);
  EXPECT_NEAR(summary.mape_ratio, 0.05, 1e-12);
  EXPECT_NEAR(summary.p90_ratio, 0.09, 1e-12);
  EXPECT_EQ(summary.n, 11);
}

}  // namespace
}  // namespace gpusched
