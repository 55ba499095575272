// SPDX-License-Identifier: Apache-2.0
/// Runs of a host that must be those of simulate().
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/online/model_host.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {

inline OnlinePolicyMaker maker(const std::string& text) {
  return [text](const JobTable& jobs, const Cluster& cluster) -> Result<AnyPolicy> {
    const auto specs = parse_policies(registry(), text);
    if (!specs) return Unexpected{specs.error()};
    return make_policy(registry(), specs->front(), {.jobs = &jobs, .cluster = &cluster, .seed = 7});
  };
}

inline std::vector<Happening> replayed(const JobTable& jobs, const Cluster& cluster, const std::string& policy,
                                       const EngineOptions& options, const NodeFailures& failures) {
  AnyPolicy made = *maker(policy)(jobs, cluster);
  Engine engine(jobs, cluster, options, {.failures = &failures});
  HappeningLog log;
  simulate(engine, made, log);
  return log.happenings;
}

// Free preemption, and one that costs two seconds.
inline const EngineOptions free_preemption{};
inline const EngineOptions dear_preemption{.preemption = {.checkpoint = whole_seconds(1), .restart = whole_seconds(1)}};

inline void expect_replay(const JobTable& jobs, const Cluster& cluster, const std::string& policy, HostManner manner,
                          const EngineOptions& options, OnlineGrowth growth = {}) {
  NodeFailures failures;
  for (const NodeId node : manner.out) failures.add_changes({{{.time = Time{} - end_of_time, .node = node}}});
  failures.add_changes(manner.changes);
  OnlineScheduler scheduler(cluster, maker(policy), options, manner.nodes_may_fail, growth);
  ModelHost host(jobs, scheduler, manner, options.preemption);
  const auto ran = host.run();
  RC_LOG() << policy << ": " << (ran ? "ran" : ran.error().to_string()) << '\n';
  RC_ASSERT(ran.has_value());
  RC_ASSERT(host.happenings() == replayed(jobs, cluster, policy, options, failures));
}

// Of one attempt each.
inline std::vector<Row> first_rows(std::vector<Row> rows, std::size_t most) {
  if (rows.size() > most) rows.resize(most);
  for (Row& row : rows) row.attempts.clear();
  return rows;
}

// Outages of nodes, one after the other on each, by time.
inline rc::Gen<std::vector<NodeChange>> node_changes(std::uint32_t nodes) {
  return rc::gen::exec([nodes] {
    std::vector<NodeChange> changes;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      Time at = whole_seconds(*rc::gen::inRange(-5, 40));
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
        changes.push_back({at, NodeId{node}, false});
        at = at + whole_seconds(*rc::gen::inRange(1, 30));
        changes.push_back({at, NodeId{node}, true});
        at = at + whole_seconds(*rc::gen::inRange(1, 30));
      }
    }
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    return changes;
  });
}

}  // namespace gpusched::test
