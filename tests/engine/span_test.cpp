// SPDX-License-Identifier: Apache-2.0
// Gangs whose tasks are apart: how far apart they are, and how much slower that makes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/policies/orders/fifo.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

using gpusched::Span;  // not the span of time of run_support.hpp
using Times = std::vector<gpusched::test::Span>;

constexpr std::uint32_t anyone = no_index;

/// 8 nodes of 4 GPUs in islands of 2: racks of two nodes, sites of two racks.
Cluster two_sites() {
  Cluster cluster = Cluster::homogeneous(8, 4);
  for (std::uint32_t i = 0; i < 8; ++i) {
    cluster.nodes[i].rack = i / 2;
    cluster.nodes[i].island_gpus = 2;
  }
  cluster.rack_sites = {0, 0, 1, 1};
  return cluster;
}

Span span_on(const Cluster& cluster, const std::vector<NodeTasks>& choice) {
  const NameTable specs = table_of({{}}).gpu_specs();
  ClusterState state(cluster, specs, Rng{});
  Shape shape{.tasks = 0, .gpu_milli_per_task = whole_gpu};
  for (const NodeTasks& part : choice) shape.tasks += part.tasks;
  const std::uint32_t head = state.place_on(shape, anyone, choice.data(), choice.size());
  EXPECT_NE(head, no_index);
  return state.span_of(head);
}

TEST(Spans, AreTheWidestOfAnyTwoTasks) {
  const Cluster cluster = two_sites();
  const auto on = [](std::uint32_t node, std::uint32_t tasks) {
    return NodeTasks{.node = NodeId{node}, .tasks = tasks};
  };
  EXPECT_EQ(span_on(cluster, {on(0, 2)}), Span::node);
  EXPECT_EQ(span_on(cluster, {on(0, 3)}), Span::islands);
  EXPECT_EQ(span_on(cluster, {on(0, 4), on(1, 1)}), Span::nodes);
  EXPECT_EQ(span_on(cluster, {on(1, 1), on(2, 1)}), Span::racks);
  EXPECT_EQ(span_on(cluster, {on(0, 1), on(1, 1), on(3, 1)}), Span::racks);
  EXPECT_EQ(span_on(cluster, {on(3, 1), on(4, 1)}), Span::sites);
  EXPECT_EQ(span_on(cluster, {on(0, 1), on(7, 1), on(1, 1)}), Span::sites);
  EXPECT_EQ(cluster.widest_span(), Span::sites);
  EXPECT_EQ(Cluster::homogeneous(2, 8).widest_span(), Span::nodes);
  EXPECT_EQ(Cluster::pool(16).widest_span(), Span::node);
  EXPECT_EQ(span_on(Cluster::pool(16), {on(0, 16)}), Span::node);
}

