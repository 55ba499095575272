// SPDX-License-Identifier: Apache-2.0
// Random sites, links, data, pipelines and routers against a slow federation.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpusched/sites/site_accounts.hpp"
#include "src/policies/burst/burst_router.hpp"
#include "tests/sites/slow_sites.hpp"
#include "tests/sites/some_sites.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

struct World {
  SiteWorld world;
  std::vector<Cluster> clusters;
  std::vector<std::int64_t> gpus;
  JobTable jobs;
  SiteId cloud = 0;
};

constexpr std::int64_t mb = 1'000'000;

JobTable jobs_of_world(Rng& rng) {
  JobTableBuilder builder;
  std::int64_t submit = 0;
  const std::uint64_t count = 2 + rng.below(40);
  for (std::uint64_t i = 0; i < count; ++i) {
    JobRecord job =
        gang(submit, 1 + static_cast<std::int64_t>(rng.below(400)), 1 + static_cast<std::uint32_t>(rng.below(4)));
    const std::string id = std::to_string(i);
    std::vector<std::string> after;
    for (int k = 0; k < 2; ++k) {
      if (i > 0 && rng.below(6) == 0) after.push_back(std::to_string(rng.below(i)));
    }
    job.id = id;
    job.after = after;
    if (!after.empty() && rng.below(3) == 0) {
      job.after_delay = whole_seconds(static_cast<std::int64_t>(rng.below(90)));
    }
    job.estimate = whole_seconds(1 + static_cast<std::int64_t>(rng.below(500)));
    builder.add(job);
    submit += static_cast<std::int64_t>(rng.below(60));
  }
  auto table = std::move(builder).build();
  EXPECT_TRUE(table);
  return *std::move(table);
}

