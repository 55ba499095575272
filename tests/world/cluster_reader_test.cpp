// SPDX-License-Identifier: Apache-2.0
#include "src/world/cluster_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "src/world/slurm_nodes.hpp"
#include "tests/support/files.hpp"
#include "tests/support/json_schema.hpp"
#include "traces/core/slurm_gpus.hpp"

namespace gpusched {
namespace {

using test::real_trace;
using test::TempFolder;

// GPUs by type name.
std::map<std::string, std::int64_t> gpus_by_type(const Cluster& cluster) {
  std::map<std::string, std::int64_t> sums;
  for (const Node& node : cluster.nodes) sums[cluster.gpu_types[node.gpu_type]] += node.gpus;
  return sums;
}

const std::string scontrol_nodes =
    "NodeName=g1 Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUEfctv=62 CPUTot=64 Gres=gpu:a100:8(S:0-1,3) "
    "OS=Linux 5.15.0 #1 SMP Wed RealMemory=1032000 AllocMem=0 MemSpecLimit=8000 State=IDLE Partitions=gpu,long "
    "CfgTRES=cpu=62,mem=1032000M,gres/gpu=8 Reason=bad Gres=gpu:9 [root]\n"
    "NodeName=m1 CPUTot=32 RealMemory=256000 Gres=gpu:a100:1(S:0),gpu:a100_1g.5gb:7(S:1),gpu:a100_3g.20gb:2(S:1) "
    "State=DOWN* Partitions=gpu\n"
    "NodeName=c1 CPUTot=128 RealMemory=512000 Gres=(null) State=MIXED Partitions=cpu\n"
    "NodeName=x1 CPUTot=40 RealMemory=1000 Gres=gpu:a100:2,gpu:v100:6 State=IDLE Partitions=long\n"
    "NodeName=s1 CPUTot=4 RealMemory=1000 Gres=(null) State=IDLE\n";

SlurmCluster slurm_cluster(const std::string& text, bool with_down = false) {
  const TempFolder folder;
  auto file = InputFile::open(folder.write("nodes.txt", text));
  EXPECT_TRUE(looks_like_slurm_nodes(file->head()));
  auto cluster = read_slurm_nodes(*file, with_down);
  EXPECT_TRUE(cluster) << cluster.error().to_string();
  return *std::move(cluster);
}

TEST(SlurmNodes, ScontrolGivesGpusCoresMemoryAndPartitions) {
  const auto [cluster, notes] = slurm_cluster(scontrol_nodes, true);
  ASSERT_EQ(cluster.nodes.size(), 5u);  // x1 is two
  EXPECT_EQ(gpus_by_type(cluster), (std::map<std::string, std::int64_t>{{"a100", 8 + 3 + 2}, {"v100", 6}, {"GPU", 0}}));
  EXPECT_EQ(cluster.nodes[0].name, "g1");
  EXPECT_EQ(cluster.nodes[0].cpu_milli, 62'000);
  EXPECT_EQ(cluster.nodes[0].memory_mib, 1'024'000);
  EXPECT_EQ(cluster.nodes[1].gpus, 3u) << "one card, one cut into 7 slices, one into 3g + 3g";
  EXPECT_EQ(cluster.nodes[3].name, "x1/a100");
  EXPECT_EQ(cluster.nodes[3].cpu_milli, 10'000);
  EXPECT_EQ(cluster.nodes[4].cpu_milli, 30'000);
  ASSERT_EQ(cluster.vcs.size(), 3u);
  const auto serves = [&cluster = cluster](std::size_t node, const std::string& queue) {
    for (std::uint32_t vc = 0; vc < cluster.vcs.size(); ++vc) {
      if (cluster.vcs[vc].name == queue) {
        return cluster.owners_serve(cluster.nodes[node].vc, cluster.nodes[node].vc_group, vc);
      }
    }
    return false;
  };
  EXPECT_TRUE(serves(0, "gpu") && serves(0, "long") && !serves(0, "cpu"));
  EXPECT_TRUE(serves(1, "gpu") && !serves(1, "long"));
  EXPECT_TRUE(serves(2, "cpu") && !serves(2, "gpu"));
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], "1 node in no partition: left out");
  EXPECT_EQ(notes[1], "1 node down, drained or failing now: counted as if in service");
}

TEST(SlurmNodes, RecordsOverSeveralLinesAreTheSame) {
  std::string lines = scontrol_nodes;
  for (std::size_t at = lines.find(" State="); at != std::string::npos; at = lines.find(" State=", at + 8)) {
    lines.replace(at, 1, "\n   ");
  }
  EXPECT_EQ(cluster_file_text(slurm_cluster(lines).cluster), cluster_file_text(slurm_cluster(scontrol_nodes).cluster));
}

TEST(SlurmNodes, SinfoHasALineForEachNodeAndPartition) {
  const std::string bars =
      "NODELIST|PARTITION|CPUS|MEMORY|GRES|STATE\n"
      "g1|gpu*|64|1032000|gpu:a100:8(S:0-1,3)|idle\n"
      "g1|long|64|1032000|gpu:a100:8(S:0-1,3)|idle\n"
      "c1|cpu|128|512000|(null)|drained\n";
  const auto [cluster, notes] = slurm_cluster(bars, true);
  ASSERT_EQ(cluster.nodes.size(), 2u);
  EXPECT_EQ(cluster.nodes[0].gpus, 8u);
  EXPECT_EQ(cluster.nodes[0].vc_group, 0u);
  EXPECT_EQ(cluster.nodes[1].gpus, 0u);
  EXPECT_EQ(cluster.vcs[cluster.nodes[1].vc].name, "cpu");
  EXPECT_EQ(notes.size(), 1u);
  std::string blanks = bars;
  std::replace(blanks.begin(), blanks.end(), '|', ' ');
  EXPECT_EQ(cluster_file_text(slurm_cluster(blanks, true).cluster), cluster_file_text(cluster));
}

// They never come back in a run, so that they are no machines of it.
TEST(SlurmNodes, NodesThatTakeNoJobsAreLeftOut) {
  const auto names = [](const std::string& state, bool with_down = false) {
    const auto [cluster, notes] =
        slurm_cluster("NodeName=up Gres=gpu:8 State=IDLE Partitions=p\nNodeName=x Gres=gpu:8 State=" + state +
                          " Partitions=p Reason=bad fan\n",
                      with_down);
    std::string text;
    for (const Node& node : cluster.nodes) text += node.name + " ";
    for (const std::string& note : notes) text += note;
    return text;
  };
  for (const char* state : {"DOWN", "DOWN*", "IDLE+DRAIN", "MIXED+DRAIN", "ALLOCATED+DRAIN", "IDLE*", "FUTURE", "MAINT",
                            "IDLE+MAINTENANCE", "FAIL", "DOWN+CLOUD", "DRAINED*", "draining", "drng", "maint$"}) {
    EXPECT_EQ(names(state), "up 1 node down, drained or failing now: left out (cluster import --with-down counts them)")
        << state;
    EXPECT_EQ(names(state, true), "up x 1 node down, drained or failing now: counted as if in service") << state;
  }
  for (const char* state : {"IDLE", "MIXED", "ALLOCATED", "IDLE+CLOUD+POWERED_DOWN", "MIXED+PLANNED",
                            "IDLE+POWERING_UP", "COMPLETING", "RESERVED", "idle~", "mixed-", "alloc#"}) {
    EXPECT_EQ(names(state), "up x ") << state;
  }
}

TEST(SlurmNodes, MigInstancesAreCardsThatAreCutSo) {
  // The node behind its name.
  const auto node_of = [](const std::string& gres) {
    const std::string text = cluster_file_text(
        slurm_cluster("NodeName=g2 CPUTot=128 State=IDLE Partitions=gpu Gres=" + gres + "\n").cluster);
    return text.substr(text.find("\"g2\"") + 5);
  };
  const std::string seven = R"(["1g.5gb","1g.5gb","1g.5gb","1g.5gb","1g.5gb","1g.5gb","1g.5gb"])";
  EXPECT_EQ(node_of("gpu:a100:2(S:0),gpu:a100_1g.5gb:14(S:1),tmp:844G"),
            R"("gpus":4,"gpu_type":"a100","cpus":128,"vc":"gpu","mig":{"layout":[[],[],)" + seven + "," + seven +
                "],\"model\":\"A100-40GB\"}}]}\n");
  EXPECT_EQ(node_of("gpu:1g.5gb:7"),
            R"("gpus":1,"gpu_type":"A100-40GB","cpus":128,"vc":"gpu","mig":)" + seven + "}]}\n");
  // Alike cards where the numbers allow it, the largest first where they do not.
  EXPECT_EQ(node_of("gpu:a100_3g.20gb:2,gpu:a100_2g.10gb:2,gpu:a100_1g.5gb:2"),
            R"("gpus":2,"gpu_type":"a100","cpus":128,"vc":"gpu","mig":{"layout":["3g.20gb","2g.10gb","1g.5gb"],)"
            "\"model\":\"A100-40GB\"}}]}\n");
  EXPECT_EQ(node_of("gpu:h100_4g.40gb:1,gpu:h100_3g.40gb:2"),
            R"("gpus":2,"gpu_type":"h100","cpus":128,"vc":"gpu","mig":{"layout":[["4g.40gb","3g.40gb"],["3g.40gb"]],)"
            "\"model\":\"H100-80GB\"}}]}\n");
  // 14 of 1g.10gb are two cards of 80 GB, not four of 40.
  EXPECT_NE(node_of("gpu:a100_1g.10gb:14").find(R"("model":"A100-80GB")"), std::string::npos);
  EXPECT_EQ(node_of("gpu:b300_1g.36gb:7").find("mig"), std::string::npos) << "a card that is not known";
}

TEST(KubernetesNodes, AreACluster) {
  const auto read = [](const std::string& text) {
    const TempFolder folder;
    auto cluster = read_cluster(folder.write("k8s.json", text));
    return cluster ? cluster_file_text(*cluster) : cluster.error().to_string();
  };
  const auto node = [](const std::string& name, const std::string& labels, const std::string& resources,
                       const std::string& more = "") {
    return R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": ")" + name + R"(", "labels": {)" + labels +
           R"(}}, "status": {"capacity": {"cpu": "999"}, "allocatable": {)" + resources + "}" + more + "}}";
  };
  const auto list = [](const std::string& items) {
    return R"({"apiVersion": "v1", "kind": "List", "items": [)" + items + "]}";
  };
  EXPECT_EQ(
      read(list(node("g1", R"("nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB")",
                     R"("cpu": "127500m", "memory": "1000Gi", "nvidia.com/gpu": "8")") +
                "," + node("c1", "", R"("cpu": "64", "memory": "262144Mi")") + "," +
                node("m1", R"("nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb")",
                     R"("cpu": 32, "nvidia.com/gpu": "4")") +
                "," +
                node("m2", R"("nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB")",
                     R"("nvidia.com/gpu": "1", "nvidia.com/mig-3g.20gb": "2")") +
                "," +
                node("s1", R"("nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4")",
                     R"("nvidia.com/gpu": "8")") +
                "," + node("d1", "", R"("cpu": "1")", R"(, "conditions": [{"type": "Ready", "status": "Unknown"}])"))),
      R"({"name": "k8s",
 "nodes": [{"name":"g1","gpus":8,"gpu_type":"NVIDIA-A100-SXM4-80GB","cpus":127.5,"memory_gib":1000},
           {"name":"c1","gpus":0,"cpus":64,"memory_gib":256},
           {"name":"m1","gpus":2,"gpu_type":"NVIDIA-A100-SXM4-40GB","cpus":32,"mig":{"layout":["3g.20gb","3g.20gb"],"model":"A100-40GB"}},
           {"name":"m2","gpus":2,"gpu_type":"NVIDIA-A100-SXM4-40GB","mig":{"layout":[[],["3g.20gb","3g.20gb"]],"model":"A100-40GB"}},
           {"name":"s1","gpus":2,"gpu_type":"Tesla-T4","sharing":"time-slicing"}]}
)");
  EXPECT_NE(read(list(node("g", "", R"("nvidia.com/gpu": "lots")"))).find(":1: nvidia.com/gpu: expected a quantity"),
            std::string::npos);
  EXPECT_NE(read(list(node("g", "", "") + "," + node("g", "", ""))).find("another node is named 'g'"),
            std::string::npos);
}

TEST(SlurmNodes, BadOutputNamesLineAndField) {
  const auto error = [](const std::string& text) {
    const TempFolder folder;
    auto cluster = read_cluster(folder.write("nodes.txt", text));
    EXPECT_FALSE(cluster);
    Error found = cluster ? Error{} : cluster.error();
    found.file = "f";
    return found.to_string();
  };
  EXPECT_EQ(error("NodeName=a CPUTot=many Partitions=p\n"), "f:1: CPUTot: expected a whole number, found 'many'");
  EXPECT_EQ(error("NodeName=a Gres=gpu:x:y Partitions=p\n"),
            "f:1: Gres: expected generic resources like gpu:a100:8, found 'gpu:x:y'");
  EXPECT_EQ(error("NodeName=a\n"), "f: lists no node in a partition");
  EXPECT_EQ(error("NodeName=a Gres=gpu:2 Partitions=p\nNodeName=a Gres=gpu:2 Partitions=p\n"),
            "f:2: NodeName: expected a name that no other node has, found 'a'");
  EXPECT_EQ(error("NodeName=2 Gres=gpu:2 Partitions=p\nNodeName= Gres=gpu:2 Partitions=p\n"),
            "f:2: NodeName: expected the name of a node");
  EXPECT_EQ(error("NODELIST|PARTITION|CPUS|MEMORY|GRES\ng[1-4]|p|1|1|(null)\n"),
            "f:2: NODELIST: expected one node a line, found 'g[1-4]': call sinfo with -N");
  EXPECT_NE(error("NODELIST NODES PARTITION STATE\na 1 p idle\n").find("f:1: header: expected the columns NODELIST"),
            std::string::npos);
}

// More than the cluster file that is made of the list may hold.
TEST(NodeLists, RefuseMoreThanAnyMachineHas) {
  const TempFolder folder;
  const auto cluster = read_cluster(folder.write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1e15,1,8,V100\n"));
  ASSERT_FALSE(cluster);
  EXPECT_NE(cluster.error().to_string().find(":2: cpu_milli: expected a number >= 0 and <= 1e+12"), std::string::npos);
}

TEST(ClusterJson, ReadsBackWhatItWrote) {
  for (const Cluster& cluster : {slurm_cluster(scontrol_nodes).cluster, *parse_cluster("philly-vc"),
                                 *cluster_from_json(R"({"name": "l\u00e4b", "vcs": [{"name": "a", "quota_gpus": 2.5}],
                                   "nodes": [{"count": 2, "gpus": 8, "cpus": 1.5, "memory_gib": 0.5, "rack": "x"},
                                             {"gpus": 1, "vc": "a", "name": "n"}]})",
                                                    "")}) {
    const std::string text = cluster_file_text(cluster);
    const auto again = cluster_from_json(text, "again");
    ASSERT_TRUE(again) << again.error().to_string() << text;
    EXPECT_EQ(cluster_file_text(*again), text);
    EXPECT_EQ(again->nodes.size(), cluster.nodes.size());
    EXPECT_EQ(again->total_gpus(), cluster.total_gpus());
  }
}

TEST(ClusterJson, DescribesDevices) {
  const std::string text =
      "{\"name\": \"mixed\",\n \"gpu_types\": {\"U50\": {\"kind\":\"fpga\",\"memory_gib\":8},\n"
      "               \"T4\": {\"memory_gib\":16}},\n"
      " \"nodes\": [{\"gpus\":1,\"gpu_type\":\"U50\"},\n           {\"gpus\":2,\"gpu_type\":\"P100\"},\n"
      "           {\"gpus\":2,\"gpu_type\":\"T4\"}]}\n";
  const Cluster cluster = *cluster_from_json(text, "mixed.json");
  EXPECT_EQ(cluster.device(0), (DeviceType{.kind = "fpga", .memory_mib = 8192}));
  EXPECT_EQ(cluster.device(1), DeviceType{});
  EXPECT_EQ(cluster.device(2), (DeviceType{.memory_mib = 16384}));
  EXPECT_EQ(cluster_file_text(cluster), text);
}

TEST(ClusterJson, RefusesDevicesThatCannotBe) {
  const auto error = [](const std::string& types) {
    const auto cluster =
        cluster_from_json(R"({"nodes": [{"gpus": 1, "gpu_type": "A100"}], "gpu_types": )" + types + "}", "c");
    return cluster ? "no error" : cluster.error().to_string();
  };
  EXPECT_EQ(error(R"({"A10": {}})"), "c: /gpu_types/A10: no node has this GPU type (did you mean 'A100'?)");
  EXPECT_EQ(error(R"({"A100": {"memory": 1}})"),
            "c: /gpu_types/A100/memory: unknown key; expected one of kind|memory_gib");
  EXPECT_EQ(error(R"({"A100": {"memory_gib": -1}})"),
            "c: /gpu_types/A100/memory_gib: expected a number from 0 to 1000000000000, not -1");
  EXPECT_EQ(error(R"({"A100": {"kind": "a|b"}})"),
            "c: /gpu_types/A100/kind: expected a word without | and @, not \"a|b\"");
  EXPECT_EQ(error("[]"), "c: /gpu_types: expected an object, not []");
}

TEST(ClusterJson, CutsCards) {
  const std::string text =
      "{\"name\": \"cut\",\n"
      " \"nodes\": [{\"gpus\":2,\"gpu_type\":\"A100-40GB\",\"mig\":\"dynamic\"},\n"
      "           "
      "{\"gpus\":2,\"gpu_type\":\"A100-40GB\",\"mig\":[\"3g.20gb\",\"2g.10gb\",\"1g.5gb\"],\"sharing\":\"time-"
      "slicing\"},\n"
      "           {\"gpus\":2,\"gpu_type\":\"A100-40GB\",\"mig\":[[\"7g.40gb\"],[]],\"count\":2},\n"
      "           "
      "{\"gpus\":1,\"gpu_type\":\"big\",\"mig\":{\"layout\":\"dynamic-first-fit\",\"model\":\"H200-141GB\","
      "\"reconfigure_s\":2.5}}]}\n";
  const auto read = cluster_from_json(text, "cut.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(cluster_file_text(*read), text);
  ASSERT_EQ(read->migs.size(), 4u);
  EXPECT_EQ(read->nodes[0].mig, 0u);
  EXPECT_EQ(read->nodes[2].mig, 2u);
  EXPECT_EQ(read->nodes[3].mig, 2u);
  EXPECT_EQ(read->migs[1].cards[1], (std::vector<MigInstance>{{3, 0}, {2, 4}, {0, 6}}));
  EXPECT_EQ(read->migs[3].reconfigure, Time{2'500'000});
  EXPECT_EQ(read->nodes[1].sharing, SharingMode::time_slicing);
}

TEST(ClusterJson, RefusesCardsThatCannotBeCutSo) {
  const auto error = [](const std::string& node) {
    const auto cluster = cluster_from_json(R"({"nodes": [{"gpus": 2, "gpu_type": "A100-40GB", )" + node + "}]}", "c");
    return cluster ? "no error" : cluster.error().to_string();
  };
  EXPECT_EQ(error(R"("mig": ["3g.20gb", "3g.20gb", "1g.5gb"])"),
            "c: /nodes/0/mig: 3g.20gb + 3g.20gb + 1g.5gb do not fit on one A100-40GB: instances need slices of memory "
            "of their own");
  EXPECT_EQ(error(R"("mig": ["4g.20gb", "2g.10gb", "1g.5gb"])"), "no error");
  EXPECT_EQ(error(R"("mig": ["1g.10gb", "1g.12gb"])"),
            "c: /nodes/0/mig/1: '1g.12gb' is no MIG profile; A100-40GB has 1g.5gb, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, "
            "7g.40gb");
  EXPECT_EQ(error(R"("mig": [["7g.40gb"], ["7g.40gb", "1g.5gb"]])"),
            "c: /nodes/0/mig/1: 7g.40gb + 1g.5gb do not fit on one A100-40GB: instances need slices of memory of their "
            "own");
  EXPECT_EQ(error(R"("mig": [["7g.40gb"]])"), "c: /nodes/0/mig: expected a list for each of the node's 2 GPUs, not 1");
  EXPECT_EQ(error(R"("mig": "static")"),
            "c: /nodes/0/mig: expected dynamic, dynamic-first-fit or a list of MIG profiles, not \"static\"");
  EXPECT_EQ(error(R"("mig": [])"),
            "c: /nodes/0/mig: expected dynamic, dynamic-first-fit or a list of MIG profiles, not []");
  EXPECT_EQ(error(R"("mig": [["1g.5gb"], 3])"), "c: /nodes/0/mig/1: expected a list of MIG profiles, not 3");
  EXPECT_EQ(error(R"("mig": ["1g.5gb", 3])"), "c: /nodes/0/mig/1: expected the name of a MIG profile, not 3");
  EXPECT_EQ(
      error(R"("mig": {"layout": "dynamic", "model": "A100-40G"})"),
      "c: /nodes/0/mig/model: 'A100-40G' is no card that can be cut (did you mean 'A100-40GB'?); expected the GPU "
      "type, or model, A30-24GB|A100-40GB|A100-80GB|H100-80GB|H200-141GB");
  EXPECT_EQ(error(R"("mig": {"model": "A100-40GB"})"), "c: /nodes/0/mig/layout: is missing");
  EXPECT_EQ(error(R"("mig": {"layout": "dynamic", "reconfigure": 1})"),
            "c: /nodes/0/mig/reconfigure: unknown key (did you mean 'reconfigure_s'?)");
  EXPECT_EQ(error(R"("mig": {"layout": "dynamic", "reconfigure_s": 1e9})"),
            "c: /nodes/0/mig/reconfigure_s: expected at most a day, 86400, not 1000000000.0");
  EXPECT_EQ(error(R"("sharing": "mig")"), "c: /nodes/0/sharing: expected one of mps|time-slicing, not \"mig\"");
  const auto other = cluster_from_json(R"({"nodes": [{"gpus": 1, "gpu_type": "V100", "mig": "dynamic"}]})", "c");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().field, "/nodes/0/mig");
}

std::string schema_violation(const std::string& text) {
  return test::schema_violation(text, "docs/cluster.schema.json");
}

// What the reader takes satisfies the schema, and what it refuses for its form does not.
TEST(ClusterJson, SchemaSaysWhatTheReaderTakes) {
  const std::string node = R"("nodes": [{"gpus": 1, "gpu_type": "A"}])";
  const std::vector<std::string> texts = {
      "{" + node + "}",
      R"({"$schema": "cluster.schema.json", "name": "n", "vcs": [{"name": "a", "quota_gpus": 1.5}],)" + node + "}",
      R"({"limits": [{"per": "user", "users": "u", "qos": ["a", "b"], "gpus": 1.5, "submitted": 3}],)" + node + "}",
      R"({"limits": [{"per": "group", "jobs": 1}],)" + node + "}",
      R"({"limits": [{"jobs": 1.5}],)" + node + "}",
      R"({"limits": [{"gpu": 1}],)" + node + "}",
      R"({"limits": [{"users": [], "jobs": 1}],)" + node + "}",
      R"({"limits": {"jobs": 1},)" + node + "}",
      R"({"gpu_types": {"A": {"kind": "npu", "memory_gib": 4}},)" + node + "}",
      R"({"nodes": [{"count": 2, "name": "x", "gpus": 0, "cpus": 1.5, "memory_gib": 2, "rack": "r", "vc": []}]})",
      R"({"nodes": [{"count": 2, "name": "x", "gpus": 0, "cpus": 1.5, "memory_gib": 2, "rack": "r"}]})",
      R"({"gpu_types": {"A": {"kind": "a@b"}},)" + node + "}",
      R"({"gpu_types": {"A": {"bytes": 4}},)" + node + "}",
      R"({"nodes": []})",
      R"({"nodes": [{}]})",
      R"({"nodes": [{"gpus": -1}]})",
      R"({"nodes": [{"gpus": 1000001}]})",
      R"({"nodes": [{"gpus": 1, "count": 0}]})",
      R"({"nodes": [{"gpus": 1.5}]})",
      R"({"nodes": [{"gpus": 1, "cpu": 4}]})",
      R"({"nodes": [{"gpus": 1, "cpus": "4"}]})",
      R"({"vcs": [{}], )" + node + "}",
      R"({"vcs": [{"name": ""}], )" + node + "}",
      R"({"links": [], )" + node + "}",
      R"({"links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 2}}, )" + node + "}",
      R"({"links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 0}}, )" + node + "}",
      R"({"links": {"node": {"latency_us": 1}}, )" + node + "}",
      R"({"links": {"switch": {}}, )" + node + "}",
      R"({"nodes": [{"gpus": 4, "island_gpus": 2, "site": "s", "rack": "r"}]})",
      R"({"nodes": [{"gpus": 4, "island_gpus": 0}]})",
      R"({"nodes": [{"gpus": 1, "gpu_type": "A30-24GB", "mig": "dynamic", "sharing": "mps"}]})",
      R"({"nodes": [{"gpus": 1, "gpu_type": "A30-24GB", "mig": ["1g.6gb", "2g.12gb+me"]}]})",
      R"({"nodes": [{"gpus": 1, "gpu_type": "A30-24GB", "mig": [["4g.24gb"]]}]})",
      R"({"nodes": [{"gpus": 1, "mig": {"layout": "dynamic", "model": "A30-24GB", "reconfigure_s": 0}}]})",
      R"({"nodes": [{"gpus": 1, "mig": {"layout": "dynamic", "model": "A30"}}]})",
      R"({"nodes": [{"gpus": 1, "mig": {"model": "A30-24GB"}}]})",
      R"({"nodes": [{"gpus": 1, "gpu_type": "A30-24GB", "mig": []}]})",
      R"({"nodes": [{"gpus": 1, "gpu_type": "A30-24GB", "mig": "static"}]})",
      R"({"nodes": [{"gpus": 1, "gpu_type": "A30-24GB", "mig": [1]}]})",
      R"({"nodes": [{"gpus": 1, "sharing": "turns"}]})",
      "[]",
  };
  for (const std::string& text : texts) {
    EXPECT_EQ(cluster_from_json(text, "c").has_value(), schema_violation(text).empty()) << text;
  }
}

