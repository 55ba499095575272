// SPDX-License-Identifier: Apache-2.0
/// Preemption under Slurm: by the QOS of jobs or by their partitions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// Which running jobs a waiting one may stop, in what order, and when. A right is that of a QOS over another one
/// (PreemptType preempt/qos, sacctmgr's column Preempt) or of a partition over one of a lower PriorityTier
/// (preempt/partition_prio). Of those that it may stop, a job stops the ones of the least priority, of equal ones those
/// on the fewest nodes, of these the last to be submitted; with `youngest_first` the last to start. A job may not be
/// stopped before it has run for its exempt time. One that has a grace runs on for that long once somebody wants its
/// place, and then stops, whatever became of the other one. A stopped job waits again, and what it keeps of its work is
/// up to PreemptionCost, or it is cancelled. A suspended one would keep its GPUs (slurm.conf, PreemptMode: "will not
/// release GRES"), so that only jobs without GPUs are stopped so. Sources: slurm.schedmd.com/preempt.html;
/// find_preemptable_jobs() of the plugin preempt/qos for the order.
class SlurmPreemption {
 public:
  /// Classes are numbers of QOS or of virtual clusters in the JobTable; 0, unknown, has no rights and suffers none.
  struct Rules {
    bool by_qos = true;                                             ///< else by virtual cluster
    std::set<std::pair<std::uint32_t, std::uint32_t>> rights = {};  ///< who may stop whom
    std::map<std::uint32_t, Time> grace = {}, exempt = {};          ///< of those that are stopped; none: 0
    std::set<std::uint32_t> cancelled = {}, suspended = {};         ///< of those, likewise; the others are requeued
    bool youngest_first = false;
  };

  /// Nobody is preempted.
  SlurmPreemption() = default;
  explicit SlurmPreemption(Rules rules);

  [[nodiscard]] bool active() const { return !rules_.rights.empty(); }
  /// The longest chain of rights below the job's class; 0: it has none.
  [[nodiscard]] std::int64_t depth(const View& view, JobId job) const;
  /// True when jobs of that one's class may stop others.
  [[nodiscard]] bool has_rights(const View& view, JobId job) const;

  /// The job starts now.
  void started(const View& view, JobId job);
  /// The job no longer runs.
  void stopped(JobId job) { told_.erase(job); }
  /// Jobs whose grace is over, in order of their ends of it; they are forgotten.
  [[nodiscard]] std::vector<JobId> take_due(Time now);

  /// The running jobs that this waiting one may stop now, those first that stop anyway. Asks for a decision when a time
  /// that exempts another one is over.
  [[nodiscard]] std::vector<JobId> victims_of(const View& view, Decision& decision, JobId job) const;

  /// True when the job is cancelled where others wait again.
  [[nodiscard]] bool cancels(const View& view, JobId job) const {
    return rules_.cancelled.contains(class_of(view, job));
  }

  /// True when none of these jobs has a grace.
  [[nodiscard]] bool all_go_at_once(const View& view, std::span<const JobId> victims) const;
  /// These jobs have to go for another one: those with a grace run on that long, and a decision is asked for at its
  /// end.
  void tell(const View& view, Decision& decision, std::span<const JobId> victims);

 private:
  [[nodiscard]] std::uint32_t class_of(const View& view, JobId job) const {
    return rules_.by_qos ? view.qos(job) : view.vc(job);
  }
  [[nodiscard]] bool may_stop(const View& view, JobId job, JobId other) const;
  [[nodiscard]] Time exempt_until(const View& view, JobId job) const;
  [[nodiscard]] Time grace_of(const View& view, JobId job) const;
  [[nodiscard]] std::int64_t standing(const View& view, JobId job) const;

  Rules rules_;
  std::map<std::uint32_t, std::int64_t> depth_;  // of a class: the longest chain of rights below it
  std::vector<Time> start_;                      // of the present run, by job
  std::map<JobId, Time> told_;                   // running jobs that stop then
};

/// The rights of "A>B" words, "A may stop B", by number of their names; `names` are those of QOS or virtual clusters.
/// Errors: a word of another form, a name that no job has, or a circle.
Result<std::set<std::pair<std::uint32_t, std::uint32_t>>> preemption_rights(std::span<const std::string> words,
                                                                            const NameTable& names);
/// The classes of those names. Error: a name that no job has.
Result<std::set<std::uint32_t>> preemption_classes(std::span<const std::string> words, const NameTable& names);
/// The times of "A=SECONDS" words. Errors: a word of another form, a name that no job has.
Result<std::map<std::uint32_t, Time>> preemption_times(std::span<const std::string> words, const NameTable& names);

}  // namespace gpusched
