// SPDX-License-Identifier: Apache-2.0
#include "src/world/failure_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using test::real_trace;
using test::TempFolder;

Cluster three_nodes() {
  Cluster cluster = Cluster::homogeneous(3, 8);
  cluster.nodes[0].name = "g1";
  cluster.nodes[1].name = "g2";
  cluster.nodes[2].name = "g2";
  cluster.nodes[2].rack = 1;
  return cluster;
}

std::string error_of_failures(const std::string& text, const Cluster& cluster = three_nodes()) {
  const TempFolder folder;
  const auto failures = read_failures(folder.write("f", text), cluster, {}, 1);
  if (failures) return "none";
  Error error = failures.error();
  error.file = "f";
  return error.to_string();
}

TEST(FailureReader, ReadsOutagesByNameOrNumber) {
  const auto changes = node_changes_from_csv("event,node,time_s,why\ndown,g1,1.5,x\n\nup,2,-3,\"a, b\"\r\n", "f",
                                             three_nodes(), whole_seconds(10));
  ASSERT_TRUE(changes) << changes.error().to_string();
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ((*changes)[0].time, Time{11'500'000});
  EXPECT_EQ((*changes)[0].node, NodeId{0});
  EXPECT_FALSE((*changes)[0].up);
  EXPECT_EQ((*changes)[1].time, whole_seconds(7));
  EXPECT_EQ((*changes)[1].node, NodeId{2});
  EXPECT_TRUE((*changes)[1].up);
}

TEST(FailureReader, ReadsDrainsAndSpares) {
  const auto changes =
      node_changes_from_csv("time_s,node,event\n1,g1,drain\n2,g1,down\n3,g1,up\n", "f", three_nodes(), {});
  ASSERT_TRUE(changes) << changes.error().to_string();
  const auto drains = [&](std::size_t i) { return (*changes)[i].drain; };
  EXPECT_TRUE(drains(0) && !drains(1) && !drains(2));
  EXPECT_FALSE((*changes)[0].up);
  const auto failures =
      failures_from_json(R"({"node": {"mtbf_h": 10, "repair_h": 1}, "spares": 2})", "f", three_nodes(), {}, 1);
  ASSERT_TRUE(failures) << failures.error().to_string();
  EXPECT_EQ(failures->spares(), 2u);
}

TEST(FailureReader, SpotMachinesStandForNodesInOrderOfAppearance) {
  const auto changes =
      node_changes_from_csv("0,add,node7\n60000,add,node3\n90000,remove,node7\n", "f", three_nodes(), Time{});
  ASSERT_TRUE(changes) << changes.error().to_string();
  ASSERT_EQ(changes->size(), 3u);
  EXPECT_EQ((*changes)[1].node, NodeId{1});
  EXPECT_EQ((*changes)[2].node, NodeId{0});
  EXPECT_EQ((*changes)[2].time, whole_seconds(90));
  EXPECT_FALSE((*changes)[2].up);
}

