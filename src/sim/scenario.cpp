// SPDX-License-Identifier: Apache-2.0
#include "src/sim/scenario.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

constexpr double most_seconds = 9.2e12;  // of from_seconds

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string slashed(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return "/" + path;
}

Unexpected bad_value(const std::string& where, const std::string& expected) {
  return Unexpected{Error{.message = "expected " + expected, .field = where}};
}

std::string expectation(const ScenarioField& field) {
  return std::visit(Overloaded{[&](const std::string*) {
                                 if (field.words.empty()) return std::string("a text");
                                 return "one of " + joined(field.words, "|");
                               },
                               [](const bool*) { return std::string("true or false"); },
                               [](const std::uint64_t*) { return std::string("a whole number, 0 or more"); },
                               [](const double*) { return std::string("a number above 0"); },
                               [](const Time*) { return std::string("seconds, 0 or more"); },
                               [](const std::vector<std::string>*) { return std::string("a list of texts"); }},
                    field.target);
}

std::optional<double> positive(std::optional<double> number) {
  if (!number || !(*number > 0 && *number < most_seconds)) return std::nullopt;
  return number;
}

std::optional<Time> span_from(std::optional<double> seconds) {
  if (!seconds || !(*seconds >= 0 && *seconds < most_seconds)) return std::nullopt;
  return from_seconds(*seconds);
}

// A policy list is split where policies end, not at every comma.
Result<std::vector<std::string>> split_policies(std::string_view text) {
  const auto specs = parse_policy_list(text);
  if (!specs) return Unexpected{specs.error()};
  std::vector<std::string> texts;
  for (const PolicySpec& spec : *specs) texts.push_back(spec.text);
  return texts;
}

Result<void> set_word(const ScenarioField& field, std::string* target, std::string text, const std::string& where) {
  if (!field.words.empty() && std::find(field.words.begin(), field.words.end(), text) == field.words.end()) {
    return bad_value(where, expectation(field) + ", not '" + text + "'" + suggest_nearest(text, field.words));
  }
  *target = std::move(text);
  return {};
}

template <class T, class Value>
Result<void> store(T* target, const std::optional<Value>& value, const ScenarioField& field, const std::string& where,
                   const std::string& given) {
  if (!value) return bad_value(where, expectation(field) + ", not " + given);
  *target = *value;
  return {};
}

Result<void> set_from_json(const ScenarioField& field, const Json& value) {
  const std::string where = slashed(field.path);
  const std::string given = value.dump();
  return std::visit(
      Overloaded{[&](std::string* target) -> Result<void> {
                   if (!value.is_string()) return bad_value(where, expectation(field) + ", not " + given);
                   return set_word(field, target, value.get<std::string>(), where);
                 },
                 [&](bool* target) {
                   const auto flag = value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
                   return store(target, flag, field, where, given);
                 },
                 [&](std::uint64_t* target) {
                   const auto number =
                       value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
                   return store(target, number, field, where, given);
                 },
                 [&](double* target) {
                   const auto number = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
                   return store(target, positive(number), field, where, given);
                 },
                 [&](Time* target) {
                   const auto number = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
                   return store(target, span_from(number), field, where, given);
                 },
                 [&](std::vector<std::string>* target) -> Result<void> {
                   std::vector<std::string> texts;
                   if (!value.is_array()) return bad_value(where, expectation(field) + ", not " + given);
                   for (const Json& entry : value) {
                     if (!entry.is_string()) return bad_value(where, expectation(field) + ", not " + given);
                     texts.push_back(entry.get<std::string>());
                   }
                   *target = std::move(texts);
                   return {};
                 }},
      field.target);
}

// The names that may stand directly under `prefix`.
std::vector<std::string> keys_under(const std::vector<ScenarioField>& fields, const std::string& prefix) {
  std::vector<std::string> keys;
  for (const ScenarioField& field : fields) {
    if (!field.path.starts_with(prefix)) continue;
    std::string key = field.path.substr(prefix.size());
    key = key.substr(0, key.find('.'));
    if (keys.empty() || keys.back() != key) keys.push_back(key);
  }
  return keys;
}

const ScenarioField* find_field(const std::vector<ScenarioField>& fields, const std::string& path) {
  const auto place =
      std::find_if(fields.begin(), fields.end(), [&](const ScenarioField& field) { return field.path == path; });
  return place == fields.end() ? nullptr : &*place;
}

Unexpected unknown_key(const std::vector<ScenarioField>& fields, const std::string& prefix, const std::string& key) {
  return Unexpected{Error{.message = "unknown key" + suggest_nearest(key, keys_under(fields, prefix)),
                          .field = slashed(prefix + key)}};
}

