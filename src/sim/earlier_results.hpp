// SPDX-License-Identifier: Apache-2.0
/// What an earlier run left in a folder of results.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// The files that the run of `manifest` (the text of a manifest.json) may have written beside it, as names in its
/// folder: "fifo/jobs.csv", "table.txt". Error: gpusched did not write it.
Result<std::vector<std::string>> files_of_run(const std::string& manifest, const std::string& path);

}  // namespace gpusched
