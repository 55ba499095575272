// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/class_queues.hpp"

namespace gpusched {

ParameterInfo owner_parameter(std::string fallback) {
  return {.name = "by",
          .fallback = std::move(fallback),
          .meaning = "whose shares are kept: the users of the trace or its virtual clusters (queues, partitions)",
          .words = {"user", "vc"}};
}

ParameterInfo weights_parameter() {
  return {.name = "weights",
          .fallback = std::vector<double>{},
          .meaning = "weights of the owners in order of their first job; those beyond the list weigh 1",
          .least = 0.001,
          .most = 1e6};
}

Result<OwnerColumn> owner_column(std::string_view policy, const PolicyParameters& parameters,
                                 const PolicyContext& context) {
  const bool by_user = parameters.word("by") == "user";
  const bool users = context.jobs->has_users(), vcs = context.jobs->has_vcs();
  if (by_user ? users : vcs) return by_user ? OwnerColumn::user : OwnerColumn::vc;
  const std::string missing = by_user ? "users" : "virtual clusters";
  const std::string other =
      by_user ? (vcs ? "; it has virtual clusters: give by=vc" : "") : (users ? "; it has users: give by=user" : "");
  return unexpected("policy " + std::string(policy) + " shares between " + missing + ", and the trace names none" +
                    other);
}

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
