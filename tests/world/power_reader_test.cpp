// SPDX-License-Identifier: Apache-2.0
// What a file of power says becomes a model; ready models draw the watts of their sources; wrong files are one line.
#include "src/world/power_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/world/added_nodes.hpp"
#include "src/world/cluster_reader.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

Cluster two_types() {
  Cluster cluster = Cluster::homogeneous(4, 2);
  cluster.gpu_types = {"V100", "T4"};
  for (std::uint32_t i = 0; i < 4; ++i) {
    cluster.nodes[i].gpu_type = i / 2;
    cluster.nodes[i].rack = i / 2;
    cluster.nodes[i].name = "n" + std::to_string(i);
    cluster.nodes[i].cpu_milli = 32'000;
  }
  return cluster;
}

class PowerReader : public testing::Test {
 protected:
  Result<PowerOfRun> read(const std::string& text, const PowerModel& measured = {}) const {
    return power_from_json(text, folder_.path() + "/p.json", cluster_, jobs_, measured);
  }
  // Without the folder.
  std::string error_of(const std::string& text) const {
    const auto power = read(text);
    if (power) return "none";
    std::string error = power.error().to_string();
    if (const auto at = error.find(folder_.path() + "/"); at == 0) error.erase(0, folder_.path().size() + 1);
    return error;
  }
  // Inside {"gpus": {"any": {}} ...}.
  std::string error_with(const std::string& members) const {
    return error_of(R"({"gpus": {"any": {"idle_w": 50, "full_w": 250}}, )" + members + "}");
  }

  test::TempFolder folder_;
  Cluster cluster_ = two_types();
  JobTable jobs_ = test::table_of({{.submit = 7200, .work = 10, .family = "bert"}, {.submit = 7200, .work = 10}});
};

