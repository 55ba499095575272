// SPDX-License-Identifier: Apache-2.0
// What models/*/card.txt say of whole logs, each sentence on a log.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/trace_model.hpp"

namespace gpusched {
namespace {

struct Means {
  double jct_s = 0, slowdown = 0;
};

Means means_of(const std::string& text, const JobTable& jobs, const Cluster& cluster, Time restart = {}) {
  static const PolicyRegistry registry = PolicyRegistry::standard();
  auto policy = make_policy(registry, parse_policies(registry, text)->front(), {.jobs = &jobs, .cluster = &cluster});
  EXPECT_TRUE(policy) << text;
  EngineOptions options;
  options.preemption.restart = restart;
  Engine engine(jobs, cluster, options);
  EXPECT_TRUE(simulate(engine, *policy)) << text;
  Means means;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const double age = to_seconds(engine.end(JobId{i}) - engine.submit(JobId{i}));
    means.jct_s += age / jobs.size();
    means.slowdown += std::max(1.0, age / std::max(10.0, to_seconds(jobs.work(JobId{i})))) / jobs.size();
  }
  return means;
}

constexpr const char* saf_easy = "saf{estimate=requested}+easy{estimate=requested}";
constexpr const char* sjf_easy = "sjf{estimate=requested}+easy{estimate=requested}";

TEST(ShippedCards, HpcHasLessSlowdownOnAFreshLogOfItsModel) {
  const auto model = named_trace_model("lublin{type=all,processors=128,estimate_factor=2}");
  ASSERT_TRUE(model) << model.error().to_string();
  const auto jobs = generate_trace(*model, {.jobs = 4000, .offered_load = 0.95, .cluster_gpus = 256, .seed = 77});
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const Cluster cluster = Cluster::pool(256);
  const Means agent = means_of("rl:builtin/hpc", *jobs, cluster);
  for (const char* plain : {saf_easy, sjf_easy}) EXPECT_LT(agent.slowdown, means_of(plain, *jobs, cluster).slowdown);
}

TEST(ShippedCards, HpcHasMoreSlowdownThanSjfOnHpc2n) {
  const std::string path = test::real_trace("swf/hpc2n_head_alea.swf");
  GPUSCHED_NEEDS_TRACE(path, "HPC2N");
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace);
  const Cluster cluster = Cluster::pool(240);
  EXPECT_GT(means_of("rl:builtin/hpc", trace->jobs, cluster).slowdown,
            means_of(sjf_easy, trace->jobs, cluster).slowdown);
}

TEST(ShippedCards, PhillyIsNearGittinsAtTheCostOfSlowdownAndWorseOnHpcLogs) {
  const std::string path = test::real_trace("philly/philly_jobs.csv"),
                    hpc = test::real_trace("swf/hpc2n_head_alea.swf");
  GPUSCHED_NEEDS_TRACE(path, "Philly");
  GPUSCHED_NEEDS_TRACE(hpc, "HPC2N");
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace);
  const JobTable last = trace->jobs.slice(48'323, trace->jobs.size() - 48'323);
  const Cluster cluster = Cluster::homogeneous(24, 8);
  constexpr const char* gittins = "agenda{mode=preempt,heuristic=gittins}";
  const Time restart = whole_seconds(60);
  const Means agent = means_of("rl:builtin/philly", last, cluster, restart);
  EXPECT_NEAR(agent.jct_s, means_of(gittins, last, cluster, restart).jct_s, 0.05 * agent.jct_s);
  EXPECT_GT(agent.slowdown, means_of("las", last, cluster, restart).slowdown);

  const auto other = read_trace(hpc);
  ASSERT_TRUE(other);
  const Cluster pool = Cluster::pool(240);
  EXPECT_GT(means_of("rl:builtin/philly", other->jobs, pool, restart).jct_s,
            means_of(gittins, other->jobs, pool, restart).jct_s);
}

}  // namespace
}  // namespace gpusched
