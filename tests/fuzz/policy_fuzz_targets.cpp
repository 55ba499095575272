// SPDX-License-Identifier: Apache-2.0
// The target for texts of policies, as --policy and --backfill take them: those that can be made are run.
#include <algorithm>
#include <array>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/fuzz/fuzz_runs.hpp"
#include "tests/fuzz/fuzz_targets.hpp"

namespace gpusched::test {
namespace {

// A trace that states nothing that a policy might look for.
const JobTable& without_requests() {
  static const JobTable jobs = [] {
    JobTableBuilder builder;
    builder.add({.work = whole_seconds(1), .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu}});
    return *std::move(builder).build();
  }();
  return jobs;
}

void read_policies(std::string_view text) {
  constexpr std::size_t most_runs = 2;  // a text may list hundreds
  static const PolicyRegistry registry = PolicyRegistry::standard();
  (void)parse_backfill(text);
  // Code of a file, or a program, that happens to have this name would run.
  if (text.find(".so") != std::string_view::npos || text.find("program:") != std::string_view::npos) {
    (void)parse_policy_list(text);
    return;
  }
  const auto policies = parse_policies(registry, text);
  if (!policies) return;
  for (std::size_t i = 0; i < std::min(policies->size(), most_runs); ++i) {
    const auto make = [&](const PolicyContext& context) { return make_policy(registry, (*policies)[i], context); };
    (void)known_run_times(registry, (*policies)[i], without_requests(), false);
    run_in_small_world(make);
    run_at_extreme_times(make);
  }
}

constexpr std::array<FuzzTarget, 1> targets{{{"policy", read_policies}}};

}  // namespace

std::span<const FuzzTarget> policy_fuzz_targets() { return targets; }

}  // namespace gpusched::test
