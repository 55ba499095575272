// SPDX-License-Identifier: Apache-2.0
/// ElasticFlow: who is admitted ends by its deadline, with as few GPUs as that takes; the rest goes where it costs
/// least.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/elastic/sizing.hpp"

namespace gpusched {

/// Gu et al., ASPLOS 2023, section 4: a new job is admitted when it and all who were in time before then end by their
/// deadlines, as DeadlinePlan says. At each event every admitted job gets what its promise needs now. A job without a
/// deadline, or not admitted (which the paper drops), gets its least size from what is left, the earliest submitted
/// first. GPUs that are left over go to the job whose next planned size adds the least GPU time, a GPU.
class ElasticFlow {
 public:
  [[nodiscard]] static std::string_view name() { return "elasticflow"; }
  void decide(const OracleView& view, Decision& decision);
  /// See AnyPolicy::adopt().
  void adopt(const View& view);

  /// True when the job had a deadline and was promised that it ends by it.
  [[nodiscard]] bool admitted(JobId job) const { return kinds_[index(job)] == Kind::admitted; }

 private:
  enum class Kind : std::uint8_t { new_here, admitted, best_effort };

  struct Outcome {
    MilliGpu free = 0;       // beside the sizes for now
    std::uint32_t late = 0;  // jobs that cannot end by their deadlines
  };

  void admit_new(const OracleView& view);
  void admit_if_nobody_is_late(const OracleView& view, JobId job);
  [[nodiscard]] std::vector<SizedJob*> admitted_by_deadline(const View& view);
  [[nodiscard]] Outcome promise(const OracleView& view, Time margin = {});

  SizedJobs sized_;                    // those admitted are pinned
  std::vector<JobId> strangers_;       // that ran when it took over
  std::vector<Kind> kinds_;            // by job
  std::vector<std::uint32_t> levels_;  // by job: what it was promised first
};

}  // namespace gpusched
