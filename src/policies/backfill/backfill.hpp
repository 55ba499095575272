// SPDX-License-Identifier: Apache-2.0
/// The table of backfilling methods. Each can be combined with any policy that is an order of starting.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/policies/seam/priority_order.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// One row of the table.
struct BackfillInfo {
  std::string name;
  std::string summary;     ///< what it does, one line
  std::string source;      ///< paper section or file, with the quirks of a faithful variant
  std::string complexity;  ///< cost of an event
  /// Among them estimate, noise_sigma and quantile: the run times that reservations are made from.
  std::vector<ParameterInfo> parameters;
  /// The policy that starts jobs in this order and backfills by these run times. Errors: what it cannot plan for.
  std::function<Result<AnyPolicy>(PriorityOrder, AnyDurationEstimator, const PolicyParameters&, const PolicyContext&)>
      make;
  bool chooses_nodes = false;               ///< as PolicyInfo's, for reservations
  std::vector<Asymmetry> asymmetries = {};  ///< as PolicyInfo's
};

/// Every backfilling method. A new one is a function that returns its row, and a line in backfill.cpp.
const std::vector<BackfillInfo>& backfill_infos();

/// The row of that name; the error names the nearest one.
Result<const BackfillInfo*> find_backfill(std::string_view name);

/// The ways of backfilling that may stand behind the policy's '+', "none" first.
std::vector<std::string> backfills_of(const PolicyInfo& policy);

/// Reads "easy", "conservative{depth=50}", "sc20{estimate=user}". Errors name what was expected.
Result<PolicySpec> parse_backfill(std::string_view text);

/// Reads a policy list and looks every name up: policies, and ways of backfilling behind '+', each around an order of
/// starting; "+none" keeps the default away.
Result<std::vector<PolicySpec>> parse_policies(const PolicyRegistry& registry, std::string_view text);

/// The policies of all `texts`, which are compared with each other. Errors: as parse_policies(), and a policy that is
/// given twice.
Result<std::vector<PolicySpec>> parse_contestants(const PolicyRegistry& registry, std::span<const std::string> texts);

/// The policies that this one holds, for an option of the run that adds something to each. None where one cannot be
/// read, which its maker says. Precondition: from parse_policies().
std::span<PolicySpec> held_policies(const PolicyRegistry& registry, PolicySpec& policy);

/// Whether all parameters of the policy, of its backfilling and of the policies that it holds can be right, whatever
/// the jobs are. Precondition: from parse_policies().
Result<void> check_parameters(const PolicyRegistry& registry, PolicySpec policy);

/// Adds `backfill` to each policy that is an order of starting and names no backfilling itself; its text then says so:
/// "fifo+easy". So it does to each that one of them holds, of which the text says nothing. Precondition: `policies`
/// from parse_policies(), `backfill` from parse_backfill().
void backfill_by_default(const PolicyRegistry& registry, const PolicySpec& backfill, std::span<PolicySpec> policies);

/// What --backfill says, as parse_backfill() takes it, for `policies`; nothing of "none". Errors: it cannot be read, no
/// policy can be backfilled, or two that are written differently become the same.
Result<std::optional<PolicySpec>> default_backfill(const PolicyRegistry& registry, std::string_view text,
                                                   std::span<const PolicySpec> policies);

/// A fresh policy with the backfilling that it names. Errors: what either refuses. Precondition: from parse_policies().
Result<AnyPolicy> make_policy(const PolicyRegistry& registry, const PolicySpec& policy, const PolicyContext& context);

/// `policy` combined with `backfill`. Errors: what either refuses, and a policy that is more than an order.
Result<AnyPolicy> make_backfilled(const PolicyRegistry& registry, const PolicySpec& policy, const PolicySpec& backfill,
                                  const PolicyContext& context);

/// What `policy` knows of run times, for a table: the estimator of its order ("exact", "requested", "history", ...),
/// then that of its reservations if that differs; "exact" also for a policy that is `clairvoyant` without an
/// estimator, "-" for one that looks at no run time. "requested" is "history" where the trace has no requests, as then
/// it works so. Precondition: the policy could be made.
std::string known_run_times(const PolicyRegistry& registry, const PolicySpec& policy, const JobTable& jobs,
                            bool clairvoyant);

/// The estimator that known_run_times() names, of two the first: one of its own, which estimates as the policy's does
/// where it is shown the same instants. Nothing for "-". Errors and precondition: as make_policy().
Result<std::optional<AnyDurationEstimator>> known_estimator(const PolicyRegistry& registry, const PolicySpec& policy,
                                                            const PolicyContext& context, bool clairvoyant);

}  // namespace gpusched
