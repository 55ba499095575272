// SPDX-License-Identifier: Apache-2.0
/// LimitRule: how much the jobs of a user, an account, a queue or a QOS may hold at once, as schedulers in production
/// limit them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Whose jobs share a limit.
enum class LimitOwner : std::uint8_t {
  all,      ///< all jobs that the rule names, together
  user,     ///< the jobs of each user
  account,  ///< of each account (JobRecord::group)
  vc,       ///< of each virtual cluster, queue or partition
  qos,      ///< of each quality of service
  array,    ///< of each job array: ids 12_0, 12_1, ... are tasks of array 12
  job,      ///< each job by itself
};

/// What jobs hold, or may hold at most.
struct LimitAmounts {
  MilliGpu gpu_milli = unlimited;                                              ///< thousandths of a GPU
  std::int64_t cpu_milli = unlimited;                                          ///< thousandths of a core
  std::int64_t memory_mib = unlimited;                                         ///< MiB
  std::int64_t jobs = unlimited;                                               ///< running
  friend bool operator==(const LimitAmounts&, const LimitAmounts&) = default;  ///< field by field
};

/// A limit. All rules that name a job hold for it. A job without the name that `per` asks for has no such limit.
struct LimitRule {
  std::string name = {};                     ///< for reports, as QOSMaxJobsPerUserLimit; may be empty
  LimitOwner per = LimitOwner::all;          ///< whose jobs share it
  std::vector<std::string> users = {};       ///< the jobs of these alone; empty: of all
  std::vector<std::string> accounts = {};    ///< likewise
  std::vector<std::string> vcs = {};         ///< likewise
  std::vector<std::string> qos = {};         ///< likewise
  std::vector<std::string> arrays = {};      ///< likewise
  std::vector<std::string> or_vcs = {};      ///< the jobs of these too, whoever those named are
  std::vector<std::string> except_vcs = {};  ///< the jobs of these are left out
  std::vector<std::string> except_qos = {};  ///< likewise
  /// The jobs of these count, and it does not hold them back: another limit stands in for it.
  std::vector<std::string> unbound_vcs = {};
  /// A job of another account, or QOS, is refused; empty: none is. One that names no account or QOS is not.
  /// \{
  std::vector<std::string> allow_accounts = {};
  std::vector<std::string> allow_qos = {};
  /// \}
  LimitAmounts most = {};              ///< at once; of LimitOwner::job: of one job
  std::int64_t submitted = unlimited;  ///< jobs that wait or run; a job beyond it is refused
  Time wall = Time::max();             ///< of LimitOwner::job: a job that requests more time is refused
  friend bool operator==(const LimitRule&, const LimitRule&) = default;  ///< field by field

  /// True when jobs may wait for it; what a job exceeds by itself refuses it.
  [[nodiscard]] bool holds_jobs_back() const { return per != LimitOwner::job && !(most == LimitAmounts{}); }
};

}  // namespace gpusched
