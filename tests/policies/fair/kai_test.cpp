// SPDX-License-Identifier: Apache-2.0
// The KAI scheduler's shares, reclaim and preemption by examples worked out by hand, after its documentation.
#include "src/policies/fair/kai.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "tests/policies/policy_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual_divisions = 2000;

std::vector<MilliGpu> shares_of(std::vector<KaiQueue> queues, std::vector<MilliGpu> asked_gpus, MilliGpu total_gpus) {
  for (KaiQueue& queue : queues) {
    queue.quota *= whole_gpu;
    if (queue.limit != unlimited) queue.limit *= whole_gpu;
  }
  for (MilliGpu& asked : asked_gpus) asked *= whole_gpu;
  std::vector<MilliGpu> shares = kai_fair_shares(queues, asked_gpus, total_gpus * whole_gpu);
  for (MilliGpu& share : shares) share /= whole_gpu;
  return shares;
}

using MilliGpus = std::vector<MilliGpu>;

// The picture of docs/scheduling-deep-dive: of ten GPUs three are left beyond the quotas, and go two to one to the two
// queues of the higher priority.
TEST(KaiShares, QuotasFirstThenPriorityThenWeight) {
  const std::vector<KaiQueue> queues{{.quota = 3, .weight = 2, .priority = 2},
                                     {.quota = 2, .weight = 1, .priority = 2},
                                     {.quota = 2, .weight = 100, .priority = 1}};
  EXPECT_EQ(shares_of(queues, {10, 10, 10}, 10), (MilliGpus{5, 3, 2}));
  EXPECT_EQ(shares_of(queues, {3, 2, 10}, 10), (MilliGpus{3, 2, 5}));
  EXPECT_EQ(shares_of(queues, {1, 0, 10}, 10), (MilliGpus{1, 0, 9}));
}

TEST(KaiShares, AreWholeAndWhatIsLeftGoesToTheLargestRemainder) {
  EXPECT_EQ(shares_of({{}, {}}, {10, 10}, 7), (MilliGpus{4, 3}));
  EXPECT_EQ(shares_of({{}, {}, {}}, {1, 10, 10}, 10), (MilliGpus{1, 5, 4}));
  EXPECT_EQ(shares_of({{.weight = 2}, {.weight = 1}}, {10, 10}, 8), (MilliGpus{5, 3}));  // 5.33 and 2.67
  EXPECT_EQ(shares_of({{.limit = 2}, {}}, {10, 10}, 8), (MilliGpus{2, 6}));
  EXPECT_EQ(shares_of({{.weight = 0}, {}}, {10, 3}, 8), (MilliGpus{0, 3}));
}

TEST(KaiShares, GiveAllThatIsAskedForAndThereIs) {
  Rng rng(7);
  const auto below = [&rng](std::uint64_t n) { return static_cast<MilliGpu>(rng.below(n)); };
  for (std::uint64_t i = 0; i < random_runs(usual_divisions); ++i) {
    std::vector<KaiQueue> queues(1 + rng.below(6));
    std::vector<MilliGpu> asked;
    const MilliGpu total = 500 * (1 + below(60));
    MilliGpu quotas = 0, wanted = 0;
    for (KaiQueue& queue : queues) {
      queue.quota = std::min<MilliGpu>(500 * below(20), total - quotas);
      quotas += queue.quota;
      if (rng.below(3) == 0) queue.limit = queue.quota + 250 * below(40);
      queue.weight = static_cast<double>(1 + rng.below(5));
      queue.priority = static_cast<double>(rng.below(3));
      asked.push_back(250 * below(80));
      wanted += std::min(asked.back(), queue.limit);
    }
    const std::vector<MilliGpu> shares = kai_fair_shares(queues, asked, total);
    for (std::size_t queue = 0; queue < queues.size(); ++queue) {
      ASSERT_GE(shares[queue], std::min(queues[queue].quota, std::min(asked[queue], queues[queue].limit)));
    }
    const MilliGpu given = std::accumulate(shares.begin(), shares.end(), MilliGpu{0});
    ASSERT_LE(given, total);
    // The last GPUs may go beyond what a queue asks for, by less than one.
    ASSERT_GE(given, std::min(total, wanted) - static_cast<MilliGpu>(queues.size()) * whole_gpu);
  }
}

const Cluster eight_gpus = Cluster::pool(8);

// Two jobs of queue a hold all GPUs, and ten seconds later one of queue b wants half.
JobTable full(std::int32_t priority = 0) {
  return table_of({{.submit = 0, .work = 100, .gpus = 4, .vc = "a", .priority = priority},
                   {.submit = 0, .work = 100, .gpus = 4, .vc = "a", .priority = priority},
                   {.submit = 10, .work = 20, .gpus = 4, .vc = "b"}});
}

TEST(Kai, AQueueReclaimsItsFairShare) {
  EXPECT_EQ(run_policy("kai", full(), eight_gpus), (Spans{{0, 100}, {0, 120}, {10, 30}}));
  EXPECT_EQ(run_policy("kai{reclaim=false}", full(), eight_gpus), (Spans{{0, 100}, {0, 100}, {100, 120}}));
}

