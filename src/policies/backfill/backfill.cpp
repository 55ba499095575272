// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/backfill.hpp"

#include <algorithm>

#include "src/base/nearest_name.hpp"
#include "src/policies/backfill/conservative_backfill.hpp"
#include "src/policies/backfill/easy_backfill.hpp"

namespace gpusched {
namespace {

PolicyInfo easy_info() {
  return {.name = "easy",
          .summary = "the first waiting job has a reservation; others start where they do not delay it",
          .source = "Lifka, The ANL/IBM SP scheduling system, JSSPP'95; Mu'alem and Feitelson, TPDS 2001",
          .complexity = "O(shapes + log n) a start; with something to backfill, O(nodes + running jobs) too",
          .parameters = estimate_parameters("requested"),
          .make = {}};
}

PolicyInfo conservative_info() {
  PolicyInfo info{.name = "conservative",
                  .summary = "every waiting job has a reservation; others start where they delay none",
                  .source = "Mu'alem and Feitelson, TPDS 2001",
                  .complexity = "an arrival: O(steps of the profile); an early or late end: that for every reservation",
                  .parameters = estimate_parameters("requested"),
                  .make = {}};
  info.parameters.push_back({.name = "depth",
                             .fallback = 100.0,
                             .meaning = "most waiting jobs with a reservation; later ones wait for one",
                             .least = 1,
                             .most = 1e9});
  return info;
}

PolicyInfo sc20_info() {
  return {.name = "sc20",
          .summary =
              "the chosen job stays chosen until it fits; meanwhile others start in order of submission if they "
              "should end before",
          .source =
              "RLScheduler (SC'20) artifact; quirks: the reservation is never made anew, ends strictly before it, "
              "no room beside it is used",
          .complexity = "O(shapes + log n) a start; the reservation of a chosen job, O(nodes + running jobs)",
          .parameters = estimate_parameters("requested"),
          .make = {}};
}

}  // namespace

const std::vector<PolicyInfo>& backfill_infos() {
  static const std::vector<PolicyInfo> rows{easy_info(), conservative_info(), sc20_info()};
  return rows;
}

Result<PolicySpec> parse_backfill(std::string_view text) {
  auto specs = parse_policy_list(text);
  if (!specs || specs->size() != 1) {
    return unexpected("expected one way of backfilling, such as easy{estimate=user}, not '" + std::string(text) + "'");
  }
  std::vector<std::string> known;
  for (const PolicyInfo& row : backfill_infos()) {
    if (row.name == specs->front().name) return specs->front();
    known.push_back(row.name);
  }
  return unexpected("expected none|easy|conservative|sc20, not '" + specs->front().name + "'" +
                    suggest_nearest(specs->front().name, known));
}

Result<AnyPolicy> make_backfilled(const PolicyRegistry& registry, const PolicySpec& policy, const PolicySpec& backfill,
                                  const PolicyContext& context) {
  const auto row = std::find_if(backfill_infos().begin(), backfill_infos().end(),
                                [&](const PolicyInfo& info) { return info.name == backfill.name; });
  GPUSCHED_ASSERT(row != backfill_infos().end(), "a spec from parse_backfill()");
  const auto parameters = complete_parameters(*row, backfill);
  if (!parameters) return Unexpected{parameters.error()};
  auto order = registry.make_order(policy, context);
  if (!order) return Unexpected{order.error()};
  auto estimator = make_duration_estimator(*parameters, context);
  if (!estimator) return unexpected("backfill " + row->name + ", " + estimator.error().to_string());
  if (row->name == "easy") return AnyPolicy(EasyBackfill(*std::move(order), *std::move(estimator)));
  if (row->name == "sc20") return AnyPolicy(Sc20Backfill(*std::move(order), *std::move(estimator)));
  return AnyPolicy(ConservativeBackfill(*std::move(order), *std::move(estimator),
                                        CapacityProfile(*context.cluster, *context.jobs),
                                        static_cast<std::uint32_t>(parameters->number("depth"))));
}

}  // namespace gpusched
