// SPDX-License-Identifier: Apache-2.0
// What a schedule must not depend on: the order of rows and nodes, the origin and unit of time, the names of users.
// Every policy runs random worlds and the same worlds in another guise, under which each job must start, end and be
// preempted alike. A policy that does not keep a symmetry by its definition says so in its row
// (PolicyInfo::asymmetries).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/policies/throughput/linear_program.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/changing_signals.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual_symmetry_worlds = 40;  // 2,000 in scripts/deep_test.sh

/// A world with what its effects are made of.
struct World {
  Cluster cluster;
  JobTable jobs;
  EngineOptions options;
  std::vector<NodeChange> outages = {};
  std::vector<JobChange> changes = {};
  StageModel stages = {};
  /// By family, the speed on each GPU type by name; none: all run at the reference rate.
  std::map<std::string, std::map<std::string, RatePpm>> speeds = {};
  PowerModel power = changing_signals();  ///< what policies read of it
};

/// Another guise of a world.
struct Guise {
  Symmetry symmetry = Symmetry::row_order;
  std::vector<std::uint32_t> rows;   // the job of each row
  std::vector<std::uint32_t> nodes;  // what stands in each place
  Time shift{};
  std::int64_t scale = 1;
  std::function<std::string(std::string_view)> rename = [](std::string_view name) { return std::string(name); };

  [[nodiscard]] Time instant(Time t) const { return t == Time::max() ? t : length(t) + shift; }
  [[nodiscard]] Time length(Time t) const { return t == Time::max() ? t : Time{t.us * scale}; }
};

std::vector<std::uint32_t> counted(std::size_t size) {
  std::vector<std::uint32_t> numbers(size);
  for (std::uint32_t i = 0; i < size; ++i) numbers[i] = i;
  return numbers;
}

template <class T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

JobTable table_in(const Guise& guise, const JobTable& jobs) {
  JobTableBuilder builder;
  for (const std::uint32_t i : guise.rows) {
    const JobId job{i};
    std::vector<Time> attempts;
    for (std::uint32_t k = 0; k < jobs.attempts(job); ++k) attempts.push_back(guise.length(jobs.attempt_work(job, k)));
    std::vector<std::string> after;
    for (const JobId other : jobs.dependencies().of(job)) after.emplace_back(jobs.external_id(other));
    const std::string id(jobs.external_id(job)), user = guise.rename(jobs.users()[jobs.user(job)]),
                                                 group = guise.rename(jobs.groups()[jobs.group(job)]);
    builder.add({.id = id,
                 .submit = guise.instant(jobs.submit(job)),
                 .work = guise.length(jobs.work(job)),
                 .estimate = guise.length(jobs.estimate(job)),
                 .start = guise.instant(jobs.start(job)),
                 .shape = jobs.shape(job),
                 .user = user,
                 .group = group,
                 .vc = jobs.vcs()[jobs.vc(job)],
                 .name = jobs.names()[jobs.name(job)],
                 .gpu_spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec],
                 .family = jobs.families()[jobs.family(job)],
                 .status = jobs.status(job),
                 .priority = jobs.priority(job),
                 .deadline = guise.instant(jobs.deadline(job)),
                 .attempts = attempts.size() > 1 ? attempts : std::vector<Time>{},
                 .after = after,
                 .after_delay = guise.length(jobs.dependencies().delay(job))});
  }
  return *std::move(builder).build();
}

std::map<std::string, JobId> ids_of(const JobTable& jobs) {
  std::map<std::string, JobId> ids;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) ids.emplace(jobs.external_id(JobId{i}), JobId{i});
  return ids;
}

Cluster cluster_in(const Guise& guise, const Cluster& cluster) {
  Cluster other = cluster;
  for (std::size_t place = 0; place < guise.nodes.size(); ++place) {
    other.nodes[place] = cluster.nodes[guise.nodes[place]];
  }
  // As a reader numbers GPU types: in order of first appearance.
  std::vector<std::uint32_t> number(cluster.gpu_types.size(), no_index);
  other.gpu_types.clear();
  other.devices.clear();
  const auto add = [&](std::uint32_t type) {
    if (number[type] != no_index) return;
    number[type] = static_cast<std::uint32_t>(other.gpu_types.size());
    other.gpu_types.push_back(cluster.gpu_types[type]);
    if (!cluster.devices.empty()) other.devices.push_back(cluster.device(type));
  };
  for (const Node& node : other.nodes) add(node.gpu_type);
  for (std::uint32_t type = 0; type < cluster.gpu_types.size(); ++type) add(type);
  for (Node& node : other.nodes) node.gpu_type = number[node.gpu_type];
  return other;
}

