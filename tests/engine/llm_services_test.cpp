// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/service_figures.hpp"
#include "tests/engine/service_support.hpp"

namespace gpusched::test {
namespace {

// Any step takes 1 s, and so does loading. A request of 4 tokens that comes at 1 s gets its first at 2 s; the node
// fails at 2.5 s and is back at 5 s: loaded at 6 s, first token at 7 s, the others until 10 s.
TEST(LlmServices, ALostEnginesRequestsAreServedAgainOrDropped) {
  for (const LostRequests lost : {LostRequests::retry, LostRequests::drop}) {
    ServiceModel model;
    model.services = {service_of({{1, 1}})};
    ServiceSpec& service = model.services.front();
    service.requests.front().prompt_tokens = 3;
    service.requests.front().output_tokens = 4;
    service.llm =
        LlmEngine{.limits = {.kv_blocks = 9}, .times = LlmStepTimes(BatchStepTimes({{1, 1e6, 1e6}, {2, 1e6, 1e6}}))};
    service.lost = lost;
    service.cold_start = service.warm_start = whole_seconds(1);
    service.promise = {.part = 0.5, .first_token = whole_seconds(6), .per_token = whole_seconds(1)};
    const JobTable jobs = with_services(model, {});
    Cluster cluster = Cluster::pool(1);
    NodeFailures failures;
    const std::vector<NodeChange> changes{{from_seconds(2.5), NodeId{0}, false}, {whole_seconds(5), NodeId{0}, true}};
    failures.add_changes(changes);
    Engine engine(jobs, cluster, {}, {.failures = &failures, .services = &model});
    FirstFit policy;
    ASSERT_TRUE(simulate(engine, policy));
    const RequestRecord& record = engine.services().requests(0).records()[0];
    EXPECT_EQ(record.retries, lost == LostRequests::retry ? 1u : 0u);
    const ServiceFigures figures = service_figures(engine).front();
    ASSERT_TRUE(figures.tokens && figures.slo_attainment);
    if (lost == LostRequests::drop) {
      EXPECT_EQ(record.phase, RequestPhase::dropped);
      EXPECT_EQ(record.end, from_seconds(2.5));
      EXPECT_EQ(*figures.slo_attainment, 0);
      continue;
    }
    EXPECT_EQ(record.first_token, whole_seconds(7));
    EXPECT_EQ(record.end, whole_seconds(10));
    EXPECT_DOUBLE_EQ(figures.tokens->mean_first_token_s, 6);
    EXPECT_DOUBLE_EQ(figures.tokens->p99_per_token_s, 1);
    EXPECT_EQ(*figures.slo_attainment, 1);
    model.services.front().promise->first_token = from_seconds(5.9);
    EXPECT_EQ(*service_figures(engine).front().slo_attainment, 0);
    model.services.front().promise->first_token = whole_seconds(6);
    model.services.front().promise->per_token = from_seconds(0.9);
    EXPECT_EQ(*service_figures(engine).front().slo_attainment, 0);
  }
}

}  // namespace
}  // namespace gpusched::test
