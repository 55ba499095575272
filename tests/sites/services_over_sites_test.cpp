// SPDX-License-Identifier: Apache-2.0
// Services over sites: by hand, against a run of one cluster, and random worlds against slow simulations of each site.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/sites/site_accounts.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "gpusched/watch/service_figures.hpp"
#include "tests/engine/random_services.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/engine/slow_services.hpp"
#include "tests/sites/some_sites.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

// The service at those sites; `most` replicas by part.
SiteService over_sites(ServiceModel& model, const ServiceSpec& service, const std::vector<SiteId>& sites) {
  SiteService over{.name = service.name, .begin = service.begin, .requests = service.requests};
  over.origins.assign(service.requests.size(), 0);
  over.from = {sites.front()};
  for (const SiteId site : sites) {
    ServiceSpec part = service;
    part.requests.clear();
    part.is_told = true;
    part.name += "@" + std::to_string(site);
    part.engine = site;
    over.parts.push_back({.service = static_cast<std::uint32_t>(model.services.size()), .site = site});
    model.services.push_back(std::move(part));
  }
  return over;
}

struct SitesRun {
  std::vector<Cluster> clusters;
  Federation federation;
  FederationEnd end;

  static std::vector<SiteSetup> setups(const std::vector<Cluster>& clusters, const ServiceModel& model,
                                       const std::vector<NodeFailures>& failures) {
    std::vector<SiteSetup> sites;
    for (std::size_t i = 0; i < clusters.size(); ++i) {
      sites.push_back({.cluster = &clusters[i],
                       .policy = AnyPolicy(FirstFit{}),
                       .inputs = {.failures = failures.empty() ? nullptr : &failures[i], .services = &model}});
    }
    return sites;
  }
  SitesRun(const JobTable& jobs, const SiteWorld& world, const std::vector<Cluster>& of, const ServiceModel& model,
           const std::vector<NodeFailures>& failures = {})
      : clusters(of), federation(jobs, world, setups(clusters, model, failures), AnyRouter(LocalOnly{})) {
    Federation copy = federation;
    end = federation.run(nobody_watches);
    EXPECT_EQ(copy.run(nobody_watches), end);
    EXPECT_TRUE(federation.consistent());
    if (end == FederationEnd::finished) {
      EXPECT_EQ(fault_of_sites(federation, site_accounts(federation)), std::nullopt);
      EXPECT_EQ(site_accounts(copy), site_accounts(federation));
    }
  }
};

Cluster single_gpus(std::uint32_t nodes) {
  Cluster cluster = Cluster::pool(1);
  cluster.nodes.assign(nodes, Node{.gpus = 1});
  return cluster;
}

void expect_same_requests(const RequestLedger& a, std::span<const RequestRecord> b, const std::string& where) {
  ASSERT_EQ(a.records().size(), b.size()) << where;
  for (std::uint32_t k = 0; k < b.size(); ++k) {
    const RequestRecord& own = a.records()[k];
    ASSERT_EQ(std::tuple(own.phase, own.start, own.end, own.replica, own.retries),
              std::tuple(b[k].phase, b[k].start, b[k].end, b[k].replica, b[k].retries))
        << where << " request " << k;
  }
}

// Two clients, edge with one replica, a cloud 40 ms away with as many as one likes; each request takes 100 ms.
struct EdgeAndCloud {
  ServiceModel model;
  SiteWorld world = linked_sites(2, link_of(100, 0.04));
  JobTable jobs;