World in_guise(const Guise& guise, const World& world) {
  World other{.cluster = guise.symmetry == Symmetry::node_order ? cluster_in(guise, world.cluster) : world.cluster,
              .jobs = table_in(guise, world.jobs),
              .options = world.options,
              .stages = world.stages,
              .speeds = world.speeds,
              .power = changing_signals(guise.shift)};
  PreemptionCost& cost = other.options.preemption;
  cost = {.checkpoint = guise.length(cost.checkpoint),
          .restart = guise.length(cost.restart),
          .checkpoint_interval = guise.length(cost.checkpoint_interval)};
  std::vector<std::uint32_t> place(guise.nodes.size());
  for (std::uint32_t i = 0; i < place.size(); ++i) place[guise.nodes[i]] = i;
  for (NodeChange change : world.outages) {
    change.time = guise.instant(change.time);
    change.node = NodeId{place[index(change.node)]};
    other.outages.push_back(change);
  }
  const auto ids = ids_of(other.jobs);
  for (JobChange change : world.changes) {
    change.time = guise.instant(change.time);
    change.job = ids.at(std::string(world.jobs.external_id(change.job)));
    if (change.kind == JobChange::Kind::size) {
      Shape shape = world.jobs.shapes()[change.shape];
      shape.gpu_spec = other.jobs.gpu_specs().find(world.jobs.gpu_specs()[shape.gpu_spec]);
      change.shape = other.jobs.number_of_shape(shape);
    }
    other.changes.push_back(change);
  }
  other.stages.provision = guise.length(world.stages.provision);
  other.stages.keep_alive = guise.length(world.stages.keep_alive);
  for (StageModel::Item& item : other.stages.items) {
    item.unpack = guise.length(item.unpack);
    item.load = guise.length(item.load);
  }
  other.stages.transfer_bytes_per_s /= static_cast<double>(guise.scale);
  return other;
}

/// What happened to a job.
struct Fate {
  Time start{}, end{};
  std::uint32_t preemptions = 0;
};

std::ostream& operator<<(std::ostream& out, const Fate& fate) {
  const auto seconds = [](Time t) { return t == Time::max() ? std::string("never") : std::to_string(to_seconds(t)); };
  return out << "start " << seconds(fate.start) << ", end " << seconds(fate.end) << ", preemptions "
             << fate.preemptions;
}

// Exactly, or, of times that were scaled, to some roundings of a microsecond: themis pays in fractions of one.
bool alike(const Fate& a, const Fate& b, std::int64_t scale) {
  const auto near = [&](Time x, Time y) { return x == y || (scale > 1 && std::abs((x - y).us) <= 10 * scale); };
  return near(a.start, b.start) && near(a.end, b.end) && a.preemptions == b.preemptions;
}

using Fates = std::map<std::string, Fate>;

/// The policy with its parameters in seconds scaled.
PolicySpec scaled(PolicySpec spec, const std::vector<ParameterInfo>& parameters, double factor) {
  for (const ParameterInfo& parameter : parameters) {
    if (factor == 1 || !parameter.name.ends_with("_s")) continue;
    ParameterValue value = spec.given.contains(parameter.name) ? spec.given.at(parameter.name) : parameter.fallback;
    if (auto* const number = std::get_if<double>(&value)) *number *= factor;
    if (auto* const list = std::get_if<std::vector<double>>(&value)) {
      for (double& entry : *list) entry *= factor;
    }
    if (auto* const pairs = std::get_if<std::vector<std::string>>(&value)) {  // NAME=SECONDS
      for (std::string& pair : *pairs) {
        const std::size_t at = pair.find('=') + 1;
        pair = pair.substr(0, at) + std::to_string(std::stod(pair.substr(at)) * factor);
      }
    }
    spec.given[parameter.name] = value;
  }
  return spec;
}

