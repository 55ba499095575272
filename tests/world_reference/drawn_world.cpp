// SPDX-License-Identifier: Apache-2.0
#include "tests/world_reference/drawn_world.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/data/mig.hpp"

namespace gpusched::test {
namespace {

using detail::WorldDraws;

Time tens(std::uint64_t count) { return whole_seconds(10 * static_cast<std::int64_t>(count)); }
Time seconds(std::uint64_t count) { return whole_seconds(static_cast<std::int64_t>(count)); }

Cluster draw_cluster(WorldDraws& draw, WorldKind kind, bool has_mig) {
  Cluster cluster = detail::random_cluster(draw, kind);
  if (kind != WorldKind::any) return cluster;
  const bool turns = draw.chance(3), islands = draw.chance(3), sites = draw.chance(4), counts = draw.chance(6);
  if (sites) cluster.rack_sites = {0, 1};
  for (Node& node : cluster.nodes) {
    if (node.counts_only) continue;
    if (turns && draw.chance(2)) node.sharing = SharingMode::time_slicing;
    if (islands && node.gpus % 2 == 0) node.island_gpus = node.gpus / 2;
    if (counts && draw.chance(3)) node.counts_only = true;
  }
  if (!has_mig || cluster.nodes.front().counts_only) return cluster;
  const std::uint32_t card = find_mig_model("A100-40GB");
  const MigModel& a100 = mig_models[card];
  const std::vector<std::uint32_t> parts{a100.find("3g.20gb"), a100.find("2g.10gb"), a100.find("1g.5gb")};
  const std::vector<std::uint32_t> whole{a100.find("7g.40gb")};
  cluster.gpu_types.push_back("A100-40GB");
  cluster.devices.resize(cluster.gpu_types.size());
  cluster.devices.back().memory_mib = 40 * 1024;
  cluster.migs = {{.model = card, .cards = {place_mig_instances(a100, parts), place_mig_instances(a100, whole)}}};
  for (int i = 0; i < 2; ++i) {
    cluster.nodes.push_back({.gpus = 2,
                             .gpu_type = static_cast<std::uint32_t>(cluster.gpu_types.size() - 1),
                             .rack = static_cast<std::uint32_t>(i),
                             .mig = 0});
  }
  return cluster;
}

// Jobs may wait for jobs that are submitted later; `rank` keeps them from waiting in a circle.
struct Links {
  std::vector<std::string> ids;
  std::vector<std::uint64_t> ranks;
  [[nodiscard]] std::vector<std::string> before(WorldDraws& draw, std::uint64_t rank) const {
    std::vector<std::string> after;
    for (std::uint64_t tries = draw.below(4); tries > 0 && !ids.empty(); --tries) {
      const std::uint64_t other = draw.below(ids.size());
      const bool is_new = std::find(after.begin(), after.end(), ids[other]) == after.end();
      if (ranks[other] < rank && is_new) after.push_back(ids[other]);
    }
    return after;
  }
};

JobRecord draw_job(WorldDraws& draw, WorldKind kind, bool typed, std::uint64_t span_s) {
  constexpr std::array<std::string_view, 3> users = {"u0", "u1", "u2"};
  constexpr std::array<std::string_view, 4> vcs = {"a", "b", "c", ""};
  constexpr std::array<std::string_view, 6> specs = {"", "", "V100", "V100|T4", "@5GiB", "A100-40GB@4GiB"};
  JobRecord job;
  job.submit =
      draw.chance(2) ? tens(draw.below(span_s) / 10) : Time{static_cast<std::int64_t>(draw.below(span_s * 1'000'000))};
  job.submit = job.submit - seconds(200);
  job.work = seconds(draw.one_of(std::array<std::uint64_t, 8>{0, 1, 10, 20, 50, 100, 200, 600}));
  if (draw.chance(4)) job.work = Time{static_cast<std::int64_t>(draw.below(300'000'000))};
  if (draw.chance(2)) job.estimate = seconds(draw.below(400));
  if (draw.chance(2)) job.deadline = job.submit + seconds(draw.below(2000));
  job.shape = detail::random_shape(draw, kind);
  if (typed && kind == WorldKind::any) job.gpu_spec = draw.one_of(specs);
  job.user = draw.one_of(users);
  job.group = draw.one_of(users);
  job.vc = draw.one_of(vcs);
  job.family = draw.one_of(std::array<std::string_view, 3>{"", "bert", "resnet"});
  job.priority = draw.one_of(std::array<std::int32_t, 4>{-3, 0, 2, 10'000});
  return job;
}

JobTable draw_jobs(WorldDraws& draw, const Cluster& cluster, WorldKind kind) {
  const std::uint64_t count = 1 + draw.below(20), span_s = draw.chance(3) ? 1 : 10 + draw.below(600);
  const bool typed = cluster.gpu_types.size() > 1, linked = draw.chance(3);
  NameTable specs;
  specs.intern("");  // 0: any GPU
  std::vector<JobRecord> records;
  std::vector<std::string> ids;
  for (std::uint64_t i = 0; i < count; ++i) {
    JobRecord job = draw_job(draw, kind, typed, span_s);
    specs.intern(job.gpu_spec);
    job.shape.gpu_spec = specs.find(job.gpu_spec);
    auto queue = static_cast<std::uint32_t>(cluster.vcs.size());
    for (std::uint32_t vc = 0; vc < cluster.vcs.size(); ++vc) {
      if (cluster.vcs[vc].name == job.vc) queue = vc;
    }
    if (!ClusterState::fits_when_empty(cluster, specs, job.shape, queue)) continue;
    records.push_back(job);
    ids.push_back(std::to_string(i));
  }
  Links links{.ids = ids, .ranks = {}};
  for (std::size_t i = 0; i < ids.size(); ++i) links.ranks.push_back(draw.below(1000));
  JobTableBuilder builder;
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].id = ids[i];
    const std::vector<std::string> after =
        linked && draw.chance(2) ? links.before(draw, links.ranks[i]) : std::vector<std::string>{};
    records[i].after = after;
    if (!after.empty() && draw.chance(3)) records[i].after_delay = seconds(1 + draw.below(100));
    std::array<Time, 3> attempts;
    if (draw.chance(8)) {
      records[i].work = {};
      for (Time& attempt : attempts) records[i].work += attempt = seconds(draw.below(60));
      records[i].attempts = attempts;
    }
    builder.add(records[i]);
  }
  return *std::move(builder).build();
}

RatePpm draw_rate(WorldDraws& draw) {
  if (draw.chance(2)) return draw.one_of(std::array<RatePpm, 4>{500'000, 250'000, 1'000'000, 2'000'000});
  return 200'000 + static_cast<RatePpm>(draw.below(2'000'000));
}

RuntimeModel draw_runtime(WorldDraws& draw, const DrawnWorld& drawn) {
  const auto families = static_cast<std::uint32_t>(drawn.jobs().families().size());
  const auto types = static_cast<std::uint32_t>(drawn.cluster().gpu_types.size());
  if (families == 0 || draw.chance(3)) return {};
  RuntimeModel model(families, types);
  SpanModel spans(families, types);
  const bool has_rates = draw.chance(2), has_spans = draw.chance(2), has_extras = draw.chance(2);
  for (std::uint32_t family = 0; family < families; ++family) {
    for (std::uint32_t type = 0; type < types; ++type) {
      if (has_rates) model.set(family, type, draw_rate(draw));
      if (has_rates && draw.chance(3)) model.set_for_gang(family, 2, type, draw_rate(draw));
      if (has_rates) model.set_slice(family, type, static_cast<std::uint32_t>(draw.below(5)), draw_rate(draw));
      SpanSpeeds speeds = no_slowdown;
      for (std::size_t i = 1; i < speeds.size(); ++i) speeds[i] = std::min(speeds[i - 1], draw_rate(draw));
      if (has_spans) spans.set(family, type, speeds);
      for (std::uint32_t beside = 0; beside < families && has_extras; ++beside) {
        model.set_extra(family, beside, type, static_cast<std::uint32_t>(draw.below(4)) * 250'000);
      }
    }
  }
  if (has_spans) model.set_spans(std::move(spans));
  return model;
}

NodeFailures draw_failures(WorldDraws& draw, const Cluster& cluster) {
  NodeFailures failures;
  if (draw.chance(2)) return failures;
  const auto nodes = static_cast<std::uint32_t>(cluster.nodes.size());
  std::vector<NodeChange> changes;
  for (std::uint64_t i = draw.below(10); i > 0; --i) {
    const NodeId node{static_cast<std::uint32_t>(draw.below(nodes))};
    const Time begin = tens(draw.below(100)) - seconds(210), end = begin + tens(1 + draw.below(10));
    const bool drains = draw.chance(3);
    if (!draw.chance(5)) changes.push_back({begin, node, false, drains});
    if (drains && draw.chance(2)) changes.push_back({begin + Time{(end - begin).us / 2}, node, false});
    changes.push_back({end, node, true});
  }
  failures.add_changes(changes);
  if (nodes > 1 && draw.chance(3))
    failures.keep_spares(1 + static_cast<std::uint32_t>(draw.below(std::min(nodes - 1, 3U))));
  if (draw.chance(3)) return failures;
  const std::uint32_t law = failures.add_law(
      {.mean_up_s = static_cast<double>(500 + draw.below(5000)),
       .detect_s = draw.chance(2) ? 15.0 : 0.0,
       .up_shape = draw.one_of(std::array<double, 3>{0.7, 1, 2}),
       .mean_repair_s = static_cast<double>(1 + draw.below(100)),
       .repair = draw.one_of(std::array<FailureLaw::Repair, 3>{
           FailureLaw::Repair::fixed, FailureLaw::Repair::exponential, FailureLaw::Repair::lognormal})});
  std::vector<NodeId> all;
  for (std::uint32_t node = 0; node < nodes; ++node) all.push_back(NodeId{node});
  if (draw.chance(3)) failures.add_unit(law, all);  // the switch of all
  for (const NodeId& node : all) failures.add_unit(law, {&node, 1});
  return failures;
}

StageModel draw_stages(WorldDraws& draw, const JobTable& jobs) {
  StageModel stages;
  if (!draw.chance(3)) return stages;
  stages.transfer_bytes_per_s = static_cast<double>(50 + draw.below(300));
  if (draw.chance(2)) stages.storage_bytes_per_s = static_cast<double>(80 + draw.below(400));
  if (draw.chance(2)) stages.uplink_bytes_per_s = static_cast<double>(40 + draw.below(300));
  stages.provision = seconds(draw.below(6));
  if (draw.chance(2)) stages.keep_alive = tens(draw.below(7));
  if (draw.chance(2)) stages.cache_bytes = static_cast<std::int64_t>(500 + draw.below(4000));
  const auto need = [&](StageModel::Needs& needs, StageColumn column, std::uint32_t values) {
    needs.column = column;
    for (std::uint32_t value = 0; value < values; ++value) {
      const bool lacks = draw.chance(6);
      needs.items.push_back(lacks ? no_index : static_cast<std::uint32_t>(stages.items.size()));
      if (lacks) continue;
      stages.items.push_back({.bytes = static_cast<std::int64_t>(100 + draw.below(2000)),
                              .unpack = seconds(draw.below(4)),
                              .load = seconds(draw.below(3))});
    }
  };
  if (draw.chance(2)) need(stages.images, StageColumn::user, jobs.users().size());
  if (draw.chance(2)) need(stages.weights, StageColumn::family, jobs.families().size());
  if (draw.chance(2)) stages.checkpoint_bytes_per_gpu = static_cast<double>(1 + draw.below(300));
  return stages;
}

PowerModel draw_power(WorldDraws& draw, const Cluster& cluster) {
  PowerModel power;
  if (!draw.chance(3)) return power;
  for (std::size_t type = 0; type < cluster.gpu_types.size(); ++type) {
    GpuPower gpu{.load = {.idle_w = 40, .full_w = 200}, .limits = {}};
    if (draw.chance(2)) gpu.limits = {{100, 0.5, 600'000}, {150, 0.8, 850'000}, {200, 1, reference_rate}};
    power.gpus.push_back(gpu);
  }
  power.kinds.resize(2);
  if (draw.chance(2)) power.kinds[1].sleep = {.after = tens(1 + draw.below(6)), .wake = seconds(draw.below(15))};
  for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
    power.kind_of.push_back(static_cast<std::uint32_t>(draw.below(2)));
  }
  return power;
}

// Files cannot ask for another size of shares.
JobChanges draw_changes(DrawnWorld& drawn, std::uint64_t seed, WorldKind kind) {
  const JobChanges drawn_changes = random_changes(drawn.world, seed, kind);
  std::vector<JobChange> changes;
  for (const JobChange& change : drawn_changes.all()) {
    const bool is_share = drawn.jobs().shape(change.job).is_share();
    if (change.kind != JobChange::Kind::size || !is_share) changes.push_back(change);
  }
  return {std::move(changes), drawn.jobs().size()};
}

void draw_costs(WorldDraws& draw, DrawnWorld& drawn) {
  if (draw.chance(3)) return;
  PreemptionCost& cost = drawn.world.options.preemption;
  cost.checkpoint = seconds(draw.one_of(std::array<std::uint64_t, 3>{0, 0, 2}));
  cost.restart = seconds(draw.one_of(std::array<std::uint64_t, 3>{0, 1, 7}));
  cost.checkpoint_interval = seconds(draw.one_of(std::array<std::uint64_t, 4>{0, 5, 10, 60}));
  // Phases and checkpoints that take time exclude each other.
  if (drawn.elastic.is_empty() && draw.chance(2)) cost.periodic_checkpoint = Time{500'000};
  if (draw.chance(3)) cost.rule = draw.chance(2) ? CheckpointRule::young : CheckpointRule::daly;
}

}  // namespace

std::optional<DrawnWorld> drawn_world(std::uint64_t seed, WorldKind kind, bool has_mig) {
  WorldDraws draw(seed ^ 0x5107);
  DrawnWorld drawn;
  drawn.world.cluster = draw_cluster(draw, kind, has_mig);
  drawn.world.jobs = draw_jobs(draw, drawn.cluster(), kind);
  if (drawn.jobs().size() == 0) return std::nullopt;
  drawn.world.options.seed = seed;
  drawn.runtime = draw_runtime(draw, drawn);
  const std::uint64_t sizes = draw.below(4);
  if (sizes == 0) drawn.elastic = random_elastic_model(drawn.world, seed);
  if (draw.chance(3)) drawn.changes = draw_changes(drawn, seed, kind);
  if (drawn.changes.resizes() && !drawn.elastic.is_empty()) drawn.elastic = {};
  if (kind == WorldKind::one_gpu_tasks) return drawn;
  drawn.failures = draw_failures(draw, drawn.cluster());
  drawn.stages = draw_stages(draw, drawn.jobs());
  drawn.power = draw_power(draw, drawn.cluster());
  if (!draw.chance(3)) drawn.world.options.placement = placement_names[draw.below(placement_names.size())].placement;
  draw_costs(draw, drawn);
  drawn.kill_at_limit = draw.chance(4);
  return drawn;
}

}  // namespace gpusched::test
