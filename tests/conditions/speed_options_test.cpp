// SPDX-License-Identifier: Apache-2.0
#include "src/conditions/speed_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/world/cluster_reader.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"

namespace gpusched::test {
namespace {

TEST(SpeedOptions, MeasuredThroughputsTakeThePlaceOfProfiles) {
  const TempFolder folder;
  const std::string file = folder.write("t.csv", "family,gpu_type,throughput\nresnet,GPU,10\nresnet,other,5\n");
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .family = "resnet"}});
  const Cluster cluster = Cluster::pool(1);
  const auto runtime = runtime_of({.throughputs = file, .reference_type = "other"}, jobs, cluster);
  ASSERT_TRUE(runtime) << runtime.error().to_string();
  EXPECT_EQ(runtime->model.rate(jobs.family(JobId{0}), 0), reference_rate);  // of gangs of one GPU alone
  EXPECT_EQ(runtime->model.rates(jobs.family(JobId{0}), jobs.shape(JobId{0}))[0], 2 * reference_rate);
  EXPECT_EQ(files_of(SpeedOptions{.throughputs = file}), (std::vector<std::string>{"", file, ""}));
  const auto error_of = [&](const SpeedOptions& options) { return runtime_of(options, jobs, cluster).error().message; };
  EXPECT_EQ(error_of({.profiles = "V100", .throughputs = file}),
            "takes the place of --profile, --reference-profile and --slowdown");
  EXPECT_EQ(error_of({.throughputs = file, .slowdown = 2}),
            "takes the place of --profile, --reference-profile and --slowdown");
  EXPECT_EQ(error_of({.reference_type = "other"}), "is a GPU type of measured throughputs; add --throughputs");
}

// They used to run at full speed where no job was submitted with that size.
TEST(SpeedOptions, SizesThatUsersChangeToHaveTheirSpeeds) {
  const TempFolder folder;
  const std::string file = folder.write("t.csv",
                                        "family,gpu_type,gpus,throughput,span\nlm,GPU,0,1,\nlm,other,0,2,\n"
                                        "lm,GPU,0,.25,nodes\nlm,other,0,1,nodes\n");
  JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 1, .family = "lm"}});
  Shape two = jobs.shape(JobId{0});
  two.tasks = 2;
  const JobChanges changes(
      {{.time = whole_seconds(20), .job = JobId{0}, .kind = JobChange::Kind::size, .shape = jobs.number_of_shape(two)}},
      1);
  Cluster cluster = Cluster::homogeneous(2, 1);
  const auto rates = [&](const SpeedOptions& options) {
    const auto runtime = runtime_of(options, jobs, cluster, changes);
    EXPECT_TRUE(runtime) << runtime.error().to_string();
    return std::pair{runtime->model.rates(jobs.family(JobId{0}), two)[0],
                     runtime->model.spans().factor(jobs.family(JobId{0}), two, gpusched::Span::nodes).on(0)};
  };
  EXPECT_EQ(rates({.throughputs = file, .reference_type = "other"}).first, reference_rate / 2);
  EXPECT_EQ(rates({.throughputs = file, .reference_type = "other", .span_speed = "throughputs"}).second,
            reference_rate / 4);
}

RatePpm factor_on_nodes(const SpeedOptions& options, const JobTable& jobs, const Cluster& cluster) {
  const auto runtime = runtime_of(options, jobs, cluster);
  EXPECT_TRUE(runtime) << runtime.error().to_string();
  if (!runtime) return 0;
  return runtime->model.spans().factor(jobs.family(JobId{0}), jobs.shape(JobId{0}), gpusched::Span::nodes).on(0);
}

TEST(SpeedOptions, GangsThatAreApartAreSlowerWhereAskedFor) {
  const TempFolder folder;
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 8, .family = "vgg"}});
  Cluster cluster = Cluster::homogeneous(2, 4);
  EXPECT_TRUE(runtime_of({}, jobs, cluster)->model.is_uniform());
  EXPECT_EQ(factor_on_nodes({.span_speed = "nodes=0.75"}, jobs, cluster), 750'000u);
  EXPECT_EQ(factor_on_nodes({.span_speed = "nodes=0.75", .reference_span = "narrowest"}, jobs, cluster), 1'000'000u);
  const std::string file =
      folder.write("f.json", R"({"families": [{"family": "vgg", "compute_ms": 10, "gradient_mb": 80}]})");
  cluster.links = {
      {.latency_us = 5, .bandwidth_gb_per_s = 100}, {}, {.latency_us = 20, .bandwidth_gb_per_s = 10}, {}, {}};
  EXPECT_EQ(factor_on_nodes({.communication = file}, jobs, cluster), 472'405u);
  EXPECT_EQ(files_of(SpeedOptions{.communication = file}), (std::vector<std::string>{"", "", file}));
  // A device twice as fast computes half as long and talks as long.
  const std::string throughputs = folder.write("t.csv", "family,gpu_type,throughput\nvgg,GPU,10\nvgg,other,5\n");
  EXPECT_EQ(
      factor_on_nodes({.throughputs = throughputs, .reference_type = "other", .communication = file}, jobs, cluster),
      335'581u);
}

TEST(SpeedOptions, SpansMayBeMeasured) {
  const TempFolder folder;
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 2, .family = "lm"}});
  const std::string file = folder.write("t.csv", "family,gpu_type,throughput,span\nlm,GPU,10,node\nlm,GPU,4,nodes\n");
  const Cluster cluster = Cluster::homogeneous(2, 1);
  EXPECT_EQ(factor_on_nodes({.throughputs = file, .span_speed = "throughputs"}, jobs, cluster), 400'000u);
  EXPECT_EQ(factor_on_nodes({.throughputs = file}, jobs, cluster), 1'000'000u);
}

