// SPDX-License-Identifier: Apache-2.0
/// TrialSearch: which trial a free worker trains next, and for how long, when results decide.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace gpusched {

/// What a search trains for: units of training that a trial has done, epochs or hours.
using TrialUnits = std::int64_t;

/// Train a trial from `from` to `to` units, whose results are looked at then.
struct TrialTask {
  std::uint32_t trial = 0;  ///< 0, 1, ... in the order in which they began
  std::uint32_t rung = 0;   ///< 0: the shortest
  TrialUnits from = 0;      ///< done before
  TrialUnits to = 0;        ///< then

  friend bool operator==(const TrialTask&, const TrialTask&) = default;
};

/// The rungs of a search: least, least x eta, ... , most. Precondition of all searches: least >= 1, eta >= 2, most is
/// least times a power of eta.
struct TrialRungs {
  TrialUnits least = 1;   ///< r, of the first rung
  TrialUnits most = 27;   ///< R, of the last one
  std::uint32_t eta = 3;  ///< one in so many goes on, for so many times as long

  /// Rungs, the last one included.
  [[nodiscard]] std::uint32_t count() const;
  /// Units at the end of a rung.
  [[nodiscard]] TrialUnits units(std::uint32_t rung) const;
};

/// A search. next() is called when a worker is free, tell() when a task is done; both alternate in any order.
class TrialSearch {
 public:
  TrialSearch() = default;
  TrialSearch(const TrialSearch&) = delete;
  TrialSearch& operator=(const TrialSearch&) = delete;
  virtual ~TrialSearch() = default;

  /// What a free worker trains next; nothing while that depends on results that are to come, or for ever.
  virtual std::optional<TrialTask> next() = 0;
  /// The task is done, and its trial has this loss; lower is better. True: the same worker goes on with the trial, to
  /// `follow`.
  virtual bool tell(const TrialTask& done, double loss, TrialTask& follow) = 0;
};

/// ASHA by promotion: L. Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020, Algorithm 2.
/// From the last rung but one down: the best trial of the best 1/eta of those that finished the rung that was not
/// promoted yet is trained to the next rung, from where it was; where there is none, a new trial begins, up to
/// `trials`. Equal losses go to the earlier trial.
std::unique_ptr<TrialSearch> asha_by_promotion(const TrialRungs& rungs, std::uint32_t trials);

/// ASHA by stopping, as Ray Tune's AsyncHyperBandScheduler runs it: a trial goes on at once unless its result at a rung
/// is worse than the (1 - 1/eta) percentile, between neighbours by proportion, of the results that others had there
/// before. The first at a rung goes on.
std::unique_ptr<TrialSearch> asha_by_stopping(const TrialRungs& rungs, std::uint32_t trials);

/// Hyperband: L. Li et al., JMLR 18(185), 2018, Algorithm 1, one time through its brackets, each successive halving
/// with a barrier: a rung begins when the one before is done, with its best 1/eta, and a bracket when the one before is
/// done. Trials resume where they were. `halving`: the first bracket alone.
std::unique_ptr<TrialSearch> hyperband_search(const TrialRungs& rungs, bool halving);

}  // namespace gpusched
