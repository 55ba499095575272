// SPDX-License-Identifier: Apache-2.0
/// Slurm's multifactor priority.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "src/policies/fair/decaying_usage.hpp"
#include "src/policies/fair/slurm_preemption.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/queues/ranked_classes.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The terms of a job's priority, each its factor in [0, 1] times its weight, rounded.
struct SlurmTerms {
  std::int64_t age = 0;
  std::int64_t fair_share = 0;
  std::int64_t size = 0;
  std::int64_t partition = 0;
  std::int64_t qos = 0;

  [[nodiscard]] std::int64_t priority() const { return age + fair_share + size + partition + qos; }
  /// One line in the manner of `sprio`.
  [[nodiscard]] std::string to_string() const {
    return "priority " + std::to_string(priority()) + " = age " + std::to_string(age) + " + fair-share " +
           std::to_string(fair_share) + " + size " + std::to_string(size) + " + partition " +
           std::to_string(partition) + " + qos " + std::to_string(qos);
  }
};

/// At every event waiting jobs start in order of priority = the weighted sum of five factors; those of partitions of
/// higher tiers before all others; and before these, who may stop others before whom it may stop
/// (sort_job_queue2() of slurmctld, there pair by pair, here by the longest chain of rights); ties go to the earliest
/// job. A job that does not fit leaves the rest of its
/// partition (virtual cluster) pending, as in Slurm's main scheduling loop, or is passed over with `skip`. Age: time
/// since submission over max_age_s, at most 1. Fair-share: 2^-(U/S), U the owner's part of all GPU time used so far
/// with its half-life and S its part of the weights of all owners in the trace. Size: the part of the cluster's GPUs
/// that the job asks for. Partition: as given. QoS: the job's priority over the greatest of the trace, 0 for negative
/// ones. A job that does not fit may stop those over which its QOS or partition has a right (SlurmPreemption): of these
/// in their order as many as it takes, then, where these are several, as many as it takes with the last of them first
/// (preempt_reorder_count 1); who need not go stays.
class Slurm {
 public:
  struct Options {
    OwnerColumn column = OwnerColumn::user;
    OwnerWeights shares = {};
    std::set<std::uint32_t> owners = {};  ///< that have jobs, who divide the shares between them
    double weight_age = 1000;
    double weight_fair_share = 10000;
    double weight_size = 1000;
    double weight_partition = 1000;
    double weight_qos = 2000;
    double max_age_s = 604'800;  ///< the age factor is 1 from here on
    double half_life_s = 604'800;
    std::vector<double> partition_factors;  ///< of virtual clusters in order of their first job; else 1
    std::vector<double> partition_tiers;    ///< likewise, whole numbers
    std::int32_t most_qos = 0;              ///< the greatest priority of the trace's jobs
    bool skip = false;                      ///< pass over jobs that do not fit
    bool requeues = true;                   ///< jobs whose node fails wait again; false: they are cancelled
    SlurmPreemption::Rules preemption = {};
  };

  /// Who is told of what a decision does.
  struct Hooks {
    std::function<void(JobId)> started = [](JobId) {};
    std::function<void(JobId)> preempted = [](JobId) {};
  };

  explicit Slurm(Options options)
      : options_(std::move(options)), preemption_(options_.preemption), all_(options_.half_life_s) {
    tiers_ = options_.partition_tiers;
    tiers_.push_back(1);  // of the others
    std::sort(tiers_.begin(), tiers_.end());
    tiers_.erase(std::unique(tiers_.begin(), tiers_.end()), tiers_.end());
    add_shares();
  }

  [[nodiscard]] std::string_view name() const { return "slurm"; }

  void decide(const View& view, Decision& decision) {
    const Hooks nobody;
    if (!preemption_.active()) decision.keep_order();
    decide(view, decision, nobody);
    wait_again(view, decision, nobody);
  }
  /// Decides but for jobs that go at the end of their grace: they rest, so that those for whom they went find their
  /// places free.
  void decide(const View& view, Decision& decision, const Hooks& hooks);
  /// They wait again, and may have room elsewhere.
  void wait_again(const View& view, Decision& decision, const Hooks& hooks);

