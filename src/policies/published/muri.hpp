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
#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/published/event_overhead.hpp"
#include "src/policies/queues/gang_nodes.hpp"
#include "src/policies/queues/waiting_by_size.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// `srtf@muri` (key: remaining time) and `srsf@muri` (remaining time x GPUs). Every runnable job in order of the key,
/// by a stable sort in place of the last event's list, greedy with skip, on nodes of YarnPlacement. Further quirk: a
/// predicted end within a relative 1e-9 of one already collected, in policy order, is moved to it, and that job ends
/// there, work left or not. The list is kept as running jobs, which move in it, and waiting ones, which do not:
/// O(running jobs + log waiting) an event, as each of the running may go elsewhere.
class MuriShortest {
 public:
  explicit MuriShortest(bool by_service) : by_service_(by_service) {}

  [[nodiscard]] std::string_view name() const { return by_service_ ? "srsf@muri" : "srtf@muri"; }

  void decide(const OracleView& view, Decision& decision) {
    if (nodes_.empty()) {
      nodes_.resize(view.job_count());
      nodes_left_ = YarnPlacement(view.cluster());
    }
    ++instant_;
    drop_ended(view);
    progress(view.now() - last_event_);
    last_event_ = view.now();
    admit(view);
    place_all(view, decision);
    move_and_start(decision);
    overhead_.plan(view.now(), decision, running_, 1e-9);
    put_back_refused();
  }

 private:
  // Where a job stands in the list: a stable sort leaves it behind those that had the same key before it.
  struct Place {
    std::int64_t key = 0;   // microseconds, times GPUs under SRSF
    std::uint64_t tie = 0;  // instant at which it got the key; then its number among those that got one then
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Run {
    OverheadAccount account = {};
    std::uint64_t tie = 0;
    JobId job = no_job;
    std::uint32_t gpus = 0;
    std::uint32_t node = no_index;  // of a job on one node; on several: nodes_
  };

  using Waiting = WaitingBySize<Place>;

  static Place last_place() { return {.key = std::numeric_limits<std::int64_t>::max(), .tie = 0}; }
  static constexpr std::uint64_t first_arrival = std::uint64_t{1} << 31;  // behind all that run

  [[nodiscard]] std::int64_t key_of(Time remaining, std::uint32_t gpus) const {
    return remaining.us * (by_service_ ? std::int64_t{gpus} : 1);
  }
  [[nodiscard]] Place place_of(const Run& run) const { return {key_of(run.account.remaining, run.gpus), run.tie}; }
  [[nodiscard]] std::uint64_t tie_of(std::uint64_t number) const { return instant_ << 32 | number; }

  void drop_ended(const OracleView& view) {
    for (const Event& event : view.events()) {
      if (event.kind != EventKind::finish && event.kind != EventKind::retry) continue;
      running_.erase(find_running(event.job));
    }
  }

  // Running jobs move forward, and past each other where they lose or weigh differently.
  void progress(Time span) {
    const auto before = [this](std::int64_t key, const Run& run) { return key < place_of(run).key; };
    std::int64_t last = std::numeric_limits<std::int64_t>::min();  // key of the run before
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Run& run = running_[i];
      const Time remaining = run.account.remaining;
      run.account.progress(span);
      run.tie = run.account.remaining == remaining ? run.tie : tie_of(i);
      const std::int64_t key = place_of(run).key;
      if (key >= last) {
        last = key;
        continue;
      }
      const auto at = running_.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(std::upper_bound(running_.begin(), at, key, before), at, at + 1);
    }
  }

  void admit(const OracleView& view) {
    std::uint64_t number = first_arrival;
    for (const Event& event : view.events()) {
      if (event.kind != EventKind::submit && event.kind != EventKind::retry) continue;
      overhead_.admit(view, event.job);
      const std::uint32_t gpus = view.shape(event.job).tasks;
      waiting_.insert(gpus, {{key_of(overhead_.remaining(event.job), gpus), tie_of(number++)}, event.job});
    }
  }

