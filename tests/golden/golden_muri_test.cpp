// SPDX-License-Identifier: Apache-2.0
// The average JCT that the Muri artifact (SIGCOMM'22) published for its baselines on its traces, 8 nodes of 8 GPUs.
#include "src/policies/published/muri_shortest.hpp"
#include "src/policies/published/tiresias_code_muri.hpp"
#include "tests/golden/golden_support.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {
namespace {

// The jobs of `table`, every one submitted at 0.
JobTable all_at_zero(const JobTable& table) {
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    const JobId job{i};
    builder.add({.work = table.work(job), .shape = table.shape(job), .family = table.families()[table.family(job)]});
  }
  return *std::move(builder).build();
}

struct Published {
  const char* trace;
  bool all_at_zero;
  double srtf, srsf, tiresias;  // average JCT, seconds
};

class MuriTable : public ::testing::TestWithParam<Published> {
 protected:
  template <class P>
  static double avg_jct_s(const JobTable& jobs, P policy) {
    const Cluster cluster = Cluster::homogeneous(8, 8);
    Engine engine(jobs, cluster);
    EXPECT_TRUE(simulate(engine, policy));
    return test::figures_of(engine).avg_jct_s;
  }
};

TEST_P(MuriTable, AverageJctIsThePublishedOne) {
  const Published& published = GetParam();
  const auto path = test::real_trace(std::string("philly/") + published.trace);
  GPUSCHED_NEEDS_TRACE(path, published.trace);
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace);
  const JobTable jobs = published.all_at_zero ? all_at_zero(trace->jobs) : trace->jobs;
  EXPECT_NEAR(avg_jct_s(jobs, MuriShortest(false)) / published.srtf, 1, 1e-6);
  EXPECT_NEAR(avg_jct_s(jobs, MuriShortest(true)) / published.srsf, 1, 1e-6);
  EXPECT_NEAR(avg_jct_s(jobs, TiresiasMuri({3250, 7200}, 0)) / published.tiresias, 1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Published, MuriTable,
                         ::testing::Values(Published{"muri_trace1.csv", false, 1370603.198, 980140.5699, 3330371.307},
                                           Published{"muri_trace1.csv", true, 2303543.816, 1801859.995, 6921682.793},
                                           Published{"muri_trace2.csv", false, 2665607.375, 2213949.687, 7396368.514}));

}  // namespace
}  // namespace gpusched
