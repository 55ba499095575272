// SPDX-License-Identifier: Apache-2.0
/// What each job was promised of the GPU types by the last allocation, and what it received since.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// A job on a GPU type.
struct TimeOnType {
  double throughput = 0;  ///< of the job there; 0: it cannot run there
  double allocation = 0;  ///< the fraction of its time that it should run there
  double received_s = 0;  ///< since the last allocation, and half a round to begin with
  double deficit_s = 0;   ///< what the allocations before promised beyond what was received
};

/// The accounts of Gavel's simulator (scheduler.py of the artifact), from which rounds take their order.
class TimeAccounts {
 public:
  TimeAccounts() = default;
  /// Of so many GPU types, in rounds of `round_s`.
  TimeAccounts(std::size_t gpu_types, double round_s) : initial_s_(round_s / 2), given_s_(gpu_types, 0.0) {}

  /// A job came, with its throughputs by GPU type.
  void enter(JobId job, std::span<const double> throughputs) {
    if (index(job) >= jobs_.size()) jobs_.resize(index(job) + 1);
    std::vector<TimeOnType>& types = jobs_[index(job)];
    types.clear();
    for (const double throughput : throughputs) types.push_back({.throughput = throughput, .received_s = initial_s_});
  }
  /// It ended, or was withdrawn; what it received stays given.
  void leave(JobId job) { jobs_[index(job)].clear(); }

  /// By GPU type. Precondition: the job is here.
  [[nodiscard]] std::span<const TimeOnType> of(JobId job) const { return jobs_[index(job)]; }
  /// Time of that GPU type which all jobs received since the last allocation.
  [[nodiscard]] double given_s(std::size_t gpu_type) const { return given_s_[gpu_type]; }

  /// The job ran there for so long.
  void receive(JobId job, std::size_t gpu_type, double seconds) {
    jobs_[index(job)][gpu_type].received_s += seconds;
    given_s_[gpu_type] += seconds;
  }

  /// Before an allocation, `passed_s` after the last one: deficits take over what that promised and did not keep, and
  /// all accounts begin anew. `jobs`: those that are here.
  void restart(double passed_s, std::span<const JobId> jobs) {
    given_s_.assign(given_s_.size(), 0.0);
    for (const JobId job : jobs) {
      std::vector<TimeOnType>& types = jobs_[index(job)];
      for (std::size_t type = 0; type < types.size(); ++type) {
        types[type].deficit_s += types[type].allocation * passed_s - (types[type].received_s - initial_s_);
        types[type].received_s = initial_s_;
        given_s_[type] += initial_s_;
      }
    }
  }

  /// What the allocation gives the job, by GPU type.
  void promise(JobId job, std::span<const double> fractions) {
    for (std::size_t type = 0; type < fractions.size(); ++type) jobs_[index(job)][type].allocation = fractions[type];
  }

 private:
  double initial_s_ = 0;
  std::vector<std::vector<TimeOnType>> jobs_;  // by JobId, by GPU type
  std::vector<double> given_s_;
};

}  // namespace gpusched
