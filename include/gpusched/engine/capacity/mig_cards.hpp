// SPDX-License-Identifier: Apache-2.0
/// MigCards: the account of cards that are cut into MIG instances: which layouts they have, which slices tasks hold,
/// and which instance a task gets (gpusched/data/mig.hpp says what is legal).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/gpu_demand.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/mig.hpp"
#include "gpusched/engine/capacity/node_state.hpp"

namespace gpusched {

/// The instance that a slice number stands for (Grant::slice). Precondition: slice > 0.
[[nodiscard]] inline MigInstance mig_instance(std::uint8_t slice) {
  return {.profile = static_cast<std::uint8_t>((slice - 1) / most_mig_slices),
          .start = static_cast<std::uint8_t>((slice - 1) % most_mig_slices)};
}
/// The slice number of an instance; above 0.
[[nodiscard]] inline std::uint8_t mig_slice(const MigInstance& instance) {
  return static_cast<std::uint8_t>(1 + instance.profile * most_mig_slices + instance.start);
}

namespace detail {

/// A value. Cards are numbered over all nodes that tell their GPUs apart. A slice number is that of Grant::slice: 0 is
/// the whole card.
class MigCards {
 public:
  /// No card is ever cut.
  MigCards() = default;

  /// Finds the cards that are cut, and which profiles each GPU demand may have there. Takes the GPUs that no job can
  /// hold whole off the accounts of the nodes.
  MigCards(const Cluster& cluster, const NameTable& specs, std::vector<NodeState>& nodes, std::size_t cards) {
    const auto is_cut = [](const NodeState& node) { return node.mig != no_index && node.has_devices; };
    if (std::none_of(nodes.begin(), nodes.end(), is_cut)) return;
    cards_.resize(cards);
    for (NodeState& node : nodes) {
      if (is_cut(node)) cut_node(cluster, node);
    }
    profiles_.resize(specs.size() * kinds_.size());
    for (std::uint32_t spec = 0; spec < specs.size(); ++spec) {
      const GpuDemand demand(specs[spec]);
      for (std::size_t k = 0; k < kinds_.size(); ++k) {
        profiles_[spec * kinds_.size() + k] = profiles_for(demand, cluster.gpu_types[kinds_[k].gpu_type], kinds_[k]);
      }
    }
  }

  /// True when no card is cut, nor can be.
  [[nodiscard]] bool empty() const { return cards_.empty(); }
  /// True when the layout of some card changes as jobs come.
  [[nodiscard]] bool are_dynamic() const { return are_dynamic_; }
  /// What the card can be cut into; null: it is never cut.
  [[nodiscard]] const MigModel* model(std::uint32_t card) const {
    return !empty() && is_ever_cut(card) ? kind_of(card).model : nullptr;
  }
  /// Memory slices of the card that tasks hold. Precondition: model(card).
  [[nodiscard]] MigSlices held(std::uint32_t card) const { return cards_[card].held; }
  /// The instances of the card, held or not, by start; none while it is not in MIG mode. Precondition: model(card).
  [[nodiscard]] std::vector<MigInstance> instances(std::uint32_t card) const {
    std::vector<MigInstance> list;
    const Card& mig = cards_[card];
    for (std::uint8_t start = 0; start < most_mig_slices && mig.layout[0] != Card::uncut; ++start) {
      if (mig.layout[start] == 0) continue;
      list.push_back({.profile = static_cast<std::uint8_t>(mig.layout[start] - 1), .start = start});
    }
    return list;
  }