Result<AnyPolicy> make_for(const Contestant& contestant, const World& world, const RuntimeModel& runtime,
                           double scale) {
  const auto specs = parse_policy_list(contestant.policy);
  if (!specs) return Unexpected{specs.error()};
  const PolicySpec spec = scaled(specs->front(), (*registry().find(specs->front().name))->parameters, scale);
  const PolicyContext context{
      .jobs = &world.jobs, .cluster = &world.cluster, .seed = 1, .runtime = &runtime, .power = &world.power};
  if (contestant.backfill.empty()) return registry().make(spec, context);
  auto backfill = parse_backfill(contestant.backfill);
  if (!backfill) return Unexpected{backfill.error()};
  const auto row = find_backfill(backfill->name);
  return make_backfilled(registry(), spec, scaled(*backfill, (*row)->parameters, scale), context);
}

RuntimeModel runtime_of(const World& world) {
  if (world.speeds.empty()) return {};
  RuntimeModel model(world.jobs.families().size(), static_cast<std::uint32_t>(world.cluster.gpu_types.size()));
  for (const auto& [family, speeds] : world.speeds) {
    const std::uint32_t number = world.jobs.families().find(family);
    for (std::uint32_t type = 0; number != no_index && type < world.cluster.gpu_types.size(); ++type) {
      model.set(number, type, speeds.at(world.cluster.gpu_types[type]));
    }
  }
  return model;
}

/// What the policy does with this world; nothing when it does not take it.
std::optional<Fates> fates_of(const Contestant& contestant, const World& world, double scale = 1) {
  const RuntimeModel runtime = runtime_of(world);
  auto policy = make_for(contestant, world, runtime, scale);
  if (!policy) return std::nullopt;
  NodeFailures failures;
  failures.add_changes(world.outages);
  const JobChanges changes(world.changes, world.jobs.size());
  Engine engine(world.jobs, world.cluster, world.options,
                {.runtime = &runtime, .failures = &failures, .stages = &world.stages, .changes = &changes});
  Decision decision = engine.decision();
  for (std::uint32_t instants = 0; instants < most_instants && engine.advance(); ++instants) {
    policy->decide(engine.view(), decision);
    engine.apply();
  }
  Fates fates;
  for (std::uint32_t i = 0; i < world.jobs.size(); ++i) {
    const JobId job{i};
    fates[std::string(world.jobs.external_id(job))] = {engine.first_start(job), engine.end(job),
                                                       engine.preemptions(job)};
  }
  return fates;
}

// ---- worlds ----

