// SPDX-License-Identifier: Apache-2.0
// Whether jobs drawn from a fitted model of Lublin and Feitelson wait as the log's later jobs do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/lublin_fit.hpp"

namespace gpusched {
namespace {

double mean_wait_s(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto specs = parse_policies(registry, text);
  auto policy = make_policy(registry, specs->front(), {.jobs = &jobs, .cluster = &cluster});
  EXPECT_TRUE(policy) << policy.error().to_string();
  Engine engine(jobs, cluster);
  RunLog log;
  simulate(engine, *policy, log);
  return *compute_metrics(engine, log).avg_wait_s;
}

std::vector<double> mean_waits_s(const std::string& policy, const LublinModel& model, double load) {
  const Cluster cluster = Cluster::pool(256);
  std::vector<double> waits_s;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto jobs = generate_lublin(model, {.jobs = 4000, .offered_load = load, .cluster_gpus = 256, .seed = seed});
    EXPECT_TRUE(jobs) << jobs.error().to_string();
    waits_s.push_back(mean_wait_s(policy, *jobs, cluster));
  }
  std::sort(waits_s.begin(), waits_s.end());
  return waits_s;
}

constexpr std::size_t middle = 10;
constexpr double alike = 1.5;

// Fitted to jobs 0 to 5,999 of Lublin-1 and compared with the 4,000 jobs after them at their load. One log says little:
// mean waits of the 20 drawn ones differ by a factor of 2.
TEST(LublinWaits, OfDrawnLogsAreThoseOfTheJobsThatTheFitHasNotSeen) {
  const std::string path = test::real_trace("swf/lublin_256.swf");
  GPUSCHED_NEEDS_TRACE(path, "swf/lublin_256.swf");
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace);
  const auto model = fit_lublin(trace->jobs, 256, {.jobs = 6000});
  ASSERT_TRUE(model) << model.error().to_string();
  const JobTable real = trace->jobs.slice(6000, 4000);
  for (const char* policy : {"fifo", "sjf", "fifo+easy"}) {
    const double real_s = mean_wait_s(policy, real, Cluster::pool(256));
    const double drawn_s = mean_waits_s(policy, *model, offered_load(real, 256))[middle];
    EXPECT_GT(real_s, 10'000) << "a log without queues tests nothing";
    EXPECT_LT(drawn_s, alike * real_s) << policy;
    EXPECT_GT(drawn_s, real_s / alike) << policy;
  }
}

// The same without the chance of one log: what draws like the model waits like it.
TEST(LublinWaits, OfLogsDrawnFromAFitAreThoseOfLogsDrawnFromTheModelBehindIt) {
  const auto truth = lublin_model("type=all,processors=256");
  const auto log = generate_lublin(*truth, {.jobs = 6000, .seed = 99});
  const auto fitted = fit_lublin(*log, 256);
  ASSERT_TRUE(fitted) << fitted.error().to_string();
  for (const double load : {0.7, 1.0}) {
    for (const char* policy : {"fifo", "sjf", "fifo+easy"}) {
      const double true_s = mean_waits_s(policy, *truth, load)[middle];
      const double fitted_s = mean_waits_s(policy, *fitted, load)[middle];
      EXPECT_GT(true_s, 1000) << "logs without queues test nothing";
      EXPECT_LT(fitted_s, alike * true_s) << policy << ", load " << load;
      EXPECT_GT(fitted_s, true_s / alike) << policy << ", load " << load;
    }
  }
}

}  // namespace
}  // namespace gpusched
