// SPDX-License-Identifier: Apache-2.0
// Transfers, prices and routes worked out by hand; one site against its own replay.
#include "gpusched/sites/federation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/sites/site_accounts.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "src/policies/burst/burst_router.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/sites/some_sites.hpp"

namespace gpusched::test {
namespace {

constexpr std::int64_t gb = 1'000'000'000;

// When the data of one job comes from the first site to the second.
Time seconds_to_move(const SiteLink& link, std::int64_t bytes) {
  const JobTable jobs = table_of_gangs({gang(0, 1, 1)});
  SiteWorld world = linked_sites(2, link);
  world.jobs = {{.home = 0, .bytes = bytes}};
  const std::vector<Cluster> clusters{one_node(1), one_node(1)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(AllTo{1}));
  EXPECT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(fault_of_sites(federation, site_accounts(federation)), std::nullopt);
  return federation.joined(JobId{0});
}

TEST(Sites, TransfersTakeWhatTheClassesOfAwsSay) {  // design notes, section 4
  EXPECT_EQ(seconds_to_move(link_of(50, 0.190), 100 * gb), from_seconds(16'000.19));
  EXPECT_EQ(seconds_to_move(link_of(160, 0.070), 100 * gb), from_seconds(5'000.07));
  EXPECT_EQ(seconds_to_move(link_of(1000), 100 * gb), from_seconds(800));
  EXPECT_EQ(seconds_to_move(link_of(100, 0.120), 0), from_seconds(0.12));  // no data: the round trip
}

TEST(Sites, TransfersOfALinkShareItAndOthersDoNot) {
  // Two of 10 GB at 80 Mbps, 1000 s each alone: the second begins at 500 s. The first has 5 GB left, at half the rate
  // 1000 s more: 1500 s. The second has 5 GB left then, alone: 2000 s. The way back is another link.
  const JobTable jobs = table_of_gangs({gang(0, 1, 1), gang(0, 1, 1), gang(500, 1, 1)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs = {{.home = 0, .bytes = 10 * gb}, {.home = 1, .bytes = 10 * gb}, {.home = 0, .bytes = 10 * gb}};
  struct Away {
    [[nodiscard]] static std::string_view name() { return "away"; }
    [[nodiscard]] Route route(const RouterView& view, JobId job) const { return {1 - view.home(job)}; }
  };
  const std::vector<Cluster> clusters{one_node(8), one_node(8)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(Away{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.joined(JobId{0}), whole_seconds(1500));
  EXPECT_EQ(federation.joined(JobId{2}), whole_seconds(2000));
  EXPECT_EQ(federation.joined(JobId{1}), whole_seconds(1000));
}

TEST(Sites, AnUplinkIsSharedMaxMinFairly) {
  // Out of the first site 100 Mbps; to the second a link of 20 Mbps, to the third one of 200. One transfer to the
  // second and two to the third: 20, and 40 each. 10 GB: the two are there after 2000 s, the one after 4000 s.
  const JobTable jobs = table_of_gangs({gang(0, 1, 1), gang(0, 1, 1), gang(0, 1, 1)});
  SiteWorld world = linked_sites(3, link_of(200));
  world.links[1] = link_of(20);
  world.sites[0].uplink = 100 * bytes_per_s_per_mbps;
  world.jobs.assign(3, {.home = 0, .bytes = 10 * gb});
  struct Spread {
    [[nodiscard]] static std::string_view name() { return "spread"; }
    [[nodiscard]] Route route(const RouterView&, JobId job) const { return {index(job) == 0 ? 1u : 2u}; }
  };
  const std::vector<Cluster> clusters{one_node(8), one_node(8), one_node(8)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(Spread{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.joined(JobId{0}), whole_seconds(4000));
  EXPECT_EQ(federation.joined(JobId{1}), whole_seconds(2000));
  EXPECT_EQ(federation.joined(JobId{2}), whole_seconds(2000));
}

// From the second site over 80 Mbps, 100 s: the link of 200 from the first has 10 of uplink behind it.
TEST(Sites, DataComeFromWhereTheyAreSoonest) {
  const JobTable jobs = table_of_gangs({gang(0, 1, 1)});
  SiteWorld world = linked_sites(3, link_of(200));
  world.links[5] = link_of(80);  // 1 to 2
  world.sites[0].uplink = 10 * bytes_per_s_per_mbps;
  world.data_sets = {{.name = "images", .bytes = gb, .at = {0, 1}}};
  world.jobs.assign(1, {.home = 2, .data_set = 0});
  const std::vector<Cluster> clusters{one_node(8), one_node(8), one_node(8)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(LocalOnly{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.joined(JobId{0}), whole_seconds(100));
}

// A cloud has room for more than any site, however many jobs are still to come.
TEST(Sites, AnUnlimitedSiteIsNeverFull) {
  std::vector<JobRecord> rows{gang(0, 100, 8), gang(10, 100, 4)};
  for (const bool has_more : {false, true}) {
    if (has_more) rows.insert(rows.end(), {gang(100'000, 1, 8), gang(100'000, 1, 8)});
    const JobTable jobs = table_of_gangs(rows);
    SiteWorld world = linked_sites(2, link_of(100));
    world.sites[1].is_unlimited = true;
    world.jobs.assign(rows.size(), {.home = 0});
    world.jobs[0].home = 1;
    const std::vector<Cluster> clusters{one_node(8), cloud_for(jobs)};
    for (const AnyRouter& router : {AnyRouter(MostAvailable{}), AnyRouter(LeastLoaded{})}) {
      Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), router);
      ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
      EXPECT_EQ(federation.site_of(JobId{1}), router.name() == "most-available" ? 1u : 0u) << router.name();
    }
  }
}

TEST(Sites, EgressIsPaidByTheOriginInThatDirectionAndNetworksDrawAtItsIntensity) {
  const JobTable jobs = table_of_gangs({gang(0, 1, 1), gang(10'000, 1, 1)});
  SiteWorld world = linked_sites(2, link_of(800));
  world.links[1]->micro_usd_per_gb = Signal::to_micro(0.09);  // 0 to 1
  world.links[2]->micro_usd_per_gb = Signal::to_micro(0.02);  // 1 to 0
  world.sites[0].carbon_g_per_kwh =
      Signal({{Time{}, Signal::to_micro(100)}, {whole_seconds(50), Signal::to_micro(300)}});
  world.jobs = {{.home = 0, .bytes = 10 * gb}, {.home = 1, .bytes = 50 * gb}};
  struct Away {
    [[nodiscard]] static std::string_view name() { return "away"; }
    [[nodiscard]] Route route(const RouterView& view, JobId job) const { return {1 - view.home(job)}; }
  };
  const std::vector<Cluster> clusters{one_node(8), one_node(8)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(Away{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  const std::vector<SiteAccount> accounts = site_accounts(federation);
  EXPECT_DOUBLE_EQ(accounts[0].egress_usd(), 0.9);
  EXPECT_DOUBLE_EQ(accounts[1].egress_usd(), 1.0);
  EXPECT_DOUBLE_EQ(accounts[0].network_kwh(), 0.6);         // 0.06 kWh/GB
  EXPECT_DOUBLE_EQ(accounts[0].network_carbon_kg(), 0.12);  // 100 s, half of them at 100 g/kWh, half at 300
  EXPECT_EQ(fault_of_sites(federation, accounts), std::nullopt);
}

TEST(Sites, JobsThatReadOneDataSetWaitForOneTransferOfIt) {
  const JobTable jobs = table_of_gangs({gang(0, 10, 1), gang(60, 10, 1), gang(500, 10, 1)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.data_sets = {{.name = "images", .bytes = gb, .at = {0}}};
  world.jobs.assign(3, {.home = 1, .data_set = 0});
  const std::vector<Cluster> clusters{one_node(8), one_node(8)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(LocalOnly{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.transfers().size(), 1u);
  EXPECT_EQ(federation.joined(JobId{0}), whole_seconds(100));
  EXPECT_EQ(federation.joined(JobId{1}), whole_seconds(100));
  EXPECT_EQ(federation.joined(JobId{2}), whole_seconds(500));
}

TEST(Sites, APipelineOverSitesMovesWhatItsStagesMake) {
  // The first stage runs at 0 until 100 s; what it makes, 2 GB, comes to 1 in 200 s, and the second stage runs there.
  JobRecord second = gang(0, 50, 1);
  second.id = "1";
  const std::vector<std::string> after{"0"};
  second.after = after;
  JobRecord first = gang(0, 100, 1);
  first.id = "0";
  const JobTable jobs = table_of_gangs({first, second});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs = {{.home = 0, .output_bytes = 2 * gb}, {.home = 1}};
  const std::vector<Cluster> clusters{one_node(8), one_node(8)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(LocalOnly{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.eligible(JobId{1}), whole_seconds(100));
  EXPECT_EQ(federation.joined(JobId{1}), whole_seconds(300));
  EXPECT_EQ(federation.engine(1).end(JobId{1}), whole_seconds(350));
}

TEST(Sites, WaitingJobsMoveWhenTheyAreRoutedAnew) {
  // Both are sent to 0 by the least load at first: each site is empty when the first comes, and the second is larger
  // than what is left. At 100 s the second is routed anew: 1 is empty. Its 1 GB takes 100 s.
  const JobTable jobs = table_of_gangs({gang(0, 1000, 3), gang(1, 10, 1), gang(2, 10, 2)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs.assign(3, {.home = 0, .bytes = gb});
  struct ByClock {  // home until 50 s
    [[nodiscard]] static std::string_view name() { return "by-clock"; }
    [[nodiscard]] Route route(const RouterView& view, JobId) const {
      return {view.now() < whole_seconds(50) ? 0u : 1u};
    }
  };
  const std::vector<Cluster> clusters{one_node(4), one_node(4)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(ByClock{}),
                        {.every = whole_seconds(100)});
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.site_of(JobId{0}), 0u);  // it runs, and stays
  EXPECT_EQ(federation.site_of(JobId{1}), 0u);
  EXPECT_EQ(federation.site_of(JobId{2}), 1u);
  EXPECT_EQ(federation.moves(JobId{2}), 1u);
  EXPECT_EQ(federation.joined(JobId{2}), whole_seconds(200));
  EXPECT_EQ(federation.engine(1).end(JobId{2}), whole_seconds(210));
  const std::vector<SiteAccount> accounts = site_accounts(federation);
  EXPECT_EQ(accounts[1].data_wait_us, whole_seconds(100).us) << "not its wait at the other site";
  EXPECT_EQ(fault_of_sites(federation, accounts), std::nullopt);
}

TEST(Sites, AJobThatIsOnItsWayForTooLongGoesOnWhenItArrives) {
  // Its home lacks its data set, which takes 100 s; after 50 s it is to go to the cloud, which has it.
  const JobTable jobs = table_of_gangs({gang(0, 10, 1)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.data_sets = {{.name = "images", .bytes = gb, .at = {1}}};
  world.jobs = {{.home = 0, .data_set = 0}};
  const std::vector<Cluster> clusters{one_node(4), cloud_for(jobs)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})),
                        AnyRouter(BurstRouter{.policy = {BurstWait::constant, 50.0 / 3600}, .cloud = 1}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.site_of(JobId{0}), 1u);
  EXPECT_EQ(federation.joined(JobId{0}), whole_seconds(100));
}

TEST(Sites, AJobThatMayNotRunAtHomeGoesToTheCloudAtOnce) {
  const JobTable jobs = table_of_gangs({gang(0, 10, 4)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs = {{.home = 0}};
  const std::vector<Cluster> clusters{one_node(2), cloud_for(jobs)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})),
                        AnyRouter(BurstRouter{.policy = {BurstWait::constant, 50.0 / 3600}, .cloud = 1}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.site_of(JobId{0}), 1u);
  EXPECT_EQ(federation.joined(JobId{0}), Time{});
}

TEST(Sites, AJobThatWentToTheCloudStaysThereWhenItIsRoutedAnew) {
  // The first holds the only GPU at home; the second goes when it waited for 50 s.
  const JobTable jobs = table_of_gangs({gang(0, 1000, 1), gang(0, 100, 1)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs.assign(2, {.home = 0});
  const std::vector<Cluster> clusters{one_node(1), cloud_for(jobs)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})),
                        AnyRouter(BurstRouter{.policy = {BurstWait::constant, 50.0 / 3600}, .cloud = 1}),
                        {.every = whole_seconds(10), .most_moves = 3, .moves_running = true});
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.moves(JobId{1}), 1u);
  EXPECT_EQ(federation.engine(1).end(JobId{1}), whole_seconds(150));
}

TEST(Sites, NodesFailWhileAJobIsOnItsWay) {
  // Its data takes 100 s; the only node at its site is down from 10 s to 40 s.
  const JobTable jobs = table_of_gangs({gang(0, 20, 2)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs = {{.home = 0, .bytes = gb}};
  const std::vector<Cluster> clusters{one_node(2), one_node(2)};
  NodeFailures failures;
  const std::vector<NodeChange> changes{{whole_seconds(10), NodeId{0}, false}, {whole_seconds(40), NodeId{0}, true}};
  failures.add_changes(changes);
  std::vector<SiteSetup> sites = setups(clusters, AnyPolicy(Fifo{}));
  sites[1].inputs.failures = &failures;
  Federation federation(jobs, world, sites, AnyRouter(AllTo{1}));
  std::vector<Time> instants;
  const auto watch = [&](SiteId site, const OracleView& view, std::span<const Event>) {
    if (site == 1) instants.push_back(view.now());
  };
  ASSERT_EQ(federation.run(watch), FederationEnd::finished);
  EXPECT_EQ(instants.front(), whole_seconds(10));
  EXPECT_TRUE(std::is_sorted(instants.begin(), instants.end()));
  EXPECT_EQ(federation.engine(1).end(JobId{0}), whole_seconds(120));
  EXPECT_EQ(federation.engine(1).ran(JobId{0}), whole_seconds(20));
}

TEST(Sites, WhoLooksAheadLeavesJobsOfOtherSitesAlone) {
  // The first runs at 1, and the last waits for it; at 0 the third waits for the second, which a portfolio plays
  // forward.
  JobRecord last = gang(2, 10, 1), first = gang(0, 100, 2);
  first.id = "first";
  const std::vector<std::string> after{"first"};
  last.after = after;
  const JobTable jobs = table_of_gangs({first, gang(1, 50, 2), gang(1, 50, 2), last});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs.assign(4, {.home = 0});
  world.jobs[0].home = 1;
  const std::vector<Cluster> clusters{one_node(2), one_node(2)};
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto specs = parse_policy_list("portfolio{every_s=1}");
  std::vector<SiteSetup> sites;
  for (const Cluster& cluster : clusters) {
    sites.push_back(
        {.cluster = &cluster, .policy = *registry.make(specs->front(), {.jobs = &jobs, .cluster = &cluster})});
  }
  Federation federation(jobs, world, sites, AnyRouter(LocalOnly{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(federation.engine(0).end(JobId{3}), whole_seconds(111));
}

TEST(Sites, ARouterThatSendsAJobWhereItCannotRunEndsTheRun) {
  const JobTable jobs = table_of_gangs({gang(0, 10, 8)});
  const SiteWorld world = linked_sites(2, link_of(80));
  const std::vector<Cluster> clusters{one_node(8), one_node(4)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(AllTo{1}));
  EXPECT_EQ(federation.run(nobody_watches), FederationEnd::wrong_router);
  EXPECT_EQ(federation.wrong_route(), JobId{0});
}

TEST(Sites, RoutersChooseAsTheirRulesSay) {
  const JobTable jobs = table_of_gangs({gang(0, 100, 6), gang(1, 100, 1), gang(2, 50, 2)});
  SiteWorld world = linked_sites(3, link_of(80));
  world.jobs.assign(3, {.home = 0});
  world.jobs[1].home = 1;
  const double carbon[] = {300, 200, 250}, price[] = {30, 50, -5};
  for (SiteId site = 0; site < 3; ++site) {
    world.sites[site].carbon_g_per_kwh = Signal(carbon[site]);
    world.sites[site].usd_per_mwh = Signal(price[site]);
  }
  const std::vector<Cluster> clusters{one_node(8), one_node(4), one_node(3)};
  Federation federation(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(LocalOnly{}));
  struct Ask {  // when the third job comes: 2 GPUs are free at its home, 3 at each of the others
    std::vector<SiteId>* answers;
    [[nodiscard]] static std::string_view name() { return "ask"; }
    [[nodiscard]] Route route(const RouterView& view, JobId job) const {
      if (index(job) == 2) {
        *answers = {LocalOnly{}.route(view, job).site,
                    MostAvailable{}.route(view, job).site,
                    LeastLoaded{}.route(view, job).site,
                    ShortestCompletion{}.route(view, job).site,
                    LowestSignal{SiteSignal::carbon}.route(view, job).site,
                    LowestSignal{SiteSignal::price}.route(view, job).site,
                    NearestInTime{}.route(view, job).site};
      }
      return {view.home(job)};
    }
  };
  std::vector<SiteId> answers;
  Federation asked(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(Ask{&answers}));
  ASSERT_EQ(asked.run(nobody_watches), FederationEnd::finished);
  EXPECT_EQ(answers, (std::vector<SiteId>{0, 1, 2, 0, 1, 2, 0}));
}

// ---- one site ----

struct Outcome {
  bool finished = false;
  std::uint64_t history = 0, events = 0;
  std::vector<Time> starts, ends, ran;
  SiteSum meter = 0, jobs = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcome_of(const Engine& engine, bool finished, std::uint64_t history) {
  Outcome outcome{
      .finished = finished, .history = history, .events = engine.events_seen(), .starts = {}, .ends = {}, .ran = {}};
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    outcome.starts.push_back(engine.first_start(JobId{i}));
    outcome.ends.push_back(engine.end(JobId{i}));
    outcome.ran.push_back(engine.ran(JobId{i}));
  }
  if (engine.knows_power()) {
    outcome.meter = engine.power().meter().nj;
    outcome.jobs = engine.power().jobs_bill().nj;
  }
  return outcome;
}

JobTable drawn_jobs(Rng& rng, bool in_pipelines = true) {
  JobTableBuilder builder;
  std::int64_t submit = 0;
  const std::uint64_t count = 2 + rng.below(25);
  for (std::uint64_t i = 0; i < count; ++i) {
    JobRecord job =
        gang(submit, 1 + static_cast<std::int64_t>(rng.below(60)), 1 + static_cast<std::uint32_t>(rng.below(6)));
    const std::string id = std::to_string(i), user = "u" + std::to_string(rng.below(3));
    job.id = id;
    job.user = job.group = user;
    job.priority = static_cast<std::int32_t>(rng.below(3));
    job.deadline = job.submit + job.work + job.work;
    job.start = job.submit;
    std::vector<std::string> after;
    if (in_pipelines && i > 0 && rng.below(5) == 0) after.push_back(std::to_string(rng.below(i)));
    job.after = after;
    if (!after.empty() && rng.below(3) == 0) {
      job.after_delay = whole_seconds(static_cast<std::int64_t>(rng.below(90)));
    }
    builder.add(job);
    submit += static_cast<std::int64_t>(rng.below(12));
  }
  auto table = std::move(builder).build();
  EXPECT_TRUE(table);
  return *std::move(table);
}

// Sleeping nodes and a cap that is low for a minute.
PowerModel drawn_power(const Cluster& cluster) {
  PowerModel model;
  model.gpus = {{.load = {.idle_w = 30, .full_w = 300}}};
  model.kinds = {{.base_w = 100, .sleep = {.after = whole_seconds(20), .asleep_w = 5, .wake = whole_seconds(3)}}};
  model.kind_of.assign(cluster.nodes.size(), 0);
  model.places = {{.carbon_g_per_kwh = Signal(std::vector<Signal::Step>{{Time{}, 1000}, {whole_seconds(40), 2000}})}};
  const auto low = Signal::to_micro(900), high = Signal::to_micro(9000);
  model.caps = {{.watts = Signal(
                     std::vector<Signal::Step>{{Time{}, high}, {whole_seconds(30), low}, {whole_seconds(90), high}})}};
  model.rule = CapRule::admit;
  return model;
}

TEST(Sites, AFederationOfOneSiteIsItsReplayUnderEveryPolicy) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  std::uint32_t compared = 0;
  for (const PolicyInfo& info : registry.rows()) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Rng rng = Rng(seed).split("one site").split(info.name);
      // A policy that plays the present forward sees jobs come there that wait for others; a site knows nothing of
      // them.
      const JobTable jobs = drawn_jobs(rng, info.name != "portfolio");
      const Cluster cluster{.nodes = std::vector<Node>(3, Node{.gpus = 4})};
      const PolicySpec spec{.text = info.name, .name = info.name, .given = {}};
      const PolicyContext context{.jobs = &jobs, .cluster = &cluster, .seed = seed};
      auto policy = registry.make(spec, context);
      if (!policy) continue;  // it needs a file, or a column that these jobs lack
      EngineOptions options{.seed = seed};
      options.preemption = {.checkpoint = whole_seconds(1), .restart = whole_seconds(2)};
      NodeFailures failures;
      const std::vector<NodeChange> changes{{.time = whole_seconds(15), .node = NodeId{1}, .up = false},
                                            {.time = whole_seconds(70), .node = NodeId{1}, .up = true},
                                            {.time = whole_seconds(100'000), .node = NodeId{2}, .up = false}};
      failures.add_changes(changes);
      const PowerModel power = drawn_power(cluster);
      const RunInputs inputs{.failures = seed == 1 ? &failures : nullptr, .power = seed == 2 ? &power : nullptr};

      Engine engine(jobs, cluster, options, inputs);
      HistoryHash history;
      AnyPolicy alone = *policy;
      const bool finished = simulate(engine, alone, history);
      if (!finished) continue;  // a policy of throughputs, say, may leave jobs for ever

      SiteWorld world;
      world.sites = {{.name = "only"}};
      const std::vector<SiteSetup> sites{
          {.cluster = &cluster, .policy = *policy, .options = options, .inputs = inputs}};
      for (const AnyRouter& router : {AnyRouter(LeastLoaded{}), AnyRouter(LocalOnly{})}) {
        Federation federation(jobs, world, sites, router);
        HistoryHash same;
        const FederationEnd end = federation.run(
            [&](SiteId, const OracleView& view, std::span<const Event> events) { same.observe(view, events); });
        ASSERT_EQ(outcome_of(federation.engine(0), end == FederationEnd::finished, same.value()),
                  outcome_of(engine, finished, history.value()))
            << info.name << " seed " << seed << " " << router.name();
        ASSERT_TRUE(federation.consistent());
        ASSERT_EQ(fault_of_sites(federation, site_accounts(federation)), std::nullopt) << info.name << " seed " << seed;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 100u);
}

// As LocalOnly, which says that it looks at no site.
struct LocalToo {
  [[nodiscard]] static std::string_view name() { return "local-too"; }
  [[nodiscard]] Route route(const RouterView& view, JobId job) const { return {view.home(job)}; }
};

// What each site saw, where each job ended, and how it stands if the run was stopped on the way.
std::vector<std::uint64_t> story_of(const JobTable& jobs, const SiteWorld& world, const std::vector<SiteSetup>& sites,
                                    const AnyRouter& router, std::uint32_t stops) {
  Federation federation(jobs, world, sites, router);
  std::vector<HistoryHash> histories(sites.size());
  const auto watch = [&](SiteId site, const OracleView& view, std::span<const Event> events) {
    histories[site].observe(view, events);
  };
  FederationEnd end = FederationEnd::stopped;
  while (end == FederationEnd::stopped) {
    end = federation.run(watch, [&] { return stops > 0 && stops-- > 0; });
    EXPECT_TRUE(federation.consistent());
  }
  if (end == FederationEnd::goes_on) return {};
  std::vector<std::uint64_t> story;
  for (const HistoryHash& history : histories) story.push_back(history.value());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const SiteId site = federation.site_of(job);
    story.push_back(site);
    for (const Time time : {federation.eligible(job), federation.joined(job), federation.engine(site).end(job)})
      story.push_back(static_cast<std::uint64_t>(time.us));
  }
  return story;
}

TEST(Sites, SitesThatHaveNothingToDoWithEachOtherRunAsTheyWouldTogether) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const std::vector<Cluster> clusters{one_node(8), one_node(6), one_node(8)};
  std::size_t compared = 0;
  for (const PolicyInfo& info : registry.rows()) {
    Rng rng = Rng(7).split(info.name);
    const JobTable jobs = drawn_jobs(rng, false);
    SiteWorld world = linked_sites(3, link_of(80, 0.5));
    for (std::uint32_t i = 0; i < jobs.size(); ++i)
      world.jobs.push_back({.home = static_cast<SiteId>(rng.below(3)), .bytes = gb / 50});
    std::vector<SiteSetup> sites;
    for (const Cluster& cluster : clusters) {
      auto policy =
          registry.make({.text = info.name, .name = info.name, .given = {}}, {.jobs = &jobs, .cluster = &cluster});
      if (policy) sites.push_back({.cluster = &cluster, .policy = *policy});
    }
    if (sites.size() < clusters.size()) continue;
    const auto together = story_of(jobs, world, sites, AnyRouter(LocalToo{}), 0);
    EXPECT_EQ(story_of(jobs, world, sites, AnyRouter(LocalOnly{}), 0), together) << info.name;
    EXPECT_EQ(story_of(jobs, world, sites, AnyRouter(LocalOnly{}), 1), together) << info.name;
    ++compared;
  }
  EXPECT_GT(compared, 30u);
}

TEST(Sites, ARunningJobMovesWithItsCheckpointAndPaysItsRestartThere) {
  // It runs at 0 from 0 s. At 100 s the other site's electricity is cleaner: a checkpoint of 1 GB follows it at 80
  // Mbps, 100 s and a round trip of 1 s. Its restart takes 20 s, and 200 of its 300 s of work are left: it ends at 421
  // s.
  const JobTable jobs = table_of_gangs({gang(0, 300, 2)});
  SiteWorld world = linked_sites(2, link_of(80, 1, 0.05));
  world.jobs = {{.home = 0, .checkpoint_bytes = gb}};
  world.sites[0].carbon_g_per_kwh = Signal({{Time{}, 100}, {whole_seconds(50), 300}});
  world.sites[1].carbon_g_per_kwh = Signal({{Time{}, 200}});
  world.sites[0].usd_per_gpu_h = 3.6;
  world.sites[1].usd_per_gpu_h = 36;
  const std::vector<Cluster> clusters{one_node(4), one_node(4)};
  std::vector<SiteSetup> sites = setups(clusters, AnyPolicy(Fifo{}));
  for (SiteSetup& site : sites) site.options.preemption.restart = whole_seconds(20);
  for (const bool moves_running : {true, false}) {
    Federation federation(jobs, world, sites, AnyRouter(LowestSignal{}),
                          {.every = whole_seconds(100), .moves_running = moves_running});
    ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
    const SiteId last = moves_running ? 1 : 0;
    EXPECT_EQ(federation.site_of(JobId{0}), last);
    EXPECT_EQ(federation.engine(last).end(JobId{0}), whole_seconds(moves_running ? 421 : 300));
    EXPECT_EQ(federation.transfers().size(), moves_running ? 1u : 0u);
    const std::vector<SiteAccount> accounts = site_accounts(federation);
    EXPECT_EQ(fault_of_sites(federation, accounts), std::nullopt);
    // Two GPUs at 0.001 and 0.01 USD a second.
    EXPECT_DOUBLE_EQ(accounts[0].rent_usd(), moves_running ? 0.2 : 0.6);
    EXPECT_DOUBLE_EQ(accounts[1].rent_usd(), moves_running ? 4.4 : 0);
    EXPECT_DOUBLE_EQ(accounts[0].egress_usd(), moves_running ? 0.05 : 0);
    if (moves_running) {
      EXPECT_EQ(static_cast<std::int64_t>(federation.engine(1).gpu_time(JobId{0}).overhead),
                2000 * std::int64_t{20'000'000});
      EXPECT_EQ(static_cast<std::int64_t>(accounts[1].wait_us), 101'000'000);
    }
  }
}

TEST(Sites, IdleSitesMeterUntilTheLastJobAnywhereEnds) {
  const JobTable jobs = table_of_gangs({gang(0, 10, 1), gang(0, 1000, 1)});
  SiteWorld world = linked_sites(2, link_of(80));
  world.jobs = {{.home = 0}, {.home = 1}};
  const std::vector<Cluster> clusters{one_node(1), one_node(1)};
  PowerModel power;
  power.gpus = {{.load = {.idle_w = 0, .full_w = 100}}};
  power.kinds = {{.base_w = 50, .sleep = {.after = whole_seconds(100), .asleep_w = 10}}};
  power.kind_of = {0};
  std::vector<SiteSetup> sites = setups(clusters, AnyPolicy(Fifo{}));
  for (SiteSetup& site : sites) site.inputs.power = &power;
  Federation federation(jobs, world, sites, AnyRouter(LocalOnly{}));
  ASSERT_EQ(federation.run(nobody_watches), FederationEnd::finished);
  const std::vector<SiteAccount> accounts = site_accounts(federation);
  EXPECT_EQ(fault_of_sites(federation, accounts), std::nullopt);
  // 10 s busy, 100 s idle, asleep for the rest of the 1000 s: 150 x 10 + 50 x 100 + 10 x 890 J.
  EXPECT_DOUBLE_EQ(accounts[0].bill.kwh() * 3.6e6, 1500 + 5000 + 8900);
  EXPECT_DOUBLE_EQ(accounts[1].bill.kwh() * 3.6e6, 150'000);
}

TEST(Sites, ACopyRunsOnAsTheOriginal) {
  Rng rng = Rng(1).split("copy");
  const JobTable jobs = drawn_jobs(rng);
  SiteWorld world = linked_sites(3, link_of(80, 0.5));
  for (std::uint32_t i = 0; i < jobs.size(); ++i) world.jobs.push_back({.home = i % 3, .bytes = gb / 50});
  const std::vector<Cluster> clusters{one_node(8), one_node(8), one_node(8)};
  Federation whole(jobs, world, setups(clusters, AnyPolicy(Fifo{})), AnyRouter(LeastLoaded{}));
  Federation copy = whole;
  std::uint32_t looks = 0;
  const auto soon = [&] { return ++looks > 0; };  // after the first 256 steps, or at the end
  whole.run(nobody_watches);
  copy.run(nobody_watches, soon);
  Federation rest = copy;
  rest.run(nobody_watches);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    EXPECT_EQ(rest.site_of(job), whole.site_of(job));
    EXPECT_EQ(rest.engine(rest.site_of(job)).end(job), whole.engine(whole.site_of(job)).end(job));
  }
}

}  // namespace
}  // namespace gpusched::test
