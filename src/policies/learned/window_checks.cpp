// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/window_checks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

// The most that the jobs ask for at one instant if each starts when it is submitted.
MilliGpu peak_demand(const JobTable& jobs) {
  std::vector<std::pair<Time, MilliGpu>> changes;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const MilliGpu milli = jobs.shape(job).gpu_milli();
    changes.emplace_back(jobs.submit(job), milli);
    changes.emplace_back(later_by(jobs.submit(job), jobs.work(job)), -milli);
  }
  std::sort(changes.begin(), changes.end());  // of one instant, what is given back first
  MilliGpu demand = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, demand += change);
  return most;
}

}  // namespace

Result<void> check_choices(std::span<const Window> windows, std::span<const Cluster> clusters,
                           const EnvOptions& options, const std::string& field,
                           const std::function<bool()>& interrupted) {
  if (offers_choice(windows, clusters, options, interrupted)) return {};
  return Unexpected{Error{.message = "no window offers a choice: in none of the " + counted(windows.size(), "window") +
                                     " do scored jobs wait where mode " +
                                     std::string(name_of(action_mode_names, options.agenda.mode)) +
                                     " would choose; take a smaller cluster, longer windows or another mode",
                          .field = field}};
}

std::string uncontended_note(std::span<const Window> windows, const Cluster& cluster) {
  MilliGpu most = 0;
  for (const Window& window : windows) most = std::max(most, peak_demand(window.jobs));
  if (most > cluster.total_gpus() * whole_gpu) return {};
  return "no window asks for more GPUs at once than the cluster has (" + human_count(most / whole_gpu) + " of " +
         human_count(cluster.total_gpus()) +
         "): jobs hardly wait, and rewards for waiting are 0; take a smaller cluster, longer windows, or arrival_scale "
         "below 1";
}

}  // namespace gpusched
