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
  EXPECT_EQ(unused_keys(conf.unused), (Names{"PriorityFlags=ACCRUE_ALWAYS", "PriorityUsageResetPeriod=MONTHLY",
                                             "SchedulerParameters:defer=", "SchedulerParameters:bf_resolution=300"}));
  EXPECT_EQ(conf.preempt_type, SlurmPreemptType::qos);
  EXPECT_EQ(unused_keys(conf.of_preemption), (Names{"PreemptType=preempt/qos"}));
  EXPECT_FALSE(conf_of("SchedulerType=sched/builtin\n").backfills);
  EXPECT_FALSE(conf_of("SchedulerParameters=bf_interval=-1\n").backfills);
}

TEST(SlurmConf, SaysWhoPreemptsWhom) {
  const SlurmConf conf = conf_of(
      "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\nPreemptExemptTime=10\n"
      "SchedulerParameters=preempt_youngest_first\n"
      "NodeName=n1 CPUs=1\nPartitionName=a Nodes=n1 PriorityTier=3\n"
      "PartitionName=b Nodes=n1 PriorityTier=2 GraceTime=60 PreemptMode=OFF\n");
  EXPECT_EQ(conf.preempt_type, SlurmPreemptType::partition);
  EXPECT_EQ(conf.preempted.mode, SlurmPreemptMode::suspend);
  EXPECT_EQ(conf.preempted.exempt, whole_seconds(600)) << "minutes";
  EXPECT_TRUE(conf.youngest_first);
  EXPECT_EQ(conf.partitions[1].preempted.grace, whole_seconds(60));
  EXPECT_EQ(conf.partitions[1].preempted.mode, SlurmPreemptMode::off);
  EXPECT_EQ(unused_keys(conf.unused), Names{"PreemptMode=GANG"});
  EXPECT_EQ(conf_of("PreemptMode=CANCEL\n").preempted.mode, SlurmPreemptMode::cancel);
  EXPECT_FALSE(conf_of("PreemptMode=GANG\n").preempted.mode.has_value()) << "slices time alone";
  EXPECT_FALSE(conf_of("JobRequeue=0\n").requeues);
  EXPECT_TRUE(conf_of("JobRequeue=1\n").requeues);
  EXPECT_EQ(error_of_conf("PreemptType=preempt/all\n"),
            "slurm.conf:1: PreemptType: expected preempt/none, preempt/qos or preempt/partition_prio, found "
            "'preempt/all'");
  EXPECT_EQ(error_of_conf("PreemptMode=CANCEL,REQUEUE\n"),
            "slurm.conf:1: PreemptMode: expected OFF, REQUEUE, SUSPEND, CANCEL or GANG, found 'CANCEL,REQUEUE'");
  EXPECT_EQ(error_of_conf("PreemptMode=NEVER\n"),
            "slurm.conf:1: PreemptMode: expected OFF, REQUEUE, SUSPEND, CANCEL or GANG, found 'NEVER'");
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
  EXPECT_EQ(conf.partitions[0].wall, Time::max());
  EXPECT_EQ(conf.partitions[1].wall, whole_seconds(3600));
  EXPECT_EQ(unused_keys(conf.unused), Names{"NodeName:Weight=5"});
}

// slurm.conf(5), "NodeSet": by names, by a feature, or both.
TEST(SlurmConf, SetsHoldNodesOfAFeature) {
  const SlurmConf conf = conf_of(
      "NodeName=n[1-2] Features=fast,big\nNodeName=n3 Features=slow\nNodeName=n4\nNodeSet=bigs Feature=big Nodes=n4\n"
      "NodeSet=none Feature=tiny\nPartitionName=a Nodes=bigs\nPartitionName=b Nodes=n3,none\n");
  ASSERT_TRUE(conf.cluster);
  const Cluster& cluster = conf.cluster->cluster;
  ASSERT_EQ(cluster.nodes.size(), 4u);
  for (const std::size_t node : {0u, 1u, 3u}) EXPECT_EQ(cluster.vcs[cluster.nodes[node].vc].name, "a") << node;
  EXPECT_EQ(cluster.vcs[cluster.nodes[2].vc].name, "b");
  EXPECT_TRUE(conf.unused.empty());
}

