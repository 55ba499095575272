// SPDX-License-Identifier: Apache-2.0
/// What `gpusched compare` prints and writes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/sim/compare.hpp"
#include "src/sim/report.hpp"

namespace gpusched {

/// A block for each figure, a row for each world, at most 80 columns; then what a reader should know.
std::string compare_table(const ComparePlan& plan, const CompareOutcome& outcome, const TextStyle& style = {});

/// One JSON object: the manifest, every metric of every world, every figure compared.
std::string compare_json(const ComparePlan& plan, const CompareOutcome& outcome, const Execution& execution);

/// The files of --out: compare.csv, compare.json, table.txt and manifest.json, name and content.
std::vector<std::pair<std::string, std::string>> compare_files(const ComparePlan& plan, const CompareOutcome& outcome,
                                                               const Execution& execution);

/// What a manifest of compare tells of the comparison.
struct ToldComparison {
  std::vector<std::string> variations = {};
  CompareOptions options = {};
};
/// Without variations where the text is no such manifest.
ToldComparison comparison_of_manifest(const std::string& text);

}  // namespace gpusched
