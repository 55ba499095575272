// SPDX-License-Identifier: Apache-2.0
/// TrialTask and TrialRungs: what a worker of a search trains, and where results are looked at.
#pragma once

#include <cstdint>

namespace gpusched {

/// What a search trains for: units of training that a trial has done, epochs or hours.
using TrialUnits = std::int64_t;

/// Train a trial from `from` to `to` units, whose results are looked at then.
struct TrialTask {
  std::uint32_t trial = 0;  ///< 0, 1, ... in the order in which they began
  std::uint32_t rung = 0;   ///< 0: the shortest
  TrialUnits from = 0;      ///< done before
  TrialUnits to = 0;        ///< then
  /// Same in all of them.
  friend bool operator==(const TrialTask&, const TrialTask&) = default;
};

/// The rungs of a search: least, least x eta, ... , most. Precondition of all searches: least >= 1, eta >= 2, most is
/// least times a power of eta.
struct TrialRungs {
  TrialUnits least = 1;   ///< r, of the first rung
  TrialUnits most = 27;   ///< R, of the last one
  std::uint32_t eta = 3;  ///< one in so many goes on, for so many times as long

  /// Rungs, the last one included.
  [[nodiscard]] std::uint32_t count() const {
    std::uint32_t rungs = 1;
    for (TrialUnits units = least; units < most; units *= eta) ++rungs;
    return rungs;
  }
  /// Units at the end of a rung.
  [[nodiscard]] TrialUnits units(std::uint32_t rung) const {
    TrialUnits units = least;
    for (std::uint32_t i = 0; i < rung; ++i) units *= eta;
    return units;
  }
  /// The task that takes a trial through a rung, from the end of the rung before.
  [[nodiscard]] TrialTask task(std::uint32_t trial, std::uint32_t rung) const {
    return {.trial = trial, .rung = rung, .from = rung == 0 ? 0 : units(rung - 1), .to = units(rung)};
  }
};

namespace detail {

/// A result at a rung; the better is the lesser.
struct TrialResult {
  double loss = 0;
  std::uint32_t trial = 0;
  bool is_promoted = false;
  friend bool operator<(const TrialResult& a, const TrialResult& b) {
    return a.loss != b.loss ? a.loss < b.loss : a.trial < b.trial;
  }
};

}  // namespace detail
}  // namespace gpusched