  /// Tasks of the shape that find an instance each on the card as it is, or when it is idle. As many as shares where
  /// the card is never cut. Precondition of this and all below: not empty().
  /// \{
  [[nodiscard]] std::int64_t tasks_that_fit(std::uint32_t card, const Shape& shape) const {
    return instances_that_fit(card, shape, cards_[card].held);
  }
  [[nodiscard]] std::int64_t tasks_when_idle(std::uint32_t card, const Shape& shape) const {
    return instances_that_fit(card, shape, 0);
  }
  /// The same while tasks hold these slices, whatever they hold now.
  [[nodiscard]] std::int64_t tasks_beside(std::uint32_t card, const Shape& shape, MigSlices held) const {
    return instances_that_fit(card, shape, held);
  }
  /// \}
  /// Of the instances that a task of the shape could have: one that is there already, of the least profile, after which
  /// the fewest other instances lose their place; at the first start on ties. 0: the card is never cut. Precondition:
  /// the task fits.
  [[nodiscard]] std::uint8_t choose_slice(std::uint32_t number, const Shape& shape) const {
    return choose_slice(number, shape, cards_[number].held);
  }
  /// The same while tasks hold these slices.
  [[nodiscard]] std::uint8_t choose_slice(std::uint32_t number, const Shape& shape, MigSlices held) const {
    if (!is_ever_cut(number)) return 0;
    const Card& card = cards_[number];
    const Kind& kind = kind_of(number);
    std::uint8_t best = 0;
    std::tuple<bool, std::uint32_t, std::uint32_t> least{};
    for_each_choice(
        card, shape, held, [this, &kind, &held, &number, &best, &least](std::uint32_t p, std::uint32_t start) {
          const std::uint8_t slice =
              mig_slice({.profile = static_cast<std::uint8_t>(p), .start = static_cast<std::uint8_t>(start)});
          const bool counts = kind.layout == MigLayout::dynamic;
          const std::uint32_t lost =
              counts ? places_lost(*kind.model, held, kind.model->profiles()[p].slices(start)) : 0;
          const std::tuple rank{!is_ready(number, slice), p, lost};
          if (best != 0 && rank >= least) return;
          best = slice;
          least = rank;
        });
    return best;
  }
  /// True when the card has that instance (0: is not in MIG mode), so that nothing is to be changed.
  [[nodiscard]] bool is_ready(std::uint32_t number, std::uint8_t slice) const {
    const Card& card = cards_[number];
    if (slice == 0) return card.layout[0] == Card::uncut;
    const MigInstance wanted = mig_instance(slice);
    return card.layout[wanted.start] == wanted.profile + 1;
  }
  /// True when a task of the shape may have that instance, and nobody holds a part of it. 0: on a card that is never
  /// cut.
  [[nodiscard]] bool takes(std::uint32_t number, const Shape& shape, std::uint8_t slice) const {
    if (!is_ever_cut(number)) return slice == 0;
    bool found = false;
    for_each_choice(cards_[number], shape, cards_[number].held, [&found, &slice](std::uint32_t p, std::uint32_t start) {
      found = found || slice == mig_slice({static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(start)});
    });
    return found;
  }
  /// True when no task holds a part of the slice. Precondition: the card can be cut.
  [[nodiscard]] bool is_free(std::uint32_t card, std::uint8_t slice) const {
    return (cards_[card].held & slices_of(kind_of(card), slice)) == 0;
  }
  /// Takes the slice, or gives it back. Nothing on a card that is never cut.
  void hold(std::uint32_t number, std::uint8_t slice, [[maybe_unused]] bool take) {
    if (!is_ever_cut(number)) return;
    Card& card = cards_[number];
    const MigSlices slices = slices_of(kind_of(number), slice);
    GPUSCHED_ASSERT((card.held & slices) == (take ? 0 : slices), "MIG instances overlap");
    card.held = static_cast<MigSlices>(card.held ^ slices);
  }

  /// What making cards as the tasks of a run need them took.
  struct Reconfiguration {
    Time time{};              ///< until the tasks can work
    MilliGpu milli = 0;       ///< GPU thousandths that wait for it
    std::uint32_t cards = 0;  ///< whose layout changed
  };
  /// Makes the layout of a dynamic card such as the slice, which is held already, needs it, and adds what that takes to
  /// `total`: instances that nobody holds and that are in its way go.
  void configure(std::uint32_t card, std::uint8_t slice, Reconfiguration& total) {
    if (!is_ever_cut(card)) return;
    const Kind& kind = kind_of(card);
    if (kind.layout == MigLayout::fixed || is_ready(card, slice)) return;
    cut(cards_[card], kind, slice);
    ++total.cards;
    total.time = std::max(total.time, kind.reconfigure);
    total.milli += slice == 0 ? whole_gpu : kind.model->milli(kind.model->profiles()[mig_instance(slice).profile]);
  }

  /// Counts the free slices of a card as held, which go to `withheld`, because its node is out of service; or ends
  /// that.
  /// \{
  void withhold(std::uint32_t number, MigSlices& withheld) {
    if (!is_ever_cut(number)) return;
    withheld = static_cast<MigSlices>(kind_of(number).model->whole() & ~cards_[number].held);
    cards_[number].held = static_cast<MigSlices>(cards_[number].held ^ withheld);
  }
  void reinstate(std::uint32_t number, MigSlices withheld) {
    if (is_ever_cut(number)) cards_[number].held = static_cast<MigSlices>(cards_[number].held ^ withheld);
  }
  /// \}

