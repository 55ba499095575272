// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/class_queues.hpp"

namespace gpusched {

std::vector<JobId> make_room(JobId job, Placement rule, const std::vector<JobId>& victims, Decision& decision) {
  std::vector<JobId> stopped;
  bool started = decision.start(job, rule) == Verdict::ok;
  for (const JobId victim : victims) {
    if (started) break;
    decision.preempt(victim);
    stopped.push_back(victim);
    started = decision.start(job, rule) == Verdict::ok;
  }
  std::vector<JobId> gone;
  for (const JobId victim : stopped) {
    if (decision.restore(victim) != Verdict::ok) gone.push_back(victim);
  }
  return gone;
}

}  // namespace gpusched
