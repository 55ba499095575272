// SPDX-License-Identifier: Apache-2.0
/// Policies by their text, as the command line takes it, and runs under them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {

using Spans = std::vector<Span>;

/// More instants than any policy needs for a random case; a policy that passes it waits in circles.
inline constexpr std::uint32_t most_instants = 200'000;

/// The policies of the table, made once.
inline const PolicyRegistry& registry() {
  static const PolicyRegistry all = PolicyRegistry::standard();
  return all;
}

inline Result<AnyPolicy> make(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  const auto specs = parse_policy_list(text);
  if (!specs) return Unexpected{specs.error()};
  return registry().make(specs->front(), {.jobs = &jobs, .cluster = &cluster, .seed = 1, .power = &signals_of_tests()});
}

/// Why that policy cannot be made for these jobs; "no error" when it can.
inline std::string error_of_policy(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  const auto policy = make(text, jobs, cluster);
  return policy ? "no error" : policy.error().to_string();
}

inline Spans run_policy(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  auto policy = make(text, jobs, cluster);
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().to_string());
  return run(jobs, cluster, *std::move(policy));
}

/// The same of a policy that may be written with its way of backfilling.
inline Spans run_backfilled(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto specs = parse_policies(registry, text);
  EXPECT_TRUE(specs) << (specs ? "" : specs.error().to_string());
  auto policy = make_policy(registry, specs->front(), {.jobs = &jobs, .cluster = &cluster});
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().to_string());
  return run(jobs, cluster, *std::move(policy));
}

}  // namespace gpusched::test
