// SPDX-License-Identifier: Apache-2.0
// The average JCT that the Muri artifact (SIGCOMM'22) published for its baselines on its traces, 8 nodes of 8 GPUs.
#include "golden_support.hpp"
#include "src/policies/las_queues.hpp"
#include "src/policies/muri.hpp"

namespace gpusched {
namespace {

using test::CsvColumns;

// File times are milliseconds; an iteration takes 1.015 times its file value, which in microseconds is a whole number.
JobTable read_muri(const std::filesystem::path& path, bool all_at_zero) {
  const CsvColumns rows(path);
  JobTableBuilder builder;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::int64_t submit_ms = all_at_zero ? 0 : rows.integer(row, "submit_time");
    const std::int64_t iteration_us = rows.integer(row, "iteration_time") * 1015;
    builder.add(
        {.submit = Time{submit_ms * 1000},
         .work = Time{rows.integer(row, "iterations") * iteration_us},
         .shape = {.tasks = static_cast<std::uint32_t>(rows.integer(row, "num_gpu")), .gpu_milli_per_task = whole_gpu},
         .family = rows.text(row, "model_name")});
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
  if (path.empty()) GTEST_SKIP() << published.trace << " is not here; set GPUSCHED_TRACES";
  const JobTable jobs = read_muri(path, published.all_at_zero);
  EXPECT_NEAR(avg_jct_s(jobs, MuriShortest(false)) / published.srtf, 1, 1e-6);
  EXPECT_NEAR(avg_jct_s(jobs, MuriShortest(true)) / published.srsf, 1, 1e-6);
  EXPECT_NEAR(avg_jct_s(jobs, LasQueues(LasQueuesForm::muri, {3250, 7200}, 0)) / published.tiresias, 1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Published, MuriTable,
                         ::testing::Values(Published{"muri_trace1.csv", false, 1370603.198, 980140.5699, 3330371.307},
                                           Published{"muri_trace1.csv", true, 2303543.816, 1801859.995, 6921682.793},
                                           Published{"muri_trace2.csv", false, 2665607.375, 2213949.687, 7396368.514}));

}  // namespace
}  // namespace gpusched