// As random_world() draws them, in whole seconds of time, under ids that say nothing of the order of submission.
// `scalable`: users estimate all run times, because of a job of which nothing is known estimators assume an hour; and
// GPUs, also of shares, are powers of two, by which no time that is divided is rounded.
World any_world(std::uint64_t seed, WorldKind kind, bool scalable) {
  RandomWorld drawn = random_world(seed, kind, seed % 3 == 0);
  Rng rng = Rng(seed).split("symmetry");
  std::vector<std::uint32_t> names = counted(drawn.jobs.size());
  shuffle(names, rng);
  JobTableBuilder builder;
  std::vector<std::string> ids;
  for (const std::uint32_t name : names) ids.push_back("job" + std::to_string(name));
  for (std::uint32_t i = 0; i < drawn.jobs.size(); ++i) {
    const JobId job{i};
    const JobTable& jobs = drawn.jobs;
    const auto whole = [](Time t) { return t == Time::max() ? t : Time{t.us - t.us % 1'000'000}; };
    std::vector<Time> attempts;
    for (std::uint32_t k = 0; k < jobs.attempts(job); ++k) attempts.push_back(whole(jobs.attempt_work(job, k)));
    std::vector<std::string> after;
    for (const JobId other : jobs.dependencies().of(job)) after.push_back(ids[index(other)]);
    Shape shape = jobs.shape(job);
    Time estimate = whole(jobs.estimate(job));
    if (scalable) {
      shape.tasks = std::bit_floor(shape.tasks);
      if (shape.is_share()) {
        MilliGpu share = whole_gpu / 2;
        while (share > whole_gpu / 8 && share > shape.gpu_milli_per_task) share /= 2;
        if (share > shape.gpu_milli_per_task) shape.tasks = 1;  // it must still fit the cluster
        shape.gpu_milli_per_task = share;
      }
      if (estimate == Time::max()) estimate = whole_seconds(1 + i);
    }
    builder.add({.id = ids[i],
                 .submit = whole(jobs.submit(job)),
                 .work = whole(jobs.work(job)),
                 .estimate = estimate,
                 .start = rng.below(2) == 0 ? whole(jobs.submit(job)) + whole_seconds(3) : Time::max(),
                 .shape = shape,
                 .user = jobs.users()[jobs.user(job)],
                 .group = jobs.groups()[jobs.group(job)],
                 .vc = jobs.vcs()[jobs.vc(job)],
                 .name = i % 2 == 0 ? "train" : "test",
                 .gpu_spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec],
                 .priority = jobs.priority(job),
                 .deadline = whole(jobs.deadline(job)),
                 .attempts = attempts.size() > 1 ? attempts : std::vector<Time>{},
                 .after = after,
                 .after_delay = jobs.dependencies().delay(job)});
  }
  World world{.cluster = drawn.cluster, .jobs = *std::move(builder).build(), .options = drawn.options};
  if (seed % 2 == 0) {
    for (std::uint64_t i = rng.below(5); i > 0; --i) {
      const NodeId node{static_cast<std::uint32_t>(rng.below(world.cluster.nodes.size()))};
      const Time begin = whole_seconds(static_cast<std::int64_t>(rng.below(900)) - 200);
      world.outages.push_back({begin, node, false, rng.below(3) == 0});
      world.outages.push_back({begin + whole_seconds(1 + static_cast<std::int64_t>(rng.below(90))), node, true});
    }
  }
  if (seed % 5 == 0) {
    RandomWorld same{.cluster = world.cluster, .jobs = world.jobs, .options = world.options};
    const JobChanges changes = random_changes(same, seed, kind);
    std::set<std::pair<JobId, Time>> taken;
    for (JobChange change : changes.all()) {
      change.time.us += 1'000'000 - change.time.us % 1'000'000;
      const bool resizes = change.kind == JobChange::Kind::size;
      if (scalable && resizes && !std::has_single_bit(same.jobs.shapes()[change.shape].tasks)) continue;
      if (taken.emplace(change.job, change.time).second) world.changes.push_back(change);
    }
    world.jobs = std::move(same.jobs);
  }
  if (seed % 7 == 0 && kind == WorldKind::any) {
    world.stages.provision = whole_seconds(2);
    world.stages.keep_alive = whole_seconds(30);
    world.stages.items = {{.bytes = 1'000'000, .unpack = whole_seconds(1), .load = whole_seconds(3)}};
    world.stages.images = {.column = StageColumn::none, .items = {0}};
    world.stages.transfer_bytes_per_s = 250'000;
  }
  return world;
}

// GPU types whose nodes are alike. Each job may use one type alone (`pinned`), or is not equally fast on any two and
// the placement rule asks for the fastest: so which type it gets is no tie, and among nodes that are alike the first is
// as good as any.
World typed_world(std::uint64_t seed, WorldKind kind, bool pinned) {
  Rng rng = Rng(seed).split("types");
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(rng.below(n)); };
  World world;
  world.cluster.gpu_types = {"V100", "T4", "K80"};
  const std::uint32_t types = 2 + below(2), sizes[] = {1 + below(4), 1 + below(4), 1 + below(4)};
  for (std::uint32_t i = 0; i < types * (1 + below(3)); ++i) {
    const std::uint32_t type = i % types;
    world.cluster.nodes.push_back({.gpus = kind == WorldKind::one_gpu_tasks ? 1 : sizes[type],
                                   .gpu_type = type,
                                   .name = "n" + std::to_string(i)});
  }
  world.speeds = {{"even", {{"V100", 1'000'000}, {"T4", 500'000}, {"K80", 250'000}}},
                  {"odd", {{"V100", 1'000'000}, {"T4", 250'000}, {"K80", 500'000}}}};
  world.options.placement = pinned ? Placement::consolidate : Placement::fastest;
  world.options.seed = seed;
  std::vector<std::uint32_t> gpus(types, 0);
  for (const Node& node : world.cluster.nodes) gpus[node.gpu_type] += node.gpus;
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < 1 + below(30); ++i) {
    const std::uint32_t type = below(types);
    const std::string id = std::to_string(i);
    builder.add({.id = id,
                 .submit = whole_seconds(8 * below(40)),
                 .work = whole_seconds(8 * (1 + below(60))),
                 .estimate = whole_seconds(8 * (1 + below(60))),
                 .start = whole_seconds(8 * below(100)),
                 .shape = {.tasks = pinned && kind != WorldKind::one_gpu_tasks ? 1 + below(gpus[type]) : 1,
                           .gpu_milli_per_task = whole_gpu},
                 .user = i % 3 == 0 ? "ann" : "bob",
                 .group = i % 2 == 0 ? "red" : "blue",
                 .vc = i % 5 == 0 ? "a" : "b",
                 .gpu_spec = pinned ? std::string_view(world.cluster.gpu_types[type]) : std::string_view(),
                 .family = below(2) == 0 ? "even" : "odd",
                 .priority = static_cast<std::int32_t>(below(3)),
                 .deadline = whole_seconds(8 * below(200))});
  }
  world.jobs = *std::move(builder).build();
  if (seed % 3 == 0) {
    for (std::uint64_t i = rng.below(5); i > 0; --i) {
      const NodeId node{below(world.cluster.nodes.size())};
      const Time begin = whole_seconds(below(600));
      world.outages.push_back({begin, node, false});
      world.outages.push_back({begin + whole_seconds(1 + below(90)), node, true});
    }
  }
  return world;
}

