// SPDX-License-Identifier: Apache-2.0
#include "src/sim/policy_text.hpp"

#include <algorithm>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/wrapped_text.hpp"
#include "src/policies/backfill/backfill.hpp"

namespace gpusched {
namespace {

std::string value_text(const ParameterValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return exact_number(*number);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  std::string text = "[";
  if (const auto* policies = std::get_if<std::vector<std::string>>(&value)) return text + joined(*policies, ",") + "]";
  for (const double entry : std::get<std::vector<double>>(value)) {
    text += (text.size() > 1 ? "," : "") + exact_number(entry);
  }
  return text + "]";
}

bool is_numeric(const ParameterInfo& parameter) {
  return std::holds_alternative<double>(parameter.fallback) ||
         std::holds_alternative<std::vector<double>>(parameter.fallback);
}

Json value_json(const ParameterValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string_view type_word(const ParameterInfo& parameter) {
  static constexpr std::string_view words[] = {"boolean", "number", "word", "list of numbers", "list of policies"};
  return words[parameter.fallback.index()];
}

// The unit that a parameter's name ends in.
Json unit_json(const std::string& name) {
  if (name.ends_with("_gpu_s")) return "GPU-seconds";
  return name.ends_with("_s") ? Json("seconds") : Json();
}

Json parameters_json(const std::vector<ParameterInfo>& parameters) {
  Json list = Json::array();
  for (const ParameterInfo& parameter : parameters) {
    Json entry = {{"name", parameter.name},
                  {"type", type_word(parameter)},
                  {"default", value_json(parameter.fallback)},
                  {"unit", unit_json(parameter.name)},
                  {"meaning", parameter.meaning}};
    if (is_numeric(parameter)) {
      entry["least"] = parameter.least;
      entry["most"] = parameter.most;
    }
    if (!parameter.words.empty()) entry["words"] = parameter.words;
    list.push_back(std::move(entry));
  }
  return list;
}

// What rows of policies and of backfilling methods have in common.
template <class Info>
Json row_json(const Info& info) {
  return {{"name", info.name},
          {"summary", info.summary},
          {"source", info.source},
          {"cost_of_an_event", info.complexity},
          {"parameters", parameters_json(info.parameters)}};
}

// A trace that states all that a policy may ask for.
JobTable complete_trace() {
  JobTableBuilder jobs;
  for (const char* id : {"1", "2"}) {
    jobs.add({.id = id,
              .submit = whole_seconds(1),
              .work = whole_seconds(1),
              .estimate = whole_seconds(2),
              .start = whole_seconds(1),
              .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu},
              .user = "user",
              .group = "group",
              .vc = "vc",
              .family = "family",
              .priority = 1,
              .deadline = whole_seconds(9)});
  }
  return *std::move(jobs).build();
}

// Whether the policy with its defaults reads true run times; null where no trace alone makes it (trained ones).
Json clairvoyant_json(const PolicyRegistry& registry, const PolicyInfo& policy) {
  const JobTable jobs = complete_trace();
  const Cluster cluster = Cluster::homogeneous(1, 8);
  PowerModel power;
  power.gpus.push_back({.load = {}, .limits = {{.limit_w = 1}}});
  power.kinds.emplace_back();
  power.kind_of = {0};
  power.places = {{.carbon_g_per_kwh = Signal(1), .usd_per_mwh = Signal(1)}};
  const auto made = registry.make({.text = policy.name, .name = policy.name, .given = {}},
                                  {.jobs = &jobs, .cluster = &cluster, .power = &power});
  return made ? Json(made->clairvoyant()) : Json();
}

Json policy_row_json(const PolicyRegistry& registry, const PolicyInfo& policy) {
  Json row = row_json(policy);
  row["aliases"] = policy.aliases;
  row["preempts"] = policy.preemptive;
  row["work_conserving"] = policy.work_conserving;
  row["clairvoyant"] = clairvoyant_json(registry, policy);
  row["can_be_backfilled"] = policy.order || policy.backfilled;
  return row;
}

}  // namespace

std::string policies_json(const PolicyRegistry& registry) {
  Json policies = Json::array(), ways = Json::array();
  for (const PolicyInfo& policy : registry.rows()) policies.push_back(policy_row_json(registry, policy));
  for (const BackfillInfo& way : backfill_infos()) ways.push_back(row_json(way));
  return json_text({{"policies", std::move(policies)}, {"backfill", std::move(ways)}});
}

std::string policy_json(const PolicyRegistry& registry, const PolicyInfo& policy) {
  return json_text(policy_row_json(registry, policy));
}

std::string backfill_json(const BackfillInfo& way) { return json_text(row_json(way)); }

std::string canonical_text(const PolicySpec& policy, const PolicyRegistry& registry) {
  const auto row = registry.find(policy.name);
  const bool is_alias = row && std::count((*row)->aliases.begin(), (*row)->aliases.end(), policy.name) > 0;
  std::string text = is_alias ? (*row)->name : policy.name;
  std::string parameters;
  for (const auto& [name, value] : policy.given) {
    parameters += (parameters.empty() ? "" : ",") + name + "=" + value_text(value);
  }
  if (!parameters.empty()) text += "{" + parameters + "}";
  for (const PolicySpec& backfill : policy.backfill) text += "+" + canonical_text(backfill, registry);
  return text;
}

std::string policy_list_text(const PolicyRegistry& registry) {
  std::size_t width = 0;
  for (const PolicyInfo& policy : registry.rows()) width = std::max(width, policy.name.size());
  width += 2;
  const auto line = [width](const auto& row) {
    return row.name + std::string(width - row.name.size(), ' ') +
           wrapped(row.summary, terminal_columns - width, width) + "\n";
  };
  std::string text;
  for (const PolicyInfo& policy : registry.rows()) text += line(policy);
  text += "\nWays of backfilling, behind a policy's +, as in fifo+easy:\n";
  for (const BackfillInfo& way : backfill_infos()) text += line(way);
  return text + "\n`gpusched policies NAME` shows parameters and source; NAME may be ./FILE.so.\n";
}

namespace {

constexpr std::size_t fact_columns = 18;  // where facts begin

std::string fact(std::string name, const std::string& value) {
  name.resize(fact_columns, ' ');
  return name + wrapped(value, terminal_columns - fact_columns, fact_columns) + "\n";
}

// `called`: what stands before the braces on the command line.
std::string parameters_text(const std::string& called, const std::vector<ParameterInfo>& parameters) {
  constexpr std::size_t meanings = 6;  // column where they begin
  if (parameters.empty()) return "\nIt has no parameters.\n";
  std::string text = "\nParameters, as in --policy '" + called + "{" + parameters.front().name + "=" +
                     value_text(parameters.front().fallback) + "}':\n";
  for (const ParameterInfo& parameter : parameters) {
    std::string meaning = parameter.meaning;
    if (!parameter.words.empty()) meaning += " (" + joined(parameter.words, "|") + ")";
    if (is_numeric(parameter))
      meaning += " (" + exact_number(parameter.least) + " to " + exact_number(parameter.most) + ")";
    text += "  " + parameter.name + " = " + value_text(parameter.fallback) + "\n" + std::string(meanings, ' ') +
            wrapped(meaning, terminal_columns - meanings, meanings) + "\n";
  }
  return text;
}

}  // namespace

std::string policy_text(const PolicyInfo& policy) {
  const std::string called = policy.name.ends_with(':') ? policy.name + "DIR" : policy.name;  // rl:DIR
  std::string text = wrapped(called + ": " + policy.summary, terminal_columns) + "\n\n";
  if (!policy.aliases.empty()) text += fact("also called", joined(policy.aliases, ", "));
  text += fact("source", policy.source);
  text += fact("cost of an event", policy.complexity);
  text += fact("preempts", policy.preemptive ? "yes" : "no");
  text += fact("work-conserving", policy.work_conserving ? "yes" : "no");
  return text + parameters_text(called, policy.parameters);
}

std::string backfill_text(const BackfillInfo& way) {
  std::string text = wrapped("+" + way.name + ": " + way.summary, terminal_columns) + "\n\n";
  text += fact("source", way.source);
  text += fact("cost of an event", way.complexity);
  return text + parameters_text("fifo+" + way.name, way.parameters);
}

}  // namespace gpusched
