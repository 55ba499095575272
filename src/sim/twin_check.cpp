// SPDX-License-Identifier: Apache-2.0
#include "src/sim/twin_check.hpp"

#include <algorithm>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/base/number_text.hpp"
#include "src/base/text_table.hpp"
#include "src/policies/seam/registry.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {
namespace {

constexpr double most_apart = 1.5;
constexpr double no_queue_s = 1;

Result<double> mean_wait_s(const std::string& name, const JobTable& jobs, const Cluster& cluster) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  auto policy = registry.make({.text = name, .name = name, .given = {}}, {.jobs = &jobs, .cluster = &cluster});
  if (!policy) return Unexpected{policy.error()};
  Engine engine(jobs, cluster);
  RunLog log;
  simulate(engine, *policy, log);
  if (engine.view().finished() < jobs.size()) return unexpected(name + " leaves jobs waiting for ever");
  return compute_metrics(engine, log).avg_wait_s.value();
}

}  // namespace

bool TwinWait::alike() const {
  const double real = std::max(real_s, no_queue_s), twin = std::max(twin_s, no_queue_s);
  return real <= most_apart * twin && twin <= most_apart * real;
}

bool TwinCheck::alike() const {
  return std::all_of(waits.begin(), waits.end(), [](const TwinWait& wait) { return wait.alike(); });
}

Result<TwinCheck> check_twin(const JobTable& real, const JobTable& twin, const Cluster& cluster) {
  const std::int64_t gpus = cluster.total_gpus();
  TwinCheck check{.cluster = cluster.name,
                  .load = offered_load(real, gpus),
                  .real_jobs = real.size(),
                  .twin_jobs = twin.size(),
                  .waits = {}};
  const JobTable at_equal_load = twin.slice(0, twin.size(), offered_load(twin, gpus) / check.load);
  for (const char* name : {"fifo", "srtf", "tiresias"}) {
    const auto real_s = mean_wait_s(name, real, cluster);
    if (!real_s) return Unexpected{real_s.error()};
    const auto twin_s = mean_wait_s(name, at_equal_load, cluster);
    if (!twin_s) return Unexpected{twin_s.error()};
    check.waits.push_back({.policy = name, .real_s = *real_s, .twin_s = *twin_s});
  }
  return check;
}

std::string twin_check_text(const TwinCheck& check) {
  TextTable table({"mean wait s", "trace", "twin", "ratio"});
  for (const TwinWait& wait : check.waits) {
    const bool queued = wait.real_s >= no_queue_s;
    table.add({wait.policy, formatted("%.1f", wait.real_s), formatted("%.1f", wait.twin_s),
               queued ? formatted("%.2f", wait.twin_s / wait.real_s) : "-"});
  }
  return "twin of " + human_count(check.real_jobs) + " jobs on " + check.cluster + " at offered load " +
         formatted("%.3f", check.load) + ":\n" + table.text();
}

}  // namespace gpusched
