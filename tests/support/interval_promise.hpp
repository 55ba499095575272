// SPDX-License-Identifier: Apache-2.0
// What `evaluate` promises of its intervals, in one place for the tests of series and of logs:
//
// - With fewer than least_values windows there is none.
// - In a cell of trials (one kind of difference, one number of windows) of which at least a quarter give an interval,
//   92 to 97 % of those hold the truth. More is allowed up to 98.5 %, where dependence or a long tail was feared that
//   is not there.
// - Where fewer than a quarter do, these are the ones whose windows look lighter or less dependent than they are. They
//   hold less often, so there are few of them: at most 2.5 % of the trials give an interval that does not hold.
//
// Each up to three standard errors of as many trials.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/base/statistics.hpp"

namespace gpusched::test {

// Trials of one kind with one number of windows.
struct IntervalCell {
  std::size_t windows = 0;
  std::size_t trials = 0;
  std::size_t given = 0, held = 0;
  std::size_t different = 0;  // independent stretches that trials come from; 0: every trial is one

  void add(const ConfidenceInterval& interval, double truth) {
    ++given;
    held += interval.low <= truth && truth <= interval.high ? 1 : 0;
  }
  [[nodiscard]] double given_share() const { return static_cast<double>(given) / static_cast<double>(trials); }
  // Of those given.
  [[nodiscard]] double hold_share() const {
    return given == 0 ? 0 : static_cast<double>(held) / static_cast<double>(given);
  }
  // Three standard errors of hold_share().
  [[nodiscard]] double noise(double share = 0.95) const {
    const double count = different > 0
                             ? std::min(static_cast<double>(given), given_share() * static_cast<double>(different))
                             : static_cast<double>(given);
    return count > 0 ? 3 * std::sqrt(share * (1 - share) / count) : 1;
  }
};

inline void expect_promise(const std::string& what, const IntervalCell& cell) {
  SCOPED_TRACE(what + ", " + std::to_string(cell.windows) + " windows");
  if (cell.windows < least_values) {
    EXPECT_EQ(cell.given, 0u);
  } else if (cell.given_share() >= 0.25) {
    EXPECT_GE(cell.hold_share(), 0.92 - cell.noise());
    // Of few stretches all may hold.
    EXPECT_LE(cell.hold_share(), cell.different > 0 ? 1 : 0.985 + cell.noise(0.985));
  } else {
    const auto trials = static_cast<double>(cell.trials);
    const double wrong = static_cast<double>(cell.given - cell.held) / trials;
    EXPECT_LE(wrong, 0.025 + 3 * std::sqrt(0.025 * 0.975 / trials));
  }
}

// "| normal differences | none | none | 97 %: 95.4 % | 98 %: 95.1 % |": the share of trials with an interval, and of
// these the share that hold.
inline void print_row(const std::string& what, const std::vector<IntervalCell>& row) {
  std::string text = "| " + what + " |";
  for (const IntervalCell& cell : row) {
    char number[48];
    std::snprintf(number, sizeof number, " %.0f %%: %.1f %% |", 100 * cell.given_share(), 100 * cell.hold_share());
    text += cell.given == 0 ? " none |" : number;
  }
  std::printf("%s\n", text.c_str());
}

inline std::uint64_t interval_setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
inline std::uint64_t interval_seed(std::uint64_t otherwise) {
  return interval_setting("GPUSCHED_INTERVAL_SEED", otherwise);
}
inline std::size_t interval_trials(std::size_t otherwise) {
  return interval_setting("GPUSCHED_INTERVAL_TRIALS", otherwise);
}
// Whether every cell is run, as scripts/deep_test.sh and who sets the trials want it, or those that tell most.
inline bool every_interval_cell() {
  return std::getenv("GPUSCHED_INTERVAL_TRIALS") != nullptr || std::getenv("GPUSCHED_RANDOM_RUNS") != nullptr;
}

}  // namespace gpusched::test
