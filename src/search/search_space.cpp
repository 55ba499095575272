// SPDX-License-Identifier: Apache-2.0
#include "src/search/search_space.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "src/base/field_parser.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/sweep/sweep_file.hpp"

namespace gpusched {
namespace {

constexpr double most_exact = 9007199254740992;  // 2^53: doubles tell all whole numbers below apart

Unexpected wrong_space(const std::string& place, const std::string& message) {
  return Unexpected{Error{.message = message, .field = place}};
}

Gene gene_of(const NumberRange& range) {
  if (range.log) return {.lower = std::log(range.from), .upper = std::log(range.to)};
  return {.lower = range.from, .upper = range.to, .integer = range.integer};
}

Json number_of(const NumberRange& range, double gene) {
  const double value = range.log ? std::exp(gene) : gene;
  if (range.integer) return static_cast<std::int64_t>(std::clamp(std::round(value), range.from, range.to));
  const double rounded = std::strtod(formatted("%.4g", value).c_str(), nullptr);
  return std::clamp(rounded, range.from, range.to);
}

Result<NumberRange> read_range(const Json& given, const std::string& place) {
  NumberRange range;
  JsonFields fields(given, "", place);
  constexpr double any = std::numeric_limits<double>::max();
  fields.read("from", range.from, -any, any);
  fields.read("to", range.to, -any, any);
  fields.read("log", range.log);
  fields.read("integer", range.integer);
  const bool is_range = fields.has("from") && fields.has("to");
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (!is_range) return wrong_space(place, "expected from and to, or choices");
  if (!(range.from < range.to)) return wrong_space(place, "expected from below to");
  if (range.log && range.from <= 0) return wrong_space(place + "/from", "expected a number above 0, as log is true");
  const auto is_whole = [](double number) { return number == std::trunc(number) && std::abs(number) <= 1e15; };
  if (range.integer && !(is_whole(range.from) && is_whole(range.to))) {
    return wrong_space(place, "expected whole numbers, as integer is true");
  }
  return range;
}

bool is_constant(const Json& value) {
  if (!value.is_array()) return !value.is_object() && !value.is_null();
  return std::all_of(value.begin(), value.end(), [](const Json& entry) { return entry.is_number(); });
}

Result<std::vector<Json>> read_choices(const Json& given, const std::string& place) {
  if (given.size() != 1) return wrong_space(place, "expected choices alone, without from and to");
  const Json& list = given["choices"];
  if (!list.is_array() || list.empty()) return wrong_space(place + "/choices", "expected a list of values");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (is_constant(list[i])) continue;
    return wrong_space(place + "/choices/" + std::to_string(i),
                       "expected a number, a word, true, false or a list of numbers, not " + json_excerpt(list[i]));
  }
  return list.get<std::vector<Json>>();
}

Result<SearchedParameter> read_parameter(const std::string& name, const Json& given, const std::string& place) {
  SearchedParameter parameter{.name = name, .numbers = {}, .choices = {}};
  const bool is_list = given.is_array() && !given.empty() &&
                       std::all_of(given.begin(), given.end(), [](const Json& entry) { return entry.is_object(); });
  if (is_list) {
    parameter.list = true;
    for (std::size_t i = 0; i < given.size(); ++i) {
      auto range = read_range(given[i], place + "/" + std::to_string(i));
      if (!range) return Unexpected{range.error()};
      parameter.numbers.push_back(*range);
    }
  } else if (given.is_object() && given.contains("choices")) {
    auto choices = read_choices(given, place);
    if (!choices) return Unexpected{choices.error()};
    parameter.choices = *std::move(choices);
  } else if (given.is_object()) {
    auto range = read_range(given, place);
    if (!range) return Unexpected{range.error()};
    parameter.numbers.push_back(*range);
  } else if (is_constant(given)) {
    parameter.choices.push_back(given);
  } else {
    return wrong_space(
        place, "expected a range {from, to}, {choices}, a list of ranges or a value, not " + json_excerpt(given));
  }
  return parameter;
}

// What a parameter of a policy may be.
Result<void> check_parameter(const SearchedParameter& parameter, const PolicyInfo& policy, const PolicySpec& spec,
                             const std::string& place) {
  std::vector<std::string> names;
  const ParameterInfo* info = nullptr;
  for (const ParameterInfo& known : policy.parameters) {
    names.push_back(known.name);
    if (known.name == parameter.name) info = &known;
  }
  if (info == nullptr) {
    return wrong_space(place, "policy " + policy.name + " has no parameter '" + parameter.name + "'" +
                                  suggest_nearest(parameter.name, names));
  }
  if (spec.given.count(parameter.name) > 0) return wrong_space(place, "is given in the policy too: " + spec.text);
  if (parameter.numbers.empty()) return {};
  const bool takes_list = std::holds_alternative<std::vector<double>>(info->fallback);
  if (!takes_list && !std::holds_alternative<double>(info->fallback)) {
    return wrong_space(place, "is no number: expected choices");
  }
  if (takes_list != parameter.list) {
    return wrong_space(place, takes_list ? "takes a list: expected a list of ranges" : "is one number, not a list");
  }
  for (const NumberRange& range : parameter.numbers) {
    if (range.from >= info->least && range.to <= info->most) continue;
    return wrong_space(place,
                       "expected a range within " + exact_number(info->least) + " and " + exact_number(info->most));
  }
  return {};
}

// Takes "routers" out of an entry: one candidate each. One that is empty where it has none.
Result<std::vector<std::string>> take_routers(Json& given, const std::string& place) {
  std::vector<std::string> routers;
  if (!given.is_object() || !given.contains("routers")) return std::vector<std::string>{""};
  const Json list = given["routers"];
  given.erase("routers");
  const bool is_list = list.is_array() && !list.empty();
  if (!is_list) return wrong_space(place + "/routers", "expected a list of routers, not " + json_excerpt(list));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = place + "/routers/" + std::to_string(i);
    if (!list[i].is_string()) return wrong_space(at, "expected a router, as \"local\", not " + json_excerpt(list[i]));
    const auto specs = parse_routers(list[i].get<std::string>());
    if (!specs) return wrong_space(at, specs.error().to_string());
    if (specs->size() != 1) return wrong_space(at, "expected one router");
    routers.push_back(specs->front().text);
  }
  return routers;
}

