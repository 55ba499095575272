// SPDX-License-Identifier: Apache-2.0
/// The start rules as a policy: jobs of a cluster start, and are suspended, by carbon intensity or price.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "src/policies/carbon/slack.hpp"
#include "src/policies/carbon/start_rules.hpp"
#include "src/policies/queues/job_heaps.hpp"
#include "src/policies/seam/duration_estimator.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The parameters.
struct CarbonStartOptions {
  StartRule rule = StartRule::carbon_time;
  Forecast forecast = {};
  Slack slack = {};
  Time step = whole_seconds(3600), slot = whole_seconds(5);
  bool skip = true;       ///< a job that does not fit at its start holds back no other
  MilliGpu reserved = 0;  ///< a job starts before its time while jobs that did so hold no more with it
};

/// A job is planned when it comes to wait, by its rule (planned_runs), and may wait as long as it can still end by its
/// latest end: that is fixed when it first comes, so that lost work and retries eat up the slack. It starts when a
/// stretch of its plan begins, or as soon after as it fits: first who was to start first, then by queue place. At the
/// end of a stretch that is not the last it is preempted; what it did not do in its stretches, for want of room or by
/// the costs of preemption, it does from the last one on. Replicas of services start at once.
/// O(shapes + log waiting) an event, and a plan for each job that comes.
class CarbonStarts {
 public:
  /// Borrows `signal` for its life. `replicas`: JobTable::replicas().
  CarbonStarts(const CarbonStartOptions& options, const Signal& signal, AnyDurationEstimator estimator,
               std::uint32_t replicas)
      : options_(options),
        signal_(&signal),
        estimator_(std::move(estimator)),
        replicas_(replicas),
        due_(options.skip) {}

  [[nodiscard]] std::string_view name() const { return "carbon"; }
  [[nodiscard]] bool clairvoyant() const;
  void decide(const OracleView& view, Decision& decision);

 private:
  struct Plan {
    std::vector<RunStretch> left;   ///< the first is the present one or the next; empty: none is planned
    Time next = Time::max();        ///< its turn in turns_; max(): none
    Time latest_end = Time::max();  ///< max(): not fixed yet
    MilliGpu reserved = 0;          ///< what it holds of the reserved GPUs
    bool waits_for_room = false;    ///< in due_
    bool may_be_early = false;      ///< in early_
  };

  [[nodiscard]] Plan& plan_of(JobId job) { return plans_[index(job)]; }
  void note(const View& view, const Event& event);
  void forget(JobId job);
  void withdraw(const View& view, JobId job);
  void plan(const OracleView& view, JobId job);
  void set_turn(JobId job, Time time);
  void take_turn(const View& view, Decision& decision, JobId job);
  void begin_stretch(const View& view, JobId job);
  void end_stretch(const View& view, Decision& decision, JobId job);
  void start_early(const View& view, Decision& decision);
  void start_due(const View& view, Decision& decision);
  [[nodiscard]] bool fits_reserved(const View& view, JobId job) const;
  void note_start(const View& view, JobId job);

  CarbonStartOptions options_;
  const Signal* signal_;
  AnyDurationEstimator estimator_;
  std::uint32_t replicas_;
  std::vector<Plan> plans_;                         // by job
  std::set<std::pair<Time, std::uint32_t>> turns_;  // when a stretch of a job begins or ends
  JobHeaps<std::int64_t> due_;                      // who wants to run now, by the beginning of the stretch
  JobHeaps<std::int64_t> early_{true};  // who waits for their time, by queue place alone; with reserved GPUs
  MilliGpu reserved_held_ = 0;
  std::vector<JobId> came_;      // at this instant, to be planned
  Time awake_at_ = Time::max();  // the wake that was asked for last
};

/// Errors when the run has no signal that the rule reads.
PolicyInfo carbon_info();

}  // namespace gpusched
