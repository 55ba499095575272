// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "src/base/json_fields.hpp"
#include "src/base/number_text.hpp"
#include "src/base/parallel.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/sim/site_stretch.hpp"

namespace gpusched {
namespace {

constexpr std::string_view parameters_prefix = "parameters.";

// Errors name the place in the file as a JSON path.
Unexpected wrong(const std::string& place, const std::string& message) {
  return Unexpected{Error{.message = message, .field = place}};
}

Result<void> set_value(SweepPoint& point, const FieldTable& fields, const std::string& path, const Json& value) {
  if (!path.starts_with(parameters_prefix)) return set_field_json(*find_field(fields, path), value);
  const auto text = parameter_text(value);
  const std::string name = path.substr(parameters_prefix.size());
  if (!text)
    return unexpected("expected a number, a word, true, false or a list of numbers, not " + json_excerpt(value));
  const auto place =
      std::find_if(point.parameters.begin(), point.parameters.end(), [&](const auto& p) { return p.first == name; });
  if (place == point.parameters.end()) {
    point.parameters.emplace_back(name, *text);
  } else {
    place->second = *text;
  }
  return {};
}

// The fields that `key` and `value` set: one, or those of an object. `place` is where they stand in the file.
class ValueReader {
 public:
  ValueReader() : fields_(sweep_fields(point_)) {}

  Result<SweepValues> read(const std::string& key, const Json& value, const std::string& place) {
    SweepValues values;
    if (auto done = add(key, value, place, values); !done) return Unexpected{done.error()};
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (values[i].first == values[j].first) return wrong(place, "gives " + values[i].first + " twice");
      }
    }
    return values;
  }

  // Error: `key` is neither a field nor the beginning of some.
  [[nodiscard]] Result<void> check_key(const std::string& key, const std::string& place) const {
    const bool begins_fields = std::any_of(fields_.begin(), fields_.end(),
                                           [&](const Field& field) { return field.path.starts_with(key + "."); });
    if (is_field(key) || begins_fields || key + "." == parameters_prefix) return {};
    return wrong(place, unknown(key));
  }

  // All of an object's keys together.
  Result<SweepValues> read_all(const Json& object, const std::string& place) {
    if (!object.is_object()) return wrong(place, "expected an object, not " + json_excerpt(object));
    SweepValues values;
    for (const auto& [key, value] : object.items()) {
      auto more = read(key, value, place + "/" + key);
      if (!more) return more;
      for (auto& entry : *more) {
        if (std::any_of(values.begin(), values.end(), [&](const auto& known) { return known.first == entry.first; })) {
          return wrong(place + "/" + key, "gives " + entry.first + " a second time");
        }
        values.push_back(std::move(entry));
      }
    }
    return values;
  }

 private:
  Result<void> add(const std::string& key, const Json& value, const std::string& place, SweepValues& values) {
    const bool is_short = !value.is_object() && !is_field(key) && is_field(key + ".path");  // of "trace"
    const std::string path = is_short ? key + ".path" : key;
    if (is_field(path)) {
      if (auto set = set_value(point_, fields_, path, value); !set) return wrong(place, set.error().message);
      values.emplace_back(path, value);
      return {};
    }
    if (auto known = check_key(key, place); !known) return known;
    if (!value.is_object()) return wrong(place, "expected an object, not " + json_excerpt(value));
    for (const auto& [below, entry] : value.items()) {
      if (auto done = add(path + "." + below, entry, place + "/" + below, values); !done) return done;
    }
    return {};
  }

  [[nodiscard]] bool is_field(const std::string& path) const {
    const bool is_parameter = path.starts_with(parameters_prefix) && path.size() > parameters_prefix.size();
    return is_parameter || find_field(fields_, path) != nullptr;
  }

  [[nodiscard]] std::string unknown(const std::string& key) const {
    if (key == "policies") return "unknown key; a run has one policy: give a list of them under /grid/policy";
    std::vector<std::string> known{"trace", "window", "parameters"};
    for (const Field& field : fields_) known.push_back(field.path);
    return unknown_key(key, known);
  }

  SweepPoint point_;
  FieldTable fields_;
};