Result<SearchedPolicy> read_policy(const Json& given, const std::string& place, const PolicyRegistry& registry) {
  SearchedPolicy policy;
  JsonFields fields(given, "", place);
  fields.read("policy", policy.policy);
  if (const Json* training = fields.find("train")) {
    policy.training = *training;
    if (!training->is_object()) fields.refuse("train", "an object");
  }
  static const Json none = Json::object();
  const Json* parameters = fields.find("parameters");
  if (parameters != nullptr && !parameters->is_object()) fields.refuse("parameters", "an object");
  if (parameters == nullptr) parameters = &none;
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (policy.policy.empty() == !policy.training) {
    return wrong_space(place, "expected a policy, as \"weighted+easy\", or a configuration to train, not both");
  }
  for (const auto& [name, value] : parameters->items()) {
    auto parameter = read_parameter(name, value, place + "/parameters/" + name);
    if (!parameter) return Unexpected{parameter.error()};
    policy.parameters.push_back(*std::move(parameter));
  }
  if (policy.training) {
    policy.policy = "train";
    return policy;
  }
  const auto specs = parse_policies(registry, policy.policy);
  if (!specs) return wrong_space(place + "/policy", specs.error().to_string());
  if (specs->size() != 1) return wrong_space(place + "/policy", "expected one policy");
  const auto info = registry.find(specs->front().name);
  if (!info) return wrong_space(place + "/policy", info.error().to_string());
  for (const SearchedParameter& parameter : policy.parameters) {
    if (parameter.name.starts_with(condition_prefix)) continue;  // read with the runs
    const std::string below = place + "/parameters/" + parameter.name;
    if (auto done = check_parameter(parameter, **info, specs->front(), below); !done) return Unexpected{done.error()};
  }
  return policy;
}

