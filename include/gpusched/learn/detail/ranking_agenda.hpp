// SPDX-License-Identifier: Apache-2.0
/// RankingAgenda: the decision process of mode `preempt`. The agent gives scores to jobs, waiting and running, and the
/// cluster goes to them in that order (ranking.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "gpusched/learn/known_runs.hpp"
#include "gpusched/learn/observation.hpp"
#include "gpusched/learn/ranking.hpp"
#include "gpusched/policy/f1_score.hpp"

namespace gpusched::detail {

/// What Agenda (agenda.hpp) is in mode `preempt`; its members do what theirs of the same name say. A value.
class RankingAgenda {
 public:
  RankingAgenda(const AgendaOptions& options, KnownRuns known)
      : heuristic_(options.heuristic), known_(std::move(known)) {
    GPUSCHED_ASSERT(options.mode == ActionMode::preempt, "a ranking is for mode preempt");
  }

  void observe(const View& view) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish) {
        ranking_.finish(view, event.job);
        known_.finish(view, event.job);
      }
      if (enters_queue(event.kind)) ranking_.wait(view, event.job, known_.seconds(view, event.job));
    }
    ranking_.cross(view);
  }

  bool open(const View& view, Decision& decision) {
    if (!ranking_.asked().empty()) return true;
    ranking_.fill(view, decision);
    return false;
  }

  void show(const View&) {}

  [[nodiscard]] std::uint32_t size() const { return 2 * static_cast<std::uint32_t>(ranking_.asked().size()); }
  [[nodiscard]] JobId job(std::uint32_t action) const { return ranking_.asked()[action / 2]; }

  void rank(const View& view, std::span<const float> scores) { ranking_.rank(view, scores); }
  void change_hands(const View& view) { ranking_.rank_anew(view); }

  void act(Heuristic heuristic, const View& view, Decision&) {
    scores_.clear();
    for (const JobId job : ranking_.asked()) scores_.insert(scores_.end(), 2, rank_prior(heuristic, view, job));
    rank(view, scores_);
  }

  void encode(const View& view, const ObservationSlot& slot) const {
    std::fill_n(slot.jobs, std::size_t{size()} * job_features, 0.0f);
    for (std::uint32_t i = 0; i < size(); i += 2) {
      float* const row = slot.jobs + std::size_t{i} * job_features;
      ranking_.describe(view, job(i), row);
      std::copy_n(row, int{rank_features}, row + job_features);
      (row + job_features)[rank_running] = 1.0f;
      slot.prior[i] = slot.prior[i + 1] = rank_prior(heuristic_, view, job(i));
    }
    std::fill_n(slot.mask, size(), std::uint8_t{1});
    slot.prior[size()] = 0.0f;
    slot.mask[size()] = 0;
    std::fill_n(slot.global, global_features, 0.0f);
  }

 private:
  // The heuristic's preference as a number that does not depend on the other jobs; larger is better. A unit of each is
  // about what a learned score moves by: an hour of submission, a logarithm of run times, a doubling of service.
  [[nodiscard]] float rank_prior(Heuristic heuristic, const View& view, JobId job) const {
    const float known = ranking_.known_seconds(job) > 0 ? ranking_.known_seconds(job) : 1.0f;
    const auto submit_s = static_cast<float>(to_seconds(view.submit(job)));
    switch (heuristic) {
      case Heuristic::fcfs: return -submit_s / 3600;
      case Heuristic::sjf: return -std::log1p(known);
      case Heuristic::saf: return -std::log1p(known * ranking_.gpus(job));
      case Heuristic::f1:
        return -(std::log10(known) * ranking_.gpus(job) / f1_submit_weight + std::log10(std::max(submit_s, 0.1f)));
      case Heuristic::las: return -ranking_.service_doublings(view, job);
      case Heuristic::srtf: break;
    }
    return -std::log1p(ranking_.left_seconds(view, job));
  }

  Heuristic heuristic_;  // of the prior
  KnownRuns known_;
  Ranking ranking_;
  std::vector<float> scores_;  // of a heuristic's order
};

}  // namespace gpusched::detail
