// SPDX-License-Identifier: Apache-2.0
/// EstimateLog: the run times that a policy expected.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

/// An Observer that asks for the estimate of each job when the policy first sees it.
class EstimateLog {
 public:
  /// Without an estimator nothing is kept.
  EstimateLog(std::optional<AnyDurationEstimator> estimator, std::uint32_t jobs) : estimator_(std::move(estimator)) {
    if (estimator_) estimates_.resize(jobs);
  }

  void observe(const OracleView& view, std::span<const Event> events) {
    if (!estimator_) return;
    estimator_->observe(view);
    for (const Event& event : events) {
      if (event.kind == EventKind::submit) estimates_[index(event.job)] = estimator_->estimate(view, event.job);
    }
  }
  /// By job; empty without an estimator.
  [[nodiscard]] const std::vector<Time>& estimates() const { return estimates_; }
  [[nodiscard]] std::vector<Time> take() && { return std::move(estimates_); }

 private:
  std::optional<AnyDurationEstimator> estimator_;
  std::vector<Time> estimates_;
};

}  // namespace gpusched
