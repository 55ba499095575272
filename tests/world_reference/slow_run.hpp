// SPDX-License-Identifier: Apache-2.0
/// SlowRun: what one run of a job goes through, from its start to its end, and where its time goes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"

namespace gpusched::test {

/// Time by what became of it, of the job (`wall`, microseconds) or of what it held (`gpu`, times thousandths of a GPU).
/// In floating point: the engine rounds each part to microseconds.
struct SlowTime {
  double wall = 0, gpu = 0;
  void add(double us, MilliGpu milli) {
    wall += us;
    gpu += us * static_cast<double>(milli);
  }
  void add(const SlowTime& other) {
    wall += other.wall;
    gpu += other.gpu;
  }
};

/// Where the time of a job went.
struct SlowAccount {
  SlowTime useful, overhead, lost;
  std::int64_t roundings = 0;  ///< parts whose length is no whole number of microseconds
};

/// The rules, as docs/failures.md, docs/stages.md and PreemptionCost have them. A run first waits for its nodes, then
/// loads what was saved, then works. What takes time is counted in work at `cost_rate`, and takes as long at another:
/// what is left of it is then another part of the work, rounded down, of a time that is rounded up. Between two
/// checkpoints it does `interval` of work; writing one takes `saving`, in which the work rests, or is a transfer
/// (`moves`), in which the run stands still. Work counts in whole microseconds, rounded down whenever the run's rate or
/// plan changes; the instant of an end is rounded up.
struct SlowRun {
  Time since{};  ///< of the last change
  RatePpm rate = 0;
  MilliGpu milli = 0;  ///< what it holds
  RatePpm cost_rate = 0;
  std::int64_t wait = 0;      ///< for its nodes; all of these in work left
  bool has_waited = false;    ///< for the nodes that it has now
  std::int64_t load = 0;      ///< of the saved state
  std::int64_t total = 0;     ///< work of the attempt that is left at the start, and all checkpoints to come
  std::int64_t extra = 0;     ///< of `total`, that a policy added; it is done first, and is overhead
  std::int64_t done = 0;      ///< of `total`
  std::int64_t interval = 0;  ///< 0: no checkpoints
  std::int64_t saving = 0;    ///< 0: a checkpoint takes no time, or is a transfer
  std::int64_t saves = 0;     ///< checkpoints in `total`
  bool moves = false;         ///< checkpoints are transfers
  bool is_saving = false;     ///< one moves
  bool rests = false;         ///< it stands still for something that moves: overhead, not lost
  std::int64_t kept = 0;      ///< `done` at the last checkpoint that moved
  Time ran{};                 ///< wall time up to `since`
  SlowTime at_risk;           ///< work that no checkpoint has
  SlowAccount account;        ///< of this run

  [[nodiscard]] std::int64_t left() const { return wait + load + total - done; }

  /// Work left when the next checkpoint begins to move; 0: none will.
  [[nodiscard]] std::int64_t left_at_save() const {
    return moves && interval > 0 ? std::max<std::int64_t>(total - kept - interval, 0) : 0;
  }

  /// When so much work is left; Time::max(): never at this rate.
  [[nodiscard]] Time when_left(std::int64_t then) const {
    if (rate == 0) return Time::max();
    return since + Time{mul_div_up(std::max<std::int64_t>(left() - then, 0), reference_rate, rate)};
  }

  /// Counts what passed since the last change.
  void settle(Time now) {
    const Time span = now - since;
    since = now;
    ran += span;
    if (rate == 0) return (rests ? account.overhead : account.lost).add(static_cast<double>(span.us), milli);
    std::int64_t work = mul_div(span.us, rate, reference_rate);
    double us = static_cast<double>(span.us);
    const double us_a_work = work == 0 ? 0 : us / static_cast<double>(work);
    const auto take = [&](std::int64_t most, SlowTime& whose) {
      const std::int64_t part = std::min(work, most);
      const double part_us = part == work ? us : static_cast<double>(part) * us_a_work;
      whose.add(part_us, milli);
      if (rate != reference_rate) ++account.roundings;
      work -= part;
      us -= part_us;
      return part;
    };
    for (std::int64_t* const before : {&wait, &load}) {
      if (work > 0 && *before > 0) *before -= take(*before, account.overhead);
    }
    if (work > 0 && extra > 0) {
      const std::int64_t part = take(extra, account.overhead);
      extra -= part;
      done += part;
    }
    while (work > 0 && interval > 0 && !moves) {
      const std::int64_t place = done % (interval + saving);
      const bool writes = place >= interval;
      done += take((writes ? interval + saving : interval) - place, writes ? account.overhead : at_risk);
      if (done % (interval + saving) == 0) secure();
    }
    done += take(work, at_risk);
  }

  /// A checkpoint is complete.
  void secure() {
    account.useful.add(at_risk);
    at_risk = {};
  }

  /// Work of the attempt that is left when the run ends before it is done: what was done is kept if that is saved now,
  /// else what the last checkpoint has.
  [[nodiscard]] std::int64_t work_left(bool saves_now) const { return total - saves * saving - kept_work(saves_now); }

  [[nodiscard]] std::int64_t kept_work(bool saves_now) const {
    if (moves) return saves_now ? done : kept;
    if (interval == 0) return saves_now ? done : 0;
    const std::int64_t cycle = interval + saving;
    return done / cycle * interval + (saves_now ? std::min(done % cycle, interval) : 0);
  }

  /// The run is over.
  void close(bool saves_now) {
    (saves_now ? account.useful : account.lost).add(at_risk);
    at_risk = {};
  }
};

}  // namespace gpusched::test
