// SPDX-License-Identifier: Apache-2.0
/// CarbonScaler as a policy: elastic jobs of a cluster get their sizes, slot by slot, by carbon intensity or price.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "src/policies/carbon/carbon_scaler.hpp"
#include "src/policies/carbon/slack.hpp"
#include "src/policies/queues/job_heaps.hpp"
#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

/// The parameters.
struct CarbonScalingOptions {
  Forecast forecast = {};
  Slack slack = {};
  Time slot = whole_seconds(3600);
};

/// Elastic jobs that could use GPUs now, by when they should end.
class DueJobs {
 public:
  /// A job's turn; ties go to the earlier place.
  struct Turn {
    Time latest_end{};
    QueuePlace place = {};
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  /// `milli`: GPUs without which nothing can be given to it.
  void add(MilliGpu milli, const Turn& turn) { turns_[milli].insert(turn); }
  void remove(MilliGpu milli, const Turn& turn) { turns_[milli].erase(turn); }
  /// The first turn behind `last` of a job for which `free` GPUs are enough. O(kinds log n), a kind: of equal `milli`.
  [[nodiscard]] std::optional<Turn> next(const Turn& last, MilliGpu free) const;

 private:
  std::map<MilliGpu, std::set<Turn>> turns_;
};

/// When a job comes it is planned by carbon_scaler_plan() from that instant on, as if it were alone: its speed by size
/// is that of its curve, its watts go with its tasks, a rigid job has its one size. The plan holds from slot to slot
/// while the job has done what it should and the forecast is the truth; else the next slot begins with a new plan. At
/// most `most_slots` reach to the latest end, else they are longer; one that is nearer than a slot is a slot. Who
/// cannot be done by then within whole slots runs at once at the size at which it is fastest. A job without its size,
/// because the cluster is full, gets what is free as soon as its least size fits, the earliest latest end first, then
/// the earliest place; what runs grows when a slot begins. No other job is held back by one that does not fit. A change
/// of size, and a slot without any, is preemption with its costs. Replicas of services start at once.
/// O(shapes + log waiting) an event, and O((slots + replicas added) log slots) a plan.
class CarbonScaling {
 public:
  static constexpr std::int64_t most_slots = 4800;
  /// Less work than this is not planned for: times are whole microseconds, and each change of size rounds one of them.
  static constexpr Time negligible{1000};

  /// Borrows `signal` for its life. `replicas`: JobTable::replicas().
  CarbonScaling(const CarbonScalingOptions& options, const Signal& signal, AnyDurationEstimator estimator,
                std::uint32_t replicas)
      : options_(options), signal_(&signal), estimator_(std::move(estimator)), replicas_(replicas) {}

  [[nodiscard]] static std::string_view name() { return "carbonscaler"; }
  [[nodiscard]] bool clairvoyant() const {
    return options_.forecast.kind != Forecast::Kind::persistence || estimator_.clairvoyant();
  }
  void decide(const OracleView& view, Decision& decision);

 private:
  struct Plan {
    std::vector<std::uint32_t> sizes = {};  // tasks by slot; empty: it has no plan
    std::size_t at = 0;                     // the present slot
    Time slot{};
    double left_us = 0;                // work left when the present slot ends, if all goes as planned
    std::uint32_t wanted = 0;          // tasks now
    Time next = Time::max();           // its turn in turns_; max(): none
    Time latest_end = Time::max();     // max(): not fixed yet
    Time believed{};                   // work of its attempt
    std::uint32_t attempt = no_index;  // which that is; no_index: of none yet
    MilliGpu due_milli = -1;           // where it is in elastic_; -1: nowhere
    bool in_heap = false;              // in rigid_; one that wants nothing any more may stay there
  };

  [[nodiscard]] Plan& plan_of(JobId job) { return plans_[index(job)]; }
  [[nodiscard]] DueJobs::Turn turn_of(const View& view, JobId job) {
    return {plan_of(job).latest_end, view.queue_place(job)};
  }
  void note(const View& view, const Event& event);
  void withdraw(const View& view, JobId job);
  void come(const OracleView& view, JobId job);
  [[nodiscard]] Time left_of(const OracleView& view, JobId job);
  void begin_slot(const OracleView& view, JobId job);
  void plan_anew(const OracleView& view, JobId job, Time left);
  [[nodiscard]] bool plan_slots(const OracleView& view, JobId job, Time left);
  void enter_slot(const View& view, JobId job, double left_us);
  void hurry(const View& view, JobId job);
  void settle(const View& view, Decision& decision, JobId job);
  void list(const View& view, JobId job, MilliGpu milli);
  void unlist(const View& view, JobId job);
  void give(const View& view, Decision& decision);
  void give_elastic(const View& view, Decision& decision, JobId job);
  static bool start_largest(Decision& decision, JobId job, std::uint32_t most, std::uint32_t least);
  static bool resize(Decision& decision, JobId job, std::uint32_t most, std::uint32_t least);
  void set_turn(JobId job, Time time);

  CarbonScalingOptions options_;
  const Signal* signal_;
  AnyDurationEstimator estimator_;
  std::uint32_t replicas_;
  std::vector<Plan> plans_;                         // by job
  std::set<std::pair<Time, std::uint32_t>> turns_;  // when the next slot of a job begins
  JobHeaps<std::int64_t> rigid_{true};              // who waits to run now, by latest end
  DueJobs elastic_;                                 // likewise, and in give() those that grow
  std::vector<JobId> came_;                         // at this instant, to be planned
  std::vector<JobId> growing_;                      // at this instant, in elastic_
  Time awake_at_ = Time::max();                     // the wake that was asked for last
};

/// Errors when the run has no signal.
PolicyInfo carbonscaler_info();

}  // namespace gpusched
