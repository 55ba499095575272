// SPDX-License-Identifier: Apache-2.0
#include "src/policies/seam/registry.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/seam/policy_library.hpp"
#include "src/policies/seam/policy_log.hpp"
#include "src/policies/seam/priority_order.hpp"

namespace gpusched {
namespace {

constexpr bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '@' || c == '.' || c == ':' || c == '/';
}

// Names with a '+' that is no way of backfilling.
constexpr std::string_view names_with_plus[] = {"pwr+fgd"};

// A cursor over the text of a policy list. Grammar: list = policy {"," policy}; policy = call ["+" call]; call = name
// ["{" [pair {"," pair}] "}"]; pair = name "=" value; value = "true" | "false" | number | word | "[" number {","
// number} "]" | "[" member {"," member} "]"; member = policy | word ">" word | word "=" number.
class SpecParser {
 public:
  explicit SpecParser(std::string_view text) : text_(text) {}

  Result<std::vector<PolicySpec>> list() {
    std::vector<PolicySpec> specs;
    do {
      auto spec = policy();
      if (!spec) return Unexpected{spec.error()};
      specs.push_back(std::move(*spec));
    } while (take(','));
    if (at_ != text_.size()) return fail("',' between policies");
    return specs;
  }

 private:
  Result<PolicySpec> policy() {
    auto spec = call("a policy name");
    if (!spec || !take('+')) return spec;
    auto backfill = call("a way of backfilling behind '+'");
    if (!backfill) return backfill;
    spec->text += "+" + backfill->text;
    spec->backfill.push_back(*std::move(backfill));
    return spec;
  }

  Result<PolicySpec> call(const std::string& what) {
    skip_spaces();
    const std::size_t begin = at_;
    PolicySpec spec;
    pass_name();
    // Behind a family's colon (rl:DIR) stands a path: everything up to the next comma or brace belongs to it. What
    // comes with the program (rl:builtin/NAME) is a name.
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.find(':') != std::string_view::npos && !name.starts_with("rl:builtin/")) {
      at_ = std::min(text_.find_first_of(ends(), at_), text_.size());
    } else if (name.find('/') != std::string_view::npos && names_policy_library(name)) {
      at_ = end_of_path(begin);
    }
    spec.name = text_.substr(begin, at_ - begin);
    if (spec.name.empty()) return fail(what);
    if (spec.name.ends_with(':')) return fail("a path behind '" + spec.name + "'");
    spec.text = spec.name;
    const std::size_t braces = at_;
    if (take('{') && !take('}')) {
      do {
        skip_spaces();
        const std::string key = word();
        if (key.empty()) return fail("a parameter name");
        if (!take('=')) return fail("'=' after parameter '" + key + "'");
        auto parsed = value();
        if (!parsed) return Unexpected{parsed.error()};
        if (!spec.given.emplace(key, std::move(*parsed)).second) return fail("parameter '" + key + "' only once");
      } while (take(','));
      if (!take('}')) return fail("',' or '}'");
    }
    std::string given(text_.substr(braces, at_ - braces));
    std::erase(given, ' ');
    spec.text += given;
    return spec;
  }