World drawn_world(Rng& rng) {
  World drawn;
  const SiteId sites = 2 + static_cast<SiteId>(rng.below(4));
  drawn.jobs = jobs_of_world(rng);
  drawn.world = linked_sites(sites, link_of(100));
  for (auto& link : drawn.world.links) {
    if (!link) continue;
    link = link_of(static_cast<double>(20 + rng.below(400)),
                   rng.below(3) == 0 ? 0 : 0.001 * static_cast<double>(rng.below(500)),
                   0.01 * static_cast<double>(rng.below(10)));
  }
  for (Site& site : drawn.world.sites) {
    if (rng.below(3) == 0) site.uplink = static_cast<double>(50 + rng.below(300)) * bytes_per_s_per_mbps;
    if (rng.below(3) == 0) site.downlink = static_cast<double>(50 + rng.below(300)) * bytes_per_s_per_mbps;
    site.carbon_g_per_kwh = Signal({{Time{}, Signal::to_micro(static_cast<double>(rng.below(500)))},
                                    {whole_seconds(300), Signal::to_micro(static_cast<double>(rng.below(500)))}});
    site.usd_per_gpu_h = static_cast<double>(rng.below(4));
    drawn.gpus.push_back(2 + static_cast<std::int64_t>(rng.below(7)));  // some hold no gang of four
    drawn.clusters.push_back(one_node(static_cast<std::uint32_t>(drawn.gpus.back())));
  }
  drawn.cloud = static_cast<SiteId>(rng.below(sites));
  drawn.clusters[drawn.cloud] = cloud_for(drawn.jobs);
  drawn.gpus[drawn.cloud] = drawn.clusters[drawn.cloud].nodes.front().gpus;
  drawn.world.sites[drawn.cloud].is_unlimited = true;
  for (std::uint64_t set = rng.below(3); set > 0; --set) {
    drawn.world.data_sets.push_back({.name = "d" + std::to_string(set),
                                     .bytes = static_cast<std::int64_t>(rng.below(4000)) * mb,
                                     .at = {static_cast<SiteId>(rng.below(sites))}});
  }
  for (std::uint32_t i = 0; i < drawn.jobs.size(); ++i) {
    JobPlace place{.home = static_cast<SiteId>(rng.below(sites))};
    if (rng.below(2) == 0) place.bytes = static_cast<std::int64_t>(rng.below(2'000'000'000));
    if (rng.below(2) == 0) place.checkpoint_bytes = static_cast<std::int64_t>(rng.below(300'000'000));
    if (rng.below(2) == 0) place.output_bytes = static_cast<std::int64_t>(rng.below(500'000'000));
    if (!drawn.world.data_sets.empty() && rng.below(2) == 0)
      place.data_set = static_cast<std::uint32_t>(rng.below(drawn.world.data_sets.size()));
    drawn.world.jobs.push_back(place);
  }
  return drawn;
}

// Jobs that do not fit their homes are of the cloud.
void keep_where_they_fit(World& drawn) {
  for (std::uint32_t i = 0; i < drawn.jobs.size(); ++i) {
    const std::int64_t gpus = drawn.jobs.shape(JobId{i}).gpu_milli() / whole_gpu;
    if (gpus > drawn.gpus[drawn.world.jobs[i].home]) drawn.world.jobs[i].home = drawn.cloud;
  }
}

AnyRouter router_of(SlowRule rule, Time wait, SiteId cloud, std::uint64_t seed) {
  switch (rule) {
    case SlowRule::local: return AnyRouter(LocalOnly{});
    case SlowRule::most_available: return AnyRouter(MostAvailable{});
    case SlowRule::least_loaded: return AnyRouter(LeastLoaded{});
    case SlowRule::data_present: return AnyRouter(DataPresent{});
    case SlowRule::completion: return AnyRouter(ShortestCompletion{});
    case SlowRule::carbon: return AnyRouter(LowestSignal{SiteSignal::carbon});
    case SlowRule::random: return AnyRouter(RandomSite{seed});
    case SlowRule::burst: break;
  }
  return AnyRouter(BurstRouter{.policy = {BurstWait::constant, to_seconds(wait) / 3600}, .cloud = cloud});
}

void compare(const Federation& fast, const SlowSites& slow) {
  ASSERT_EQ(fast.transfers().size(), slow.transfers.size());
  for (std::size_t i = 0; i < slow.transfers.size(); ++i) {
    const SiteTransfer& a = fast.transfers()[i];
    const SlowTransfer& b = slow.transfers[i];
    ASSERT_EQ(std::tuple(a.what, a.number, a.from, a.to, a.bytes, a.begin.us, a.end.us),
              std::tuple(b.what, b.number, b.from, b.to, b.bytes, b.begin, b.end))
        << "transfer " << i;
  }
  for (std::uint32_t i = 0; i < slow.all.size(); ++i) {
    const JobId job{i};
    const SlowSiteJob& is = slow.all[i];
    const Engine& engine = fast.engine(fast.site_of(job));
    ASSERT_EQ(std::tuple(fast.site_of(job), fast.eligible(job).us, fast.joined(job).us, engine.first_start(job).us,
                         engine.end(job).us, fast.moves(job)),
              std::tuple(is.site, is.eligible, is.joined, is.start, is.end, is.moves))
        << "job " << i;
  }
}

TEST(RandomSites, EqualASlowFederation) {
  const std::uint64_t runs = random_runs(60);
  std::size_t moved = 0, moved_running = 0, transfers = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng(seed).split("sites");
    World drawn = drawn_world(rng);
    const auto rule = static_cast<SlowRule>(rng.below(8));
    if (rule == SlowRule::local) keep_where_they_fit(drawn);
    const bool skips = rng.below(2) == 0;
    const Time wait = whole_seconds(static_cast<std::int64_t>(rng.below(4) * 36));
    FederationOptions options;
    if (rng.below(2) == 0)
      options = {.every = whole_seconds(7 + static_cast<std::int64_t>(rng.below(200))),
                 .most_moves = 2,
                 .moves_running = rng.below(2) == 0};
    const Time restart = whole_seconds(static_cast<std::int64_t>(rng.below(3) * 20));
    const AnyPolicy policy = skips ? AnyPolicy(FifoSkip{}) : AnyPolicy(Fifo{});
    std::vector<SiteSetup> sites = setups(drawn.clusters, policy);
    for (SiteSetup& site : sites) site.options.preemption.restart = restart;
    Federation fast(drawn.jobs, drawn.world, sites, router_of(rule, wait, drawn.cloud, seed), options);
    ASSERT_EQ(fast.run(nobody_watches), FederationEnd::finished);
    ASSERT_TRUE(fast.consistent());
    const std::vector<SiteAccount> accounts = site_accounts(fast);
    ASSERT_EQ(fault_of_sites(fast, accounts), std::nullopt);
    SlowSites slow(drawn.jobs, drawn.world, drawn.gpus, skips, rule, wait, drawn.cloud, seed, options, restart);
    slow.run();
    compare(fast, slow);
    if (HasFatalFailure()) return;
    transfers += slow.transfers.size();
    for (const SlowSiteJob& job : slow.all) {
      moved += job.moves;
      moved_running += job.ran_at != no_site ? 1 : 0;
    }
    // Money and bytes, by adding up what the slow one saw.
    std::vector<double> egress(drawn.gpus.size());
    for (const SlowTransfer& transfer : slow.transfers) {
      egress[transfer.from] += static_cast<double>(transfer.bytes) / 1e9 *
                               static_cast<double>(drawn.world.link(transfer.from, transfer.to)->micro_usd_per_gb) /
                               1e6;
    }
    std::vector<double> rent(drawn.gpus.size());
    for (SiteId site = 0; site < rent.size(); ++site)
      rent[site] = drawn.world.sites[site].usd_per_gpu_h * static_cast<double>(slow.held[site]) / 3.6e9;
    for (SiteId site = 0; site < accounts.size(); ++site) {
      ASSERT_NEAR(accounts[site].egress_usd(), egress[site], 1e-9);
      ASSERT_NEAR(accounts[site].rent_usd(), rent[site], 1e-9);
    }
  }
  EXPECT_GT(moved, 20u);
  EXPECT_GT(moved_running, 20u);
  EXPECT_GT(transfers, 200u);
}

}  // namespace
}  // namespace gpusched::test
