// SPDX-License-Identifier: Apache-2.0
#include "src/world/cluster_fields.hpp"

#include <cmath>

#include "gpusched/core/types.hpp"
#include "src/base/name_text.hpp"

namespace gpusched {

std::string read_name(JsonFields& fields, std::string_view key) {
  std::string text;
  fields.read(key, text);
  return name_text(text);
}

std::vector<std::string> read_names(JsonFields& fields, std::string_view key) {
  const Json* value = fields.find(key);
  if (value == nullptr) return {};
  if (value->is_string()) return {name_text(value->get<std::string>())};
  std::vector<std::string> list;
  if (value->is_array()) {
    for (const Json& entry : *value) {
      if (entry.is_string()) list.push_back(name_text(entry.get<std::string>()));
    }
  }
  if (list.empty() || list.size() != value->size()) {
    fields.refuse(key, "a text or a list of texts");
    list.clear();
  }
  return list;
}

std::int64_t read_quantity(JsonFields& fields, std::string_view key, std::int64_t parts) {
  constexpr double most_quantity = 1e12;
  if (!fields.has(key)) {
    fields.find(key);
    return unlimited;
  }
  double value = 0;
  fields.read(key, value, 0, most_quantity);
  return std::llround(value * static_cast<double>(parts));
}

Json quantity_json(std::int64_t parts, double scale) {
  const double value = static_cast<double>(parts) / scale;
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

}  // namespace gpusched
