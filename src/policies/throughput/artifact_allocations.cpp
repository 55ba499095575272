// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/artifact_allocations.hpp"

#include <algorithm>

#include "src/policies/throughput/rectangular_assignment.hpp"

namespace gpusched {

// The GPU type of each free worker.
std::vector<std::uint32_t> HeldMatching::free_workers() const {
  std::vector<double> free = types_.gpus;
  for (const auto& [job, held] : held_) free[held.type] -= held.gpus;
  std::vector<std::uint32_t> workers;
  for (const std::uint32_t type : types_.by_name) {
    if (free[type] >= 1) workers.insert(workers.end(), static_cast<std::size_t>(free[type] + 1e-9), type);
  }
  return workers;
}

Allocation HeldMatching::allocate(const View&, const std::vector<AllocatedJob>& jobs) {
  const std::vector<std::uint32_t> workers = free_workers();
  const auto free = static_cast<std::uint32_t>(workers.size());
  std::vector<const AllocatedJob*> rows;
  for (const AllocatedJob& job : jobs) {
    if (!held_.contains(job.id)) rows.push_back(&job);
  }
  const auto looked_at = static_cast<std::size_t>(alpha_ * static_cast<double>(rows.size()));
  rows.resize(std::min(rows.size(), std::max<std::size_t>(looked_at, free)));
  const auto count = static_cast<std::uint32_t>(rows.size());
  if (free > 0) {
    // Column k x workers + w: the (k + 1)-th from the end of the queue of worker w.
    const std::vector<std::uint32_t> column_of =
        rectangular_assignment(count, count * free, [&](std::uint32_t row, std::uint32_t column) {
          const double throughput = rows[row]->throughput[workers[column % free]];
          const double time = rows[row]->left / (throughput > 0 ? throughput : 1e-10) * rows[row]->gpus;
          return (column / free + 1) * time + rows[row]->age_s;
        });
    std::vector<std::uint32_t> first(free, no_index);  // the row that is first on each worker
    for (std::uint32_t row = 0; row < count; ++row) {
      std::uint32_t& other = first[column_of[row] % free];
      if (other == no_index || column_of[row] > column_of[other]) other = row;
    }
    for (std::uint32_t worker = 0; worker < free; ++worker) {
      if (first[worker] == no_index) continue;
      const AllocatedJob& job = *rows[first[worker]];
      if (job.throughput[workers[worker]] > 0) held_[job.id] = {workers[worker], job.gpus};
    }
  }
  Allocation allocation(jobs.size(), std::vector<double>(types_.count(), 0.0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto held = held_.find(jobs[i].id);
    if (held != held_.end()) allocation[i][held->second.type] = 1;
  }
  return allocation;
}

Allocation LastType::allocate(const View&, const std::vector<AllocatedJob>& jobs) const {
  Allocation allocation(jobs.size(), std::vector<double>(types_.count(), 0.0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    allocation[i][*std::find_if(types_.by_name.rbegin(), types_.by_name.rend(),
                                [&](std::uint32_t type) { return jobs[i].throughput[type] > 0; })] = 1;
  }
  return allocation;
}

}  // namespace gpusched
