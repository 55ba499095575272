// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/backfill.hpp"

#include <algorithm>
#include <utility>

#include "src/base/nearest_name.hpp"

namespace gpusched {

BackfillInfo easy_backfill_info();
BackfillInfo conservative_backfill_info();
BackfillInfo sc20_backfill_info();

namespace {

// The method that a policy brings along goes by the name of the one that it is of the kind of.
bool can_be_backfilled(const PolicyInfo& policy, const PolicySpec& backfill) {
  return policy.order || (policy.backfilled && backfill.name == "easy");
}

}  // namespace

const std::vector<BackfillInfo>& backfill_infos() {
  static const std::vector<BackfillInfo> rows{easy_backfill_info(), conservative_backfill_info(), sc20_backfill_info()};
  return rows;
}

namespace {

constexpr const char* who_can_be_backfilled = "only list schedulers (fifo, sjf, ...) can";

bool stays_plain(const PolicySpec& policy) {
  return policy.backfill.empty() || (policy.backfill.front().name == "none" && policy.backfill.front().given.empty());
}

}  // namespace

Result<const BackfillInfo*> find_backfill(std::string_view name) {
  std::vector<std::string> known{"none"};
  for (const BackfillInfo& row : backfill_infos()) {
    if (row.name == name) return &row;
    known.push_back(row.name);
  }
  if (name == "none") return unexpected("none takes no parameters");
  return unexpected("expected " + joined(known, "|") + ", not '" + std::string(name) + "'" +
                    suggest_nearest(std::string(name), known));
}

std::vector<std::string> backfills_of(const PolicyInfo& policy) {
  std::vector<std::string> names{"none"};
  for (const BackfillInfo& row : backfill_infos()) {
    PolicySpec way;
    way.name = row.name;
    if (can_be_backfilled(policy, way)) names.push_back(row.name);
  }
  return names;
}

namespace {

// Why a policy does not take a way of backfilling.
std::string refusal(const PolicyInfo& policy) {
  const std::vector<std::string> ways = backfills_of(policy);
  if (ways.size() > 1) return policy.name + " takes only " + joined(ways, "|");
  return policy.name + " cannot be backfilled: " + who_can_be_backfilled;
}

}  // namespace

Result<PolicySpec> parse_backfill(std::string_view text) {
  auto specs = parse_policy_list(text);
  if (!specs || specs->size() != 1 || !specs->front().backfill.empty()) {
    return unexpected("expected one way of backfilling, such as easy{estimate=user}, not '" + std::string(text) + "'");
  }
  if (const auto row = find_backfill(specs->front().name); !row) return Unexpected{row.error()};
  return std::move(specs->front());
}

Result<std::vector<PolicySpec>> parse_policies(const PolicyRegistry& registry, std::string_view text) {
  auto specs = parse_policy_list(text);
  if (!specs) return specs;
  for (const PolicySpec& spec : *specs) {
    const auto row = registry.find(spec.name);
    if (!row) return Unexpected{row.error()};
    if (stays_plain(spec)) continue;
    if (const auto known = find_backfill(spec.backfill.front().name); !known) {
      return unexpected("policy " + spec.text + ": behind '+' " + known.error().message);
    }
    if (!can_be_backfilled(**row, spec.backfill.front())) {
      return unexpected("policy " + spec.text + ": " + refusal(**row));
    }
  }
  return specs;
}

Result<std::vector<PolicySpec>> parse_contestants(const PolicyRegistry& registry, std::span<const std::string> texts) {
  std::vector<PolicySpec> all;
  for (const std::string& text : texts) {
    auto specs = parse_policies(registry, text);
    if (!specs) return specs;
    for (PolicySpec& spec : *specs) {
      if (std::any_of(all.begin(), all.end(), [&](const PolicySpec& other) { return other.text == spec.text; })) {
        return Unexpected{Error{.message = spec.text + " is given twice", .field = "policies"}};
      }
      all.push_back(std::move(spec));
    }
  }
  return all;
}

std::span<PolicySpec> held_policies(const PolicyRegistry& registry, PolicySpec& policy) {
  const PolicyInfo& row = **registry.find(policy.name);
  if (!row.holds_policies || !policy.held.empty()) return policy.held;
  for (const ParameterInfo& parameter : row.parameters) {
    if (!std::holds_alternative<std::vector<std::string>>(parameter.fallback)) continue;
    const auto given = policy.given.find(parameter.name);
    const ParameterValue& value = given == policy.given.end() ? parameter.fallback : given->second;
    const auto* const names = std::get_if<std::vector<std::string>>(&value);
    for (std::size_t i = 0; names != nullptr && i < names->size(); ++i) {
      auto specs = parse_policies(registry, (*names)[i]);
      if (!specs) {
        policy.held.clear();
        return {};
      }
      policy.held.push_back(std::move(specs->front()));
    }
  }
  return policy.held;
}

void backfill_by_default(const PolicyRegistry& registry, const PolicySpec& backfill, std::span<PolicySpec> policies) {
  for (PolicySpec& policy : policies) {
    backfill_by_default(registry, backfill, held_policies(registry, policy));
    if (!policy.backfill.empty() || !can_be_backfilled(**registry.find(policy.name), backfill)) continue;
    policy.text += "+" + backfill.text;
    policy.backfill.push_back(backfill);
  }
}

Result<std::optional<PolicySpec>> default_backfill(const PolicyRegistry& registry, std::string_view text,
                                                   std::span<const PolicySpec> policies) {
  const auto fail = [](const std::string& why) { return Unexpected{Error{.message = why, .field = "backfill"}}; };
  std::optional<PolicySpec> backfill;
  if (text == "none") return backfill;
  auto parsed = parse_backfill(text);
  if (!parsed) return fail(parsed.error().message);
  backfill = *std::move(parsed);
  std::vector<PolicySpec> laid(policies.begin(), policies.end());
  backfill_by_default(registry, *backfill, laid);
  const auto is_plain = [](const PolicySpec& policy) { return policy.backfill.empty(); };
  const auto is_untouched = [&](const PolicySpec& policy) {
    return is_plain(policy) && std::all_of(policy.held.begin(), policy.held.end(), is_plain);
  };
  if (std::all_of(laid.begin(), laid.end(), is_untouched)) {
    if (policies.size() == 1) return fail(refusal(**registry.find(policies.front().name)));
    return fail(std::string("none of the policies can be backfilled so: ") + who_can_be_backfilled);
  }
  for (std::size_t i = 0; i < laid.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (laid[i].text == laid[j].text && policies[i].text != policies[j].text) {
        return fail("makes " + policies[j].text + " and " + policies[i].text + " the same policy; give one of them");
      }
    }
  }
  return backfill;
}