TEST_F(PowerReader, EveryKeyReachesTheModel) {
  folder_.write("carbon.csv", "hour,carbon_intensity\n0,100\n1,300\n");
  folder_.write("price.csv", "time_s,usd_per_mwh\n0,50\n3600,-10\n");
  const auto power = read(R"({
    "gpus": {"any": {"idle_w": 20, "full_w": 80}, "V100": {"idle_w": 30, "full_w": 300, "load": "sqrt",
             "limits": [{"limit_w": 150, "draw": 0.5, "speed": 0.75}, {"limit_w": 300}]}},
    "families": {"bert": {"any": {"full_w": 70}, "V100": {"full_w": 280, "busy_share": 0.9}}},
    "nodes": {"base_w": 150, "cpus": 2, "cpu": {"idle_w": 20, "full_w": 205},
              "of": {"T4": {"base_w": 200, "sleep": {"after_s": 600, "asleep_w": 10, "wake_s": 120, "wake_j": 30000}}}},
    "losses": {"gain": 0.25, "fixed_w": 100, "fixed_w_per_node": 5},
    "carbon": "carbon.csv", "usd_per_mwh": {"file": "price.csv", "begins": "with_jobs", "from_h": 1},
    "places": [{"carbon": 10, "racks": [1]}],
    "rent": [{"usd_per_gpu_h": 1}, {"usd_per_gpu_h": {"T4": 0.5}, "paid": "always", "nodes": ["n3", 2]}],
    "caps": [{"w": 5000}, {"w": 3000, "racks": [0]}], "cap_rule": "priority", "cap_latency_s": 2, "cap_hysteresis": 0})");
  ASSERT_TRUE(power) << power.error().to_string();
  const PowerModel& model = power->model;
  EXPECT_TRUE(power->is_of_nodes());
  EXPECT_EQ(model.gpus[0].load.idle_w, 30);
  EXPECT_EQ(model.gpus[0].load.exponent, 0.5);
  EXPECT_EQ(model.gpus[0].limits[0].speed, 750'000u);
  EXPECT_EQ(model.gpus[1].load.full_w, 80);
  EXPECT_TRUE(model.gpus[1].limits.empty());
  const std::uint32_t bert = jobs_.families().find("bert");
  EXPECT_EQ(model.full_w(bert, 0), 280);
  EXPECT_EQ(model.busy_share(bert, 0), 0.9);
  EXPECT_EQ(model.full_w(bert, 1), 70);
  const NodePower &of_v100 = model.kinds[model.kind_of[0]], &of_t4 = model.kinds[model.kind_of[2]];
  EXPECT_EQ(of_v100.base_w, 150);
  EXPECT_EQ(of_v100.cpus, 2u);
  EXPECT_EQ(of_v100.sleep.after, Time::max());
  EXPECT_EQ(of_t4.base_w, 200);
  EXPECT_EQ(of_t4.cpu.full_w, 205);
  EXPECT_EQ(of_t4.sleep.wake, whole_seconds(120));
  EXPECT_EQ(model.losses.gain, 0.25);
  EXPECT_EQ(model.losses.fixed_w, 120);
  EXPECT_EQ(model.places[1].fixed_w, 10);  // of its two nodes
  EXPECT_EQ(model.places[0].carbon_g_per_kwh.at(whole_seconds(3600)), 300);
  EXPECT_EQ(model.places[0].usd_per_mwh.at(whole_seconds(7199)), 50);
  EXPECT_EQ(model.places[0].usd_per_mwh.at(whole_seconds(7200)), -10);
  EXPECT_EQ(model.places[1].carbon_g_per_kwh.at(Time{}), 10);
  EXPECT_EQ(model.place_of, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  EXPECT_EQ(model.rents[0].usd_per_gpu_h, 1);
  EXPECT_FALSE(model.rents[0].when_idle);
  EXPECT_EQ(model.rents[3].usd_per_gpu_h, 0.5);
  EXPECT_TRUE(model.rents[2].when_idle);
  EXPECT_TRUE(model.caps[0].nodes.empty());
  EXPECT_EQ(model.caps[1].nodes, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(model.rule, CapRule::priority);
  EXPECT_EQ(model.cap_latency, whole_seconds(2));
  EXPECT_EQ(model.hysteresis, 0);
  EXPECT_EQ(power->notes,
            std::vector<std::string>{folder_.path() +
                                     "/carbon.csv ends before the first job comes, so that its last value counts "
                                     "throughout; {\"begins\": \"with_jobs\"} moves it to them"});
  EXPECT_EQ(files_of_power(folder_.write("p.json", R"({"carbon": "carbon.csv", "caps": [{"w": {"file": "x.csv"}}]})")),
            (std::vector<std::string>{folder_.path() + "/carbon.csv", folder_.path() + "/p.json",
                                      folder_.path() + "/x.csv"}));
}

TEST_F(PowerReader, RacksAreNamedAsTheClusterFileNamesThem) {
  cluster_ = *cluster_from_json(R"({"nodes": [{"count": 2, "gpus": 2, "rack": "1"}, {"gpus": 2},
                                              {"count": 2, "gpus": 2, "rack": "row b"}]})",
                                "lab.json");
  EXPECT_EQ(cluster_.rack_names, (std::vector<std::string>{"1", "", "row b"}));
  cluster_ = *add_nodes(cluster_, "+1x2");
  EXPECT_EQ(cluster_.nodes.back().rack, 3u);
  const auto power = read(R"({"gpus": {"any": {"idle_w": 50, "full_w": 250}}, "caps": [
    {"w": 9000, "racks": ["1"]}, {"w": 9000, "racks": [1]}, {"w": 9000, "racks": ["row b", 3]}]})");
  ASSERT_TRUE(power) << power.error().to_string();
  ASSERT_EQ(power->model.caps.size(), 3u);
  EXPECT_EQ(power->model.caps[0].nodes, (std::vector<std::uint32_t>{0, 1})) << "a string is a name";
  EXPECT_EQ(power->model.caps[1].nodes, (std::vector<std::uint32_t>{2})) << "a number is a number";
  EXPECT_EQ(power->model.caps[2].nodes, (std::vector<std::uint32_t>{3, 4, 5}));
}

