// SPDX-License-Identifier: Apache-2.0
#include "traces/core/job_filter.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "gpusched/data/gpu_demand.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "traces/core/csv_splitter.hpp"

namespace gpusched {
namespace {

// Names that a user may know a job's property by, and the property.
constexpr std::pair<std::string_view, std::string_view> roles[] = {
    {"id", "id"},
    {"job_id", "id"},
    {"user", "user"},
    {"group", "group"},
    {"account", "group"},
    {"vc", "vc"},
    {"partition", "vc"},
    {"queue", "vc"},
    {"name", "name"},
    {"family", "family"},
    {"gpu_type", "gpu_type"},
    {"status", "status"},
    {"priority", "priority"},
    {"gpus", "gpus"},
    {"tasks", "tasks"},
    {"submit", "submit"},
    {"duration", "duration"},
    {"estimate", "estimate"},
};

std::string role_of(std::string_view name) {
  const std::string wanted = lower_case(name);
  for (const auto& [alias, role] : roles) {
    if (alias == wanted) return std::string(role);
  }
  return {};
}

template <class T>
bool compares(int op, const T& a, const T& b) {
  switch (op) {
    case 2: return a < b;
    case 3: return !(b < a);
    case 4: return b < a;
    case 5: return !(a < b);
    default: return a == b;
  }
}

// A job accepts each of the types that its demand names.
bool names(std::string_view spec, std::string_view type) {
  if (spec.empty()) return type.empty();
  const GpuDemand demand(spec);
  return std::any_of(demand.names().begin(), demand.names().end(), [&](std::string_view name) {
    return name == type || (!type.empty() && mig_name(name).card == type);  // a slice is of its card's type
  });
}

}  // namespace

Result<JobFilter> JobFilter::parse(const std::string& text) {
  JobFilter filter;
  if (trim(text).empty()) return filter;
  CsvSplitter splitter;
  if (!splitter.split(text)) return Unexpected{Error{.message = "a quote is not closed", .field = "--where"}};
  for (const std::string_view part : splitter.fields()) {
    auto condition = parse_condition(trim(part));
    if (!condition) return Unexpected{condition.error()};
    filter.conditions_.push_back(*std::move(condition));
  }
  return filter;
}

Result<JobFilter::Condition> JobFilter::parse_condition(std::string_view text) {
  const std::size_t at = text.find_first_of("=!<>");
  std::size_t length = 1;
  std::optional<Operator> compare;
  if (at != std::string_view::npos && at > 0) {
    const bool with_equals = at + 1 < text.size() && text[at + 1] == '=';
    if (with_equals && text[at] != '=') length = 2;
    switch (text[at]) {
      case '=': compare = Operator::equal; break;
      case '!':
        if (with_equals) compare = Operator::unequal;
        break;
      case '<': compare = with_equals ? Operator::at_most : Operator::less; break;
      default: compare = with_equals ? Operator::at_least : Operator::more; break;
    }
  }
  if (!compare) {
    return Unexpected{Error{.message = "expected COLUMN=VALUE (or != < <= > >=), found '" + std::string(text) + "'",
                            .field = "--where"}};
  }
  Condition condition{.column = std::string(trim(text.substr(0, at))), .role = {}, .compare = *compare, .values = {}};
  condition.role = role_of(condition.column);
  std::string_view values = trim(text.substr(at + length));
  for (;;) {
    const std::size_t bar = std::min(values.find('|'), values.size());
    condition.values.push_back(name_text(values.substr(0, bar)));
    if (bar == values.size()) break;
    values.remove_prefix(bar + 1);
  }
  const bool ordered = *compare != Operator::equal && *compare != Operator::unequal;
  if (ordered && (condition.values.size() != 1 || !parse_number(condition.values.front()))) {
    return Unexpected{Error{.message = "expected one number behind < <= > or >=, found '" + std::string(text) + "'",
                            .field = "--where"}};
  }
  return condition;
}

Result<void> JobFilter::bind(const std::vector<std::string>& header) {
  for (Condition& condition : conditions_) {
    const auto field_of = [&](auto same) {
      const auto place = std::find_if(header.begin(), header.end(), same);
      return place == header.end() ? no_index : static_cast<std::uint32_t>(place - header.begin());
    };
    condition.field = field_of([&](const std::string& name) { return name == condition.column; });
    if (condition.field != no_index || !condition.role.empty()) continue;
    condition.field =
        field_of([&](const std::string& name) { return lower_case(name) == lower_case(condition.column); });
    if (condition.field != no_index) continue;
    std::vector<std::string> known = header;
    for (const auto& [alias, role] : roles) known.emplace_back(alias);
    return Unexpected{Error{.message = "'" + condition.column + "' is no column of this trace" +
                                       suggest_nearest(condition.column, known) +
                                       "; besides those of its header: id, user, group, vc, name, family, gpu_type, "
                                       "status, priority, gpus, tasks, submit, duration, estimate",
                            .field = "--where"}};
  }
  return {};
}

bool JobFilter::holds(const Condition& condition, std::string_view text) {
  if (condition.compare == Operator::equal || condition.compare == Operator::unequal) {
    const bool found = std::find(condition.values.begin(), condition.values.end(), text) != condition.values.end();
    return found == (condition.compare == Operator::equal);
  }
  const auto number = parse_number(text);
  return number && holds(condition, *number);
}

bool JobFilter::holds(const Condition& condition, double number) {
  const auto is = [&](const std::string& value) {
    const auto wanted = parse_number(value);
    return wanted && compares(static_cast<int>(condition.compare), number, *wanted);
  };
  const bool found = std::any_of(condition.values.begin(), condition.values.end(), is);
  return found != (condition.compare == Operator::unequal);
}

void JobFilter::ask_last_runs(std::span<const std::string_view> alike, const std::vector<std::string>& header) {
  for (Condition& condition : conditions_) {
    if (condition.field == no_index) continue;
    const std::string name = lower_case(header[condition.field]);
    condition.of_last_run = std::none_of(alike.begin(), alike.end(),
                                         [&name](std::string_view column) { return lower_case(column) == name; });
  }
}

bool JobFilter::asks_last_runs() const {
  return std::any_of(conditions_.begin(), conditions_.end(),
                     [](const Condition& condition) { return condition.of_last_run; });
}

bool JobFilter::keeps(const std::vector<std::string_view>& fields, bool of_last_run) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    if (condition.field == no_index || condition.of_last_run != of_last_run) return true;
    const std::string_view text = fields[condition.field];
    return is_plain_name(text) ? holds(condition, text) : holds(condition, name_text(text));
  });
}

