// SPDX-License-Identifier: Apache-2.0
/// JobTokens: the waiting jobs of an Agenda, which of them it shows, and the rows that it shows of them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "gpusched/learn/detail/waiting_shapes.hpp"
#include "gpusched/learn/observation.hpp"

namespace gpusched {

/// A job that waits, with what of its token does not change meanwhile.
struct WaitingJob {
  std::int64_t submit_us, known_us;
  JobId job;
  std::uint32_t slot;  ///< of WaitingShapes
  std::uint32_t user;
  float known_s, gpus;
  // By describe(), which more than half of the jobs never need: they come to an empty queue and start at once.
  float per_known_s = 0;              ///< 1 / max(known, 10 s)
  float log_known = 0, log_area = 0;  ///< the features of these names
  float prior = 0;                    ///< its place in the prior, smaller first, where that does not change
  double key = 0;                     ///< of the options' heuristic

  WaitingJob(const View& view, JobId id, std::uint32_t in_slot, const WaitingShapes::Slot& shape, float known)
      : submit_us(view.submit(id).us),
        known_us(from_seconds(static_cast<double>(known)).us),
        job(id),
        slot(in_slot),
        user(view.user(id)),
        known_s(known),
        gpus(shape.gpus) {}

  void describe(Heuristic heuristic) {
    per_known_s = 1.0f / std::max(known_s, 10.0f);
    log_known = detail::fast_log1p(known_s) / 10;
    log_area = detail::fast_log1p(known_s * gpus) / 15;
    key = key_of(heuristic);
    prior = prior_of(heuristic);
  }

  [[nodiscard]] double key_of(Heuristic heuristic) const { return heuristic_key(heuristic, known_s, gpus, submit_us); }

 private:
  [[nodiscard]] float prior_of(Heuristic heuristic) const {
    switch (heuristic) {
      case Heuristic::sjf: return log_known;
      case Heuristic::saf: return log_area;
      case Heuristic::fcfs: return 0.0f;  // by the wait: JobTokens::write_prior()
      case Heuristic::las:
      case Heuristic::srtf:
      case Heuristic::gittins:
      case Heuristic::f1: break;
    }
    return static_cast<float>(key);
  }
};

/// The waiting jobs in order of beginning to wait, and the tokens of a choice: all of them or, above a number, some.
class JobTokens {
 public:
  // ---- the waiting jobs, by place -----------------------------------------------------------------------------------

  [[nodiscard]] std::span<const WaitingJob> waiting() const { return waiting_; }

  void push(const WaitingJob& job) { waiting_.push_back(job); }
  /// Those behind it move up by one place. O(waiting jobs).
  void erase(std::uint32_t place) {
    waiting_.erase(waiting_.begin() + place);
    if (place < described_) --described_;
  }
  /// Describes those that are not yet.
  void describe(Heuristic heuristic) {
    for (; described_ < waiting_.size(); ++described_) waiting_[described_].describe(heuristic);
  }

  // ---- the tokens of a choice ---------------------------------------------------------------------------------------

  /// A mark for each waiting job, by place, each `mark` now: 1 = may be chosen. list() is to follow.
  std::span<std::uint8_t> mark(std::uint8_t mark) {
    selectable_.assign(waiting_.size(), mark);
    return selectable_;
  }
  /// Marks each waiting job as may_choose(WaitingJob) says: true = may be chosen. list() is to follow.
  template <class MayChoose>
  void mark_if(MayChoose may_choose) {
    selectable_.resize(waiting_.size());
    std::uint8_t* mark = selectable_.data();
    for (const WaitingJob& entry : waiting_) *mark++ = may_choose(entry) ? 1 : 0;
  }

