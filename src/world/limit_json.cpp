// SPDX-License-Identifier: Apache-2.0
#include "src/world/limit_json.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "gpusched/core/named_value.hpp"
#include "gpusched/data/job_limits.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/world/absent_names.hpp"
#include "src/world/cluster_fields.hpp"
#include "traces/core/cluster_units.hpp"

namespace gpusched {
namespace {

constexpr std::array<NamedValue<LimitOwner>, 7> limit_owner_names{{{"all", LimitOwner::all},
                                                                   {"user", LimitOwner::user},
                                                                   {"account", LimitOwner::account},
                                                                   {"vc", LimitOwner::vc},
                                                                   {"qos", LimitOwner::qos},
                                                                   {"array", LimitOwner::array},
                                                                   {"job", LimitOwner::job}}};

// Whose jobs a rule limits.
struct NamesOfLimit {
  std::string_view key;
  std::vector<std::string> LimitRule::*member;
};
constexpr NamesOfLimit names_of_limit[] = {{"users", &LimitRule::users},
                                           {"accounts", &LimitRule::accounts},
                                           {"vcs", &LimitRule::vcs},
                                           {"qos", &LimitRule::qos},
                                           {"arrays", &LimitRule::arrays},
                                           {"or_vcs", &LimitRule::or_vcs},
                                           {"except_vcs", &LimitRule::except_vcs},
                                           {"except_qos", &LimitRule::except_qos},
                                           {"unbound_vcs", &LimitRule::unbound_vcs},
                                           {"allow_accounts", &LimitRule::allow_accounts},
                                           {"allow_qos", &LimitRule::allow_qos}};

// What of LimitAmounts has a unit.
struct AmountOfLimit {
  std::string_view key;
  std::int64_t LimitAmounts::*member;
  std::int64_t parts;  // of the file's unit
  const char* unit;
};
constexpr AmountOfLimit amounts_of_limit[] = {{"gpus", &LimitAmounts::gpu_milli, whole_gpu, " GPUs"},
                                              {"cpus", &LimitAmounts::cpu_milli, milli_per_core, " cores"},
                                              {"memory_gib", &LimitAmounts::memory_mib, mib_per_gib, " GiB"},
                                              {"jobs", &LimitAmounts::jobs, 1, " running jobs"}};

Json wall_json(const LimitRule& rule) { return quantity_json(rule.wall.us, microseconds_per_second); }

}  // namespace

LimitRule read_limit(JsonFields& fields) {
  LimitRule rule{.name = read_name(fields, "name")};
  fields.read_word("per", rule.per, limit_owner_names);
  for (const NamesOfLimit& names : names_of_limit) rule.*names.member = read_names(fields, names.key);
  for (const AmountOfLimit& amount : amounts_of_limit) {
    if (amount.member == &LimitAmounts::jobs) continue;
    rule.most.*amount.member = read_quantity(fields, amount.key, amount.parts);
  }
  constexpr double most_jobs = 1e12;
  fields.read("jobs", rule.most.jobs, 0, most_jobs);
  fields.read("submitted", rule.submitted, 0, most_jobs);
  constexpr double most_wall_s = 1e11;
  double wall_s = -1;
  fields.read("wall_s", wall_s, 0, most_wall_s);
  if (wall_s >= 0) rule.wall = from_seconds(wall_s);
  const bool counts_jobs = rule.most.jobs < unlimited || rule.submitted < unlimited;
  if (rule.per == LimitOwner::job && counts_jobs) {
    fields.fail("per", "expected gpus, cpus, memory_gib or wall_s alone with job: each job is by itself");
  } else if (rule.per != LimitOwner::job && rule.wall < Time::max()) {
    fields.fail("per", "expected job with wall_s: the time that each job requests");
  } else if (rule.most == LimitAmounts{} && rule.submitted == unlimited && rule.wall == Time::max() &&
             rule.allow_accounts.empty() && rule.allow_qos.empty()) {
    fields.fail("", "expected a limit: gpus, cpus, memory_gib, jobs, submitted, wall_s, allow_accounts or allow_qos");
  }
  const bool names_some =
      !(rule.users.empty() && rule.accounts.empty() && rule.vcs.empty() && rule.qos.empty() && rule.arrays.empty());
  if (!rule.or_vcs.empty() && !names_some)
    fields.fail("or_vcs", "expected users, accounts, vcs, qos or arrays with it");
  return rule;
}

bool names_jobs(std::string_view key) {
  return key == "name" || std::any_of(std::begin(names_of_limit), std::end(names_of_limit),
                                      [key](const NamesOfLimit& names) { return names.key == key; });
}

Json limit_json(const LimitRule& rule) {
  Json entry = Json::object();
  if (!rule.name.empty()) entry["name"] = rule.name;
  if (rule.per != LimitOwner::all) entry["per"] = name_of(limit_owner_names, rule.per);
  for (const NamesOfLimit& names : names_of_limit) {
    if (!(rule.*names.member).empty()) entry[std::string(names.key)] = rule.*names.member;
  }
  for (const AmountOfLimit& amount : amounts_of_limit) {
    if (rule.most.*amount.member == unlimited) continue;
    entry[std::string(amount.key)] = quantity_json(rule.most.*amount.member, static_cast<double>(amount.parts));
  }
  if (rule.submitted < unlimited) entry["submitted"] = rule.submitted;
  if (rule.wall < Time::max()) entry["wall_s"] = wall_json(rule);
  return entry;
}

std::string limit_text(const LimitRule& rule) {
  std::string text;
  for (const AmountOfLimit& amount : amounts_of_limit) {
    if (rule.most.*amount.member == unlimited) continue;
    text += (text.empty() ? "" : ", ") +
            quantity_json(rule.most.*amount.member, static_cast<double>(amount.parts)).dump() + amount.unit;
  }
  if (rule.submitted < unlimited)
    text += (text.empty() ? "" : ", ") + counted(static_cast<std::uint64_t>(rule.submitted), "job") + " submitted";
  if (rule.wall < Time::max()) text += (text.empty() ? "" : ", ") + wall_json(rule).dump() + " s of request";
  if (rule.per != LimitOwner::all) text += " per " + std::string(name_of(limit_owner_names, rule.per));
  for (const NamesOfLimit& names : names_of_limit) {
    const auto& list = rule.*names.member;
    const bool is_exception = names.key.starts_with("except_") || names.key.starts_with("unbound_");
    if (list.empty() || is_exception) continue;
    std::string words(names.key);
    std::replace(words.begin(), words.end(), '_', ' ');
    text += (text.empty() ? "" : ", ") + words + " " + joined(list, " ");
  }
  return rule.name.empty() ? text : rule.name + " (" + text + ")";
}

namespace {

NameTable arrays_of(const JobTable& jobs) {
  NameTable arrays;
  for (std::uint32_t i = jobs.in_front(); i < jobs.size(); ++i) {
    const std::string id = jobs.external_id(JobId{i});
    const std::string_view array = array_of_id(id);
    if (!array.empty()) arrays.intern(array);
  }
  return arrays;
}

bool asks_arrays(const std::vector<LimitRule>& rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const LimitRule& rule) { return rule.per == LimitOwner::array || !rule.arrays.empty(); });
}

}  // namespace

