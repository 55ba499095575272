// SPDX-License-Identifier: Apache-2.0
/// KnownEnds: when the running jobs end by what is known of run times, and how much they leave free until then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpusched/core/config.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// Running jobs in order of their known ends, equal ones as they started. An end that passes stays in the past: nothing
/// is corrected. O(running) a start or an end, O(log running) a question.
class KnownEnds {
 public:
  /// One running job.
  struct Run {
    std::int64_t end_us;  ///< its start and its known run time
    MilliGpu milli;       ///< thousandths of a GPU that it holds
    JobId job;
    std::uint32_t gpu_type = no_index;  ///< that it runs on, where that is known
  };

  void start(const Run& run) {
    runs_.insert(std::upper_bound(runs_.begin(), runs_.end(), run,
                                  [](const Run& a, const Run& b) { return a.end_us < b.end_us; }),
                 run);
    summed_ = false;
  }

  /// Gives what the job held. Precondition: it runs.
  MilliGpu end(JobId job) {
    const auto run = std::find_if(runs_.begin(), runs_.end(), [job](const Run& other) { return other.job == job; });
    GPUSCHED_ASSERT(run != runs_.end(), "a job ended that was not known to run");
    const MilliGpu held = run->milli;
    runs_.erase(run);
    summed_ = false;
    return held;
  }

  [[nodiscard]] std::size_t size() const { return runs_.size(); }

  /// The first known end, if anything runs.
  [[nodiscard]] std::optional<std::int64_t> next_us() const {
    return runs_.empty() ? std::nullopt : std::optional(runs_.front().end_us);
  }

  /// The known end with which `milli` more have become free; nothing when all that runs does not hold as much.
  [[nodiscard]] std::optional<std::int64_t> until_freed(MilliGpu milli) {
    sum();
    const auto enough = std::lower_bound(freed_.begin(), freed_.end(), milli);
    if (enough == freed_.end()) return std::nullopt;
    return runs_[static_cast<std::size_t>(enough - freed_.begin())].end_us;
  }

  /// The known end with which `milli` more have become free on a GPU type; nothing when what runs there does not hold
  /// as much. O(running).
  [[nodiscard]] std::optional<std::int64_t> until_freed_on(std::uint32_t gpu_type, MilliGpu milli) const {
    for (const Run& run : runs_) {
      if (run.gpu_type == gpu_type) milli -= run.milli;
      if (milli <= 0) return run.end_us;
    }
    return std::nullopt;
  }

  /// What becomes free up to and with this instant.
  [[nodiscard]] MilliGpu freed_by(std::int64_t instant_us) {
    sum();
    const auto later = std::upper_bound(runs_.begin(), runs_.end(), instant_us,
                                        [](std::int64_t us, const Run& run) { return us < run.end_us; });
    return later == runs_.begin() ? 0 : freed_[static_cast<std::size_t>(later - runs_.begin()) - 1];
  }

 private:
  // Most starts and ends pass without a question.
  void sum() {
    if (summed_) return;
    summed_ = true;
    freed_.resize(runs_.size());
    MilliGpu freed = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) freed_[i] = freed += runs_[i].milli;
  }

  std::vector<Run> runs_;
  std::vector<MilliGpu> freed_;  // with the end of each run
  bool summed_ = true;           // freed_ is up to date
};

}  // namespace gpusched
