// SPDX-License-Identifier: Apache-2.0
/// MeasureWindow: the jobs of a run that are measured.
#pragma once

#include <cstdint>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// The jobs that are measured, a range of ids in order of submission: what precedes it warms the cluster up, what
/// follows keeps it loaded. The measured span begins with the submission of the first of them, whether or not it waits
/// for others then, and ends with the last end of any of them.
struct MeasureWindow {
  std::uint32_t first = 0;         ///< id of the first measured job
  std::uint32_t count = no_index;  ///< no_index: all that follow

  /// One past the last measured job of a trace of `jobs`.
  [[nodiscard]] std::uint32_t end(std::uint32_t jobs) const {
    return first >= jobs || count > jobs - first ? jobs : first + count;
  }
  /// True when every job of a trace of `jobs` is measured.
  [[nodiscard]] bool whole(std::uint32_t jobs) const { return first == 0 && end(jobs) == jobs; }
};

}  // namespace gpusched
