// SPDX-License-Identifier: Apache-2.0
// The policies of HeliosArtifact, by examples worked out by hand from its rules.
#include "src/policies/published/helios.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// Two nodes of 8 for a, one for b.
Cluster two_virtual_clusters() {
  Cluster cluster = Cluster::homogeneous(3, 8);
  cluster.vcs = {{.name = "a"}, {.name = "b"}};
  cluster.nodes[0].vc = cluster.nodes[1].vc = 0;
  cluster.nodes[2].vc = 1;
  return cluster;
}

TEST(Helios, TheFirstThatFindsNoPlaceBlocksItsVirtualCluster) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 1, .vc = "a"},
                                  {.submit = 1, .work = 10, .gpus = 16, .vc = "a"},
                                  {.submit = 2, .work = 5, .gpus = 1, .vc = "a"},
                                  {.submit = 3, .work = 20, .gpus = 8, .vc = "b"}});
  EXPECT_EQ(run_policy("fifo@helios", jobs, two_virtual_clusters()),
            (Spans{{0, 100}, {100, 110}, {110, 115}, {3, 23}}));
  EXPECT_EQ(run_policy("sjf@helios", jobs, two_virtual_clusters()), (Spans{{0, 100}, {100, 110}, {2, 7}, {3, 23}}));
}

TEST(Helios, LargeGangsWaitForWholeNodes) {
  // From 1 s 9 GPUs are idle, 3 on each node. A gang of 9 takes one node whole and a GPU of another: at 30 s.
  const JobTable jobs = table_of({{.submit = 0, .work = 30, .gpus = 5},
                                  {.submit = 0, .work = 90, .gpus = 5},
                                  {.submit = 0, .work = 90, .gpus = 5},
                                  {.submit = 1, .work = 10, .gpus = 9}});
  EXPECT_EQ(run_policy("fifo@helios", jobs, Cluster::homogeneous(3, 8)), (Spans{{0, 30}, {0, 90}, {0, 90}, {30, 40}}));
  EXPECT_EQ(run_policy("fifo", jobs, Cluster::homogeneous(3, 8)), (Spans{{0, 30}, {0, 90}, {0, 90}, {1, 11}}));
}

// QSSF gives priorities only when an older job waits: three jobs that meet an empty queue are tried by GPUs alone.
TEST(Helios, QssfTriesJobsThatMeetAnEmptyQueueByGpus) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 6},
                                  {.submit = 0, .work = 100, .gpus = 4},
                                  {.submit = 0, .work = 1, .gpus = 4}});
  EXPECT_EQ(run_policy("qssf@helios{estimate=exact}", jobs, Cluster::homogeneous(1, 8)),
            (Spans{{100, 110}, {0, 100}, {0, 1}}));
  // By GPU time (60, 400, 4) job 2 starts first and job 0 as soon as it ends.
  EXPECT_EQ(run_policy("qssf{estimate=exact}", jobs, Cluster::homogeneous(1, 8)), (Spans{{1, 11}, {11, 111}, {0, 1}}));
}

TEST(Helios, QssfPrioritiesAreGivenOnce) {
  // Nothing has finished when job 1 gets its priority at 2 s: it counts as an hour on 8 GPUs from then on.
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 1},
                                  {.submit = 1, .work = 30, .gpus = 8},
                                  {.submit = 1, .work = 40, .gpus = 1},
                                  {.submit = 11, .work = 20, .gpus = 2}});
  // Job 2 is tried first at 1 s, by GPUs, and starts; job 1 waits for all 8 GPUs until 41 s. Job 3 comes at 11 s with
  // the priority 2 x 10 s against 8 x 3600 s, and starts at once.
  EXPECT_EQ(run_policy("qssf@helios", jobs, Cluster::homogeneous(1, 8)), (Spans{{0, 10}, {41, 71}, {1, 41}, {11, 31}}));
}

