// SPDX-License-Identifier: Apache-2.0
/// The Muri artifact's simulator, event by event as the golden tables describe it. It knows overheads that are paid at
/// every event, so that a job's work left does not fall by a second a second, and predicted ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/differential/reference_simulator.hpp"

namespace gpusched::test {

/// Seconds that a running job loses at every event.
inline std::int64_t reference_muri_overhead(std::string_view model, std::int64_t gpus) {
  static const std::map<std::int64_t, std::vector<std::int64_t>> by_gpus{
      {1, {7, 7, 4, 4, 10, 10, 38, 5}}, {2, {7, 7, 5, 4, 10, 10, 39, 5}},   {4, {8, 8, 5, 5, 10, 10, 39, 6}},
      {8, {9, 9, 7, 5, 10, 10, 46, 6}}, {16, {9, 10, 7, 7, 10, 10, 46, 8}}, {32, {10, 10, 7, 8, 10, 10, 46, 8}}};
  static const std::vector<std::string_view> models{"vgg16", "vgg19", "resnet18", "shufflenet_v2_x1_0",
                                                    "bert",  "gpt2",  "a2c",      "dqn"};
  const auto row = by_gpus.find(gpus);
  const auto column = std::find(models.begin(), models.end(), model);
  if (row == by_gpus.end() || column == models.end()) return 10;
  return row->second[static_cast<std::size_t>(column - models.begin())];
}

enum class MuriSchedule { srtf, srsf, tiresias };

/// Equal nodes; each job needs `overhead` filled in. Times are whole seconds from any origin.
class ReferenceMuri {
 public:
  struct Job {
    std::int64_t submit = 0, work = 0, gpus = 1, overhead = 10;
    std::int64_t start = -1, end = -1;
    std::int64_t remaining = 0, executed = 0, predicted = 0;
    bool running = false;
    std::size_t queue = 0;
  };

  ReferenceMuri(std::vector<Job> jobs, std::int64_t nodes, std::int64_t node_gpus, MuriSchedule schedule)
      : jobs_(std::move(jobs)), nodes_(nodes), node_gpus_(node_gpus), schedule_(schedule) {}

  const std::vector<Job>& run() {
    for (now_ = jobs_.empty() ? 0 : jobs_.front().submit; ended_ < jobs_.size(); ++now_) {
      // Jobs of no work end where they start, which is an event of its own.
      for (bool first = true; event(first); first = false) {
      }
    }
    return jobs_;
  }

 private:
  bool event(bool first) {
    bool something = first && now_ == next_check_;
    for (Job& job : jobs_) {  // (1)
      if (!job.running || job.predicted != now_) continue;
      job.running = false;
      job.end = now_;
      ++ended_;
      std::erase(list_, &job);
      std::erase(queues_[job.queue], &job);
      something = true;
    }
    std::vector<Job*> before = list_;
    if (first) {
      for (Job& job : jobs_) {  // (2)
        if (job.submit != now_) continue;
        job.remaining = job.work;
        list_.push_back(&job);
        queues_[0].push_back(&job);
        something = true;
      }
    }
    if (!something) return false;
    const std::int64_t span = now_ - last_event_;
    for (Job* job : before) {  // (3)
      if (!job->running) continue;
      job->remaining -= std::max<std::int64_t>(span - job->overhead, 0);
      job->executed += span;
      if (schedule_ == MuriSchedule::tiresias) demote(*job);  // (4)
    }
    last_event_ = now_;
    schedule_ == MuriSchedule::tiresias ? place_by_count() : place_by_node();  // (5), (6)
    predict();                                                                 // (7)
    return true;
  }

  void demote(Job& job) {
    if (job.queue == 2 || job.executed * job.gpus < limits_[job.queue]) return;
    std::erase(queues_[job.queue], &job);
    queues_[++job.queue].push_back(&job);
  }

  void run_or_not(Job& job, bool runs) const {
    if (runs && job.start < 0) job.start = now_;
    job.running = runs;
  }

  void place_by_count() {
    std::int64_t free = nodes_ * node_gpus_;
    for (auto& queue : queues_) {
      for (Job* job : queue) {
        const bool fits = job->gpus <= free;
        if (fits) free -= job->gpus;
        run_or_not(*job, fits);
      }
    }
    next_check_ = -1;
    for (std::size_t q = 0; q < 3; ++q) {
      std::stable_partition(queues_[q].begin(), queues_[q].end(), [](const Job* job) { return job->running; });
      for (const Job* job : queues_[q]) {
        if (!job->running || q == 2) continue;
        const std::int64_t check = now_ + (limits_[q] + job->gpus - 1) / job->gpus - job->executed;
        if (next_check_ < 0 || check < next_check_) next_check_ = check;
      }
    }
  }

  void place_by_node() {
    const auto key = [&](const Job* job) { return job->remaining * (schedule_ == MuriSchedule::srsf ? job->gpus : 1); };
    std::stable_sort(list_.begin(), list_.end(), [&](auto* a, auto* b) { return key(a) < key(b); });
    std::vector<std::int64_t> free(static_cast<std::size_t>(nodes_), node_gpus_);
    for (Job* job : list_) run_or_not(*job, yarn(free, job->gpus));
  }

  // One node, the first that fits; or whole idle nodes, and the first other one for the rest.
  bool yarn(std::vector<std::int64_t>& free, std::int64_t need) const {
    std::vector<std::int64_t> left = free;
    for (; need > 0; need -= std::min(need, node_gpus_)) {
      const std::int64_t part = std::min(need, node_gpus_);
      const auto node = std::find_if(left.begin(), left.end(), [&](std::int64_t gpus) { return gpus >= part; });
      if (node == left.end()) return false;
      *node -= part;
    }
    free = left;
    return true;
  }

  // Nearly equal ends are made one, in policy order, except under Tiresias.
  void predict() {
    std::vector<std::int64_t> collected;
    for (Job* job : list_) {
      if (!job->running) continue;
      job->predicted = now_ + job->remaining;
      if (schedule_ == MuriSchedule::tiresias) continue;
      const auto near = std::find_if(collected.begin(), collected.end(), [&](std::int64_t end) {
        const auto a = static_cast<double>(end), b = static_cast<double>(job->predicted);
        return std::fabs(a - b) <= 1e-9 * std::max(std::fabs(a), std::fabs(b));
      });
      if (near != collected.end()) job->predicted = *near;
      if (near == collected.end()) collected.push_back(job->predicted);
    }
  }

  static constexpr std::int64_t limits_[] = {3250, 7200};

  std::vector<Job> jobs_;
  std::int64_t nodes_, node_gpus_;
  MuriSchedule schedule_;
  std::vector<Job*> list_, queues_[3];
  std::int64_t now_ = 0, last_event_ = 0, next_check_ = -1;
  std::size_t ended_ = 0;
};

}  // namespace gpusched::test