TEST(SlurmConf, PartitionsHaveTiers) {
  const SlurmConf conf = conf_of("NodeName=n1\nPartitionName=a Nodes=n1 PriorityTier=2\nPartitionName=b Nodes=n1\n");
  EXPECT_EQ(conf.partitions[0].tier, 2);
  EXPECT_EQ(conf.partitions[1].tier, 1);
  EXPECT_TRUE(conf.unused.empty());
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
  EXPECT_TRUE(table->rows[0].limits.empty());
  EXPECT_EQ(table->rows[1].priority, 100);
  const auto& limits = table->rows[1].limits;
  ASSERT_EQ(limits.size(), 4u);
  EXPECT_EQ(limits[0].most.cpu_milli, 9000);
  EXPECT_EQ(limits[1].most.gpu_milli, 4 * whole_gpu);
  EXPECT_EQ(limits[1].per, LimitOwner::all);
  EXPECT_EQ(limits[2].most.gpu_milli, 2 * whole_gpu);
  EXPECT_EQ(limits[2].per, LimitOwner::user);
  EXPECT_EQ(limits[3].most.jobs, 5);
  EXPECT_EQ(unused_keys(table->unused), Names{"a,b:UsageFactor=2.000000"});
  SlurmSite site;
  site.qos = *table;
  auto weights = QosWeights::parse(site.qos_weights());
  ASSERT_TRUE(weights) << weights.error().to_string();
  EXPECT_EQ(weights->priority("a,b"), 100);
  EXPECT_EQ(weights->priority("normal"), 0);
}