Result<void> read_object(const std::vector<ScenarioField>& fields, const Json& object, const std::string& prefix) {
  if (!object.is_object()) {
    return bad_value(prefix.empty() ? "/" : slashed(prefix.substr(0, prefix.size() - 1)), "an object");
  }
  for (const auto& [key, value] : object.items()) {
    const std::string path = prefix + key;
    Result<void> done;
    if (prefix.empty() && key == "$schema") continue;  // editors look for it
    if (const ScenarioField* field = find_field(fields, path); field != nullptr) {
      done = set_from_json(*field, value);
    } else if (!keys_under(fields, path + ".").empty()) {
      done = read_object(fields, value, path + ".");
    } else {
      done = unknown_key(fields, prefix, key);
    }
    if (!done) return done;
  }
  return {};
}

Json value_json(const ScenarioField& field) {
  return std::visit(Overloaded{[](const Time* value) {
                                 const bool whole = value->us % microseconds_per_second == 0;
                                 return whole ? Json(value->us / microseconds_per_second) : Json(to_seconds(*value));
                               },
                               [](const auto* value) { return Json(*value); }},
                    field.target);
}

// The object that `path` stands in, and the last part of `path`.
std::pair<Json*, std::string> place_of(Json& root, const std::string& path, const std::string& between) {
  Json* object = &root;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    if (!between.empty()) object = &(*object)[between];
    object = &(*object)[path.substr(begin, dot - begin)];
    begin = dot + 1;
  }
  return {object, path.substr(begin)};
}

}  // namespace

std::vector<ScenarioField> scenario_fields(Scenario& s) {
  std::vector<std::string> placements{"count"};
  for (const PlacementName& entry : placement_names) placements.emplace_back(entry.name);
  std::vector<std::string> splits{"none"};
  splits.insert(splits.end(), std::begin(split_names), std::end(split_names));
  return {
      {"trace.path", "--trace", "trace file, or synthetic:NAME", &s.trace},
      {"trace.format", "--format", "format of the trace; auto looks at its first lines", &s.format},
      {"trace.columns", "--columns", "columns of a csv: submit=NAME,gpus=NAME,duration=NAME[,...]", &s.columns},
      {"trace.drop_bad_rows", "--drop-bad-rows",
       "leave out rows with bad values, counted, instead of refusing the trace", &s.drop_bad_rows},
      {"cluster", "--cluster",
       "NAME, FILE, NODESxGPUS (75x8) or GPUS (600: one pool that only counts); by default what the trace states",
       &s.cluster},
      {"policies", "--policy", "policies to compare: NAME[{parameter=value,...}][,...]", &s.policies},
      {"backfill", "--backfill", "around every policy: none, easy, conservative or sc20, with {parameter=value,...}",
       &s.backfill},
      {"placement", "--placement", "how nodes are chosen; count: no nodes, only GPUs", &s.placement, placements},
      {"seed", "--seed", "of everything random", &s.seed},
      {"preemption.checkpoint_s", "--checkpoint-cost", "seconds to save a job's state when it is preempted",
       &s.preemption.checkpoint},
      {"preemption.restart_s", "--restart-cost", "seconds to load it again", &s.preemption.restart},
      {"preemption.checkpoint_interval_s", "--checkpoint-interval",
       "seconds of work between checkpoints; what follows the last one is lost; 0: nothing is lost",
       &s.preemption.checkpoint_interval},
      {"fidelity.profiles", "--profile",
       "device profiles that set how fast each job family runs on each GPU type: [TYPE=]FILE_OR_NAME[,...]",
       &s.profiles},
      {"fidelity.reference", "--reference-profile",
       "profile of the device that the trace's durations are of; by default the first of --profile",
       &s.reference_profile},
      {"fidelity.slowdown", "--slowdown", "factor on every modelled duration, for what the model leaves out",
       &s.slowdown},
      {"fidelity.interference",
       "--interference",
       "how much jobs that share a GPU slow each other: as the profiles say, or not",
       &s.interference,
       {"profile", "none"}},
      {"oversize",
       "--oversize",
       "a job larger than the cluster is an error, dropped, or clamped to fit",
       &s.oversize,
       {"error", "drop", "clamp"}},
      {"measure.warmup_jobs", "--warmup-jobs", "first jobs that are run but not measured", &s.warmup_jobs},
      {"measure.measure_jobs", "--measure-jobs", "jobs that are measured then; 0: all", &s.measure_jobs},
      {"measure.warmup_s", "--warmup-time", "the same by seconds since the first submission", &s.warmup},
      {"measure.measure_s", "--measure-time", "seconds of submissions that are measured then; 0: all", &s.measure},
      {"split", "--split", "also show the results by GPU count, user, virtual cluster or status", &s.split, splits},
      {"output.folder",
       "--out",
       "folder for summary.json, jobs.csv and intervals.csv of each policy (of slurm: terms.csv), and manifest.json",
       &s.out,
       {},
       false},
      {"output.json", "--json", "print one JSON object instead of tables", &s.json, {}, false},
      {"threads", "--jobs", "policies that run at the same time", &s.threads, {}, false},
  };
}

