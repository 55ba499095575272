// SPDX-License-Identifier: Apache-2.0
/// Names in a file that no job of the trace (or no node of the cluster) has: a note, because one file may serve many
/// traces and parts of them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gpusched {

/// One line that names the first few of `absent`, each with the name of `known` that may be meant; none where nothing
/// is absent. `field`: where the names stand in the file; `who`: who lacks them.
std::vector<std::string> absent_names_note(const std::string& file, const std::string& field,
                                           std::span<const std::string> absent, std::span<const std::string> known,
                                           const std::string& who = "job");

}  // namespace gpusched
