// SPDX-License-Identifier: Apache-2.0
/// A folder that holds the training runs of several seeds of one configuration, each in a folder of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Training seeds of one configuration, each once.
using Seeds = std::vector<std::uint64_t>;

/// The most that one folder holds.
inline constexpr std::size_t most_seeds = 1'000;

/// "7", "1..10", "1,2,5", "3..4,9": the seeds in that order. Errors: nothing given, not whole numbers up to 2^53, a
/// range that goes down, a seed twice, more than most_seeds.
Result<Seeds> parse_seeds(std::string_view text);

/// As parse_seeds() takes them: "1..10,12".
std::string seeds_text(std::span<const std::uint64_t> seeds);

/// The folder of one run: FOLDER/seed-N.
std::string seed_folder(const std::string& folder, std::uint64_t seed);

/// True for a folder of several seeds' runs.
bool holds_seeds(const std::string& folder);
/// Whose runs it holds. Error: what stands there cannot be read.
Result<Seeds> read_seeds(const std::string& folder);
/// Makes `folder`, which exists, one of these.
Result<void> write_seeds(const std::string& folder, std::span<const std::uint64_t> seeds);

}  // namespace gpusched