  /// Lists at most `most` tokens, in order of submission: the oldest, the newest, and of those that may be chosen the
  /// shortest and the smallest by area, a quarter each; what the orders share goes to the oldest.
  void list(std::uint32_t most) {
    size_ = static_cast<std::uint32_t>(waiting_.size());
    capped_ = size_ > most;
    if (capped_) choose(most);
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool selectable(std::uint32_t token) const { return selectable_[token] != 0; }
  /// Tokens that may be chosen.
  [[nodiscard]] std::uint32_t selectable_count() const {
    return static_cast<std::uint32_t>(std::count(marks().begin(), marks().end(), 1));
  }
  /// A mark for each token.
  [[nodiscard]] std::span<const std::uint8_t> marks() const { return {selectable_.data(), size_}; }
  [[nodiscard]] std::uint32_t place_of(std::uint32_t token) const { return capped_ ? listed_[token] : token; }
  [[nodiscard]] const WaitingJob& operator[](std::uint32_t token) const { return waiting_[place_of(token)]; }

  /// The token of the least key(WaitingJob) of those that may be chosen, the first of equals; size() when there is
  /// none.
  template <class Key>
  [[nodiscard]] std::uint32_t least(Key key) const {
    std::uint32_t best = size_;
    double best_key = std::numeric_limits<double>::infinity();
    const std::uint8_t* const selectable = selectable_.data();
    for_each(0, size_, [&selectable, &key, &best_key, &best](std::size_t i, const WaitingJob& entry) {
      if (selectable[i] == 0) return;
      const double own = key(entry);
      if (own >= best_key) return;
      best = static_cast<std::uint32_t>(i);
      best_key = own;
    });
    return best;
  }

  // ---- what is shown of them ----------------------------------------------------------------------------------------

  /// Writes size() rows of JobFeature. `user_shares`: user_share by user. Precondition: `shapes` are described.
  // In chunks, so that the logarithms are taken side by side. A token is a copy of its shape's row with six of the
  // twelve filled in.
  void write_rows(Time now, const WaitingShapes& shapes, std::span<const float> user_shares, float* out) const {
    const std::uint32_t count = size_;
    const float per_token = 1.0f / static_cast<float>(std::max(1u, count));
    const std::span<const WaitingShapes::Slot> slots = shapes.slots();
    constexpr std::uint32_t chunk = 16;
    std::array<float, chunk> wait{}, slowdown{};
    for (std::uint32_t first = 0; first < count; first += chunk) {
      const std::uint32_t end = std::min(count, first + chunk);
      float* to_wait = wait.data();
      float* to_slowdown = slowdown.data();
      for_each(first, end, [&now, &to_wait, &to_slowdown](std::size_t, const WaitingJob& entry) {
        const float seconds = static_cast<float>(now.us - entry.submit_us) * 1e-6f;
        *to_wait++ = seconds;
        *to_slowdown++ = seconds * entry.per_known_s;
      });
      detail::fast_log1p_each(wait, end - first, 0.1f);
      detail::fast_log1p_each(slowdown, end - first, 0.2f);
      const float* from_wait = wait.data();
      const float* from_slowdown = slowdown.data();
      for_each(
          first, end,
          [&slots, &out, &from_wait, &from_slowdown, &per_token, &user_shares](std::size_t i, const WaitingJob& entry) {
            const auto& row = slots[entry.slot].row;
            std::memcpy(out, row.data(), sizeof row);
            out[log_wait] = *from_wait++;
            out[log_known] = entry.log_known;
            out[log_slowdown] = *from_slowdown++;
            out[log_area] = entry.log_area;
            out[age_rank] = static_cast<float>(static_cast<std::int32_t>(i)) * per_token;
            out[user_share] = user_shares[entry.user];
            out += job_features;
          });
    }
  }

  /// Writes the heuristic's preference for each token, standardised over them, sign turned so that larger is better:
  /// of its logarithm for run times, which spread over decades, so that the preference between short jobs stays visible
  /// beside a long one. Then that for WAIT, where it is allowed: one deviation behind the best job that may be chosen.
  void write_prior(Heuristic heuristic, bool may_wait, float* out) const {
    if (heuristic == Heuristic::fcfs) {
      const std::int64_t oldest_us = size_ == 0 ? 0 : (*this)[0].submit_us;
      for_each(0, size_, [&out, &oldest_us](std::size_t i, const WaitingJob& entry) {
        out[i] = static_cast<float>(entry.submit_us - oldest_us) * 1e-6f;
      });
    } else {
      for_each(0, size_, [&out](std::size_t i, const WaitingJob& entry) { out[i] = entry.prior; });
    }
    standardise(out);
    out[size_] = 0.0f;
    if (!may_wait) return;
    float best = std::numeric_limits<float>::lowest();
    for (std::uint32_t i = 0; i < size_; ++i) best = selectable_[i] != 0 && out[i] > best ? out[i] : best;
    out[size_] = best - 1.0f;
  }

 private:
  // Calls visit(i, token i) for the tokens from `first` up to `end`, without asking for each whether they are capped.
  template <class Visit>
  void for_each(std::uint32_t first, std::uint32_t end, Visit visit) const {
    if (capped_) {
      const std::uint32_t* const place = listed_.data();
      for (std::size_t i = first; i < end; ++i) visit(i, waiting_[place[i]]);
    } else {
      const WaitingJob* entry = waiting_.data() + first;
      for (std::size_t i = first; i < end; ++i, ++entry) visit(i, *entry);
    }
  }

  void choose(std::uint32_t most) {
    const std::uint32_t count = static_cast<std::uint32_t>(waiting_.size());
    listed_.resize(count);
    std::iota(listed_.begin(), listed_.end(), 0u);
    const std::uint32_t quarter = most / 4;
    kept_.assign(count, 0);
    std::fill_n(kept_.begin(), quarter, std::uint8_t{1});
    std::fill_n(kept_.end() - quarter, quarter, std::uint8_t{1});
    for (const Heuristic order : {Heuristic::sjf, Heuristic::saf}) keep_first(quarter, order);
    auto room = most - static_cast<std::uint32_t>(std::count(kept_.begin(), kept_.end(), 1));
    for (std::uint32_t i = 0; i < count && room > 0; ++i) {
      if (kept_[i] != 0) continue;
      kept_[i] = 1;
      --room;
    }
    listed_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (kept_[i] == 0) continue;
      selectable_[listed_.size()] = selectable_[i];
      listed_.push_back(i);
    }
    size_ = static_cast<std::uint32_t>(listed_.size());
    selectable_.resize(size_);
  }

