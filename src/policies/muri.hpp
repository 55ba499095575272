// SPDX-License-Identifier: Apache-2.0
/// The baselines as the Muri artifact (Zhao et al., SIGCOMM'22; github.com/Rivendile/Muri) runs them: `srtf@muri`,
/// `srsf@muri` and `tiresias@muri`. They reproduce the artifact, not the papers. Quirks that all three share:
///  - a running job loses a start-up overhead at every event, not only when it starts (muri_overhead), while its
///    predicted end leaves the overhead out;
///  - at every event the cluster is emptied and all runnable jobs are placed afresh, so that running jobs move to other
///    nodes at no cost; a preempted job loses no work;
///  - a new job joins the end of the list that the last event left, and order among equals is that list's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/policies/event_overhead.hpp"
#include "src/policies/gang_nodes.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// `srtf@muri` (key: remaining time) and `srsf@muri` (remaining time x GPUs). Every runnable job in order of the key,
/// by a stable sort in place of the last event's list, greedy with skip, on nodes of YarnPlacement. Further quirk: a
/// predicted end within a relative 1e-9 of one already collected, in policy order, is moved to it, and that job ends
/// there, work left or not. O(runnable jobs) an event.
class MuriShortest {
 public:
  explicit MuriShortest(bool by_service) : by_service_(by_service) {}

  [[nodiscard]] std::string_view name() const { return by_service_ ? "srsf@muri" : "srtf@muri"; }

  void decide(const OracleView& view, Decision& decision) {
    if (is_running_.empty()) {
      is_running_.resize(view.job_count());
      nodes_.resize(view.job_count());
    }
    update_runnable(view);
    place_all(view, decision);
    overhead_.plan(view.now(), decision, running_, 1e-9);
  }

 private:
  struct Runnable {
    std::int64_t key = 0;  // microseconds, times GPUs under SRSF
    JobId job = no_job;
  };

  void update_runnable(const OracleView& view) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
        is_running_[index(event.job)] = false;
        std::erase_if(order_, [&](const Runnable& entry) { return entry.job == event.job; });
      }
    }
    const Time span = view.now() - last_event_;
    for (Runnable& entry : order_) {
      if (!is_running_[index(entry.job)]) continue;
      overhead_.progress(entry.job, span);
      entry.key = key_of(view, entry.job);
    }
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
        overhead_.admit(view, event.job);
        order_.push_back({key_of(view, event.job), event.job});
      }
    }
    last_event_ = view.now();
    sort_in_place();
  }

  [[nodiscard]] std::int64_t key_of(const View& view, JobId job) const {
    return overhead_.remaining(job).us * (by_service_ ? std::int64_t{view.shape(job).tasks} : 1);
  }

  // Stable. The list is nearly in order: only running jobs moved, and all of them forward.
  void sort_in_place() {
    const auto less = [](const Runnable& a, const Runnable& b) { return a.key < b.key; };
    for (auto at = order_.begin(); at != order_.end(); ++at) {
      if (at == order_.begin() || !less(*at, *(at - 1))) continue;
      std::rotate(std::upper_bound(order_.begin(), at, *at, less), at, at + 1);
    }
  }

  void place_all(const OracleView& view, Decision& decision) {
    nodes_left_.reset(view.cluster());
    running_.clear();
    moved_.clear();
    started_.clear();
    for (const Runnable& entry : order_) {
      const JobId job = entry.job;
      const bool was_running = is_running_[index(job)];
      if (nodes_left_.free_gpus() > 0 && nodes_left_.place(view.shape(job).tasks, chosen_)) {
        running_.push_back(job);
        if (!was_running) started_.push_back(job);
        if (was_running && !same_nodes(chosen_, nodes_[index(job)])) moved_.push_back(job);
        nodes_[index(job)] = chosen_;
      } else if (was_running) {
        decision.preempt(job);
        is_running_[index(job)] = false;
      }
    }
    // All that moves makes room before anything takes it.
    for (const JobId job : moved_) decision.vacate(job);
    for (const JobId job : moved_) decision.move_on(job, nodes_[index(job)]);
    for (const JobId job : started_) {
      overhead_.start(view, job);
      // CPU and memory are not counted here, but the engine may refuse for them.
      is_running_[index(job)] = decision.start_on(job, nodes_[index(job)]) == Verdict::ok;
    }
  }

  static bool same_nodes(const GangNodes& a, const GangNodes& b) {
    const auto same = [](const NodeTasks& x, const NodeTasks& y) { return x.node == y.node && x.tasks == y.tasks; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  }

  bool by_service_;
  Time last_event_{};
  std::vector<Runnable> order_;
  EventOverhead overhead_;
  YarnPlacement nodes_left_;
  std::vector<std::uint8_t> is_running_;  // by job
  std::vector<GangNodes> nodes_;          // by job, of running jobs
  GangNodes chosen_;
  std::vector<JobId> running_, started_, moved_;
};

PolicyInfo srtf_muri_info();
PolicyInfo srsf_muri_info();

}  // namespace gpusched
