// SPDX-License-Identifier: Apache-2.0
// Files of sites, right and wrong, and the routers of a command line.
#include "src/world/sites_reader.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "src/policies/burst/router_table.hpp"
#include "tests/sites/some_sites.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

constexpr const char* two_sites = R"({"sites": [{"name": "eu", "cluster": "2x8"}, {"name": "us", "cluster": "8"}])";

JobTable two_jobs() {
  JobRecord a = gang(0, 10, 1), b = gang(1, 10, 1);
  a.vc = "lab";
  b.vc = "shop";
  return table_of_gangs({a, b});
}

Result<SitesOfRun> read(const std::string& text, const std::string& file = "sites.json") {
  const JobTable jobs = two_jobs();
  return sites_from_json(text, file, "synthetic:none", jobs, 1);
}

std::string error_of(const std::string& text) {
  const auto found = read(text);
  return found ? "no error" : found.error().to_string();
}

TEST(SitesReader, ReadsEveryKey) {
  const TempFolder folder;
  folder.write("de.csv", "time_s,gco2_per_kwh\n0,100\n3600,200\n");
  folder.write("where.csv", "job_id,data_gb,output_gb,data_set,site,checkpoint_gb\n0,1.5,0.25,images,,3\n1,,,,us,\n");
  const auto found = read(R"({"sites": [
      {"name": "eu", "cluster": "2x8", "carbon": "de.csv", "usd_per_mwh": -5, "usd_per_gpu_h": 1.5, "uplink_mbps": 800,
       "power": {"gpus": {"GPU": {"idle_w": 10, "full_w": 100}}}},
      {"name": "us", "cluster": {"nodes": [{"gpus": 4}]}, "downlink_mbps": 80},
      {"name": "cloud", "unlimited": true}],
    "links": [{"between": ["eu", "us"], "mbps": 160, "rtt_ms": 70, "usd_per_gb": 0.02},
              {"from": "us", "to": "cloud", "mbps": 80}, {"from": "eu", "to": "cloud", "mbps": 80}],
    "home": {"by": "vc", "of": {"lab": "us"}, "else": "eu"},
    "data_sets": [{"name": "images", "gb": 100, "at": ["eu", "us"]}], "jobs": "where.csv",
    "network_kwh_per_gb": 0.01, "migration": {"every_s": 600, "most_moves": 3, "running": true}})",
                          folder.path() + "/sites.json");
  ASSERT_TRUE(found) << found.error().to_string();
  const SiteWorld& world = found->world;
  ASSERT_EQ(world.sites.size(), 3u);
  EXPECT_DOUBLE_EQ(world.sites[0].carbon_g_per_kwh.at(whole_seconds(3600)), 200);
  EXPECT_DOUBLE_EQ(world.sites[0].usd_per_mwh.at(Time{}), -5);
  EXPECT_DOUBLE_EQ(world.sites[0].uplink, 1e8);
  EXPECT_DOUBLE_EQ(world.sites[1].downlink, 1e7);
  EXPECT_TRUE(world.sites[2].is_unlimited);
  EXPECT_EQ(found->clusters[0].nodes.size(), 2u);
  EXPECT_EQ(found->clusters[2].nodes.front().gpus, 3u);
  EXPECT_FALSE(found->powers[0].is_empty());
  EXPECT_TRUE(found->powers[0].knows_carbon());
  EXPECT_TRUE(found->powers[1].is_empty());
  ASSERT_NE(world.link(1, 0), nullptr);
  EXPECT_DOUBLE_EQ(world.link(1, 0)->bytes_per_s, 2e7);
  EXPECT_EQ(world.link(1, 0)->round_trip.us, 70'000);
  EXPECT_EQ(world.link(0, 1)->micro_usd_per_gb, 20'000);
  EXPECT_EQ(world.link(2, 0), nullptr);
  EXPECT_EQ(world.place(JobId{0}).home, 1u);  // by its vc: the csv names no site
  EXPECT_EQ(world.place(JobId{0}).bytes, 1'500'000'000);
  EXPECT_EQ(world.place(JobId{0}).output_bytes, 250'000'000);
  EXPECT_EQ(world.place(JobId{0}).data_set, 0u);
  EXPECT_EQ(world.place(JobId{1}).home, 1u);
  EXPECT_EQ(world.place(JobId{1}).data_set, no_index);
  EXPECT_EQ(world.network_nj_per_byte, 36'000);
  EXPECT_EQ(found->options.every, whole_seconds(600));
  EXPECT_EQ(found->options.most_moves, 3u);
  EXPECT_TRUE(found->options.moves_running);
  EXPECT_EQ(found->world.jobs[0].checkpoint_bytes, 3'000'000'000);
}

// A sweep runs again what one of them changes.
TEST(SitesReader, FilesAreAllThatAreRead) {
  const TempFolder folder;
  folder.write("de.csv", "time_s,gco2_per_kwh\n0,100\n3600,200\n");
  folder.write("fr.csv", "time_s,gco2_per_kwh\n0,50\n3600,60\n");
  folder.write("power.json", R"({"gpus": {"GPU": {"idle_w": 10, "full_w": 100}}, "carbon": "fr.csv"})");
  folder.write("down.csv", "time_s,node,event\n5,0,down\n9,0,up\n");
  folder.write("failures.json", R"({"trace": "down.csv"})");
  folder.write("where.csv", "job_id,site\n0,us\n");
  folder.write("eu.json", R"({"nodes": [{"gpus": 4}]})");
  const std::string sites = R"({"sites": [
      {"name": "eu", "cluster": "eu.json", "carbon": {"file": "de.csv"}, "failures": "failures.json"},
      {"name": "us", "cluster": "8", "power": "power.json"}], "jobs": "where.csv"})";
  folder.write("sites.json", sites);
  const std::string path = folder.path() + "/sites.json";
  const auto found = read(sites, path);
  ASSERT_TRUE(found) << found.error().to_string();
  const std::vector<std::string> files = files_of_sites(path);
  EXPECT_EQ(std::set(files.begin(), files.end()), std::set(found->files.begin(), found->files.end()));
  EXPECT_EQ(files.front(), path);
  EXPECT_EQ(files.size(), 8u);
}

TEST(SitesReader, TellsWhatIsWrongInOneLine) {
  const std::string sites = two_sites;
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << error_of(text);
    EXPECT_EQ(error_of(text).find('\n'), std::string::npos);
  };
  has("{}", "sites");
  has(R"({"sites": []})", "at least one site");
  has(R"({"sites": [{"name": "a", "cluster": "8"}, {"name": "a", "cluster": "8"}]})", "another name");
  has(R"({"sites": [{"name": "a"}]})", "either cluster or");
  has(R"({"sites": [{"name": "a", "cluster": "8", "unlimited": true}]})", "either cluster or");
  has(R"({"sites": [{"name": "a", "cluster": "nowhere"}]})", "/sites/0/cluster");
  has(R"({"sites": [{"name": "a", "cluster": "8", "colour": 1}]})", "colour");
  has(R"({"sites": [{"name": "a", "unlimited": true, "power": "openb"}]})", "unlimited");
  has(sites + R"(, "links": [{"from": "eu", "to": "usa", "mbps": 10}]})", "did you mean 'us'");
  has(sites + R"(, "links": [{"from": "eu", "to": "us", "mbps": 10, "usd_per_gb": -0.1}]})", "/links/0/usd_per_gb");
  has(sites + R"(, "links": [{"from": "eu", "to": "us", "mbps": 0}]})", "/links/0/mbps");
  has(sites + R"(, "links": [{"from": "eu", "to": "eu", "mbps": 1}]})", "between two sites");
  has(sites + R"(, "links": [{"between": ["eu", "us"], "mbps": 1}, {"from": "us", "to": "eu", "mbps": 1}]})",
      "not a second");
  has(sites + R"(, "data_sets": [{"name": "d", "gb": 1, "at": ["eu"]}]})",
      "site 'us' has neither data set 'd' nor a link from a site that has it");
  has(sites + R"(, "data_sets": [{"name": "d", "gb": 1, "at": []}]})", "at least one site");
  has(sites + R"(, "home": {"by": "colour"}})", "/home/by");
  has(sites + R"(, "home": {"by": "vc", "of": {"lab": "mars"}}})", "/home/of/lab");
  has(sites + R"(, "migration": {"most_moves": 2}})", "every_s");
  const TempFolder folder;
  folder.write("where.csv", "job_id,site\n0,eu\n1,mars\n");
  const auto found = read(sites + R"(, "jobs": "where.csv"})", folder.path() + "/sites.json");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().to_string().find("where.csv:3"), std::string::npos) << found.error().to_string();
}

TEST(SitesReader, RoutersAreMadeByName) {
  const auto found = read(std::string(two_sites) + "}");
  ASSERT_TRUE(found);
  const auto made = [&](const std::string& text) -> std::string {
    const auto specs = parse_routers(text);
    if (!specs) return specs.error().message;
    const auto router = make_router(specs->front(), {.world = &found->world});
    return router ? std::string(router->name()) : router.error().message;
  };
  for (const RouterInfo& row : router_table()) {
    EXPECT_FALSE(row.summary.empty() || row.source.empty()) << row.name;
    if (row.name == "burst" || row.name.starts_with("lowest")) continue;
    EXPECT_EQ(made(row.name), row.name);
  }
  EXPECT_EQ(made("burst{cloud=us,wait=linear_cost,factor=0.5}"), "burst");
  EXPECT_EQ(made("burst"), "router burst: no site is unlimited");
  EXPECT_EQ(made("lowest-carbon"), "router lowest-carbon: site 'eu' has no carbon");
  EXPECT_NE(made("locale").find("did you mean 'local'"), std::string::npos);
  EXPECT_NE(made("local{x=1}").find('x'), std::string::npos);
}

}  // namespace
}  // namespace gpusched::test