Result<AnyPolicy> make_policy(const PolicyRegistry& registry, const PolicySpec& policy, const PolicyContext& context) {
  PolicySpec order = policy;
  order.backfill.clear();
  if (stays_plain(policy)) return registry.make(order, context);
  return make_backfilled(registry, order, policy.backfill.front(), context);
}

Result<AnyPolicy> make_backfilled(const PolicyRegistry& registry, const PolicySpec& policy, const PolicySpec& backfill,
                                  const PolicyContext& context) {
  const auto row = find_backfill(backfill.name);
  if (!row) return Unexpected{row.error()};
  const auto parameters = complete_parameters("backfill " + (*row)->name, (*row)->parameters, backfill);
  if (!parameters) return Unexpected{parameters.error()};
  auto estimator = make_duration_estimator(*parameters, context);
  if (!estimator) return unexpected("backfill " + (*row)->name + ", " + estimator.error().to_string());
  const auto info = registry.find(policy.name);
  if (!info) return Unexpected{info.error()};
  if (!(*info)->order && can_be_backfilled(**info, backfill)) {
    const auto own = complete_parameters("policy " + (*info)->name, (*info)->parameters, policy);
    if (!own) return Unexpected{own.error()};
    return (*info)->backfilled(*own, *parameters, context, *std::move(estimator));
  }
  auto order = registry.make_order(policy, context);
  if (!order) return Unexpected{order.error()};
  return (*row)->make(*std::move(order), *std::move(estimator), *parameters, context);
}

namespace {

// The parameter `estimate`, or the end.
std::vector<ParameterInfo>::const_iterator find_estimate(const std::vector<ParameterInfo>& parameters) {
  return std::find_if(parameters.begin(), parameters.end(),
                      [](const ParameterInfo& parameter) { return parameter.name == "estimate"; });
}

// What an estimator is on these jobs: without requests it predicts from finished jobs.
std::string on_these_jobs(const std::string& estimator, const JobTable& jobs) {
  return estimator == "requested" && !jobs.has_estimates() ? "history" : estimator;
}

// The value of the parameter `estimate`; nothing where there is no such parameter, or no word, which makers refuse.
std::string estimator_of(const std::vector<ParameterInfo>& parameters, const PolicySpec& spec, const JobTable& jobs) {
  const auto row = find_estimate(parameters);
  if (row == parameters.end()) return {};
  const auto given = spec.given.find("estimate");
  const auto* word = std::get_if<std::string>(given == spec.given.end() ? &row->fallback : &given->second);
  if (word == nullptr) return {};
  return on_these_jobs(*word, jobs);
}

}  // namespace