  /// Makes the card as it is in another state of the same cards.
  void copy_card(const MigCards& other, std::uint32_t card) { cards_[card] = other.cards_[card]; }

  /// True when nothing is held.
  [[nodiscard]] bool all_free() const {
    return std::all_of(cards_.begin(), cards_.end(), [](const Card& card) { return card.held == 0; });
  }

 private:
  // A GPU as MIG sees it.
  struct Card {
    static constexpr std::uint8_t uncut = 0xff;      // in `layout`: not in MIG mode
    static constexpr std::uint8_t never_cut = 0xff;  // in `kind`

    MigSlices held = 0;  // memory slices of instances that tasks hold; all of them while a job holds the GPU whole
    std::uint8_t kind = never_cut;  // number of its Kind
    // By memory slice: the profile of the instance that begins there, plus 1; 0: none begins there. At slice 0 `uncut`.
    std::array<std::uint8_t, most_mig_slices> layout{};
  };

  // Cards that are cut in the same way.
  struct Kind {
    const MigModel* model = nullptr;  // static
    MigLayout layout = MigLayout::fixed;
    Time reconfigure{};
    std::uint32_t mig = no_index;  // Node::mig
    std::uint32_t gpu_type = 0;
    std::int64_t memory_mib = 0;  // of a card
  };

  [[nodiscard]] bool is_ever_cut(std::uint32_t card) const { return cards_[card].kind != Card::never_cut; }
  [[nodiscard]] const Kind& kind_of(std::uint32_t card) const { return kinds_[cards_[card].kind]; }

  void cut_node(const Cluster& cluster, NodeState& node) {
    const MigNode& mig = cluster.migs[node.mig];
    const std::uint8_t number = kind_number(cluster, node);
    const MigModel& model = *kinds_[number].model;
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      Card& card = cards_[node.first_device + d];
      const bool dynamic = mig.layout != MigLayout::fixed;
      are_dynamic_ = are_dynamic_ || dynamic;
      if (!dynamic && (d >= mig.cards.size() || mig.cards[d].empty())) continue;  // not in MIG mode
      card.kind = number;
      if (dynamic) {
        card.layout[0] = Card::uncut;
        continue;
      }
      for (const MigInstance& one : mig.cards[d]) card.layout[one.start] = static_cast<std::uint8_t>(one.profile + 1);
      // One instance of the whole card is as good as the card.
      const MigInstance& first = mig.cards[d].front();
      if (model.profiles()[first.profile].compute != model.compute_slices) {
        node.whole_devices &= ~(std::uint64_t{1} << d);
      }
    }
    node.idle_devices = node.whole_devices;
    node.idle = node.whole_gpus = static_cast<std::uint32_t>(std::popcount(node.whole_devices));
  }

  std::uint8_t kind_number(const Cluster& cluster, const NodeState& node) {
    const auto place = std::find_if(kinds_.begin(), kinds_.end(), [&node](const Kind& kind) {
      return kind.mig == node.mig && kind.gpu_type == node.gpu_type;
    });
    const auto number = static_cast<std::uint8_t>(place - kinds_.begin());
    GPUSCHED_ASSERT(number < Card::never_cut, "too many ways in which cards are cut");
    if (place != kinds_.end()) return number;
    const MigNode& mig = cluster.migs[node.mig];
    const MigModel& model = mig_models[mig.model];
    kinds_.push_back({.model = &model,
                      .layout = mig.layout,
                      .reconfigure = mig.reconfigure,
                      .mig = node.mig,
                      .gpu_type = node.gpu_type,
                      .memory_mib = std::min(cluster.device(node.gpu_type).memory_mib, model.memory_mib)});
    return number;
  }

  // A bit for each profile with enough memory that such a job may have: the one that it names, or all.
  static std::uint8_t profiles_for(const GpuDemand& demand, std::string_view type, const Kind& kind) {
    const std::string_view named = demand.mig_profile(type);
    std::uint8_t allowed = 0;
    for (std::uint32_t p = 0; p < kind.model->profile_count; ++p) {
      const MigProfile& profile = kind.model->profiles()[p];
      const bool enough = kind.memory_mib * profile.memory / kind.model->memory_slices >= demand.memory_mib();
      if (enough && (named.empty() || named == profile.name)) allowed = static_cast<std::uint8_t>(allowed | 1u << p);
    }
    return allowed;
  }

