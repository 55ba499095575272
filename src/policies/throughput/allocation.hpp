// SPDX-License-Identifier: Apache-2.0
/// Allocations of Gavel (Narayanan et al., OSDI'20): which fraction of its time a job should run on each GPU type, as
/// the solution of a linear programme over the throughputs of the jobs. Fractions of a job add up to at most 1, and the
/// GPUs of the jobs on a type to at most those that there are (section 4).
#pragma once

#include <cstdint>
#include <vector>

namespace gpusched {

/// A job as the programmes see it, or several that are alike: they then get equal fractions, and the programme stays
/// small however many they are.
struct AllocationJob {
  std::vector<double> throughput;  ///< by GPU type, in any unit that all types share; 0: cannot run there
  double gpus = 1;                 ///< that the gang holds while it runs
  double weight = 1;               ///< its share beside jobs of the same entity; > 0
  std::uint32_t entity = 0;        ///< whom it belongs to (water_filling() alone)
  double count = 1;                ///< jobs that are alike
  double remaining = 0;            ///< work left: time x throughput (least_makespan() and finish_time_fair(), > 0)
  double elapsed = 0;              ///< time since it came (finish_time_fair() alone)
  double isolated = 0;             ///< time from its beginning to its end on its share alone (finish_time_fair(), > 0)
};

/// What is to be divided.
struct AllocationProblem {
  std::vector<double> gpus;  ///< by GPU type
  std::vector<AllocationJob> jobs;
};

/// [job][GPU type]: the fraction of time that the job should run there.
using Allocation = std::vector<std::vector<double>>;

/// The throughput of a job under an allocation, divided by what it would have if each GPU type were divided evenly
/// among all jobs (section 4.1, and `proportional.py` of the artifact).
double normalised_throughput(const AllocationProblem& problem, const Allocation& allocation, std::size_t job);

/// The throughput of a job that has an equal share of the GPUs of each type to itself: the fraction of time that this
/// share gives it, at most 1. `jobs`: how many share the cluster (section 4.2).
double isolated_throughput(const std::vector<double>& gpus, const AllocationJob& job, double jobs);

/// Maximises the least normalised_throughput() x GPUs / weight: LAS, aware of how fast the jobs are where (section
/// 4.1). Of the allocations of that least value it is one with the greatest sum of normalised throughputs.
/// Precondition of this and those below: has_lp_solver(), and every job can run somewhere.
Allocation max_min_fair(const AllocationProblem& problem);

/// The least time T in which all jobs can end, if each runs at its allocation all the time (section 4.2).
Allocation least_makespan(const AllocationProblem& problem);

/// Minimises the greatest finish-time ratio, (elapsed + remaining / throughput) / isolated: Themis' objective, aware of
/// how fast the jobs are where (section 4.2). For one ratio the programme is linear; ratios are bisected to 1e-6.
Allocation finish_time_fair(const AllocationProblem& problem);

/// Hierarchical fairness by water filling (section 4.3): raises the normalised throughputs of all jobs in proportion to
/// their weights until a job is stuck, fixes it, hands its weight on to the other jobs of its entity, and goes on.
/// `entity_weights`: by entity.
Allocation water_filling(const AllocationProblem& problem, const std::vector<double>& entity_weights);

}  // namespace gpusched