TEST_F(PowerReader, MistakesAreOneLine) {
  EXPECT_EQ(error_of("[]"), "p.json: expected an object, not []");
  EXPECT_EQ(error_of("{}"), "p.json: /gpus: expected the draw of \"V100\", a GPU type of the cluster, or of \"any\"");
  EXPECT_EQ(error_of(R"({"gpus": {"V100": {"idle_w": 300, "full_w": 30}}})"),
            "p.json: /gpus/V100/full_w: expected a full_w no less than idle_w and touched_w, not 30");
  EXPECT_EQ(error_of(R"({"gpus": {"any": {"idle_w": -1}}})"),
            "p.json: /gpus/any/idle_w: expected a number from 0 to 1000000000, not -1");
  EXPECT_EQ(error_of(R"({"gpus": {"any": {"full_w": 3, "load": "cube"}}})"),
            "p.json: /gpus/any/load: expected one of constant|linear|sqrt|square|cubic, not \"cube\"");
  EXPECT_EQ(
      error_of(R"({"gpus": {"any": {"points": [[0, 50], [0.5, 40], [1, 90]]}}})"),
      "p.json: /gpus/any/points: expected pairs of a load from 0 to 1 and watts, ascending in load and not falling "
      "in watts, not [[0,50],[0.5,40],[1,90]]");
  EXPECT_EQ(error_of(R"({"gpus": {"any": {"full_w": 300, "limits": [{"limit_w": 150, "draw": 0.5, "speed": 0.9},
                                                                    {"limit_w": 200, "draw": 0.7, "speed": 0.8},
                                                                    {"limit_w": 300}]}}})"),
            "p.json: /gpus/any/limits/1: expected a higher limit_w than before, and no less draw and speed, not "
            "{\"limit_w\":200,\"draw\":0.7,\"speed\":0.8}");
  EXPECT_EQ(error_of(R"({"gpus": {"any": {"full_w": 300, "limits": [{"limit_w": 150, "draw": 0.5}]}}})"),
            "p.json: /gpus/any/limits: expected a last setting with draw and speed 1, not "
            "[{\"limit_w\":150,\"draw\":0.5}]");
  EXPECT_EQ(error_with(R"("caps": [{"w": 399}])"),
            "p.json: /caps/0/w: expected at least the 400.0 W that its nodes draw idle, not 399");
  EXPECT_EQ(error_with(R"("caps": [{"w": 400, "nodes": ["n9"]}])"),
            "p.json: /caps/0/nodes/0: expected the name or number of a node of the cluster, not \"n9\"");
  EXPECT_EQ(error_with(R"("caps": [{"w": 400, "racks": [2]}])"),
            "p.json: /caps/0/racks/0: expected the name or number of a rack of the cluster, not 2");
  EXPECT_EQ(error_with(R"("caps": [{"w": 400, "racks": ["1"]}])"),
            "p.json: /caps/0/racks/0: expected the name or number of a rack of the cluster, not \"1\"");
  EXPECT_EQ(error_with(R"("caps": [{}])"), "p.json: /caps/0/w: is missing");
  EXPECT_EQ(error_with(R"("cap_rule": "fair")"),
            "p.json: /cap_rule: expected one of admit|uniform|priority|efficiency, not \"fair\"");
  EXPECT_EQ(error_with(R"("pue": 0.9)"), "p.json: /pue: expected a number from 1 to 10, not 0.9");
  EXPECT_EQ(error_with(R"("pue": 1.2, "losses": {})"), "p.json: /pue: expected none beside losses");
  EXPECT_EQ(error_with(R"("nodes": {"sleep": {"after_s": 5, "asleep_w": 101}})"),
            "p.json: /nodes/sleep/asleep_w: expected no more than the 100.0 W that such a node draws idle, not 101.0");
  EXPECT_EQ(error_with(R"("nodes": {"sleep": {"after_s": 5, "wake_j": 10}})"),
            "p.json: /nodes/sleep/wake_j: expected a wake_s above 0 with it, not 10");
  EXPECT_EQ(error_with(R"("carbom": 5)"), "p.json: /carbom: unknown key (did you mean 'carbon'?)");
  EXPECT_EQ(error_with(R"("carbon": -5)"), "p.json: /carbon: expected a number from 0 to 1000000, not -5");
  EXPECT_EQ(error_with(R"("families": {"bert": {"V100": {"full_w": 20}}})"),
            "p.json: /families/bert/V100/full_w: expected at least the 50.0 W of an idle GPU, not 20");
}

TEST_F(PowerReader, MistakesOfSignalsAreOneLineOfTheirFile) {
  folder_.write("order.csv", "time_s,cap_w\n0,500\n100,600\n50,700\n");
  EXPECT_EQ(error_with(R"("caps": [{"w": "order.csv"}])").substr(0, 18), "order.csv:4: time_");
  folder_.write("low.csv", "time_s,cap_w\n0,100\n100,300\n");
  EXPECT_EQ(error_with(R"("caps": [{"w": "low.csv"}])"),
            "p.json: /caps/0/w: expected at some time at least the 400.0 W that its nodes draw idle, not \"low.csv\"");
  folder_.write("falls.csv", "time_s,cap_w\n0,500\n100,300\n");
  EXPECT_EQ(error_with(R"("caps": [{"w": "falls.csv"}])"), "none") << "the run says how far it was exceeded";
  EXPECT_NE(error_with(R"("caps": [{"w": {"file": "falls.csv", "unit": "g/kWh"}}])").find("unit"), std::string::npos);
  folder_.write("negative.csv", "time_s,carbon_intensity\n0,-5\n");
  EXPECT_EQ(error_with(R"("carbon": "negative.csv")"),
            "negative.csv:2: carbon_intensity: expected a number of 0 or more, not '-5'");
  folder_.write("huge.csv", "time_s,carbon_intensity\n0,2e6\n");
  EXPECT_EQ(error_with(R"("carbon": "huge.csv")"),
            "huge.csv: carbon_intensity: expected values from 0.0 to 1000000.0, not 2000000.0");
  EXPECT_EQ(error_with(R"("carbon": {"file": "low.csv", "from_h": 3})"),
            "p.json: /carbon/from_h: expected \"begins\": \"with_jobs\" beside it, not 3");
  EXPECT_NE(error_with(R"("carbon": "none.csv")").find("none.csv"), std::string::npos);
}