// Of whole numbers, from <= to.
std::uint64_t steps_between(const Json& from, const Json& to) {
  const auto bits = [](const Json& number) {
    return number.is_number_unsigned() ? number.get<std::uint64_t>()
                                       : static_cast<std::uint64_t>(number.get<std::int64_t>());
  };
  return bits(to) - bits(from);
}

// {"from": 1, "to": 5, "step": 2} as the list [1, 3, 5].
Result<Json> range_values(const Json& range, const std::string& place) {
  JsonFields fields(range, "", place);
  Json from, to, step = 1;
  for (const auto& [key, target] : {std::pair("from", &from), {"to", &to}, {"step", &step}}) {
    const Json* value = fields.find(key);
    if (value != nullptr && !value->is_number()) fields.refuse(key, "a number");
    if (value != nullptr) *target = *value;
  }
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (from.is_null() || to.is_null()) return wrong(place, "expected a list, or an object with from, to and step");
  const bool whole = from.is_number_integer() && to.is_number_integer() && step.is_number_integer();
  const double begin = from.get<double>(), end = to.get<double>(), by = step.get<double>();
  // Whole numbers may be seeds of 64 bits, which doubles cannot tell apart.
  const bool is_exact = whole && (begin >= 0 || end < 9e18);
  const bool rises = is_exact ? from <= to : end >= begin;
  if (!(by > 0 && rises)) return wrong(place, "expected a step above 0 and an end at or behind the beginning");
  double count = std::floor((end - begin) / by + 1e-9) + 1;
  if (count > 2.0 * static_cast<double>(most_sweep_points)) return wrong(place, "more than a million values");
  if (is_exact) count = static_cast<double>(steps_between(from, to) / step.get<std::uint64_t>()) + 1;
  if (count > static_cast<double>(most_sweep_points)) return wrong(place, "more than a million values");
  Json list = Json::array();
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    if (whole && from.is_number_unsigned()) {
      list.push_back(from.get<std::uint64_t>() + i * step.get<std::uint64_t>());
    } else if (whole) {
      list.push_back(from.get<std::int64_t>() + static_cast<std::int64_t>(i) * step.get<std::int64_t>());
    } else {
      list.push_back(std::round((begin + static_cast<double>(i) * by) * 1e9) / 1e9);  // 0.8, not 0.7999999999999999
    }
  }
  return list;
}

