// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/keywords.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "python/bindings/common.hpp"
#include "src/base/nearest_name.hpp"

namespace gpusched::python {

std::string keyword(const Field& field) {
  std::string name = field.flag.substr(field.flag.find_first_not_of('-'));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

void set_keywords(const FieldTable& fields, const std::string& json) {
  const auto given = nlohmann::ordered_json::parse(json);
  for (const auto& [name, value] : given.items()) {
    const Field* field = nullptr;
    std::vector<std::string> known;
    for (const Field& candidate : fields) {
      if (candidate.flag.empty()) continue;
      known.push_back(keyword(candidate));
      if (known.back() == name) field = &candidate;
    }
    if (field == nullptr) throw InputError(name + ": no such argument" + suggest_nearest(name, known));
    if (const auto done = set_field_json(*field, value); !done) {
      throw InputError(name + ": " + done.error().message);
    }
  }
}

}  // namespace gpusched::python
