// SPDX-License-Identifier: Apache-2.0
/// SlurmLog: the priority terms of each job of a slurm run at its start.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/policies/fair/slurm.hpp"
#include "src/policies/seam/policy_log.hpp"

namespace gpusched {

/// A job's terms at the instant at which it started.
struct SlurmStart {
  JobId job = no_job;
  Time time{};
  SlurmTerms terms;
};

/// Watches a run and notes the terms of every start. It keeps the usage of owners itself, from the same events as the
/// policy, and so computes the same terms.
class SlurmLog final : public PolicyLog {
 public:
  /// `policy`: the run's, before the run; `jobs` is borrowed.
  SlurmLog(Slurm policy, const JobTable& jobs) : policy_(std::move(policy)), jobs_(&jobs) {}

  void observe(const View& view, std::span<const Event> events) override;
  [[nodiscard]] std::string file_name() const override { return "terms.csv"; }
  /// A row a start, in order of time, and of starting at one instant.
  [[nodiscard]] std::string text() const override;

 private:
  Slurm policy_;
  const JobTable* jobs_;
  std::vector<SlurmStart> starts_;
};

}  // namespace gpusched
