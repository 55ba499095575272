// SPDX-License-Identifier: Apache-2.0
#include "src/report/search_folder.hpp"

#include <string_view>
#include <utility>

#include "src/report/csv_rows.hpp"

namespace gpusched {
namespace {

Unexpected wrong_file(const std::string& path, std::string message) {
  return {Error{.message = std::move(message), .file = path}};
}

// The value at a JSON pointer, null where there is none.
const Json& value_at(const Json& json, const char* pointer) {
  static const Json none;
  const Json::json_pointer place(pointer);
  return json.contains(place) ? json[place] : none;
}

std::vector<std::string> objectives_of(const Json& manifest) {
  std::vector<std::string> names;
  const Json& objectives = value_at(manifest, "/config/objectives");
  if (!objectives.is_array()) return names;
  for (const Json& name : objectives) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

Result<void> read_front(const std::string& path, SearchInput& search) {
  std::vector<std::string> names;
  for (const std::string& objective : search.objectives) names.push_back("held_out_" + objective);
  std::vector<std::string_view> columns{"kind",     "policy",       "candidate", "clairvoyant",
                                        "on_front", "dominated_by", "message"};
  const std::size_t first = columns.size();
  columns.insert(columns.end(), names.begin(), names.end());
  auto rows = CsvRows::open(path, columns);
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) {
    SearchPolicyRow row{.policy = std::string(rows->at(2).empty() ? rows->at(1) : rows->at(2)),
                        .found = rows->at(0) == "found",
                        .clairvoyant = rows->at(3) == "true",
                        .on_front = rows->at(4) == "true",
                        .dominated_by = std::string(rows->at(5)),
                        .message = std::string(rows->at(6)),
                        .held_out = {}};
    for (std::size_t c = first; c < columns.size(); ++c) row.held_out.push_back(rows->number_or_none(c));
    search.policies.push_back(std::move(row));
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  if (search.policies.empty()) return wrong_file(path, "holds no policy");
  return {};
}

Result<void> read_generations(const std::string& path, SearchInput& search) {
  auto rows = CsvRows::open(path, {"generation", "hypervolume", "population_hypervolume"});
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) search.generations.push_back({rows->number(0), rows->number(1), rows->number(2)});
  if (rows->failure()) return Unexpected{*rows->failure()};
  return {};
}

}  // namespace

Result<SearchInput> read_search_folder(const std::string& folder, const Json& manifest) {
  SearchInput search{.folder = folder,
                     .objectives = objectives_of(manifest),
                     .policies = {},
                     .generations = {},
                     .compared_hypervolume = {}};
  if (search.objectives.size() < 2) {
    return wrong_file(folder + "/manifest.json", "names fewer than two objectives in config.objectives");
  }
  if (auto done = read_front(folder + "/front.csv", search); !done) return Unexpected{done.error()};
  if (auto done = read_generations(folder + "/generations.csv", search); !done) return Unexpected{done.error()};
  const Json& compared = value_at(manifest, "/hypervolume/train/compared");
  if (compared.is_number()) search.compared_hypervolume = compared.get<double>();
  search.repeatable = value_at(manifest, "/repeatable") != Json(false);
  return search;
}

}  // namespace gpusched