TEST(Spans, TasksGoToOneIslandWhereItHoldsThem) {
  Cluster cluster = Cluster::homogeneous(1, 8);
  cluster.nodes.front().island_gpus = 4;
  const NameTable specs = table_of({{}}).gpu_specs();
  ClusterState state(cluster, specs, Rng{});
  const auto place = [&](std::uint32_t tasks) {
    const Shape shape{.tasks = tasks, .gpu_milli_per_task = whole_gpu};
    return state.place(shape, anyone, Placement::consolidate);
  };
  const std::uint32_t three = place(3);  // GPUs 0 to 2
  EXPECT_EQ(state.grant(three).devices, 0b0000'0111u);
  const std::uint32_t two = place(2);  // not 3 and 4
  EXPECT_EQ(state.grant(two).devices, 0b0011'0000u);
  const std::uint32_t one = place(1);  // the fullest island
  EXPECT_EQ(state.grant(one).devices, 0b0000'1000u);
  EXPECT_EQ(state.span_of(place(2)), Span::node);
}

TEST(Spans, ATaskOfSeveralGpusSpansIslandsToo) {
  Cluster cluster = Cluster::homogeneous(1, 8);
  cluster.nodes.front().island_gpus = 2;
  const NameTable specs = table_of({{}}).gpu_specs();
  ClusterState state(cluster, specs, Rng{});
  const std::uint32_t head =
      state.place({.tasks = 1, .gpu_milli_per_task = 4 * whole_gpu}, anyone, Placement::consolidate);
  EXPECT_EQ(state.span_of(head), Span::islands);
}

// ---- the rate ----

SpanModel spans_of_all(const JobTable& jobs, const SpanSpeeds& speeds) {
  SpanModel spans(jobs.families().size(), 1);
  for (std::uint32_t family = 0; family < jobs.families().size(); ++family) spans.set(family, 0, speeds);
  return spans;
}

constexpr SpanSpeeds halves{1'000'000, 800'000, 500'000, 250'000, 125'000};

TEST(SpanRate, AGangOfEightTakesLongerOnEightRacksThanOnOneNode) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 8}});
  RuntimeModel model;
  model.set_spans(spans_of_all(jobs, halves));
  EXPECT_FALSE(model.is_uniform());
  EXPECT_EQ(run(jobs, Cluster::homogeneous(1, 8), Fifo{}, {}, &model), (Times{{0, 100}}));
  Cluster apart = Cluster::homogeneous(8, 1);
  EXPECT_EQ(run(jobs, apart, Fifo{}, {}, &model), (Times{{0, 200}}));
  for (std::uint32_t i = 0; i < 8; ++i) apart.nodes[i].rack = i;
  EXPECT_EQ(run(jobs, apart, Fifo{}, {}, &model), (Times{{0, 400}}));
  apart.rack_sites = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(run(jobs, apart, Fifo{}, {}, &model), (Times{{0, 800}}));
  EXPECT_EQ(run(jobs, apart, Fifo{}), (Times{{0, 100}}));
}

TEST(SpanRate, ComesOnTopOfTheDevice) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 2}});
  RuntimeModel model(jobs.families().size(), 1);
  model.set(0, 0, 4 * reference_rate);
  model.set_spans(spans_of_all(jobs, halves));
  EXPECT_EQ(run(jobs, Cluster::homogeneous(2, 1), Fifo{}, {}, &model), (Times{{0, 50}}));
}

TEST(SpanRate, GangsOfASizeMayHaveFactorsOfTheirOwn) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 2}, {.submit = 100, .work = 10, .gpus = 3}});
  SpanModel spans = spans_of_all(jobs, halves);
  spans.set_for_gang(0, 3, 0, {1'000'000, 1'000'000, 100'000, 100'000, 100'000});
  RuntimeModel model;
  model.set_spans(std::move(spans));
  EXPECT_EQ(run(jobs, Cluster::homogeneous(3, 1), Fifo{}, {}, &model), (Times{{0, 20}, {100, 200}}));
}

TEST(SpanRate, EveryFactorIsRoundedDownOnceAndIsNeverZero) {
  EXPECT_EQ(scaled_rate(1'234'567, reference_rate), 1'234'567u);
  EXPECT_EQ(scaled_rate(333'333, 500'001), 166'666u);  // 166,666.8
  EXPECT_EQ(scaled_rate(1, 1), 1u);
  EXPECT_EQ(scaled_rate(4'000'000'000, 4'000'000'000), 4'294'967'295u);
}

// Consolidate keeps a gang in a rack, and racks of a site, as soon as being apart costs something.
TEST(SpanRate, ConsolidateKeepsGangsNear) {
  Cluster cluster = two_sites();
  for (Node& node : cluster.nodes) node.island_gpus = 0;
  cluster.nodes[0].gpus = 2;  // rack 0 holds 6
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 1, .gpus = 3}, {.submit = 0, .work = 1, .gpus = 6}, {.submit = 0, .work = 1, .gpus = 16}});
  RuntimeModel model;
  model.set_spans(spans_of_all(jobs, halves));
  const auto spans_under = [&](const RuntimeModel* runtime) {
    Engine engine(jobs, cluster, {}, runtime);
    engine.advance();
    Decision decision = engine.decision();
    std::vector<Span> spans;
    for (std::uint32_t job = 0; job < 3; ++job) {
      EXPECT_EQ(decision.start(JobId{job}), Verdict::ok);
      spans.push_back(engine.view().span(JobId{job}));
    }
    engine.apply();
    EXPECT_TRUE(engine.consistent());
    return spans;
  };
  // On nodes 1 to 7, 4 GPUs each, and node 0: 3 on node 1; 6 in rack 1, 2 or 3; 16 on all of the other site.
  EXPECT_EQ(spans_under(&model), (std::vector<Span>{Span::node, Span::nodes, Span::racks}));
  EXPECT_EQ(spans_under(nullptr).back(), Span::sites);
}

