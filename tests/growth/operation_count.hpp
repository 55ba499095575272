// SPDX-License-Identifier: Apache-2.0
/// What a run costs, counted instead of timed: the same number on every machine and under every load.
#pragma once

#include <cstdint>

namespace gpusched::test {

/// Basic blocks of instrumented code that this process entered so far, and words of memory that it copied, moved or
/// filled. Instrumented are the policies, the engine's headers and the tests of this folder (CMakeLists.txt); the C++
/// library's templates among them, its compiled part not.
[[nodiscard]] std::uint64_t operations();

}  // namespace gpusched::test