Result<void> set_field(const ScenarioField& field, std::string_view text) {
  const std::string where = field.path;
  const std::string given = "'" + std::string(text) + "'";
  return std::visit(
      Overloaded{
          [&](std::string* target) { return set_word(field, target, std::string(text), where); },
          [&](bool* target) {
            const auto flag = text == "true" || text == "false" ? std::optional(text == "true") : std::nullopt;
            return store(target, flag, field, where, given);
          },
          [&](std::uint64_t* target) { return store(target, parse_exact<std::uint64_t>(text), field, where, given); },
          [&](double* target) { return store(target, positive(parse_number(text)), field, where, given); },
          [&](Time* target) { return store(target, span_from(parse_number(text)), field, where, given); },
          [&](std::vector<std::string>* target) -> Result<void> {
            auto texts = split_policies(text);
            if (!texts) return Unexpected{texts.error()};
            *target = std::move(*texts);
            return {};
          }},
      field.target);
}

Result<void> read_scenario_json(Scenario& scenario, std::string_view text, const std::string& file) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  const bool is_manifest = json->is_object() && json->contains("program") && json->contains("config");
  auto done = read_object(scenario_fields(scenario), is_manifest ? (*json)["config"] : *json, "");
  if (!done) {
    Error error = done.error();
    error.file = file;
    if (is_manifest) error.field = "/config" + error.field;
    return Unexpected{error};
  }
  const Json::json_pointer hash("/trace/sha256");
  if (is_manifest && json->contains(hash) && (*json)[hash].is_string()) {
    scenario.manifest_sha256 = (*json)[hash].get<std::string>();
  }
  return {};
}

Result<void> read_scenario_file(Scenario& scenario, const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return read_scenario_json(scenario, *text, path);
}

Result<void> apply_setting(Scenario& scenario, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    return unexpected("expected path.to.key=value, not '" + std::string(setting) + "'");
  }
  const std::string path(setting.substr(0, equals));
  const auto fields = scenario_fields(scenario);
  const ScenarioField* field = find_field(fields, path);
  if (field == nullptr) {
    std::vector<std::string> known(fields.size());
    std::transform(fields.begin(), fields.end(), known.begin(), [](const ScenarioField& f) { return f.path; });
    return unexpected("unknown key '" + path + "'" + suggest_nearest(path, known));
  }
  return set_field(*field, setting.substr(equals + 1));
}

Result<void> check_scenario(const Scenario& scenario) {
  if (scenario.trace.empty()) return unexpected("no trace; give --trace FILE, or --trace synthetic:philly");
  if (scenario.policies.empty()) {
    return unexpected("no policy; give --policy fifo,srtf for example (`gpusched policies` lists all)");
  }
  const bool by_jobs = scenario.warmup_jobs != 0 || scenario.measure_jobs != 0;
  const bool by_time = scenario.warmup.us != 0 || scenario.measure.us != 0;
  if (by_jobs && by_time) {
    return Unexpected{Error{.message = "expected a window by jobs or by time, not both", .field = "measure"}};
  }
  if (scenario.threads == 0) return Unexpected{Error{.message = "expected at least 1", .field = "threads"}};
  return {};
}

std::string scenario_json(const Scenario& scenario, bool all) {
  Scenario copy = scenario;
  Json root = Json::object();
  for (const ScenarioField& field : scenario_fields(copy)) {
    if (!all && !field.changes_results) continue;
    const auto [object, key] = place_of(root, field.path, "");
    (*object)[key] = value_json(field);
  }
  return json_text(root);
}

std::string scenario_schema() {
  Scenario defaults;
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "gpusched scenario"},
               {"description", "What `gpusched replay --config FILE` takes. Every key is optional."},
               {"type", "object"},
               {"additionalProperties", false}};
  root["properties"]["$schema"] = {{"type", "string"}};
  for (const ScenarioField& field : scenario_fields(defaults)) {
    const auto [object, key] = place_of(root, field.path, "properties");
    if (object != &root) {
      (*object)["type"] = "object";
      (*object)["additionalProperties"] = false;
    }
    Json entry = std::visit(Overloaded{[](const std::string*) {
                                         return Json{{"type", "string"}};
                                       },
                                       [](const bool*) {
                                         return Json{{"type", "boolean"}};
                                       },
                                       [](const std::uint64_t*) {
                                         return Json{{"type", "integer"}, {"minimum", 0}};
                                       },
                                       [](const double*) {
                                         return Json{{"type", "number"}, {"exclusiveMinimum", 0}};
                                       },
                                       [](const Time*) {
                                         return Json{{"type", "number"}, {"minimum", 0}};
                                       },
                                       [](const std::vector<std::string>*) {
                                         return Json{{"type", "array"}, {"items", {{"type", "string"}}}};
                                       }},
                            field.target);
    entry["description"] = field.meaning;
    if (!field.words.empty()) entry["enum"] = field.words;
    entry["default"] = value_json(field);
    (*object)["properties"][key] = std::move(entry);
  }
  return json_text(root);
}

}  // namespace gpusched