  explicit EdgeAndCloud(SiteRule rule, const std::vector<double>& at, double within_s = 0.25) {
    std::vector<std::pair<double, double>> requests;
    for (const double time : at) requests.emplace_back(time, 0.1);
    ServiceSpec service = service_of(requests);
    service.promise = LatencyPromise{.part = 0.9, .within = from_seconds(within_s)};
    SiteService over = over_sites(model, service, {0, 1});
    over.rule = rule;
    over.ways = {{{.part = 0}, {.part = 1, .there = from_seconds(0.02), .back = from_seconds(0.02)}}};
    world.services = {over};
    jobs = with_services(model, {});
    world.jobs.resize(jobs.size());
    world.jobs[1].home = 1;
  }
  [[nodiscard]] std::vector<double> latencies_ms(std::uint32_t part) const {
    const SitesRun run(jobs, world, {single_gpus(1), single_gpus(1)}, model);
    EXPECT_EQ(run.end, FederationEnd::finished);
    std::vector<double> all;
    for (const std::int64_t us : gpusched::detail::latencies_us(run.federation.engine(part).services().requests(part)))
      all.push_back(static_cast<double>(us) / 1000);
    return all;
  }
};

using Ms = std::vector<double>;

TEST(ServicesOverSites, TheNearestSiteServesAllThatWaitThere) {
  const EdgeAndCloud world(SiteRule::nearest, {0, 0.01, 0.02, 0.03});
  EXPECT_EQ(world.latencies_ms(0), (Ms{100, 190, 280, 370}));
  EXPECT_EQ(world.latencies_ms(1), Ms{});
}

TEST(ServicesOverSites, TheShortestWayWithItsQueueIsTaken) {
  // The second would wait for 90 ms at the edge and takes 40 ms to the cloud and back; the third finds one request at
  // each, the cloud's still on its way.
  const EdgeAndCloud world(SiteRule::shortest, {0, 0.01, 0.02, 0.03});
  EXPECT_EQ(world.latencies_ms(0), (Ms{100, 180}));
  EXPECT_EQ(world.latencies_ms(1), (Ms{140, 220}));
}

TEST(ServicesOverSites, ThePromiseDecidesHowLongTheEdgeServes) {
  // 250 ms allow one to wait at the edge, 150 ms none.
  const std::vector<double> at{0, 0.01, 0.02};
  const EdgeAndCloud wide(SiteRule::promise, at), narrow(SiteRule::promise, at, 0.15);
  EXPECT_EQ(wide.latencies_ms(0), (Ms{100, 190}));
  EXPECT_EQ(wide.latencies_ms(1), (Ms{140}));
  EXPECT_EQ(narrow.latencies_ms(0), (Ms{100, 180}));  // neither keeps it then: the shorter
  EXPECT_EQ(narrow.latencies_ms(1), (Ms{140}));
}

TEST(ServicesOverSites, TheCheapestThatKeepsThePromiseServes) {
  EdgeAndCloud world(SiteRule::cheapest, {0, 0.01, 0.02, 1});
  world.world.sites[0].usd_per_gpu_h = 2;
  world.world.sites[1].usd_per_gpu_h = 1;
  EXPECT_EQ(world.latencies_ms(1), (Ms{140, 230, 140}));
  EXPECT_EQ(world.latencies_ms(0), (Ms{100}));
}

