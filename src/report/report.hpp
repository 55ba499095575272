// SPDX-License-Identifier: Apache-2.0
/// `gpusched report`: one HTML page from the folders of runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// A page and the data of its figures.
struct Report {
  std::string html;
  std::vector<std::pair<std::string, std::string>> csv;  ///< file name and content of each figure's data
};

/// False where the build did not find Vega: make_report() then fails.
bool can_report();

/// Reads the folders and writes the page, whose title is `title`; empty: its own. The same files under the same names
/// give the same bytes. Errors: as read_run_folders(); the build has no Vega.
Result<Report> make_report(const std::vector<std::string>& folders, const std::string& title = {});

}  // namespace gpusched