Result<std::vector<SweepAxis>> read_axes(const Json& grid, ValueReader& reader) {
  if (!grid.is_object()) return wrong("/grid", "expected an object, not " + json_excerpt(grid));
  std::vector<SweepAxis> axes;
  for (const auto& [key, given] : grid.items()) {
    const std::string place = "/grid/" + key;
    if (auto known = reader.check_key(key, place); !known) return Unexpected{known.error()};
    Json list = given;
    if (given.is_object()) {
      auto range = range_values(given, place);
      if (!range) return Unexpected{range.error()};
      list = *std::move(range);
    }
    if (!list.is_array()) return wrong(place, "expected a list of values, not " + json_excerpt(given));
    if (list.empty()) return wrong(place, "the list is empty: there is nothing to run");
    SweepAxis axis{.key = key, .choices = {}};
    for (std::size_t i = 0; i < list.size(); ++i) {
      auto values = reader.read(key, list[i], place + "/" + std::to_string(i));
      if (!values) return Unexpected{values.error()};
      axis.choices.push_back(*std::move(values));
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

Result<std::vector<SweepValues>> read_list(const Json& list, ValueReader& reader) {
  if (!list.is_array()) return wrong("/list", "expected a list of objects, not " + json_excerpt(list));
  if (list.empty()) return wrong("/list", "the list is empty: there is nothing to run");
  std::vector<SweepValues> entries;
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto values = reader.read_all(list[i], "/list/" + std::to_string(i));
    if (!values) return Unexpected{values.error()};
    entries.push_back(*std::move(values));
  }
  return entries;
}

// No field is given twice for a run: by the list and an axis, or by two axes.
Result<void> check_once(const Sweep& sweep) {
  std::map<std::string, std::string> given;  // path, and where
  for (const SweepAxis& axis : sweep.axes) {
    std::set<std::string> own;
    for (const SweepValues& choice : axis.choices) {
      for (const auto& [path, value] : choice) own.insert(path);
    }
    for (const std::string& path : own) {
      const auto [place, is_new] = given.emplace(path, "/grid/" + axis.key);
      if (!is_new) return wrong("/grid/" + axis.key, "gives " + path + ", which " + place->second + " gives too");
    }
  }
  for (std::size_t i = 0; i < sweep.list.size(); ++i) {
    for (const auto& [path, value] : sweep.list[i]) {
      const auto other = given.find(path);
      if (other == given.end()) continue;
      return wrong("/list/" + std::to_string(i), "gives " + path + ", which " + other->second + " gives too");
    }
  }
  return {};
}

// What sites exclude, and need.
Result<void> check_sites(const SweepPoint& point, bool files) {
  if (point.sites.empty())
    return point.router == "local" ? Result<void>{} : wrong("router", "expected sites beside it");
  if (const auto routers = parse_routers(point.router); !routers)
    return Unexpected{in_option("router", routers.error())};
  if (!point.run.cluster.empty() || !point.run.slurm_conf.empty())
    return wrong("cluster", "expected none beside sites, whose file has the clusters");
  if (!point.run.limits.empty()) return wrong("limits", "expected none beside sites, which have no limits");
  if (files) return wrong("files", "expected false beside sites: gpusched federate writes the files of such a run");
  const bool has_history = point.run.history_jobs > 0 || point.run.warmup > Time{} || point.run.measure > Time{};
  if (has_history) return wrong("measure", "expected warmup_jobs and measure_jobs alone beside sites");
  return check_conditions_of_sites(point.run.conditions);
}

std::vector<std::string> varied_paths(const Sweep& sweep) {
  std::vector<std::string> paths;
  const auto add = [&](const SweepValues& values) {
    for (const auto& [path, value] : values) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  };
  for (const SweepValues& entry : sweep.list) add(entry);
  for (const SweepAxis& axis : sweep.axes) {
    for (const SweepValues& choice : axis.choices) add(choice);
  }
  return paths;
}

Result<void> check_size(const Sweep& sweep) {
  double points = static_cast<double>(sweep.list.size());
  for (const SweepAxis& axis : sweep.axes) points *= static_cast<double>(axis.choices.size());
  if (points <= static_cast<double>(most_sweep_points)) return {};
  return wrong("/grid", "stands for " + exact_number(points) + " runs; at most " + std::to_string(most_sweep_points));
}

}  // namespace

std::string policy_with_parameters(std::string policy,
                                   const std::vector<std::pair<std::string, std::string>>& parameters) {
  for (const auto& [name, value] : parameters) {
    const std::size_t end = std::min({policy.find_first_of("{+"), policy.find(" via "), policy.size()});
    if (end < policy.size() && policy[end] == '{') {
      const std::size_t close = std::min(policy.find('}', end), policy.size());
      const bool is_empty = policy.find_first_not_of(' ', end + 1) == close;
      policy.insert(close, (is_empty ? "" : ",") + name + "=" + value);
    } else {
      policy.insert(end, "{" + name + "=" + value + "}");
    }
  }
  return policy;
}

std::optional<std::string> parameter_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  const bool numbers =
      value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& entry) { return entry.is_number(); });
  return numbers ? std::optional(value.dump()) : std::nullopt;
}

FieldTable sweep_fields(SweepPoint& point) {
  FieldTable fields;
  for (Field& field : scenario_fields(point.run)) {
    if (field.path == "policies") {
      fields.push_back({"policy", "", "the policy: NAME[{parameter=value,...}][+BACKFILL]", &point.policy});
    } else if (field.changes_results && field.path != "split" && field.path != "recorded") {
      fields.push_back(std::move(field));
    }
    if (!fields.empty() && fields.back().path == "trace.qos") {
      fields.push_back({"window.first_job", "", "number of the first job that is run, from 0", &point.first_job});
      fields.push_back({"window.jobs", "", "jobs that are run from there on; 0: all", &point.jobs});
      fields.push_back({.path = "load",
                        .flag = "",
                        .meaning = "factor on the arrival rate: the times between submissions are divided by it",
                        .target = &point.load,
                        .range = Field::Range{0.001, 1000}});
      fields.push_back(
          {"sites", "", "JSON of sites, as gpusched federate takes it, in place of a cluster", &point.sites});
      fields.push_back({"router", "", "which sends jobs to the sites: NAME[{parameter=value,...}]", &point.router});
    }
  }
  return fields;
}

