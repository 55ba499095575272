// SPDX-License-Identifier: Apache-2.0
#include "gpusched/serving/llm_replica.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/calibration/profile/llm_tables.hpp"
#include "tests/serving/slow_llm.hpp"
#include "tests/support/files.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

/// Any prompt step takes 100 us, any step of decodes 10.
LlmStepTimes constant_times() { return LlmStepTimes(BatchStepTimes({{1, 100, 10}, {2, 100, 10}})); }

TEST(KernelGrid, IsExactForWhatIsLinearThoughPointsAreMissing) {
  std::vector<KernelGrid<3>::Point> points;
  const auto time = [](double a, double b, double c) { return 5 + 2 * a + 3 * b + c; };
  for (const std::int64_t a : {1, 4, 16, 20}) {
    for (const std::int64_t b : {0, 10, 40}) {
      for (const std::int64_t c : {16, 64, 256}) {
        if (a == 16 && c < 256) continue;
        if (a == 4 && b == 10) continue;
        points.push_back({{a, b, c}, time(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c))});
      }
    }
  }
  const KernelGrid<3> grid(points);
  for (const double a : {1.0, 3.0, 4.0, 16.0, 17.5, 40.0}) {
    for (const double b : {0.0, 5.0, 25.0, 100.0}) {
      for (const double c : {16.0, 100.0, 256.0, 300.0}) {
        EXPECT_NEAR(grid.at({a, b, c}), time(a, b, c), 1e-9) << a << " " << b << " " << c;
      }
    }
  }
  EXPECT_EQ(KernelGrid<1>(std::vector<KernelGrid<1>::Point>{{{1}, 4}, {{1}, 6}}).at({9}), 5);
  EXPECT_EQ(KernelGrid<1>(std::vector<KernelGrid<1>::Point>{{{5}, 1}, {{10}, 20}}).at({0}), 0);  // not below
}

