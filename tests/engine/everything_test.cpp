// SPDX-License-Identifier: Apache-2.0
// Devices that differ, racks, shares that slow each other or take turns, cut cards, failing nodes, checkpoints, nodes
// that sleep, power limits and caps, limits of run times, and services or studies at once.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/data/mig.hpp"
#include "gpusched/engine/engine.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/engine/stays.hpp"
#include "tests/engine/study_support.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

// Two racks: dynamic and fixed A100s; T4s in turns and at once.
Cluster mixed_cluster() {
  Cluster cluster;
  cluster.name = "mixed";
  cluster.gpu_types = {"A100-40GB", "T4"};
  cluster.devices = {{.memory_mib = 40 * 1024}, {.memory_mib = 16 * 1024}};
  const MigModel& a100 = mig_models[find_mig_model("A100-40GB")];
  const std::vector<std::uint32_t> profiles{a100.find("3g.20gb"), a100.find("2g.10gb"), a100.find("1g.5gb")};
  const std::vector<std::uint32_t> whole{a100.find("7g.40gb")};
  cluster.migs = {{.model = find_mig_model("A100-40GB"), .layout = MigLayout::dynamic, .reconfigure = whole_seconds(3)},
                  {.model = find_mig_model("A100-40GB"),
                   .cards = {place_mig_instances(a100, profiles), place_mig_instances(a100, whole)}}};
  for (std::uint32_t rack = 0; rack < 2; ++rack) {
    cluster.nodes.push_back({.gpus = 2, .rack = rack, .mig = 0});
    cluster.nodes.push_back({.gpus = 2, .rack = rack, .mig = 1});
    cluster.nodes.push_back({.gpus = 2, .gpu_type = 1, .rack = rack, .sharing = SharingMode::time_slicing});
    cluster.nodes.push_back({.gpus = 2, .gpu_type = 1, .rack = rack});
  }
  return cluster;
}

std::vector<Row> some_jobs(Rng& rng) {
  constexpr std::string_view specs[] = {"A100-40GB", "A100-40GB@9GiB", "T4", "T4@7GiB", ""};
  constexpr MilliGpu milli[] = {100, 142, 285, 400, 1000, 1000};
  std::vector<Row> rows;
  std::int64_t submit = 0;
  for (int i = 0; i < 24; ++i) {
    rows.push_back(
        {.submit = submit,
         .work = 1 + static_cast<std::int64_t>(rng.below(40)),
         .gpu_spec = specs[rng.below(5)],
         .family = rng.below(2) == 0 ? "a" : "b",
         .shape = {.tasks = 1 + static_cast<std::uint32_t>(rng.below(3)), .gpu_milli_per_task = milli[rng.below(6)]},
         .estimate = 1 + static_cast<std::int64_t>(rng.below(150))});
    submit += static_cast<std::int64_t>(rng.below(6));
  }
  return rows;
}

// Two replicas all the time, and up to two that come and go; requests for as long as the jobs come.
ServiceModel some_services(Rng rng) {
  std::vector<std::pair<double, double>> requests[2];
  for (auto& own : requests) {
    double at = 0;
    for (int i = 0; i < 60; ++i) own.emplace_back(at += rng.exponential(2), rng.exponential(3));
  }
  ServiceModel model{.services = {service_of(requests[0], 2), service_of(requests[1], 2)}};
  ServiceSpec& second = model.services[1];
  second.name = "t";
  const ReplicaLimits limits{.least = 0, .most = 2};
  switch (rng.below(3)) {
    case 0: second.autoscaler = Autoscaler(Kpa({.limits = limits, .concurrency = 1})); break;
    case 1:
      second.autoscaler =
          Autoscaler(FunctionReplicas({.limits = limits, .keep_alive = FixedKeepAlive(whole_seconds(6))}));
      break;
    default:
      second.autoscaler = Autoscaler(FunctionReplicas(
          {.limits = limits, .keep_alive = HistogramKeepAlive({.bin = whole_seconds(1), .least_samples = 3})}));
  }
  second.cold_start = whole_seconds(5);
  second.warm_start = whole_seconds(1);
  second.keep_warm = whole_seconds(30);
  second.timeout = whole_seconds(9);
  second.lost = LostRequests::drop;
  return model;
}

// A search that promotes trials and one that stops them, with losses that fall.
StudyModel some_studies() {
  const TrialRungs rungs{.least = 4, .most = 16, .eta = 2};
  const auto loss = [](std::uint32_t trial, TrialUnits units) {
    return trial * 7 % 10 - static_cast<double>(units) / (1 + trial % 3);
  };
  StudyModel model{.studies = {study_of(AshaByPromotion(rungs, 12), rungs, 4, loss),
                               study_of(AshaByStopping(rungs, 9), rungs, 3, loss)}};
  model.studies[1].begin = whole_seconds(40);
  return model;
}

