// SPDX-License-Identifier: Apache-2.0
/// What a report shows of a search: found policies and those compared on the held-out windows, and the hypervolume by
/// generation.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/report/comparison.hpp"
#include "src/report/figure.hpp"
#include "src/report/search_folder.hpp"

namespace gpusched {

/// What a reader should know: policies without figures, a search that measured time.
std::vector<std::string> search_notes(const SearchInput& search);

/// One row a policy.
ReportTable search_table(const SearchInput& search);

/// The first objective against each other one, and the hypervolume. `number` tells searches of one page apart.
std::vector<Figure> search_page_figures(const SearchInput& search, std::size_t number);

}  // namespace gpusched
