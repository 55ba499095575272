// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/allocation.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "gpusched/core/types.hpp"
#include "src/policies/throughput/linear_program.hpp"

namespace gpusched {
namespace {

// Throughput if every GPU type were divided evenly among the jobs. The fractions may be scaled so that they add up to
// 1: the artifact does so, and normalised throughputs are compared alone.
double even_throughput(const AllocationProblem& problem, const AllocationJob& job) {
  const double gpus = std::accumulate(problem.gpus.begin(), problem.gpus.end(), 0.0);
  double sum = 0;
  for (std::size_t type = 0; type < problem.gpus.size(); ++type)
    sum += job.throughput[type] * problem.gpus[type] / gpus;
  return sum;
}

// The rows and variables that all programmes share: the fractions of each job on each type, and per job a row whose
// value is its normalised throughput.
class FractionProgram {
 public:
  explicit FractionProgram(const AllocationProblem& problem) : problem_(problem) {
    for (const double gpus : problem.gpus) type_rows_.push_back(program.add_row(-LinearProgram::unbounded, gpus));
    for (const AllocationJob& job : problem.jobs) {
      const int whole = program.add_row(-LinearProgram::unbounded, 1);
      throughput_rows_.push_back(program.add_row(0, LinearProgram::unbounded));
      const double even = even_throughput(problem, job);
      for (std::size_t type = 0; type < problem.gpus.size(); ++type) {
        if (job.throughput[type] <= 0) continue;
        fractions_.push_back({program.add_column(0), type, job.throughput[type] / even * job.count});
        program.put(type_rows_[type], job.gpus * job.count);
        program.put(whole, 1);
        program.put(throughput_rows_.back(), job.throughput[type] / even);
      }
      job_end_.push_back(fractions_.size());
    }
  }

  LinearProgram program;

  // The row of the job's normalised throughput.
  [[nodiscard]] int row(std::size_t job) const { return throughput_rows_[job]; }
  void require(std::size_t job, double least) { program.bound_row(row(job), least, LinearProgram::unbounded); }

  // Lets the sum of normalised throughputs be the objective.
  void maximise_sum() {
    for (const Fraction& fraction : fractions_) program.set_objective(fraction.column, fraction.throughput);
  }

  // None when nothing meets all that is required.
  [[nodiscard]] std::optional<std::vector<double>> solve() const { return program.solve(); }

  [[nodiscard]] Allocation allocation(const std::vector<double>& solution) const {
    Allocation result(problem_.jobs.size(), std::vector<double>(problem_.gpus.size(), 0.0));
    std::size_t at = 0;
    for (std::size_t job = 0; job < result.size(); ++job) {
      for (; at < job_end_[job]; ++at) {
        const double value = solution[static_cast<std::size_t>(fractions_[at].column)];
        result[job][fractions_[at].type] = std::clamp(value, 0.0, 1.0);
      }
    }
    return result;
  }

 private:
  struct Fraction {
    int column = 0;
    std::size_t type = 0;
    double throughput = 0;  // normalised, of all alike jobs, at all of the time
  };

