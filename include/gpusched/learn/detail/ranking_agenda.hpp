// SPDX-License-Identifier: Apache-2.0
/// RankingAgenda: the decision process of mode `preempt`. The agent gives scores to jobs, waiting and running, and the
/// cluster goes to them in that order (ranking.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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
  RankingAgenda(const AgendaOptions& options, KnownRuns known, JobHistory history)
      : heuristic_(options.heuristic),
        known_(std::move(known)),
        ranking_(options.heuristic == Heuristic::gittins, std::move(history)) {
    GPUSCHED_ASSERT(options.mode == ActionMode::preempt, "a ranking is for mode preempt");
  }

  void observe(const View& view) {
    for (const Event& event : view.events()) {
      const View then = view.at(event);
      if (event.kind == EventKind::finish) {
        ranking_.finish(then, event.job);
        if (heuristic_ == Heuristic::gittins) ranking_.ask_near(event.job);
        known_.finish(then, event.job);
      }
      if (event.kind == EventKind::withdraw) ranking_.withdraw(then, event.job);
      if (enters_queue(event.kind)) ranking_.wait(then, event.job, known_.seconds(then, event.job));
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

  void rank(const View& view, std::span<const float> scores) {
    ranking_.rank(view, scores);
    all_asked_ = false;
  }
  void change_hands(const View& view) {
    ranking_.rank_anew(view);
    all_asked_ = true;
  }

  void act(Heuristic heuristic, const View& view, Decision&) {
    if (heuristic == Heuristic::gittins) ranking_.forecast(view);
    scores_.clear();
    for (const JobId job : ranking_.asked()) {
      const float prior = rank_prior(heuristic, view, job);
      scores_.insert(scores_.end(), {prior, prior + running_gain(heuristic)});
    }
    rank(view, scores_);
  }

  void encode(const View& view, const ObservationSlot& slot) const {
    std::fill_n(slot.jobs, std::size_t{size()} * job_features, 0.0f);
    for (std::uint32_t i = 0; i < size(); i += 2) {
      float* const row = slot.jobs + std::size_t{i} * job_features;
      ranking_.describe(view, job(i), row);
      std::copy_n(row, int{rank_features}, row + job_features);
      (row + job_features)[rank_running] = 1.0f;
      slot.prior[i] = rank_prior(heuristic_, view, job(i));
      slot.prior[i + 1] = slot.prior[i] + running_gain(heuristic_);
    }
    std::fill_n(slot.mask, size(), std::uint8_t{1});
    slot.prior[size()] = 0.0f;
    slot.mask[size()] = 0;
    std::fill_n(slot.global, global_features, 0.0f);
    if (all_asked_) write_global(view, slot.global);
  }

 private:
  // Sums over all jobs in the system, which are those of asked() then: no dearer than their tokens.
  void write_global(const View& view, float* out) const {
    const float total = gpus_of(view.cluster());
    float waiting = 0, running = 0, queued_gpu_s = 0, oldest_s = 0;
    float next_end_s = std::numeric_limits<float>::max();
    for (const JobId job : ranking_.asked()) {
      if (ranking_.runs(job)) {
        running += 1;
        next_end_s = std::min(next_end_s, ranking_.left_seconds(view, job));
        continue;
      }
      waiting += 1;
      queued_gpu_s += ranking_.left_seconds(view, job) * ranking_.gpus(job);
      oldest_s = std::max(oldest_s, static_cast<float>(to_seconds(view.now() - view.submit(job))));
    }
    out[free_fraction] = static_cast<float>(view.cluster().free_gpu_milli()) / (total * static_cast<float>(whole_gpu));
    out[log_queue] = fast_log1p(waiting) * 0.2f;
    out[log_running] = fast_log1p(running) * 0.2f;
    out[log_queued_work] = fast_log1p(queued_gpu_s / total) * 0.1f;
    out[log_oldest_wait] = fast_log1p(oldest_s) * 0.1f;
    out[log_next_end] = running > 0 ? fast_log1p(next_end_s) * 0.1f : 0.0f;
    out[log_arrivals_5m] = fast_log1p(arrivals_within(view, 300)) * 0.2f;
    out[log_arrivals_60m] = fast_log1p(arrivals_within(view, 3600)) * 0.2f;
    const auto& sines = hour_table()[hour_of_week(view.now())];
    std::copy(sines.begin(), sines.end(), out + hour_sin);
    std::int64_t fragmented = 0;
    view.cluster().for_each_idle_level(
        [&fragmented](std::uint32_t, std::uint32_t gpus, std::uint32_t idle, std::uint32_t nodes) {
          if (idle < gpus) fragmented += std::int64_t{idle} * nodes;
        });
    out[fragmented_fraction] = static_cast<float>(fragmented) / total;
  }

  // Jobs are numbered by submission.
  static float arrivals_within(const View& view, std::int64_t seconds) {
    const Time from{view.now().us - seconds * microseconds_per_second};
    std::uint32_t first = 0;
    std::uint32_t end = view.arrived();
    while (first < end) {
      const std::uint32_t middle = first + (end - first) / 2;
      if (view.listed(JobId{middle}) <= from) {
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    return static_cast<float>(view.arrived() - first);
  }

  // What a running job's preference has more than a waiting one's. A preemption costs restarts, which an index that is
  // hardly better does not pay for.
  [[nodiscard]] static float running_gain(Heuristic heuristic) { return heuristic == Heuristic::gittins ? 1.0f : 0.0f; }

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
      case Heuristic::gittins: return ranking_.log_gittins(view, job);
      case Heuristic::srtf: break;
    }
    return -std::log1p(ranking_.left_seconds(view, job));
  }

  Heuristic heuristic_;  // of the prior
  KnownRuns known_;
  Ranking ranking_;
  bool all_asked_ = false;     // of every job, since change_hands()
  std::vector<float> scores_;  // of a heuristic's order
};

}  // namespace gpusched::detail