// ---- guises ----

constexpr std::int64_t longer = 4;  // a power of two: no product is rounded

Guise same_guise(Symmetry symmetry, const World& world) {
  return {.symmetry = symmetry, .rows = counted(world.jobs.size()), .nodes = counted(world.cluster.nodes.size())};
}

// The nodes of each type keep their order among themselves, and with it what fails there.
std::vector<std::uint32_t> other_order_of_types(const Cluster& cluster, Rng& rng) {
  std::vector<std::uint32_t> types;
  for (const Node& node : cluster.nodes) types.push_back(node.gpu_type);
  shuffle(types, rng);
  std::vector<std::uint32_t> nodes, next(cluster.gpu_types.size(), 0);
  for (const std::uint32_t type : types) {
    while (cluster.nodes[next[type]].gpu_type != type) ++next[type];
    nodes.push_back(next[type]++);
  }
  return nodes;
}

std::vector<Guise> guises_of(Symmetry symmetry, const World& world, std::uint64_t seed) {
  Guise guise = same_guise(symmetry, world);
  Rng rng = Rng(seed).split("guise");
  switch (symmetry) {
    case Symmetry::row_order: shuffle(guise.rows, rng); break;
    case Symmetry::node_order: guise.nodes = other_order_of_types(world.cluster, rng); break;
    // Whole weeks, because periods are counted from time zero (gandiva, themis), and the hour of the week from there.
    case Symmetry::time_shift: guise.shift = whole_seconds(17 * 7 * 86'400); break;
    case Symmetry::time_scale: guise.scale = longer; break;
    case Symmetry::user_names: {
      guise.rename = [](std::string_view name) { return name.empty() ? std::string() : "user " + std::string(name); };
      Guise reversed = guise;
      reversed.rename = [](std::string_view name) {
        std::string other(name);
        for (char& c : other) c = static_cast<char>('a' + ('z' - c + 26) % 26);
        return other;
      };
      return {guise, reversed};
    }
  }
  return {guise};
}

struct SymmetryTrial {
  Contestant contestant;
  Symmetry symmetry;
};

std::ostream& operator<<(std::ostream& out, const SymmetryTrial& trial) { return out << trial.contestant; }

constexpr std::pair<Symmetry, const char*> symmetries[] = {{Symmetry::row_order, "row order"},
                                                           {Symmetry::node_order, "node order"},
                                                           {Symmetry::time_shift, "time shift"},
                                                           {Symmetry::time_scale, "time scale"},
                                                           {Symmetry::user_names, "user names"}};

// Whether nodes are chosen by another rule than the run's.
bool chooses_nodes(const Contestant& contestant) {
  if ((*registry().find(parse_policy_list(contestant.policy)->front().name))->chooses_nodes) return true;
  return !contestant.backfill.empty() && (*find_backfill(parse_backfill(contestant.backfill)->name))->chooses_nodes;
}

// Why the policy, or the way of backfilling that goes with it, does not keep the symmetry.
std::optional<std::string> reason_against(const Contestant& contestant, Symmetry symmetry) {
  std::vector<Asymmetry> all = (*registry().find(parse_policy_list(contestant.policy)->front().name))->asymmetries;
  if (!contestant.backfill.empty()) {
    const std::vector<Asymmetry>& of_way = (*find_backfill(parse_backfill(contestant.backfill)->name))->asymmetries;
    all.insert(all.end(), of_way.begin(), of_way.end());
  }
  for (const Asymmetry& asymmetry : all) {
    if (asymmetry.of == symmetry) return asymmetry.reason;
  }
  return std::nullopt;
}

std::vector<SymmetryTrial> trials() {
  std::vector<SymmetryTrial> all;
  for (const Contestant& contestant : contestants()) {
    for (const auto& [symmetry, name] : symmetries) {
      if (!reason_against(contestant, symmetry)) all.push_back({contestant, symmetry});
    }
  }
  return all;
}

std::string name_of_trial(const testing::TestParamInfo<SymmetryTrial>& instance) {
  const auto& [contestant, symmetry] = instance.param;
  const auto* const row = std::find_if(std::begin(symmetries), std::end(symmetries),
                                       [&](const auto& entry) { return entry.first == instance.param.symmetry; });
  return name_of(contestant) + "_" + readable(row->second);
}

class Symmetries : public testing::TestWithParam<SymmetryTrial> {};
INSTANTIATE_TEST_SUITE_P(Policies, Symmetries, testing::ValuesIn(trials()), name_of_trial);

// How many worlds of that seed were compared with another guise of theirs, and a job that fares differently there.
struct Comparison {
  std::uint64_t compared = 0;
  std::optional<std::string> difference;
};

Comparison compare(const SymmetryTrial& trial, std::uint64_t seed) {
  const auto& [contestant, symmetry] = trial;
  const WorldKind kind = kind_for(contestant.policy);
  const bool typed = symmetry == Symmetry::node_order, scales = symmetry == Symmetry::time_scale;
  const bool pinned = seed % 2 == 0 || chooses_nodes(contestant);
  const World world = typed ? typed_world(seed, kind, pinned) : any_world(seed, kind, scales);
  // The longer of two scales has the parameters as they are given, of which some are the largest that may be.
  const auto plain = fates_of(contestant, world, scales ? 1.0 / longer : 1);
  Comparison result;
  if (!plain || world.jobs.size() == 0) return result;
  for (const Guise& guise : guises_of(symmetry, world, seed)) {
    const auto other = fates_of(contestant, in_guise(guise, world));
    if (!other) return {result.compared, "refused in another guise"};
    ++result.compared;
    for (const auto& [id, fate] : *plain) {
      const Fate expected{guise.instant(fate.start), guise.instant(fate.end), fate.preemptions};
      if (alike(other->at(id), expected, guise.scale)) continue;
      std::ostringstream difference;
      difference << "seed " << seed << ", job " << id << ": " << other->at(id) << "; expected: " << expected;
      result.difference = difference.str();
      return result;
    }
  }
  return result;
}

TEST_P(Symmetries, AreKept) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(usual_symmetry_worlds); ++seed) {
    const Comparison comparison = compare(GetParam(), seed);
    ASSERT_FALSE(comparison.difference) << GetParam() << ", " << *comparison.difference;
    compared += comparison.compared;
  }
  if (compared == 0 && !has_lp_solver()) GTEST_SKIP() << "this build has no solver of linear programmes";
  const bool asks_partitions = GetParam().contestant.policy.find("preempts_by=partition") != std::string::npos;
  if (compared == 0 && asks_partitions) GTEST_SKIP() << "these worlds have no partitions";
  EXPECT_GT(compared, 0u);
}

// A row names a symmetry once, and says in words what decides instead.
TEST(Asymmetry, HasAReason) {
  for (const PolicyInfo& info : registry().rows()) {
    std::set<Symmetry> seen;
    for (const Asymmetry& asymmetry : info.asymmetries) {
      EXPECT_GT(asymmetry.reason.size(), 10u) << info.name;
      EXPECT_TRUE(seen.insert(asymmetry.of).second) << info.name;
    }
  }
}

// The guises are no copies: a policy that reads the hour shows a shift of time, and one that draws nodes their order.
TEST(Asymmetry, ShowsInSomeWorld) {
  const auto shows = [](const SymmetryTrial& trial) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      if (compare(trial, seed).difference) return true;
    }
    return false;
  };
  EXPECT_TRUE(shows({{"f1"}, Symmetry::time_shift}));
  EXPECT_TRUE(shows({{"f1"}, Symmetry::time_scale}));
  EXPECT_TRUE(shows({{"wfp3@sc20"}, Symmetry::time_shift}));
  EXPECT_TRUE(shows({{"random-node"}, Symmetry::node_order}));
}

}  // namespace
}  // namespace gpusched::test
