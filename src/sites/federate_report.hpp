// SPDX-License-Identifier: Apache-2.0
/// What runs over several sites found, as a table for people, JSON for programs, and files. The same runs give the same
/// bytes, apart from "sim_seconds" of --json.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/text_style.hpp"
#include "src/sites/federate.hpp"

namespace gpusched {

/// The routers side by side, then the sites under each.
std::string federate_table(const FederateInput& input, const std::vector<RouterRun>& runs, const TextStyle& style = {});

/// {"manifest": {...}, "runs": [{"router", "sites": [...], "total": {...}}]}.
std::string federate_json(const FederateOptions& options, const FederateInput& input,
                          const std::vector<RouterRun>& runs);

/// What a careful reader should know, one line each.
std::vector<std::string> federate_notes(const FederateInput& input, const std::vector<RouterRun>& runs);

/// Writes sites.csv, transfers.csv and jobs.csv into the router's folder in `folder`. The jobs.csv is that of a replay
/// with the column site behind it. Error: a file cannot be written.
Result<void> write_router_files(OutputFolder& folder, const FederateInput& input, const RouterRun& run,
                                std::size_t number);

/// Writes manifest.json. Error: it cannot be written.
Result<void> write_federate_manifest(OutputFolder& folder, const FederateOptions& options, const FederateInput& input,
                                     const std::vector<RouterRun>& runs);

}  // namespace gpusched
