// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/owners.hpp"

#include <array>

namespace gpusched {
namespace {

struct OwnerKind {
  OwnerColumn column;
  std::string_view word;    // as the parameter `by` has it
  std::string_view plural;  // for messages
};
constexpr std::array kinds{OwnerKind{OwnerColumn::user, "user", "users"},
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

Result<OwnerColumn> owner_column(std::string_view policy, const PolicyParameters& parameters,
                                 const PolicyContext& context) {
  std::string missing, others;
  for (const OwnerKind& kind : kinds) {
    const bool wanted = parameters.word("by") == kind.word, known = has_owners(kind.column, *context.jobs);
    if (wanted && known) return kind.column;
    if (wanted) missing = kind.plural;
    if (known) others += "; it has " + std::string(kind.plural) + ": give by=" + std::string(kind.word);
  }
  return unexpected("policy " + std::string(policy) + " shares between " + missing + ", and the trace names none" +
                    others);
}

}  // namespace gpusched