namespace {

// Of a policy that holds others: what it believes itself, but where it looks ahead with exact times, and what they do.
std::string known_of_holder(const PolicyRegistry& registry, const PolicySpec& policy, std::span<const PolicySpec> held,
                            const JobTable& jobs, bool clairvoyant) {
  std::vector<std::string> known;
  const auto add = [&known](const std::string& text) {
    if (!text.empty() && text != "-") known.push_back(text);
  };
  const auto given = policy.given.find("runtimes");
  const bool is_exact = given != policy.given.end() && given->second == ParameterValue(std::string("exact"));
  if (!is_exact) add(estimator_of((*registry.find(policy.name))->parameters, policy, jobs));
  for (const PolicySpec& member : held) add(known_run_times(registry, member, jobs, false));
  if (clairvoyant) add("exact");
  return known.empty() ? "-" : joined(distinct(std::move(known)), ", ");
}

}  // namespace

std::string known_run_times(const PolicyRegistry& registry, const PolicySpec& policy, const JobTable& jobs,
                            bool clairvoyant) {
  PolicySpec holder = policy;
  const std::span<const PolicySpec> held = held_policies(registry, holder);
  if (!held.empty()) return known_of_holder(registry, policy, held, jobs, clairvoyant);
  std::string of_order = estimator_of((*registry.find(policy.name))->parameters, policy, jobs);
  if (!stays_plain(policy)) {
    const PolicySpec& backfill = policy.backfill.front();
    std::string of_reservations = estimator_of((*find_backfill(backfill.name))->parameters, backfill, jobs);
    if (of_order.empty() || of_order == of_reservations) return of_reservations;
    return of_order + ", " + of_reservations;
  }
  const PolicyInfo& row = **registry.find(policy.name);
  if (of_order.empty() && row.knowledge) {
    const auto parameters = complete_parameters("policy " + row.name, row.parameters, policy);
    if (!parameters) return "-";  // refused by its maker
    of_order = on_these_jobs(row.knowledge(*parameters, policy.name), jobs);
  }
  if (of_order.empty()) return clairvoyant ? "exact" : "-";
  return of_order;
}

Result<void> check_parameters(const PolicyRegistry& registry, PolicySpec policy) {
  const auto row = registry.find(policy.name);
  if (!row) return Unexpected{row.error()};
  if (auto own = complete_parameters("policy " + (*row)->name, (*row)->parameters, policy); !own)
    return Unexpected{own.error()};
  for (const PolicySpec& backfill : policy.backfill) {
    const auto info = find_backfill(backfill.name);
    if (!info) continue;  // "+none"
    if (auto own = complete_parameters("backfill " + backfill.name, (*info)->parameters, backfill); !own)
      return Unexpected{own.error()};
  }
  for (const PolicySpec& held : held_policies(registry, policy)) {
    if (auto checked = check_parameters(registry, held); !checked) return checked;
  }
  return {};
}

Result<std::optional<AnyDurationEstimator>> known_estimator(const PolicyRegistry& registry, const PolicySpec& policy,
                                                            const PolicyContext& context, bool clairvoyant) {
  const auto made = [&](const std::string& owner, const std::vector<ParameterInfo>& infos,
                        const PolicySpec& spec) -> Result<std::optional<AnyDurationEstimator>> {
    const auto parameters = complete_parameters(owner, infos, spec);
    if (!parameters) return Unexpected{parameters.error()};
    auto estimator = make_duration_estimator(*parameters, context);
    if (!estimator) return Unexpected{estimator.error()};
    return std::optional(*std::move(estimator));
  };
  const std::vector<ParameterInfo>& of_order = (*registry.find(policy.name))->parameters;
  if (find_estimate(of_order) != of_order.end()) return made("policy " + policy.name, of_order, policy);
  if (!stays_plain(policy)) {
    const PolicySpec& backfill = policy.backfill.front();
    return made("backfill " + backfill.name, (*find_backfill(backfill.name))->parameters, backfill);
  }
  if (clairvoyant) return std::optional(AnyDurationEstimator(ExactDuration{}));
  return std::optional<AnyDurationEstimator>();
}

}  // namespace gpusched