TEST(KernelGrid, TakesValuesWhosePointsEnclose) {
  const KernelGrid<2> grid(
      {{{1, 10}, 100}, {{1, 20}, 400}, {{2, 100}, 10'000}, {{2, 200}, 40'000}, {{3, 10}, 100}, {{3, 20}, 400}});
  EXPECT_DOUBLE_EQ(grid.at({2, 10}), 100);  // from 1 and 3: 2 was measured from 100 on
  EXPECT_DOUBLE_EQ(grid.at({2, 100}), 10'000);
}

/// Dense times 10 + tokens, an attention of 1 us a pair and of decodes * kv / 10, all by hand.
KernelTables small_tables() {
  KernelTables tables;
  for (const std::int64_t tokens : {1, 100}) {
    const auto t = static_cast<double>(tokens);
    tables.dense.insert(tables.dense.end(), {{"layernorm", tokens, 1},
                                             {"qkv_proj", tokens, 10 + t},
                                             {"embedding", tokens, 7},
                                             {"final_layernorm", tokens, 2}});
    tables.per_sequence.insert(tables.per_sequence.end(), {{"lm_head", tokens, 50 + t}, {"sampler", tokens, 3}});
  }
  for (const std::int64_t kv : {10, 1000}) {
    for (const std::int64_t decodes : {1, 100}) {
      tables.attention.push_back({{0, 0, decodes, kv}, static_cast<double>(decodes * kv) / 10});
    }
  }
  for (const std::int64_t chunk : {10, 20, 40}) {
    for (const std::int64_t before : {0, 100}) {
      tables.attention.push_back({{chunk, before, 0, 0}, static_cast<double>(chunk * (2 * before + chunk)) / 2});
    }
  }
  return tables;
}

TEST(KernelStepTimes, IsTheSumOfTheDesign) {
  LlmStep decodes;
  for (int i = 0; i < 4; ++i) decodes.add(1, 99 + 20 * i, true);  // they look back at 100, 120, 140, 160 tokens
  const double dense = 2 * 1 + 10 + 4, once = 7 + 2, sequences = 50 + 4 + 3, attention = 4 * 130 / 10.0;
  EXPECT_NEAR(KernelStepTimes(small_tables(), 3).step_us(decodes), 3 * (dense + attention) + once + sequences, 1e-9);
  // Two all-reduces a layer: 4 tokens x 1000 values x 2 bytes over 8 GB/s is 1 us, and 5 us each.
  const TensorParallel parallel{.ranks = 2, .link_gb_s = 8, .link_us = 5, .hidden = 1000};
  EXPECT_NEAR(KernelStepTimes(small_tables(), 3, parallel, 11).step_us(decodes),
              3 * (dense + attention + 2 * 6) + once + sequences + 11, 1e-9);
}

TEST(KernelStepTimes, SeveralPromptsCountByTheirPairs) {
  const KernelStepTimes times(small_tables(), 1);
  LlmStep one, two, four;
  one.add(20, 100, false);
  EXPECT_NEAR(times.attention_us(one), 20 * 220 / 2.0, 1e-9);
  two.add(10, 100, false), two.add(10, 100, false);  // as many pairs as 20 tokens after 95
  EXPECT_NEAR(times.attention_us(two), 2 * 10 * 210 / 2.0, 1e-9);
  for (int i = 0; i < 4; ++i) four.add(10, 0, false);  // as 20 tokens from the beginning
  EXPECT_NEAR(times.attention_us(four), 4 * 100 / 2.0, 1e-9);
  one.add(1, 109, true);  // no mixed table: the sum
  EXPECT_NEAR(times.attention_us(one), 20 * 220 / 2.0 + 11, 1e-9);
}

TEST(KernelStepTimes, ExpertsInUseAreThoseExpected) {
  KernelTables tables = small_tables();
  tables.experts = {{{1, 2}, 20}, {{2, 2}, 20}, {{2, 4}, 40}, {{100, 2}, 20}, {{100, 8}, 80}};
  LlmStep step;
  step.add(1, 9, true), step.add(1, 9, true);
  // 8 x (1 - (1 - 2/8)^2) = 3.5, that is 35 us.
  EXPECT_NEAR(KernelStepTimes(tables, 1).step_us(step) - KernelStepTimes(small_tables(), 1).step_us(step), 35, 1e-9);
}

TEST(BatchStepTimes, TakesMediansLinesAndTheTenthOfAMixedBatch) {
  const BatchStepTimes times({{100, 1000, 10}, {100, 9000, 20}, {100, 2000, 90}, {300, 4000, 40}});
  LlmStep step;
  step.add(200, 0, false);
  EXPECT_DOUBLE_EQ(times.step_us(step), 3000);
  step.add(1, 40, true);
  EXPECT_DOUBLE_EQ(times.step_us(step), 1.1 * 3010);
  LlmStep decode;
  decode.add(1, 40, true);
  EXPECT_DOUBLE_EQ(times.step_us(decode), 20 - 99 * .1);
}

TEST(LlmReplica, ChunksAPromptAndThenYieldsATokenAStep) {
  const LlmStepTimes times = constant_times();
  LlmReplica replica({}, times);
  ASSERT_TRUE(replica.submit({.id = 1, .prompt_tokens = 5000, .output_tokens = 3}, {7}));
  EXPECT_EQ(replica.next_time(), Time{7});
  replica.advance({7});
  EXPECT_EQ(replica.next_time(), Time{107});
  replica.advance({1000});
  ASSERT_EQ(replica.done().size(), 1U);
  const LlmOutcome outcome = replica.done()[0];
  EXPECT_EQ(outcome.scheduled, Time{7});
  EXPECT_EQ(outcome.first_token, Time{307});  // 2048 + 2048 + 904
  EXPECT_EQ(outcome.last_token, Time{327});
  EXPECT_EQ(replica.counts().tokens, 5002);
  EXPECT_EQ(replica.counts().busy_us, 320);
  EXPECT_EQ(replica.next_time(), Time::max());
}

TEST(LlmReplica, DecodesComeFirstAndLeaveTheRestToPrompts) {
  const LlmStepTimes times = constant_times();
  LlmReplica replica({.step_tokens = 10, .sequences = 3}, times);
  replica.submit({.id = 0, .prompt_tokens = 10, .output_tokens = 50}, {0});
  replica.submit({.id = 1, .prompt_tokens = 12, .output_tokens = 1}, {0});
  replica.submit({.id = 2, .prompt_tokens = 5, .output_tokens = 1}, {0});
  replica.submit({.id = 3, .prompt_tokens = 1, .output_tokens = 1}, {0});
  replica.advance({100});  // step 1 computed request 0; step 2: its token and 9 of request 1
  EXPECT_EQ(replica.running(), 2);
  replica.advance({210});  // step 3: 1 + 3 + 5, and request 3 finds three sequences
  EXPECT_EQ(replica.running(), 3);
  EXPECT_EQ(replica.waiting(), 1);
  replica.advance({320});
  ASSERT_EQ(replica.done().size(), 2U);
  EXPECT_EQ(replica.done()[0].last_token, Time{320});
  EXPECT_EQ(replica.done()[1].first_token, Time{320});
  EXPECT_EQ(replica.done()[1].scheduled, Time{210});
  EXPECT_TRUE(replica.consistent());
}

TEST(LlmReplica, WithoutBlocksTheLastAdmittedStartsAnew) {
  const LlmStepTimes times = constant_times();
  LlmReplica replica({.kv_blocks = 4, .block_tokens = 4}, times);
  replica.submit({.id = 0, .prompt_tokens = 7, .output_tokens = 6}, {0});
  replica.submit({.id = 1, .prompt_tokens = 7, .output_tokens = 3}, {0});
  replica.advance({100});  // both prompts in two blocks each; one token each
  EXPECT_EQ(replica.free_blocks(), 0);
  replica.advance({110});  // both caches hold 8 tokens: request 0 takes a third block of request 1
  EXPECT_EQ(replica.counts().preemptions, 1);
  EXPECT_EQ(replica.running(), 1);
  EXPECT_EQ(replica.free_blocks(), 1);
  replica.advance({1000});
  ASSERT_EQ(replica.done().size(), 2U);
  EXPECT_EQ(replica.done()[0].last_token, Time{150});
  // Then 9 tokens of request 1, of which 2 were its answer, are computed again and yield the third.
  EXPECT_EQ(replica.done()[1].first_token, Time{100});
  EXPECT_EQ(replica.done()[1].last_token, Time{250});
  EXPECT_EQ(replica.done()[1].preemptions, 1);
  EXPECT_EQ(replica.free_blocks(), 4);
  EXPECT_FALSE(replica.submit({.id = 2, .prompt_tokens = 7, .output_tokens = 11}, {1000}));
  EXPECT_TRUE(replica.fits({.prompt_tokens = 7, .output_tokens = 10}));  // the last token is never cached
}

TEST(LlmReplica, AReplicaThatEndsGivesItsRequestsBack) {
  const LlmStepTimes times = constant_times();
  LlmReplica replica({.sequences = 1}, times);
  for (std::uint64_t id = 0; id < 3; ++id) replica.submit({.id = id, .prompt_tokens = 5, .output_tokens = 9}, {0});
  replica.advance({105});
  LlmReplica drained = replica;
  EXPECT_EQ(drained.take_waiting().size(), 2U);
  drained.advance({1000});
  EXPECT_EQ(drained.counts().completed, 1);
  const std::vector<LlmRequest> left = replica.stop();
  ASSERT_EQ(left.size(), 3U);
  EXPECT_EQ(left[0].id, 0U);
  EXPECT_EQ(left[2].id, 2U);
  EXPECT_EQ(replica.next_time(), Time::max());
  EXPECT_TRUE(replica.consistent());
  EXPECT_EQ(replica.free_blocks(), replica.limits().kv_blocks);
  replica.submit(left[0], {2000});
  replica.advance({5000});
  EXPECT_EQ(replica.done()[0].last_token, Time{2180});
}

/// First tokens and responses of three requests that a prompt-at-a-time engine serves.
std::vector<std::array<double, 2>> three_requests(const LlmStepTimes& times) {
  LlmReplica replica({.chunked = false}, times);
  std::uint64_t id = 0;
  for (const auto& [at_s, prompt, output] :
       {std::array<int, 3>{1, 4096, 32}, std::array<int, 3>{3, 2048, 8}, std::array<int, 3>{4, 2048, 16}}) {
    const Time now = whole_seconds(at_s);
    replica.advance(now);
    replica.submit({.id = id++, .arrival = now, .prompt_tokens = prompt, .output_tokens = output}, now);
    replica.advance(now);
  }
  replica.advance(whole_seconds(100));
  std::vector<std::array<double, 2>> seconds;
  for (const LlmOutcome& o : replica.done())
    seconds.push_back({to_seconds(o.first_token - o.queued), to_seconds(o.last_token - o.queued)});
  return seconds;
}

TEST(Splitwise, ThreeRequestsByHand) {
  // 0.1 ms a token of a prompt; a lone token takes 29.9 + 0.0001 x 1 ms, exactly 29.9001: the sum is not rounded a
  // step.
  const auto seconds = three_requests(
      LlmStepTimes(BatchStepTimes({{1001, 100'100, 30'000.1}, {2001, 200'100, 30'100.1}, {2001, 200'100, 30'100.1}})));
  ASSERT_EQ(seconds.size(), 3U);
  EXPECT_DOUBLE_EQ(seconds[0][0], .4096);
  EXPECT_DOUBLE_EQ(seconds[0][1], 1.336503);  // .4096 + 31 x .0299001 = 1.3365031
  EXPECT_DOUBLE_EQ(seconds[1][0], .2048);
  EXPECT_DOUBLE_EQ(seconds[1][1], .414101);
  EXPECT_DOUBLE_EQ(seconds[2][1], .653302);  // 15 steps: .6533015, of which the half is rounded up
}

TEST(Splitwise, ThreeRequestsOfItsTest) {
  const std::string file = real_trace("inference/splitwise_perf_model.csv");
  GPUSCHED_NEEDS_TRACE(file, "inference/splitwise_perf_model.csv");
  const auto runs = read_batch_times(file, {"bloom-176b", "h100-80gb", 8});
  ASSERT_TRUE(runs) << runs.error().to_string();
  const auto seconds = three_requests(LlmStepTimes(BatchStepTimes(*runs)));
  ASSERT_EQ(seconds.size(), 3U);
  const double first[] = {.649598, .251964, .251964}, response[] = {1.744743, .499255, .781873};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(seconds[i][0], first[i], 1e-6);
    EXPECT_NEAR(seconds[i][1], response[i], 1e-6);
  }
}

