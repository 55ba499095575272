// SPDX-License-Identifier: Apache-2.0
/// SlurmSweep: the job arrays of a sweep seen from where it was started: what they still have to run, what has come,
/// and what went wrong with their tasks. Only this process writes to the database; tasks leave files.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/sweep/slurm_array.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_store.hpp"

namespace gpusched {

/// Array tasks by what they do, and why some wait.
struct SlurmTaskCount {
  std::uint64_t running = 0, waiting = 0;
  std::set<std::string> reasons = {};  ///< Slurm's words: "Resources"
};

class SlurmSweep {
 public:
  /// Reads the arrays that earlier starts submitted. Borrows the plan. Errors: a file that cannot be read.
  static Result<SlurmSweep> open(const SweepPlan& plan);

  /// Asks Slurm for the tasks' states. Error: what it says; the states are the old ones then.
  Result<void> ask();

  /// Takes the results that have come, and records runs of tasks that ended without them. Errors: the store's; a folder
  /// that cannot be read.
  Result<void> gather(SweepStore& store);

  /// Submits these runs as one more array.
  Result<void> submit(const std::vector<std::uint64_t>& todo);

  /// The keys of runs that wait or run in Slurm, without a result yet.
  [[nodiscard]] std::unordered_set<std::string> queued() const;

  [[nodiscard]] SlurmTaskCount count() const;

  /// True when a task has not ended, or its results may still come.
  [[nodiscard]] bool is_open() const;

  /// The jobs that still have tasks: "12, 13".
  [[nodiscard]] std::string jobs() const;

  /// Lets nothing that has ended wait for files that may come late. For starts that do not wait themselves: a later one
  /// looks again.
  void do_not_linger() { lingers_ = false; }

 private:
  struct Task {
    SlurmTaskState state{.state = "PENDING", .reason = {}};
    std::optional<std::chrono::steady_clock::time_point> ended = {};  // when that was seen
    bool settled = false;                                             // all its runs are accounted for
  };
  struct Array {
    SlurmArray array;
    std::vector<Task> tasks;
    std::set<std::string> taken;  // keys whose results came from this array
  };

  explicit SlurmSweep(const SweepPlan& plan) : plan_(&plan) {}
  void add(SlurmArray array);
  static Result<void> ask(Array& array);
  Result<void> take_results(Array& array, SweepStore& store);
  Result<void> settle(Array& array, SweepStore& store);
  Result<void> settle(Array& array, std::size_t task, const std::vector<std::string>& missing, SweepStore& store);
  Result<void> close(Array& array);
  [[nodiscard]] bool may_come_late(const Task& task) const;

  const SweepPlan* plan_;
  std::map<std::string, std::uint64_t> run_of_key_;
  std::vector<Array> arrays_;
  bool lingers_ = true;
};

}  // namespace gpusched