  /// The waiting jobs of the highest priorities, in order, at most `most` of them. O(waiting).
  [[nodiscard]] std::vector<JobId> waiting_in_order(const View& view, std::size_t most);
  /// The decision started this waiting job without being asked to.
  void started(const View& view, JobId job);
  /// The decision preempted this running job without being asked to: it waits again, or is cancelled.
  void preempted(const View& view, Decision& decision, JobId job);
  /// Owners, and what they used; see AnyPolicy.
  void inherit(const Slurm& before, const View& view);
  /// Who may preempt whom.
  [[nodiscard]] SlurmPreemption& preemption() { return preemption_; }

  /// Updates the usage of the event's owner; for an observer that makes no decisions (SlurmLog).
  void account(const View& view, const Event& event);

  /// The terms of the job's priority at view.now().
  [[nodiscard]] SlurmTerms terms(const View& view, JobId job) const;

  /// 2^-(U/S); 1 when no owner used anything.
  [[nodiscard]] double fair_share(std::uint32_t owner, Time now) const;

 private:
  struct ShareNow {
    Time time = Time::max();
    double factor = 1;
  };

  struct ByPriority;  // the order of waiting_
  struct Party {
    std::uint32_t owner = 0;
    std::uint32_t partition = 0;
  };

  void add_shares();
  void take_in(const View& view, Decision& decision);
  void push_all(const View& view, std::vector<JobId>& jobs);
  void stop_those_due(const View& view, Decision& decision, const Hooks& hooks);
  void fill(const View& view, Decision& decision, const Hooks& hooks);
  void start_all(const View& view, Decision& decision, const Hooks& hooks);
  bool start_or_preempt(const View& view, Decision& decision, JobId job, const Hooks& hooks);
  [[nodiscard]] std::uint32_t blocked_with(const RankedClasses::Class& jobs) const;
  [[nodiscard]] std::int64_t standing_now(const View& view, JobId job);
  [[nodiscard]] std::int64_t rank_term(const View& view, JobId job) const;
  [[nodiscard]] SlurmTerms terms(const View& view, JobId job, double fair_share_factor) const;
  double fair_share_now(std::uint32_t owner, Time now);
  void hold(const View& view, JobId job, std::int64_t sign);
  void note_start(const View& view, JobId job);
  void note_stop(const View& view, JobId job);
  bool stop(const View& view, Decision& decision, JobId job);
  // Of virtual clusters in order of their first job; 1 of others.
  [[nodiscard]] static double of_partition(const std::vector<double>& values, std::uint32_t vc);
  [[nodiscard]] std::uint32_t party_of(const View& view, JobId job);
  [[nodiscard]] double part(std::uint32_t owner) const;
  [[nodiscard]] std::int64_t age_term(const View& view, JobId job) const;
  [[nodiscard]] double age_factor(const View& view, JobId job) const;
  [[nodiscard]] double qos_factor(std::int32_t priority) const;

  Options options_;
  SlurmPreemption preemption_;
  std::vector<double> tiers_;   // that there are, ascending
  std::vector<JobId> stopped_;  // by this decision, not yet waiting again
  bool has_stopped_ = false;    // a job for another one, in this pass over those that wait
  std::vector<JobId> resting_;  // since the end of their grace
  RankedClasses waiting_;
  std::vector<DecayingUsage> used_;   // [owner]
  std::vector<ShareNow> shares_now_;  // [owner]
  std::int64_t share_sum_milli_ = 1;  // of all owners
  DecayingUsage all_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t, std::uint32_t>, std::uint32_t>
      party_numbers_;
  std::vector<Party> parties_;
};

}  // namespace gpusched
