// SPDX-License-Identifier: Apache-2.0
/// Gavel (Narayanan et al., OSDI'20): policies that read how fast each job is on each GPU type. A linear programme says
/// which fraction of its time a job should run where; rounds of fixed length then give each job as much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/throughput/allocation.hpp"
#include "src/policies/throughput/empty_cluster.hpp"

namespace gpusched {

/// What the allocation is to reach.
enum class GavelObjective : std::uint8_t {
  max_min,               ///< max_min_fair()
  water_filling,         ///< water_filling() between owners
  makespan,              ///< least_makespan(), from the true work left
  finish_time_fairness,  ///< finish_time_fair(), from the true work left
  fifo,       ///< jobs in order of arrival, each on the GPU type where it is fastest of those with room; the first
              ///< that fits none ends the list
  last_type,  ///< the FIFO of the artifact, see `fifo@gavel`: every job on the GPU type of the last name
};

struct GavelOptions {
  std::string name;
  GavelObjective objective = GavelObjective::max_min;
  Time round{};                                   ///< length of a round
  Time between_allocations{};                     ///< an allocation holds at least so long
  bool aware = true;                              ///< false: as if all GPU types were equally fast
  OwnerColumn owners = OwnerColumn::user;         ///< of water_filling
  std::vector<double> gpus;                       ///< of the cluster, by GPU type
  std::vector<std::uint32_t> types_by_name = {};  ///< GPU types in order of their names
};

/// The round-based mechanism of section 5, as the simulator of the artifact runs it (scheduler.py): between rounds,
/// each GPU type takes jobs in falling order of allocation / (fraction of the type's time that the job received since
/// the last allocation), greedily; ties go to the job with the greater deficit of time, then allocation, then the
/// earlier one. GPU types choose in the order of the cluster file. A job that keeps its GPU type keeps its nodes. A
/// round lasts `round`, or until all its jobs have ended; a GPU freed earlier idles until then. Jobs that arrive or end
/// ask for another allocation, which is made at the next round that begins `between_allocations` after the last one.
///
/// What the paper leaves out: gangs that no GPU type alone can hold, and jobs without GPUs, start where there is room
/// at the beginning of a round, in order of arrival after the others, and run until they end. Virtual clusters bound
/// starts alone; the programmes see one pool for each GPU type.
class Gavel {
 public:
  explicit Gavel(GavelOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const { return options_.name; }
  [[nodiscard]] bool clairvoyant() const { return reads_work_left(); }
  void decide(const OracleView& view, Decision& decision);

 private:
  // What the policy knows of a job on a GPU type.
  struct OnType {
    double throughput = 0;  // 0: cannot run there
    double allocation = 0;
    double received_s = 0;  // since the last allocation, half a round to begin with
    double deficit_s = 0;   // what allocations before promised beyond what was received
  };
  struct Job {
    std::vector<OnType> types;            // empty: runs where there is room
    std::uint32_t running_on = no_index;  // GPU type
    std::uint32_t place = no_index;       // GPU type in the coming round
    Time since{};                         // begin of its time in this round
    // Of finish_time_fairness. What the job did would have taken isolated_s on its share; at the last allocation it had
    // left_s to do, isolated_throughput a second.
    double isolated_s = 0, left_s = 0, isolated_throughput = 0;
  };
  // A job that may run on a GPU type in the coming round.
  struct Candidate {
    JobId job = no_job;
    std::uint32_t type = 0;
    double priority = 0, deficit = 0, allocation = 0;
  };

  void note_events(const View& view);
  void enter(const View& view, JobId id);
  void account(JobId id, Time until);
  void allocate(const OracleView& view);
  void restart_accounts(const View& view);
  void note_isolated(const OracleView& view, const std::vector<JobId>& jobs);
  [[nodiscard]] Allocation solve(const OracleView& view, const std::vector<JobId>& jobs) const;
  [[nodiscard]] Allocation allocation_of(const AllocationProblem& problem, std::size_t entities) const;
  [[nodiscard]] AllocationJob as_programmed(const OracleView& view, JobId id) const;
  [[nodiscard]] Allocation in_order_of_arrival(const View& view, const std::vector<JobId>& jobs) const;
  [[nodiscard]] std::vector<Candidate> candidates(std::uint32_t type) const;
  std::pair<std::vector<Candidate>, std::vector<Candidate>> choose(const View& view);
  void begin_round(const View& view, Decision& decision);
  void start_without_type(const View& view, Decision& decision);
  [[nodiscard]] std::vector<double> gpus_left(const View& view) const;

  [[nodiscard]] std::uint32_t type_count() const { return static_cast<std::uint32_t>(options_.gpus.size()); }
  [[nodiscard]] bool reads_work_left() const {
    return options_.objective == GavelObjective::makespan || options_.objective == GavelObjective::finish_time_fairness;
  }
  [[nodiscard]] bool runs_in_order() const {
    return options_.objective == GavelObjective::fifo || options_.objective == GavelObjective::last_type;
  }

  GavelOptions options_;
  std::optional<EmptyCluster> empty_;
  std::vector<Job> jobs_;        // by JobId
  std::vector<JobId> active_;    // in the system, in order of arrival (QueuePlace)
  std::vector<double> given_s_;  // by GPU type: time given to all jobs since the last allocation
  Time last_allocation_ = Time::max(), round_end_ = Time::max();
  Time began_ = Time::max();  // the first event
  bool outdated_ = true;      // jobs came or went since the last allocation
};

}  // namespace gpusched