// Job 2 takes one GPU of the four that job 0 gives up; job 1 fits beside it.
TEST(Kai, WhatAReclaimFreesIsAllocatedAtOnce) {
  const JobTable jobs = table_of({{.submit = 0, .work = 109, .gpus = 4, .vc = "q", .priority = 2},
                                  {.submit = 1, .work = 16, .gpus = 3, .vc = "q"},
                                  {.submit = 5, .work = 1000, .gpus = 1, .vc = "p"}});
  EXPECT_EQ(run_policy("kai", jobs, Cluster::pool(4)), (Spans{{0, 1109}, {5, 21}, {5, 1005}}));
}

TEST(Kai, WhatIsWithinAQuotaIsProtected) {
  EXPECT_EQ(run_policy("kai{quota_gpus=[a=8]}", full(), eight_gpus)[2], (Span{100, 120}));
  EXPECT_EQ(run_policy("kai{quota_gpus=[a=5]}", full(), eight_gpus)[2], (Span{100, 120})) << "its share is one";
  EXPECT_EQ(run_policy("kai{quota_gpus=[a=4,b=4]}", full(), eight_gpus)[2], (Span{10, 30}));
  EXPECT_EQ(run_policy("kai{weights_over_quota=[a=3]}", full(), eight_gpus)[2], (Span{100, 120}));
  EXPECT_EQ(run_policy("kai{queue_priorities=[a=1]}", full(), eight_gpus)[2], (Span{100, 120})) << "a asks for all";
}

TEST(Kai, WhoIsNotPreemptibleIsNeverStopped) {
  EXPECT_EQ(run_policy("kai{nonpreemptible_from=100,quota_gpus=[a=8]}", full(100), eight_gpus)[2], (Span{100, 120}));
  // It stays within its quota, whatever is idle.
  EXPECT_EQ(run_policy("kai{nonpreemptible_from=100,quota_gpus=[a=4]}", full(100), eight_gpus),
            (Spans{{0, 100}, {100, 200}, {10, 30}}));
}

TEST(Kai, ALimitIsALimit) {
  EXPECT_EQ(run_policy("kai{limit_gpus=[a=4]}", full(), eight_gpus), (Spans{{0, 100}, {100, 200}, {10, 30}}));
}

// The one above its share comes after the one below it, whatever came first.
TEST(Kai, TheQueueThatHoldsLessOfItsShareGoesFirst) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 8, .vc = "c"},
                                  {.submit = 1, .work = 10, .gpus = 4, .vc = "a"},
                                  {.submit = 2, .work = 10, .gpus = 4, .vc = "a"},
                                  {.submit = 3, .work = 10, .gpus = 4, .vc = "b"},
                                  {.submit = 4, .work = 10, .gpus = 4, .vc = "b"}});
  EXPECT_EQ(run_policy("kai{reclaim=false}", jobs, eight_gpus),
            (Spans{{0, 100}, {100, 110}, {110, 120}, {100, 110}, {110, 120}}));
  EXPECT_EQ(run_policy("kai{reclaim=false,queue_priorities=[b=1]}", jobs, eight_gpus),
            (Spans{{0, 100}, {110, 120}, {110, 120}, {100, 110}, {100, 110}}));
}

TEST(Kai, HigherPrioritiesPreemptWithinTheirQueue) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 4, .vc = "a", .priority = 1},
                                  {.submit = 1, .work = 100, .gpus = 4, .vc = "a"},
                                  {.submit = 10, .work = 20, .gpus = 4, .vc = "a", .priority = 2},
                                  {.submit = 10, .work = 20, .gpus = 4, .vc = "a", .priority = 0}});
  EXPECT_EQ(run_policy("kai", jobs, eight_gpus), (Spans{{0, 100}, {1, 121}, {10, 30}, {100, 120}}));
  EXPECT_EQ(run_policy("kai{preempt=false}", jobs, eight_gpus), (Spans{{0, 100}, {1, 101}, {100, 120}, {101, 121}}));
  // At a limit of four the first of them has to make way itself.
  EXPECT_EQ(run_policy("kai{limit_gpus=[a=4]}", jobs, eight_gpus)[2], (Span{10, 30}));
  EXPECT_EQ(run_policy("kai{limit_gpus=[a=4]}", jobs, eight_gpus)[0], (Span{0, 120}));
}

TEST(Kai, SaysWhatIsWrong) {
  const auto error_of = [](const std::string& policy) { return error_of_policy(policy, full(), eight_gpus); };
  EXPECT_EQ(error_of("kai{quota_gpus=[c=4]}"),
            "policy kai: quota_gpus: expected one of the trace's virtual clusters, found 'c'");
  EXPECT_EQ(error_of("kai{limit_gpus=[b=2]}"),
            "policy kai: job '2' asks for 4 GPUs, and its queue 'b' never holds more than 2");
  EXPECT_EQ(error_of("kai{weights_over_quota=[a]}"), "policy kai: weights_over_quota: expected NAME=WEIGHT, found 'a'");
}

}  // namespace
}  // namespace gpusched::test
