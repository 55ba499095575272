// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/communication.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/world/cluster_reader.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

using gpusched::Span;  // not the span of time of run_support.hpp

constexpr double mb = 1e6;
const LinkClass fast{.name = "NVLink", .latency_us = 5, .bandwidth_gb_per_s = 100};  // 1e5 bytes a microsecond
const LinkClass slow{.name = "InfiniBand", .latency_us = 20, .bandwidth_gb_per_s = 10};

// By hand, from the formulas of the header: to the microsecond.
TEST(AllReduceTime, RingIsTwiceNLessOneStepsOfANthEach) {
  EXPECT_DOUBLE_EQ(all_reduce_us(AllReduce::ring, 8, 80 * mb, fast), 1470);  // 14 x (5 + 10e6 / 1e5)
  EXPECT_DOUBLE_EQ(all_reduce_us(AllReduce::ring, 2, 80 * mb, fast), 810);   // 2 x (5 + 400)
  EXPECT_NEAR(all_reduce_us(AllReduce::ring, 6, 80 * mb, fast), 1383.3333, 1e-3);
  EXPECT_DOUBLE_EQ(all_reduce_us(AllReduce::ring, 16, 0, slow), 600);  // 30 latencies
}

TEST(AllReduceTime, TreeIsTwiceLogNStepsOfAllBytes) {
  EXPECT_DOUBLE_EQ(all_reduce_us(AllReduce::tree, 8, 80 * mb, fast), 4830);  // 6 x (5 + 800)
  EXPECT_DOUBLE_EQ(all_reduce_us(AllReduce::tree, 5, 80 * mb, fast), 4830);  // as of 8
  EXPECT_DOUBLE_EQ(all_reduce_us(AllReduce::tree, 9, 80 * mb, fast), 6440);  // 8 steps
  EXPECT_DOUBLE_EQ(all_reduce_us(AllReduce::tree, 2, 80 * mb, fast), 1610);
  EXPECT_DOUBLE_EQ(message_us(80 * mb, slow), 8020);
}

TEST(AllReduceTime, OneGpuHasNobodyToTalkTo) {
  EXPECT_EQ(all_reduce_us(AllReduce::ring, 1, 80 * mb, fast), 0);
  EXPECT_EQ(all_reduce_us(AllReduce::tree, 1, 80 * mb, fast), 0);
}

// Few bytes: latency decides and the tree is faster; many: bandwidth does, and the ring is.
TEST(AllReduceTime, TreesAreForSmallAndRingsForLargeMessages) {
  EXPECT_LT(all_reduce_us(AllReduce::tree, 64, 1000, slow), all_reduce_us(AllReduce::ring, 64, 1000, slow));
  EXPECT_GT(all_reduce_us(AllReduce::tree, 64, 100 * mb, slow), all_reduce_us(AllReduce::ring, 64, 100 * mb, slow));
}

/// Two nodes of four GPUs in a rack.
Fabric two_nodes() {
  return {.links = {fast, {}, slow, {}, {}}, .together = gpus_together(Cluster::homogeneous(2, 4))};
}