// The examples hold the machines of their sources.
TEST(ClusterExamples, AreValidAndWhole) {
  struct Example {
    const char* name;
    std::size_t nodes;
    std::int64_t gpus;
    std::size_t types;
  };
  const std::vector<Example> examples = {
      {"philly", 352, 2816, 1},     {"pai2020", 1897, 6742, 5}, {"openb", 1523, 6212, 7}, {"spot2026", 4278, 10412, 6},
      {"dgx_h100_pod", 32, 256, 1}, {"edge", 2, 1, 1},          {"mig", 7, 49, 3}};
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + "/examples/clusters")) {
    files += entry.path().extension() == ".json" && entry.path().stem() != "families" ? 1 : 0;
  }
  EXPECT_EQ(files, examples.size());
  for (const Example& example : examples) {
    const std::string path = test::source_dir() + "/examples/clusters/" + example.name + ".json";
    const auto cluster = read_cluster(path);
    ASSERT_TRUE(cluster) << cluster.error().to_string();
    EXPECT_EQ(cluster->nodes.size(), example.nodes) << path;
    EXPECT_EQ(cluster->total_gpus(), example.gpus) << path;
    std::set<std::uint32_t> types;
    for (const Node& node : cluster->nodes) {
      if (node.gpus > 0) types.insert(node.gpu_type);
    }
    EXPECT_EQ(types.size(), example.types) << path;
    EXPECT_EQ(schema_violation(test::bytes_of(path)), "") << path;
  }
}

