// SPDX-License-Identifier: Apache-2.0
// slurm.conf and the table of QOS, as slurm.conf(5) and sacctmgr(1) describe them.
#include "src/world/slurm_conf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/world/slurm_conf_lines.hpp"
#include "src/world/slurm_qos.hpp"
#include "src/world/slurm_site.hpp"
#include "tests/support/files.hpp"
#include "traces/core/qos_weights.hpp"

namespace gpusched {
namespace {

using test::TempFolder;
using Names = std::vector<std::string>;

const std::string nodes_and_partition =
    "NodeName=n[1-2] CPUs=16 Gres=gpu:a100:4\n"
    "PartitionName=gpu Nodes=ALL\n";

SlurmConf conf_of(const std::string& text) {
  const TempFolder folder;
  auto conf = read_slurm_conf(folder.write("slurm.conf", text));
  EXPECT_TRUE(conf) << conf.error().to_string();
  return *std::move(conf);
}

// Without the folder of the file.
std::string error_of_conf(const std::string& text) {
  const TempFolder folder;
  const auto conf = read_slurm_conf(folder.write("slurm.conf", text));
  if (conf) return "no error";
  const std::string message = conf.error().to_string();
  return message.substr(message.rfind("/slurm.conf") == std::string::npos ? 0 : message.rfind("/slurm.conf") + 1);
}

Names unused_keys(const std::vector<UnusedSetting>& unused) {
  Names keys;
  for (const UnusedSetting& setting : unused) keys.push_back(setting.key + "=" + setting.value);
  return keys;
}

TEST(SlurmHostNames, AreCountedOutWithTheirZeros) {
  EXPECT_EQ(*slurm_host_names("node[08-10,3],login"), (Names{"node08", "node09", "node10", "node3", "login"}));
  EXPECT_EQ(*slurm_host_names("r[1-2]n[0-1]x"), (Names{"r1n0x", "r1n1x", "r2n0x", "r2n1x"}));
  for (const std::string wrong :
       {"n[1-", "n[a]", "n[3-1]", "n[1,]", "", "a,,b", "n[0-9999999]", "n[]", "n[-1]", "n[0-999][0-999][0-9]"}) {
    EXPECT_FALSE(slurm_host_names(wrong)) << wrong;
  }
}

TEST(SlurmConfLines, AreContinuedAndWithoutComments) {
  const TempFolder folder;
  const std::string path = folder.write("slurm.conf",
                                        "# a comment \\\n"
                                        "ClusterName = lab # the name\n"
                                        "\n"
                                        "nodename=n1 \\\n"
                                        "  CPUS=4 \\   \n"
                                        "  Gres=gpu:2\n"
                                        "JobCompPass=a\\#b PluginDir=\"/a b\"\n");
  const auto found = read_slurm_conf_lines(path);
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->lines.size(), 4u);
  EXPECT_EQ(*found->lines[0].find("CLUSTERNAME"), "lab");
  EXPECT_EQ(found->lines[1].line, 4u);
  EXPECT_EQ(*found->lines[1].find("cpus"), "4");
  EXPECT_EQ(*found->lines[1].find("Gres"), "gpu:2");
  EXPECT_EQ(found->lines[1].find("Weight"), nullptr);
  EXPECT_EQ(*found->lines[2].find("JobCompPass"), "a#b");
  EXPECT_EQ(*found->lines[3].find("PluginDir"), "/a b");
}

TEST(SlurmConfLines, IncludeOtherFilesOfTheFolder) {
  const TempFolder folder;
  folder.write("nodes.conf", "NodeName=n1 Gres=gpu:8\nPartitionName=p Nodes=n1 Color=red\n");
  const std::string path = folder.write("slurm.conf", "include nodes.conf\nSlurmUser=slurm\n");
  const auto conf = read_slurm_conf(path);
  ASSERT_TRUE(conf) << conf.error().to_string();
  EXPECT_EQ(conf->cluster->cluster.total_gpus(), 8);
  ASSERT_EQ(conf->files.size(), 2u);
  ASSERT_EQ(conf->unused.size(), 2u);
  const auto of_nodes = std::find_if(conf->unused.begin(), conf->unused.end(),
                                     [](const UnusedSetting& setting) { return setting.value == "red"; });
  ASSERT_NE(of_nodes, conf->unused.end());
  EXPECT_TRUE(of_nodes->file.ends_with("nodes.conf"));
  EXPECT_EQ(of_nodes->line, 2u);
}

TEST(SlurmConf, HasTheDefaultsOfTheManual) {
  const SlurmConf conf = conf_of("ClusterName=lab\n");
  EXPECT_FALSE(conf.multifactor);
  EXPECT_EQ(conf.weight_age + conf.weight_fair_share + conf.weight_size + conf.weight_partition + conf.weight_qos, 0);
  EXPECT_EQ(conf.max_age, whole_seconds(7 * 86'400));
  EXPECT_EQ(conf.half_life, whole_seconds(7 * 86'400));
  EXPECT_TRUE(conf.fair_tree);
  EXPECT_TRUE(conf.backfills);
  EXPECT_EQ(conf.bf_window, whole_seconds(1440 * 60));
  EXPECT_EQ(conf.bf_max_job_test, 500);
  EXPECT_EQ(conf.bf_interval, whole_seconds(30));
  EXPECT_FALSE(conf.enforces_limits);
  EXPECT_FALSE(conf.cluster);
  EXPECT_TRUE(conf.unused.empty());
}

TEST(SlurmConf, SaysWhatThePolicySlurmDoes) {
  const SlurmConf conf = conf_of(
      "prioritytype=PRIORITY/multifactor\nPriorityWeightAge=1\nPriorityWeightFairshare=2\nPriorityWeightJobSize=3\n"
      "PriorityWeightPartition=4\nPriorityWeightQOS=5\nPriorityMaxAge=1-12\nPriorityDecayHalfLife=90\n"
      "PriorityFlags=NO_FAIR_TREE,ACCRUE_ALWAYS\nPriorityFavorSmall=NO\nPriorityUsageResetPeriod=MONTHLY\n"
      "SchedulerParameters=bf_window=2880,bf_max_job_test=50,bf_interval=60,defer,bf_resolution=300\n"
      "AccountingStorageEnforce=associations,safe\nPreemptType=preempt/qos\nPriorityWeightAge=10\n");
  EXPECT_TRUE(conf.multifactor);
  EXPECT_EQ(conf.weight_age, 10) << "the last of a key counts";
  EXPECT_EQ(conf.weight_fair_share, 2);
  EXPECT_EQ(conf.weight_size, 3);
  EXPECT_EQ(conf.weight_partition, 4);
  EXPECT_EQ(conf.weight_qos, 5);
  EXPECT_EQ(conf.max_age, whole_seconds(36 * 3600)) << "days-hours";
  EXPECT_EQ(conf.half_life, whole_seconds(90 * 60)) << "minutes";
  EXPECT_FALSE(conf.fair_tree);
  EXPECT_EQ(conf.bf_window, whole_seconds(2 * 86'400));
  EXPECT_EQ(conf.bf_max_job_test, 50);
  EXPECT_EQ(conf.bf_interval, whole_seconds(60));
  EXPECT_TRUE(conf.enforces_limits);
  EXPECT_EQ(unused_keys(conf.unused),
            (Names{"PriorityFlags=ACCRUE_ALWAYS", "PriorityUsageResetPeriod=MONTHLY",
                   "SchedulerParameters:defer=", "SchedulerParameters:bf_resolution=300", "PreemptType=preempt/qos"}));
  EXPECT_FALSE(conf_of("SchedulerType=sched/builtin\n").backfills);
  EXPECT_FALSE(conf_of("SchedulerParameters=bf_interval=-1\n").backfills);
}

TEST(SlurmConf, NodesArePartitionedAsItSays) {
  const SlurmConf conf = conf_of(
      "ClusterName=lab\n"
      "NodeName=DEFAULT Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=500000 State=UNKNOWN\n"
      "NodeName=a[01-02] Gres=gpu:a100:8 MemSpecLimit=1000\n"
      "NodeName=b1 CPUs=8 Gres=gpu:v100:4 Weight=5\n"
      "NodeName=dead Gres=gpu:v100:4 State=DOWN\n"
      "NodeName=alone Gres=gpu:v100:4\n"
      "NodeSet=big Nodes=a[01-02]\n"
      "PartitionName=DEFAULT MaxTime=INFINITE PriorityJobFactor=2\n"
      "PartitionName=long Nodes=big,b1 PriorityJobFactor=5\n"
      "PartitionName=Short Nodes=b1,dead QOS=few MaxTime=60\n");
  ASSERT_TRUE(conf.cluster);
  const Cluster& cluster = conf.cluster->cluster;
  EXPECT_EQ(cluster.name, "lab");
  ASSERT_EQ(cluster.nodes.size(), 3u);  // neither the one that is down nor the one without a partition
  EXPECT_EQ(cluster.nodes[1].name, "a02");
  EXPECT_EQ(cluster.nodes[1].gpus, 8u);
  EXPECT_EQ(cluster.gpu_types[cluster.nodes[1].gpu_type], "a100");
  EXPECT_EQ(cluster.nodes[1].cpu_milli, 2 * 16 * 2 * 1000);
  EXPECT_EQ(cluster.nodes[1].memory_mib, 499'000);
  EXPECT_EQ(cluster.nodes[2].cpu_milli, 8000);
  ASSERT_EQ(cluster.vcs.size(), 2u);
  EXPECT_EQ(cluster.vcs[0].name, "long");
  EXPECT_TRUE(cluster.owners_serve(cluster.nodes[0].vc, cluster.nodes[0].vc_group, 0));
  EXPECT_FALSE(cluster.owners_serve(cluster.nodes[0].vc, cluster.nodes[0].vc_group, 1));
  EXPECT_TRUE(cluster.owners_serve(cluster.nodes[2].vc, cluster.nodes[2].vc_group, 1));
  ASSERT_EQ(conf.partitions.size(), 2u);
  EXPECT_EQ(conf.partitions[0].job_factor, 5);
  EXPECT_EQ(conf.partitions[1].job_factor, 2);
  EXPECT_EQ(conf.partitions[1].qos, "few");
  EXPECT_EQ(unused_keys(conf.unused), (Names{"PartitionName:MaxTime=60", "NodeName:Weight=5"}));
}

TEST(SlurmConf, TiersThatDifferAreNotUsed) {
  const std::string node = "NodeName=n1 Gres=gpu:1\n";
  EXPECT_TRUE(conf_of(node + "PartitionName=a Nodes=n1 PriorityTier=2\nPartitionName=b Nodes=n1 PriorityTier=2\n")
                  .unused.empty());
  EXPECT_EQ(unused_keys(conf_of(node + "PartitionName=a Nodes=n1 PriorityTier=2\nPartitionName=b Nodes=n1\n").unused),
            Names{"PartitionName:PriorityTier=2"});
}

TEST(SlurmConf, BadLinesAreRefusedWithTheirPlace) {
  EXPECT_EQ(error_of_conf("SlurmUser=x\nnonsense\n"), "slurm.conf:2: line: expected KEY=VALUE, found 'nonsense'");
  EXPECT_EQ(error_of_conf("A=\"x\n"), "slurm.conf:1: line: expected KEY=VALUE, found 'A=\"x'");
  EXPECT_EQ(error_of_conf("PriorityWeightAge=much\n"),
            "slurm.conf:1: PriorityWeightAge: expected a whole number from 0 to 1000000000, found 'much'");
  EXPECT_EQ(error_of_conf("SchedulerParameters=defer,bf_window=0\n"),
            "slurm.conf:1: SchedulerParameters:bf_window: expected a whole number from 1 to 43200, found '0'");
  EXPECT_EQ(error_of_conf("SchedulerType=sched/wiki\n"),
            "slurm.conf:1: SchedulerType: expected sched/backfill or sched/builtin, found 'sched/wiki'");
  EXPECT_EQ(error_of_conf("PriorityMaxAge=soon\n"),
            "slurm.conf:1: PriorityMaxAge: expected a time: minutes, hours:minutes:seconds, days-hours or "
            "days-hours:minutes:seconds, found 'soon'");
  EXPECT_EQ(error_of_conf("NodeName=n[1- Gres=gpu:1\n"),
            "slurm.conf:1: NodeName: expected names like node[01-16], found 'n[1-'");
  EXPECT_EQ(error_of_conf("NodeName=n1 Gres=gpu:x:y\nPartitionName=p Nodes=n1\n"),
            "slurm.conf:1: Gres: expected generic resources like gpu:a100:8, found 'gpu:x:y'");
  EXPECT_EQ(error_of_conf("NodeName=n1\nPartitionName=p Nodes=n[1-2]\n"),
            "slurm.conf:2: Nodes: expected nodes of the NodeName lines, found 'n2'");
  EXPECT_EQ(error_of_conf("NodeName=n1\n"),
            "slurm.conf:1: NodeName: expected some node in service that a PartitionName line has, found 'none'");
  EXPECT_EQ(error_of_conf("NodeName=n1\nNodeName=n1\nPartitionName=p Nodes=ALL\n"),
            "slurm.conf:2: NodeName: expected a name that no other node has, found 'n1'");
  EXPECT_EQ(error_of_conf("Include slurm.conf\n"),
            "slurm.conf:1: Include: expected files that do not include each other in a circle");
  EXPECT_NE(error_of_conf("Include gone.conf\n").find("slurm.conf:1: Include: "), std::string::npos);
}

const std::string qos_header = "Name|Priority|GraceTime|PreemptMode|UsageFactor|GrpTRES|MaxTRESPU|MaxJobsPU\n";

TEST(SlurmQos, HavePrioritiesAndLimits) {
  const TempFolder folder;
  const auto table =
      read_slurm_qos(folder.write("qos.txt", qos_header + "normal|0|00:00:00|cluster|1.000000|||\n"
                                                          "a,b|100|00:00:00|cluster|2.000000|cpu=9,gres/gpu=4|"
                                                          "gres/gpu=2|5\n"));
  ASSERT_TRUE(table) << table.error().to_string();
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_FALSE(table->rows[0].most_gpus);
  EXPECT_EQ(table->rows[1].priority, 100);
  EXPECT_EQ(table->rows[1].most_gpus, 4);
  EXPECT_EQ(unused_keys(table->unused),
            (Names{"a,b:UsageFactor=2.000000", "a,b:GrpTRES=cpu=9", "a,b:MaxTRESPU=gres/gpu=2", "a,b:MaxJobsPU=5"}));
  SlurmSite site;
  site.qos = *table;
  auto weights = QosWeights::parse(site.qos_weights());
  ASSERT_TRUE(weights) << weights.error().to_string();
  EXPECT_EQ(weights->priority("a,b"), 100);
  EXPECT_EQ(weights->priority("normal"), 0);
}

TEST(SlurmQos, BadTablesAreRefusedWithTheirPlace) {
  const TempFolder folder;
  const auto error = [&](const std::string& text) {
    const auto table = read_slurm_qos(folder.write("qos.txt", text));
    const std::string message = table ? "no error" : table.error().to_string();
    return message.substr(message.rfind("/qos.txt") == std::string::npos ? 0 : message.rfind("/qos.txt") + 1);
  };
  EXPECT_EQ(error("Name|Flags\na|b\n"),
            "qos.txt:1: header: expected the columns Name and Priority of sacctmgr show qos -P, found 'Name|Flags'");
  EXPECT_EQ(error("Name|Priority\na|b|c\n"), "qos.txt:2: line: expected 2 fields between bars, found 'a|b|c'");
  EXPECT_EQ(error("Name|Priority\na|high\n"), "qos.txt:2: Priority: expected a whole number from 0, found 'high'");
  EXPECT_EQ(error("Name|Priority\na|1\na|2\n"), "qos.txt:3: Name: expected a name that no other QOS has, found 'a'");
  EXPECT_EQ(error("Name|Priority|GrpTRES\na|1|gres/gpu=x\n"),
            "qos.txt:2: GrpTRES: expected limits like gres/gpu=8, found 'gres/gpu=x'");
  EXPECT_EQ(error("Name|Priority\n"), "qos.txt:1: line: expected rows of sacctmgr show qos -P, found 'none'");
}

// resource_limits.html: limits are enforced with AccountingStorageEnforce=limits; qos.html: the limits of a partition's
// QOS are those of all jobs in the partition.
TEST(SlurmSite, TheQosOfAPartitionLimitsItsGpus) {
  const TempFolder folder;
  const std::string qos =
      folder.write("qos.txt", "Name|Priority|GrpTRES\nfew|1|gres/gpu=3\nshared|1|gres/gpu=5\nother|1|gres/gpu=7\n");
  const std::string text = nodes_and_partition +
                           "PartitionName=small Nodes=n1 QOS=few\nPartitionName=x Nodes=n1 QOS=shared\n"
                           "PartitionName=y Nodes=n1 QOS=shared\n";
  const auto quotas = [&](const std::string& conf, SlurmSite& site) {
    auto read = read_slurm_site(folder.write("slurm.conf", conf), qos);
    EXPECT_TRUE(read) << read.error().to_string();
    site = *std::move(read);
    Cluster cluster = site.conf->cluster->cluster;
    EXPECT_TRUE(set_slurm_quotas(site, cluster));
    std::map<std::string, MilliGpu> found;
    for (const VirtualCluster& vc : cluster.vcs) found[vc.name] = vc.quota;
    return found;
  };
  SlurmSite site;
  const auto limited = quotas(text + "AccountingStorageEnforce=limits\n", site);
  EXPECT_EQ(limited.at("small"), 3 * whole_gpu);
  EXPECT_EQ(limited.at("gpu"), unlimited);
  EXPECT_EQ(limited.at("x"), unlimited) << "one limit of two partitions is no quota of one";
  EXPECT_EQ(unused_keys(site.unused), (Names{"shared:GrpTRES=gres/gpu=5", "other:GrpTRES=gres/gpu=7"}));
  ASSERT_EQ(site.unused_lines().size(), 1u);
  EXPECT_TRUE(site.unused_lines().front().ends_with("qos.txt: 2 settings not used: shared:GrpTRES, other:GrpTRES"));
  const auto free = quotas(text, site);
  EXPECT_EQ(free.at("small"), unlimited);
  EXPECT_EQ(site.unused.size(), 3u);
}

TEST(SlurmSite, APartitionHasAQosOfTheTable) {
  const TempFolder folder;
  auto site = read_slurm_site(folder.write("slurm.conf", nodes_and_partition + "PartitionName=p Nodes=n1 QOS=gone\n"),
                              folder.write("qos.txt", "Name|Priority\nnormal|0\n"));
  ASSERT_TRUE(site);
  Cluster cluster;
  const auto done = set_slurm_quotas(*site, cluster);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().line, 3u);
  EXPECT_EQ(done.error().field, "QOS");
}

}  // namespace
}  // namespace gpusched