RuntimeModel some_speeds(const JobTable& jobs, Rng& rng) {
  const auto families = static_cast<std::uint32_t>(jobs.families().size());
  RuntimeModel model(families, 2);
  SpanModel spans(families, 2);
  const auto drawn = [&] { return reference_rate / 2 + static_cast<RatePpm>(rng.below(reference_rate)); };
  for (std::uint32_t family = 0; family < families; ++family) {
    for (std::uint32_t type = 0; type < 2; ++type) {
      model.set(family, type, drawn());
      spans.set(family, type, {reference_rate, reference_rate, drawn(), drawn(), drawn()});
      for (std::uint32_t beside = 0; beside < families; ++beside) {
        model.set_extra(family, beside, type, static_cast<std::uint32_t>(rng.below(reference_rate)));
      }
    }
  }
  model.set_spans(std::move(spans));
  return model;
}

NodeFailures some_failures(const Cluster& cluster) {
  NodeFailures failures;
  const std::uint32_t nodes = failures.add_law({.mean_up_s = 400, .detect_s = 2, .mean_repair_s = 20});
  const std::uint32_t switches = failures.add_law({.mean_up_s = 2000, .mean_repair_s = 10});
  std::vector<NodeId> racks[2];
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const NodeId node{i};
    failures.add_unit(nodes, {&node, 1});
    racks[cluster.nodes[i].rack].push_back(node);
  }
  for (const std::vector<NodeId>& rack : racks) failures.add_unit(switches, rack);
  return failures;
}