TEST(ClusterJson, SeveralOwnersOfANode) {
  const auto cluster = cluster_from_json(
      R"({"vcs": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "nodes": [{"gpus": 8, "vc": ["c", "a", "a"]}]})", "f");
  ASSERT_TRUE(cluster) << cluster.error().to_string();
  EXPECT_EQ(cluster->vc_groups, (std::vector<std::vector<std::uint32_t>>{{0, 2}}));
  for (const char* bad : {R"({"vcs": [{"name": "a"}], "nodes": [{"gpus": 8, "vc": ["a", "b"]}]})",
                          R"({"vcs": [{"name": "a"}], "nodes": [{"gpus": 8, "vc": []}]})",
                          R"({"vcs": [{"name": "a"}], "nodes": [{"gpus": 8, "vc": [1]}]})"}) {
    const auto refused = cluster_from_json(bad, "f");
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().field, "/nodes/0/vc");
  }
}

TEST(ClusterJson, NamesThatAreNoTextStayApart) {
  const TempFolder folder;
  for (const std::string text : {"vc,node num\n\xff ,1\n\xfe,2\n",
                                 "NodeName=a Gres=gpu:1 Partitions=\xff\nNodeName=b Gres=gpu:1 Partitions=\xfe\n",
                                 "NODELIST|PARTITION|GRES\na|\xff|gpu:1\nb|\xfe|gpu:1\n"}) {
    const auto cluster = read_cluster(folder.write("nodes.txt", text));
    ASSERT_TRUE(cluster) << cluster.error().to_string();
    const auto again = cluster_from_json(cluster_file_text(*cluster), "again");
    ASSERT_TRUE(again) << again.error().to_string();
    ASSERT_EQ(again->vcs.size(), 2u);
    EXPECT_EQ(again->vcs[0].name, "\\xff");
    EXPECT_EQ(again->vcs[1].name, "\\xfe");
  }
  const auto openb = read_cluster(
      folder.write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na\xff,1,1,8,V\xff\na\xfe,1,1,8,V\xfe\n"));
  ASSERT_TRUE(openb) << openb.error().to_string();
  const auto again = cluster_from_json(cluster_file_text(*openb), "again");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->gpu_types, (std::vector<std::string>{"V\\xff", "V\\xfe"}));
  EXPECT_EQ(again->nodes[1].name, "a\\xfe");
}

