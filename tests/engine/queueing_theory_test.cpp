// SPDX-License-Identifier: Apache-2.0
// The engine against queueing theory.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

/// Probability that an arrival of an M/M/c queue waits, at offered load `a` = arrival rate x mean service (Erlang C).
double erlang_c(int c, double a) {
  double blocked = 1;  // Erlang B by its recursion
  for (int k = 1; k <= c; ++k) blocked = a * blocked / (k + a * blocked);
  return blocked / (1 - a / c * (1 - blocked));
}

struct Estimate {
  double mean = 0;
  double half_width = 0;  ///< of the 99% confidence interval
};

/// Mean wait over `replications` of M/M/c runs of `n` jobs, of which the first tenth warms up. Mean service 1000 s.
Estimate mean_wait(int c, double load, int replications, std::uint32_t n) {
  std::vector<double> means;
  for (int r = 0; r < replications; ++r) {
    Rng rng = Rng(2024).split("queueing").split(static_cast<std::uint64_t>(r));
    JobTableBuilder builder;
    double submit = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      submit += rng.exponential(1000.0 / (load * c));
      builder.add({.submit = from_seconds(submit),
                   .work = from_seconds(rng.exponential(1000)),
                   .shape = {.gpu_milli_per_task = whole_gpu}});
    }
    const JobTable jobs = *std::move(builder).build();
    Engine engine(jobs, Cluster::pool(static_cast<std::uint32_t>(c)));
    Fifo policy;
    EXPECT_TRUE(simulate(engine, policy));
    double sum = 0;
    const std::uint32_t warm = n / 10;
    for (std::uint32_t i = warm; i < n; ++i) sum += to_seconds(engine.first_start(JobId{i}) - jobs.submit(JobId{i}));
    means.push_back(sum / (n - warm));
  }
  Estimate estimate;
  for (const double mean : means) estimate.mean += mean / replications;
  double squares = 0;
  for (const double mean : means) squares += std::pow(mean - estimate.mean, 2);
  const double student_t = 2.861;  // 99.5% quantile with 19 degrees of freedom
  EXPECT_EQ(replications, 20);
  estimate.half_width = student_t * std::sqrt(squares / (replications - 1) / replications);
  return estimate;
}

TEST(QueueingTheory, TheMeanWaitOfMMcIsErlangs) {
  for (const auto& [c, load] : std::vector<std::pair<int, double>>{{1, 0.5}, {4, 0.7}, {16, 0.9}}) {
    const double expected = erlang_c(c, load * c) * 1000 / (c * (1 - load));
    const Estimate wait = mean_wait(c, load, 20, 50'000);
    EXPECT_NEAR(wait.mean, expected, wait.half_width) << "c = " << c;
    EXPECT_LT(wait.half_width, 0.1 * expected) << "c = " << c;  // the interval says something
  }
}

// Schrage 1968: on one server no discipline has fewer jobs in the system at any time than shortest remaining time.
TEST(QueueingTheory, ShortestRemainingTimeBeatsFifoOnOneServer) {
  Rng rng = Rng(5).split("schrage");
  std::vector<Row> rows;
  std::int64_t submit = 0;
  for (int i = 0; i < 2000; ++i) {
    submit += static_cast<std::int64_t>(rng.exponential(12));
    rows.push_back({.submit = submit, .work = static_cast<std::int64_t>(rng.exponential(10)) + 1});
  }
  const JobTable jobs = table_of(rows);
  const auto ends = [&](auto policy) {
    std::vector<double> times;
    for (const Span& span : run(jobs, Cluster::pool(1), policy)) times.push_back(span.end);
    std::sort(times.begin(), times.end());
    return times;
  };
  const auto fifo = ends(Fifo{}), srtf = ends(ShortestRemaining(false));
  // The k-th job to leave leaves no later: the number in the system is never larger.
  for (std::size_t k = 0; k < fifo.size(); ++k) ASSERT_LE(srtf[k], fifo[k]) << k;
}

}  // namespace
}  // namespace gpusched::test
