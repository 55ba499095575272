// SPDX-License-Identifier: Apache-2.0
/// Backfilling on cards with MIG, second by second: what is held of each card is looked up anew for every second, from
/// a list of all that runs or is planned. Cards are A100-40GB.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/mig.hpp"

namespace gpusched::test {

struct MigJob {
  std::int64_t submit = 0, work = 1, estimate = 1;  ///< work <= estimate
  std::int64_t tasks = 1, milli = 1000;             ///< 1 to 1000, or whole GPUs
  std::int64_t start = -1, end = -1;                ///< -1: not yet
  [[nodiscard]] bool shares() const { return milli < 1000; }
};

/// What a task, or a gang of whole GPUs, holds of a card.
struct MigPiece {
  std::size_t card = 0;
  int profile = -1;  ///< -1: the whole card, or a share of one that is not cut
  std::uint32_t start = 0;
};

struct MigBooking {
  std::size_t job = 0;
  std::int64_t begin = 0, end = 0;  ///< as planned
  std::vector<MigPiece> pieces = {};
};

class MigBoard {
 public:
  explicit MigBoard(const Cluster& cluster) : model_(mig_models[find_mig_model("A100-40GB")]) {
    for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
      first_.push_back(cards_.size());
      const MigNode& mig = cluster.migs[cluster.nodes[n].mig];
      for (std::uint32_t d = 0; d < cluster.nodes[n].gpus; ++d) {
        Card card{.node = n, .layout = mig.layout};
        if (mig.layout == MigLayout::fixed && d < mig.cards.size()) card.instances = mig.cards[d];
        card.is_ever_cut = mig.layout != MigLayout::fixed || !card.instances.empty();
        cards_.push_back(card);
      }
    }
    first_.push_back(cards_.size());
  }

  std::vector<MigJob> jobs;
  std::vector<MigBooking> running, plans;

  /// The earliest hole from `now` on for so long, and what the job has there.
  [[nodiscard]] MigBooking hole(std::size_t job, std::int64_t now) const {
    for (std::int64_t begin = now;; ++begin) {
      auto pieces = fit(job, begin, begin + jobs[job].estimate);
      if (pieces) return {.job = job, .begin = begin, .end = begin + jobs[job].estimate, .pieces = *pieces};
    }
  }
  /// On cards of one node, with room at this second: as the engine places a job on it.
  [[nodiscard]] std::optional<MigBooking> place_now(std::size_t job, std::int64_t now) const {
    auto pieces = fit(job, now, now + 1, true);
    if (!pieces) return std::nullopt;
    return MigBooking{.job = job, .begin = now, .end = now + jobs[job].estimate, .pieces = *pieces};
  }
  /// The booking's job runs from now on.
  void start(const MigBooking& booking, std::int64_t now) {
    running.push_back(booking);
    running.back().begin = now;
    running.back().end = now + jobs[booking.job].estimate;
    jobs[booking.job].start = now;
    jobs[booking.job].end = now + jobs[booking.job].work;
    started_.push_back(running.back());
  }
  /// Cards are cut as those that started need them, when all decisions of the second are made.
  void cut_cards() {
    for (const MigBooking& booking : started_) {
      for (const MigPiece& piece : booking.pieces) cut(cards_[piece.card], piece, jobs[booking.job].shares());
    }
    started_.clear();
  }

 private:
  struct Card {
    std::size_t node = 0;
    MigLayout layout = MigLayout::fixed;
    bool is_ever_cut = true;
    std::vector<MigInstance> instances = {};  // there are, held or not
    bool is_whole = true;                     // of a dynamic card: not in MIG mode
  };
  /// What is free of a card all the time.
  struct Free {
    MigSlices held = 0;
    std::int64_t share = 1000;  // of a card that is never cut
  };

