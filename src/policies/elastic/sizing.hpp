// SPDX-License-Identifier: Apache-2.0
/// Sizing: the jobs to which an elastic policy gives sizes, and how these sizes come about.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// A job in the system. Sizes are numbers of tasks; a rigid job has one size.
struct SizedJob {
  JobId job = no_job;
  const ElasticCurve* curve = nullptr;  ///< null: rigid
  std::uint32_t phase = 0;              ///< of its curve
  MilliGpu milli_per_task = 0;
  std::uint32_t least = 1, most = 1;
  std::uint32_t held = 0;  ///< 0: it waits
  std::uint32_t size = 0;  ///< what the policy gives it; 0: it waits
  bool pinned = false;     ///< it is listed while it waits too (SizedJobs::pin)

  /// Work a second with that many tasks, relative to the number that it asks for. Precondition: least <= tasks <= most.
  [[nodiscard]] double rate(std::uint32_t tasks) const {
    if (curve == nullptr) return 1;
    return static_cast<double>(curve->rate(tasks, phase)) / static_cast<double>(reference_rate);
  }
  /// GPUs with that many tasks, in thousandths.
  [[nodiscard]] MilliGpu milli(std::uint32_t tasks) const { return tasks * milli_per_task; }
};

/// The jobs that an event may give another size: those that run, and of those that wait the pinned ones and the few
/// that find their least sizes now. Others that wait cost nothing. Kept up to date by events: O(log n) each, and a look
/// at each job listed.
class SizedJobs {
 public:
  /// Notes what happened at this instant. Call it at every decision, before anything else.
  void observe(const View& view);
  /// Another policy ran these jobs until now: looks at all of them, and from now on at all that run.
  void adopt(const View& view);

  /// The jobs listed, in order of their places (QueuePlace).
  [[nodiscard]] std::vector<SizedJob>& listed() { return listed_; }

  /// Lists a job while it waits, or no longer. Precondition: it runs or waits.
  void pin(const View& view, JobId job, bool pinned);

  /// Nobody has a size.
  void reset(const View& view);
  /// Gives jobs that are not pinned their least sizes in order of their places, while they fit `free`, which is less by
  /// them afterwards. Waiting jobs that get one are listed from now on.
  void give_least_sizes(const View& view, MilliGpu& free);
  /// Carries the sizes out (give_sizes()). Jobs that wait afterwards are listed no longer.
  void carry_out(const View& view, Decision& decision);

 private:
  static constexpr MilliGpu nowhere = -1;

  [[nodiscard]] SizedJob sized(const View& view, JobId job) const;
  [[nodiscard]] std::size_t place_of(const View& view, JobId job) const;
  void touch(const View& view, JobId job);
  void list(const View& view, JobId job);
  void wait(const View& view, JobId job);
  [[nodiscard]] QueuePlace next_waiting(const QueuePlace& from, MilliGpu free) const;

  std::vector<SizedJob> listed_;
  std::map<MilliGpu, std::set<QueuePlace>> waiting_;  // not listed, by the GPUs of their least sizes
  std::vector<MilliGpu> waits_for_;                   // by job: where it stands in waiting_
  std::vector<bool> pinned_;                          // by job
  bool all_may_change_ = false;
};

/// Carries the sizes out: stops jobs that are to have another one, then starts in the order of the list. A job that
/// does not find its size on the nodes stays as it was where that is still free, else starts with the most tasks that
/// fit, or waits. A job that was stopped in vain runs on.
void give_sizes(std::span<const SizedJob> jobs, Decision& decision);

/// Rounds of a fixed length, the first when the first job comes.
class SizingRounds {
 public:
  explicit SizingRounds(Time length) : length_(length) {}

  /// True when a round begins now; asks to be called at the next one.
  bool begins(const View& view, Decision& decision);

 private:
  Time length_;
  Time next_ = Time{-end_of_time.us};
};

}  // namespace gpusched
