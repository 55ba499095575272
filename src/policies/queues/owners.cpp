// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/owners.hpp"

#include <array>
#include <optional>

#include "src/base/field_parser.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

struct OwnerKind {
  OwnerColumn column;
  std::string_view word;    // as the parameter `by` has it
  std::string_view plural;  // for messages
};
constexpr std::array owner_kinds{OwnerKind{OwnerColumn::user, "user", "users"},
                                 OwnerKind{OwnerColumn::group, "group", "groups"},
                                 OwnerKind{OwnerColumn::vc, "vc", "virtual clusters"}};

}  // namespace

std::uint32_t owner_of(OwnerColumn column, const JobTable& jobs, JobId job) {
  if (column == OwnerColumn::user) return jobs.user(job);
  return column == OwnerColumn::group ? jobs.group(job) : jobs.vc(job);
}

const NameTable& names_of(OwnerColumn column, const JobTable& jobs) {
  if (column == OwnerColumn::user) return jobs.users();
  return column == OwnerColumn::group ? jobs.groups() : jobs.vcs();
}

bool has_owners(OwnerColumn column, const JobTable& jobs) {
  if (column == OwnerColumn::user) return jobs.has_users();
  return column == OwnerColumn::group ? jobs.has_groups() : jobs.has_vcs();
}

ParameterInfo owner_parameter(std::string fallback) {
  return {.name = "by",
          .fallback = std::move(fallback),
          .meaning = "between whom GPUs are shared: users, groups or virtual clusters (queues, partitions)",
          .words = {"user", "group", "vc"}};
}

ParameterInfo weights_parameter() {
  return {.name = "weights",
          .fallback = std::vector<double>{},
          .meaning = "weights of the owners in order of their first job; those beyond the list weigh 1",
          .least = 0.001,
          .most = 1e6};
}

Unexpected too_large_for_owner(const std::string& policy, OwnerColumn column, const JobTable& jobs, JobId job,
                               MilliGpu most) {
  std::string asked, held;
  append_decimal(asked, jobs.shape(job).gpu_milli(), whole_gpu);
  append_decimal(held, most, whole_gpu);
  return unexpected("policy " + policy + ": job '" + jobs.external_id(job) + "' asks for " + asked +
                    " GPUs, and its queue '" + names_of(column, jobs)[owner_of(column, jobs, job)] +
                    "' never holds more than " + held);
}

Result<std::map<std::uint32_t, double>> numbers_by_name(std::span<const std::string> words, const NameTable& names,
                                                        const std::string& whose, const std::string& unit, double least,
                                                        double most) {
  std::map<std::uint32_t, double> numbers;
  for (const std::string& word : words) {
    const std::size_t equals = word.rfind('=');
    const std::string_view text = word;
    const auto number = equals == std::string::npos ? std::optional<double>() : parse_number(text.substr(equals + 1));
    if (!number || !(*number >= least && *number <= most)) {
      return unexpected("expected NAME=" + unit + ", found '" + word + "'");
    }
    const std::uint32_t name = names.find(text.substr(0, equals));
    if (name == no_index || name == 0) {
      return unexpected("expected " + whose + ", found '" + word.substr(0, equals) + "'");
    }
    if (!numbers.emplace(name, *number).second) {
      return unexpected("the name '" + word.substr(0, equals) + "' is given twice");
    }
  }
  return numbers;
}

ParameterInfo numbers_parameter(std::string name, std::string meaning) {
  return {.name = std::move(name), .fallback = std::vector<std::string>{}, .meaning = std::move(meaning)};
}

Result<std::map<std::uint32_t, double>> numbers_of_owners(const std::string& parameter, const std::string& unit,
                                                          const PolicyParameters& parameters, OwnerColumn column,
                                                          const JobTable& jobs) {
  constexpr double most = 1e9;
  std::string whose;
  for (const OwnerKind& kind : owner_kinds) {
    if (kind.column == column) whose = "one of the trace's " + std::string(kind.plural);
  }
  auto numbers = numbers_by_name(parameters.policies(parameter), names_of(column, jobs), whose, unit, 0, most);
  if (!numbers) return unexpected(parameter + ": " + numbers.error().to_string());
  return numbers;
}

Result<OwnerColumn> owner_column(std::string_view policy, const PolicyParameters& parameters,
                                 const PolicyContext& context) {
  std::string missing, others;
  for (const OwnerKind& kind : owner_kinds) {
    const bool wanted = parameters.word("by") == kind.word, known = has_owners(kind.column, *context.jobs);
    if (wanted && known) return kind.column;
    if (wanted) missing = kind.plural;
    if (known) others += "; it has " + std::string(kind.plural) + ": give by=" + std::string(kind.word);
  }
  return unexpected("policy " + std::string(policy) + " shares between " + missing + ", and the trace names none" +
                    others);
}

}  // namespace gpusched