  // True when an instance of profile `p` is what a task of the shape may have, and as large as its share.
  [[nodiscard]] bool holds(const Card& card, std::uint32_t p, const Shape& shape) const {
    const Kind& kind = kinds_[card.kind];
    return (profiles_[shape.gpu_spec * kinds_.size() + card.kind] >> p & 1) != 0 &&
           kind.model->milli(kind.model->profiles()[p]) >= shape.gpu_milli_per_task;
  }

  // The least profile that holds a task of the shape; no_index: none does.
  [[nodiscard]] std::uint32_t least_profile(const Card& card, const Shape& shape) const {
    for (std::uint32_t p = 0; p < kinds_[card.kind].model->profile_count; ++p) {
      if (holds(card, p, shape)) return p;
    }
    return no_index;
  }

  // Calls visit(profile, start) for every instance that a task of the shape could have on the card while those slices
  // are held: on a card of fixed layout the instances that are there, else all of the least profile.
  template <class Visit>
  void for_each_choice(const Card& card, const Shape& shape, MigSlices held, Visit visit) const {
    const Kind& kind = kinds_[card.kind];
    const bool is_fixed = kind.layout == MigLayout::fixed;
    const std::uint32_t least = is_fixed ? 0 : least_profile(card, shape);
    if (least == no_index) return;
    for (std::uint32_t start = 0; start < kind.model->memory_slices; ++start) {
      if (is_fixed && card.layout[start] == 0) continue;
      const std::uint32_t p = is_fixed ? card.layout[start] - 1u : least;
      const MigProfile& profile = kind.model->profiles()[p];
      if ((profile.starts >> start & 1) == 0 || (profile.slices(start) & held) != 0) continue;
      if (!is_fixed || holds(card, p, shape)) visit(p, start);
    }
  }

  // Instances of one profile at two starts never overlap.
  [[nodiscard]] std::int64_t instances_that_fit(std::uint32_t card, const Shape& shape, MigSlices held) const {
    if (!is_ever_cut(card)) return whole_gpu;
    std::int64_t count = 0;
    for_each_choice(cards_[card], shape, held, [&count](std::uint32_t, std::uint32_t) { ++count; });
    return count;
  }

  // How many instances, of any profile and start, could stand on the card now and could not beside these slices.
  static std::uint32_t places_lost(const MigModel& model, MigSlices held, MigSlices slices) {
    std::uint32_t lost = 0;
    for (const MigProfile& profile : model.profiles()) {
      for (std::uint32_t start = 0; start < model.memory_slices; ++start) {
        const MigSlices there = profile.slices(start);
        const bool is_possible = (profile.starts >> start & 1) != 0 && (there & held) == 0;
        lost += is_possible && (there & slices) != 0 ? 1 : 0;
      }
    }
    return lost;
  }

  // Precondition: nobody but the one who will have the instance holds a part of its slices.
  static void cut(Card& card, const Kind& kind, std::uint8_t slice) {
    if (slice == 0 || card.layout[0] == Card::uncut) card.layout = {};
    if (slice == 0) {
      card.layout[0] = Card::uncut;
      return;
    }
    const MigInstance wanted = mig_instance(slice);
    const MigSlices slices = kind.model->profiles()[wanted.profile].slices(wanted.start);
    for (std::uint32_t start = 0; start < most_mig_slices; ++start) {
      const std::uint32_t there = card.layout[start];
      if (there != 0 && (kind.model->profiles()[there - 1].slices(start) & slices) != 0) card.layout[start] = 0;
    }
    card.layout[wanted.start] = static_cast<std::uint8_t>(wanted.profile + 1);
  }

  // The memory slices that a slice number stands for.
  static MigSlices slices_of(const Kind& kind, std::uint8_t slice) {
    if (slice == 0) return kind.model->whole();
    const MigInstance one = mig_instance(slice);
    return kind.model->profiles()[one.profile].slices(one.start);
  }

  std::vector<Card> cards_;  // empty where none is ever cut
  std::vector<Kind> kinds_;
  std::vector<std::uint8_t> profiles_;  // [spec * kinds + kind]: bit p: such a job may have profile p
  bool are_dynamic_ = false;
};

}  // namespace detail

}  // namespace gpusched
