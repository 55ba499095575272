// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_runs.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace gpusched::test {
namespace {

const char* const wanted_runs = std::getenv("GPUSCHED_RANDOM_RUNS");

// rapidcheck would draw its seed from the clock.
bool tell_rapidcheck() {
  if (std::getenv("RC_PARAMS") != nullptr) return true;
  const std::string runs = wanted_runs == nullptr ? "" : std::string(" max_success=") + wanted_runs;
  ::setenv("RC_PARAMS", ("seed=2026" + runs).c_str(), 1);
  return false;
}
const bool told = tell_rapidcheck();

}  // namespace

std::uint64_t random_runs(std::uint64_t usual) {
  return wanted_runs == nullptr ? usual : std::max<std::uint64_t>(usual, std::strtoull(wanted_runs, nullptr, 10));
}

bool rapidcheck_is_told() { return told; }

}  // namespace gpusched::test