  [[nodiscard]] Free free_of(std::size_t card, std::int64_t begin, std::int64_t end) const {
    Free free;
    for (std::int64_t t = begin; t < end; ++t) {
      std::int64_t share = 1000;
      for (const auto* list : {&running, &plans}) {
        for (const MigBooking& booking : *list) {
          if (t < booking.begin || t >= booking.end) continue;
          for (const MigPiece& piece : booking.pieces) {
            if (piece.card != card) continue;
            const MigJob& job = jobs[booking.job];
            free.held |=
                piece.profile < 0 ? 0xff : model_.all[static_cast<std::size_t>(piece.profile)].slices(piece.start);
            share -= job.shares() ? job.milli : 1000;
          }
        }
      }
      free.share = std::min(free.share, share);
    }
    return free;
  }

  // GPU thousandths of the node of which nothing is held, at the busiest second.
  [[nodiscard]] std::int64_t free_milli(std::size_t node, std::int64_t begin, std::int64_t end) const {
    std::int64_t least = static_cast<std::int64_t>(first_[node + 1] - first_[node]) * 1000;
    for (std::int64_t t = begin; t < end; ++t) {
      std::int64_t free = static_cast<std::int64_t>(first_[node + 1] - first_[node]) * 1000;
      for (const auto* list : {&running, &plans}) {
        for (const MigBooking& booking : *list) {
          if (t < booking.begin || t >= booking.end) continue;
          for (const MigPiece& piece : booking.pieces) {
            if (cards_[piece.card].node == node) free -= std::min<std::int64_t>(jobs[booking.job].milli, 1000);
          }
        }
      }
      least = std::min(least, free);
    }
    return least;
  }

  // Instances that a share could have on the card beside those slices.
  [[nodiscard]] std::vector<MigPiece> choices(std::size_t number, std::int64_t milli, MigSlices held) const {
    const Card& card = cards_[number];
    std::vector<MigPiece> found;
    const auto profiles = model_.profiles();
    if (card.layout == MigLayout::fixed) {
      for (const MigInstance& one : card.instances) {
        const bool free = (profiles[one.profile].slices(one.start) & held) == 0;
        if (free && model_.milli(profiles[one.profile]) >= milli) found.push_back({number, one.profile, one.start});
      }
      return found;
    }
    std::size_t p = 0;
    while (model_.milli(profiles[p]) < milli) ++p;
    for (std::uint32_t start = 0; start < 8; ++start) {
      if ((profiles[p].starts >> start & 1) == 0 || (profiles[p].slices(start) & held) != 0) continue;
      found.push_back({number, static_cast<int>(p), start});
    }
    return found;
  }

  [[nodiscard]] std::int64_t tasks_on(std::size_t card, const MigJob& job, const Free& free) const {
    if (!job.shares()) return free.held == 0 && can_be_whole(cards_[card]) ? 1 : 0;
    if (!cards_[card].is_ever_cut) return free.share / job.milli;
    return static_cast<std::int64_t>(choices(card, job.milli, free.held).size());
  }
  [[nodiscard]] bool can_be_whole(const Card& card) const {
    return card.layout != MigLayout::fixed || card.instances.empty() ||
           model_.all[card.instances.front().profile].compute == 7;
  }

  [[nodiscard]] bool is_ready(const MigPiece& piece) const {
    const auto& there = cards_[piece.card].instances;
    return std::any_of(there.begin(), there.end(), [&](const MigInstance& one) {
      return one.profile == piece.profile && one.start == piece.start;
    });
  }
  [[nodiscard]] int places_lost(const MigPiece& piece, MigSlices held) const {
    int lost = 0;
    const MigSlices taken = model_.all[static_cast<std::size_t>(piece.profile)].slices(piece.start);
    for (const MigProfile& profile : model_.profiles()) {
      for (std::uint32_t start = 0; start < 8; ++start) {
        const MigSlices there = profile.slices(start);
        if ((profile.starts >> start & 1) != 0 && (there & held) == 0 && (there & taken) != 0) ++lost;
      }
    }
    return lost;
  }

