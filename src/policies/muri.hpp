// SPDX-License-Identifier: Apache-2.0
/// The baselines as the Muri artifact (Zhao et al., SIGCOMM'22; github.com/Rivendile/Muri) runs them: `srtf@muri`,
/// `srsf@muri` and `tiresias@muri`. They reproduce the artifact, not the papers. Quirks that all three share:
///  - a running job loses a start-up overhead at every event, not only when it starts (muri_overhead), while its
///    predicted end leaves the overhead out;
///  - at every event the cluster is emptied and all runnable jobs are placed afresh, so that running jobs move to other
///    nodes at no cost; a preempted job loses no work;
///  - a new job joins the end of the list that the last event left, and order among equals is that list's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
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
    if (nodes_.empty()) nodes_.resize(view.job_count());
    update_runnable(view);
    place_all(view, decision);
    overhead_.plan(view.now(), decision, running_, 1e-9);
  }

 private:
  struct Runnable {
    std::int64_t key = 0;  // microseconds, times GPUs under SRSF
    JobId job = no_job;
    std::uint32_t gpus = 0;
    std::uint32_t node = no_index;  // of a running job on one node; on several: nodes_
    bool running = false;
  };

  void update_runnable(const OracleView& view) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
        std::erase_if(order_, [&](const Runnable& entry) { return entry.job == event.job; });
      }
    }
    const Time span = view.now() - last_event_;
    for (Runnable& entry : order_) {
      if (!entry.running) continue;
      overhead_.progress(entry.job, span);
      entry.key = key_of(entry.job, entry.gpus);
    }
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
        overhead_.admit(view, event.job);
        const std::uint32_t gpus = view.shape(event.job).tasks;
        order_.push_back({.key = key_of(event.job, gpus), .job = event.job, .gpus = gpus});
      }
    }
    last_event_ = view.now();
    sort_in_place();
  }

  [[nodiscard]] std::int64_t key_of(JobId job, std::uint32_t gpus) const {
    return overhead_.remaining(job).us * (by_service_ ? std::int64_t{gpus} : 1);
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
    auto ran = std::count_if(order_.begin(), order_.end(), [](const Runnable& entry) { return entry.running; });
    for (Runnable& entry : order_) {
      if (nodes_left_.free_gpus() == 0 && ran == 0) break;
      if (entry.running) --ran;
      if (place(entry)) {
        running_.push_back(entry.job);
      } else if (entry.running) {
        decision.preempt(entry.job);
        entry.running = false;
      }
    }
    // All that moves makes room before anything takes it.
    for (const Runnable* entry : moved_) decision.vacate(entry->job);
    for (const Runnable* entry : moved_) {
      on_nodes(*entry, [&](std::span<const NodeTasks> nodes) { decision.move_on(entry->job, nodes); });
    }
    for (Runnable* entry : started_) {
      overhead_.start(view, entry->job);
      // CPU and memory are not counted here, but the engine may refuse for them.
      on_nodes(*entry, [&](std::span<const NodeTasks> nodes) {
        entry->running = decision.start_on(entry->job, nodes) == Verdict::ok;
      });
    }
  }

  // Finds nodes for the job; notes whether it starts or moves.
  bool place(Runnable& entry) {
    bool same = entry.running;
    if (entry.gpus <= nodes_left_.node_gpus()) {
      const std::uint32_t node = nodes_left_.place_on_one(entry.gpus);
      if (node == no_index) return false;
      same = same && node == entry.node;
      entry.node = node;
    } else {
      if (!nodes_left_.place(entry.gpus, chosen_)) return false;
      same = same && same_nodes(chosen_, nodes_[index(entry.job)]);
      if (!same) nodes_[index(entry.job)] = chosen_;
    }
    if (!same) (entry.running ? moved_ : started_).push_back(&entry);
    return true;
  }

  template <class Use>
  void on_nodes(const Runnable& entry, Use use) const {
    if (entry.gpus > nodes_left_.node_gpus()) return use(nodes_[index(entry.job)]);
    const NodeTasks only{NodeId{entry.node}, entry.gpus};
    use(std::span(&only, 1));
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
  std::vector<GangNodes> nodes_;  // by job, of running jobs on several nodes
  GangNodes chosen_;
  std::vector<JobId> running_;
  std::vector<Runnable*> started_, moved_;  // into order_, of the open decision
};

PolicyInfo srtf_muri_info();
PolicyInfo srsf_muri_info();

}  // namespace gpusched