// The cluster, families and jobs of examples/clusters. By hand: an all-reduce of VGG's 553 MB between 16 GPUs takes
// 30 x (19 + 553e6 / 16 / 35.9e3) = 29,452 us between nodes, of which 12,000 hide behind 60,000 of computing.
TEST(SpeedOptions, TheExamplePodSlowsLargeGradientsAlone) {
  const std::string folder = source_dir() + "/examples/clusters/";
  const auto cluster = parse_cluster(folder + "dgx_h100_pod.json");
  ASSERT_TRUE(cluster) << cluster.error().to_string();
  EXPECT_EQ(cluster->total_gpus(), 256);
  EXPECT_EQ(cluster->widest_span(), gpusched::Span::racks);
  const auto trace = read_trace(folder + "jobs.csv", {});
  ASSERT_TRUE(trace) << trace.error().to_string();
  const auto runtime = runtime_of({.communication = folder + "families.json"}, trace->jobs, *cluster);
  ASSERT_TRUE(runtime) << runtime.error().to_string();
  const auto on_nodes = [&](std::uint32_t job) {
    const JobTable& jobs = trace->jobs;
    return runtime->model.spans().factor(jobs.family(JobId{job}), jobs.shape(JobId{job}), gpusched::Span::nodes).on(0);
  };
  EXPECT_EQ(on_nodes(2), 774'670u);    // 60,000 / 77,452: vgg16
  EXPECT_EQ(on_nodes(3), 1'000'000u);  // resnet50
  EXPECT_EQ(on_nodes(4), 1'000'000u);  // gpt: its tensor groups stay on nodes
  EXPECT_EQ(on_nodes(5), 843'967u);    // bert
  EXPECT_TRUE(runtime->model.spans().is_skewed(trace->jobs.family(JobId{2})));
}

TEST(SpeedOptions, TellsWhichSpansCannotBe) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 8}});
  const auto notes_on = [&](const char* speeds, const Cluster& cluster) {
    return runtime_of({.span_speed = speeds}, jobs, cluster)->notes;
  };
  EXPECT_TRUE(notes_on("nodes=0.9", Cluster::homogeneous(2, 4)).empty());
  EXPECT_EQ(notes_on("nodes=0.9,racks=0.8", Cluster::homogeneous(2, 4)),
            (std::vector<std::string>{"--span-speed: no gang can span several racks of this cluster"}));
  EXPECT_EQ(notes_on("nodes=0.9", Cluster::pool(8)),
            (std::vector<std::string>{"--span-speed: no gang can span several nodes of this cluster"}));
}

TEST(SpeedOptions, RefusesSpansThatContradict) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 8}});
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const auto error_of = [&](const SpeedOptions& options) { return runtime_of(options, jobs, cluster).error(); };
  EXPECT_EQ(error_of({.span_speed = "nodes=2"}).field, "fidelity.span_speed");
  EXPECT_EQ(error_of({.span_speed = "nodes=1", .communication = "f"}).message, "takes the place of --span-speed");
  EXPECT_EQ(error_of({.span_speed = "throughputs"}).to_string(),
            "fidelity.span_speed: throughputs are those of a file; add --throughputs");
  EXPECT_EQ(error_of({.reference_span = "narrowest"}).message,
            "applies to gangs that are slower when they are apart; add --span-speed or "
            "--communication");
  EXPECT_FALSE(runtime_of({.communication = "no such file"}, jobs, cluster));
  EXPECT_FALSE(check_placement(Placement::skew, {.span_speed = "nodes=0.9"}));
  EXPECT_TRUE(check_placement(Placement::skew, {.communication = "f"}));
  EXPECT_TRUE(check_placement(Placement::consolidate, {}));
}

}  // namespace
}  // namespace gpusched::test
