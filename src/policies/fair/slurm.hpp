// SPDX-License-Identifier: Apache-2.0
/// Slurm's multifactor priority.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/queues/class_queues.hpp"
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

/// An owner's GPU time with a half-life: what was used one half-life ago counts half.
class DecayingUsage {
 public:
  explicit DecayingUsage(double half_life_s) : half_life_s_(half_life_s) {}

  /// GPUs held from now on.
  void hold(Time now, MilliGpu change) {
    settle(now);
    held_ += change;
  }
  /// GPU-seconds used until `now`, decayed.
  [[nodiscard]] double at(Time now) const {
    const double dt = to_seconds(now - settled_);
    const double kept = std::exp2(-dt / half_life_s_);
    const double gpus = static_cast<double>(held_) / static_cast<double>(whole_gpu);
    return used_ * kept + gpus * half_life_s_ / ln2 * (1 - kept);
  }

 private:
  static constexpr double ln2 = 0.693147180559945309;
  void settle(Time now) {
    used_ = at(now);
    settled_ = now;
  }

  double half_life_s_;
  double used_ = 0;
  Time settled_{};
  MilliGpu held_ = 0;
};

/// At every event waiting jobs start in order of priority = the weighted sum of five factors; ties go to the earliest
/// job. Age: time since submission over max_age_s, at most 1. Fair-share: 2^-(U/S), U the owner's part of all GPU time
/// used so far with its half-life and S its part of the weights of all owners in the trace. Size: the part of the
/// cluster's GPUs that the job asks for. Partition: as given. QoS: where the job's priority lies between the trace's
/// least (0) and greatest (1); 0 when all are equal.
class Slurm {
 public:
  struct Options {
    OwnerColumn column = OwnerColumn::user;
    OwnerWeights shares = {};
    std::int64_t share_sum_milli = 1000;  ///< of all owners that have jobs
    double weight_age = 1000;
    double weight_fair_share = 10000;
    double weight_size = 1000;
    double weight_partition = 1000;
    double weight_qos = 2000;
    double max_age_s = 604'800;  ///< the age factor is 1 from here on
    double half_life_s = 604'800;
    std::vector<double> partition_factors;  ///< of virtual clusters in order of their first job; else 1
    std::int32_t least_qos = 0;             ///< priorities of the trace's jobs map to [0, 1]
    std::int32_t most_qos = 0;
    bool skip = true;
  };

  explicit Slurm(Options options) : options_(std::move(options)), all_(options_.half_life_s) {}

  [[nodiscard]] std::string_view name() const { return "slurm"; }

  void decide(const View& view, Decision& decision) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) hold(view, event.job, -1);
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
        waiting_.push(view, event.job, class_of(view, event.job));
      }
    }
    // Within a class all factors but age are equal, and the first has waited longest.
    const auto score = [&](const ClassQueues::Class& jobs) {
      const std::uint32_t owner = owner_of(options_.column, view, jobs.first());
      return -terms(view, jobs.first(), fair_share_now(owner, view.now())).priority();
    };
    const auto may_fit = [&](std::uint32_t queue, std::uint32_t shape) {
      return !options_.skip || view.cluster().may_fit(view.shape_of_id(shape), queue);
    };
    waiting_.start_best(options_.skip, may_fit, score, [&](const ClassQueues::Class& jobs) {
      if (decision.start(jobs.first()) != Verdict::ok) return Attempt::no_room;
      hold(view, jobs.first(), +1);
      return Attempt::started;
    });
  }

  /// Notes what an event means for the usage of its owner; for an object that only watches (SlurmLog).
  void account(const View& view, const Event& event) {
    if (event.kind == EventKind::start) hold(view, event.job, +1);
    const bool stops = event.kind == EventKind::finish || event.kind == EventKind::retry;
    if (stops || event.kind == EventKind::preempt) hold(view, event.job, -1);
  }

  /// Why a job stands where it stands.
  [[nodiscard]] SlurmTerms terms(const View& view, JobId job) const {
    return terms(view, job, fair_share(owner_of(options_.column, view, job), view.now()));
  }

  /// 2^-(U/S); 1 when nobody used anything.
  [[nodiscard]] double fair_share(std::uint32_t owner, Time now) const {
    const double all = all_.at(now);
    if (all <= 0 || owner >= used_.size()) return 1;
    const double part =
        static_cast<double>(options_.shares.milli(owner)) / static_cast<double>(options_.share_sum_milli);
    return std::exp2(-used_[owner].at(now) / all / part);
  }

 private:
  [[nodiscard]] SlurmTerms terms(const View& view, JobId job, double fair_share_factor) const {
    const auto term = [](double weight, double factor) {
      return static_cast<std::int64_t>(std::llround(weight * factor));
    };
    const double age = std::min(1.0, to_seconds(view.now() - view.submit(job)) / options_.max_age_s);
    const double total = static_cast<double>(view.cluster().total_gpus()) * static_cast<double>(whole_gpu);
    const double size = total > 0 ? static_cast<double>(view.shape(job).gpu_milli()) / total : 0;
    return {.age = term(options_.weight_age, age),
            .fair_share = term(options_.weight_fair_share, fair_share_factor),
            .size = term(options_.weight_size, size),
            .partition = term(options_.weight_partition, partition_factor(view.vc(job))),
            .qos = term(options_.weight_qos, qos_factor(view.priority(job)))};
  }

  // The same at one instant, whatever starts meanwhile; an owner has many classes.
  double fair_share_now(std::uint32_t owner, Time now) {
    if (owner >= shares_now_.size()) shares_now_.resize(owner + 1);
    ShareNow& share = shares_now_[owner];
    if (share.time != now) share = {now, fair_share(owner, now)};
    return share.factor;
  }

  void hold(const View& view, JobId job, std::int64_t sign) {
    const std::uint32_t owner = owner_of(options_.column, view, job);
    if (owner >= used_.size()) used_.resize(owner + 1, DecayingUsage(options_.half_life_s));
    const MilliGpu change = sign * view.shape(job).gpu_milli();
    used_[owner].hold(view.now(), change);
    all_.hold(view.now(), change);
  }

  // Jobs of one owner whose partitions have factors of their own are told apart.
  [[nodiscard]] std::uint32_t class_of(const View& view, JobId job) const {
    const std::uint32_t owner = owner_of(options_.column, view, job);
    const bool partitions_differ = options_.column == OwnerColumn::user && !options_.partition_factors.empty();
    return partitions_differ ? view.vc(job) * view.users().size() + owner : owner;
  }

  [[nodiscard]] double partition_factor(std::uint32_t vc) const {
    return vc >= 1 && vc - 1 < options_.partition_factors.size() ? options_.partition_factors[vc - 1] : 1;
  }
  [[nodiscard]] double qos_factor(std::int32_t priority) const {
    if (options_.most_qos == options_.least_qos) return 0;
    return (static_cast<double>(priority) - options_.least_qos) /
           (static_cast<double>(options_.most_qos) - options_.least_qos);
  }

  struct ShareNow {
    Time time = Time::max();
    double factor = 1;
  };

  Options options_;
  ClassQueues waiting_;
  std::vector<DecayingUsage> used_;   // [owner]
  std::vector<ShareNow> shares_now_;  // [owner]
  DecayingUsage all_;
};

PolicyInfo slurm_info();

}  // namespace gpusched
