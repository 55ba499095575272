// SPDX-License-Identifier: Apache-2.0
/// SlurmLog: why each job of a slurm run started when it did.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "src/policies/fair/slurm.hpp"

namespace gpusched {

/// A job's terms at the instant at which it started.
struct SlurmStart {
  JobId job = no_job;
  Time time{};
  SlurmTerms terms;
};

/// Watches a run and notes the terms of every start. It keeps the usage of owners itself, from the same events as the
/// policy, so that it gives what the policy saw. An observer for simulate().
class SlurmLog {
 public:
  /// The run's policy, before the run.
  explicit SlurmLog(Slurm policy) : policy_(std::move(policy)) {}

  void observe(const View& view, std::span<const Event> events) {
    for (const Event& event : events) {
      if (event.kind == EventKind::start) starts_.push_back({event.job, view.now(), policy_.terms(view, event.job)});
      policy_.account(view, event);
    }
  }

  /// In order of time, and of starting at one instant.
  [[nodiscard]] std::vector<SlurmStart> take() && { return std::move(starts_); }

 private:
  Slurm policy_;
  std::vector<SlurmStart> starts_;
};

/// The policy that `spec` describes (`slurm{...}`), for a log. Errors as the registry's.
Result<Slurm> make_slurm(const PolicySpec& spec, const PolicyContext& context);

}  // namespace gpusched
