// SPDX-License-Identifier: Apache-2.0
/// KnownRuns: what a learning scheduler is told about run times.
#pragma once

#include <span>
#include <utility>

#include "gpusched/engine/view.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "gpusched/policy/runtime_predictor.hpp"

namespace gpusched {

/// The run times that the agent is told, from the jobs finished so far unless it knows the true ones.
class KnownRuns {
 public:
  /// `true_runs` (JobTable::works()) is read only with RuntimeKnowledge::oracle and may be empty otherwise; it is
  /// borrowed. `history` is what the predictor knows before the run.
  KnownRuns(RuntimeKnowledge knowledge, std::span<const Time> true_runs, RuntimePredictor history = {})
      : knowledge_(knowledge), true_runs_(true_runs), predictor_(std::move(history)) {
    GPUSCHED_ASSERT(knowledge != RuntimeKnowledge::oracle || !true_runs.empty(), "the oracle needs run times");
  }

  /// Whether the predictor, and so `history`, is ever asked.
  static constexpr bool predicts(RuntimeKnowledge knowledge) {
    return knowledge == RuntimeKnowledge::predicted || knowledge == RuntimeKnowledge::user;
  }

  /// Learns a job that has just finished.
  void finish(const View& view, JobId job) {
    if (predicts(knowledge_)) predictor_.learn(view, job);
  }

  /// The known run time of a job, in seconds; 0 when unknown.
  [[nodiscard]] float seconds(const View& view, JobId job) const {
    switch (knowledge_) {
      case RuntimeKnowledge::none: return 0.0f;
      case RuntimeKnowledge::oracle: return static_cast<float>(to_seconds(true_runs_[index(job)]));
      case RuntimeKnowledge::user:
        if (view.estimate(job) != Time::max()) return static_cast<float>(to_seconds(view.estimate(job)));
        [[fallthrough]];
      case RuntimeKnowledge::predicted: break;
    }
    return static_cast<float>(predictor_.predict_seconds(view, job));
  }

 private:
  RuntimeKnowledge knowledge_;
  std::span<const Time> true_runs_;
  RuntimePredictor predictor_;
};

}  // namespace gpusched