  // Precondition: listed_ has every place, in some order.
  void keep_first(std::uint32_t quarter, Heuristic order) {
    keys_.clear();
    for (const WaitingJob& entry : waiting_) keys_.push_back(entry.key_of(order));
    const auto before = [this](std::uint32_t a, std::uint32_t b) {
      if (selectable_[a] != selectable_[b]) return selectable_[a] > selectable_[b];
      return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a < b;
    };
    std::nth_element(listed_.begin(), listed_.begin() + quarter, listed_.end(), before);
    for (std::uint32_t i = 0; i < quarter; ++i) kept_[listed_[i]] = 1;
  }

  void standardise(float* out) const {
    // Two sums of each, side by side.
    std::array<double, 2> sums{}, squares{};
    const std::size_t count = size_;
    for (std::size_t i = 0; i + 1 < count; i += 2) {
      for (std::uint32_t lane = 0; lane < 2; ++lane) {
        const auto key = static_cast<double>(out[i + lane]);
        sums[lane] += key;
        squares[lane] += key * key;
      }
    }
    if (size_ % 2 == 1) {
      const auto key = static_cast<double>(out[size_ - 1]);
      sums[0] += key;
      squares[0] += key * key;
    }
    const double per_count = 1.0 / std::max(1u, size_);
    const double mean = (sums[0] + sums[1]) * per_count;
    const double variance = (squares[0] + squares[1]) * per_count - mean * mean;
    const double scale = variance > 1e-18 ? 1.0 / std::sqrt(variance) : 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>((mean - static_cast<double>(out[i])) * scale);
    }
  }

  std::vector<WaitingJob> waiting_;
  std::size_t described_ = 0;  // the first so many
  std::uint32_t size_ = 0;
  bool capped_ = false;
  std::vector<std::uint32_t> listed_;     // the tokens' places when capped_, else that is their number
  std::vector<std::uint8_t> selectable_;  // by token
  std::vector<std::uint8_t> kept_;        // by place, of choose()
  std::vector<double> keys_;              // likewise
};

}  // namespace gpusched
