// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/starburst_protocol.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "gpusched/sites/federation.hpp"
#include "src/calibration/profile/measured_csv.hpp"
#include "src/policies/burst/burst_router.hpp"
#include "src/policies/burst/starburst_queue.hpp"

namespace gpusched {
namespace {

constexpr SiteId home_site = 0, cloud_site = 1;
constexpr double us_per_h = 3.6e9;

// Gangs of single GPUs, whose users know how long they run.
JobTable table_of(const std::vector<StarburstJob>& jobs) {
  JobTableBuilder builder;
  for (const StarburstJob& job : jobs) {
    const Time work = from_seconds(job.runtime_h * 3600);
    const auto tasks = static_cast<std::uint32_t>(std::max<std::int64_t>(job.gpus, 1));
    builder.add({.submit = from_seconds(job.submit_h * 3600),
                 .work = work,
                 .estimate = work,
                 .shape = {.tasks = tasks, .gpu_milli_per_task = job.gpus > 0 ? whole_gpu : 0}});
  }
  return *std::move(builder).build();  // its ids are its rows
}

Cluster cluster_of(std::int64_t nodes, std::int64_t gpus_per_node) {
  return {.nodes = std::vector<Node>(static_cast<std::size_t>(nodes),
                                     Node{.gpus = static_cast<std::uint32_t>(gpus_per_node)})};
}

// A site and a cloud, which nothing keeps apart.
SiteWorld world_of(const StarburstOptions& options) {
  const SiteLink link{.bytes_per_s = bytes_per_s_per_mbps};
  return {
      .sites = {{.name = "cluster"}, {.name = "cloud", .usd_per_gpu_h = options.usd_per_gpu_h, .is_unlimited = true}},
      .links = {{}, link, link, {}}};
}

StarburstResult result_of(const Federation& federation, const JobTable& jobs, const StarburstOptions& options) {
  StarburstResult result;
  SiteSum wait_us = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Engine& engine = federation.engine(federation.site_of(job));
    wait_us += (engine.first_start(job) - jobs.submit(job)).us;
    if (federation.site_of(job) == home_site) continue;
    ++result.cloud_jobs;
    const auto held = static_cast<double>(engine.gpu_time(job).held());  // microseconds of thousandths of a GPU
    result.cost_usd += options.usd_per_gpu_h * held / (static_cast<double>(whole_gpu) * us_per_h);
  }
  result.mean_wait_h = static_cast<double>(wait_us) / us_per_h / static_cast<double>(jobs.size());
  return result;
}

}  // namespace

Result<std::vector<StarburstJob>> read_starburst_jobs(const std::string& path) {
  constexpr std::array<MeasuredColumn, 3> columns{{{"submit_h"}, {"runtime_h"}, {"gpus"}}};
  constexpr std::int64_t most_gpus = 1'000'000;
  std::vector<StarburstJob> jobs;
  const auto read = for_each_measured_cells(path, columns, [&](MeasuredCells& cells) {
    jobs.push_back({cells.number(0, 0), cells.positive(1), cells.count(2, 0, most_gpus)});
  });
  if (!read) return Unexpected{read.error()};
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const StarburstJob& a, const StarburstJob& b) { return a.submit_h < b.submit_h; });
  return jobs;
}

std::vector<StarburstPolicy> starburst_policies(const std::vector<StarburstJob>& jobs) {
  double sum = 0;
  for (const StarburstJob& job : jobs) sum += job.runtime_h;
  const double quarter = sum / static_cast<double>(std::max<std::size_t>(jobs.size(), 1)) / 4;
  return {{"no-wait", {BurstWait::no_wait, 0}},
          {"constant", {BurstWait::constant, quarter}},
          {"linear_cost 0.07805625 loop", {BurstWait::linear_cost, 0.07805625}, true},
          {"linear_cost 0.25 loop", {BurstWait::linear_cost, 0.25}, true},
          {"linear_capacity 0.25 loop", {BurstWait::linear_capacity, 0.25}, true},
          {"linear_runtime 0.25", {BurstWait::linear_runtime, 0.25}},
          {"sjf linear_cost 0.25 loop", {BurstWait::linear_cost, 0.25}, true, true}};
}

StarburstResult run_starburst(const std::vector<StarburstJob>& jobs, const StarburstPolicy& policy,
                              const StarburstOptions& options) {
  if (jobs.empty()) return {};
  const JobTable table = table_of(jobs);
  const Cluster cluster = cluster_of(options.nodes, options.gpus_per_node), cloud = cloud_for(table);
  const SiteWorld world = world_of(options);
  const StarburstQueue queue{.loop = policy.loop, .shortest_first = policy.shortest_first};
  const std::vector<SiteSetup> sites{{.cluster = &cluster, .policy = AnyPolicy(queue)},
                                     {.cluster = &cloud, .policy = AnyPolicy(StarburstQueue{.loop = true})}};
  const BurstRouter router{.policy = policy.waiting, .cloud = cloud_site, .waits_anywhere = true};
  Federation federation(table, world, sites, AnyRouter(router));
  federation.run([](SiteId, const OracleView&, std::span<const Event>) {});
  return result_of(federation, table, options);
}

}  // namespace gpusched
