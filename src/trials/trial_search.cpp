// SPDX-License-Identifier: Apache-2.0
#include "src/trials/trial_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpusched/core/config.hpp"

namespace gpusched {

std::uint32_t TrialRungs::count() const {
  std::uint32_t rungs = 1;
  for (TrialUnits units = least; units < most; units *= eta) ++rungs;
  return rungs;
}

TrialUnits TrialRungs::units(std::uint32_t rung) const {
  TrialUnits units = least;
  for (std::uint32_t i = 0; i < rung; ++i) units *= eta;
  return units;
}

namespace {

// A result at a rung; the better is the lesser.
struct TrialResult {
  double loss = 0;
  std::uint32_t trial = 0;
  bool is_promoted = false;
  friend bool operator<(const TrialResult& a, const TrialResult& b) {
    return a.loss != b.loss ? a.loss < b.loss : a.trial < b.trial;
  }
};

TrialTask task_at(const TrialRungs& rungs, std::uint32_t trial, std::uint32_t rung) {
  return {.trial = trial, .rung = rung, .from = rung == 0 ? 0 : rungs.units(rung - 1), .to = rungs.units(rung)};
}

class AshaByPromotion final : public TrialSearch {
 public:
  AshaByPromotion(const TrialRungs& rungs, std::uint32_t trials)
      : rungs_(rungs), trials_(trials), results_(rungs.count()) {}

  std::optional<TrialTask> next() override {
    for (std::uint32_t rung = rungs_.count() - 1; rung-- > 0;) {
      std::vector<TrialResult>& results = results_[rung];
      const auto top = results.begin() + static_cast<std::ptrdiff_t>(results.size() / rungs_.eta);
      const auto best =
          std::find_if(results.begin(), top, [](const TrialResult& result) { return !result.is_promoted; });
      if (best == top) continue;
      best->is_promoted = true;
      return task_at(rungs_, best->trial, rung + 1);
    }
    if (begun_ == trials_) return std::nullopt;
    return task_at(rungs_, begun_++, 0);
  }

  bool tell(const TrialTask& done, double loss, TrialTask&) override {
    std::vector<TrialResult>& results = results_[done.rung];
    const TrialResult result{.loss = loss, .trial = done.trial};
    results.insert(std::upper_bound(results.begin(), results.end(), result), result);
    return false;
  }

 private:
  TrialRungs rungs_;
  std::uint32_t trials_, begun_ = 0;
  std::vector<std::vector<TrialResult>> results_;  // by rung, best first
};

class AshaByStopping final : public TrialSearch {
 public:
  AshaByStopping(const TrialRungs& rungs, std::uint32_t trials)
      : rungs_(rungs), trials_(trials), losses_(rungs.count()) {}

  std::optional<TrialTask> next() override {
    if (begun_ == trials_) return std::nullopt;
    return task_at(rungs_, begun_++, 0);
  }

  bool tell(const TrialTask& done, double loss, TrialTask& follow) override {
    std::vector<double>& losses = losses_[done.rung];
    const bool goes_on = losses.empty() || loss <= cutoff(losses);
    losses.insert(std::upper_bound(losses.begin(), losses.end(), loss), loss);
    if (!goes_on || done.rung + 1 == rungs_.count()) return false;
    follow = task_at(rungs_, done.trial, done.rung + 1);
    return true;
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

class HyperbandSearch final : public TrialSearch {
 public:
  HyperbandSearch(const TrialRungs& rungs, bool halving) : rungs_(rungs), halving_(halving), bracket_(rungs.count()) {
    begin_bracket();
  }

  std::optional<TrialTask> next() override {
    if (next_ < waiting_.size()) return task(waiting_[next_++]);
    if (results_.size() < waiting_.size() || is_over_) return std::nullopt;
    begin_rung();
    return next_ < waiting_.size() ? std::optional(task(waiting_[next_++])) : std::nullopt;
  }

  bool tell(const TrialTask& done, double loss, TrialTask&) override {
    results_.push_back({.loss = loss, .trial = done.trial});
    return false;
  }

 private:
  [[nodiscard]] TrialTask task(std::uint32_t trial) const {
    TrialTask task = task_at(rungs_, trial, rung_);
    if (rung_ == first_rung_) task.from = 0;
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
  std::vector<std::uint32_t> waiting_;  // trials of this rung
  std::size_t next_ = 0;                // of them, the next to begin
  std::vector<TrialResult> results_;    // of this rung
};

}  // namespace

std::unique_ptr<TrialSearch> asha_by_promotion(const TrialRungs& rungs, std::uint32_t trials) {
  return std::make_unique<AshaByPromotion>(rungs, trials);
}
std::unique_ptr<TrialSearch> asha_by_stopping(const TrialRungs& rungs, std::uint32_t trials) {
  return std::make_unique<AshaByStopping>(rungs, trials);
}
std::unique_ptr<TrialSearch> hyperband_search(const TrialRungs& rungs, bool halving) {
  return std::make_unique<HyperbandSearch>(rungs, halving);
}

}  // namespace gpusched