// Limits of power for every type, nodes of one rack that sleep, signals, and caps of all nodes and of a rack under
// which any job may run alone.
PowerModel some_power(const Cluster& cluster, const JobTable& jobs, Rng& rng) {
  PowerModel model;
  for (std::uint32_t type = 0; type < 2; ++type) {
    model.gpus.push_back({.load = {.idle_w = 30 + 10.0 * type, .full_w = 280, .exponent = 0.5 + 0.5 * type},
                          .limits = {{.limit_w = 150, .draw = 0.45, .speed = 700'000},
                                     {.limit_w = 210, .draw = 0.75, .speed = 900'000},
                                     {.limit_w = 300}}});
  }
  for (std::size_t i = 0; i < jobs.families().size() * 2; ++i) {
    model.families.push_back({.full_w = 180.0 + static_cast<double>(rng.below(100)), .busy_share = 0.8});
  }
  model.kinds = {{.base_w = 50, .cpu = {.idle_w = 20, .full_w = 120}, .cpus = 2}, {}};
  model.kinds[1] = model.kinds[0];
  model.kinds[1].sleep = {.after = whole_seconds(7), .asleep_w = 9, .wake = whole_seconds(3), .wake_j = 600};
  for (const Node& node : cluster.nodes) model.kind_of.push_back(node.rack);
  model.losses = {.gain = 0.2, .fixed_w = 31};
  std::vector<Signal::Step> steps;
  for (std::int64_t at = 0; at < 400; at += 17) {
    steps.push_back({whole_seconds(at), static_cast<std::int64_t>(rng.below(600'000'000))});
  }
  model.places = {{.carbon_g_per_kwh = Signal(steps), .usd_per_mwh = Signal(-20)}};
  for (const Node& node : cluster.nodes) {
    model.rents.push_back({.usd_per_gpu_h = 1 + 0.37 * node.gpu_type, .when_idle = node.rack == 1});
  }
  constexpr double all_idle_w = 8 * 90 + 8 * 30 + 8 * 40, rack_idle_w = all_idle_w / 2;
  constexpr double job_w = 3 * (260 + 200) + 200 * 4;  // busy GPUs, processors and waking
  model.caps = {{.watts = Signal(all_idle_w + job_w), .nodes = {}},
                {.watts = Signal(rack_idle_w + job_w), .nodes = {0, 1, 2, 3}}};
  model.rule = static_cast<CapRule>(rng.below(4));
  return model;
}

// After every instant no part of a GPU has two owners or none, no job is lost, and each stored rate is the product of
// its factors (Engine::consistent()), and no cap is exceeded; at the end the time that jobs ran is useful, overhead or
// lost, and all bills add up to the meter's.
TEST(EverythingOn, NothingIsLostAndEveryRateIsItsProduct) {
  Cluster cluster = mixed_cluster();
  const NodeFailures failures = some_failures(cluster);
  std::uint64_t kills = 0, changes = 0, slowed = 0, asleep = 0, limited = 0, answered = 0, lost = 0, told = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(150); ++seed) {
    Rng rng(seed);
    ServiceModel services = some_services(rng.split("services"));
    const bool serves = seed % 3 == 0, searches = seed % 3 == 1;
    StudyModel studies = some_studies();
    const std::vector<Row> rows = some_jobs(rng);
    const JobTable jobs = serves     ? with_services(services, rows, "a")
                          : searches ? with_studies(studies, rows, {}, "a")
                                     : table_of(rows);
    constexpr std::uint32_t most_running = 4;  // jobs and replicas, in a third of the worlds
    cluster.limits.clear();
    if (seed / 3 % 3 == 0) cluster.limits = {{.most = {.jobs = most_running}}};
    const RuntimeModel model = some_speeds(jobs, rng);
    Rng power_rng = rng.split("power");
    const PowerModel power = some_power(cluster, jobs, power_rng);
    const PreemptionCost cost{.checkpoint = whole_seconds(1),
                              .restart = whole_seconds(2),
                              .checkpoint_interval = whole_seconds(static_cast<std::int64_t>(rng.below(3)) * 5),
                              .periodic_checkpoint = Time{500'000}};
    Engine engine(jobs, cluster, {.preemption = cost, .seed = seed},
                  {.runtime = &model,
                   .failures = &failures,
                   .power = &power,
                   .services = serves ? &services : nullptr,
                   .studies = searches ? &studies : nullptr,
                   .kill_at_limit = seed % 2 == 0});
    Restless policy{rng.split("policy")};
    Decision decision = engine.decision();
    while (engine.advance()) {
      policy.decide(engine.view(), decision);
      engine.apply();
      ASSERT_TRUE(engine.consistent()) << "seed " << seed << " at " << to_seconds(engine.view().now());
      ASSERT_LT(to_seconds(engine.view().now()), 1e6) << "seed " << seed;
      ASSERT_GE(engine.power().caps().headroom_mw(), 0) << "seed " << seed;
      std::uint32_t running = 0;
      for (const JobId job : engine.view().running()) {
        slowed += engine.power().level(job) < 2;
        running += index(job) < jobs.replicas() || index(job) >= jobs.in_front();
      }
      ASSERT_TRUE(cluster.limits.empty() || running <= most_running) << "seed " << seed;
    }
    ASSERT_TRUE(engine.all_finished()) << "seed " << seed;
    for (std::uint32_t i = 0; serves && i < 2; ++i) {
      const RequestCounts& counts = engine.services().requests(i).counts();
      ASSERT_EQ(counts.completed + counts.dropped + counts.timed_out, 60u) << "seed " << seed;
      answered += counts.completed;
      lost += counts.dropped;
    }
    for (std::uint32_t i = 0; searches && i < 2; ++i) {
      ASSERT_LT(engine.studies().closed(i), Time::max()) << "seed " << seed;
      ASSERT_GE(engine.studies().results(i).size(), i == 0 ? 12u : 9u) << "seed " << seed;
      told += engine.studies().results(i).size();
    }
    for (std::uint32_t i = jobs.in_front(); i < jobs.size(); ++i) {
      const JobId job{i};
      kills += engine.kills(job);
      limited += engine.is_ended_at_limit(job) ? 1 : 0;
      if (engine.has_time_limits() && engine.kills(job) == 0) {
        EXPECT_LE(engine.ran(job), jobs.estimate(job));
      }
      EXPECT_GE(engine.overhead(job), Time{});
      EXPECT_GE(engine.lost(job), Time{});
      const Time spent = engine.overhead(job) + engine.lost(job);
      if (engine.is_ended_at_limit(job)) {  // perhaps before it did any work
        EXPECT_LE(spent, engine.ran(job)) << "seed " << seed << " job " << i;
      } else {
        EXPECT_LT(spent, engine.ran(job)) << "seed " << seed << " job " << i;
      }
    }
    changes += engine.reconfigurations();
    ASSERT_TRUE(engine.power().adds_up()) << "seed " << seed;
    asleep += engine.power().bill(BillOf::asleep).nj > 0;
    for (std::uint32_t cap = 0; cap < 2; ++cap) {
      ASSERT_EQ(engine.power().caps().excess(cap), detail::CapExcess{}) << "seed " << seed;
    }
  }
  EXPECT_GT(kills, 150U);
  EXPECT_GT(changes, 150U * 8);
  EXPECT_GT(slowed, 150U);
  EXPECT_GT(asleep, 75U);
  EXPECT_GT(limited, 150U);
  EXPECT_GT(answered, 3000U);
  EXPECT_GT(lost, 50U);
  EXPECT_GT(told, 50U * 30);
}

}  // namespace
}  // namespace gpusched::test
