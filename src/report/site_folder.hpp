// SPDX-License-Identifier: Apache-2.0
/// Reading back what `federate` wrote by --out, and what a report shows of it.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "src/base/strict_json.hpp"
#include "src/report/figure.hpp"

namespace gpusched {

struct ReportTable;

/// What waits and runs at a site from an instant on.
struct SiteLevelRow {
  Time since{};
  double waiting_jobs = 0, used_gpus = 0;
};

/// A site under one router; cells are those of sites.csv.
struct SiteInput {
  std::string name;
  std::vector<std::string> cells;
  std::vector<SiteLevelRow> levels = {};  ///< empty without timeline.csv
};

/// One router of a folder.
struct RouterInput {
  std::string router;
  std::vector<SiteInput> sites;  ///< the last is the total
};

/// A folder of federate.
struct FederationInput {
  std::string folder;
  std::vector<RouterInput> routers;
};

/// Errors: files that are not there or not what federate writes.
Result<FederationInput> read_federation_folder(const std::string& folder, const Json& manifest);

/// The sites under each router.
ReportTable federation_table(const FederationInput& federation);

/// GPUs in use and waiting jobs by router and site, where there are timelines. `number` tells folders of one page
/// apart.
std::vector<Figure> federation_figures(const FederationInput& federation, std::size_t number);

}  // namespace gpusched
