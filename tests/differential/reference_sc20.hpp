// SPDX-License-Identifier: Apache-2.0
/// The SC'20 protocol as its loop is written down: one list for the queue, one event a step, everything looked up anew.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace gpusched::test {

/// Seconds and processors.
struct ReferenceSc20Job {
  std::int64_t id = 0, submit = 0, requested = 0, run = 0, processors = 1;
  std::int64_t start = -1;
  [[nodiscard]] std::int64_t end() const { return start + run; }
};

class ReferenceSc20Window {
 public:
  using Score = std::function<double(const ReferenceSc20Job&, std::int64_t clock)>;

  ReferenceSc20Window(std::vector<ReferenceSc20Job> jobs, std::int64_t processors, bool backfill, Score score)
      : jobs_(std::move(jobs)), free_(processors), backfill_(backfill), score_(std::move(score)) {}

  /// The jobs with their starts.
  const std::vector<ReferenceSc20Job>& run() {
    clock_ = jobs_.front().submit;
    arrive();
    for (;;) {
      while (queue_.empty() && next_ < jobs_.size()) step();
      if (queue_.empty()) return jobs_;
      std::stable_sort(queue_.begin(), queue_.end(),
                       [&](auto* a, auto* b) { return score_(*a, clock_) < score_(*b, clock_); });
      ReferenceSc20Job* const chosen = queue_.front();
      const std::int64_t reserved = reservation(*chosen);
      while (chosen->processors > free_) {
        if (backfill_) pass(*chosen, reserved);
        step();
      }
      start(*chosen);
    }
  }

 private:
  void arrive() { queue_.push_back(&jobs_[next_++]); }

  void start(ReferenceSc20Job& job) {
    std::erase(queue_, &job);
    running_.push_back(&job);
    job.start = clock_;
    free_ -= job.processors;
  }

  void step() {
    const auto first = std::min_element(running_.begin(), running_.end(),
                                        [](const auto* a, const auto* b) { return a->end() < b->end(); });
    if (next_ < jobs_.size() && (first == running_.end() || jobs_[next_].submit <= (*first)->end())) {
      clock_ = std::max(clock_, jobs_[next_].submit);
      arrive();
      return;
    }
    clock_ = std::max(clock_, (*first)->end());
    free_ += (*first)->processors;
    running_.erase(first);
  }

  [[nodiscard]] std::int64_t reservation(const ReferenceSc20Job& chosen) const {
    auto running = running_;
    std::sort(running.begin(), running.end(),
              [](auto* a, auto* b) { return a->start + a->requested < b->start + b->requested; });
    std::int64_t free = free_;
    for (const ReferenceSc20Job* job : running) {
      free += job->processors;
      if (free >= chosen.processors) return job->start + job->requested;
    }
    return clock_;
  }

  void pass(const ReferenceSc20Job& chosen, std::int64_t reserved) {
    std::stable_sort(queue_.begin(), queue_.end(), [](auto* a, auto* b) { return a->submit < b->submit; });
    for (ReferenceSc20Job* job : std::vector(queue_)) {
      if (job != &chosen && job->processors <= free_ && clock_ + job->requested < reserved) start(*job);
    }
  }

  std::vector<ReferenceSc20Job> jobs_;
  std::vector<ReferenceSc20Job*> queue_, running_;  // in order of arrival, and of starting
  std::int64_t free_;
  bool backfill_;
  Score score_;
  std::size_t next_ = 0;
  std::int64_t clock_ = 0;
};

}  // namespace gpusched::test