TEST(StepTime, OfDataParallelGangsIsComputingAndAnAllReduce) {
  const FamilyCommunication family{.compute_ms = 10, .gradient_mb = 80};
  EXPECT_DOUBLE_EQ(step_us(family, 8, Span::node, 1, two_nodes()), 10'000 + 1470);
  EXPECT_DOUBLE_EQ(step_us(family, 8, Span::nodes, 1, two_nodes()), 10'000 + 14 * (20 + 1000));
  EXPECT_DOUBLE_EQ(step_us(family, 8, Span::node, 2, two_nodes()), 5000 + 1470);  // a faster GPU waits more
  EXPECT_DOUBLE_EQ(step_us(family, 1, Span::node, 1, two_nodes()), 10'000);
}

TEST(StepTime, ComputingHidesPartOfTheGradients) {
  FamilyCommunication family{.compute_ms = 10, .gradient_mb = 80, .overlap = 0.1};
  EXPECT_DOUBLE_EQ(step_us(family, 8, Span::node, 1, two_nodes()), 10'000 + 470);
  family.overlap = 0.5;
  EXPECT_DOUBLE_EQ(step_us(family, 8, Span::node, 1, two_nodes()), 10'000);
}

TEST(StepTime, OfTensorPipelineAndDataParallelism) {
  const FamilyCommunication family{.compute_ms = 100,
                                   .gradient_mb = 100,
                                   .tensor_gpus = 2,
                                   .layers = 10,
                                   .tensor_mb = 1,
                                   .stages = 2,
                                   .microbatches = 4,
                                   .activation_mb = 1};
  // A turn: 25,000 of computing, 5 layers x 4 all-reduces of 2 x (5 + 5), 2 messages of 20 + 100; 5 turns. Replicas of
  // a stage's 4 GPUs share a node: 2 x (5 + 500).
  EXPECT_DOUBLE_EQ(step_us(family, 8, Span::nodes, 1, two_nodes()), 5 * (25'000 + 400 + 240) + 1010);
  EXPECT_DOUBLE_EQ(step_us(family, 8, Span::node, 1, two_nodes()), 5 * (25'000 + 400 + 30) + 1010);
  // Twice the gang: 8 GPUs a stage and 4 replicas, which no node holds: 6 x (20 + 2500).
  EXPECT_DOUBLE_EQ(step_us(family, 16, Span::nodes, 1, two_nodes()), 5 * (25'000 + 400 + 240) + 15'120);
}

TEST(StepTime, ATensorGroupThatIsTheWholeGangSpansWhatTheGangSpans) {
  const FamilyCommunication family{.compute_ms = 1, .tensor_gpus = 2, .layers = 3, .tensor_mb = 1};
  EXPECT_DOUBLE_EQ(step_us(family, 2, Span::nodes, 1, two_nodes()), 1000 + 3 * 4 * 2 * (20 + 50));
  EXPECT_DOUBLE_EQ(step_us(family, 4, Span::nodes, 1, two_nodes()), 1000 + 3 * 4 * 2 * (5 + 5));
}

TEST(StepTime, ThePipelinesBubbleIsStagesLessOneOfAllTurns) {
  const FamilyCommunication family{.compute_ms = 8, .stages = 4, .microbatches = 4};
  Fabric free = two_nodes();
  for (LinkClass& link : free.links) link = {.latency_us = 0, .bandwidth_gb_per_s = 1};
  EXPECT_DOUBLE_EQ(step_us(family, 4, Span::node, 1, free), 8000 / (1 - 3.0 / 7));
}

// ---- the model ----

Cluster cluster_with_links() {
  return *cluster_from_json(R"({"nodes": [{"count": 2, "gpus": 4, "rack": "a"}, {"gpus": 4, "rack": "b"}], "links": {
    "node": {"latency_us": 5, "bandwidth_gb_per_s": 100}, "nodes": {"latency_us": 20, "bandwidth_gb_per_s": 10},
    "racks": {"latency_us": 40, "bandwidth_gb_per_s": 5}}})",
                            "c");
}

RatePpm speed(const SpanModel& model, const JobTable& jobs, std::uint32_t job, Span span) {
  return model.factor(jobs.family(JobId{job}), jobs.shape(JobId{job}), span).on(0);
}

CommunicationTable table_from(const std::string& json) {
  auto table = communication_from_json(json, "f.json");
  EXPECT_TRUE(table) << table.error().to_string();
  return *std::move(table);
}

TEST(SpanModelOfCommunication, IsTheTimeTogetherOverTheTimeApart) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 8, .family = "vgg"},
                                  {.submit = 0, .work = 1, .gpus = 2, .family = "vgg"},
                                  {.submit = 0, .work = 1, .gpus = 1, .family = "vgg"},
                                  {.submit = 0, .work = 1, .gpus = 8, .family = "other"},
                                  {.submit = 0, .work = 1, .family = "vgg", .shape = {2, 500}}});
  const CommunicationTable table = table_from(R"({"families": [
      {"family": "vgg", "compute_ms": 10, "gradient_mb": 80, "skewed": true},
      {"family": "vgg", "gpus": 2, "compute_ms": 10, "gradient_mb": 80, "all_reduce": "tree"},
      {"family": "*", "compute_ms": 10}]})");
  const auto model =
      span_model_of_communication(table, SpanReference::node, RuntimeModel{}, jobs, cluster_with_links());
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(speed(*model, jobs, 0, Span::node), reference_rate);
  EXPECT_EQ(speed(*model, jobs, 0, Span::nodes), 472'405u);  // 11,470 / 24,280
  EXPECT_EQ(speed(*model, jobs, 0, Span::racks), 297'459u);  // 11,470 / 38,560
  EXPECT_EQ(speed(*model, jobs, 1, Span::nodes), 445'853u);  // (10,000 + 1610) / (10,000 + 2 x 8020)
  EXPECT_EQ(speed(*model, jobs, 2, Span::racks), reference_rate);
  EXPECT_EQ(speed(*model, jobs, 3, Span::racks), reference_rate);  // computes and says nothing
  EXPECT_EQ(speed(*model, jobs, 4, Span::racks), reference_rate);
  EXPECT_TRUE(model->is_skewed(jobs.family(JobId{0})));
  EXPECT_FALSE(model->is_skewed(jobs.family(JobId{3})));
  // Measured with the gang as near together as can be: 8 GPUs on two nodes.
  const auto narrowest =
      span_model_of_communication(table, SpanReference::narrowest, RuntimeModel{}, jobs, cluster_with_links());
  EXPECT_EQ(speed(*narrowest, jobs, 0, Span::nodes), reference_rate);
  EXPECT_EQ(speed(*narrowest, jobs, 0, Span::racks), 629'668u);
  EXPECT_EQ(speed(*narrowest, jobs, 1, Span::nodes), 445'853u);
}

TEST(SpanModelOfCommunication, FasterGpusSufferMore) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 8, .family = "vgg"}});
  RuntimeModel devices(jobs.families().size(), 1);
  devices.set(jobs.families().find("vgg"), 0, 2 * reference_rate);
  const auto model = span_model_of_communication(
      table_from(R"({"families": [{"family": "vgg", "compute_ms": 10, "gradient_mb": 80}]})"), SpanReference::node,
      devices, jobs, cluster_with_links());
  EXPECT_EQ(speed(*model, jobs, 0, Span::nodes), 335'581u);  // (5000 + 1470) / (5000 + 14,280)
}

TEST(SpanModelOfCommunication, RefusesWhatItCannotTell) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 6, .family = "gpt"}});
  const auto error_of = [&](const char* json, const Cluster& cluster) {
    const auto model =
        span_model_of_communication(table_from(json), SpanReference::node, RuntimeModel{}, jobs, cluster);
    return model ? std::string("none") : model.error().to_string();
  };
  EXPECT_EQ(error_of(R"({"families": [{"family": "*", "compute_ms": 1}]})", Cluster::homogeneous(2, 8)),
            "needs the links of the cluster: give a cluster file with \"links\"");
  EXPECT_EQ(error_of(R"({"families": [{"family": "bert", "compute_ms": 1}]})", cluster_with_links()),
            "f.json: job family 'gpt' on 6 GPUs has no row, and there is none of family '*'");
  EXPECT_EQ(
      error_of(R"({"families": [{"family": "gpt", "compute_ms": 1, "tensor": {"gpus": 4}}]})", cluster_with_links()),
      "f.json: job family 'gpt' on 6 GPUs: 6 is no multiple of 4 tensor-parallel GPUs x 1 stages; give gangs of 6 "
      "GPUs a row of their own");
}