void compare_with_slow_engine(std::uint64_t seed) {
  Rng rng = Rng(2026).split("llm").split(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
  LlmLimits limits{.kv_blocks = 3 + below(20),
                   .block_tokens = static_cast<std::int32_t>(1 + below(5)),
                   .step_tokens = 1 + below(24),
                   .sequences = static_cast<std::int32_t>(1 + below(6)),
                   .chunked = below(4) > 0,
                   .whole_prompt_fits = below(2) == 0};
  const LlmStepTimes kernels{KernelStepTimes(small_tables(), 1)};
  const LlmStepTimes batches{BatchStepTimes({{1, 2.25, 1.125}, {50, 12.75, 9.5}})};
  const LlmStepTimes& times = below(2) == 0 ? kernels : batches;
  LlmReplica replica(limits, times);
  SlowLlm slow(limits, times);
  std::int64_t now = 0;
  std::uint64_t id = 0;
  std::vector<std::string> log;
  for (int i = 0; i < 40; ++i) {
    now += below(2) * below(200);
    replica.advance({now}), slow.until(now);
    const std::int64_t what = below(25);
    if (what == 0) {
      std::vector<std::uint64_t> ids;
      for (const LlmRequest& r : replica.stop()) ids.push_back(r.id);
      ASSERT_EQ(ids, slow.stop());
    } else if (what == 1) {
      std::vector<std::uint64_t> ids;
      for (const LlmRequest& r : replica.take_waiting()) ids.push_back(r.id);
      ASSERT_EQ(ids, slow.take_waiting());
    } else {
      const LlmRequest request{.id = id++,
                               .arrival = {now},
                               .prompt_tokens = static_cast<std::int32_t>(1 + below(30)),
                               .output_tokens = static_cast<std::int32_t>(1 + below(12))};
      const std::int64_t cached = request.prompt_tokens + request.output_tokens - 1;
      const bool fits = cached <= limits.kv_blocks * limits.block_tokens;
      ASSERT_EQ(replica.submit(request, {now}), fits);
      if (fits) slow.submit(request, now);
    }
    ASSERT_TRUE(replica.consistent());
    if (below(10) == 0) replica = LlmReplica(replica);
  }
  while (replica.next_time() != Time::max()) {
    replica.advance(replica.next_time());
    ASSERT_TRUE(replica.consistent());
  }
  slow.until(Time::max().us / 4'000'000);
  for (const LlmOutcome& o : replica.done()) {
    EXPECT_TRUE(o.request.arrival <= o.queued && o.queued <= o.scheduled && o.scheduled <= o.first_token &&
                o.first_token <= o.last_token);
    log.push_back(std::to_string(o.request.id) + ": " + std::to_string(o.queued.us) + " " +
                  std::to_string(o.scheduled.us) + " " + std::to_string(o.first_token.us) + " " +
                  std::to_string(o.last_token.us) + " " + std::to_string(o.preemptions));
  }
  ASSERT_EQ(log, slow.log) << "seed " << seed;
  ASSERT_EQ(replica.counts().preemptions, slow.preemptions);
}

TEST(LlmReplica, IsASlowEngineOnRandomWorlds) {
  for (std::uint64_t seed = 0; seed < random_runs(500) && !HasFatalFailure(); ++seed) compare_with_slow_engine(seed);
}

}  // namespace
}  // namespace gpusched::test