  void pass_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    for (const std::string_view name : names_with_plus) {
      const bool is_begun = text_.substr(begin, at_ - begin) == name.substr(0, name.find('+'));
      const std::string_view rest = text_.substr(begin).substr(0, name.size() + 1);
      if (!is_begun || !rest.starts_with(name)) continue;
      if (rest.size() == name.size() || !is_name_character(rest.back())) at_ = begin + name.size();
    }
  }

  // What ends a path.
  [[nodiscard]] const char* ends() const { return depth_ > 0 ? ",{]}" : ",{"; }

  // Of the path of a file that is a policy: at the next comma or brace, and before the way of backfilling of a library.
  [[nodiscard]] std::size_t end_of_path(std::size_t begin) const {
    const std::string_view path = text_.substr(begin, text_.find_first_of(ends(), begin) - begin);
    const std::size_t suffix = path.find(".so+");
    if (suffix != std::string_view::npos) return begin + suffix + std::string_view(".so").size();
    return begin + path.find_last_not_of(' ') + 1;
  }

  Result<ParameterValue> value() {
    skip_spaces();
    if (take('[')) {
      if (take(']')) return ParameterValue{std::vector<double>{}};
      const std::size_t begin = at_;
      skip_spaces();
      const bool is_number = parse_number(word()).has_value();
      at_ = begin;
      return is_number ? numbers() : policies();
    }
    const std::string text = word();
    if (text.empty()) return fail("a value");
    if (text == "true" || text == "false") return ParameterValue{text == "true"};
    if (const auto number = parse_number(text)) return ParameterValue{*number};
    return ParameterValue{text};
  }

  Result<ParameterValue> numbers() {
    std::vector<double> numbers;
    do {
      skip_spaces();
      const auto parsed = parse_number(word());
      if (!parsed) return fail("a number");
      numbers.push_back(*parsed);
    } while (take(','));
    if (!take(']')) return fail("',' or ']'");
    return ParameterValue{numbers};
  }

  Result<ParameterValue> policies() {
    std::vector<std::string> texts;
    if (++depth_ > most_depth) return fail("no list of policies so far inside others");
    do {
      if (auto pair = pair_of_words()) {
        texts.push_back(*std::move(pair));
        continue;
      }
      auto member = policy();
      if (!member) return Unexpected{member.error()};
      texts.push_back(std::move(member->text));
    } while (take(','));
    --depth_;
    if (!take(']')) return fail("',' or ']'");
    return ParameterValue{texts};
  }

  // A member of a list like A>B or A=60: everything up to the next comma or bracket. Nothing if it is another.
  std::optional<std::string> pair_of_words() {
    skip_spaces();
    const std::string_view member = text_.substr(at_, text_.find_first_of(",{]}", at_) - at_);
    const bool ends = at_ + member.size() < text_.size() && text_[at_ + member.size()] != '{';
    if (!ends || member.find_first_of("=>") == std::string_view::npos) return std::nullopt;
    at_ += member.size();
    return std::string(trim(member));
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_character(text_[at_]) || text_[at_] == '+')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  [[nodiscard]] Unexpected fail(const std::string& expected) const {
    return unexpected("policy list '" + std::string(text_) + "', character " + std::to_string(at_ + 1) + ": expected " +
                      expected);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  static constexpr int most_depth = 4;
  int depth_ = 0;  // of lists of policies
};

std::string type_name(const ParameterValue& value) {
  static constexpr std::string_view names[] = {"true or false", "a number", "a word", "a list of numbers",
                                               "a list of policies or pairs"};
  return std::string(names[value.index()]);
}

Result<void> check_value(const std::string& owner, const ParameterInfo& parameter, const ParameterValue& value) {
  const auto fail = [&](const std::string& why) {
    return Unexpected{Error{.message = why, .field = owner + ", parameter " + parameter.name}};
  };
  // An empty list is written alike for numbers and for policies.
  const auto* policies = std::get_if<std::vector<std::string>>(&parameter.fallback);
  if (policies != nullptr && value == ParameterValue{std::vector<double>{}}) {
    return policies->empty() ? Result<void>{} : fail("expected one policy or more");
  }
  if (value.index() != parameter.fallback.index()) return fail("expected " + type_name(parameter.fallback));
  const auto outside = [&parameter](double x) {
    return !(x >= parameter.least && x <= parameter.most) || (parameter.is_count && x != std::floor(x));
  };
  const auto range = [&parameter] {
    return "expected a " + std::string(parameter.is_count ? "whole number" : "number") + " between " +
           exact_number(parameter.least) + " and " + exact_number(parameter.most);
  };
  if (const auto* number = std::get_if<double>(&value); number != nullptr && outside(*number)) return fail(range());
  if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    if (std::any_of(list->begin(), list->end(), outside)) return fail(range() + " in every entry");
  }
  if (const auto* word = std::get_if<std::string>(&value); word != nullptr && !parameter.words.empty()) {
    if (std::find(parameter.words.begin(), parameter.words.end(), *word) == parameter.words.end()) {
      return fail("expected one of " + joined(parameter.words, "|") + suggest_nearest(*word, parameter.words));
    }
  }
  return {};
}

