// SPDX-License-Identifier: Apache-2.0
/// SharedPipe: transfers that share a bandwidth evenly, in virtual time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched::detail {

/// A value. All transfers move at one rate, the least of what a single one can take and an equal part of the whole
/// (processor sharing), so what one of them has moved since both began is the same for any two: the pipe counts that
/// once, and a transfer is due when the count reaches the one at which it began plus its bytes. begin() and pop() cost
/// O(log n); nothing else changes with the number of transfers.
class SharedPipe {
 public:
  /// Nothing moves.
  SharedPipe() = default;
  /// Bytes a second of one transfer at most, and of all together. Precondition: both above 0.
  SharedPipe(double each, double all) : each_(each), all_(all) {}

  /// A transfer begins; returns its number, which is used again when it is over. Precondition: `now` never goes back.
  std::uint32_t begin(Time now, double bytes) {
    pass(now);
    std::uint32_t number = static_cast<std::uint32_t>(is_moving_.size());
    if (!free_.empty()) {
      number = free_.back();
      free_.pop_back();
      is_moving_[number] = 1;
    } else {
      is_moving_.push_back(1);
    }
    ++moving_;
    heap_.push_back({moved_ + bytes, begun_++, number});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    plan();
    return number;
  }

  /// Ends a transfer before it is due.
  void cancel(Time now, std::uint32_t number) {
    pass(now);
    is_moving_[number] = 0;
    --moving_;
    drop_cancelled();
    plan();
  }

  /// From now on a single transfer moves so many bytes a second at most. Precondition: above 0. O(1).
  void limit(Time now, double each) {
    const bool changes = moving_ > 0 && std::min(each, all_ / moving_) != rate();
    if (changes) pass(now);
    each_ = each;
    if (changes) plan();
  }

  /// Transfers that move.
  [[nodiscard]] std::uint32_t moving() const { return moving_; }

  /// When the next transfer ends if none begins; Time::max() = never.
  [[nodiscard]] Time next_time() const { return next_; }

  /// Ends the transfer that is due and returns its number. Precondition: next_time() is now.
  std::uint32_t pop() {
    const Time now = next_;
    pass(now);
    const Flow due = heap_.front();
    moved_ = std::max(moved_, due.end);
    remove_first();
    free_.push_back(due.number);
    --moving_;
    drop_cancelled();
    plan();
    return due.number;
  }

 private:
  struct Flow {
    double end;           // of moved_
    std::uint64_t begun;  // ties end in order of their beginning
    std::uint32_t number;
    friend bool operator>(const Flow& a, const Flow& b) { return a.end != b.end ? a.end > b.end : a.begun > b.begun; }
  };

  [[nodiscard]] double rate() const { return std::min(each_, all_ / moving_); }

  void pass(Time now) {
    if (moving_ > 0) moved_ += rate() * to_seconds(now - last_);
    last_ = now;
  }

  void plan() {
    if (moving_ == 0) {
      moved_ = 0;
      next_ = Time::max();
      return;
    }
    // Rounded up, but for what rounding of moved_ adds.
    const double us = std::ceil((heap_.front().end - moved_) / rate() * 1e6 - 1e-3);
    const bool ends = us < static_cast<double>(end_of_time.us);
    next_ = ends ? later_by(last_, Time{std::max<std::int64_t>(0, static_cast<std::int64_t>(us))}) : Time::max();
  }

  void remove_first() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }

  void drop_cancelled() {
    while (!heap_.empty() && is_moving_[heap_.front().number] == 0) {
      free_.push_back(heap_.front().number);
      remove_first();
    }
  }

  double each_ = 0, all_ = 0;
  double moved_ = 0;  // bytes that a transfer moved that lasted since the pipe was last idle
  Time last_{}, next_ = Time::max();
  std::uint64_t begun_ = 0;
  std::uint32_t moving_ = 0;
  std::vector<Flow> heap_;               // cancelled ones too, until they surface
  std::vector<std::uint8_t> is_moving_;  // by number
  std::vector<std::uint32_t> free_;      // numbers that nobody has
};

}  // namespace gpusched::detail
