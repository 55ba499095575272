// SPDX-License-Identifier: Apache-2.0
/// AshaByPromotion and AshaByStopping: two algorithms of one name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "gpusched/trials/trial_task.hpp"

namespace gpusched {

/// ASHA by promotion: L. Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020, Algorithm 2.
/// From the last rung but one down: the best trial of the best 1/eta of those that finished the rung that was not
/// promoted yet is trained to the next rung, from where it was; where there is none, a new trial begins, up to
/// `trials`. Equal losses go to the earlier trial.
class AshaByPromotion {
 public:
  static constexpr bool keeps_worker = false;     ///< a trial that goes on waits for a worker like any other
  static constexpr bool changes_its_mind = true;  ///< later results may change what was asked for and did not begin
  /// A search that has drawn `trials` configurations and trains them along `rungs`.
  AshaByPromotion(const TrialRungs& rungs, std::uint32_t trials)
      : rungs_(rungs), trials_(trials), results_(rungs.count()) {}

  /// What a free worker trains next.
  std::optional<TrialTask> next() {
    for (std::uint32_t rung = rungs_.count() - 1; rung-- > 0;) {
      std::vector<detail::TrialResult>& results = results_[rung];
      const std::size_t top = results.size() / rungs_.eta;
      for (std::size_t i = 0; i < top; ++i) {
        if (results[i].is_promoted) continue;
        results[i].is_promoted = true;
        return rungs_.task(results[i].trial, rung + 1);
      }
    }
    if (!given_back_.empty()) return rungs_.task(given_back_.extract(given_back_.begin()).value(), 0);
    if (begun_ == trials_) return std::nullopt;
    return rungs_.task(begun_++, 0);
  }
  /// A task is done, and its trial has this loss.
  bool tell(const TrialTask& done, double loss, TrialTask&) {
    std::vector<detail::TrialResult>& results = results_[done.rung];
    const detail::TrialResult result{.loss = loss, .trial = done.trial};
    results.insert(std::upper_bound(results.begin(), results.end(), result), result);
    return false;
  }
  /// A task that was asked for did not begin, and may be asked for again.
  void give_back(const TrialTask& task) {
    if (task.rung == 0) {
      given_back_.insert(task.trial);
      return;
    }
    for (detail::TrialResult& result : results_[task.rung - 1]) {
      if (result.trial == task.trial) result.is_promoted = false;
    }
  }
  /// All tasks that there may be, by trial and rung.
  [[nodiscard]] std::vector<TrialTask> tasks() const {
    std::vector<TrialTask> all;
    for (std::uint32_t trial = 0; trial < trials_; ++trial) {
      for (std::uint32_t rung = 0; rung < rungs_.count(); ++rung) all.push_back(rungs_.task(trial, rung));
    }
    return all;
  }

 private:
  TrialRungs rungs_;
  std::uint32_t trials_, begun_ = 0;
  std::vector<std::vector<detail::TrialResult>> results_;  // by rung, best first
  std::set<std::uint32_t> given_back_;                     // new trials
};

/// ASHA by stopping, as Ray Tune's AsyncHyperBandScheduler runs it: a trial goes on at once unless its result at a rung
/// is worse than the (1 - 1/eta) percentile, between neighbours by proportion, of the results that others had there
/// before. The first at a rung goes on.
class AshaByStopping {
 public:
  static constexpr bool keeps_worker = true;       ///< a trial that goes on keeps its worker
  static constexpr bool changes_its_mind = false;  ///< what was asked for stays
  /// As AshaByPromotion's.
  AshaByStopping(const TrialRungs& rungs, std::uint32_t trials)
      : rungs_(rungs), trials_(trials), losses_(rungs.count()) {}

  /// As in AshaByPromotion. \{
  std::optional<TrialTask> next() {
    if (begun_ == trials_) return std::nullopt;
    return rungs_.task(begun_++, 0);
  }
  bool tell(const TrialTask& done, double loss, TrialTask& follow) {
    std::vector<double>& losses = losses_[done.rung];
    const bool goes_on = losses.empty() || loss <= cutoff(losses);
    losses.insert(std::upper_bound(losses.begin(), losses.end(), loss), loss);
    if (!goes_on || done.rung + 1 == rungs_.count()) return false;
    follow = rungs_.task(done.trial, done.rung + 1);
    return true;
  }
  void give_back(const TrialTask&) {}
  /// \}
  /// One task a trial, from its begin to the last rung: it may end earlier.
  [[nodiscard]] std::vector<TrialTask> tasks() const {
    std::vector<TrialTask> all;
    for (std::uint32_t trial = 0; trial < trials_; ++trial) all.push_back({.trial = trial, .to = rungs_.most});
    return all;
  }

 private:
  // The loss that 1/eta of the losses are not above.
  [[nodiscard]] double cutoff(const std::vector<double>& losses) const {
    const double at = static_cast<double>(losses.size() - 1) / rungs_.eta;
    const auto below = static_cast<std::size_t>(at);
    const double part = at - static_cast<double>(below);
    return part == 0 ? losses[below] : losses[below] + part * (losses[below + 1] - losses[below]);
  }

  TrialRungs rungs_;
  std::uint32_t trials_, begun_ = 0;
  std::vector<std::vector<double>> losses_;  // by rung, ascending
};

}  // namespace gpusched
