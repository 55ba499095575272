// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/gavel_allocator.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace gpusched {

GpuTypes::GpuTypes(const Cluster& cluster) : gpus(cluster.gpu_types.size(), 0.0), by_name(cluster.gpu_types.size()) {
  for (const Node& node : cluster.nodes) gpus[node.gpu_type] += node.gpus;
  std::iota(by_name.begin(), by_name.end(), 0u);
  std::sort(by_name.begin(), by_name.end(),
            [&](std::uint32_t a, std::uint32_t b) { return cluster.gpu_types[a] < cluster.gpu_types[b]; });
}

namespace {

double fastest(const AllocatedJob& job) { return *std::max_element(job.throughput.begin(), job.throughput.end()); }

// Of the jobs, each on the GPU type where it is fastest; 1 where nobody has work left.
double longest_left_s(const std::vector<AllocatedJob>& jobs) {
  double longest = 0;
  for (const AllocatedJob& job : jobs) longest = std::max(longest, job.left / fastest(job));
  return longest > 0 ? longest : 1;
}

}  // namespace

Allocation GavelAllocator::allocate(const View& view, const std::vector<AllocatedJob>& jobs) {
  if (objective_ == GavelObjective::fifo) return in_order_of_arrival(jobs);
  std::vector<std::size_t> kind_of;
  const std::vector<std::vector<std::uint32_t>> types_of_column = columns(jobs);
  const AllocationProblem problem = problem_of(view, jobs, kind_of);
  const Allocation of_kinds = solve(problem);
  Allocation allocation(jobs.size(), std::vector<double>(types_.count(), 0.0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (std::size_t column = 0; column < types_of_column.size(); ++column) {
      for (const std::uint32_t type : types_of_column[column]) {
        const double fraction = of_kinds[kind_of[i]][column];
        // A programme's solution has zeros that are not quite.
        if (fraction > 1e-9) allocation[i][type] = fraction * (types_.gpus[type] / problem.gpus[column]);
      }
    }
  }
  return allocation;
}

// The GPU types of each column of the programme.
std::vector<std::vector<std::uint32_t>> GavelAllocator::columns(const std::vector<AllocatedJob>& jobs) const {
  std::vector<std::vector<std::uint32_t>> columns;
  const auto alike = [&](std::uint32_t a, std::uint32_t b) {
    return std::all_of(jobs.begin(), jobs.end(),
                       [&](const AllocatedJob& job) { return (job.throughput[a] > 0) == (job.throughput[b] > 0); });
  };
  for (const std::uint32_t type : types_.by_name) {
    const auto same = std::find_if(columns.begin(), columns.end(), [&](const std::vector<std::uint32_t>& types) {
      return !aware_ && alike(types.front(), type);
    });
    if (same == columns.end()) {
      columns.push_back({type});
    } else {
      same->push_back(type);
    }
  }
  return columns;
}

// Jobs that are alike in all that the programme reads are one kind; `kind_of`: that of each job.
AllocationProblem GavelAllocator::problem_of(const View& view, const std::vector<AllocatedJob>& jobs,
                                             std::vector<std::size_t>& kind_of) {
  const std::vector<std::vector<std::uint32_t>> types_of_column = columns(jobs);
  AllocationProblem problem;
  for (const std::vector<std::uint32_t>& types : types_of_column) {
    double gpus = 0;
    for (const std::uint32_t type : types) gpus += types_.gpus[type];
    problem.gpus.push_back(gpus);
  }
  using Kind = std::tuple<std::vector<double>, double, std::uint32_t, double, double, double>;
  std::map<Kind, std::vector<std::size_t>> kinds;
  std::map<std::uint32_t, std::uint32_t> entity_of_owner;  // in order of arrival of their first jobs
  const double least_s = 1e-9 * longest_left_s(jobs);      // no programme may divide by nothing
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const AllocatedJob& job = jobs[i];
    AllocationJob programmed{.throughput = {}, .gpus = job.gpus};
    for (const std::vector<std::uint32_t>& types : types_of_column) {
      const double throughput = job.throughput[types.front()];
      programmed.throughput.push_back(aware_ || throughput <= 0 ? throughput : 1);
    }
    if (reads_work_left()) programmed.remaining = std::max(job.left, least_s * fastest(job));
    if (objective_ == GavelObjective::finish_time_fairness) {
      programmed.elapsed = job.age_s;
      programmed.isolated = isolated_time(job.id, programmed, problem.gpus, static_cast<double>(jobs.size()));
    }
    if (objective_ == GavelObjective::water_filling) {
      const auto entities = static_cast<std::uint32_t>(entity_of_owner.size());
      programmed.entity = entity_of_owner.try_emplace(owner_of(owners_, view, job.id), entities).first->second;
    }
    kinds[Kind{programmed.throughput, programmed.gpus, programmed.entity, programmed.remaining, programmed.elapsed,
               programmed.isolated}]
        .push_back(i);
  }
  kind_of.resize(jobs.size());
  for (const auto& [kind, members] : kinds) {
    for (const std::size_t member : members) kind_of[member] = problem.jobs.size();
    const auto& [throughput, gpus, entity, remaining, elapsed, isolated] = kind;
    problem.jobs.push_back({.throughput = throughput,
                            .gpus = gpus,
                            .entity = entity,
                            .count = static_cast<double>(members.size()),
                            .remaining = remaining,
                            .elapsed = elapsed,
                            .isolated = isolated});
  }
  return problem;
}

// Time from the job's beginning to its end on its share alone, which for what it did is that of the time.
double GavelAllocator::isolated_time(JobId id, const AllocationJob& job, const std::vector<double>& gpus, double jobs) {
  Share& share = shares_[id];
  if (share.isolated_throughput > 0) share.isolated_s += (share.left - job.remaining) / share.isolated_throughput;
  share.left = job.remaining;
  share.isolated_throughput = isolated_throughput(gpus, job, jobs);
  return share.isolated_s + share.left / share.isolated_throughput;
}

Allocation GavelAllocator::solve(const AllocationProblem& problem) const {
  switch (objective_) {
    case GavelObjective::makespan: return least_makespan(problem);
    case GavelObjective::finish_time_fairness: return finish_time_fair(problem);
    case GavelObjective::water_filling: {
      std::uint32_t entities = 0;
      for (const AllocationJob& job : problem.jobs) entities = std::max(entities, job.entity + 1);
      return water_filling(problem, std::vector<double>(entities, 1.0));
    }
    default: return max_min_fair(problem);
  }
}

Allocation GavelAllocator::in_order_of_arrival(const std::vector<AllocatedJob>& jobs) const {
  Allocation allocation(jobs.size(), std::vector<double>(types_.count(), 0.0));
  std::vector<double> left = types_.gpus;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::uint32_t best = no_index;
    double fastest = 0;
    for (const std::uint32_t type : types_.by_name) {
      const double throughput = aware_ ? jobs[i].throughput[type] : std::min(jobs[i].throughput[type], 1.0);
      if (throughput <= fastest || left[type] < jobs[i].gpus) continue;
      best = type;
      fastest = aware_ ? throughput : 1;
    }
    if (best == no_index) break;
    allocation[i][best] = 1;
    left[best] -= jobs[i].gpus;
  }
  return allocation;
}

}  // namespace gpusched