TEST(SpanRate, ViewsTellFactors) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 2, .family = "vgg"}});
  SpanModel spans(jobs.families().size(), 1);
  spans.set(jobs.families().find("vgg"), 0, halves);
  RuntimeModel model;
  model.set_spans(std::move(spans));
  const Engine engine(jobs, Cluster::homogeneous(1, 2), {}, &model);
  EXPECT_EQ(engine.view().span_speed(JobId{0}, 0, Span::racks), 250'000u);
  EXPECT_EQ(engine.view().span_speed(JobId{0}, 1, Span::racks), reference_rate);
  EXPECT_TRUE(engine.view().speeds(JobId{0}).empty());
  const Engine plain(jobs, Cluster::homogeneous(1, 2));
  EXPECT_EQ(plain.view().span_speed(JobId{0}, 0, Span::racks), reference_rate);
}

// ---- skew ----

TEST(SkewPlacement, KeepsSkewedFamiliesTogetherAndFillsUpWithOthers) {
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 1, .gpus = 2, .family = "vgg"}, {.submit = 0, .work = 1, .gpus = 2, .family = "resnet"}});
  SpanModel spans(jobs.families().size(), 1);
  spans.mark_skewed(jobs.families().find("vgg"));
  EXPECT_FALSE(spans.is_skewed(jobs.families().find("resnet")));
  RuntimeModel model;
  model.set_spans(std::move(spans));
  Cluster cluster = Cluster::homogeneous(4, 1);
  cluster.nodes[2].gpus = cluster.nodes[3].gpus = 3;
  Engine engine(jobs, cluster, {.placement = Placement::skew}, &model);
  engine.advance();
  Decision decision = engine.decision();
  EXPECT_EQ(engine.view().placement(JobId{0}), Placement::consolidate);
  EXPECT_EQ(engine.view().placement(JobId{1}), Placement::best_fit);
  EXPECT_EQ(decision.start(JobId{0}), Verdict::ok);
  EXPECT_EQ(engine.view().span(JobId{0}), Span::node);
  engine.apply();
  EXPECT_TRUE(engine.consistent());
}

// ---- any comings and goings ----

/// Starts, preempts and moves at random.
struct Wanderer {
  Rng rng;

  [[nodiscard]] static std::string_view name() { return "wanderer"; }

  void decide(const View& view, Decision& decision) {
    const std::vector<JobId> running(view.running().begin(), view.running().end());
    const std::vector<JobId> waiting(view.queue(0).begin(), view.queue(0).end());
    for (const JobId job : running) {
      const double what = rng.uniform();
      if (what < 0.1) {
        EXPECT_EQ(decision.preempt(job), Verdict::ok);
      } else if (what < 0.3) {
        EXPECT_EQ(decision.vacate(job), Verdict::ok);
        std::vector<NodeTasks> choice;
        for (std::uint32_t task = 0; task < view.shape(job).tasks; ++task) {
          choice.push_back(
              {.node = NodeId{static_cast<std::uint32_t>(rng.below(view.cluster().node_count()))}, .tasks = 1});
        }
        if (decision.move_on(job, choice) != Verdict::ok) {
          EXPECT_EQ(decision.preempt(job), Verdict::ok);
        }
      }
    }
    for (const JobId job : waiting) {
      if (rng.uniform() < 0.6) decision.start(job, Placement::random);
    }
    if (view.finished() < view.job_count()) {
      EXPECT_EQ(decision.wake(view.now() + Time{1 + static_cast<std::int64_t>(rng.below(9'000'000))}), Verdict::ok);
    }
  }
};