TEST_F(PowerReader, NamesThatNobodyHasAreNoted) {
  const auto power =
      read(R"({"gpus": {"any": {"full_w": 9}, "V10": {"full_w": 9}}, "families": {"bret": {"T4": {}}}})");
  ASSERT_TRUE(power) << power.error().to_string();
  const std::string file = folder_.path() + "/p.json: ";
  EXPECT_EQ(power->notes, (std::vector<std::string>{file + "/gpus: no node has 'V10' (did you mean 'V100'?)",
                                                    file + "/families: no job has 'bret' (did you mean 'bert'?)"}));
  EXPECT_EQ(read_power("opnb", cluster_, jobs_).error().to_string().substr(0, 6), "opnb: ");
  EXPECT_NE(read_power("opnb", cluster_, jobs_).error().to_string().find("openb, frontier"), std::string::npos);
}

// GPUs of which the file says nothing draw what was measured; what it says of a type's draw is of all families.
TEST_F(PowerReader, MeasuredGpusStayUnlessTheFileSaysOtherwise) {
  PowerModel measured;
  measured.gpus = {{.load = {.idle_w = 53, .full_w = 300}, .limits = {}},
                   {.load = {.idle_w = 10, .full_w = 70}, .limits = {}}};
  measured.families.assign(jobs_.families().size() * 2, {.full_w = 200, .busy_share = 0.5});
  const auto power = read(R"({"gpus": {"T4": {"idle_w": 12, "full_w": 66}}, "nodes": {"base_w": 100}})", measured);
  ASSERT_TRUE(power) << power.error().to_string();
  EXPECT_EQ(power->model.gpus[0].load.idle_w, 53);
  EXPECT_EQ(power->model.full_w(0, 0), 200);
  EXPECT_EQ(power->model.gpus[1].load.idle_w, 12);
  EXPECT_EQ(power->model.full_w(0, 1), 66);
  EXPECT_EQ(power->model.kinds[0].base_w, 100);
  const PowerModel gpus = power_of_gpus(measured, cluster_);
  EXPECT_FALSE(gpus.is_empty());
  EXPECT_EQ(gpus.kind_of.size(), 4u);
  EXPECT_TRUE(power_of_gpus({}, cluster_).is_empty());
}

// The largest limit's mean draw is that of a busy GPU; slower settings that draw more are left out.
TEST_F(PowerReader, TablesOfZeusAreReadAsTheyAre) {
  folder_.write("z.csv",
                "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
                "cifar,net,64,sgd,100,20,90\ncifar,net,64,sgd,150,12,140\ncifar,net,64,sgd,200,12.5,145\n"
                "cifar,net,64,sgd,250,10,230\nimagenet,net,64,sgd,250,10,200\n");
  const auto power = read(R"({"gpus": {"any": {"idle_w": 30, "limits": "z.csv"},
      "T4": {"idle_w": 30, "full_w": 240, "limits": {"file": "z.csv", "dataset": "imagenet"}}}})");
  ASSERT_TRUE(power) << power.error().to_string();
  const GpuPower& gpu = power->model.gpus[0];
  EXPECT_EQ(gpu.load.full_w, 230);
  ASSERT_EQ(gpu.limits.size(), 3u);
  EXPECT_EQ(gpu.limits[0].limit_w, 100);
  EXPECT_DOUBLE_EQ(gpu.limits[0].draw, 60.0 / 200);
  EXPECT_EQ(gpu.limits[0].speed, 500'000u);
  EXPECT_EQ(gpu.limits[1].limit_w, 200);
  EXPECT_EQ(gpu.limits[2].speed, reference_rate);
  EXPECT_EQ(power->model.gpus[1].load.full_w, 240);
  ASSERT_EQ(power->notes.size(), 1u);
  EXPECT_EQ(power->notes[0], folder_.path() +
                                 "/z.csv: power limits of 150 W are left out: a higher one is slower or "
                                 "draws less");
  EXPECT_NE(error_of(R"({"gpus": {"any": {"limits": {"file": "z.csv", "dataset": "c"}}}})").find("no rows have"),
            std::string::npos);
  EXPECT_EQ(
      error_of(R"({"gpus": {"any": {"idle_w": 300, "limits": "z.csv"}}})"),
      "p.json: /gpus/any/limits: expected a full_w beside it, or a table whose largest draw is above idle_w, 300.0");
}

