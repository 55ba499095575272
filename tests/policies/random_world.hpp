// SPDX-License-Identifier: Apache-2.0
/// A small cluster and a trace drawn from a seed, with everything in them that the engine knows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/power_model.hpp"
#include "gpusched/engine/engine.hpp"

namespace gpusched::test {

struct RandomWorld {
  Cluster cluster;
  JobTable jobs;
  EngineOptions options;
};

/// What a policy can be given.
enum class WorldKind : std::uint8_t {
  any,
  one_pool,       ///< of 64 GPUs, so that every owner's part of them holds every job
  one_gpu_tasks,  ///< gangs of one-GPU tasks on equal nodes, no virtual clusters, no costs: what published simulators
                  ///< know
};

namespace detail {

class WorldDraws {
 public:
  explicit WorldDraws(std::uint64_t seed) : rng_(Rng(seed).split("random world")) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t n) { return rng_.below(n); }
  [[nodiscard]] bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  template <class T, std::size_t N>
  [[nodiscard]] T one_of(const std::array<T, N>& values) {
    return values[below(N)];
  }

 private:
  Rng rng_;
};

inline Cluster random_cluster(WorldDraws& draw, WorldKind kind) {
  if (kind == WorldKind::one_pool) return Cluster::pool(64);
  const auto nodes = static_cast<std::uint32_t>(1 + draw.below(5));
  if (kind == WorldKind::one_gpu_tasks) return Cluster::homogeneous(nodes, 4);
  if (draw.chance(4)) return Cluster::pool(static_cast<std::uint32_t>(1 + draw.below(16)));
  Cluster cluster = Cluster::homogeneous(nodes, draw.one_of(std::array<std::uint32_t, 4>{1, 2, 4, 8}));
  const bool types = draw.chance(2), bounded = draw.chance(2), vcs = draw.chance(2);
  if (types) cluster.gpu_types = {"V100", "T4"};
  if (types && draw.chance(2)) {
    cluster.devices = {{.memory_mib = 16384}, {.kind = draw.chance(3) ? "fpga" : "gpu", .memory_mib = 8192}};
  }
  if (vcs) cluster.vcs = {{.name = "a"}, {.name = "b", .quota = static_cast<MilliGpu>(1 + draw.below(9)) * whole_gpu}};
  for (Node& node : cluster.nodes) {
    if (draw.chance(3)) node.gpus = static_cast<std::uint32_t>(draw.below(9));
    if (types) node.gpu_type = static_cast<std::uint32_t>(draw.below(2));
    if (bounded && !draw.chance(3)) node.cpu_milli = static_cast<std::int64_t>(1 + draw.below(32)) * 1000;
    if (bounded && !draw.chance(3)) node.memory_mib = static_cast<std::int64_t>(1 + draw.below(32)) * 64;
    if (vcs && draw.chance(4)) node.vc = static_cast<std::uint32_t>(draw.below(2));
    node.rack = static_cast<std::uint32_t>(draw.below(2));
  }
  return cluster;
}

inline Shape random_shape(WorldDraws& draw, WorldKind kind) {
  Shape shape{.tasks = static_cast<std::uint32_t>(1 + draw.below(draw.chance(3) ? 8 : 3)),
              .gpu_milli_per_task = whole_gpu};
  if (kind == WorldKind::one_gpu_tasks) return shape;
  constexpr std::array<MilliGpu, 16> demands = {0,   1,    300,  333,  500,  501,  600,  700,
                                                999, 1000, 1000, 1000, 1000, 2000, 2000, 4000};
  shape.gpu_milli_per_task = draw.one_of(demands);
  if (draw.chance(2)) shape.cpu_milli_per_task = draw.one_of(std::array<std::int64_t, 4>{1, 500, 4000, 11'653});
  if (draw.chance(2)) shape.memory_mib_per_task = static_cast<std::int64_t>(draw.below(300));
  return shape;
}

}  // namespace detail

/// The world of that seed: the same everywhere. Every job fits its empty cluster. Submissions and run times collide,
/// lie before time zero, last no time, or fractions of a second. `linked`: half of the jobs wait for one or two others.
inline RandomWorld random_world(std::uint64_t seed, WorldKind kind, bool linked = false) {
  detail::WorldDraws draw(seed);
  RandomWorld world{.cluster = detail::random_cluster(draw, kind), .jobs = {}, .options = {}};
  constexpr std::array<std::string_view, 4> users = {"u0", "u1", "u2", "u3"}, vcs = {"a", "b", "c", ""};
  constexpr std::array<std::string_view, 6> specs = {"", "V100", "V100|T4", "@5GiB", "kind:fpga|V100@3GiB", "@9GiB"};
  const bool typed = world.cluster.gpu_types.size() > 1;
  const std::uint64_t count = 1 + draw.below(40);
  const std::uint64_t span_us = draw.chance(3) ? 1 : 1 + draw.below(600) * 1'000'000;
  detail::WorldDraws draw_link(seed ^ 0xDEB);
  std::vector<std::string> ids;  // of the jobs that fit
  JobTableBuilder builder;
  NameTable gpu_specs;
  for (const std::string_view spec : specs) gpu_specs.intern(spec);
  for (std::uint64_t i = 0; i < count; ++i) {
    JobRecord job;
    const std::string id = std::to_string(i);
    job.id = id;
    job.submit = Time{static_cast<std::int64_t>(draw.below(span_us))} - whole_seconds(200);
    if (draw.chance(2)) job.submit.us -= job.submit.us % 10'000'000;
    job.work = whole_seconds(draw.one_of(std::array<std::int64_t, 8>{0, 1, 10, 10, 50, 100, 200, 1300}));
    if (draw.chance(4)) job.work = Time{static_cast<std::int64_t>(draw.below(300'000'000))};
    if (draw.chance(2)) job.estimate = whole_seconds(static_cast<std::int64_t>(draw.below(400)));
    if (draw.chance(2)) job.deadline = job.submit + whole_seconds(static_cast<std::int64_t>(draw.below(2000)));
    job.shape = detail::random_shape(draw, kind);
    if (typed && kind == WorldKind::any) job.gpu_spec = draw.one_of(specs);
    job.shape.gpu_spec = gpu_specs.find(job.gpu_spec);
    job.user = draw.one_of(users);
    job.group = draw.one_of(users);
    job.vc = draw.one_of(vcs);
    job.priority = draw.one_of(std::array<std::int32_t, 4>{-3, 0, 2, 10'000});
    std::array<Time, 3> attempts;
    if (draw.chance(6)) {
      job.work = {};
      for (Time& attempt : attempts) job.work += attempt = whole_seconds(static_cast<std::int64_t>(draw.below(60)));
      job.attempts = attempts;
    }
    std::uint32_t queue = static_cast<std::uint32_t>(world.cluster.vcs.size());
    for (std::uint32_t vc = 0; vc < world.cluster.vcs.size(); ++vc) {
      if (world.cluster.vcs[vc].name == job.vc) queue = vc;
    }
    if (!ClusterState::fits_when_empty(world.cluster, gpu_specs, job.shape, queue)) continue;
    std::vector<std::string> after;
    while (linked && !ids.empty() && after.size() < 2 && draw_link.chance(2)) {
      after.push_back(ids[draw_link.below(ids.size())]);
    }
    job.after = after;
    if (!after.empty() && draw_link.chance(3)) {
      job.after_delay = whole_seconds(static_cast<std::int64_t>(draw_link.below(120)));
    }
    builder.add(job);
    ids.push_back(id);
  }
  world.jobs = *std::move(builder).build();
  world.options.seed = seed;
  if (kind == WorldKind::one_gpu_tasks) return world;
  if (!draw.chance(3)) world.options.placement = placement_names[draw.below(placement_names.size())].placement;
  if (draw.chance(2)) {
    world.options.preemption = {
        .checkpoint = whole_seconds(draw.one_of(std::array<std::int64_t, 3>{0, 0, 2})),
        .restart = whole_seconds(draw.one_of(std::array<std::int64_t, 3>{0, 1, 7})),
        .checkpoint_interval = whole_seconds(draw.one_of(std::array<std::int64_t, 4>{0, 0, 2, 10}))};
  }
  return world;
}

/// Failures of the world's nodes, drawn from the same seed: some recorded, drains among them, with all nodes up in the
/// end, some by a law,
/// of a node or of a switch. Each comes after 1,000 s or more on average, and each repair takes 100 s or less.
inline NodeFailures random_failures(const RandomWorld& world, std::uint64_t seed) {
  detail::WorldDraws draw(seed ^ 0xFA11);
  NodeFailures failures;
  const auto nodes = static_cast<std::uint32_t>(world.cluster.nodes.size());
  std::vector<NodeChange> changes;
  for (std::uint64_t i = draw.below(8); i > 0; --i) {
    const NodeId node{static_cast<std::uint32_t>(draw.below(nodes))};
    const Time begin = whole_seconds(static_cast<std::int64_t>(draw.below(1000)) - 210);
    const Time end = begin + whole_seconds(static_cast<std::int64_t>(draw.below(100)));
    const bool drains = draw.chance(3);
    if (!draw.chance(5)) changes.push_back({begin, node, false, drains});
    if (drains && draw.chance(3)) changes.push_back({begin + Time{(end - begin).us / 2}, node, false});
    changes.push_back({end, node, true});
  }
  failures.add_changes(changes);
  if (draw.chance(3)) return failures;
  const std::uint32_t law = failures.add_law(
      {.mean_up_s = static_cast<double>(1000 + draw.below(5000)),
       .detect_s = draw.chance(3) ? 10.0 : 0.0,
       .up_shape = draw.one_of(std::array<double, 3>{0.7, 1, 2}),
       .mean_repair_s = static_cast<double>(1 + draw.below(100)),
       .repair = draw.one_of(std::array<FailureLaw::Repair, 3>{
           FailureLaw::Repair::fixed, FailureLaw::Repair::exponential, FailureLaw::Repair::lognormal})});
  std::vector<NodeId> all;
  for (std::uint32_t node = 0; node < nodes; ++node) all.push_back(NodeId{node});
  if (draw.chance(4)) {
    failures.add_unit(law, all);
  } else {
    for (const NodeId& node : all) failures.add_unit(law, {&node, 1});
  }
  return failures;
}

/// A quarter of the jobs are cancelled, a quarter get another priority, a quarter another size, some twice or at the
/// instant of another event, all drawn from the same seed. Adds the sizes to the shapes of the world's jobs.
inline JobChanges random_changes(RandomWorld& world, std::uint64_t seed, WorldKind kind) {
  detail::WorldDraws draw(seed ^ 0xCA9CE1);
  std::vector<JobChange> changes;
  for (std::uint32_t i = 0; i < world.jobs.size(); ++i) {
    const JobId job{i};
    for (std::uint64_t count = draw.below(3); count > 0; --count) {
      JobChange change{.time = {}, .job = job};
      const bool round = draw.chance(2);
      const Time after{1 + static_cast<std::int64_t>(draw.below(700'000'000))};
      change.time = world.jobs.submit(job) + after;
      if (round) change.time.us += 10'000'000 - change.time.us % 10'000'000;
      const auto same = [&](const JobChange& other) { return other.job == job && other.time == change.time; };
      if (std::any_of(changes.begin(), changes.end(), same)) continue;
      Shape shape = world.jobs.shape(job);
      const std::uint64_t what = draw.below(3);
      if (what == 1) {
        change.kind = JobChange::Kind::priority;
        change.priority = draw.one_of(std::array<std::int32_t, 4>{-5, 0, 3, 20'000});
      } else if (what == 2) {
        shape.tasks = static_cast<std::uint32_t>(1 + draw.below(shape.tasks + (kind == WorldKind::one_pool ? 0 : 3)));
        bool fits = true;
        for (std::uint32_t queue = 0; queue <= world.cluster.vcs.size(); ++queue) {
          fits = fits && ClusterState::fits_when_empty(world.cluster, world.jobs.gpu_specs(), shape, queue);
        }
        if (!fits) continue;
        change.kind = JobChange::Kind::size;
        change.shape = world.jobs.number_of_shape(shape);
      }
      changes.push_back(change);
    }
  }
  return {std::move(changes), world.jobs.size()};
}

/// Curves for two thirds of the shapes whose tasks hold whole GPUs, drawn from the same seed: up to four tasks fewer or
/// more than asked for, as far as they fit the empty cluster, in one to three phases, at speeds that rise and fall.
inline ElasticModel random_elastic_model(const RandomWorld& world, std::uint64_t seed) {
  detail::WorldDraws draw(seed ^ 0xE1A5);
  const JobTable& jobs = world.jobs;
  ElasticModel model(jobs.shapes().size());
  for (std::uint32_t shape = 0; shape < jobs.shapes().size(); ++shape) {
    const Shape& asked = jobs.shapes()[shape];
    if (asked.is_share() || asked.gpu_milli_per_task == 0 || draw.chance(3)) continue;
    ElasticCurve curve{.min_tasks = asked.tasks - static_cast<std::uint32_t>(draw.below(std::min(asked.tasks, 4u))),
                       .max_tasks = asked.tasks};
    for (std::uint64_t more = draw.below(5); more > 0; --more) {
      Shape larger = asked;
      larger.tasks = curve.max_tasks + 1;
      bool fits = true;
      for (std::uint32_t queue = 0; queue <= world.cluster.vcs.size(); ++queue) {
        fits = fits && ClusterState::fits_when_empty(world.cluster, jobs.gpu_specs(), larger, queue);
      }
      if (fits) ++curve.max_tasks;
    }
    const std::uint64_t phases = 1 + draw.below(3);
    for (std::uint64_t phase = 1; phase <= phases; ++phase) {
      ElasticCurve::Phase part{.until = static_cast<double>(phase) / static_cast<double>(phases)};
      for (std::uint32_t tasks = curve.min_tasks; tasks <= curve.max_tasks; ++tasks) {
        part.rates.push_back(tasks == asked.tasks ? reference_rate
                                                  : static_cast<RatePpm>(200'000 + draw.below(2'000'000)));
      }
      curve.phases.push_back(std::move(part));
    }
    model.add(0, shape, std::move(curve));
  }
  return model;
}

/// Power of all that a node has, limits of every type, nodes that sleep, signals, and two caps that hold: of all nodes
/// and of the first one. Under both, any job may run alone at the highest setting, on all GPUs if it has `any_size`.
inline PowerModel random_power(const RandomWorld& world, std::uint64_t seed, bool any_size = false) {
  Rng rng = Rng(seed).split("random power");
  const auto watts = [&](double least, std::uint64_t more) { return least + static_cast<double>(rng.below(more)); };
  PowerModel model;
  double busy_w = 0;
  for (std::size_t type = 0; type < world.cluster.gpu_types.size(); ++type) {
    GpuPower gpu{.load = {.idle_w = watts(20, 40), .full_w = watts(150, 200), .exponent = 0.5 + rng.uniform()}};
    busy_w = std::max(busy_w, gpu.load.full_w - gpu.load.idle_w);
    gpu.limits = {{.limit_w = 120, .draw = 0.3, .speed = 500'000},
                  {.limit_w = 200, .draw = 0.7, .speed = 850'000},
                  {.limit_w = 400}};
    model.gpus.push_back(std::move(gpu));
  }
  model.kinds = {{.base_w = 40, .cpu = {.idle_w = 20, .full_w = 110}, .cpus = 1}, {.base_w = 60}};
  if (rng.below(2) == 0) {
    model.kinds[1].sleep = {.after = whole_seconds(5), .asleep_w = 8, .wake = whole_seconds(2), .wake_j = 100};
  }
  std::vector<double> idle_w;
  double all_idle_w = 0, job_w = 0;
  for (const Node& node : world.cluster.nodes) {
    model.kind_of.push_back(static_cast<std::uint32_t>(rng.below(2)));
    const NodePower& kind = model.kinds[model.kind_of.back()];
    idle_w.push_back(kind.base_w + 20 * kind.cpus + node.gpus * model.gpus[node.gpu_type].load.idle_w);
    all_idle_w += idle_w.back();
    job_w += 90 + 50;  // processors, waking
  }
  double most_gpus = any_size ? static_cast<double>(world.cluster.total_gpus()) : 0;
  for (std::uint32_t i = 0; i < world.jobs.size(); ++i) {
    most_gpus = std::max(most_gpus, static_cast<double>(world.jobs.shape(JobId{i}).gpu_milli()) / whole_gpu);
  }
  job_w += busy_w * most_gpus;
  model.losses = {.gain = rng.uniform(), .fixed_w = watts(0, 100)};
  model.places = {{.carbon_g_per_kwh = Signal({{Time{}, 100'000'000}, {whole_seconds(50), 400'000'000}}),
                   .usd_per_mwh = Signal(-20)}};
  model.caps = {{.watts = Signal(all_idle_w + job_w + watts(0, 400)), .nodes = {}},
                {.watts = Signal(idle_w.front() + job_w), .nodes = {0}}};
  model.rule = static_cast<CapRule>(rng.below(4));
  return model;
}

}  // namespace gpusched::test
