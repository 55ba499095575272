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

std::vector<std::int64_t> deserved_shares(std::int64_t total, const std::vector<std::int64_t>& weights,
                                          const std::vector<std::int64_t>& demands) {
  std::vector<std::int64_t> shares(weights.size(), 0);
  std::vector<bool> satisfied(weights.size(), false);
  for (bool again = true; again;) {
    again = false;
    std::int64_t left = total, weight_sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      satisfied[i] ? left -= shares[i] : weight_sum += weights[i];
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (satisfied[i]) continue;
      shares[i] = mul_div(left, weights[i], weight_sum);
      if (demands[i] > shares[i]) continue;
      shares[i] = demands[i];
      satisfied[i] = again = true;
    }
  }
  return shares;
}

}  // namespace gpusched
