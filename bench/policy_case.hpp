// SPDX-License-Identifier: Apache-2.0
/// A policy of a benchmark, by its text.
#pragma once

#include <benchmark/benchmark.h>

#include <optional>
#include <string>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched::bench {

/// A policy as the command line writes it, and the backfilling around it.
struct Case {
  std::string policy;
  std::string backfill = {};

  [[nodiscard]] std::string name() const { return backfill.empty() ? policy : policy + "+" + backfill; }
};

/// The policy, or nothing and the benchmark skipped with the reason.
inline std::optional<AnyPolicy> make(benchmark::State& state, const Case& of, const JobTable& jobs,
                                     const Cluster& cluster) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster, .seed = 1};
  const auto made = [&]() -> Result<AnyPolicy> {
    const auto specs = parse_policy_list(of.policy);
    if (!specs) return Unexpected{specs.error()};
    if (of.backfill.empty()) return registry.make(specs->front(), context);
    const auto backfill = parse_backfill(of.backfill);
    if (!backfill) return Unexpected{backfill.error()};
    return make_backfilled(registry, specs->front(), *backfill, context);
  }();
  if (made) return *made;
  state.SkipWithError(made.error().message.c_str());
  return std::nullopt;
}

}  // namespace gpusched::bench
