// SPDX-License-Identifier: Apache-2.0
// The job that is smallest for how long it has waited goes first: GPUs^alpha / (wait + 1 s), greedy.
#include <algorithm>
#include <cmath>
#include <gpusched/plugin/policy_plugin.hpp>
#include <utility>
#include <vector>

using namespace gpusched;

struct SmallOrPatient {
  explicit SmallOrPatient(const PluginRun& run) : alpha(run.number("alpha")) {}

  std::string_view name() const { return "small-or-patient"; }

  void decide(const View& view, Decision& decision) {
    std::vector<std::pair<double, JobId>> order;  // ties go to the lower job id
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      for (const JobId job : view.queue(queue)) {
        const double gpus = std::max(1.0, static_cast<double>(view.shape(job).gpu_milli()) / whole_gpu);
        order.emplace_back(std::pow(gpus, alpha) / (to_seconds(view.now() - view.submit(job)) + 1), job);
      }
    }
    std::sort(order.begin(), order.end());
    for (const auto& [score, job] : order) decision.start(job);  // refused where it does not fit
  }

  double alpha;
};

GPUSCHED_POLICY_PLUGIN(SmallOrPatient, {.name = "small-or-patient",
                                        .summary = "few GPUs and a long wait first, greedy",
                                        .parameters = {number_parameter("alpha", 1, "weight of the GPUs", 0, 10)}});