// The value that CandidateSpace::policy() wrote: of the type that the key takes.
Json condition_value(const std::string& path, const std::string& text) {
  SweepPoint point;
  const FieldTable fields = sweep_fields(point);
  const Field* const field = base_field(fields, path);
  const bool is_text = field == nullptr || std::holds_alternative<std::string*>(field->target) ||
                       std::holds_alternative<TextTarget>(field->target);
  if (is_text) return text;
  if (text == "true" || text == "false") return text == "true";
  const auto number = parse_number(text);
  if (!number) return text;
  if (!takes_whole_numbers(*field)) return *number;
  if (const auto whole = parse_exact<std::uint64_t>(text)) return *whole;
  const bool is_whole = *number >= 0 && *number <= most_exact && *number == std::trunc(*number);  // as 1e+06
  return is_whole ? Json(static_cast<std::uint64_t>(*number)) : Json(*number);
}

}  // namespace

const Field* base_field(const FieldTable& fields, const std::string& path) {
  const Field* const field = find_field(fields, path);
  return field != nullptr ? field : find_field(fields, path + ".path");  // "trace" is short for "trace.path"
}

bool takes_whole_numbers(const Field& field) {
  return std::holds_alternative<std::uint64_t*>(field.target) || std::holds_alternative<std::uint32_t*>(field.target);
}

CandidateSpace::CandidateSpace(std::vector<SearchedPolicy> policies) : policies_(std::move(policies)) {
  // pagmo wants the integers last.
  for (const bool integers : {false, true}) {
    if (integers && policies_.size() > 1) {
      policy_gene_ = genes_.size();
      genes_.push_back({.lower = 0, .upper = static_cast<double>(policies_.size() - 1), .integer = true});
    }
    for (std::size_t s = 0; s < policies_.size(); ++s) {
      for (std::size_t p = 0; p < policies_[s].parameters.size(); ++p) {
        const SearchedParameter& parameter = policies_[s].parameters[p];
        for (std::size_t n = 0; n < parameter.numbers.size(); ++n) {
          const Gene gene = gene_of(parameter.numbers[n]);
          if (gene.integer == integers) add_gene({s, p, n, 0}, gene);
        }
        if (integers && parameter.choices.size() > 1) {
          add_gene({s, p, 0, 0},
                   {.lower = 0, .upper = static_cast<double>(parameter.choices.size() - 1), .integer = true});
        }
      }
    }
  }
}

void CandidateSpace::add_gene(const Slot& slot, const Gene& gene) {
  slots_.push_back(slot);
  slots_.back().gene = genes_.size();
  genes_.push_back(gene);
}

Candidate CandidateSpace::decode(std::span<const double> genome) const {
  Candidate candidate;
  if (policy_gene_) candidate.space = static_cast<std::size_t>(genome[*policy_gene_]);
  const SearchedPolicy& policy = policies_[candidate.space];
  std::vector<std::vector<Json>> numbers(policy.parameters.size());
  std::vector<std::size_t> chosen(policy.parameters.size(), 0);
  for (std::size_t p = 0; p < numbers.size(); ++p) numbers[p].resize(policy.parameters[p].numbers.size());
  for (const Slot& slot : slots_) {
    if (slot.space != candidate.space) continue;
    const SearchedParameter& parameter = policy.parameters[slot.parameter];
    if (parameter.numbers.empty()) {
      chosen[slot.parameter] = static_cast<std::size_t>(genome[slot.gene]);
    } else {
      numbers[slot.parameter][slot.number] = number_of(parameter.numbers[slot.number], genome[slot.gene]);
    }
  }
  for (std::size_t p = 0; p < numbers.size(); ++p) {
    const SearchedParameter& parameter = policy.parameters[p];
    const auto below = [](const Json& a, const Json& b) { return a.get<double>() < b.get<double>(); };
    std::sort(numbers[p].begin(), numbers[p].end(), below);
    candidate.values.emplace_back(parameter.name, !parameter.choices.empty() ? parameter.choices[chosen[p]]
                                                  : parameter.list           ? Json(numbers[p])
                                                                             : numbers[p].front());
  }
  return candidate;
}