// ---- ready models ----

double kw(const Engine& engine, double seconds) {
  return static_cast<double>(engine.power().meter().nj) / 1e12 / seconds;
}

// One job of `gpus` in tasks of a whole node each, for 10 s.
double drawn_kw(const Cluster& cluster, const PowerModel& model, const Shape& shape, double& peak_kw) {
  const JobTable jobs = test::table_of({{.work = 10, .shape = shape}});
  Engine engine(jobs, cluster, {}, {.power = &model});
  Fifo policy;
  EXPECT_TRUE(simulate(engine, policy));
  peak_kw = static_cast<double>(engine.power().with_losses_mw(engine.power().peak_mw())) / 1e6;
  return kw(engine, 10);
}

// RAPS: 626.26 W of an idle node, 7.3065 and 28.2279 MW of the idle and the busy machine.
TEST(ReadyPowers, FrontierIsThatOfItsDigitalTwin) {
  const Cluster cluster = Cluster::homogeneous(16 * 8 * 74, 4);
  const JobTable jobs = test::table_of({{.work = 10}});
  const auto power = read_power("frontier", cluster, jobs);
  ASSERT_TRUE(power) << power.error().to_string();
  const Engine idle(jobs, cluster, {}, {.power = &power->model});
  EXPECT_EQ(idle.power().draw_mw(NodeId{0}), 626'260);
  EXPECT_NEAR(static_cast<double>(idle.power().with_losses_mw(idle.power().draw_mw())) / 1e9, 7.3065, 5e-5);
  double peak_kw = 0;
  const Shape all{.tasks = 9472, .gpu_milli_per_task = 4 * whole_gpu};
  EXPECT_NEAR(drawn_kw(cluster, power->model, all, peak_kw) / 1e3, 28.2279, 5e-5);
  EXPECT_NEAR(peak_kw / 1e3, 28.2279, 5e-5);
}

// PWR: GPUs 174,435 W idle and 1,028,790 busy; with processors 227,175 and 1,590,110.
TEST(ReadyPowers, OpenbIsThatOfPwr) {
  const std::string nodes = test::real_trace("alibaba/openb2023/openb_node_list_gpu_node.csv");
  GPUSCHED_NEEDS_TRACE(nodes, "openb_node_list_gpu_node.csv");
  const auto cluster = parse_cluster(nodes);
  ASSERT_TRUE(cluster) << cluster.error().to_string();
  ASSERT_EQ(cluster->nodes.size(), 1213u);
  const JobTable jobs = test::table_of({{.work = 10}});
  const auto power = read_power("openb", *cluster, jobs);
  ASSERT_TRUE(power) << power.error().to_string();
  EXPECT_EQ(power->notes, std::vector<std::string>{});
  const PowerModel& model = power->model;
  double gpus_idle_w = 0, gpus_full_w = 0, cpus_full_w = 0;
  for (std::uint32_t i = 0; i < cluster->nodes.size(); ++i) {
    const Node& node = cluster->nodes[i];
    const NodePower& kind = model.kinds[model.kind_of[i]];
    gpus_idle_w += node.gpus * model.gpus[node.gpu_type].load.idle_w;
    gpus_full_w += node.gpus * model.gpus[node.gpu_type].load.watts(0.001);
    cpus_full_w += detail::DrawTable::cpus_w(kind, 1, static_cast<double>(node.cpu_milli) / 1000);
  }
  EXPECT_DOUBLE_EQ(gpus_idle_w, 174'435);
  EXPECT_DOUBLE_EQ(gpus_full_w, 1'028'790);
  EXPECT_DOUBLE_EQ(gpus_full_w + cpus_full_w, 1'590'110);
  const Engine idle(jobs, *cluster, {}, {.power = &model});
  EXPECT_EQ(idle.power().draw_mw(), 227'175'000);
}

TEST(ReadyPowers, AreNamedOnceAndAreStrictJson) {
  std::map<std::string, int> names;
  for (const ReadyPower& ready : ready_powers()) {
    ++names[std::string(ready.name)];
    EXPECT_TRUE(parse_json_strictly(ready.json, std::string(ready.name)));
    EXPECT_FALSE(ready.meaning.empty());
    EXPECT_TRUE(files_of_power(std::string(ready.name)).empty());
  }
  for (const auto& [name, count] : names) EXPECT_EQ(count, 1) << name;
}

}  // namespace
}  // namespace gpusched
