// SPDX-License-Identifier: Apache-2.0
/// CardSharing: which jobs share which GPU, and how fast each of them runs there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/core/record_pool.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/runtime_model.hpp"

namespace gpusched::detail {

/// What the other tasks on a card do to one.
enum class CardCompany : std::uint8_t {
  at_once,   ///< they run at once: each adds to its time what the runtime model says
  in_turns,  ///< equal turns: each of k tasks has 1/k of the card's time
  apart,     ///< nothing: it has a MIG instance of its own
};

/// A value, empty unless rates depend on who shares a card (interference or time slicing). Each task that holds a share
/// of a card has a seat there. What the other tasks on a card add to a task's time is kept as a sum, so that joining
/// and leaving cost one step per other task. Whole GPUs, and nodes that only count theirs, have no seats.
class CardSharing {
 public:
  /// Inactive.
  CardSharing() = default;
  /// Nobody shares a card yet.
  CardSharing(std::uint32_t jobs, std::uint32_t cards)
      : first_of_job_(jobs, no_index), first_on_card_(cards, no_index) {}

  /// True when rates depend on who shares a card.
  [[nodiscard]] bool active() const { return !first_of_job_.empty(); }

  /// Where a task sits.
  struct Place {
    std::uint32_t card = 0;
    std::uint32_t gpu_type = 0;                  ///< of the card
    CardCompany company = CardCompany::at_once;  ///< the same for all on the card
    std::uint32_t profile = no_index;            ///< of its MIG instance; no_index: none
  };

  /// A task of `job` takes a share of a card. Precondition: active().
  void join(const RuntimeModel& model, JobId job, std::uint32_t family, const Place& place) {
    const auto [card, gpu_type, company, profile] = place;
    const std::uint32_t at = seats_.add({.job = job,
                                         .family = family,
                                         .card = card,
                                         .gpu_type = gpu_type,
                                         .profile = profile,
                                         .company = company,
                                         .next_of_job = first_of_job_[index(job)],
                                         .next_on_card = first_on_card_[card]});
    for_each_on(card, [&](Seat& other) {
      seats_[at].extra += extra(model, seats_[at], other);
      other.extra += extra(model, other, seats_[at]);
    });
    first_of_job_[index(job)] = at;
    if (seats_[at].next_on_card != no_index) seats_[seats_[at].next_on_card].previous_on_card = at;
    first_on_card_[card] = at;
    changed_.push_back(card);
  }

  /// The job gives up all its seats.
  void leave(const RuntimeModel& model, JobId job) {
    for (std::uint32_t at = first_of_job_[index(job)]; at != no_index;) {
      const Seat seat = seats_[at];
      (seat.previous_on_card == no_index ? first_on_card_[seat.card] : seats_[seat.previous_on_card].next_on_card) =
          seat.next_on_card;
      if (seat.next_on_card != no_index) seats_[seat.next_on_card].previous_on_card = seat.previous_on_card;
      for_each_on(seat.card, [&](Seat& other) { other.extra -= extra(model, other, seat); });
      changed_.push_back(seat.card);
      seats_.remove(at);
      at = seat.next_of_job;
    }
    first_of_job_[index(job)] = no_index;
  }

  /// True when the job holds a share of a card, also when it is alone there.
  [[nodiscard]] bool is_seated(JobId job) const { return active() && first_of_job_[index(job)] != no_index; }

  /// The rate of a seated job of that span: that of its slowest task, each slowed by its company.
  [[nodiscard]] RatePpm rate(const RuntimeModel& model, JobId job, const SpanFactor& span) const {
    RatePpm slowest = ~RatePpm{0};
    for (std::uint32_t at = first_of_job_[index(job)]; at != no_index; at = seats_[at].next_of_job) {
      const Seat& seat = seats_[at];
      const RatePpm own = seat.profile == no_index ? model.rate(seat.family, seat.gpu_type)
                                                   : model.slice_rate(seat.family, seat.gpu_type, seat.profile);
      const std::int64_t alone = scaled_rate(own, span.on(seat.gpu_type));
      const std::int64_t slowed = mul_div(alone, reference_rate, reference_rate + seat.extra);
      slowest = std::min(slowest, static_cast<RatePpm>(std::max<std::int64_t>(slowed, 1)));
    }
    return slowest;
  }

  /// True when a task joined or left a card since the last for_each_affected().
  [[nodiscard]] bool any_affected() const { return !changed_.empty(); }

  /// Calls visit(job) for every job on the cards that a task joined or left since the last call, for some more than
  /// once.
  template <class Visit>
  void for_each_affected(Visit visit) {
    for (const std::uint32_t card : changed_) {
      for (std::uint32_t at = first_on_card_[card]; at != no_index; at = seats_[at].next_on_card) visit(seats_[at].job);
    }
    changed_.clear();
  }

  /// Writes the cards of the job's seats, the latest first, into `cards`. False when a kept sum is not what the other
  /// tasks on the card add: for checks.
  [[nodiscard]] bool audit(const RuntimeModel& model, JobId job, std::vector<std::uint32_t>& cards) const {
    cards.clear();
    for (std::uint32_t at = first_of_job_[index(job)]; at != no_index; at = seats_[at].next_of_job) {
      const Seat& seat = seats_[at];
      std::int64_t extra = 0;
      for (std::uint32_t other = first_on_card_[seat.card]; other != no_index; other = seats_[other].next_on_card) {
        if (other != at) extra += CardSharing::extra(model, seat, seats_[other]);
      }
      if (extra != seat.extra) return false;
      cards.push_back(seat.card);
    }
    return true;
  }

 private:
  struct Seat {
    JobId job = no_job;
    std::uint32_t family = 0;
    std::uint32_t card = no_index;
    std::uint32_t gpu_type = 0;
    std::uint32_t profile = no_index;
    CardCompany company = CardCompany::at_once;
    std::int64_t extra = 0;  // what the others add to the task's time, in millionths of its time alone
    std::uint32_t next_of_job = no_index;
    std::uint32_t next_on_card = no_index;
    std::uint32_t previous_on_card = no_index;
  };

  // What `other` adds to the time of the task in `seat`, in millionths. In turns each of the others adds the task's own
  // time once more: k tasks take k times as long.
  static std::int64_t extra(const RuntimeModel& model, const Seat& seat, const Seat& other) {
    switch (seat.company) {
      case CardCompany::in_turns: return reference_rate;
      case CardCompany::apart: return 0;
      case CardCompany::at_once: break;
    }
    return model.extra(seat.family, other.family, seat.gpu_type);
  }

  template <class Visit>
  void for_each_on(std::uint32_t card, Visit visit) {
    for (std::uint32_t at = first_on_card_[card]; at != no_index; at = seats_[at].next_on_card) visit(seats_[at]);
  }

  RecordPool<Seat, &Seat::next_of_job> seats_;
  std::vector<std::uint32_t> first_of_job_, first_on_card_;
  std::vector<std::uint32_t> changed_;  // cards
};

}  // namespace gpusched::detail
