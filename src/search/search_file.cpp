// SPDX-License-Identifier: Apache-2.0
#include "src/search/search_file.hpp"

#include <algorithm>
#include <utility>

#include "src/base/nearest_name.hpp"
#include "src/base/parallel.hpp"
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

// Sets every key of `object`, which stands under `place` and whose fields' paths begin with `prefix`.
Result<void> read_own(const FieldTable& fields, const Json& object, const std::string& prefix) {
  for (const auto& [key, value] : object.items()) {
    const std::string path = prefix + key;
    if (prefix.empty() && (key == "$schema" || key == "base" || key == "policies")) continue;
    const bool begins = std::any_of(fields.begin(), fields.end(),
                                    [&](const Field& field) { return field.path.starts_with(path + "."); });
    const std::string place = "/" + (prefix.empty() ? key : prefix.substr(0, prefix.size() - 1) + "/" + key);
    if (begins) {
      if (!value.is_object()) return wrong_search(place, "expected an object");
      if (auto done = read_own(fields, value, path + "."); !done) return done;
    } else if (const Field* field = find_field(fields, path)) {
      if (auto done = set_field_json(*field, value); !done) return wrong_search(place, done.error().message);
    } else {
      std::vector<std::string> known{"base", "policies"};
      for (const Field& other : fields) known.push_back(other.path.substr(other.path.find('.') + 1));
      return wrong_search(place, "unknown key" + suggest_nearest(key, known));
    }
  }
  return {};
}

