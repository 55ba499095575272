// SPDX-License-Identifier: Apache-2.0
#include "src/sim/world_variation.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

// "checkpoint-cost" of --checkpoint-cost; "" where a field has no flag.
std::string option_name(const Field& field) { return field.flag.empty() ? "" : field.flag.substr(2); }

Result<const Field*> field_of(const FieldTable& fields, const std::string& key) {
  std::vector<std::string> known;
  for (const Field& field : fields) {
    if (field.path == key || (!field.flag.empty() && option_name(field) == key)) return &field;
    known.push_back(field.path);
    if (!field.flag.empty()) known.push_back(option_name(field));
  }
  return unexpected("unknown key '" + key + "'" + suggest_nearest(key, known));
}

// Worlds that measure other jobs cannot be compared, and what is only shown makes no world.
Result<void> check_key(const Field& field, const std::string& key) {
  if (!field.changes_results || field.path == "split" || field.path == "recorded") {
    return unexpected("key '" + key + "' changes no result");
  }
  if (field.path.starts_with("measure.") || field.path == "history_jobs") {
    return unexpected("key '" + key + "': worlds are compared by the same jobs, all of them");
  }
  return {};
}

Result<void> add_number(const Field& field, const std::string& key, const std::string& value) {
  const auto more = parse_number(value);
  const auto sum = [&](const auto* target) -> std::string {
    using Target = std::remove_cvref_t<decltype(*target)>;
    if constexpr (std::is_same_v<Target, Time>) {
      return exact_number(to_seconds(*target) + *more);
    } else if constexpr (std::is_arithmetic_v<Target> && !std::is_same_v<Target, bool>) {
      return exact_number(static_cast<double>(*target) + *more);
    } else {
      return "";
    }
  };
  const bool is_number = std::visit(
      [](const auto& target) {
        using Target = std::remove_cvref_t<decltype(target)>;
        return std::is_same_v<Target, std::uint32_t*> || std::is_same_v<Target, std::uint64_t*> ||
               std::is_same_v<Target, double*> || std::is_same_v<Target, Time*>;
      },
      field.target);
  if (!is_number) return unexpected("key '" + key + "': expected KEY=VALUE; += is for cluster and for numbers");
  if (!more) return unexpected("key '" + key + "': expected a number behind +=, not '" + value + "'");
  const std::string text = std::visit(
      [&](const auto& target) -> std::string {
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(target)>>) return sum(target);
        return "";
      },
      field.target);
  return set_field(field, text);
}

Result<void> set(Scenario& scenario, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return unexpected("expected KEY=VALUE or KEY+=VALUE, not '" + std::string(setting) + "'");
  }
  const bool adds = setting[equals - 1] == '+';
  const std::string key(trim(setting.substr(0, equals - (adds ? 1 : 0))));
  const std::string value(trim(setting.substr(equals + 1)));
  const FieldTable fields = scenario_fields(scenario);
  const auto field = field_of(fields, key);
  if (!field) return Unexpected{field.error()};
  if (auto fits = check_key(**field, key); !fits) return fits;
  if (!adds) return set_field(**field, value);
  if ((*field)->path != "cluster") return add_number(**field, key, value);
  scenario.cluster += "+" + value;
  return {};
}

}  // namespace

Result<World> vary(const Scenario& base, std::string_view text) {
  World world{.name = std::string(trim(text)), .scenario = base};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    if (auto done = set(world.scenario, trim(text.substr(begin, end - begin))); !done) return Unexpected{done.error()};
    begin = end + 1;
  }
  return world;
}

Result<void> check_world(const Scenario& scenario) {
  if (auto checked = check_scenario(scenario); !checked) return checked;
  if (scenario.policies.size() != 1) {
    return bad_option("policies", "expected one policy, not " + std::to_string(scenario.policies.size()) +
                                      "; --vary policy=NAME makes a world of another one");
  }
  const auto refuse = [](std::string_view path) { return bad_option(path, "compare measures all jobs; leave it out"); };
  if (scenario.history_jobs != 0) return refuse("history_jobs");
  if (scenario.warmup_jobs != 0) return refuse("measure.warmup_jobs");
  if (scenario.measure_jobs != 0) return refuse("measure.measure_jobs");
  if (scenario.warmup.us != 0) return refuse("measure.warmup_s");
  if (scenario.measure.us != 0) return refuse("measure.measure_s");
  return {};
}

Result<std::vector<World>> worlds_of(const Scenario& base, const std::vector<std::string>& variations) {
  if (auto checked = check_world(base); !checked) return Unexpected{checked.error()};
  std::vector<World> worlds{{.name = base_world_name, .scenario = base}};
  for (const std::string& text : variations) {
    const auto refuse = [&](const Error& error) {
      return bad_option("--vary", "'" + text + "': " + error.to_string());
    };
    auto world = vary(base, text);
    if (!world) return refuse(world.error());
    if (auto checked = check_world(world->scenario); !checked) return refuse(checked.error());
    const auto same = [&](const World& other) { return other.name == world->name; };
    if (std::any_of(worlds.begin(), worlds.end(), same)) return refuse(Error{.message = "given twice"});
    worlds.push_back(*std::move(world));
  }
  return worlds;
}

}  // namespace gpusched
