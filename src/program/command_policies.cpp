// SPDX-License-Identifier: Apache-2.0
// gpusched policies [NAME]: what can be compared.
#include <cstdio>
#include <memory>
#include <string>

#include "src/policies/backfill/backfill.hpp"
#include "src/program/commands.hpp"
#include "src/sim/policy_text.hpp"

namespace gpusched {

void add_policies_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("policies", "List policies and ways of backfilling, or show one");
  const auto name = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  const CLI::Option* given = command->add_option("name", *name, "the policy or way of backfilling to show");
  command->add_flag("--json", *json, "print one JSON object: all that is known of each, with its parameters");
  command->footer("Examples:\n  gpusched policies\n  gpusched policies tiresias\n  gpusched policies easy\n");
  command->callback([name, given, json, &exit_code] {
    const PolicyRegistry registry = PolicyRegistry::standard();
    if (given->count() == 0) {
      std::fputs((*json ? policies_json(registry) : policy_list_text(registry)).c_str(), stdout);
      return;
    }
    if (const auto way = find_backfill(*name); way && *name != "none") {
      std::fputs((*json ? backfill_json(**way) : backfill_text(**way)).c_str(), stdout);
      return;
    }
    const auto policy = registry.find(*name);
    if (!policy) {
      exit_code = complain(policy.error());
      return;
    }
    std::fputs((*json ? policy_json(registry, **policy) : policy_text(**policy)).c_str(), stdout);
  });
}

}  // namespace gpusched
