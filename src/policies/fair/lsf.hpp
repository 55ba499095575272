// SPDX-License-Identifier: Apache-2.0
/// LSF's user-based fair-share.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "src/policies/fair/decaying_usage.hpp"
#include "src/policies/queues/owners.hpp"

namespace gpusched {

/// Accounts of an OwnerOrder: the owner with the highest dynamic priority goes next. Dynamic priority = shares /
/// (past GPU hours, decayed x used_factor + hours of running jobs x run_time_factor + (1 + GPUs held) x
/// run_job_factor). Past hours include those of running jobs so far. Priorities that agree to nine decimals tie, and
/// the earliest job goes first.
class Lsf {
 public:
  struct Options {
    OwnerColumn column = OwnerColumn::user;
    OwnerWeights shares = {};
    double used_factor = 0.7;
    double run_time_factor = 0.7;
    double run_job_factor = 3;
    double history_hours = 5;  ///< after this long, a tenth of past usage is left
  };

  explicit Lsf(Options options) : options_(std::move(options)), accounts_(Account(half_life_s())) {}

  [[nodiscard]] std::uint32_t owner(const View& view, JobId job) const { return owner_of(options_.column, view, job); }
  /// The priority in billionths, negative, so that the highest is the lowest score.
  std::int64_t score(const View& view, std::uint32_t owner) { return -priority_now(owner, view.now()); }
  /// What an owner's denominator has beyond run_job_factor falls at most as fast as usage decays: its logarithm, taken
  /// back to the time zero, only grows.
  [[nodiscard]] double standing(const View& view, std::uint32_t owner) const;
  /// Negative shares.
  [[nodiscard]] std::int64_t fixed(std::uint32_t owner) const { return -options_.shares.milli(owner); }
  [[nodiscard]] std::int64_t bound(const View& view, double standing, std::int64_t fixed) const;
  void started(const View& view, JobId job, std::uint32_t owner) { hold(view, job, owner, +1); }
  void left(const View& view, JobId job, std::uint32_t owner) { hold(view, job, owner, -1); }

  /// What owners used; see AnyPolicy.
  void inherit(const Lsf& before, const View& view);
  /// The owner's priority as defined above.
  [[nodiscard]] double dynamic_priority(std::uint32_t owner, Time now) const;

 private:
  __extension__ using Wide = __int128;  // many starts, late in time, add up to more than 64 bits hold

  struct Account {
    explicit Account(double half_life) : past(half_life) {}
    DecayingUsage past;
    MilliGpu held = 0;
    std::int64_t jobs = 0;
    Wide start_sum_us = 0;  // of running jobs, so that their run time so far is jobs x now - start_sum

    [[nodiscard]] double running_s(Time now) const {
      return static_cast<double>(Wide{jobs} * now.us - start_sum_us) / static_cast<double>(microseconds_per_second);
    }
  };

  struct PriorityNow {
    Time time = Time::max();  // none is known
    std::int64_t value = 0;
  };

  std::int64_t priority_now(std::uint32_t owner, Time now);
  [[nodiscard]] double half_life_s() const;
  [[nodiscard]] double half_lives(Time now) const { return to_seconds(now) / half_life_s(); }
  void hold(const View& view, JobId job, std::uint32_t owner, std::int64_t sign);

  Options options_;
  PerOwner<Account> accounts_;
  PerOwner<PriorityNow> priorities_;
  std::vector<Time> started_;  // [job] its present run, which the view no longer knows when it ends
};

}  // namespace gpusched