TEST(ClusterJson, AVirtualClusterHasAName) {
  const TempFolder folder;
  for (const std::string text : {"vc,node num\na,1\n,4\n", "vc,node num\na,1\n\v,4\n"}) {
    const auto list = read_cluster(folder.write("vcs.csv", text));
    ASSERT_FALSE(list);
    EXPECT_NE(list.error().to_string().find(":3: vc: expected the name of a virtual cluster"), std::string::npos)
        << list.error().to_string();
  }
  for (const std::string text :
       {"NodeName=a Gres=gpu:1 Partitions=x,\v,\n", "NODELIST|PARTITION|GRES\na|x|gpu:1\na|\v|gpu:1\n"}) {
    const auto nodes = read_cluster(folder.write("nodes.txt", text));
    ASSERT_TRUE(nodes) << nodes.error().to_string();
    EXPECT_EQ(nodes->vcs.size(), 1u) << text;
  }
}

TEST(ClusterJson, NamesAreThoseOfTraces) {
  const auto cluster = cluster_from_json(
      R"({"vcs": [{"name": " a\n"}], "nodes": [{"gpus": 1, "vc": "a ", "gpu_type": "T4\t", "name": "n\u0001"}]})", "f");
  ASSERT_TRUE(cluster) << cluster.error().to_string();
  EXPECT_EQ(cluster->vcs[0].name, "a");
  EXPECT_EQ(cluster->nodes[0].vc, 0u);
  EXPECT_EQ(cluster->gpu_types, (std::vector<std::string>{"T4"}));
  EXPECT_EQ(cluster->nodes[0].name, "n\\x01");
}