Unexpected cannot_backfill(const PolicySpec& spec) {
  return unexpected("policy " + spec.text + ": expected a policy without backfilling here");
}

}  // namespace

Result<std::vector<PolicySpec>> parse_policy_list(std::string_view text) { return SpecParser(text).list(); }

Result<const PolicyInfo*> PolicyRegistry::find(std::string_view name) const {
  std::vector<std::string> known;
  for (const PolicyInfo& row : rows_) {
    if (row.name == name || std::find(row.aliases.begin(), row.aliases.end(), name) != row.aliases.end()) return &row;
    known.push_back(row.name);
    known.insert(known.end(), row.aliases.begin(), row.aliases.end());
  }
  for (const PolicyInfo& row : prefixes_) {
    if (name.starts_with(row.name)) return &row;
  }
  if (names_policy_library(name)) return policy_of_library(std::string(name));
  return unexpected("unknown policy '" + std::string(name) + "'" + suggest_nearest(name, known) +
                    "; `gpusched policies` lists all");
}

Result<PolicyParameters> complete_parameters(const std::string& owner, const std::vector<ParameterInfo>& parameters,
                                             const PolicySpec& spec) {
  std::map<std::string, ParameterValue> values;
  std::vector<std::string> known;
  for (const ParameterInfo& parameter : parameters) {
    values.emplace(parameter.name, parameter.fallback);
    known.push_back(parameter.name);
  }
  for (const auto& [name, value] : spec.given) {
    const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                        [&, key = &name](const ParameterInfo& p) { return p.name == *key; });
    if (parameter == parameters.end()) {
      return unexpected(owner + " has no parameter '" + name + "'" + suggest_nearest(name, known));
    }
    if (auto checked = check_value(owner, *parameter, value); !checked) return Unexpected{checked.error()};
    const bool is_of_type = value.index() == parameter->fallback.index();
    values[name] = is_of_type ? value : ParameterValue{std::vector<std::string>{}};
  }
  return PolicyParameters(std::move(values));
}

Result<AnyPolicy> PolicyRegistry::make(const PolicySpec& spec, const PolicyContext& context) const {
  const auto row = find(spec.name);
  if (!row) return Unexpected{row.error()};
  if (!spec.backfill.empty()) return cannot_backfill(spec);
  const auto parameters = complete_parameters("policy " + (*row)->name, (*row)->parameters, spec);
  if (!parameters) return Unexpected{parameters.error()};
  PolicyContext named = context;
  named.spec_name = spec.name;
  named.registry = this;
  named.held = spec.held;
  return (*row)->make(*parameters, named);
}

Result<PriorityOrder> PolicyRegistry::make_order(const PolicySpec& spec, const PolicyContext& context) const {
  const auto row = find(spec.name);
  if (!row) return Unexpected{row.error()};
  if (!spec.backfill.empty()) return cannot_backfill(spec);
  if (!(*row)->order) {
    std::vector<std::string> ordered;
    for (const PolicyInfo& other : rows_) {
      if (other.order) ordered.push_back(other.name);
    }
    return unexpected("policy " + (*row)->name + " is not an order of starting alone; expected one of " +
                      joined(ordered, ", "));
  }
  const auto parameters = complete_parameters("policy " + (*row)->name, (*row)->parameters, spec);
  if (!parameters) return Unexpected{parameters.error()};
  return (*row)->order(*parameters, context);
}

Result<std::unique_ptr<PolicyLog>> PolicyRegistry::make_log(const PolicySpec& spec,
                                                            const PolicyContext& context) const {
  const auto row = find(spec.name);
  if (!row) return Unexpected{row.error()};
  if (!(*row)->log) return std::unique_ptr<PolicyLog>();
  const auto parameters = complete_parameters("policy " + (*row)->name, (*row)->parameters, spec);
  if (!parameters) return Unexpected{parameters.error()};
  return (*row)->log(*parameters, context);
}

}  // namespace gpusched