  // Where the whole job fits from `begin` until `end`: the node with the least room to spare that holds it all, else
  // the roomiest first. `as_engine`: the GPU with the least of its thousandths left, instead of slices.
  [[nodiscard]] std::optional<std::vector<MigPiece>> fit(std::size_t number, std::int64_t begin, std::int64_t end,
                                                         bool as_engine = false) const {
    const MigJob& job = jobs[number];
    std::vector<Free> free;
    for (std::size_t card = 0; card < cards_.size(); ++card) free.push_back(free_of(card, begin, end));
    std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t>> nodes;
    std::int64_t sum = 0;
    for (std::size_t n = 0; n + 1 < first_.size(); ++n) {
      std::int64_t room = 0;
      for (std::size_t card = first_[n]; card < first_[n + 1]; ++card) room += tasks_on(card, job, free[card]);
      if (!job.shares()) room /= job.milli / 1000;
      const std::int64_t milli = free_milli(n, begin, end);
      room = std::min({room, job.tasks, milli / job.milli});
      if (room > 0) nodes.emplace_back(-room, milli, n);
      sum += room;
    }
    if (sum < job.tasks) return std::nullopt;
    std::sort(nodes.begin(), nodes.end());
    std::vector<MigPiece> pieces;
    std::int64_t left = job.tasks;
    for (const auto& [room, milli, n] : nodes) {
      const std::int64_t here = std::min(left, -room);
      left -= here;
      for (std::int64_t i = 0; i < (job.shares() ? here : here * job.milli / 1000); ++i) {
        pieces.push_back(choose(job, n, free, as_engine, begin));
        const MigPiece& piece = pieces.back();
        Free& rest = free[piece.card];
        rest.held |= piece.profile < 0 ? 0xff : model_.all[static_cast<std::size_t>(piece.profile)].slices(piece.start);
        rest.share -= std::min<std::int64_t>(job.milli, 1000);
      }
    }
    return pieces;
  }

  [[nodiscard]] MigPiece choose(const MigJob& job, std::size_t node, const std::vector<Free>& free, bool as_engine,
                                std::int64_t now) const {
    std::optional<MigPiece> best;
    std::tuple<bool, int, std::int64_t> least{};
    for (std::size_t card = first_[node]; card < first_[node + 1]; ++card) {
      if (tasks_on(card, job, free[card]) == 0) continue;
      if (!job.shares()) return {.card = card};
      MigPiece piece{.card = card};
      if (cards_[card].is_ever_cut) {
        std::optional<std::tuple<bool, int, int>> first;
        for (const MigPiece& choice : choices(card, job.milli, free[card].held)) {
          const int lost = cards_[card].layout == MigLayout::dynamic ? places_lost(choice, free[card].held) : 0;
          const std::tuple rank{!is_ready(choice), choice.profile, lost};
          if (first && rank >= *first) continue;
          first = rank;
          piece = choice;
        }
      }
      const bool is_cut = piece.profile >= 0;
      const std::int64_t left = as_engine ? std::min(free[card].share, free_share(card, now))
                                : is_cut  ? (8 - std::popcount(free[card].held)) * 1000
                                          : 8 * free[card].share;
      const std::tuple rank{is_cut && !is_ready(piece), is_cut ? piece.profile : 8, left};
      if (best && rank >= least) continue;
      best = piece;
      least = rank;
    }
    return *best;
  }
  [[nodiscard]] std::int64_t free_share(std::size_t card, std::int64_t now) const {
    return free_of(card, now, now + 1).share;
  }

  void cut(Card& card, const MigPiece& piece, bool shares) const {
    if (card.layout == MigLayout::fixed) return;
    if (!shares) {
      card.instances.clear();
      card.is_whole = true;
      return;
    }
    card.is_whole = false;
    if (is_ready(piece)) return;
    const auto slices = [&](std::size_t profile, std::uint32_t start) { return model_.all[profile].slices(start); };
    std::erase_if(card.instances, [&](const MigInstance& one) {
      return (slices(one.profile, one.start) & slices(static_cast<std::size_t>(piece.profile), piece.start)) != 0;
    });
    card.instances.push_back(
        {.profile = static_cast<std::uint8_t>(piece.profile), .start = static_cast<std::uint8_t>(piece.start)});
  }

  const MigModel& model_;
  std::vector<Card> cards_;
  std::vector<std::size_t> first_;  // card of each node
  std::vector<MigBooking> started_;
};

}  // namespace gpusched::test
