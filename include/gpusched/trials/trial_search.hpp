// SPDX-License-Identifier: Apache-2.0
/// TrialSearch: which trial a free worker trains next, and for how long, when results decide.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "gpusched/trials/asha.hpp"
#include "gpusched/trials/barrier_searches.hpp"
#include "gpusched/trials/trial_task.hpp"

namespace gpusched {

/// A search, as a value. next() is called when a worker is free, tell() when a task is done; both alternate in any
/// order. A further rule is a class like AshaByPromotion and its place in `Rule`.
class TrialSearch {
 public:
  /// All rules.
  using Rule = std::variant<AshaByPromotion, AshaByStopping, HyperbandSearch, RandomTrials>;

  /// Follows `rule`.
  explicit TrialSearch(Rule rule) : rule_(std::move(rule)) {}

  /// What a free worker trains next; nothing while that depends on results that are to come, or for ever.
  std::optional<TrialTask> next() {
    return std::visit([](auto& rule) { return rule.next(); }, rule_);
  }
  /// The task is done, and its trial has this loss; lower is better. True: the same worker goes on with the trial, to
  /// `follow`.
  bool tell(const TrialTask& done, double loss, TrialTask& follow) {
    return std::visit([&done, &loss, &follow](auto& rule) { return rule.tell(done, loss, follow); }, rule_);
  }
  /// A task of next() did not begin, and may be asked for again. Precondition: changes_its_mind().
  void give_back(const TrialTask& task) {
    std::visit([&task](auto& rule) { rule.give_back(task); }, rule_);
  }
  /// All tasks that next() may ask for, by trial and rung. Where keeps_worker(), one a trial: all of its training.
  [[nodiscard]] std::vector<TrialTask> tasks() const {
    return std::visit([](const auto& rule) { return rule.tasks(); }, rule_);
  }
  /// A trial that goes on keeps its worker (tell() is true then); else it waits for one like any other.
  [[nodiscard]] bool keeps_worker() const {
    return std::visit([](const auto& rule) { return rule.keeps_worker; }, rule_);
  }
  /// Later results may change the answer for a worker that did not begin.
  [[nodiscard]] bool changes_its_mind() const {
    return std::visit([](const auto& rule) { return rule.changes_its_mind; }, rule_);
  }

 private:
  Rule rule_;
};

}  // namespace gpusched
