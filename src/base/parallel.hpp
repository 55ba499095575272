// SPDX-License-Identifier: Apache-2.0
/// Independent pieces of work on several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace gpusched {

/// The most that --threads takes, and "threads" of a configuration.
inline constexpr std::uint32_t most_threads = 4096;

/// What --threads stands for: 0 for one for each processor, else itself.
std::uint32_t thread_count(std::uint32_t threads);

/// Calls work(i) once for every i below `count`, on up to `threads` threads (0: one for each processor), this one among
/// them; pieces are begun in order. Returns when all are done. Where the system gives fewer threads than asked for,
/// those do the work. The first exception of a piece is thrown again here, after what was begun is done; no further
/// piece is begun then.
void for_each_index(std::size_t count, std::uint64_t threads, const std::function<void(std::size_t)>& work);

}  // namespace gpusched
