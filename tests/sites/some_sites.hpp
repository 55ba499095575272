// SPDX-License-Identifier: Apache-2.0
/// Sites, links and jobs for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/sites/federation.hpp"
#include "gpusched/sites/routers.hpp"
#include "src/policies/orders/fifo.hpp"

namespace gpusched::test {

/// A cluster of one node.
inline Cluster one_node(std::uint32_t gpus) { return {.nodes = {{.gpus = gpus}}}; }

/// A link of so many Mbps.
inline SiteLink link_of(double mbps, double round_trip_s = 0, double usd_per_gb = 0) {
  return {.bytes_per_s = mbps * bytes_per_s_per_mbps,
          .round_trip = from_seconds(round_trip_s),
          .micro_usd_per_gb = Signal::to_micro(usd_per_gb)};
}

/// That many sites with links between all of them.
inline SiteWorld linked_sites(SiteId count, const SiteLink& link) {
  SiteWorld world;
  for (SiteId site = 0; site < count; ++site) world.sites.push_back({.name = "s" + std::to_string(site)});
  for (SiteId at = 0; at < count * count; ++at) {
    world.links.push_back(at / count == at % count ? std::nullopt : std::optional(link));
  }
  return world;
}

/// A gang of single GPUs, in seconds.
inline JobRecord gang(std::int64_t submit, std::int64_t work, std::uint32_t gpus) {
  return {.submit = whole_seconds(submit),
          .work = whole_seconds(work),
          .estimate = whole_seconds(work),
          .shape = {.tasks = gpus, .gpu_milli_per_task = whole_gpu}};
}

inline JobTable table_of_gangs(const std::vector<JobRecord>& jobs) {
  JobTableBuilder builder;
  for (const JobRecord& job : jobs) builder.add(job);
  auto table = std::move(builder).build();
  EXPECT_TRUE(table);
  return *std::move(table);
}

/// Sends every job to one site.
struct AllTo {
  SiteId site = 0;
  [[nodiscard]] static std::string_view name() { return "all-to"; }
  [[nodiscard]] Route route(const RouterView&, JobId) const { return {site}; }
};

inline void nobody_watches(SiteId, const OracleView&, std::span<const Event>) {}

/// Sites with that policy, one a cluster.
inline std::vector<SiteSetup> setups(const std::vector<Cluster>& clusters, const AnyPolicy& policy) {
  std::vector<SiteSetup> sites;
  for (const Cluster& cluster : clusters) sites.push_back({.cluster = &cluster, .policy = policy});
  return sites;
}

}  // namespace gpusched::test