FieldTable sweep_own_fields(Sweep& sweep) {
  return {
      {.path = "out",
       .flag = "--out",
       .meaning = "folder for sweep.sqlite, runs.csv and manifest.json",
       .target = &sweep.out},
      {.path = "threads",
       .flag = "--threads",
       .meaning = "runs at the same time; 0: one for each processor",
       .target = &sweep.threads,
       .range = Field::Range{0, most_threads}},
      {.path = "time_limit_s",
       .flag = "--time-limit",
       .meaning = "seconds on the clock after which a run is ended and recorded so; 0: none",
       .target = &sweep.time_limit},
      {.path = "files",
       .flag = "--files",
       .meaning = "also write a folder for each run, with the files of a replay",
       .target = &sweep.files},
      {.path = "launcher",
       .flag = "--launcher",
       .meaning = "where runs go: local (processes of this machine) or slurm (a job array)",
       .target = &sweep.launcher,
       .words = {"local", "slurm"}},
      {.path = "slurm.options",
       .flag = "--slurm-options",
       .meaning = "options of sbatch, as in a shell: \"--partition=gpu --time=1:00:00\"",
       .target = &sweep.slurm_options},
      {.path = "slurm.runs_per_task",
       .flag = "--runs-per-task",
       .meaning = "runs of an array task; 0: as many as make at most 100 tasks",
       .target = &sweep.runs_per_task,
       .range = Field::Range{0, most_sweep_points}},
  };
}

std::uint64_t Sweep::size() const {
  std::uint64_t points = list.size();
  for (const SweepAxis& axis : axes) points *= axis.choices.size();
  return points;
}

Result<SweepPoint> Sweep::point(std::uint64_t i) const {
  SweepPoint point = base;
  const FieldTable fields = sweep_fields(point);
  std::uint64_t block = size();
  const auto set_all = [&](const SweepValues& values) {
    for (const auto& [path, value] : values) {
      if (auto done = set_value(point, fields, path, value); !done) return done;  // checked when it was read
    }
    return Result<void>{};
  };
  block /= list.size();
  if (auto done = set_all(list[i / block]); !done) return Unexpected{done.error()};
  for (const SweepAxis& axis : axes) {
    i %= block;
    block /= axis.choices.size();
    if (auto done = set_all(axis.choices[i / block]); !done) return Unexpected{done.error()};
  }
  if (point.policy.empty())
    return wrong("/grid/policy", "no policy; give \"policy\": [\"fifo\", \"srtf\"] for example");
  point.run.policies = {policy_with_parameters(point.policy, point.parameters)};
  if (point.run.trace.empty()) return wrong("/base/trace", "no trace; give a file, or synthetic:philly");
  if (auto checked = check_scenario(point.run); !checked) return Unexpected{checked.error()};
  if (auto checked = check_sites(point, files); !checked) return Unexpected{checked.error()};
  return point;
}

Result<Sweep> read_sweep_json(const std::string& text, const std::string& file) {
  const auto in_file = [&](Error error) {
    error.file = file;
    return Unexpected{error};
  };
  auto document = parse_json_strictly(text, file);
  if (!document) return Unexpected{document.error()};
  document = Json(config_of(*document));
  Sweep sweep{.file = file, .document = *document, .base = {}, .list = {{}}, .axes = {}, .columns = {}, .out = {}};
  JsonFields fields(*document, file);
  read_table(fields, sweep_own_fields(sweep));
  const Json* const base = fields.find("base");
  const Json* const grid = fields.find("grid");
  const Json* const list = fields.find("list");
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  ValueReader reader;
  if (base != nullptr) {
    const auto values = reader.read_all(*base, "/base");
    if (!values) return in_file(values.error());
    const FieldTable of_base = sweep_fields(sweep.base);
    for (const auto& [path, entry] : *values) {
      if (auto set = set_value(sweep.base, of_base, path, entry); !set) return in_file(set.error());
    }
  }
  if (grid != nullptr) {
    auto axes = read_axes(*grid, reader);
    if (!axes) return in_file(axes.error());
    sweep.axes = *std::move(axes);
  }
  if (list != nullptr) {
    auto entries = read_list(*list, reader);
    if (!entries) return in_file(entries.error());
    sweep.list = *std::move(entries);
  }
  if (auto once = check_once(sweep); !once) return in_file(once.error());
  if (auto small = check_size(sweep); !small) return in_file(small.error());
  sweep.columns = varied_paths(sweep);
  return sweep;
}

