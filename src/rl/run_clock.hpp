// SPDX-License-Identifier: Apache-2.0
/// Clocks of a training run, whatever the method.
#pragma once

#include <chrono>

namespace gpusched {

using RunClock = std::chrono::steady_clock;

inline double seconds_since(RunClock::time_point begin) {
  return std::chrono::duration<double>(RunClock::now() - begin).count();
}

/// Seconds since 1970, for event files.
inline double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace gpusched