TEST(SlurmGpu, ProfilesOfSlicesAreSharesOfACard) {
  const auto milli = [](const char* type) { return slurm_gpu(type).milli; };
  EXPECT_EQ(slurm_gpu("a100").model, "a100");
  EXPECT_EQ(milli("a100"), 1000);
  EXPECT_EQ(slurm_gpu("nvidia_a100-sxm4-80gb_3g.40gb").model, "nvidia_a100-sxm4-80gb");
  EXPECT_EQ(milli("nvidia_a100-sxm4-80gb_3g.40gb"), 428);
  EXPECT_EQ(slurm_gpu("1g.5gb").model, "");
  EXPECT_EQ(milli("1g.5gb"), 142);
  EXPECT_EQ(milli("h100_7g.80gb"), 1000);
  EXPECT_EQ(milli("1g.10gb+me"), 142);
  EXPECT_EQ(milli("a30_2g.12gb"), 500);
  EXPECT_EQ(milli("1g.6gb"), 250);
  EXPECT_EQ(milli("rtx_4090"), 1000);
  EXPECT_EQ(milli("3g.gb"), 1000) << "not a profile";
  EXPECT_EQ(slurm_gpu("a100_1g.5gb").profile, "1g.5gb");
  EXPECT_EQ(slurm_gpu("A100_1G.10GB+ME").profile, "1g.10gb");
  EXPECT_EQ(slurm_gpu("A100_1G.10GB+ME").model, "A100");
  EXPECT_EQ(slurm_gpu("a100").profile, "");
}

TEST(SlurmGpu, WholeGpusOfAProfileAreSlices) {
  const auto counted = [](Shape shape, const char* spec) {
    count_mig_slices(shape, spec);
    return shape;
  };
  const Shape two{.tasks = 1, .gpu_milli_per_task = 2000, .cpu_milli_per_task = 3000, .memory_mib_per_task = 101};
  const Shape slices{.tasks = 2, .gpu_milli_per_task = 285, .cpu_milli_per_task = 1500, .memory_mib_per_task = 51};
  EXPECT_EQ(counted(two, "a100_2g.10gb"), slices);
  EXPECT_EQ(counted(two, "2g.10gb@4GiB"), slices);
  EXPECT_EQ(counted(two, "a100"), two);
  EXPECT_EQ(counted(two, "7g.40gb"), two) << "a whole card";
  EXPECT_EQ(counted(slices, "a100_2g.10gb"), slices) << "says its share already";
  const Shape cpus{.cpu_milli_per_task = 1};
  EXPECT_EQ(counted(cpus, "1g.5gb"), cpus);
}

TEST(ParseCluster, SizesAreNodesOrOnePool) {
  const Cluster nodes = *parse_cluster("75x8");
  EXPECT_EQ(nodes.nodes.size(), 75u);
  EXPECT_EQ(nodes.total_gpus(), 600);
  EXPECT_FALSE(nodes.nodes.front().counts_only);
  const Cluster pool = *parse_cluster("600");
  ASSERT_EQ(pool.nodes.size(), 1u);
  EXPECT_EQ(pool.total_gpus(), 600);
  EXPECT_TRUE(pool.nodes.front().counts_only);
}

TEST(ParseCluster, PhillyIsOneQueueAndPhillyVcHasElevenOwners) {
  const Cluster whole = *parse_cluster("philly");
  EXPECT_EQ(whole.nodes.size(), 352u);
  EXPECT_EQ(whole.total_gpus(), 2816);
  EXPECT_TRUE(whole.vcs.empty());
  const Cluster split = *parse_cluster("philly-vc");
  EXPECT_EQ(split.vcs.size(), 11u);
  EXPECT_EQ(split.total_gpus(), 2816);
  EXPECT_EQ(std::count_if(split.nodes.begin(), split.nodes.end(),
                          [&](const Node& node) { return split.vcs[node.vc].name == "ed69ec"; }),
            8);
}

TEST(ParseCluster, RefusesWhatItDoesNotKnowWithTheNearestName) {
  for (const std::string spec : {"phily", "0", "0x8", "8x0", "x8", "8x", "-3", "75x8x2x1", "99999999999999999999",
                                 "10000001", "10000001x1", "1x1000001", "1000000x1000000"}) {
    const auto cluster = parse_cluster(spec);
    ASSERT_FALSE(cluster) << spec;
    EXPECT_NE(cluster.error().message.find("cluster '" + spec + "'"), std::string::npos);
  }
  EXPECT_NE(parse_cluster("1000000x1000000").error().message.find("1,000,000,000 GPUs in all"), std::string::npos);
  EXPECT_NE(parse_cluster("phily").error().message.find("did you mean 'philly'"), std::string::npos);
}

TEST(ReadCluster, OpenbNodesHaveTypesCoresAndMemory) {
  const TempFolder folder;
  const Cluster cluster = *parse_cluster(folder.write(
      "nodes.csv",
      "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,32000,131072,0,\nn2,96000,393216,8,T4\n"));
  EXPECT_EQ(cluster.name, "nodes");
  ASSERT_EQ(cluster.nodes.size(), 3u);
  EXPECT_EQ(gpus_by_type(cluster), (std::map<std::string, std::int64_t>{{"GPU", 0}, {"P100", 2}, {"T4", 8}}));
  EXPECT_EQ(cluster.nodes[0].cpu_milli, 64000);
  EXPECT_EQ(cluster.nodes[1].memory_mib, 131072);
  EXPECT_EQ(cluster.nodes[2].name, "n2");
}