/// The speed of a running job from its grants and the model alone, every pair of tasks and every neighbour looked at.
double speed_of(const OracleView& view, const Cluster& cluster, const RuntimeModel& model, JobId job) {
  struct Seat {
    std::uint32_t node, device;
  };
  const auto seats_of = [&](JobId other) {
    std::vector<Seat> seats;
    view.for_each_grant(other, [&](const Grant& grant) {
      for (std::uint64_t bits = grant.devices; bits != 0; bits &= bits - 1) {
        seats.push_back({index(grant.node), static_cast<std::uint32_t>(std::countr_zero(bits))});
      }
    });
    return seats;
  };
  const std::vector<Seat> own = seats_of(job);
  std::size_t span = 0;
  for (const Seat& a : own) {
    for (const Seat& b : own) {
      const Node &node_a = cluster.nodes[a.node], &node_b = cluster.nodes[b.node];
      std::size_t between = a.device / node_a.island_gpus != b.device / node_b.island_gpus ? 1 : 0;
      if (a.node != b.node) between = 2;
      if (node_a.rack != node_b.rack) between = 3;
      if (cluster.rack_sites[node_a.rack] != cluster.rack_sites[node_b.rack]) between = 4;
      span = std::max(span, between);
    }
  }
  const std::uint32_t family = view.family(job);
  double slowest = 1e9;
  for (const Seat& seat : own) {
    const std::uint32_t type = cluster.nodes[seat.node].gpu_type;
    double speed = 1e-6 * model.rate(family, type) * 1e-6 *
                   model.spans().factor(family, view.shape(job), static_cast<Span>(span)).on(type);
    double slowdown = 1;
    for (const JobId other : view.running()) {
      std::uint32_t there = 0;
      for (const Seat& theirs : seats_of(other)) there += theirs.node == seat.node && theirs.device == seat.device;
      if (other == job) --there;
      slowdown += there * 1e-6 * model.extra(family, view.family(other), type);
    }
    slowest = std::min(slowest, speed / slowdown);
  }
  return slowest;
}