TEST(FailureReader, LawsApplyToNodesGpusAndRacks) {
  const auto failures = failures_from_json(
      R"({"node": {"per_1000_days": 6.5, "repair_h": 2, "repair": "lognormal", "repair_sigma": 0.5, "detect_s": 60},
          "gpu": {"mtbf_h": 50700, "repair_h": 1}, "rack": {"mtbf_h": 20000, "repair_h": 3, "shape": 0.7}})",
      "f", three_nodes(), {}, 1);
  ASSERT_TRUE(failures) << failures.error().to_string();
  ASSERT_EQ(failures->units().size(), 3u + 24u + 2u);
  const auto law = [&](std::size_t unit) { return failures->law(failures->units()[unit].law); };
  EXPECT_NEAR(law(0).mean_up_s, 1000 * 86'400 / 6.5, 1e-6);
  EXPECT_EQ(law(0).mean_repair_s, 7200);
  EXPECT_EQ(law(0).detect_s, 60);
  EXPECT_EQ(law(0).repair, FailureLaw::Repair::lognormal);
  EXPECT_EQ(law(3).mean_up_s, 50'700.0 * 3600);
  EXPECT_EQ(law(27).up_shape, 0.7);
  EXPECT_EQ(failures->nodes(failures->units()[27]).size(), 2u);
  EXPECT_EQ(failures->nodes(failures->units()[28])[0], NodeId{2});
}

TEST(FailureReader, LemonsAreDrawnBySeedAndFailMoreOften) {
  const Cluster cluster = Cluster::homogeneous(200, 8);
  const auto lemons = [&](std::uint64_t seed) {
    const auto failures = failures_from_json(
        R"({"node": {"mtbf_h": 1000, "repair_h": 1, "lemon_share": 0.1, "lemon_factor": 20}})", "f", cluster, {}, seed);
    EXPECT_TRUE(failures);
    std::vector<std::uint32_t> found;
    for (const NodeFailures::Unit& unit : failures->units()) {
      if (failures->law(unit.law).mean_up_s < 1000 * 3600) found.push_back(index(failures->nodes(unit)[0]));
    }
    return found;
  };
  EXPECT_EQ(lemons(1).size(), 20u);
  EXPECT_EQ(lemons(1), lemons(1));
  EXPECT_NE(lemons(1), lemons(2));
}

TEST(FailureReader, ATraceLiesBesideTheFileAndMayBeginWithTheJobs) {
  const TempFolder folder;
  folder.write("t.csv", "time_s,node,event\n5,0,down\n");
  const std::string path = folder.write("f.json", R"({"trace": "t.csv", "trace_begins": "with_jobs"})");
  const auto failures = read_failures(path, three_nodes(), whole_seconds(100), 1);
  ASSERT_TRUE(failures) << failures.error().to_string();
  ASSERT_EQ(failures->changes().size(), 1u);
  EXPECT_EQ(failures->changes()[0].time, whole_seconds(105));
  EXPECT_EQ(files_of_failures(path), std::vector<std::string>{folder.path() + "/t.csv"});
}

TEST(FailureReader, SaysWhereItIsWrong) {
  EXPECT_EQ(error_of_failures(""), "f: no event in it");
  EXPECT_EQ(error_of_failures("time_s,node\n"),
            "f:1: event: expected a header with time_s, node and event, or rows ms,add|remove,name");
  EXPECT_EQ(error_of_failures("time_s,node,event\n1,g9,down\n"),
            "f:2: node: 'g9' is no node: expected a node's name in the cluster, or a number from 0 to 2");
  EXPECT_EQ(error_of_failures("time_s,node,event\n1,3,down\n"),
            "f:2: node: '3' is no node: expected a node's name in the cluster, or a number from 0 to 2");
  EXPECT_EQ(error_of_failures("time_s,node,event\n1,g2,down\n"), "f:2: node: 'g2' is the name of several nodes");
  EXPECT_EQ(error_of_failures("time_s,node,event\nx,g1,down\n"), "f:2: time_s: expected seconds");
  EXPECT_EQ(error_of_failures("time_s,node,event\n1,g1,gone\n"), "f:2: event: expected down, drain or up, not 'gone'");
  EXPECT_EQ(error_of_failures("0,add,a\n0,drain,a\n"), "f:2: event: expected remove or add, not 'drain'");
  EXPECT_EQ(error_of_failures(R"({"node": {"mtbf_h": 1, "repair_h": 1}, "spares": 3})"),
            "f: /spares: expected an integer from 0 to 2, not 3");
  EXPECT_EQ(error_of_failures(R"({"spares": 1})"), "f: nothing fails in it: expected node, gpu, rack or trace");
  EXPECT_EQ(error_of_failures("time_s,node,event\n1,g1\n"), "f:2: expected 3 fields, not 2");
  EXPECT_EQ(error_of_failures("0,add,a\n0,add,b\n0,add,c\n0,add,d\n"),
            "f:4: node: names more machines than the cluster's 3 nodes");
  EXPECT_EQ(error_of_failures("{}"), "f: nothing fails in it: expected node, gpu, rack or trace");
  EXPECT_EQ(error_of_failures(R"({"nodes": {}})"), "f: /nodes: unknown key (did you mean 'node'?)");
  EXPECT_EQ(error_of_failures(R"({"node": {"mtbf_h": 10}})"), "f: /node/repair_h: is missing");
  EXPECT_EQ(error_of_failures(R"({"node": {"repair_h": 1}})"), "f: /node/mtbf_h: give either mtbf_h or per_1000_days");
  EXPECT_EQ(error_of_failures(R"({"node": {"mtbf_h": -1, "repair_h": 1}})"),
            "f: /node/mtbf_h: expected a number from 0.001 to 1000000000, not -1");
  EXPECT_EQ(error_of_failures(R"({"node": {"mtbf_h": 1, "repair_h": 1, "lemon_share": 0.5}})"),
            "f: /node/lemon_share: give both lemon_share and lemon_factor, or none");
  EXPECT_EQ(error_of_failures(R"({"node": 3})"), "f: /node: expected an object, not 3");
}

// Bamboo (Thorpe et al., NSDI 2023): the p3 machines of its spot trace, counted by hand from the file: 273.1167
// node-hours in 11.3667 hours, at most 32 machines, 10 at the end.
TEST(FailureReader, CountsTheNodeHoursOfBamboosSpotTrace) {
  const std::string path = real_trace("spot/bamboo_p3_nodes.csv");
  if (path.empty()) GTEST_SKIP() << "spot/bamboo_p3_nodes.csv is not here; set GPUSCHED_TRACES";
  const auto failures = read_failures(path, Cluster::homogeneous(200, 1), {}, 1);
  ASSERT_TRUE(failures) << failures.error().to_string();
  std::int64_t up = 0, most = 0;
  double node_s = 0;
  Time last{};
  for (const NodeChange& change : failures->changes()) {
    node_s += to_seconds(change.time - last) * static_cast<double>(up);
    last = change.time;
    up += change.up ? 1 : -1;
    most = std::max(most, up);
  }
  EXPECT_NEAR(node_s / 3600, 273.1167, 0.00005);
  EXPECT_NEAR(to_seconds(last) / 3600, 11.3667, 0.00005);
  EXPECT_EQ(most, 32);
  EXPECT_EQ(up, 10);
}

}  // namespace
}  // namespace gpusched
