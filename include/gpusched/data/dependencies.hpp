// SPDX-License-Identifier: Apache-2.0
/// Dependencies: which jobs wait for the end of others before they may run (workflows, rungs of a search for
/// hyperparameters; `sbatch --dependency=afterany` of Slurm), and for how long thereafter (think times of the Standard
/// Workload Format).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// A directed graph over the jobs of a table; without cycles where a JobTable holds it.
class Dependencies {
 public:
  /// A job and one that it waits for.
  struct Edge {
    JobId job = no_job;          ///< who waits
    JobId predecessor = no_job;  ///< for whose end

    /// By job, then by predecessor.
    friend auto operator<=>(const Edge&, const Edge&) = default;  // NOLINT(modernize-use-nullptr): misread by tidy 14
  };

  /// No job waits.
  Dependencies() = default;
  /// Those of a table of `jobs`; an edge that is there twice counts once. `delays`: delay() by job, or none at all.
  /// O(edges log edges + jobs).
  Dependencies(std::vector<Edge> edges, std::uint32_t jobs, std::vector<Time> delays = {}) {
    if (edges.empty()) return;
    if (std::any_of(delays.begin(), delays.end(), [](Time delay) { return delay > Time{}; })) {
      delays_ = std::move(delays);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    begin_.assign(jobs + 1, 0);
    for (const Edge& edge : edges) {
      ++begin_[index(edge.job) + 1];
      predecessors_.push_back(edge.predecessor);
    }
    for (std::uint32_t i = 0; i < jobs; ++i) begin_[i + 1] += begin_[i];
  }

  /// True when no job waits.
  [[nodiscard]] bool is_empty() const { return predecessors_.empty(); }
  /// The jobs that this one waits for, each once, by id.
  [[nodiscard]] std::span<const JobId> of(JobId job) const {
    if (is_empty()) return {};
    return std::span(predecessors_).subspan(begin_[index(job)], begin_[index(job) + 1] - begin_[index(job)]);
  }

  /// How long after the end of the last of of(job) the job may run first.
  [[nodiscard]] Time delay(JobId job) const { return delays_.empty() ? Time{} : delays_[index(job)]; }
  /// True when some job has a delay.
  [[nodiscard]] bool has_delays() const { return !delays_.empty(); }

  /// Every edge the other way round, without delays: of(job) are then those that wait for `job`.
  [[nodiscard]] Dependencies reversed() const {
    std::vector<Edge> edges;
    for (std::uint32_t i = 0; i < jobs(); ++i) {
      for (const JobId predecessor : of(JobId{i})) edges.push_back({.job = predecessor, .predecessor = JobId{i}});
    }
    return {std::move(edges), jobs()};
  }

  /// Those among the `count` jobs from `first` on, which are then numbered from `begin` on, behind jobs that wait
  /// for nobody. A wait for a job outside is left out.
  [[nodiscard]] Dependencies slice(std::uint32_t first, std::uint32_t count, std::uint32_t begin = 0) const {
    std::vector<Edge> edges;
    std::vector<Time> delays(has_delays() ? begin + count : 0);
    for (std::uint32_t i = first; i < first + count; ++i) {
      for (const JobId predecessor : of(JobId{i})) {
        const std::uint32_t at = index(predecessor);
        if (at < first || at - first >= count) continue;
        edges.push_back({JobId{i - first + begin}, JobId{at - first + begin}});
        if (has_delays()) delays[i - first + begin] = delay(JobId{i});
      }
    }
    return {std::move(edges), begin + count, std::move(delays)};
  }

  /// Jobs of which each waits for the next, and the last for the first; none where nobody waits in a circle. O(jobs +
  /// edges).
  [[nodiscard]] std::vector<JobId> find_cycle() const {
    const Dependencies successors = reversed();
    std::vector<std::uint32_t> open(jobs());
    std::vector<JobId> free;
    for (std::uint32_t i = 0; i < jobs(); ++i) {
      open[i] = static_cast<std::uint32_t>(of(JobId{i}).size());
      if (open[i] == 0) free.push_back(JobId{i});
    }
    while (!free.empty()) {
      const JobId done = free.back();
      free.pop_back();
      for (const JobId job : successors.of(done)) {
        if (--open[index(job)] == 0) free.push_back(job);
      }
    }
    const auto stuck = std::find_if(open.begin(), open.end(), [](std::uint32_t count) { return count > 0; });
    if (stuck == open.end()) return {};
    return cycle_from(JobId{static_cast<std::uint32_t>(stuck - open.begin())}, open);
  }

 private:
  [[nodiscard]] std::uint32_t jobs() const {
    return begin_.empty() ? 0 : static_cast<std::uint32_t>(begin_.size() - 1);
  }

  // A circle of waiting jobs: from a job that waits for open jobs, any of these leads into one.
  [[nodiscard]] std::vector<JobId> cycle_from(JobId job, const std::vector<std::uint32_t>& open) const {
    std::vector<JobId> path;
    for (auto seen = path.end(); seen == path.end(); seen = std::find(path.begin(), path.end(), job)) {
      path.push_back(job);
      const auto next = of(job);
      job = *std::find_if(next.begin(), next.end(), [&open](JobId other) { return open[index(other)] > 0; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), job));
    return path;
  }

  std::vector<std::uint32_t> begin_;  // by job, and one more: offsets into predecessors_; empty when nobody waits
  std::vector<JobId> predecessors_;
  std::vector<Time> delays_;  // by job; empty when there are none
};

}  // namespace gpusched
