// SPDX-License-Identifier: Apache-2.0
// Every policy over several random sites, each unlike the others: jobs may run at some of them alone, retry, and move
// with what they did; nodes fail while jobs are on their way. All end, and all books add up.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/sites/site_accounts.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/burst/burst_router.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/sites/some_sites.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

using detail::WorldDraws;

constexpr std::uint64_t usual_site_worlds = 12;

struct SitesOfPolicy {
  RandomWorld first;  // its jobs fit the first site
  SiteWorld world;
  std::vector<Cluster> clusters;
  std::vector<NodeFailures> failures;
  FederationOptions options;

  [[nodiscard]] const JobTable& jobs() const { return first.jobs; }
};

std::uint32_t queue_at(const Cluster& cluster, std::string_view vc) {
  for (std::uint32_t i = 0; i < cluster.vcs.size(); ++i) {
    if (cluster.vcs[i].name == vc) return i;
  }
  return static_cast<std::uint32_t>(cluster.vcs.size());
}

bool fits_at(const SitesOfPolicy& drawn, JobId job, SiteId site) {
  const JobTable& jobs = drawn.jobs();
  const std::uint32_t queue = queue_at(drawn.clusters[site], jobs.vcs()[jobs.vc(job)]);
  return ClusterState::fits_when_empty(drawn.clusters[site], jobs.gpu_specs(), jobs.shape(job), queue);
}

// `bursts`: a job may come from where it does not fit.
void draw_places(WorldDraws& draw, SitesOfPolicy& drawn, bool bursts) {
  for (std::uint32_t i = 0; i < drawn.jobs().size(); ++i) {
    auto home = static_cast<SiteId>(draw.below(drawn.clusters.size()));
    if (!bursts && !fits_at(drawn, JobId{i}, home)) home = 0;
    JobPlace place{.home = home};
    if (draw.chance(2)) place.bytes = static_cast<std::int64_t>(draw.below(2'000'000'000));
    if (draw.chance(2)) place.output_bytes = static_cast<std::int64_t>(draw.below(500'000'000));
    if (draw.chance(2)) place.checkpoint_bytes = static_cast<std::int64_t>(draw.below(300'000'000));
    drawn.world.jobs.push_back(place);
  }
}

SitesOfPolicy sites_of_policy(std::uint64_t seed, WorldKind kind) {
  WorldDraws draw(seed ^ 0x517E5);
  SitesOfPolicy drawn{.first = random_world(seed, kind, draw.chance(3)), .world = {}, .clusters = {}, .failures = {}};
  const auto sites = static_cast<SiteId>(2 + draw.below(2));
  const bool bursts = seed % 6 == 5, has_cloud = bursts || draw.chance(3);
  drawn.world = linked_sites(sites + (has_cloud ? 1 : 0), link_of(100, draw.chance(2) ? 0 : 0.2));
  drawn.clusters.push_back(drawn.first.cluster);
  for (SiteId site = 1; site < sites; ++site) drawn.clusters.push_back(detail::random_cluster(draw, kind));
  for (SiteId site = 0; site < sites; ++site) {
    const RandomWorld at{.cluster = drawn.clusters[site], .jobs = {}, .options = {}};
    drawn.failures.push_back(draw.chance(2) ? random_failures(at, seed + site) : NodeFailures{});
  }
  if (has_cloud) {
    drawn.clusters.push_back(cloud_for(drawn.jobs()));
    drawn.failures.emplace_back();
    drawn.world.sites.back().is_unlimited = true;
  }
  draw_places(draw, drawn, bursts);
  if (draw.chance(2)) {
    drawn.options = {.every = whole_seconds(static_cast<std::int64_t>(3 + draw.below(100))),
                     .most_moves = static_cast<std::uint32_t>(1 + draw.below(3)),
                     .moves_running = draw.chance(2)};
  }
  return drawn;
}

AnyRouter router_for(const SitesOfPolicy& drawn, std::uint64_t seed) {
  const auto cloud = static_cast<SiteId>(drawn.clusters.size() - 1);
  switch (seed % 6) {
    case 0: return AnyRouter(LocalOnly{});
    case 1: return AnyRouter(LeastLoaded{});
    case 2: return AnyRouter(ShortestCompletion{});
    case 3: return AnyRouter(RandomSite{seed});
    case 4: return AnyRouter(DataPresent{});
    default: return AnyRouter(BurstRouter{.policy = {BurstWait::constant, 0.01}, .cloud = cloud});
  }
}

// What is wrong with one run; nothing where the policy does not take these sites.
std::optional<std::string> fault_over_sites(const Contestant& contestant, const SitesOfPolicy& drawn,
                                            std::uint64_t seed) {
  if (contestant.policy.find("pods=true") != std::string::npos) return std::nullopt;  // they may lock each other out
  const std::size_t count = drawn.clusters.size();
  std::vector<SiteSetup> sites;
  for (SiteId site = 0; site < count; ++site) {
    auto policy = make(contestant, drawn.jobs(), drawn.clusters[site]);
    if (!policy) return std::nullopt;
    sites.push_back({.cluster = &drawn.clusters[site],
                     .policy = *std::move(policy),
                     .options = drawn.first.options,
                     .inputs = {.failures = &drawn.failures[site]}});
  }
  std::vector<RunLog> logs(count, RunLog(MeasureWindow{}));
  std::vector<Time> last(count, Time{std::numeric_limits<std::int64_t>::min()});
  bool is_backward = false;
  const auto watch = [&logs, &last, &is_backward](SiteId site, const OracleView& view, std::span<const Event> events) {
    is_backward = is_backward || view.now() < last[site];
    last[site] = view.now();
    logs[site].observe(view, events);
  };
  std::uint32_t asked = 0;
  const auto stopped = [&asked] { return ++asked > 20'000; };  // once in 256 instants
  Federation federation(drawn.jobs(), drawn.world, sites, router_for(drawn, seed), drawn.options);
  const FederationEnd end = federation.run(watch, stopped);
  if (is_backward) return "time runs backwards at a site";
  if (!federation.consistent()) return "counts of sites and engines differ";
  if (end == FederationEnd::goes_on) return std::nullopt;
  if (end != FederationEnd::finished) return "it ends with " + std::to_string(static_cast<int>(end));
  for (SiteId site = 0; site < count; ++site) {
    if (auto fault = fault_of_account(federation.engine(site), logs[site])) return fault;
  }
  return fault_of_sites(federation, site_accounts(federation));
}

class RandomPolicies : public testing::TestWithParam<Contestant> {};

INSTANTIATE_TEST_SUITE_P(OverSites, RandomPolicies, testing::ValuesIn(contestants()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(RandomPolicies, EndAllJobsAndKeepTheirBooks) {
  for (std::uint64_t seed = 1; seed <= random_runs(usual_site_worlds); ++seed) {
    const SitesOfPolicy drawn = sites_of_policy(seed, kind_for(GetParam().policy));
    if (drawn.jobs().size() == 0) continue;
    const auto fault = fault_over_sites(GetParam(), drawn, seed);
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

}  // namespace
}  // namespace gpusched::test
