// SPDX-License-Identifier: Apache-2.0
/// What the operating system knows about this process.
#pragma once

#include <cstdint>
#include <string>

namespace gpusched {

/// The most physical memory held so far, in bytes.
std::uint64_t peak_memory_bytes();

/// The wall clock as "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace gpusched