std::vector<Candidate> CandidateSpace::corners() const {
  std::size_t count = 2;
  for (const SearchedPolicy& policy : policies_) {
    for (const SearchedParameter& parameter : policy.parameters) count = std::max(count, parameter.choices.size());
  }
  std::vector<Candidate> corners;
  for (std::size_t space = 0; space < policies_.size(); ++space) {
    for (std::size_t corner = 0; corner < count; ++corner) {
      Genome genome(genes_.size());
      if (policy_gene_) genome[*policy_gene_] = static_cast<double>(space);
      for (const Slot& slot : slots_) {
        const Gene& gene = genes_[slot.gene];
        const SearchedParameter& parameter = policies_[slot.space].parameters[slot.parameter];
        const double share = static_cast<double>(slot.number + 1) / static_cast<double>(parameter.numbers.size() + 1);
        genome[slot.gene] = parameter.list              ? gene.lower + share * (gene.upper - gene.lower)
                            : parameter.numbers.empty() ? std::min(gene.upper, static_cast<double>(corner))
                            : corner % 2 == 0           ? gene.lower
                                                        : gene.upper;
      }
      corners.push_back(decode(genome));
    }
  }
  return corners;
}

std::string CandidateSpace::policy(const Candidate& candidate) const {
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string conditions;
  for (const auto& [name, value] : candidate.values) {
    // Not dump(): "2.0" and "2" would be two policies. But seeds may have more digits than a double.
    const auto text = [](const Json& one) {
      if (one.is_string()) return one.get<std::string>();
      if (!one.is_number()) return one.dump();
      const double number = one.get<double>();
      return one.is_number_integer() && std::abs(number) >= most_exact ? one.dump() : exact_number(number);
    };
    std::string all;
    if (value.is_array()) {
      for (const Json& one : value) all += (all.empty() ? "[" : ",") + text(one);
      all += all.empty() ? "[]" : "]";
    } else {
      all = text(value);
    }
    if (name.starts_with(condition_prefix)) {
      conditions += (conditions.empty() ? " with " : " and ") + name.substr(condition_prefix.size()) + "=" + all;
    } else {
      parameters.emplace_back(name, all);
    }
  }
  const SearchedPolicy& searched = policies_[candidate.space];
  return routed_text(policy_with_parameters(searched.policy, parameters), searched.router) + conditions;
}

CandidateText parts_of_candidate(const std::string& text) {
  const std::size_t end = text.find(" with ");
  CandidateText parts{.policy = text.substr(0, end), .conditions = Json::object()};
  for (std::size_t at = end; at != std::string::npos;) {
    at = text.find(' ', at + 1) + 1;
    const std::size_t next = text.find(" and ", at), equals = text.find('=', at);
    const std::string value = text.substr(equals + 1, next == std::string::npos ? next : next - equals - 1);
    std::string path = text.substr(at, equals - at);
    Json json = condition_value(path, value);
    std::replace(path.begin(), path.end(), '.', '/');
    parts.conditions[Json::json_pointer("/" + path)] = std::move(json);
    at = next;
  }
  return parts;
}

Result<std::vector<SearchedPolicy>> read_searched_policies(const Json& list, const PolicyRegistry& registry) {
  if (!list.is_array() || list.empty()) return wrong_space("/policies", "expected a list of policies with parameters");
  std::vector<SearchedPolicy> policies;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = "/policies/" + std::to_string(i);
    Json given = list[i];
    const auto routers = take_routers(given, place);
    if (!routers) return Unexpected{routers.error()};
    auto policy = read_policy(given, place, registry);
    if (!policy) return Unexpected{policy.error()};
    if (policy->training && !routers->front().empty())
      return wrong_space(place + "/routers", "expected a policy, not a configuration to train");
    for (const std::string& router : *routers) {
      policies.push_back(*policy);
      policies.back().router = router;
      policies.back().entry = i;
    }
  }
  if (CandidateSpace(policies).genes().empty())
    return wrong_space("/policies", "nothing varies: give ranges or choices");
  return policies;
}

}  // namespace gpusched