bool JobFilter::keeps_job(const JobRecord& job) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    if (condition.field != no_index) return true;
    const std::string& role = condition.role;
    if (role == "id") return holds(condition, job.id);
    if (role == "user") return holds(condition, job.user);
    if (role == "group") return holds(condition, job.group);
    if (role == "vc") return holds(condition, job.vc);
    if (role == "name") return holds(condition, job.name);
    if (role == "family") return holds(condition, job.family);
    if (role == "status") return holds(condition, to_string(job.status));
    if (role == "gpu_type") {
      const bool accepted = std::any_of(condition.values.begin(), condition.values.end(),
                                        [&](const std::string& type) { return names(job.gpu_spec, type); });
      return accepted == (condition.compare == Operator::equal);
    }
    if (role == "priority") return holds(condition, static_cast<double>(job.priority));
    if (role == "gpus") return holds(condition, static_cast<double>(job.shape.gpu_milli()) / double{whole_gpu});
    if (role == "tasks") return holds(condition, static_cast<double>(job.shape.tasks));
    if (role == "submit") return holds(condition, to_seconds(job.submit));
    if (role == "duration") return holds(condition, to_seconds(job.work));
    return job.estimate != Time::max() && holds(condition, to_seconds(job.estimate));
  });
}

}  // namespace gpusched
