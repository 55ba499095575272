// SPDX-License-Identifier: Apache-2.0
/// PWR (Lettich et al., CCGrid 2025) as scores of the reference World: what a node draws, added up anew from its cards
/// and cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "tests/differential/reference_packing.hpp"

namespace gpusched::test {

/// A node in whole watts: a card draws all it can as soon as it is touched, working cores fill one processor after
/// another.
struct WorldNodePower {
  std::int64_t idle_card = 0, full_card = 0, idle_cpu = 0, full_cpu = 0;
  std::int64_t cpus = 0, milli_a_cpu = 0;
  std::int64_t cpu_milli = 0;  ///< of the node; 0: does not count them
};

/// By node.
using WorldPower = std::vector<WorldNodePower>;

/// The same for the engine. Precondition: nodes of one GPU type have the same cards.
inline PowerModel power_model(const WorldPower& world, const Cluster& cluster) {
  PowerModel model;
  for (std::size_t i = 0; i < world.size(); ++i) {
    const WorldNodePower& node = world[i];
    const std::size_t type = cluster.nodes[i].gpu_type;
    if (model.gpus.size() <= type) model.gpus.resize(type + 1);
    const auto full = static_cast<double>(node.full_card);
    model.gpus[type].load = {.idle_w = static_cast<double>(node.idle_card), .full_w = full, .touched_w = full};
    model.kinds.push_back(
        {.cpu = {.idle_w = static_cast<double>(node.idle_cpu), .full_w = static_cast<double>(node.full_cpu)},
         .cpus = static_cast<std::uint32_t>(node.cpus),
         .cores_per_cpu = static_cast<double>(node.milli_a_cpu) / 1000});
    model.kind_of.push_back(static_cast<std::uint32_t>(i));
  }
  return model;
}

/// Watts of the node with the cards as they are and so many thousandths of cores at work.
inline std::int64_t world_watts(const WorldNodePower& power, const std::vector<std::int64_t>& cards, double milli) {
  std::int64_t watts = 0;
  for (const std::int64_t left : cards) watts += left < 1000 ? power.full_card : power.idle_card;
  if (power.cpus == 0) return watts;
  std::int64_t full = 0;
  while (full < power.cpus && milli - 1e-6 > static_cast<double>(full * power.milli_a_cpu)) ++full;
  return watts + full * power.full_cpu + (power.cpus - full) * power.idle_cpu;
}

/// Cores at which one task works: as many as it asks for, or as large a part of the node's as it has of the GPUs.
inline double working_milli(const WorldNodePower& power, const WorldNode& node, const WorldJob& job) {
  if (job.cpu > 0 && power.cpu_milli > 0) return static_cast<double>(job.cpu);
  if (node.size == 0) return 0;
  const std::int64_t all = power.cpu_milli > 0 ? power.cpu_milli : power.cpus * power.milli_a_cpu;
  return static_cast<double>(all * job.gpu) / static_cast<double>(1000 * node.size);
}

/// The rise with the other sign, in whole watts; of cards that take a share the first with the least.
inline PackScore pwr_score(const World& world, const WorldNode& node, const WorldJob& job, const WorldPower& powers) {
  const auto number = static_cast<std::size_t>(&node - world.nodes.data());
  const WorldNodePower& power = powers[number];
  double milli = 0;
  for (const WorldJob& other : world.jobs) {
    for (const WorldTask& task : other.places) {
      if (task.node == number) milli += working_milli(power, node, other);
    }
  }
  const std::int64_t before = world_watts(power, node.cards, milli);
  milli += working_milli(power, node, job);
  std::vector<std::int64_t> cards = node.cards;
  if (job.shares_card()) {
    PackScore best;
    for (std::size_t card = 0; card < cards.size(); ++card) {
      if (cards[card] < job.gpu) continue;
      cards[card] -= job.gpu;
      const auto value = static_cast<int>(before - world_watts(power, cards, milli));
      if (best.card < 0 || value > best.value) best = {value, static_cast<std::int64_t>(card)};
      cards[card] += job.gpu;
    }
    return best;
  }
  std::int64_t needed = job.gpu / 1000;
  for (std::int64_t& left : cards) {
    if (left == 1000 && needed-- > 0) left = 0;
  }
  return {static_cast<int>(before - world_watts(power, cards, milli))};
}

/// Four times the sum under alpha = 1/4; the card is FGD's. Precondition: jobs of one task.
inline PackScore pwr_fgd_score(const World& world, const WorldNode& node, const WorldJob& job,
                               const WorldPower& powers) {
  std::vector<int> scores;
  for (const WorldNode& other : world.nodes) {
    if (world.fit(other, job) > 0) scores.push_back(pwr_score(world, other, job, powers).value);
  }
  const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
  const int own = pwr_score(world, node, job, powers).value;
  const int pwr = *least == *most ? 100 : (own - *least) * 100 / (*most - *least);
  PackScore score = fgd_score(world, node, job);
  score.value = pwr + 3 * score.value;
  return score;
}

}  // namespace gpusched::test
