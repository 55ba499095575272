// SPDX-License-Identifier: Apache-2.0
/// What runs of a sweep read and how it fits together, tried before the first of them begins.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sweep/sweep_file.hpp"

namespace gpusched {

/// Tries the preparation of runs: of equal conditions, and of equal parts of a trace, that of the first alone.
class SweepTrial {
 public:
  SweepTrial();

  /// Notes run number `number` where it is the first of its kind. Error: conditions that exclude or lack each other.
  Result<void> note(const SweepPoint& point, const Json& values, std::uint64_t number);

  /// Prepares the runs that were noted, as a replay does. A trace that cannot be read, or does not fit the cluster,
  /// stays the matter of its runs. Errors: a file of conditions that cannot be read or does not fit, a window beyond
  /// the trace, nothing left to measure; they begin with the name of the run.
  [[nodiscard]] Result<void> carry_out(const Sweep& sweep, const PolicyRegistry& registry) const;

 private:
  struct Noted {
    std::uint64_t number;
    bool conditions;  // else its part of the trace alone
  };
  struct OfInput {
    std::string input;  // what says which jobs are run where
    std::vector<Noted> runs;
  };
  // Those that are not the usual ones, as text; `costs`: of preemption too.
  [[nodiscard]] std::string conditions_of(const Json& values, bool costs) const;

  Json defaults_;                                       // of sweep_point_json()
  std::set<std::string> paths_;                         // of conditions
  std::set<std::string> options_, conditions_, parts_;  // seen ones
  std::vector<OfInput> inputs_;
};

}  // namespace gpusched
