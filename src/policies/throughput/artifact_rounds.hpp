// SPDX-License-Identifier: Apache-2.0
/// Rounds as the simulator of Gavel's artifact runs them (scheduler.py, commit c4fa400), quirk by quirk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gpusched/data/runtime_model.hpp"
#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/base/python_random.hpp"
#include "src/policies/throughput/artifact_allocations.hpp"
#include "src/policies/throughput/empty_cluster.hpp"
#include "src/policies/throughput/gavel_allocator.hpp"
#include "src/policies/throughput/time_accounts.hpp"

namespace gpusched {

struct ArtifactOptions {
  std::string name;
  double round_s = 0;
  double reset_s = 0;  ///< an allocation holds at least so long
  std::optional<std::uint64_t> shuffle_seed =
      {};                                 ///< GPU types choose in a new order each round: that of random.Random
  const RuntimeModel* runtime = nullptr;  ///< of its throughputs; null: work is not in steps
};

/// Its quirks:
/// 1. A round lasts until the last of its jobs stops, and all of it counts as time that jobs received: from the end of
///    the round before, so that a pause in between counts too. With nobody running the next round begins at the next
///    arrival, however many wait; when all jobs have come, at once.
/// 2. When jobs came or went, an allocation is made at a round that begins `reset_s` or later after the last one, and
///    at any round while the last one is that of the first instant: to nobody, too, when the last job has ended.
/// 3. What is allocated: GavelAllocator, HeldMatching, LastType.
/// 4. GPU types choose one after another in falling order of their names (V100, P100, K80), or, for policies that know
///    no throughputs, in a random one. Each takes jobs by allocation / part of the type's time received, then deficit,
///    then allocation, then arrival, until it is full: jobs with allocation 0 there too, before another type is asked.
/// 5. A job that came after the last allocation takes its place on a GPU and does not run.
/// 6. A job makes whole steps only, int(throughput x round_s) a round, and its GPU idles for the rest of the round. Of
///    a throughput too low for one step, parts of one.
/// Steps need throughputs that were measured (`--throughputs`); without, work is divided at will.
///
/// The artifact knows one-GPU machines that never fail. What else a run has is taken as Gavel takes it: gangs that no
/// GPU type holds start where there is room, and a job of which the engine says that it did less than planned (a
/// restart's cost, work lost in a failure) has as much left as the engine says; a round waits for a job that ends in
/// it.
class ArtifactRounds {
 public:
  using Allocator = std::variant<GavelAllocator, HeldMatching, LastType>;

  ArtifactRounds(ArtifactOptions options, Allocator allocator, GpuTypes types)
      : options_(std::move(options)),
        allocator_(std::move(allocator)),
        types_(std::move(types)),
        accounts_(types_.count(), options_.round_s) {
    if (options_.shuffle_seed) shuffler_.emplace(*options_.shuffle_seed);
  }

  [[nodiscard]] std::string_view name() const { return options_.name; }
  [[nodiscard]] bool clairvoyant() const {
    return std::visit([](const auto& allocator) { return allocator.reads_work_left(); }, allocator_);
  }
  void decide(const OracleView& view, Decision& decision);

 private:
  struct Job {
    bool typed = false;                         // false: runs where there is room
    bool allocated = false;                     // in the last allocation
    bool over = false;                          // it ended in the present round
    bool in_steps = false;                      // it makes whole ones
    double total = 0, done = 0, reference = 1;  // steps, and how many a second the reference device makes
    std::uint32_t running_on = no_index;        // GPU type
    std::uint32_t place = no_index;             // GPU type in the coming round
    double steps = 0;                           // of the present round
    Time engine_left{};                         // what the engine says is left, if all goes as planned
  };
  // A job that runs in the round, and when it has made its steps.
  struct Stop {
    JobId job = no_job;
    std::uint32_t type = 0;
    double at_s = 0;
    bool ends = false, is_late = false;  // then; or later, as its start cost time
  };

  void note_events(const OracleView& view);
  [[nodiscard]] bool is_ending(const OracleView& view);
  void enter(const OracleView& view, JobId id);
  void leave(JobId id);
  void end_round(const OracleView& view);
  void begin_round(const OracleView& view, Decision& decision);
  [[nodiscard]] bool may_allocate() const;
  void allocate(const OracleView& view);
  bool choose(const OracleView& view);
  [[nodiscard]] std::vector<JobId> queue_of(std::uint32_t type) const;
  void move_jobs(const OracleView& view, Decision& decision);
  bool start(Decision& decision, JobId id, std::uint32_t type);
  void plan(const OracleView& view, Decision& decision);
  void set_left(const OracleView& view, Decision& decision, JobId id, Time left);
  [[nodiscard]] std::span<const double> measured(const View& view, JobId id) const;
  [[nodiscard]] double throughput(JobId id, std::uint32_t type) const { return accounts_.of(id)[type].throughput; }

  ArtifactOptions options_;
  Allocator allocator_;
  GpuTypes types_;
  TimeAccounts accounts_;
  std::optional<PythonRandom> shuffler_;
  std::optional<EmptyCluster> empty_;
  std::vector<Job> jobs_;      // by JobId
  std::vector<JobId> active_;  // in the system, in order of arrival (QueuePlace)
  std::vector<Stop> stops_;    // of the present round
  double now_s_ = 0;           // of the artifact's clock, which has no least unit
  std::optional<double> first_s_, last_allocation_s_;
  std::optional<double> round_start_s_, round_end_s_;  // of the last round in which jobs ran
  Time round_begin_{}, round_end_ = Time::max();       // of the present round, on the engine's clock
  bool outdated_ = true;                               // jobs came or went since the last allocation
};

}  // namespace gpusched
