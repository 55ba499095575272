// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/throughput_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

Cluster two_types() {
  Cluster cluster = Cluster::homogeneous(2, 4);
  cluster.gpu_types = {"v100", "k80"};
  cluster.nodes[1].gpu_type = 1;
  return cluster;
}

std::string error_of(const std::string& text) {
  const TempFolder folder;
  const std::string path = folder.write("t", text);
  const auto table = read_throughput_table(path);
  const std::string message = table ? "" : table.error().to_string();
  return message.starts_with(path) ? message.substr(path.size()) : message;
}

TEST(ThroughputTable, ReadsCsvWithGangsOfTheirOwn) {
  const TempFolder folder;
  const auto table = read_throughput_table(folder.write("t.csv",
                                                        "gpu_type,throughput,family,gpus\n"
                                                        "v100,30,\"resnet, batch 16\",0\r\n"
                                                        "k80,6,\"resnet, batch 16\",0\n"
                                                        "\n"
                                                        "v100, 40 ,\"resnet, batch 16\",4\n"
                                                        "k80,20,\"resnet, batch 16\",4\n"));
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_EQ(table->gpu_types, (std::vector<std::string>{"v100", "k80"}));
  EXPECT_EQ(table->row("resnet, batch 16", 1)->at("k80"), 6);
  EXPECT_EQ(table->row("resnet, batch 16", 4)->at("k80"), 20);
  EXPECT_EQ(table->row("bert", 1), nullptr);
}

TEST(ThroughputTable, ReadsTheJsonOfGavel) {
  const TempFolder folder;
  const std::string text =
      R"json({"k80": {"('LM (batch size 5)', 2)": {"null": 2, "('A3C', 2)": [1, 1]}},)json"
      R"json( "v100": {"('LM (batch size 5)', 2)": {"null": 8.5}}, "v100_unconsolidated": {}})json";
  const auto table = read_throughput_table(folder.write("t.json", text));
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_EQ(table->gpu_types, (std::vector<std::string>{"k80", "v100"}));
  EXPECT_EQ(table->row("LM (batch size 5)", 2)->at("v100"), 8.5);
  EXPECT_EQ(table->row("LM (batch size 5)", 1), nullptr);
}

