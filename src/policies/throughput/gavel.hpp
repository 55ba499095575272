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
#include "src/policies/throughput/empty_cluster.hpp"
#include "src/policies/throughput/gavel_allocator.hpp"
#include "src/policies/throughput/time_accounts.hpp"

namespace gpusched {

struct GavelOptions {
  Time round{};                ///< length of a round
  Time between_allocations{};  ///< an allocation holds at least so long
};

/// The rounds of section 5. Before a round all jobs that are to run on a GPU type are listed, with the type, in falling
/// order of allocation / time received there since the last allocation; ties go to the greater deficit of time, then to
/// the greater allocation, the earlier job, the type named first. Down the list each job gets the type if it has none
/// yet and there is room. Who is left without then gets the fastest type with room, in the order of the list and then
/// of arrival. So no GPU is idle that a job could use, none serves a job with allocation 0 while one with a positive
/// allocation there waits, and the order of GPU types in the cluster file does not matter. A job that keeps its GPU
/// type keeps its nodes. A round lasts `round`, or until all its jobs have ended; a GPU freed earlier idles until then.
/// Jobs that arrive or end ask for another allocation, which is made at the next round that begins
/// `between_allocations` after the last one.
///
/// What the paper leaves out: gangs that no GPU type alone can hold, and jobs without GPUs, start where there is room
/// at the beginning of a round, in order of arrival after the others, and run until they end. Virtual clusters bound
/// starts alone; the programmes see one pool for each GPU type.
class Gavel {
 public:
  Gavel(GavelOptions options, GavelAllocator allocator, GpuTypes types)
      : options_(options),
        allocator_(std::move(allocator)),
        types_(std::move(types)),
        accounts_(types_.count(), to_seconds(options.round)) {}

  [[nodiscard]] static std::string_view name() { return "gavel"; }
  [[nodiscard]] bool clairvoyant() const { return allocator_.reads_work_left(); }
  void decide(const OracleView& view, Decision& decision);

 private:
  struct Job {
    bool typed = false;                   // false: runs where there is room
    std::uint32_t running_on = no_index;  // GPU type
    std::uint32_t place = no_index;       // GPU type in the coming round
    Time since{};                         // begin of its time in this round
  };
  // A job that is to run on a GPU type.
  struct Turn {
    JobId job = no_job;
    std::uint32_t type = 0;
    double owed = 0, deficit = 0, allocation = 0;
  };

  void note_events(const View& view);
  void enter(const View& view, JobId id);
  void account(JobId id, Time until);
  void allocate(const OracleView& view);
  [[nodiscard]] std::vector<Turn> turns() const;
  std::vector<JobId> choose(const View& view);
  void begin_round(const View& view, Decision& decision);
  bool start(JobId id, std::uint32_t type, const View& view, Decision& decision);
  [[nodiscard]] std::vector<std::uint32_t> fastest_first(JobId id) const;

  GavelOptions options_;
  GavelAllocator allocator_;
  GpuTypes types_;
  TimeAccounts accounts_;
  std::optional<EmptyCluster> empty_;
  std::vector<Job> jobs_;      // by JobId
  std::vector<JobId> active_;  // in the system, in order of arrival (QueuePlace)
  Time last_allocation_ = Time::max(), round_end_ = Time::max();
  bool outdated_ = true;  // jobs came or went since the last allocation
};

}  // namespace gpusched