  const AllocationProblem& problem_;
  std::vector<int> type_rows_, throughput_rows_;
  std::vector<Fraction> fractions_;   // job by job
  std::vector<std::size_t> job_end_;  // into fractions_
};

// Bounds that one programme found are required of the next a little weaker, as both are solved in floating point.
constexpr double almost = 1 - 1e-7;

struct Level {
  double value = 0;
  Allocation allocation;  // that reaches it
};

// The most L for which every job with a positive share can have base + share x L.
Level highest_level(const AllocationProblem& problem, const std::vector<double>& base,
                    const std::vector<double>& share) {
  FractionProgram fractions(problem);
  for (std::size_t job = 0; job < base.size(); ++job) fractions.require(job, base[job] * almost);
  const int level = fractions.program.add_column(1);
  for (std::size_t job = 0; job < base.size(); ++job) {
    if (share[job] > 0) fractions.program.put(fractions.row(job), -share[job]);
  }
  const auto solution = fractions.solve();
  GPUSCHED_ASSERT(solution.has_value(), "what was reached is feasible");
  return {(*solution)[static_cast<std::size_t>(level)], fractions.allocation(*solution)};
}

// Jobs of `candidates` that cannot have more than `base` while no other has less. Those that can are found together: if
// some allocation raises one job and some other another, their mean raises both.
std::vector<std::size_t> stuck_jobs(const AllocationProblem& problem, const std::vector<double>& base,
                                    std::vector<std::size_t> candidates) {
  constexpr double step = 1e-3, no_step = 1e-5;  // of a job's base
  while (!candidates.empty()) {
    FractionProgram fractions(problem);
    for (std::size_t job = 0; job < base.size(); ++job) fractions.require(job, base[job] * almost);
    std::vector<int> raises;
    for (const std::size_t job : candidates) {
      raises.push_back(fractions.program.add_column(1, step));
      fractions.program.put(fractions.row(job), -std::max(base[job], 1e-9));
    }
    const auto solution = fractions.solve();
    GPUSCHED_ASSERT(solution.has_value(), "what was reached is feasible");
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if ((*solution)[static_cast<std::size_t>(raises[i])] <= no_step) left.push_back(candidates[i]);
    }
    if (left.size() == candidates.size()) return left;
    candidates = std::move(left);
  }
  return {};
}

double least_time_left(const AllocationJob& job) {
  return job.remaining / *std::max_element(job.throughput.begin(), job.throughput.end());
}

// No allocation has a lower greatest finish-time ratio: each job at its fastest all the time.
double least_ratio(const AllocationProblem& problem) {
  double ratio = 0;
  for (const AllocationJob& job : problem.jobs) {
    ratio = std::max(ratio, (job.elapsed + least_time_left(job)) / job.isolated);
  }
  return ratio;
}

double greatest_ratio(const AllocationProblem& problem, const Allocation& allocation) {
  double ratio = 0;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    const AllocationJob& job = problem.jobs[i];
    const double throughput =
        std::inner_product(job.throughput.begin(), job.throughput.end(), allocation[i].begin(), 0.0);
    ratio = std::max(ratio, (job.elapsed + job.remaining / throughput) / job.isolated);
  }
  return ratio;
}

// The normalised throughputs with which all jobs have that ratio, which is at least the least one.
std::vector<double> needed_for(const AllocationProblem& problem, double ratio) {
  std::vector<double> needed;
  for (const AllocationJob& job : problem.jobs) {
    // Never below the least time but for rounding.
    const double time_left = std::max(ratio * job.isolated - job.elapsed, least_time_left(job));
    needed.push_back(job.remaining / time_left / even_throughput(problem, job));
  }
  return needed;
}

// Of the allocations that give each job its least, the one with the greatest sum of normalised throughputs. None: there
// is no such allocation.
std::optional<Allocation> greatest_sum(const AllocationProblem& problem, const std::vector<double>& least) {
  FractionProgram fractions(problem);
  for (std::size_t job = 0; job < least.size(); ++job) fractions.require(job, least[job] * almost);
  fractions.maximise_sum();
  const auto solution = fractions.solve();
  if (!solution) return {};
  return fractions.allocation(*solution);
}

Allocation greatest_sum_above(const AllocationProblem& problem, const std::vector<double>& reached) {
  auto allocation = greatest_sum(problem, reached);
  GPUSCHED_ASSERT(allocation.has_value(), "what was reached is feasible");
  return *std::move(allocation);
}

}  // namespace

double normalised_throughput(const AllocationProblem& problem, const Allocation& allocation, std::size_t job) {
  double sum = 0;
  for (std::size_t type = 0; type < problem.gpus.size(); ++type) {
    sum += problem.jobs[job].throughput[type] * allocation[job][type];
  }
  return sum / even_throughput(problem, problem.jobs[job]);
}

