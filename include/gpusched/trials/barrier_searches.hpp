// SPDX-License-Identifier: Apache-2.0
/// HyperbandSearch and RandomTrials: searches that know all trials of a round before it begins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpusched/trials/trial_task.hpp"

namespace gpusched {

/// Hyperband: L. Li et al., JMLR 18(185), 2018, Algorithm 1, one time through its brackets, each successive halving
/// with a barrier: a rung begins when the one before is done, with its best 1/eta, and a bracket when the one before is
/// done. Trials resume where they were. `halving`: the first bracket alone.
class HyperbandSearch {
 public:
  static constexpr bool keeps_worker = false;      ///< as in AshaByPromotion
  static constexpr bool changes_its_mind = false;  ///< what was asked for stays
  /// Brackets over `rungs`; `halving`: the first one alone, which is successive halving.
  HyperbandSearch(const TrialRungs& rungs, bool halving) : rungs_(rungs), halving_(halving), bracket_(rungs.count()) {
    begin_bracket();
  }

  /// As in AshaByPromotion. \{
  std::optional<TrialTask> next() {
    if (next_ < waiting_.size()) return task(waiting_[next_++], rung_);
    if (results_.size() < waiting_.size() || is_over_) return std::nullopt;
    begin_rung();
    return next_ < waiting_.size() ? std::optional(task(waiting_[next_++], rung_)) : std::nullopt;
  }
  bool tell(const TrialTask& done, double loss, TrialTask&) {
    results_.push_back({.loss = loss, .trial = done.trial});
    return false;
  }
  void give_back(const TrialTask&) {}
  [[nodiscard]] std::vector<TrialTask> tasks() const {
    HyperbandSearch fresh(rungs_, halving_);
    std::vector<TrialTask> all;
    while (!fresh.is_over_) {
      for (const std::uint32_t trial : fresh.waiting_) {
        for (std::uint32_t rung = fresh.first_rung_; rung < rungs_.count(); ++rung) {
          all.push_back(fresh.task(trial, rung));
        }
      }
      fresh.begin_bracket();
    }
    return all;
  }
  /// \}

 private:
  [[nodiscard]] TrialTask task(std::uint32_t trial, std::uint32_t rung) const {
    TrialTask task = rungs_.task(trial, rung);
    if (rung == first_rung_) task.from = 0;
    return task;
  }

  // Brackets s = s_max, ..., 0 of Algorithm 1, of n = ceil((s_max + 1) / (s + 1) eta^s) trials each.
  void begin_bracket() {
    results_.clear();
    waiting_.clear();
    next_ = 0;
    if (bracket_ == 0 || (halving_ && bracket_ < rungs_.count())) {
      is_over_ = true;
      return;
    }
    --bracket_;
    const std::uint64_t power = static_cast<std::uint64_t>(rungs_.units(bracket_) / rungs_.least),
                        brackets = rungs_.count();
    const std::uint64_t trials = (brackets * power + bracket_) / (bracket_ + 1);
    for (std::uint64_t i = 0; i < trials; ++i) waiting_.push_back(begun_++);
    first_rung_ = rung_ = rungs_.count() - 1 - bracket_;
  }

  void begin_rung() {
    const std::size_t kept = results_.size() / rungs_.eta;
    if (rung_ + 1 == rungs_.count() || kept == 0) return begin_bracket();
    std::sort(results_.begin(), results_.end());
    waiting_.clear();
    for (std::size_t i = 0; i < kept; ++i) waiting_.push_back(results_[i].trial);
    results_.clear();
    next_ = 0;
    ++rung_;
  }

  TrialRungs rungs_;
  bool halving_, is_over_ = false;
  std::uint32_t bracket_, rung_ = 0, first_rung_ = 0, begun_ = 0;
  std::vector<std::uint32_t> waiting_;        // trials of this rung
  std::size_t next_ = 0;                      // of them, the next to begin
  std::vector<detail::TrialResult> results_;  // of this rung
};

/// Random search: each of `trials` trials is trained to the last rung, whatever the others did.
class RandomTrials {
 public:
  static constexpr bool keeps_worker = false;      ///< as in AshaByPromotion
  static constexpr bool changes_its_mind = false;  ///< what was asked for stays
  /// Each of `trials` is trained to the last of `rungs`.
  RandomTrials(const TrialRungs& rungs, std::uint32_t trials) : rungs_(rungs), trials_(trials) {}

  /// As in AshaByPromotion. \{
  std::optional<TrialTask> next() { return begun_ == trials_ ? std::nullopt : std::optional(task(begun_++)); }
  bool tell(const TrialTask&, double, TrialTask&) { return false; }
  void give_back(const TrialTask&) {}
  [[nodiscard]] std::vector<TrialTask> tasks() const {
    std::vector<TrialTask> all;
    for (std::uint32_t trial = 0; trial < trials_; ++trial) all.push_back(task(trial));
    return all;
  }
  /// \}

 private:
  [[nodiscard]] TrialTask task(std::uint32_t trial) const {
    return {.trial = trial, .rung = rungs_.count() - 1, .from = 0, .to = rungs_.most};
  }

  TrialRungs rungs_;
  std::uint32_t trials_, begun_ = 0;
};

}  // namespace gpusched
