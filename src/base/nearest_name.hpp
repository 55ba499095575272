// SPDX-License-Identifier: Apache-2.0
/// Known names in messages: the one nearest to a mistyped name, and all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

/// " (did you mean 'fifo'?)" for the candidate with the smallest edit distance, if that is at most a third of its
/// length (and at least 1 edit is always forgiven); else "". Two letters that changed places are one edit, and the case
/// of letters does not count.
std::string suggest_nearest(std::string_view name, std::span<const std::string> candidates);

/// "fifo|sjf|srtf" for `between` "|".
std::string joined(std::span<const std::string> names, std::string_view between);

/// Each name once, in the order of their first places.
std::vector<std::string> distinct(std::vector<std::string> names);

}  // namespace gpusched
