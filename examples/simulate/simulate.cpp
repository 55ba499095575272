// SPDX-License-Identifier: Apache-2.0
// simulate TRACE CLUSTER POLICY...: the mean completion time of the trace's jobs under each policy.
#include <cstdio>

#include "src/sim/replay.hpp"

int main(int argc, char** argv) {
  using namespace gpusched;
  if (argc < 4) return std::fprintf(stderr, "usage: simulate TRACE CLUSTER POLICY...\n"), 2;
  Scenario scenario;
  scenario.trace = argv[1];
  scenario.cluster = argv[2];
  scenario.policies.assign(argv + 3, argv + argc);
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  if (!input) return std::fprintf(stderr, "simulate: %s\n", input.error().to_string().c_str()), 2;
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 1, {}, progress);
  if (!runs) return std::fprintf(stderr, "simulate: %s\n", runs.error().to_string().c_str()), 2;
  for (const PolicyRun& run : *runs) {
    if (run.why_unfinished.empty()) {
      std::printf("%-12s %8.2f s\n", run.policy.c_str(), run.metrics.avg_jct_s.value());
    } else {
      std::printf("%-12s %s\n", run.policy.c_str(), run.why_unfinished.c_str());
    }
  }
}
