// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/loaned_servers.hpp"

namespace gpusched {

void LoanedServers::enter(JobId job, const std::vector<std::uint32_t>& servers, bool is_service) {
  if (servers.empty()) return;
  for (const std::uint32_t server : servers) {
    if (is_service) {
      ++servers_[server].services;
    } else {
      servers_[server].jobs.push_back(job);
    }
  }
  held_[job] = {servers, is_service};
}

void LoanedServers::leave(JobId job) {
  const auto found = held_.find(job);
  if (found == held_.end()) return;
  for (const std::uint32_t server : found->second.servers) {
    if (found->second.is_service) {
      --servers_[server].services;
    } else {
      std::erase(servers_[server].jobs, job);
    }
  }
  held_.erase(found);
}

void LoanedServers::clear() {
  servers_.assign(servers_.size(), {});
  held_.clear();
}

const std::vector<std::uint32_t>& LoanedServers::held(JobId job) const {
  static const std::vector<std::uint32_t> none;
  const auto found = held_.find(job);
  return found == held_.end() ? none : found->second.servers;
}

ServerCost LoanedServers::cost(std::uint32_t server) const {
  ServerCost sum = 0;
  for (const JobId job : servers_[server].jobs) sum += whole_job / static_cast<ServerCost>(held(job).size());
  return sum;
}

}  // namespace gpusched
