// SPDX-License-Identifier: Apache-2.0
/// Units and limits that every form of cluster file shares.
#pragma once

#include <cstdint>

namespace gpusched {

inline constexpr std::int64_t milli_per_core = 1000;
inline constexpr std::int64_t mib_per_gib = 1024;
inline constexpr std::int64_t most_gpus_of_a_node = 1'000'000;

}  // namespace gpusched