TEST(ReadCluster, PaiMachinesWithAndWithoutHeader) {
  const TempFolder folder;
  const std::string rows = "m1,CPU,96,512,0\nm2,V100,96,384,8\n";
  for (const std::string& text : {rows, "machine,gpu_type,cap_cpu,cap_mem,cap_gpu\n" + rows}) {
    const Cluster cluster = *read_cluster(folder.write("machines.csv", text));
    ASSERT_EQ(cluster.nodes.size(), 2u);
    EXPECT_EQ(cluster.nodes[0].cpu_milli, 96'000);
    EXPECT_EQ(cluster.nodes[1].memory_mib, 384 * 1024);
    EXPECT_EQ(gpus_by_type(cluster), (std::map<std::string, std::int64_t>{{"GPU", 0}, {"V100", 8}}));
  }
}

TEST(ReadCluster, SpotPhillyAndVirtualClusterLists) {
  const TempFolder folder;
  const Cluster spot = *read_cluster(folder.write(
      "spot.csv", "gpu_model,gpu_capacity_num,cpu_num,node_name\nGPU-series-1,4,192,0\nGPU-series-2,8,128,1\n"));
  EXPECT_EQ(spot.total_gpus(), 12);
  EXPECT_EQ(spot.nodes[0].cpu_milli, 192'000);
  EXPECT_EQ(spot.nodes[0].memory_mib, unlimited);
  const Cluster philly = *read_cluster(
      folder.write("cluster_machine_list", "machineId,number of GPUs,single GPU mem\nm31,8, 24GB\nm32,2, 12GB\n"));
  EXPECT_EQ(gpus_by_type(philly), (std::map<std::string, std::int64_t>{{"24GB", 8}, {"12GB", 2}}));
  const Cluster vcs = *read_cluster(folder.write("vcs.csv", "vc,node num\na,2\nb,1\n"));
  EXPECT_EQ(vcs.total_gpus(), 24);
  ASSERT_EQ(vcs.vcs.size(), 2u);
  EXPECT_EQ(vcs.nodes[2].vc, 1u);
}

TEST(ReadCluster, JsonGivesOwnersQuotasAndTypes) {
  const Cluster cluster = *cluster_from_json(R"({
    "name": "lab",
    "vcs": [{"name": "a", "quota_gpus": 12.5}, {"name": "b"}],
    "nodes": [{"count": 2, "gpus": 8, "gpu_type": "V100", "cpus": 96, "memory_gib": 512, "vc": "b",
               "rack": "r1"},
              {"gpus": 4, "name": "old"}, {"gpus": 8, "gpu_type": "V100", "rack": "r1"}]})",
                                             "lab.json");
  EXPECT_EQ(cluster.name, "lab");
  ASSERT_EQ(cluster.nodes.size(), 4u);
  EXPECT_EQ(cluster.nodes[1].rack, cluster.nodes[3].rack);
  EXPECT_NE(cluster.nodes[1].rack, cluster.nodes[2].rack);
  EXPECT_EQ(cluster.vcs[0].quota, 12'500);
  EXPECT_EQ(cluster.vcs[1].quota, unlimited);
  EXPECT_EQ(cluster.nodes[1].vc, 1u);
  EXPECT_EQ(cluster.nodes[1].cpu_milli, 96'000);
  EXPECT_EQ(cluster.nodes[1].memory_mib, 512 * 1024);
  EXPECT_EQ(cluster.nodes[2].vc, no_index);
  EXPECT_EQ(cluster.nodes[2].name, "old");
  EXPECT_EQ(cluster.nodes[2].cpu_milli, unlimited);
  EXPECT_EQ(gpus_by_type(cluster), (std::map<std::string, std::int64_t>{{"V100", 24}, {"GPU", 4}}));
}

TEST(ReadCluster, JsonGivesLimits) {
  const auto read = cluster_from_json(R"({"limits": [
    {"name": "big", "per": "user", "users": "ann", "accounts": ["x", "y"], "vcs": "v", "qos": "q", "arrays": "7",
     "or_vcs": "o", "except_vcs": "w", "unbound_vcs": "z", "gpus": 1.5, "cpus": 8, "memory_gib": 2, "jobs": 3, "submitted": 9},
    {"per": "job", "gpus": 4}, {"jobs": 0}], "nodes": [{"gpus": 8}]})",
                                      "c.json");
  ASSERT_TRUE(read) << read.error().to_string();
  const std::vector<LimitRule> expected = {
      {.name = "big",
       .per = LimitOwner::user,
       .users = {"ann"},
       .accounts = {"x", "y"},
       .vcs = {"v"},
       .qos = {"q"},
       .arrays = {"7"},
       .or_vcs = {"o"},
       .except_vcs = {"w"},
       .unbound_vcs = {"z"},
       .most = {.gpu_milli = 1500, .cpu_milli = 8000, .memory_mib = 2048, .jobs = 3},
       .submitted = 9},
      {.per = LimitOwner::job, .most = {.gpu_milli = 4000}},
      {.most = {.jobs = 0}}};
  EXPECT_EQ(read->limits, expected);
  const auto again = cluster_from_json(cluster_file_text(*read), "c.json");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->limits, expected);
  const auto error = [](const std::string& limit) {
    return cluster_from_json(R"({"limits": [)" + limit + R"(], "nodes": [{"gpus": 8}]})", "c.json").error().to_string();
  };
  EXPECT_EQ(error(R"({"per": "user"})"),
            "c.json: /limits/0: expected a limit: gpus, cpus, memory_gib, jobs, submitted, wall_s, allow_accounts or "
            "allow_qos");
  EXPECT_EQ(error(R"({"per": "job", "jobs": 2})"),
            "c.json: /limits/0/per: expected gpus, cpus, memory_gib or wall_s alone with job: each job is by itself");
}

constexpr const char* two_sites_json = R"({
  "nodes": [{"count": 2, "gpus": 8, "island_gpus": 4, "rack": "a", "site": "east"}, {"gpus": 8, "site": "east"},
            {"gpus": 4, "site": "west"}, {"gpus": 4, "island_gpus": 4, "rack": "b", "site": "west"}],
  "links": {"node": {"name": "NVLink", "latency_us": 8, "bandwidth_gb_per_s": 358},
            "islands": {"latency_us": 0, "bandwidth_gb_per_s": 25.5},
            "nodes": {"latency_us": 19, "bandwidth_gb_per_s": 35.9},
            "racks": {"latency_us": 21, "bandwidth_gb_per_s": 17},
            "sites": {"latency_us": 2000, "bandwidth_gb_per_s": 1}}})";

TEST(ReadCluster, JsonGivesTopologyAndLinks) {
  const auto read = cluster_from_json(two_sites_json, "c.json");
  ASSERT_TRUE(read) << read.error().to_string();
  const Cluster& cluster = *read;
  EXPECT_EQ(cluster.nodes[0].rack, cluster.nodes[1].rack);
  EXPECT_EQ(cluster.nodes[0].island_gpus, 4u);
  EXPECT_EQ(cluster.nodes[4].island_gpus, 0u);  // the node is one island
  // Nodes without a rack share one of their site.
  EXPECT_NE(cluster.nodes[2].rack, cluster.nodes[3].rack);
  EXPECT_EQ(cluster.site_of(cluster.nodes[0].rack), cluster.site_of(cluster.nodes[2].rack));
  EXPECT_NE(cluster.site_of(cluster.nodes[2].rack), cluster.site_of(cluster.nodes[3].rack));
  EXPECT_EQ(cluster.widest_span(), Span::sites);
  ASSERT_EQ(cluster.links.size(), span_count);
  EXPECT_EQ(cluster.links[0].name, "NVLink");
  EXPECT_EQ(cluster.links[2].bandwidth_gb_per_s, 35.9);
  EXPECT_EQ(cluster.links[4].latency_us, 2000);
  const std::string text = cluster_file_text(cluster);
  const auto again = cluster_from_json(text, "again");
  ASSERT_TRUE(again) << again.error().to_string() << text;
  EXPECT_EQ(cluster_file_text(*again), text);
  EXPECT_EQ(again->rack_sites, cluster.rack_sites);
  EXPECT_EQ(again->links[2].bandwidth_gb_per_s, 35.9);
  EXPECT_EQ(again->nodes[1].island_gpus, 4u);
  const auto one_site = cluster_from_json(R"({"nodes": [{"gpus": 8, "rack": "a", "site": "east"}]})", "c.json");
  EXPECT_TRUE(one_site->rack_sites.empty());
  EXPECT_TRUE(one_site->links.empty());
}