TEST(CommunicationFile, ErrorsNameThePath) {
  struct Case {
    const char* json;
    const char* field;
    const char* message;
  };
  for (const Case& bad : {
           Case{"[]", "", "expected an object"},
           Case{"{}", "/families", "is missing"},
           Case{R"({"familys": []})", "/familys", "unknown key"},
           Case{R"({"families": []})", "/families", "at least one"},
           Case{R"({"families": [7]})", "/families/0", "expected an object"},
           Case{R"({"families": [{"compute_ms": 1}]})", "/families/0/family", "is missing"},
           Case{R"({"families": [{"family": "a"}]})", "/families/0/compute_ms", "is missing"},
           Case{R"({"families": [{"family": "a", "compute_ms": 0}]})", "/families/0/compute_ms", "expected a number"},
           Case{R"({"families": [{"family": "a", "compute_ms": 1, "gradient_mb": -1}]})", "/families/0/gradient_mb",
                "expected a number from 0"},
           Case{R"({"families": [{"family": "a", "compute_ms": 1, "all_reduce": "star"}]})", "/families/0/all_reduce",
                "ring|tree"},
           Case{R"({"families": [{"family": "a", "compute_ms": 1, "overlap": 2}]})", "/families/0/overlap", "to 1"},
           Case{R"({"families": [{"family": "a", "compute_ms": 1, "tensor": {"gpu": 2}}]})", "/families/0/tensor/gpu",
                "did you mean 'gpus'"},
           Case{R"({"families": [{"family": "a", "compute_ms": 1, "pipeline": {"stages": 0}}]})",
                "/families/0/pipeline/stages", "expected an integer from 1"},
           Case{R"({"families": [{"family": "a", "compute_ms": 1}, {"family": "a", "compute_ms": 2}]})",
                "/families/1/family", "has a row already"},
       }) {
    const auto table = communication_from_json(bad.json, "f.json");
    ASSERT_FALSE(table) << bad.json;
    EXPECT_EQ(table.error().field, bad.field) << bad.json;
    EXPECT_NE(table.error().message.find(bad.message), std::string::npos) << table.error().message;
  }
}