Result<Sweep> read_sweep_file(const std::string& path) {
  const auto text = read_text_input(path);
  if (!text) return Unexpected{text.error()};
  return read_sweep_json(*text, path);
}

Json sweep_point_json(const SweepPoint& point) {
  SweepPoint copy = point;
  Json all = Json::object();
  for (const Field& field : sweep_fields(copy)) all[field.path] = field_json(field);
  for (const auto& [name, value] : point.parameters) all[std::string(parameters_prefix) + name] = value;
  return all;
}

std::string sweep_cell(const Json& point, const std::string& path) {
  const auto entry = point.find(path);
  if (entry == point.end()) return "";
  if (entry->is_string()) return entry->get<std::string>();
  return entry->is_number_float() ? exact_number(entry->get<double>()) : entry->dump();
}

namespace {

constexpr const char* any_parameter = "^parameters\\..+$";

Json axis_of(Json value, bool numbers) {
  Json list = {{"type", "array"}, {"minItems", 1}, {"items", std::move(value)}};
  return numbers ? Json{{"anyOf", {std::move(list), {{"$ref", "#/$defs/range"}}}}} : list;
}

}  // namespace

std::string key_pattern(const std::string& key) {
  std::string pattern = "^";
  for (const char c : key) pattern += c == '.' ? std::string("\\.") : std::string(1, c);
  return pattern + "$";
}

Json no_other_keys() { return {{"not", Json::object()}}; }

std::string sweep_schema() {
  SweepPoint point;
  Sweep sweep;
  const FieldTable fields = sweep_fields(point);
  Json base =
      Json::parse(fields_schema(fields, "", "What every run has: keys of a replay's file, and those of a sweep."));
  for (const char* key : {"$schema", "title"}) base.erase(key);
  base["properties"].erase("$schema");
  base["properties"]["parameters"] = {{"type", "object"},
                                      {"description", "parameters of the policy, beside those it names"}};
  const Json parameter = {{"type", {"number", "string", "boolean", "array"}}};
  for (const Field& field : fields) {  // keys may have dots too
    if (field.path.find('.') != std::string::npos)
      base["patternProperties"][key_pattern(field.path)] = field_schema(field);
  }
  base["patternProperties"][any_parameter] = parameter;
  base["additionalProperties"] = no_other_keys();
  Json axes = Json::object();
  const auto add_axis = [&](const std::string& key, Json value, bool numbers) {
    axes[key] = axis_of(std::move(value), numbers);
  };
  const auto is_number = [](const Json& value) {
    return value.contains("type") && (value["type"] == "number" || value["type"] == "integer");
  };
  for (const Field& field : fields) {
    if (field.path.find('.') != std::string::npos)
      add_axis(field.path, field_schema(field), is_number(field_schema(field)));
  }
  for (const auto& [key, value] : base["properties"].items()) {
    add_axis(key, {{"$ref", "#/properties/base/properties/" + key}}, is_number(value));
  }
  Json schema =
      Json::parse(fields_schema(sweep_own_fields(sweep), "gpusched sweep", "What `gpusched sweep FILE` takes."));
  const Json number = {{"type", "number"}};
  schema["$defs"]["range"] = {{"type", "object"},
                              {"properties", {{"from", number}, {"to", number}, {"step", number}}},
                              {"required", {"from", "to"}},
                              {"additionalProperties", false}};
  schema["properties"]["base"] = std::move(base);
  schema["properties"]["grid"] = {{"type", "object"},
                                  {"description", "Lists of values, or from, to and step; all combinations are run."},
                                  {"properties", std::move(axes)},
                                  {"patternProperties", {{any_parameter, axis_of(parameter, true)}}},
                                  {"additionalProperties", no_other_keys()}};
  schema["properties"]["list"] = {{"type", "array"},
                                  {"minItems", 1},
                                  {"description", "Sets of values; each is run with all combinations of the grid."},
                                  {"items", {{"$ref", "#/properties/base"}}}};
  return json_text(schema);
}

}  // namespace gpusched