TEST(ReadCluster, TopologyThatCannotBeIsRefused) {
  struct Case {
    const char* json;
    const char* field;
    const char* message;
  };
  for (const Case& bad : {
           Case{R"({"nodes": [{"gpus": 8, "rack": "r", "site": "a"}, {"gpus": 8, "rack": "r", "site": "b"}]})",
                "/nodes/1/site", "rack 'r' stands in another site already"},
           Case{R"({"nodes": [{"gpus": 8, "rack": "r", "site": "a"}, {"gpus": 8, "rack": "r"}]})", "/nodes/1/site",
                "rack 'r' stands in another site already"},
           Case{R"({"nodes": [{"gpus": 8, "island_gpus": 3}]})", "/nodes/0/island_gpus",
                "expected a divisor of the node's 8 GPUs, not 3"},
           Case{R"({"nodes": [{"gpus": 8, "island_gpus": 16}]})", "/nodes/0/island_gpus",
                "expected an integer from 1 to 8"},
           Case{R"({"nodes": [{"gpus": 8, "island_gpus": 0}]})", "/nodes/0/island_gpus", "from 1 to 8"},
           Case{R"({"nodes": [{"gpus": 128, "island_gpus": 8}]})", "/nodes/0/island_gpus", "are not told apart"},
           Case{R"({"nodes": [{"gpus": 8}], "links": {}})", "/links/node", "missing"},
           Case{R"({"nodes": [{"gpus": 8}], "links": []})", "/links", "expected an object"},
           Case{R"({"nodes": [{"gpus": 8}], "links": {"nod": {}}})", "/links/node", "missing"},
           Case{R"({"nodes": [{"gpus": 8}], "links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 1}, "rack": 1}})",
                "/links/rack", "unknown key (did you mean 'racks'?)"},
           Case{R"({"nodes": [{"gpus": 8}], "links": {"node": {"latency_us": -1, "bandwidth_gb_per_s": 1}}})",
                "/links/node/latency_us", "expected a number from 0 to 1000000000, not -1"},
           Case{R"({"nodes": [{"gpus": 8}], "links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 0}}})",
                "/links/node/bandwidth_gb_per_s", "expected a number above 0 and at most 1000000000, not 0"},
           Case{R"({"nodes": [{"gpus": 8}], "links": {"node": {"latency_us": 1}}})", "/links/node/bandwidth_gb_per_s",
                "missing"},
           Case{R"({"nodes": [{"gpus": 8}], "links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 1, "x": 1}}})",
                "/links/node/x", "unknown key"},
           Case{
               R"({"nodes": [{"count": 2, "gpus": 8}], "links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 1}}})",
               "/links/nodes", "missing: tasks of a gang can span nodes"},
           Case{R"({"nodes": [{"gpus": 8, "rack": "a"}, {"gpus": 8, "rack": "b"}],
                    "links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 1}}})",
                "/links/racks", "missing: tasks of a gang can span racks"},
           Case{R"({"nodes": [{"gpus": 8, "site": "a"}, {"gpus": 8, "site": "b"}],
                    "links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 1}}})",
                "/links/sites", "missing: tasks of a gang can span sites"},
           Case{R"({"nodes": [{"gpus": 8, "island_gpus": 2}],
                    "links": {"node": {"latency_us": 1, "bandwidth_gb_per_s": 1}}})",
                "/links/islands", "missing: tasks of a gang can span islands"},
       }) {
    const auto cluster = cluster_from_json(bad.json, "c.json");
    ASSERT_FALSE(cluster) << bad.json;
    EXPECT_EQ(cluster.error().file, "c.json");
    EXPECT_EQ(cluster.error().field, bad.field) << bad.json;
    EXPECT_NE(cluster.error().message.find(bad.message), std::string::npos) << cluster.error().message;
  }
}

TEST(ClusterOfSize, TakesRacks) {
  const Cluster cluster = *parse_cluster("3x2x4");
  EXPECT_EQ(cluster.name, "3x2x4");
  EXPECT_EQ(cluster.total_gpus(), 24);
  ASSERT_EQ(cluster.nodes.size(), 6u);
  EXPECT_EQ(cluster.nodes[1].rack, 0u);
  EXPECT_EQ(cluster.nodes[2].rack, 1u);
  EXPECT_EQ(cluster.nodes[5].rack, 2u);
  EXPECT_EQ(parse_cluster("6x4")->nodes[5].rack, 0u);
  for (const char* bad : {"0x2x4", "3x0x4", "3x2x0", "4000x4000x1", "1x2x3x4", "3xx4", "3x2x", "99999999999x2x2"}) {
    EXPECT_FALSE(parse_cluster(bad)) << bad;
  }
}

TEST(ReadCluster, JsonErrorsNameThePath) {
  struct Case {
    const char* json;
    const char* field;
    const char* message;
  };
  for (const Case& bad : {
           Case{R"({"nodes": [{"gpu": 8}]})", "/nodes/0/gpu", "did you mean 'gpus'"},
           Case{R"({"nodes": [{}]})", "/nodes/0/gpus", "missing"},
           Case{R"({"nodes": [{"gpus": 8, "gpu_typ": "T4"}]})", "/nodes/0/gpu_typ", "did you mean 'gpu_type'"},
           Case{R"({"nodes": [{"gpus": 8}], "vc": []})", "/vc", "did you mean 'vcs'"},
           Case{R"({"nodes": [{"gpus": "8"}]})", "/nodes/0/gpus", "expected an integer"},
           Case{R"({"nodes": [{"gpus": 2.5}]})", "/nodes/0/gpus", "expected an integer"},
           Case{R"({"nodes": [{"gpus": -1}]})", "/nodes/0/gpus", "expected an integer from 0"},
           Case{R"({"nodes": [{"gpus": 18446744073709551615}]})", "/nodes/0/gpus", "expected an integer from 0"},
           Case{R"({"nodes": [{"gpus": 1}, {"gpus": 8, "vc": "x"}]})", "/nodes/1/vc", "not the name of an entry"},
           Case{R"({"vcs": [{"name": "a"}, {"name": "a"}], "nodes": [{"gpus": 1}]})", "/vcs/1/name", "twice"},
           Case{R"({"nodes": []})", "/nodes", "at least one node"},
           Case{R"({"nodes": {}})", "/nodes", "expected a list, not {}"},
           Case{R"([])", "", "expected an object"},
           Case{R"({"nodes": [{"gpus": 1}], "nodes": []})", "", "key 'nodes' appears twice"},
       }) {
    const auto cluster = cluster_from_json(bad.json, "lab.json");
    ASSERT_FALSE(cluster) << bad.json;
    EXPECT_EQ(cluster.error().file, "lab.json");
    EXPECT_EQ(cluster.error().field, bad.field) << bad.json;
    EXPECT_NE(cluster.error().message.find(bad.message), std::string::npos) << cluster.error().message;
  }
  const auto broken = cluster_from_json("{\n\"nodes\": [\n", "lab.json");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().line, 3u);
}

TEST(ReadCluster, ErrorsNameFileLineAndColumn) {
  const TempFolder folder;
  const std::string path = folder.write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,2,T4\nn1,1,1,two,T4\n");
  const auto cluster = read_cluster(path);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().to_string(), path + ":3: gpu: expected an integer >= 0, found 'two'");
  EXPECT_FALSE(read_cluster(folder.write("jobs.csv", "a,b\n1,2\n")));
  EXPECT_FALSE(read_cluster(folder.write("none.csv", "sn,cpu_milli,memory_mib,gpu,model\n")));
  EXPECT_FALSE(read_cluster(folder.write("empty", "")));
  EXPECT_FALSE(read_cluster(folder.path()));
}

