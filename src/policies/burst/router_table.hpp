// SPDX-License-Identifier: Apache-2.0
/// The routers by name: one row each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/sites/router.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// What a router is made for.
struct RouterContext {
  const SiteWorld* world = nullptr;  ///< borrowed for the call
  std::uint64_t seed = 0;            ///< of the run
};

/// One row.
struct RouterInfo {
  std::string name;
  std::string summary;  ///< what it does, one line
  std::string source;
  std::vector<ParameterInfo> parameters = {};
  std::function<Result<AnyRouter>(const PolicyParameters&, const RouterContext&)> make = {};
};

/// All of them.
const std::vector<RouterInfo>& router_table();

/// "local,burst{wait=linear_cost,factor=0.25}" taken apart. Errors: the form, a name or parameter that there is not.
Result<std::vector<PolicySpec>> parse_routers(std::string_view text);

/// The routers of a list, each as written.
Result<std::vector<std::string>> split_routers(std::string_view text);

/// A policy, and the router that sends jobs to sites that run it.
struct RoutedPolicy {
  std::string policy, router;
};
/// "fifo via least-loaded" taken apart; no router without " via ".
RoutedPolicy routed_policy(std::string_view text);
/// The same put together; the policy alone without a router.
std::string routed_text(const std::string& policy, const std::string& router);

/// A fresh router. Errors: as parse_routers(); the sites lack what it needs.
Result<AnyRouter> make_router(const PolicySpec& spec, const RouterContext& context);

}  // namespace gpusched