  // The walk through the list. Leaves in running_ those that stay, and notes which of them move and which jobs start.
  void place_all(const OracleView& view, Decision& decision) {
    nodes_left_.reset();
    waiting_.begin_walk();
    started_.clear();
    preempted_.clear();
    moved_.resize(running_.size());
    std::uint32_t kept = 0;
    std::size_t moves = 0;
    for (Run& run : running_) {
      start_before(place_of(run), view);
      const Found found = find_nodes(run);
      if (found == Found::nothing) {
        decision.preempt(run.job);
        preempted_.push_back(run);
        continue;
      }
      moved_[moves] = kept;
      moves += found == Found::others ? 1 : 0;
      if (&running_[kept] != &run) running_[kept] = run;
      ++kept;
    }
    start_before(last_place(), view);
    running_.resize(kept);
    moved_.resize(moves);
    for (const Run& run : preempted_) put_back(run);
  }

  // Finds nodes for the waiting jobs before that place.
  void start_before(const Place& place, const OracleView& view) {
    waiting_.walk_to(place, [&](const Waiting::Entry& next, std::int64_t gpus) {
      Run run{.tie = next.place.tie, .job = next.job, .gpus = static_cast<std::uint32_t>(gpus)};
      if (find_nodes(run) == Found::nothing) return false;
      run.account = overhead_.start(view, run.job);
      started_.push_back(run);
      return true;
    });
  }

  enum class Found : std::uint8_t { nothing, same, others };

  Found find_nodes(Run& run) {
    if (run.gpus <= nodes_left_.node_gpus()) {
      const std::uint32_t before = std::exchange(run.node, nodes_left_.place_on_one(run.gpus));
      return run.node == no_index ? Found::nothing : run.node == before ? Found::same : Found::others;
    }
    if (!nodes_left_.place(run.gpus, chosen_)) return Found::nothing;
    GangNodes& nodes = nodes_[index(run.job)];
    const auto same = [](const NodeTasks& a, const NodeTasks& b) { return a.node == b.node && a.tasks == b.tasks; };
    if (std::equal(nodes.begin(), nodes.end(), chosen_.begin(), chosen_.end(), same)) return Found::same;
    nodes = chosen_;
    return Found::others;
  }

  // All that moves makes room before anything takes it.
  void move_and_start(Decision& decision) {
    for (const std::uint32_t i : moved_) decision.vacate(running_[i].job);
    for (const std::uint32_t i : moved_) {
      on_nodes(running_[i], [&](std::span<const NodeTasks> nodes) { decision.move_on(running_[i].job, nodes); });
    }
    refused_.clear();
    const auto before = [this](const Run& a, const Run& b) { return place_of(a) < place_of(b); };
    for (const Run& run : started_) {
      // CPU and memory are not counted here, but the engine may refuse for them.
      on_nodes(run, [&](std::span<const NodeTasks> nodes) {
        if (decision.start_on(run.job, nodes) != Verdict::ok) refused_.push_back(run.job);
      });
      running_.insert(std::upper_bound(running_.begin(), running_.end(), run, before), run);
    }
  }

  template <class Use>
  void on_nodes(const Run& run, Use use) const {
    if (run.gpus > nodes_left_.node_gpus()) return use(nodes_[index(run.job)]);
    const NodeTasks only{NodeId{run.node}, run.gpus};
    use(std::span(&only, 1));
  }

  // Their ends counted among the predicted ones all the same.
  void put_back_refused() {
    for (const JobId job : refused_) {
      const auto run = find_running(job);
      put_back(*run);
      running_.erase(run);
    }
  }

  void put_back(const Run& run) {
    overhead_.preempt(run.job, run.account);
    waiting_.insert(run.gpus, {place_of(run), run.job});
  }

  std::vector<Run>::iterator find_running(JobId job) {
    return std::find_if(running_.begin(), running_.end(), [&](const Run& run) { return run.job == job; });
  }

  bool by_service_;
  Time last_event_{};
  std::uint64_t instant_ = 0;  // number of the present one
  std::vector<Run> running_;   // in order of place
  Waiting waiting_;
  EventOverhead overhead_;
  YarnPlacement nodes_left_;
  std::vector<GangNodes> nodes_;  // by job, of running jobs on several nodes
  // Of the open decision:
  GangNodes chosen_;
  std::vector<Run> started_, preempted_;
  std::vector<std::uint32_t> moved_;  // into running_
  std::vector<JobId> refused_;
};

PolicyInfo srtf_muri_info();
PolicyInfo srsf_muri_info();

}  // namespace gpusched
