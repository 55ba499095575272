// SPDX-License-Identifier: Apache-2.0
/// The packing rules of the FGD paper (Weng et al., ATC'23) and its simulator as rules of the reference World. Nodes
/// are looked at in an order that is an input; the first of the highest score wins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/differential/reference_fair.hpp"
#include "tests/differential/reference_world.hpp"

namespace gpusched::test {

/// The highest score and, for a share whose card the rule chooses, the card (-1: the fullest that fits).
struct PackScore {
  int value = 0;
  std::int64_t card = -1;
};
/// Of one task of a job that fits the node.
using PackRule = std::function<PackScore(const World&, const WorldNode&, const WorldJob&)>;

inline double pack_cpu(const WorldNode& node) { return std::min(static_cast<double>(node.cpu), 128'000.0); }

inline PackScore best_fit_score(const World&, const WorldNode& node, const WorldJob& job) {
  const double cpu = pack_cpu(node) - static_cast<double>(job.cpu);
  const auto gpu = static_cast<double>(node.free_milli() - job.gpu);
  return {static_cast<int>(100 * (1 - (0.5 * cpu / 128'000 + 0.5 * gpu / 8000)))};
}

inline PackScore dot_prod_score(const World&, const WorldNode& node, const WorldJob& job) {
  const double cpu = pack_cpu(node) / 128'000 * static_cast<double>(job.cpu) / 128'000;
  const double gpu = static_cast<double>(node.free_milli()) / 8000 * static_cast<double>(job.gpu) / 8000;
  return {static_cast<int>(100 * (1 - (cpu + gpu) / 2))};
}

/// A node with all cards idle: 33 less its cards. Else the cards that the task takes, those with least left first: with
/// k > 0 idle ones among them 50 - k, at least 33; with none 100 less a tenth of what is left on them in percent, at
/// least 50.
inline PackScore gpu_packing_score(const World&, const WorldNode& node, const WorldJob& job) {
  if (job.gpu == 0) return {0};
  const auto cards = static_cast<int>(node.cards.size());
  if (node.idle_cards() == cards) return {33 - cards};
  std::vector<std::int64_t> fitting;
  for (const std::int64_t left : node.cards) {
    if (left >= std::min<std::int64_t>(job.gpu, 1000)) fitting.push_back(left);
  }
  std::sort(fitting.begin(), fitting.end());
  fitting.resize(static_cast<std::size_t>(std::max<std::int64_t>(job.gpu / 1000, 1)));
  const auto idle = static_cast<int>(std::count(fitting.begin(), fitting.end(), 1000));
  if (idle > 0) return {std::max(50 - idle, 33)};
  std::int64_t percent = 0;
  for (const std::int64_t left : fitting) percent += left * 100 / 1000;
  return {std::max(100 - static_cast<int>(percent / 10), 50)};
}

/// The class of a task: shares of a card, one card, two cards, ...
inline std::int64_t pack_class(const WorldJob& job) { return job.shares_card() ? 0 : job.gpu / 1000; }

/// 25 x the used part of eight GPUs, rounded down; plus 75 where only tasks of this class are, 50 where others are too,
/// 25 where none is.
inline PackScore gpu_clustering_score(const World& world, const WorldNode& node, const WorldJob& job) {
  if (job.gpu == 0) return {0};
  std::set<std::int64_t> classes;
  for (const WorldJob& other : world.jobs) {
    for (const WorldTask& task : other.places) {
      if (&world.nodes[task.node] == &node && other.gpu > 0) classes.insert(pack_class(other));
    }
  }
  const int base = static_cast<int>(std::floor(25 * static_cast<double>(8000 - node.free_milli()) / 8000));
  if (classes.empty()) return {base + 25};
  if (!classes.contains(pack_class(job))) return {base};
  return {base + (classes.size() == 1 ? 75 : 50)};
}

// ---- FGD ----

/// A kind of task in the order of the tie rule: CPU, thousandths of each card, cards.
using PackKind = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
inline PackKind pack_kind(const WorldJob& job) {
  return {job.cpu, job.shares_card() ? job.gpu : std::min<std::int64_t>(job.gpu, 1000),
          job.shares_card() ? 1 : job.gpu / 1000};
}

/// The commonest kinds that cover 95 % of all jobs, larger ones first where equally common, with their parts of those.
inline std::vector<std::pair<PackKind, double>> typical_kinds(const World& world) {
  std::vector<PackKind> kinds;
  for (const WorldJob& job : world.jobs) kinds.push_back(pack_kind(job));
  const auto count = [&](const PackKind& kind) { return std::count(kinds.begin(), kinds.end(), kind); };
  std::vector<PackKind> distinct = kinds;
  std::sort(distinct.begin(), distinct.end(),
            [&](const PackKind& a, const PackKind& b) { return count(a) != count(b) ? count(a) > count(b) : a > b; });
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::int64_t covered = 0;
  std::vector<std::pair<PackKind, double>> typical;
  for (const PackKind& kind : distinct) {
    if (covered * 100 >= static_cast<std::int64_t>(kinds.size()) * 95) break;
    covered += count(kind);
    typical.push_back({kind, static_cast<double>(count(kind))});
  }
  for (auto& [kind, part] : typical) part /= static_cast<double>(covered);
  return typical;
}

/// Thousandths of a GPU on the node that a typical task could not use.
inline double fragments(const std::vector<std::pair<PackKind, double>>& typical, const WorldNode& node) {
  double sum = 0;
  for (const auto& [kind, part] : typical) {
    const auto& [cpu, milli, cards] = kind;
    std::int64_t all = 0, small = 0, fitting = 0;
    for (const std::int64_t left : node.cards) {
      all += left;
      small += left < milli ? left : 0;
      fitting += left < milli ? 0 : 1;
    }
    const bool usable = cards > 0 && cpu <= node.cpu && fitting >= cards;
    sum += part * static_cast<double>(usable ? small : all);
  }
  return sum;
}

inline PackScore fgd_score(const World& world, const WorldNode& node, const WorldJob& job) {
  const auto typical = typical_kinds(world);
  const double before = fragments(typical, node);
  const auto value = [&](const WorldNode& after) {
    return static_cast<int>(100 / (1 + std::exp(-(before - fragments(typical, after)) / 1000)));
  };
  WorldNode placed = node;
  placed.cpu -= job.cpu;
  if (job.shares_card()) {
    PackScore best{.value = -1};
    for (std::size_t card = 0; card < placed.cards.size(); ++card) {
      if (placed.cards[card] < job.gpu) continue;
      placed.cards[card] -= job.gpu;
      if (value(placed) > best.value) best = {value(placed), static_cast<std::int64_t>(card)};
      placed.cards[card] += job.gpu;
    }
    return best;
  }
  std::int64_t needed = job.gpu / 1000;
  for (std::int64_t& left : placed.cards) {
    if (left == 1000 && needed-- > 0) left = 0;
  }
  return {value(placed)};
}

// ---- the rule ----

/// Waiting jobs in order of submission, passing over those that fit nowhere. The tasks of a gang go to the best node
/// not yet used, as many as it takes, but one at a time where the score chose a card; a gang that runs out of nodes so
/// is placed by the run's rule.
inline World::Rule packing_rule(const std::vector<std::size_t>& order, const PackRule& score) {
  const auto pack = [=](World& world, WorldJob& job) {
    if (!world.within_quota(job)) return false;
    std::vector<std::pair<std::size_t, std::int64_t>> chosen;  // (node, card) of each task
    std::set<std::size_t> used;
    while (static_cast<std::int64_t>(chosen.size()) < job.tasks) {
      std::size_t best = world.nodes.size();
      PackScore best_score;
      for (const std::size_t node : order) {
        if (used.contains(node) || world.fit(world.nodes[node], job) == 0) continue;
        const PackScore here = score(world, world.nodes[node], job);
        if (best < world.nodes.size() && here.value <= best_score.value) continue;
        best = node;
        best_score = here;
      }
      if (best == world.nodes.size()) return job.tasks > 1 && world.start(job);
      used.insert(best);
      const std::int64_t left = job.tasks - static_cast<std::int64_t>(chosen.size());
      const std::int64_t here = best_score.card >= 0 ? 1 : std::min(left, world.fit(world.nodes[best], job));
      chosen.insert(chosen.end(), static_cast<std::size_t>(here), {best, best_score.card});
    }
    world.start_on(job, chosen);
    return true;
  };
  return [=](World& world) {
    start_in_order(
        world, [](const WorldJob& job) -> std::vector<std::int64_t> { return {job.id}; },
        [&](WorldJob& job) { return pack(world, job); });
  };
}

// ---- random-node ----

/// What was drawn, as (node, card) of each task: the card matters for shares alone.
inline std::vector<std::pair<std::size_t, std::int64_t>> drawn_tasks(const WorldJob& job, const WorldStart& start) {
  const std::size_t cards_a_task = job.gpu < 1000 ? 1 : static_cast<std::size_t>(job.gpu / 1000);
  std::vector<std::pair<std::size_t, std::int64_t>> tasks;
  for (std::size_t i = 0; i < start.places.size(); i += cards_a_task) {
    tasks.push_back({static_cast<std::size_t>(start.places[i].first), job.shares_card() ? start.places[i].second : -1});
  }
  return tasks;
}

/// Could the draw have come to these? Tasks of whole GPUs fill every node but the last that was drawn. Of shares each
/// has a node of its own and any card there with room, or where nodes are too few the run's rule placed the gang.
inline bool may_be_drawn(const World& world, const WorldJob& job,
                         const std::vector<std::pair<std::size_t, std::int64_t>>& tasks) {
  std::map<std::size_t, std::int64_t> here;
  for (const auto& [node, card] : tasks) ++here[node];
  std::int64_t not_filled = 0, fitting = 0;
  for (const WorldNode& node : world.nodes) fitting += world.fit(node, job) > 0 ? 1 : 0;
  for (const auto& [node, count] : here) {
    const std::int64_t fit = world.fit(world.nodes[node], job);
    if (count > fit) return false;
    not_filled += count < fit ? 1 : 0;
  }
  if (std::ssize(tasks) != job.tasks) return false;
  if (!job.shares_card()) return not_filled <= 1;
  if (fitting < job.tasks) {
    World placed = world;
    placed.start(placed.jobs[static_cast<std::size_t>(job.id)]);
    return tasks == drawn_tasks(job, placed.starts.back());
  }
  return std::ssize(here) == job.tasks && std::all_of(tasks.begin(), tasks.end(), [&](const auto& task) {
           return world.nodes[task.first].cards[static_cast<std::size_t>(task.second)] >= job.gpu;
         });
}

/// Waiting jobs in order of submission, whatever fits, each where `drawn` says, as far as that could have been drawn:
/// else it goes elsewhere.
inline World::Rule random_node_rule(const std::vector<WorldStart>& drawn) {
  const auto start = [=](World& world, WorldJob& job) {
    World placed = world;
    if (!placed.start(placed.jobs[static_cast<std::size_t>(job.id)])) return false;
    if (world.starts.size() < drawn.size() && drawn[world.starts.size()].job == job.id) {
      const auto tasks = drawn_tasks(job, drawn[world.starts.size()]);
      if (may_be_drawn(world, job, tasks)) {
        world.start_on(job, tasks);
        return true;
      }
    }
    world = placed;
    world.starts.back().places.clear();  // never equal to what was drawn
    return true;
  };
  return [=](World& world) {
    start_in_order(
        world, [](const WorldJob& job) -> std::vector<std::int64_t> { return {job.id}; },
        [&](WorldJob& job) { return start(world, job); });
  };
}

}  // namespace gpusched::test
