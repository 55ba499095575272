// SPDX-License-Identifier: Apache-2.0
#include "src/sim/policy_text.hpp"

#include <algorithm>
#include <charconv>

#include "src/base/nearest_name.hpp"
#include "src/base/wrapped_text.hpp"

namespace gpusched {
namespace {

std::string number_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string value_text(const ParameterValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  std::string text = "[";
  for (const double entry : std::get<std::vector<double>>(value)) {
    text += (text.size() > 1 ? "," : "") + number_text(entry);
  }
  return text + "]";
}

}  // namespace

std::string policy_list_text(const PolicyRegistry& registry) {
  std::size_t width = 0;
  for (const PolicyInfo& policy : registry.rows()) width = std::max(width, policy.name.size());
  std::string text;
  for (const PolicyInfo& policy : registry.rows()) {
    text += policy.name + std::string(width - policy.name.size() + 2, ' ') + policy.summary + "\n";
  }
  return text + "\n`gpusched policies NAME` shows parameters and source.\n";
}

std::string policy_text(const PolicyInfo& policy) {
  constexpr std::size_t facts = 18, meanings = 6;  // columns where they begin
  const auto fact = [](std::string name, const std::string& value) {
    name.resize(facts, ' ');
    return name + wrapped(value, terminal_columns - facts, facts) + "\n";
  };
  std::string text = wrapped(policy.name + ": " + policy.summary, terminal_columns) + "\n\n";
  if (!policy.aliases.empty()) text += fact("also called", joined(policy.aliases, ", "));
  text += fact("source", policy.source);
  text += fact("cost of an event", policy.complexity);
  text += fact("preempts", policy.preemptive ? "yes" : "no");
  text += fact("work-conserving", policy.work_conserving ? "yes" : "no");
  if (policy.parameters.empty()) return text + "\nIt has no parameters.\n";
  text += "\nParameters, as in --policy '" + policy.name + "{" + policy.parameters.front().name + "=" +
          value_text(policy.parameters.front().fallback) + "}':\n";
  for (const ParameterInfo& parameter : policy.parameters) {
    std::string meaning = parameter.meaning;
    if (!parameter.words.empty()) meaning += " (" + joined(parameter.words, "|") + ")";
    const bool numeric = std::holds_alternative<double>(parameter.fallback) ||
                         std::holds_alternative<std::vector<double>>(parameter.fallback);
    if (numeric) meaning += " (" + number_text(parameter.least) + " to " + number_text(parameter.most) + ")";
    text += "  " + parameter.name + " = " + value_text(parameter.fallback) + "\n" + std::string(meanings, ' ') +
            wrapped(meaning, terminal_columns - meanings, meanings) + "\n";
  }
  return text;
}

}  // namespace gpusched
