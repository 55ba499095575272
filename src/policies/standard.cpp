// SPDX-License-Identifier: Apache-2.0
// The registry of all policies: policies.def, the trained ones that come with the program, and those named by a prefix.
#include "src/policies/learned/shipped_models.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

#define POLICY(name) PolicyInfo name##_info();
#include "src/policies/policies.def"
#undef POLICY
PolicyInfo program_policy_info();                           // programs/program_policy.cpp
PolicyInfo rl_policy_info();                                // learned/rl_policy.cpp
PolicyInfo shipped_policy_info(const ShippedModel& model);  // likewise

PolicyRegistry PolicyRegistry::standard() {
  PolicyRegistry registry;
#define POLICY(name) registry.add(name##_info());
#include "src/policies/policies.def"
#undef POLICY
  for (const ShippedModel& model : shipped_models()) registry.add(shipped_policy_info(model));
  registry.add_prefix(rl_policy_info());
  registry.add_prefix(program_policy_info());
  return registry;
}

}  // namespace gpusched