Allocation max_min_fair(const AllocationProblem& problem) {
  const std::vector<double> nothing(problem.jobs.size(), 0.0);
  std::vector<double> least;
  for (const AllocationJob& job : problem.jobs) least.push_back(job.weight / job.gpus);
  const double level = highest_level(problem, nothing, least).value;
  for (double& throughput : least) throughput *= level;
  return greatest_sum_above(problem, least);
}

Allocation least_makespan(const AllocationProblem& problem) {
  const std::vector<double> nothing(problem.jobs.size(), 0.0);
  std::vector<double> least;
  for (const AllocationJob& job : problem.jobs) least.push_back(job.remaining / even_throughput(problem, job));
  const double longest = *std::max_element(least.begin(), least.end());
  for (double& throughput : least) throughput /= longest;  // numbers about 1
  const double level = highest_level(problem, nothing, least).value;
  for (double& throughput : least) throughput *= level;
  return greatest_sum_above(problem, least);
}

double isolated_throughput(const std::vector<double>& gpus, const AllocationJob& job, double jobs) {
  const double share = std::accumulate(gpus.begin(), gpus.end(), 0.0) / (jobs * job.gpus);
  return even_throughput({.gpus = gpus, .jobs = {}}, job) * std::min(share, 1.0);
}

// Each programme shows whether its ratio can be had, and an allocation, whose own ratio bounds the least one too.
Allocation finish_time_fair(const AllocationProblem& problem) {
  const std::vector<double> nothing(problem.jobs.size(), 0.0);
  Allocation best = max_min_fair(problem);
  double ratio_of_best = greatest_ratio(problem, best);
  double low = least_ratio(problem), high = ratio_of_best;
  for (double ratio = low; high > low * (1 + 1e-6); ratio = (low + high) / 2) {
    Level level = highest_level(problem, nothing, needed_for(problem, ratio));
    const double reached = greatest_ratio(problem, level.allocation);
    (level.value >= almost ? high : low) = ratio;
    high = std::min(high, reached);
    if (reached >= ratio_of_best) continue;
    best = std::move(level.allocation);
    ratio_of_best = reached;
  }
  // Rounding may have taken the last of a need that is small beside the others.
  return greatest_sum(problem, needed_for(problem, ratio_of_best)).value_or(best);
}

Allocation water_filling(const AllocationProblem& problem, const std::vector<double>& entity_weights) {
  const std::size_t count = problem.jobs.size();
  std::vector<double> reached(count, 0.0);
  std::vector<bool> fixed(count, false);
  for (std::size_t left = count; left > 0;) {
    std::vector<double> weight_of_entity(entity_weights.size(), 0.0);  // of the jobs that still rise
    for (std::size_t job = 0; job < count; ++job) {
      if (!fixed[job]) weight_of_entity[problem.jobs[job].entity] += problem.jobs[job].weight * problem.jobs[job].count;
    }
    std::vector<double> share(count, 0.0);
    std::vector<std::size_t> rising;
    for (std::size_t i = 0; i < count; ++i) {
      if (fixed[i]) continue;
      const AllocationJob& job = problem.jobs[i];
      share[i] = entity_weights[job.entity] * job.weight / weight_of_entity[job.entity] / job.gpus;
      rising.push_back(i);
    }
    const double level = highest_level(problem, reached, share).value;
    for (const std::size_t job : rising) reached[job] += share[job] * level;
    std::vector<std::size_t> stuck = stuck_jobs(problem, reached, rising);
    if (stuck.empty()) stuck = rising;  // nothing but rounding is left to divide
    for (const std::size_t job : stuck) fixed[job] = true;
    left -= stuck.size();
  }
  return greatest_sum_above(problem, reached);
}

}  // namespace gpusched