TEST(ServicesOverSites, OneSiteIsTheRunOfItsCluster) {
  for (std::uint64_t seed = 1; seed <= random_runs(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const ServiceSpec service = drawn_service(rng, 0);
    ServiceModel model{.services = {service}}, told;
    SiteWorld world = linked_sites(1, link_of(1));
    SiteService over = over_sites(told, service, {0});
    over.ways = {{{.part = 0}}};
    world.services = {over};
    std::vector<Row> rows;
    for (std::uint64_t i = 0, jobs = rng.below(10); i < jobs; ++i)
      rows.push_back(
          {.submit = static_cast<std::int64_t>(7 * i), .work = 1 + static_cast<std::int64_t>(rng.below(40))});
    const JobTable jobs = with_services(model, rows);
    told.services[0].first_row = model.services[0].first_row;
    const std::vector<Cluster> clusters{single_gpus(2 + static_cast<std::uint32_t>(rng.below(5)))};
    Engine alone(jobs, clusters[0], {}, {.services = &model});
    HistoryHash history, of_site;
    FirstFit policy;
    ASSERT_TRUE(simulate(alone, policy, history));
    Federation federation(jobs, world, SitesRun::setups(clusters, told, {}), AnyRouter(LocalOnly{}));
    ASSERT_EQ(federation.run([&](SiteId, const OracleView& view, std::span<const Event> events) {
      of_site.observe(view, events);
    }),
              FederationEnd::finished);
    expect_same_requests(federation.engine(0).services().requests(0), alone.services().requests(0).records(), "alone");
    EXPECT_EQ(federation.engine(0).services().closed(0), alone.services().closed(0));
    EXPECT_EQ(of_site.value(), history.value());
  }
}

// One site of a slow federation.
struct SlowSite {
  ServiceModel model;                // of its parts, whose requests are those that came
  std::vector<std::uint32_t> parts;  // of the real model
  SlowServices run;
};

// Sites, second by second. Round trips are whole seconds.
struct SlowFederation {
  const SiteWorld* world = nullptr;
  const ServiceModel* model = nullptr;
  std::vector<SlowSite> sites;
  struct Travel {
    std::int64_t at;
    std::size_t service;
    std::uint32_t request;
    SiteWay way;
  };
  std::vector<Travel> travels;  // in the order of sending
  std::vector<std::uint32_t> sent;
  std::vector<std::size_t> left;
  std::vector<Travel> came;  // at this second

  void run() {
    for (std::uint32_t i = 0; i < model->services.size(); ++i) {
      SlowSite& site = sites[model->services[i].engine];
      site.model.services.push_back(model->services[i]);
      site.parts.push_back(i);
    }
    for (const SiteService& service : world->services) left.push_back(service.requests.size());
    sent.resize(left.size());
    for (SlowSite& site : sites) {
      site.run.model = &site.model;
      site.run.prepare();
      for (auto& service : site.run.services) service.is_open = true;
    }
    for (std::int64_t now = 0; now < 50'000; ++now) {
      for (SlowSite& site : sites) site.run.now = now;
      for (std::size_t i = 0; i < sent.size(); ++i) look(i, now);
      for (const Travel& travel : std::exchange(travels, {})) {
        if (travel.at == now)
          arrive(travel, now);
        else
          travels.push_back(travel);
      }
      for (std::size_t i = 0; i < sent.size(); ++i) send(i, now);
      came.clear();
      bool over = true;
      for (SlowSite& site : sites) {
        if (!site.run.is_over()) site.run.second();
        over = over && site.run.is_over();
      }
      if (over) return;
    }
  }

  std::pair<SlowSite*, std::size_t> place(const SitePart& part) {
    SlowSite& site = sites[part.site];
    const auto at = std::find(site.parts.begin(), site.parts.end(), part.service);
    return {&site, static_cast<std::size_t>(at - site.parts.begin())};
  }
  void arrive(const Travel& travel, std::int64_t now) {
    const SiteService& service = world->services[travel.service];
    const auto [site, i] = place(service.parts[travel.way.part]);
    ServiceRequest request = service.requests[travel.request];
    request.arrival = whole_seconds(now) - service.begin;
    site->model.services[i].requests.push_back(request);
    site->run.records[i].emplace_back();
    came.push_back(travel);
    if (--left[travel.service] > 0) return;
    for (const SitePart& part : service.parts) {
      const auto [other, k] = place(part);
      other->run.services[k].is_open = false;
    }
  }
  void send(std::size_t number, std::int64_t now) {
    const SiteService& service = world->services[number];
    while (sent[number] < service.requests.size()) {
      const std::uint32_t request = sent[number];
      if (SlowServices::s(service.begin + service.requests[request].arrival) != now) return;
      ++sent[number];
      const SiteWay way = choose(service, number, request);
      const Travel travel{now + SlowServices::s(way.there), number, request, way};
      if (travel.at == now)
        arrive(travel, now);
      else
        travels.push_back(travel);
    }
  }
  // Before anything comes at this second, where somebody will choose by it.
  void look(std::size_t number, std::int64_t now) {
    const SiteService& service = world->services[number];
    if (service.rule == SiteRule::nearest || sent[number] == service.requests.size()) return;
    if (SlowServices::s(service.begin + service.requests[sent[number]].arrival) != now) return;
    for (const SitePart& part : service.parts) {
      const auto [site, i] = place(part);
      site->run.requests_happen(i);
    }
  }
  double expected(const SiteService& service, std::size_t number, const SiteWay& way) {
    const auto [site, i] = place(service.parts[way.part]);
    const ServiceLoad load = site->run.load_of(i);
    std::int64_t coming = 0;
    for (const auto* some : {&travels, &came}) {
      for (const Travel& travel : *some) coming += travel.service == number && travel.way.part == way.part ? 1 : 0;
    }
    bool is_asked = false, has_room = false;
    for (std::uint32_t row = 0; row < site->model.services[i].most; ++row) {
      const auto& replica = site->run.replica(i, row);
      is_asked = is_asked || replica.phase == SlowServices::Phase::queued;
      has_room = has_room ||
                 (replica.phase == SlowServices::Phase::running && replica.serving != SlowServices::Serving::draining);
    }
    return gpusched::detail::expected_latency(site->model.services[i], load, coming, way.there + way.back) +
           (is_asked && !has_room ? 1e12 : 0);
  }
  SiteWay choose(const SiteService& service, std::size_t number, std::uint32_t request) {
    const std::vector<SiteWay>& ways = service.ways[service.origins[request]];
    if (service.rule == SiteRule::nearest || ways.size() == 1) return ways.front();
    std::vector<double> latencies;
    for (const SiteWay& way : ways) {
      latencies.push_back(expected(service, number, way));
      const auto& spec = model->services[service.parts[way.part].service];
      if (service.rule == SiteRule::promise && latencies.back() <= to_seconds(spec.promise->within)) return way;
    }
    if (service.rule == SiteRule::cheapest) {
      std::size_t best = ways.size();
      const auto usd = [&](std::size_t k) { return world->sites[service.parts[ways[k].part].site].usd_per_gpu_h; };
      for (std::size_t k = 0; k < ways.size(); ++k) {
        const auto& spec = model->services[service.parts[ways[k].part].service];
        if (latencies[k] > to_seconds(spec.promise->within)) continue;
        if (best == ways.size() || usd(k) < usd(best)) best = k;
      }
      if (best < ways.size()) return ways[best];
    }
    return ways[static_cast<std::size_t>(std::min_element(latencies.begin(), latencies.end()) - latencies.begin())];
  }
};

TEST(ServicesOverSites, EqualSlowSites) {
  std::vector<std::uint64_t> by_rule(4), by_site(3);
  std::uint64_t retried = 0, completed = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const SiteId count = 2 + static_cast<SiteId>(rng.below(2));
    SiteWorld world = linked_sites(count, link_of(100));
    ServiceModel model;
    for (Site& site : world.sites) site.usd_per_gpu_h = static_cast<double>(rng.below(4));
    for (std::uint64_t i = 0, services = 1 + rng.below(2); i < services; ++i) {
      ServiceSpec service = drawn_service(rng, static_cast<int>(i));
      service.promise = LatencyPromise{.within = drawn_s(rng, 4, 20)};
      std::vector<SiteId> at;
      for (SiteId site = 0; site < count; ++site) {
        if (rng.below(4) != 0 || site + 1 == count) at.push_back(site);
      }
      SiteService over = over_sites(model, service, at);
      over.rule = static_cast<SiteRule>(rng.below(4));
      ++by_rule[static_cast<std::size_t>(over.rule)];
      const std::uint64_t origins = 1 + rng.below(3);
      for (std::uint64_t origin = 0; origin < origins; ++origin) {
        std::vector<SiteWay> ways;
        for (std::uint32_t part = 0; part < over.parts.size(); ++part)
          ways.push_back({.part = part, .there = drawn_s(rng, 0, 3), .back = drawn_s(rng, 0, 3)});
        std::stable_sort(ways.begin(), ways.end(),
                         [](const SiteWay& a, const SiteWay& b) { return a.there + a.back < b.there + b.back; });
        over.ways.push_back(ways);
      }
      for (std::uint32_t& origin : over.origins) origin = static_cast<std::uint32_t>(rng.below(origins));
      world.services.push_back(over);
    }
    SlowFederation slow{.world = &world, .model = &model};
    slow.sites.resize(count);
    std::vector<Row> rows;
    std::vector<SiteId> homes;
    std::int64_t submit = 0;
    for (std::uint64_t i = 0, jobs = rng.below(14); i < jobs; ++i) {
      const auto tasks = 1 + static_cast<std::uint32_t>(rng.below(2));
      rows.push_back({.submit = submit, .work = SlowServices::s(drawn_s(rng, 1, 40)), .gpus = tasks});
      homes.push_back(static_cast<SiteId>(rng.below(count)));
      slow.sites[homes.back()].run.jobs.push_back({submit, rows.back().work, tasks});
      submit += SlowServices::s(drawn_s(rng, 0, 15));
    }
    const JobTable jobs = with_services(model, rows);
    for (const ServiceSpec& spec : model.services) world.jobs.resize(spec.first_row + spec.most, {.home = spec.engine});
    for (const SiteId home : homes) world.jobs.push_back({.home = home});
    std::vector<Cluster> clusters;
    std::vector<NodeFailures> failures(count);
    for (SiteId site = 0; site < count; ++site) {
      SlowServices& run = slow.sites[site].run;
      run.nodes = 2 + static_cast<std::uint32_t>(rng.below(5));
      clusters.push_back(single_gpus(run.nodes));
      for (std::uint32_t node = 0; node < run.nodes; ++node) {
        if (rng.below(3) != 0) continue;
        const Time at = drawn_s(rng, 1, 60);
        run.changes.push_back({at, NodeId{node}, false});
        run.changes.push_back({at + drawn_s(rng, 1, 20), NodeId{node}, true});
      }
      failures[site].add_changes(run.changes);
      run.changes.assign(failures[site].changes().begin(), failures[site].changes().end());
    }
    slow.run();
    const SitesRun fast(jobs, world, clusters, model, failures);
    ASSERT_EQ(fast.end, FederationEnd::finished);
    std::vector<std::size_t> next(count);
    for (std::uint32_t j = 0; j < rows.size(); ++j) {
      const JobId job{jobs.replicas() + j};
      const SiteId site = homes[j];
      ASSERT_EQ(fast.federation.engine(site).end(job), whole_seconds(slow.sites[site].run.job_ends[next[site]++]))
          << "job " << j;
    }
    for (SiteId site = 0; site < count; ++site) {
      const SlowSite& own = slow.sites[site];
      for (std::size_t i = 0; i < own.parts.size(); ++i) {
        const Engine& engine = fast.federation.engine(site);
        expect_same_requests(engine.services().requests(own.parts[i]), own.run.records[i],
                             "site " + std::to_string(site) + " part " + std::to_string(own.parts[i]));
        ASSERT_EQ(engine.services().closed(own.parts[i]), whole_seconds(own.run.closed[i]));
        ASSERT_EQ(engine.services().starts(own.parts[i]).cold, own.run.starts[i].cold);
        ASSERT_EQ(engine.services().starts(own.parts[i]).killed, own.run.starts[i].killed);
        completed += engine.services().requests(own.parts[i]).counts().completed;
        if (!own.run.records[i].empty()) ++by_site[site];
        for (const RequestRecord& record : own.run.records[i]) retried += record.retries;
      }
    }
  }
  for (const std::uint64_t some : {by_rule[0], by_rule[1], by_rule[2], by_rule[3], retried, completed})
    EXPECT_GT(some, 0u);
}

}  // namespace
}  // namespace gpusched::test
