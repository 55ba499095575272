// SPDX-License-Identifier: Apache-2.0
// The registry of all policies: policies.def, and those named by a prefix.
#include "src/policies/seam/registry.hpp"

namespace gpusched {

#define POLICY(name) PolicyInfo name##_info();
#include "src/policies/policies.def"
#undef POLICY
PolicyInfo rl_policy_info();  // learned/rl_policy.cpp

PolicyRegistry PolicyRegistry::standard() {
  PolicyRegistry registry;
#define POLICY(name) registry.add(name##_info());
#include "src/policies/policies.def"
#undef POLICY
  registry.add_prefix(rl_policy_info());
  return registry;
}

}  // namespace gpusched
