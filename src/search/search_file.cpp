// SPDX-License-Identifier: Apache-2.0
#include "src/search/search_file.hpp"

#include <algorithm>
#include <utility>

#include "src/base/json_fields.hpp"
#include "src/base/nearest_name.hpp"
#include "src/sweep/sweep_file.hpp"

namespace gpusched {
namespace {

Unexpected wrong_search(const std::string& place, const std::string& message) {
  return Unexpected{Error{.message = message, .field = place}};
}

std::vector<std::string> objective_words() {
  std::vector<std::string> words = figure_names();
  words.emplace_back(latency_objective);
  return words;
}

// Why a condition cannot stand in base; "" where it can.
std::string why_searches_lack(const std::string& path) {
  ConditionOptions options;
  const FieldTable table = condition_table(options);
  const Field* const field = find_field(table, path);
  if (field == nullptr) return "";
  for (const Lack& lack : field->lacks) {
    if (lack.who == "search") return "a search has none: " + lack.why;
  }
  return "";
}

// What a search decides itself cannot be a key of base, which stands at `place`.
Result<void> check_base_key(const std::string& key, const std::string& place) {
  const std::string first = key.substr(0, key.find('.'));
  if (first == "policy" || first == "policies" || first == "parameters") {
    return wrong_search(place, "belongs to /policies and /compare");
  }
  if (first == "backfill") {
    return wrong_search(place, "name it in each policy, as weighted+easy: what is found must run as it is");
  }
  if (first == "window" || first == "measure") return wrong_search(place, "belongs to /windows");
  if (const std::string why = why_searches_lack(key); !why.empty()) return wrong_search(place, why);
  return {};
}

Result<void> check_base(const Json& base) {
  if (!base.is_object()) return wrong_search("/base", "expected an object");
  for (const auto& [key, value] : base.items()) {
    if (auto checked = check_base_key(key, "/base/" + key); !checked) return checked;
  }
  if (!base.contains("trace") && !base.contains("trace.path")) {
    return wrong_search("/base/trace", "no trace; give a file, or synthetic:philly");
  }
  return {};
}

// A condition that is searched: every value is one that the key takes.
Result<void> check_condition(const SearchedParameter& parameter, const std::string& place) {
  const std::string path = parameter.name.substr(condition_prefix.size());
  if (auto checked = check_base_key(path, place); !checked) return checked;
  SweepPoint point;
  const FieldTable fields = sweep_fields(point);
  const Field* const field = base_field(fields, path);
  if (field == nullptr) {
    std::vector<std::string> known;
    for (const Field& one : fields) known.push_back(one.path);
    return wrong_search(place, unknown_key(path, known));
  }
  if (parameter.list) return wrong_search(place, "is one value, not a list");
  for (std::size_t i = 0; i < parameter.choices.size(); ++i) {
    const std::string below = parameter.choices.size() > 1 ? place + "/choices/" + std::to_string(i) : place;
    if (auto set = set_field_json(*field, parameter.choices[i]); !set) return wrong_search(below, set.error().message);
  }
  for (const NumberRange& range : parameter.numbers) {
    const bool is_whole = takes_whole_numbers(*field);
    if (is_whole && !range.integer) return wrong_search(place, "takes whole numbers: expected \"integer\": true");
    for (const double end : {range.from, range.to}) {
      const Json value = is_whole && end >= 0 ? Json(static_cast<std::uint64_t>(end)) : Json(end);
      if (auto set = set_field_json(*field, value); !set) return wrong_search(place, set.error().message);
    }
  }
  return {};
}

Result<void> check_searched_conditions(const std::vector<SearchedPolicy>& policies) {
  for (const SearchedPolicy& policy : policies) {
    for (const SearchedParameter& parameter : policy.parameters) {
      if (policy.training || !parameter.name.starts_with(condition_prefix)) continue;
      const std::string place = policy.place() + "/parameters/" + parameter.name;
      if (auto checked = check_condition(parameter, place); !checked) return checked;
    }
  }
  return {};
}

}  // namespace

std::optional<double> FigureObjective::value(const SweepResult& result) const {
  if (metric != nullptr) return metric->value(result.metrics);
  return result.sim_s * 1e6 / std::max(1.0, static_cast<double>(result.metrics.events));
}

double FigureObjective::loss(double mean) const {
  return std::max(0.0, metric != nullptr && metric->better == Better::more ? 1 - mean : mean);
}

std::vector<FigureObjective> Search::objectives() const {
  std::vector<FigureObjective> all;
  for (const std::string& name : objective_names) all.push_back({name, find_metric(name)});
  return all;
}

bool Search::repeatable() const {
  return std::find(objective_names.begin(), objective_names.end(), latency_objective) == objective_names.end();
}

Result<void> check_search(const Search& search) {
  const std::size_t objectives = search.objective_names.size();
  if (objectives < 2 || objectives > 4) {
    return wrong_search("/objectives", "expected two to four figures: " + joined(objective_words(), "|"));
  }
  for (std::size_t i = 0; i < objectives; ++i) {
    const std::vector<std::string> words = objective_words();
    const std::string& name = search.objective_names[i];
    if (std::find(words.begin(), words.end(), name) == words.end()) {
      return wrong_search("/objectives/" + std::to_string(i),
                          "no figure is called '" + name + "'" + suggest_nearest(name, words));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (name == search.objective_names[j]) {
        return wrong_search("/objectives/" + std::to_string(i), "is there twice");
      }
    }
  }
  if (search.compare.empty())
    return wrong_search("/compare", "expected policies to compare with, as [\"fifo\", \"sjf\"]");
  if (search.population % 4 != 0) return wrong_search("/population", "expected a multiple of 4");
  return {};
}

Result<Search> read_search_json(const std::string& text, const std::string& file, const PolicyRegistry& registry) {
  const auto in_file = [&](Error error) {
    error.file = file;
    return Unexpected{error};
  };
  auto document = parse_json_strictly(text, file);
  if (!document) return Unexpected{document.error()};
  document = Json(config_of(*document));
  Search search;
  search.file = file;
  search.document = *document;
  JsonFields fields(*document, file);
  read_table(fields, search_fields(search));
  for (const char* key : {"base", "policies"}) {
    fields.require(key);
    (void)fields.find(key);
  }
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  search.base = (*document)["base"];
  if (auto done = check_base(search.base); !done) return in_file(done.error());
  auto policies = read_searched_policies((*document)["policies"], registry);
  if (!policies) return in_file(policies.error());
  search.policies = *std::move(policies);
  if (auto done = check_searched_conditions(search.policies); !done) return in_file(done.error());
  return search;
}

Result<Search> read_search_file(const std::string& path, const PolicyRegistry& registry) {
  const auto text = read_text_input(path);
  if (!text) return Unexpected{text.error()};
  return read_search_json(*text, path, registry);
}

namespace {

// The keys of a sweep's base that a search takes. As patterns: the page of all keys lists them under the sweep.
Json schema_of_base() {
  const Json of_sweep = Json::parse(sweep_schema())["properties"]["base"];
  Json base = {
      {"type", "object"},
      {"description", "What every run has: the keys of a sweep's base but policy, parameters, window and measure."}};
  Json& patterns = base["patternProperties"];
  for (const auto& [key, value] : of_sweep["properties"].items()) {
    if (check_base_key(key, "")) patterns[key_pattern(key)] = value;
  }
  SweepPoint point;
  for (const Field& field : sweep_fields(point)) {
    if (field.path.find('.') != std::string::npos && check_base_key(field.path, ""))
      patterns[key_pattern(field.path)] = field_schema(field);
  }
  base["additionalProperties"] = no_other_keys();
  return base;
}

}  // namespace

std::string search_schema() {
  Search search;
  Json schema =
      Json::parse(fields_schema(search_fields(search), "gpusched search", "What `gpusched search FILE` takes."));
  const Json number = {{"type", "number"}}, flag = {{"type", "boolean"}};
  schema["$defs"]["range"] = {{"type", "object"},
                              {"description", "A number that is searched; log: its logarithm is uniform."},
                              {"properties", {{"from", number}, {"to", number}, {"log", flag}, {"integer", flag}}},
                              {"required", {"from", "to"}},
                              {"additionalProperties", false}};
  schema["$defs"]["choices"] = {{"type", "object"},
                                {"properties", {{"choices", {{"type", "array"}, {"minItems", 1}}}}},
                                {"required", {"choices"}},
                                {"additionalProperties", false}};
  const Json parameter = {{"anyOf",
                           {{{"$ref", "#/$defs/range"}},
                            {{"$ref", "#/$defs/choices"}},
                            {{"type", "array"}},
                            {{"type", {"number", "string", "boolean"}}}}}};
  schema["properties"]["base"] = schema_of_base();
  schema["properties"]["objectives"]["items"] = {{"enum", objective_words()}};
  schema["properties"]["policies"] = {
      {"type", "array"},
      {"minItems", 1},
      {"description", "What is searched: policies with ranges of parameters, or trainings."},
      {"items",
       {{"type", "object"},
        {"properties",
         {{"policy", {{"type", "string"}}},
          {"routers",
           {{"type", "array"},
            {"minItems", 1},
            {"items", {{"type", "string"}}},
            {"description", "Routers tried with it."}}},
          {"train", {{"type", "object"}, {"description", "A configuration of gpusched train."}}},
          {"parameters", {{"type", "object"}, {"additionalProperties", parameter}}}}},
        {"additionalProperties", false}}}};
  schema["required"] = {"base", "policies", "objectives", "compare"};
  return json_text(schema);
}

}  // namespace gpusched