// Device x span x company, whoever comes, goes and moves; and a copy in mid-run goes on as the run does.
TEST(SpanRate, EveryJobDoesItsWorkAtTheProductOfItsFactors) {
  const Cluster cluster = [] {
    Cluster apart = two_sites();
    apart.gpu_types = {"V100", "T4"};
    for (std::uint32_t i = 0; i < 8; ++i) apart.nodes[i].gpu_type = i % 2;
    return apart;
  }();
  for (std::uint64_t seed = 1; seed <= random_runs(40); ++seed) {
    Rng rng(seed);
    std::vector<Row> rows;
    std::int64_t submit = 0;
    for (int i = 0; i < 16; ++i) {
      constexpr MilliGpu milli[] = {300, 500, 1000, 1000, 2000};
      constexpr std::string_view families[] = {"a", "b", ""};
      rows.push_back({.submit = submit,
                      .work = 1 + static_cast<std::int64_t>(rng.below(30)),
                      .family = families[rng.below(3)],
                      .shape = {.tasks = 1 + static_cast<std::uint32_t>(rng.below(5)),
                                .gpu_milli_per_task = milli[rng.below(5)]}});
      submit += static_cast<std::int64_t>(rng.below(4));
    }
    const JobTable jobs = table_of(rows);
    RuntimeModel model(jobs.families().size(), 2);
    SpanModel spans(jobs.families().size(), 2);
    for (std::uint32_t family = 0; family < jobs.families().size(); ++family) {
      for (std::uint32_t type = 0; type < 2; ++type) {
        const auto drawn = [&] { return reference_rate / 3 + static_cast<RatePpm>(rng.below(reference_rate)); };
        model.set(family, type, drawn());
        spans.set(family, type, {reference_rate, drawn(), drawn(), drawn(), drawn()});
        for (std::uint32_t beside = 0; beside < jobs.families().size(); ++beside) {
          model.set_extra(family, beside, type, static_cast<std::uint32_t>(rng.below(1'000'000)));
        }
      }
    }
    model.set_spans(std::move(spans));
    Engine engine(jobs, cluster, {.seed = seed}, &model);
    Wanderer policy{rng.split("policy")};
    std::optional<std::pair<Engine, Wanderer>> snapshot;
    Decision decision = engine.decision();
    std::vector<double> work(jobs.size()), speeds(jobs.size());
    Time last{};
    while (engine.advance()) {
      const double passed = to_seconds(engine.view().now() - last);
      last = engine.view().now();
      for (std::size_t i = 0; i < work.size(); ++i) work[i] += speeds[i] * passed;
      policy.decide(engine.view(), decision);
      engine.apply();
      ASSERT_TRUE(engine.consistent()) << "seed " << seed;
      for (std::uint32_t i = 0; i < jobs.size(); ++i) {
        const bool runs = engine.view().phase(JobId{i}) == JobPhase::running;
        speeds[i] = runs ? speed_of(engine.view(), cluster, model, JobId{i}) : 0;
      }
      if (!snapshot && engine.view().finished() == 3) snapshot.emplace(engine, policy);
    }
    ASSERT_TRUE(engine.all_finished());
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const double expected = to_seconds(jobs.work(JobId{i}));
      EXPECT_NEAR(work[i], expected, 1e-3 + 1e-4 * expected) << "seed " << seed << " job " << i;
    }
    ASSERT_TRUE(snapshot);
    simulate(snapshot->first, snapshot->second);
    EXPECT_EQ(spans_of(snapshot->first), spans_of(engine)) << "a copy in mid-run, seed " << seed;
  }
}

// Work since the last checkpoint is lost however often the gang moved since: 6 s at 1/2 on two nodes are 3 s of work,
// 5 s more on one node; 8 s of the 10 after which a checkpoint is due.
TEST(SpanRate, AMoveIsNoCheckpoint) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 2}});
  RuntimeModel model;
  model.set_spans(spans_of_all(jobs, halves));
  EngineOptions options;
  options.preemption.checkpoint_interval = whole_seconds(10);
  Engine engine(jobs, Cluster::homogeneous(2, 2), options, &model);
  Decision decision = engine.decision();
  const auto at = [&](std::int64_t second) { engine.advance_to(whole_seconds(second)); };
  at(0);
  const std::vector<NodeTasks> apart{{.node = NodeId{0}, .tasks = 1}, {.node = NodeId{1}, .tasks = 1}};
  const std::vector<NodeTasks> together{{.node = NodeId{1}, .tasks = 2}};
  EXPECT_EQ(decision.start_on(JobId{0}, apart), Verdict::ok);
  EXPECT_EQ(decision.wake(whole_seconds(6)), Verdict::ok);
  engine.apply();
  at(6);
  EXPECT_EQ(engine.view().remaining(JobId{0}), whole_seconds(97));
  EXPECT_EQ(decision.vacate(JobId{0}), Verdict::ok);
  EXPECT_EQ(decision.move_on(JobId{0}, together), Verdict::ok);
  EXPECT_EQ(decision.wake(whole_seconds(11)), Verdict::ok);
  engine.apply();
  at(11);
  EXPECT_EQ(engine.view().remaining(JobId{0}), whole_seconds(92));
  EXPECT_EQ(decision.preempt(JobId{0}), Verdict::ok);
  engine.apply();
  EXPECT_EQ(engine.view().remaining(JobId{0}), whole_seconds(100));
}

}  // namespace
}  // namespace gpusched::test
