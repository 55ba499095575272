// SPDX-License-Identifier: Apache-2.0
/// A small world drawn from a seed, with every effect of the engine in it together.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/policies/random_world.hpp"

namespace gpusched::test {

/// A value; inputs() borrows it.
struct DrawnWorld {
  RandomWorld world;
  RuntimeModel runtime;
  NodeFailures failures;
  StageModel stages;
  ElasticModel elastic;
  JobChanges changes;
  PowerModel power;
  bool kill_at_limit = false;

  [[nodiscard]] const JobTable& jobs() const { return world.jobs; }
  [[nodiscard]] const Cluster& cluster() const { return world.cluster; }
  /// Runs may lose work, or spend time on overhead.
  [[nodiscard]] bool counts_costs() const { return Engine(jobs(), cluster(), world.options, inputs()).counts_costs(); }
  [[nodiscard]] RunInputs inputs() const {
    return {.runtime = &runtime,
            .failures = &failures,
            .stages = &stages,
            .elastic = &elastic,
            .changes = &changes,
            .power = &power,
            .kill_at_limit = kill_at_limit};
  }
};

/// Instants lie on a grid of ten seconds half of the time, so that ends, changes and failures meet. Nothing when no job
/// fits. `has_mig`: some nodes' cards are cut.
std::optional<DrawnWorld> drawn_world(std::uint64_t seed, WorldKind kind, bool has_mig);

}  // namespace gpusched::test