std::vector<std::string> absent_owners(const std::vector<LimitRule>& rules, const JobTable& jobs) {
  const NameTable arrays = asks_arrays(rules) ? arrays_of(jobs) : NameTable();
  std::vector<std::string> notes;
  const auto look = [&](LimitOwner owner, bool is_known, const std::string& what) {
    const bool asks = std::any_of(rules.begin(), rules.end(), [&](const LimitRule& rule) { return rule.per == owner; });
    if (!asks || is_known) return;
    notes.push_back("no job of the trace " + what + ", so that limits per " +
                    std::string(name_of(limit_owner_names, owner)) + " hold for none");
  };
  look(LimitOwner::user, jobs.has_users(), "has a user");
  look(LimitOwner::account, jobs.has_groups(), "has an account");
  look(LimitOwner::vc, jobs.has_vcs(), "has a virtual cluster");
  look(LimitOwner::array, arrays.size() > 0, "is a task of an array (12_0)");
  return notes;
}

std::vector<std::string> absent_in_limits(const std::vector<LimitRule>& rules, const JobTable& jobs,
                                          const std::string& file) {
  std::vector<std::string> notes;
  const auto look = [&](std::vector<std::string> LimitRule::*member, const NameTable& known, const char* field) {
    std::vector<std::string> absent;
    for (const LimitRule& rule : rules) {
      for (const std::string& name : rule.*member) {
        if (known.find(name) == no_index) absent.push_back(name);
      }
    }
    for (std::string& line : absent_names_note(file, field, absent, known.names())) notes.push_back(std::move(line));
  };
  look(&LimitRule::users, jobs.users(), "limits/users");
  look(&LimitRule::accounts, jobs.groups(), "limits/accounts");
  look(&LimitRule::vcs, jobs.vcs(), "limits/vcs");
  look(&LimitRule::or_vcs, jobs.vcs(), "limits/or_vcs");
  look(&LimitRule::allow_accounts, jobs.groups(), "limits/allow_accounts");
  if (jobs.has_qos()) {
    look(&LimitRule::qos, jobs.qos_names(), "limits/qos");
    look(&LimitRule::except_qos, jobs.qos_names(), "limits/except_qos");
    look(&LimitRule::allow_qos, jobs.qos_names(), "limits/allow_qos");
  }
  const NameTable arrays = asks_arrays(rules) ? arrays_of(jobs) : NameTable();
  look(&LimitRule::arrays, arrays, "limits/arrays");
  return notes;
}

}  // namespace gpusched