// Every column that limits jobs or what they hold, under its short name or its long one; mem is in MiB without a unit.
TEST(SlurmQos, EveryLimitHasItsMeaning) {
  struct Column {
    const char *name, *value;
    LimitOwner per;
    LimitAmounts most = {};
    std::int64_t submitted = unlimited;
  };
  const std::vector<Column> columns = {{"GrpTRES", "mem=2T", LimitOwner::all, {.memory_mib = 2 * 1024 * 1024}},
                                       {"GrpJobs", "3", LimitOwner::all, {.jobs = 3}},
                                       {"GrpSubmit", "4", LimitOwner::all, {}, 4},
                                       {"GrpSubmitJobs", "4", LimitOwner::all, {}, 4},
                                       {"MaxTRES", "mem=750000M", LimitOwner::job, {.memory_mib = 750'000}},
                                       {"MaxTRESPerJob", "cpu=8", LimitOwner::job, {.cpu_milli = 8000}},
                                       {"MaxTRESPU", "mem=100", LimitOwner::user, {.memory_mib = 100}},
                                       {"MaxTRESPerUser", "gres/gpu=8", LimitOwner::user, {.gpu_milli = 8 * whole_gpu}},
                                       {"MaxJobsPU", "5", LimitOwner::user, {.jobs = 5}},
                                       {"MaxSubmitPU", "6", LimitOwner::user, {}, 6},
                                       {"MaxTRESPA", "mem=1G", LimitOwner::account, {.memory_mib = 1024}},
                                       {"MaxJobsPA", "7", LimitOwner::account, {.jobs = 7}},
                                       {"MaxSubmitJobsPerAccount", "8", LimitOwner::account, {}, 8}};
  const TempFolder folder;
  for (const Column& column : columns) {
    const auto table = read_slurm_qos(folder.write(
        "qos.txt", "Name|Priority|" + std::string(column.name) + "\nnormal|0|" + std::string(column.value) + "\n"));
    ASSERT_TRUE(table) << table.error().to_string();
    ASSERT_EQ(table->rows[0].limits.size(), 1u) << column.name;
    const SlurmQosLimit& limit = table->rows[0].limits.front();
    EXPECT_EQ(limit.per, column.per) << column.name;
    EXPECT_EQ(limit.most, column.most) << column.name;
    EXPECT_EQ(limit.submitted, column.submitted) << column.name;
    EXPECT_TRUE(table->unused.empty()) << column.name;
  }
  const auto others = read_slurm_qos(folder.write(
      "qos.txt", "Name|Priority|Flags|MaxTRESPU|MaxWall\nnormal|0|DenyOnLimit|node=2,gres/gpu:a100=1|60\n"));
  ASSERT_TRUE(others);
  EXPECT_EQ(unused_keys(others->unused), (Names{"normal:MaxTRESPU=node=2", "normal:MaxTRESPU=gres/gpu:a100=1"}));
  ASSERT_EQ(others->rows[0].limits.size(), 1u);
  EXPECT_EQ(others->rows[0].limits[0].wall, whole_seconds(3600));
  EXPECT_EQ(others->rows[0].limits[0].per, LimitOwner::job);
}

TEST(SlurmQos, SayWhomTheyPreempt) {
  const TempFolder folder;
  const auto table = read_slurm_qos(
      folder.write("qos.txt",
                   "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode\nlow|0|00:01:00||00:05:00|cancel\n"
                   "mid|5|00:00:00|low||cluster\ntop|9|00:00:00|low,mid||off\n"));
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_EQ(table->rows[0].preempted.grace, whole_seconds(60));
  EXPECT_EQ(table->rows[0].preempted.exempt, whole_seconds(300));
  EXPECT_EQ(table->rows[0].preempted.mode, SlurmPreemptMode::cancel);
  EXPECT_EQ(table->rows[1].preempts, Names{"low"});
  EXPECT_FALSE(table->rows[1].preempted.mode.has_value());
  EXPECT_EQ(table->rows[2].preempts, (Names{"low", "mid"}));
  EXPECT_EQ(table->rows[2].preempted.mode, SlurmPreemptMode::off);
  EXPECT_TRUE(table->unused.empty());
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
            "qos.txt:2: GrpTRES: expected limits like cpu=64,mem=500G,gres/gpu=8, found 'gres/gpu=x'");
  EXPECT_EQ(error("Name|Priority|MaxTRESPU\na|1|mem=5X\n"),
            "qos.txt:2: MaxTRESPU: expected limits like cpu=64,mem=500G,gres/gpu=8, found 'mem=5X'");
  EXPECT_EQ(error("Name|Priority|MaxJobsPU\na|1|few\n"),
            "qos.txt:2: MaxJobsPU: expected a whole number from 0, found 'few'");
  EXPECT_EQ(error("Name|Priority|Preempt\na|1|b\n"), "qos.txt:2: Preempt: expected QOS of the table, found 'b'");
  EXPECT_EQ(error("Name|Priority|GraceTime\na|1|soon\n"),
            "qos.txt:2: GraceTime: expected a time like 00:02:00, found 'soon'");
  EXPECT_EQ(error("Name|Priority|PreemptMode\na|1|hard\n"),
            "qos.txt:2: PreemptMode: expected cluster, off, requeue, suspend or cancel, found 'hard'");
  EXPECT_EQ(error("Name|Priority\n"), "qos.txt:1: line: expected rows of sacctmgr show qos -P, found 'none'");
}

// resource_limits.html: limits are enforced with AccountingStorageEnforce=limits; a limit of the partition's QOS is
// used in place of the same one of the job's QOS, which holds for what the other does not limit: here GrpTRES=cpu of
// `free`. A job counts in what both QOS use, whichever limits it.
TEST(SlurmSite, LimitsOfQosAreThoseOfTheirJobsAndPartitions) {
  const TempFolder folder;
  const std::string qos =
      folder.write("qos.txt", "Name|Priority|GrpTRES|MaxJobsPU\nfew|1|gres/gpu=3|\nfree|1|cpu=9,gres/gpu=7|2\n");
  const std::string text = nodes_and_partition + "PartitionName=x Nodes=n1 QOS=few\nPartitionName=y Nodes=n1 QOS=few\n";
  const auto limits = [&](const std::string& conf, SlurmSite& site) {
    auto read = read_slurm_site(folder.write("slurm.conf", conf), qos);
    EXPECT_TRUE(read) << read.error().to_string();
    site = *std::move(read);
    Cluster cluster = site.conf->cluster->cluster;
    EXPECT_TRUE(set_slurm_limits(site, cluster));
    return cluster.limits;
  };
  SlurmSite site;
  const Names both{"x", "y"};
  EXPECT_EQ(limits(text + "AccountingStorageEnforce=limits\n", site),
            (std::vector<LimitRule>{
                {.name = "few:GrpTRES", .qos = {"few"}, .or_vcs = both, .most = {.gpu_milli = 3 * whole_gpu}},
                {.name = "free:GrpTRES", .qos = {"free"}, .most = {.cpu_milli = 9000}},
                {.name = "free:GrpTRES", .qos = {"free"}, .unbound_vcs = both, .most = {.gpu_milli = 7 * whole_gpu}},
                {.name = "free:MaxJobsPU", .per = LimitOwner::user, .qos = {"free"}, .most = {.jobs = 2}}}));
  EXPECT_TRUE(site.unused.empty());
  EXPECT_TRUE(limits(text, site).empty());
  EXPECT_EQ(unused_keys(site.unused),
            (Names{"few:GrpTRES=gres/gpu=3", "free:GrpTRES=cpu=9", "free:GrpTRES=gres/gpu=7", "free:MaxJobsPU=2"}));
}

// slurm.conf(5), of partitions; no table of QOS and no AccountingStorageEnforce is needed. With AllowQos DenyQos is not
// enforced.
TEST(SlurmSite, APartitionSaysWhomItTakes) {
  const TempFolder folder;
  auto site = read_slurm_site(
      folder.write("slurm.conf", nodes_and_partition +
                                     "PartitionName=short Nodes=n1 MaxTime=1-2 AllowQos=ALL\n"
                                     "PartitionName=own Nodes=n2 AllowQos=A,b, DenyQos=c DenyAccounts=d\n"
                                     "PartitionName=rest Nodes=n2 DenyQOS=c MaxTime=-1 DenyAccounts=\"\"\n"),
      "");
  ASSERT_TRUE(site) << site.error().to_string();
  EXPECT_TRUE(site->unused.empty());
  Cluster cluster;
  ASSERT_TRUE(set_slurm_limits(*site, cluster));
  EXPECT_EQ(cluster.limits,
            (std::vector<LimitRule>{
                {.name = "short:MaxTime", .per = LimitOwner::job, .vcs = {"short"}, .wall = whole_seconds(26 * 3600)},
                {.name = "own:AllowQos", .vcs = {"own"}, .allow_qos = {"A", "a", "b"}},
                {.name = "own:DenyAccounts", .accounts = {"d"}, .vcs = {"own"}, .submitted = 0},
                {.name = "rest:DenyQos", .vcs = {"rest"}, .qos = {"c"}, .submitted = 0}}));
  for (const LimitRule& rule : cluster.limits) EXPECT_FALSE(rule.holds_jobs_back()) << rule.name;
  const auto table = read_slurm_qos(
      folder.write("qos.txt", "Name|Priority|Flags|MaxWall\nlong|1|DenyOnLimit,PartitionTimeLimit|UNLIMITED\n"));
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_TRUE(table->unused.empty());
  site->qos = *table;
  Cluster other;
  ASSERT_TRUE(set_slurm_limits(*site, other));
  ASSERT_EQ(other.limits.size(), 4u);
  EXPECT_EQ(other.limits[0].except_qos, Names{"long"});
}

TEST(SlurmSite, APartitionHasAQosOfTheTable) {
  const TempFolder folder;
  auto site = read_slurm_site(folder.write("slurm.conf", nodes_and_partition + "PartitionName=p Nodes=n1 QOS=gone\n"),
                              folder.write("qos.txt", "Name|Priority\nnormal|0\n"));
  ASSERT_TRUE(site);
  Cluster cluster;
  const auto done = set_slurm_limits(*site, cluster);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().line, 3u);
  EXPECT_EQ(done.error().field, "QOS");
}

}  // namespace
}  // namespace gpusched