// What a search decides itself cannot stand in base.
Result<void> check_base(const Json& base) {
  if (!base.is_object()) return wrong_search("/base", "expected an object");
  for (const auto& [key, value] : base.items()) {
    const std::string first = key.substr(0, key.find('.'));
    if (first == "policy" || first == "policies" || first == "parameters") {
      return wrong_search("/base/" + key, "belongs to /policies and /compare");
    }
    if (first == "backfill") {
      return wrong_search("/base/backfill",
                          "name it in each policy, as weighted+easy: what is found must run as it is");
    }
    if (first == "window" || first == "measure") return wrong_search("/base/" + key, "belongs to /windows");
  }
  if (!base.contains("trace") && !base.contains("trace.path")) {
    return wrong_search("/base/trace", "no trace; give a file, or synthetic:philly");
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

FieldTable search_own_fields(Search& search) {
  const auto whole = [](double least, double most) { return Field::Range{least, most}; };
  return {
      {.path = "objectives",
       .flag = "",
       .meaning = "two to four figures, each to be best",
       .target = &search.objective_names},
      {.path = "compare",
       .flag = "",
       .meaning = "policies on the same axes; hypervolumes are relative to 1.1 times the worst of them",
       .target = &search.compare},
      {.path = "windows.jobs",
       .flag = "",
       .meaning = "measured jobs of a window",
       .target = &search.window_jobs,
       .range = whole(1, 1e9)},
      {.path = "windows.warmup_jobs",
       .flag = "",
       .meaning = "jobs before them that fill the cluster",
       .target = &search.warmup_jobs,
       .range = whole(0, 1e9)},
      {.path = "windows.train",
       .flag = "",
       .meaning = "windows that policies are chosen by",
       .target = &search.train_windows,
       .range = whole(1, 10000)},
      {.path = "windows.held_out",
       .flag = "",
       .meaning = "windows that the front is judged by, behind all training windows",
       .target = &search.held_out_windows,
       .range = whole(1, 10000)},
      {.path = "windows.train_share",
       .flag = "",
       .meaning = "share of the trace's jobs, from the first on, that training windows lie in",
       .target = &search.train_share,
       .range = whole(0.01, 0.99)},
      {.path = "method",
       .flag = "--method",
       .meaning = "how candidates are proposed; random: each drawn alone, to compare with; halving: of many drawn ones "
                  "a part goes on to longer training",
       .target = &search.method,
       .words = {"nsga2", "random", "halving"}},
      {.path = "population",
       .flag = "--population",
       .meaning = "candidates of a generation, a multiple of 4",
       .target = &search.population,
       .range = whole(8, 10000)},
      {.path = "generations",
       .flag = "--generations",
       .meaning = "generations behind the first population",
       .target = &search.generations,
       .range = whole(0, 100000)},
      {.path = "front",
       .flag = "--front",
       .meaning = "found policies that are run on the held-out windows, at most; 0: as many as the population",
       .target = &search.front,
       .range = whole(0, 100000)},
      {.path = "halving.rungs",
       .flag = "",
       .meaning = "method halving: rounds of training, each with keep times the budget of the one before",
       .target = &search.rungs,
       .range = whole(1, 20)},
      {.path = "halving.keep",
       .flag = "",
       .meaning = "method halving: one candidate of so many goes on",
       .target = &search.keep,
       .range = whole(2, 100)},
      {.path = "seed",
       .flag = "--seed",
       .meaning = "of the search; that of the runs is in base",
       .target = &search.seed},
      {.path = "out",
       .flag = "--out",
       .meaning = "folder for front.csv, generations.csv, candidates.csv, search.sqlite and manifest.json",
       .target = &search.out,
       .changes_results = false},
      {.path = "threads",
       .flag = "--threads",
       .meaning = "runs at the same time; 0: one for each processor; changes no result",
       .target = &search.threads,
       .changes_results = false,
       .range = whole(0, most_threads)},
      {.path = "time_limit_s",
       .flag = "--time-limit",
       .meaning = "seconds on the clock after which a run is ended and its policy counted as failed; 0: none",
       .target = &search.time_limit,
       .changes_results = false},
  };
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
  if (!document->is_object()) return in_file({.message = "expected an object", .field = "/"});
  const bool is_manifest = document->contains("program") && document->contains("config");
  if (is_manifest) document = Json((*document)["config"]);
  if (!document->is_object()) return in_file({.message = "expected an object", .field = "/config"});
  Search search;
  search.file = file;
  search.document = *document;
  if (auto done = read_own(search_own_fields(search), *document, ""); !done) return in_file(done.error());
  for (const char* key : {"base", "policies"}) {
    if (!document->contains(key)) return in_file({.message = "is missing", .field = std::string("/") + key});
  }
  search.base = (*document)["base"];
  if (auto done = check_base(search.base); !done) return in_file(done.error());
  auto policies = read_searched_policies((*document)["policies"], registry);
  if (!policies) return in_file(policies.error());
  search.policies = *std::move(policies);
  return search;
}

Result<Search> read_search_file(const std::string& path, const PolicyRegistry& registry) {
  const auto text = read_text_input(path);
  if (!text) return Unexpected{text.error()};
  return read_search_json(*text, path, registry);
}

std::string search_schema() {
  Search search;
  Json schema =
      Json::parse(fields_schema(search_own_fields(search), "gpusched search", "What `gpusched search FILE` takes."));
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
  schema["properties"]["base"] = {{"type", "object"},
                                  {"description",
                                   "What every run has: the keys of a sweep's base but policy, "
                                   "parameters, window and measure."}};
  schema["properties"]["objectives"]["items"] = {{"enum", objective_words()}};
  schema["properties"]["policies"] = {
      {"type", "array"},
      {"minItems", 1},
      {"description", "What is searched: policies with ranges of parameters, or trainings."},
      {"items",
       {{"type", "object"},
        {"properties",
         {{"policy", {{"type", "string"}}},
          {"train", {{"type", "object"}, {"description", "A configuration of gpusched train."}}},
          {"parameters", {{"type", "object"}, {"additionalProperties", parameter}}}}},
        {"additionalProperties", false}}}};
  schema["required"] = {"base", "policies", "objectives", "compare"};
  return json_text(schema);
}

}  // namespace gpusched