// 2e18 us on 8 GPUs are more than 64 bits hold.
TEST(Helios, QssfPutsJobsOfAgesLast) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 8},
                                  {.submit = 1, .work = 2'000'000'000'000, .gpus = 8},
                                  {.submit = 2, .work = 100, .gpus = 8}});
  const Spans spans = run_policy("qssf@helios{estimate=exact}", jobs, Cluster::homogeneous(1, 8));
  EXPECT_EQ(spans[2], (Span{10, 110}));
  EXPECT_EQ(spans[1].start, 110);  // its end, in seconds, is no exact double
}

TEST(Helios, SrtfPaysForCheckpointsAndEndsASecondLate) {
  // At 10 s job 0 has 90 s left and makes way; 30 s for its checkpoint on 8 GPUs. It runs 120 s and one more from 31 s.
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 8}, {.submit = 10, .work = 20, .gpus = 4}});
  EXPECT_EQ(run_policy("srtf@helios", jobs, Cluster::homogeneous(1, 8)), (Spans{{0, 152}, {10, 31}}));
  const JobTable single = table_of({{.submit = 0, .work = 100, .gpus = 1}, {.submit = 10, .work = 20, .gpus = 1}});
  EXPECT_EQ(run_policy("srtf@helios", single, Cluster::homogeneous(1, 1)), (Spans{{0, 31 + 97 + 1}, {10, 31}}));
  const JobTable wide = table_of({{.submit = 0, .work = 100, .gpus = 16}, {.submit = 10, .work = 20, .gpus = 8}});
  EXPECT_EQ(run_policy("srtf@helios", wide, Cluster::homogeneous(2, 8)), (Spans{{0, 31 + 150 + 1}, {10, 31}}));
}

TEST(Helios, SrtfKeepsTheGpusOfAJobThatFindsNoPlace) {
  // From 1 s job 2 (6 GPUs) is due, but 3 GPUs are idle on each node. At 2 s job 3 is due too, and with the 6 that
  // nobody uses set aside, job 1 has to go; then both find a place.
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 5},
                                  {.submit = 0, .work = 100, .gpus = 5},
                                  {.submit = 1, .work = 10, .gpus = 6},
                                  {.submit = 2, .work = 50, .gpus = 3}});
  EXPECT_EQ(run_policy("srtf@helios", jobs, Cluster::homogeneous(2, 8)), (Spans{{0, 101}, {0, 142}, {2, 13}, {2, 53}}));
}

// Job 1 wants both GPUs, which its virtual cluster shares with that of job 0.
TEST(Helios, SrtfLooksAtAVirtualClusterWhenAnotherFreesSharedNodes) {
  const JobTable jobs = table_of({{.work = 1, .vc = "a"}, {.work = 1, .gpus = 2, .vc = "b"}});
  Cluster cluster = Cluster::pool(2);
  cluster.vcs = {{.name = "a"}, {.name = "b"}};
  EXPECT_EQ(run_policy("srtf@helios", jobs, cluster), (Spans{{0, 2}, {2, 4}}));
}

TEST(Helios, SaysInOneLineWhatItDoesNotKnow) {
  const Cluster cluster = two_virtual_clusters();
  const JobTable stranger = table_of({{.work = 1, .vc = "c"}});
  EXPECT_EQ(make("fifo@helios", stranger, cluster).error().message,
            "policy fifo@helios: job 0 is of virtual cluster 'c', which cluster 3x8 does not have");
  JobTableBuilder builder;
  builder.add({.work = Time{1'500'000}, .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu}});
  const JobTable fraction = *std::move(builder).build();
  EXPECT_EQ(make("srtf@helios", fraction, Cluster::pool(1)).error().message,
            "policy srtf@helios counts whole seconds, and job 0 comes or runs for a fraction of one");
  const JobTable share = table_of({{.work = 1, .shape = {.gpu_milli_per_task = 500}}});
  EXPECT_EQ(make("sjf@helios", share, Cluster::pool(1)).error().message,
            "policy sjf@helios takes jobs of one-GPU tasks of any GPU type only");
}

}  // namespace
}  // namespace gpusched::test
