// SPDX-License-Identifier: Apache-2.0
#include "src/report/sweep_folder.hpp"

#include <string_view>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/report/csv_rows.hpp"

namespace gpusched {
namespace {

std::vector<std::string> keys_of(const Json& manifest) {
  std::vector<std::string> keys;
  for (const Json& key : *manifest.find("columns")) {
    if (key.is_string()) keys.push_back(key.get<std::string>());
  }
  return keys;
}

double count_at(const Json& manifest, const char* name) {
  const auto runs = manifest.find("runs");
  if (runs == manifest.end() || !runs->is_object()) return 0;
  const auto entry = runs->find(name);
  return entry != runs->end() && entry->is_number() ? entry->get<double>() : 0;
}

}  // namespace

Result<SweepInput> read_sweep_folder(const std::string& folder, const Json& manifest) {
  const std::string path = folder + "/runs.csv";
  SweepInput sweep{.folder = folder, .keys = keys_of(manifest), .runs = {}};
  std::vector<std::string_view> columns{"id", "status", "saturated", "jobs", "worst_decile_slowdown", "clairvoyant"};
  const std::size_t first_figure = columns.size();
  for (const char* figure : grid_figures) columns.emplace_back(figure);
  const std::size_t first_key = columns.size();
  columns.insert(columns.end(), sweep.keys.begin(), sweep.keys.end());
  auto rows = CsvRows::open(path, columns);
  if (!rows) return Unexpected{rows.error()};
  double stored = 0;
  while (rows->next()) {
    ++stored;
    if (rows->at(1) != "done") continue;
    SweepRunRow run{.id = std::string(rows->at(0)), .grid = {}, .worst_decile_slowdown = rows->number_or_none(4)};
    run.grid.saturated = rows->number(2) != 0;
    run.grid.jobs = rows->number(3);
    run.grid.clairvoyant = rows->number(5) != 0;
    for (std::size_t c = first_figure; c < first_key; ++c) run.grid.figures.push_back(rows->number_or_none(c));
    for (std::size_t c = first_key; c < columns.size(); ++c) run.grid.values.emplace_back(rows->at(c));
    sweep.runs.push_back(std::move(run));
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  sweep.missing = count_at(manifest, "missing");
  sweep.failed = count_at(manifest, "failed") + count_at(manifest, "timeout");
  const double expected = count_at(manifest, "done") + sweep.failed;
  sweep.all = expected + sweep.missing;
  if (stored < expected) {  // more than that: the sweep was killed before it wrote its manifest
    return Unexpected{Error{.message = "holds " + counted(static_cast<std::uint64_t>(stored), "run") +
                                       ", manifest.json beside it says " +
                                       human_count(static_cast<std::uint64_t>(expected)) + "; is the file whole?",
                            .file = path}};
  }
  if (!sweep.runs.empty()) return sweep;
  return Unexpected{Error{.message = "holds no run with figures; `gpusched sweep` writes it when it ends or is "
                                     "interrupted",
                          .file = path}};
}

}  // namespace gpusched
