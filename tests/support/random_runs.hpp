// SPDX-License-Identifier: Apache-2.0
/// How many cases random tests draw. Seeds are fixed: a commit is given the same cases every time.
#pragma once

#include <cstdint>

namespace gpusched::test {

/// As many as `usual`, or GPUSCHED_RANDOM_RUNS where that is more (scripts/deep_test.sh: 2,000 of every random test).
std::uint64_t random_runs(std::uint64_t usual);

/// True when RC_PARAMS ("seed=7 max_success=100000") says what rapidcheck draws. Where it does not, seed and number of
/// cases are set before the first test.
bool rapidcheck_is_told();

}  // namespace gpusched::test