TEST(ThroughputTable, ReadsWhatWasMeasuredApart) {
  const TempFolder folder;
  const auto table = read_throughput_table(folder.write("t.csv",
                                                        "family,gpu_type,throughput,gpus,span\n"
                                                        "lm,v100,10,4,\n"
                                                        "lm,v100,4,4,nodes\n"
                                                        "lm,v100,3,4,racks\n"
                                                        "lm,k80,2,4,node\n"));
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_EQ(table->row("lm", 4)->at("v100"), 10);
  EXPECT_EQ(table->apart.at({"lm", 4}).at("v100"), (std::array<double, span_count>{0, 0, 4, 3, 0}));
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 1, .gpus = 4, .family = "lm"}, {.submit = 0, .work = 1, .gpus = 2, .family = "lm"}});
  Cluster cluster = Cluster::homogeneous(4, 2);
  cluster.gpu_types = {"v100", "k80"};
  const auto speed = [&](const SpanModel& model, std::uint32_t job, std::uint32_t type, gpusched::Span span) {
    return model.factor(jobs.family(JobId{job}), jobs.shape(JobId{job}), span).on(type);
  };
  const auto model = span_model_of_throughputs(*table, SpanReference::node, jobs, cluster);
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(speed(*model, 0, 0, gpusched::Span::node), 1'000'000u);
  EXPECT_EQ(speed(*model, 0, 0, gpusched::Span::islands), 1'000'000u);
  EXPECT_EQ(speed(*model, 0, 0, gpusched::Span::nodes), 400'000u);
  EXPECT_EQ(speed(*model, 0, 0, gpusched::Span::racks), 300'000u);
  EXPECT_EQ(speed(*model, 0, 0, gpusched::Span::sites), 300'000u);  // as racks
  EXPECT_EQ(speed(*model, 0, 1, gpusched::Span::nodes), 1'000'000u);
  EXPECT_EQ(speed(*model, 1, 0, gpusched::Span::nodes), 1'000'000u);
  const auto narrowest = span_model_of_throughputs(*table, SpanReference::narrowest, jobs, cluster);
  EXPECT_EQ(speed(*narrowest, 0, 0, gpusched::Span::nodes), 1'000'000u);
  EXPECT_EQ(speed(*narrowest, 0, 0, gpusched::Span::racks), 750'000u);
  EXPECT_EQ(
      span_model_of_throughputs({.file = "t.csv", .gpu_types = {}, .rows = {}}, SpanReference::node, jobs, cluster)
          .error()
          .to_string(),
      "t.csv: has no throughputs of gangs that are apart: no column span of other than node");
}

TEST(ThroughputTable, UnconsolidatedJobsOfGavelSpanNodes) {
  const TempFolder folder;
  const auto table = read_throughput_table(folder.write(
      "t.json", R"json({"v100": {"('LM', 2)": {"null": 8}}, "v100_unconsolidated": {"('LM', 2)": {"null": 2}}})json"));
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_EQ(table->gpu_types, (std::vector<std::string>{"v100"}));
  EXPECT_EQ(table->row("LM", 2)->at("v100"), 8);
  EXPECT_EQ(table->apart.at({"LM", 2}).at("v100"), (std::array<double, span_count>{0, 0, 2, 0, 0}));
}

TEST(ThroughputTable, NamesThePlaceOfAnError) {
  EXPECT_EQ(error_of("family,gpu_type,throughput,span\na,b,1,rack\n"),
            ":2: span: expected node|islands|nodes|racks|sites");
  EXPECT_EQ(error_of("family,gpu_type\n"), ":1: throughput: the header lacks this column");
  EXPECT_EQ(error_of("family,gpu_type,throughput\na,b,-1\n"), ":2: throughput: expected a number of 0 or more");
  EXPECT_EQ(error_of("family,gpu_type,throughput,gpus\na,b,1,x\n"), ":2: gpus: expected a number of GPUs");
  EXPECT_EQ(error_of("family,gpu_type,throughput\na,,1\n"), ":2: gpu_type: expected a GPU type");
  EXPECT_EQ(error_of("family,gpu_type,throughput\n"), ": expected throughputs below a header");
  EXPECT_EQ(error_of(""), ": expected throughputs below a header");
  EXPECT_EQ(error_of(R"({"k80": 1})"), ": /k80: expected an object of jobs");
  EXPECT_EQ(error_of(R"({"k80": {"LM": {}}})"), ": /k80/LM: expected ('MODEL', GPUS)");
  EXPECT_EQ(error_of(R"json({"k80": {"('LM', 1)": {}}})json"),
            ": /k80/('LM', 1)/null: expected the throughput of the job alone");
  EXPECT_EQ(error_of("{}"), ": expected throughputs");
}

ThroughputTable small_table() {
  return {.file = "t.csv",
          .gpu_types = {"v100", "k80"},
          .rows = {{{"resnet", 0}, {{"v100", 10}, {"k80", 2}}},
                   {{"resnet", 2}, {{"v100", 10}, {"k80", 6}}},
                   {{"bert", 0}, {{"v100", 4}, {"k80", 0}}},
                   {{"gnn", 0}, {{"k80", 3}}}}};
}

std::string model_error(const std::vector<Row>& rows, const Cluster& cluster, const std::string& reference = "") {
  const auto model = runtime_model_from_throughputs(small_table(), reference, table_of(rows), cluster);
  return model ? "" : model.error().to_string();
}

TEST(ThroughputTable, GivesRatesRelativeToTheReference) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 1, .family = "resnet"},
                                  {.submit = 0, .work = 1, .gpus = 2, .family = "resnet"},
                                  {.submit = 0, .work = 1, .family = "resnet", .shape = {.gpu_milli_per_task = 500}},
                                  {.submit = 0, .work = 1, .gpus = 1, .gpu_spec = "v100", .family = "bert"}});
  const auto rates = [&](const RuntimeModel& model, std::uint32_t job) {
    const auto row = model.rates(jobs.family(JobId{job}), jobs.shape(JobId{job}));
    return std::vector<RatePpm>(row.begin(), row.end());
  };
  using Rates = std::vector<RatePpm>;
  const auto of_v100 = runtime_model_from_throughputs(small_table(), "", jobs, two_types());
  ASSERT_TRUE(of_v100) << of_v100.error().to_string();
  EXPECT_EQ(rates(of_v100->model, 0), (Rates{reference_rate, 200'000}));
  EXPECT_EQ(rates(of_v100->model, 1), (Rates{reference_rate, 600'000}));
  EXPECT_EQ(rates(of_v100->model, 2), (Rates{reference_rate, 200'000}));  // a share: as a job of one GPU
  EXPECT_EQ(rates(of_v100->model, 3)[0], reference_rate);
  const JobTable resnet = table_of({{.submit = 0, .work = 1, .gpus = 1, .family = "resnet"}});
  const auto of_k80 = runtime_model_from_throughputs(small_table(), "k80", resnet, two_types());
  ASSERT_TRUE(of_k80) << of_k80.error().to_string();
  EXPECT_EQ(rates(of_k80->model, 0), (Rates{5 * reference_rate, reference_rate}));
}

// Memory bandwidths of the data sheets: V100 900 GB/s, K80 240, T4 320.
TEST(ThroughputTable, DataSheetsFillGaps) {
  Cluster cluster = two_types();
  cluster.nodes.push_back(cluster.nodes.front());
  cluster.gpu_types.emplace_back("T4-16GB");
  cluster.nodes.back().gpu_type = 2;
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 1, .family = "resnet"},
                                  {.submit = 0, .work = 1, .gpus = 1, .family = "gnn"},
                                  {.submit = 0, .work = 1, .gpus = 4, .family = "mystery"}});
  const auto runtime = runtime_model_from_throughputs(small_table(), "", jobs, cluster, ThroughputFallback::datasheet);
  ASSERT_TRUE(runtime) << runtime.error().to_string();
  const auto rates = [&](std::uint32_t job) {
    const auto row = runtime->model.rates(jobs.family(JobId{job}), jobs.shape(JobId{job}));
    return std::vector<RatePpm>(row.begin(), row.end());
  };
  using Rates = std::vector<RatePpm>;
  EXPECT_EQ(rates(0), (Rates{reference_rate, 200'000, 355'556}));  // what is measured stays
  EXPECT_EQ(rates(1), (Rates{reference_rate, 266'667, 355'556}));  // measured on the K80 alone
  EXPECT_EQ(rates(2), (Rates{reference_rate, 266'667, 355'556}));
  EXPECT_EQ(runtime->notes, (std::vector<std::string>{
                                "t.csv lacks throughputs of 3 kinds of gangs (job family 'resnet' on 1 GPU): assumed "
                                "from memory bandwidths of data sheets"}));
  ASSERT_EQ(runtime->used.size(), 3u);
  EXPECT_EQ(runtime->used.front().path, "/peaks/memory_gbs");
  EXPECT_EQ(runtime->used.front().source, Source::datasheet);

  const JobTable bert = table_of({{.submit = 0, .work = 1, .family = "bert"}});
  const auto error_of = [&](const JobTable& table, const Cluster& machines) {
    const auto model =
        runtime_model_from_throughputs(small_table(), "", table, machines, ThroughputFallback::datasheet);
    return model ? "" : model.error().to_string();
  };
  // A throughput of 0 says that it cannot run there.
  EXPECT_EQ(
      error_of(bert, cluster),
      "t.csv: job family 'bert' on 1 GPU cannot run on GPU type k80 (a throughput of 0), which its jobs may use: name "
      "the GPU types that they may use in the trace");
  cluster.gpu_types[2] = "abacus";
  EXPECT_EQ(
      error_of(jobs, cluster),
      "t.csv: job family 'resnet' on 1 GPU: there is no data sheet of GPU type abacus among the shipped profiles");
}

TEST(ThroughputTable, TellsInOneLineWhatAJobLacks) {
  const Cluster cluster = two_types();
  EXPECT_EQ(model_error({{.submit = 0, .work = 1, .family = "mystery"}}, cluster),
            "t.csv: job family 'mystery' on 1 GPU has no throughput");
  EXPECT_EQ(
      model_error({{.submit = 0, .work = 1, .gpus = 3, .family = "bert"}}, cluster),
      "t.csv: job family 'bert' on 3 GPUs cannot run on GPU type k80 (a throughput of 0), which its jobs may use: name "
      "the GPU types that they may use in the trace");
  EXPECT_EQ(model_error({{.submit = 0, .work = 1, .family = "gnn"}}, cluster),
            "t.csv: job family 'gnn' on 1 GPU has no throughput on the reference, GPU type v100");
  EXPECT_EQ(model_error({{.submit = 0, .work = 1, .family = "resnet"}}, Cluster::pool(4)),
            "t.csv: job family 'resnet' on 1 GPU has no throughput on GPU type GPU, which it may use");
  // A job without GPUs needs none.
  EXPECT_EQ(model_error({{.submit = 0, .work = 1, .family = "cpu", .shape = {.cpu_milli_per_task = 1}}}, cluster), "");
}

}  // namespace
}  // namespace gpusched::test