TEST(ReadCluster, RealOpenbNodes) {
  const std::string gpu_nodes = real_trace("alibaba/openb2023/openb_node_list_gpu_node.csv");
  GPUSCHED_NEEDS_TRACE(gpu_nodes, "openb_node_list_gpu_node.csv");
  const Cluster cluster = *read_cluster(gpu_nodes);
  EXPECT_EQ(cluster.nodes.size(), 1213u);
  EXPECT_EQ(cluster.total_gpus(), 6212);
  EXPECT_EQ(gpus_by_type(cluster).size(), 7u);
  EXPECT_EQ(read_cluster(real_trace("alibaba/openb2023/openb_node_list_all_node.csv"))->nodes.size(), 1523u);
}

// ---- nodes added behind a plus ----

TEST(AddedNodes, AreNodesOfTheSameClusterAndNamedOnlyWhereOthersAre) {
  const Cluster both = *parse_cluster("8x8+4x8");
  const Cluster whole = *parse_cluster("12x8");
  ASSERT_EQ(both.nodes.size(), whole.nodes.size());
  for (std::size_t i = 0; i < both.nodes.size(); ++i) {
    EXPECT_EQ(both.nodes[i].gpus, whole.nodes[i].gpus);
    EXPECT_EQ(both.nodes[i].rack, whole.nodes[i].rack) << "no wider span than before";
    EXPECT_EQ(both.nodes[i].name, "");
  }
  EXPECT_EQ(both.name, "8x8+4x8");
  EXPECT_EQ(parse_cluster("600+64")->total_gpus(), 664);
  EXPECT_EQ(parse_cluster("600+64")->nodes.size(), 1u);

  const Cluster racks = *parse_cluster("2x3x8+1x8");
  EXPECT_EQ(racks.nodes.back().rack, 2u) << "a new rack";

  const TempFolder folder;
  const std::string file = folder.write(
      "lab+old.json", R"({"vcs": [{"name": "a"}], "nodes": [{"gpus": 8, "gpu_type": "V100", "cpus": 96, "vc": "a",
                          "name": "added1", "memory_gib": 512, "island_gpus": 4},
                         {"gpus": 4, "gpu_type": "T4", "cpus": 32, "name": "t"}]})");
  EXPECT_EQ(parse_cluster(file)->nodes.size(), 2u) << "a file whose name has a plus";
  const Cluster more = *parse_cluster(file + "+2x8:V100+1x6:V100+1x8:H100");
  ASSERT_EQ(more.nodes.size(), 6u);
  const Node& like = more.nodes[2];
  EXPECT_EQ(like.cpu_milli, 96'000);
  EXPECT_EQ(like.memory_mib, 512 * 1024);
  EXPECT_EQ(like.island_gpus, 4u);
  EXPECT_EQ(like.vc, no_index) << "anyone's";
  EXPECT_EQ(like.name, "added2") << "added1 is taken";
  EXPECT_EQ(more.nodes[4].island_gpus, 0u) << "6 GPUs are no islands of 4";
  EXPECT_EQ(more.nodes[5].cpu_milli, unlimited) << "of a type that it did not have";
  EXPECT_EQ(gpus_by_type(more), (std::map<std::string, std::int64_t>{{"V100", 30}, {"T4", 4}, {"H100", 8}}));
  EXPECT_EQ(cluster_without_added(file + "+2x8:V100+1x8:H100"), file);
}

TEST(ParseCluster, ASizeMayHaveAGpuType) {
  const Cluster typed = *parse_cluster("2x4:H100");
  EXPECT_EQ(typed.name, "2x4:H100");
  EXPECT_EQ(gpus_by_type(typed), (std::map<std::string, std::int64_t>{{"H100", 8}}));
  const Cluster racks = *parse_cluster("2x3x8:A100+1x8:H100+1x8:A100");
  EXPECT_EQ(gpus_by_type(racks), (std::map<std::string, std::int64_t>{{"A100", 56}, {"H100", 8}}));
  EXPECT_EQ(racks.nodes[3].rack, 1u);
  EXPECT_EQ(racks.name, "2x3x8:A100+1x8:H100+1x8:A100");
  for (const char* const spec : {"600:H100", "2x4:", "2x4: "}) {
    const auto refused = parse_cluster(spec);
    ASSERT_FALSE(refused) << spec;
    EXPECT_NE(refused.error().to_string().find("expected NODESxGPUS[:TYPE] or"), std::string::npos) << spec;
  }
}

TEST(ReadCluster, TypesThatNoJobCanNameAreRefused) {
  const TempFolder folder;
  const auto error_of = [](const std::string& spec) {
    const auto cluster = parse_cluster(spec);
    return cluster ? "none" : cluster.error().to_string();
  };
  const std::string expected = "expected a GPU type that jobs can name: without | and @, and not kind: in front";
  for (const std::string type : {"A100|V100", "A100@24GiB", "kind:gpu"}) {
    const std::string json = folder.write("c.json", R"({"nodes": [{"gpus": 1, "gpu_type": ")" + type + R"("}]})");
    EXPECT_EQ(error_of(json), json + ": /nodes/0/gpu_type: " + expected + ", not \"" + type + "\"");
    const std::string list = folder.write("c.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,2," + type + "\n");
    EXPECT_EQ(error_of(list), list + ": " + expected + ", found '" + type + "'");
    EXPECT_EQ(error_of("2x4:" + type), "cluster '2x4:" + type + "': " + expected);
    EXPECT_EQ(error_of("2x4+1x4:" + type), "cluster '2x4+1x4:" + type + "': " + expected);
  }
}

TEST(AddedNodes, OtherTextsAreRefusedByOneLine) {
  const TempFolder folder;
  const std::string file =
      folder.write("two.json", R"({"nodes": [{"gpus": 8, "gpu_type": "V100"}, {"gpus": 4, "gpu_type": "T4"}]})");
  const auto refused = [](const std::string& spec, const std::string& reason) {
    const auto cluster = parse_cluster(spec);
    ASSERT_FALSE(cluster) << spec;
    EXPECT_NE(cluster.error().to_string().find(reason), std::string::npos) << cluster.error().to_string();
  };
  for (const char* const added : {"", "8", "0x8", "8x0", "8x8:", "x", "-1x8", "8x8x8", "99999999x8", "8x9999999"}) {
    refused("8x8+" + std::string(added), "expected NODESxGPUS[:TYPE] behind the plus");
  }
  refused("600+8x8", "a pool that only counts GPUs");
  refused("8x8+9999999x1", "at most 10,000,000 nodes");
  refused(file + "+1x8", "name one, as +1x8:V100");
  refused("nowhere+1x8", "'nowhere' is no known name");
}

TEST(ReadCluster, RealPaiSpotAndPhillyLists) {
  const std::string machines = real_trace("alibaba/pai2020/pai_machine_spec.tar.gz");
  GPUSCHED_NEEDS_TRACE(machines, "pai_machine_spec.tar.gz");
  EXPECT_EQ(read_cluster(machines)->nodes.size(), 1897u);
  EXPECT_EQ(read_cluster(real_trace("alibaba/spot2026/node_info_df.csv"))->nodes.size(), 4278u);
  const Cluster listed = *read_cluster(real_trace("philly/philly_vc_nodes.csv"));
  const Cluster builtin = *parse_cluster("philly-vc");
  ASSERT_EQ(listed.vcs.size(), builtin.vcs.size());
  ASSERT_EQ(listed.nodes.size(), builtin.nodes.size());
  for (std::size_t i = 0; i < listed.nodes.size(); ++i) {
    EXPECT_EQ(listed.vcs[listed.nodes[i].vc].name, builtin.vcs[builtin.nodes[i].vc].name);
  }
}

}  // namespace
}  // namespace gpusched