// ---- a few numbers for all ----

TEST(SpanSpeedsText, NamesSpansAndFillsGaps) {
  EXPECT_EQ(*parse_span_speeds("nodes=0.9,racks=0.7"), (SpanSpeeds{1'000'000, 1'000'000, 900'000, 700'000, 700'000}));
  EXPECT_EQ(*parse_span_speeds("sites=0.25"), (SpanSpeeds{1'000'000, 1'000'000, 1'000'000, 1'000'000, 250'000}));
  EXPECT_EQ(*parse_span_speeds("racks=0.5, islands=0.95"), (SpanSpeeds{1'000'000, 950'000, 950'000, 500'000, 500'000}));
}

TEST(SpanSpeedsText, RefusesWhatIsNone) {
  const auto error_of = [](const char* text) { return parse_span_speeds(text).error().message; };
  EXPECT_EQ(error_of("rack=0.9"), "expected islands|nodes|racks|sites=SPEED, not 'rack' (did you mean 'racks'?)");
  EXPECT_EQ(error_of("node=0.9"), "expected islands|nodes|racks|sites=SPEED, not 'node' (did you mean 'nodes'?)");
  EXPECT_EQ(error_of("nodes"), "nodes: expected a part of the speed on one node, from 0.000001 to 1, not ''");
  EXPECT_EQ(error_of("nodes=0.9,"), "expected islands|nodes|racks|sites=SPEED, not ''");
  for (const char* number : {"0", "1.1", "-0.5", "x", "", "nan"}) {
    EXPECT_EQ(error_of((std::string("nodes=") + number).c_str()),
              "nodes: expected a part of the speed on one node, from 0.000001 to 1, not '" + std::string(number) + "'");
  }
  EXPECT_EQ(error_of("nodes=0.9,nodes=0.8"), "nodes is given twice");
  EXPECT_EQ(error_of("nodes=0.5,racks=0.7"), "racks: expected a gang to be no faster at a wider span");
}

TEST(NarrowestSpan, IsTheFirstThatHasSoManyGpus) {
  Cluster cluster = cluster_with_links();  // racks of 8 and 4 GPUs
  cluster.nodes[0].island_gpus = 2;
  cluster.nodes[1].island_gpus = cluster.nodes[2].island_gpus = 2;
  const GpusTogether together = gpus_together(cluster);
  EXPECT_EQ(together, (GpusTogether{2, 4, 8, 12, 12}));
  EXPECT_EQ(narrowest_span(together, 2), Span::node);
  EXPECT_EQ(narrowest_span(together, 3), Span::islands);
  EXPECT_EQ(narrowest_span(together, 5), Span::nodes);
  EXPECT_EQ(narrowest_span(together, 9), Span::racks);
  EXPECT_EQ(narrowest_span(together, 99), Span::sites);
}

TEST(SpanSpeeds, AreRelativeToTheNarrowestSpanOfEachGangWhereRunTimesWereMeasuredThere) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 4}, {.submit = 0, .work = 1, .gpus = 8}});
  const SpanSpeeds speeds = *parse_span_speeds("nodes=0.8,racks=0.4");
  const SpanModel one_node = span_model_of_speeds(speeds, SpanReference::node, jobs, cluster_with_links());
  const SpanModel narrowest = span_model_of_speeds(speeds, SpanReference::narrowest, jobs, cluster_with_links());
  EXPECT_EQ(speed(one_node, jobs, 1, Span::racks), 400'000u);
  EXPECT_EQ(speed(narrowest, jobs, 0, Span::nodes), 800'000u);
  EXPECT_EQ(speed(narrowest, jobs, 1, Span::nodes), reference_rate);
  EXPECT_EQ(speed(narrowest, jobs, 1, Span::racks), 500'000u);
}

}  // namespace
}  // namespace gpusched::test
