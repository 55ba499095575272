// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/backfill.hpp"

#include <algorithm>
#include <utility>

#include "src/base/nearest_name.hpp"

namespace gpusched {

BackfillInfo easy_backfill_info();
BackfillInfo conservative_backfill_info();
BackfillInfo sc20_backfill_info();

const std::vector<BackfillInfo>& backfill_infos() {
  static const std::vector<BackfillInfo> rows{easy_backfill_info(), conservative_backfill_info(), sc20_backfill_info()};
  return rows;
}

Result<const BackfillInfo*> find_backfill(std::string_view name) {
  std::vector<std::string> known;
  for (const BackfillInfo& row : backfill_infos()) {
    if (row.name == name) return &row;
    known.push_back(row.name);
  }
  return unexpected("expected none|" + joined(known, "|") + ", not '" + std::string(name) + "'" +
                    suggest_nearest(std::string(name), known));
}

Result<PolicySpec> parse_backfill(std::string_view text) {
  auto specs = parse_policy_list(text);
  if (!specs || specs->size() != 1) {
    return unexpected("expected one way of backfilling, such as easy{estimate=user}, not '" + std::string(text) + "'");
  }
  if (const auto row = find_backfill(specs->front().name); !row) return Unexpected{row.error()};
  return std::move(specs->front());
}

Result<AnyPolicy> make_backfilled(const PolicyRegistry& registry, const PolicySpec& policy, const PolicySpec& backfill,
                                  const PolicyContext& context) {
  const auto row = find_backfill(backfill.name);
  if (!row) return Unexpected{row.error()};
  const auto parameters = complete_parameters("backfill " + (*row)->name, (*row)->parameters, backfill);
  if (!parameters) return Unexpected{parameters.error()};
  auto order = registry.make_order(policy, context);
  if (!order) return Unexpected{order.error()};
  auto estimator = make_duration_estimator(*parameters, context);
  if (!estimator) return unexpected("backfill " + (*row)->name + ", " + estimator.error().to_string());
  return (*row)->make(*std::move(order), *std::move(estimator), *parameters, context);
}

}  // namespace gpusched
