// SPDX-License-Identifier: Apache-2.0
/// SlurmArray: one job array that runs a part of a sweep. Slurm distributes its tasks; each of them is a sweep of its
/// own (task_3.json) and leaves a file for each run that ends. Its folder, OUT/tasks/0001, holds all that belongs to
/// it, on a file system that the nodes share:
///
///   array.json      the name and number of the Slurm job, and the keys of the runs of each task
///   task_3.json     the runs of array task 3, a file of `gpusched sweep`
///   job.sh          what sbatch gets
///   3.log           what task 3 printed
///   results/        KEY.json of a run that ended, KEY.begun of one that began
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/sweep/sweep_plan.hpp"

namespace gpusched {

/// What Slurm says of an array task.
struct SlurmTaskState {
  std::string state;   ///< "PENDING", "TIMEOUT"; empty: Slurm knows the task no longer
  std::string reason;  ///< why it waits: "Resources"

  /// True when it will not run any more.
  [[nodiscard]] bool has_ended() const;
};

struct SlurmArray {
  std::string folder;                           ///< absolute
  std::string name;                             ///< of the Slurm job; no other has it
  std::string job;                              ///< its number; empty: not known
  std::vector<std::vector<std::string>> tasks;  ///< the keys of the runs of each task
  bool closed = false;                          ///< all its tasks have ended and are accounted for

  [[nodiscard]] std::string results() const { return folder + "/results"; }
  [[nodiscard]] std::string log_of(std::size_t task) const { return folder + "/" + std::to_string(task) + ".log"; }
  /// "array task 12_3".
  [[nodiscard]] std::string task_name(std::size_t task) const {
    return "array task " + job + "_" + std::to_string(task);
  }
};

/// The arrays of a sweep whose results go to `out`, in the order of their submission. Errors: a file that cannot be
/// read.
Result<std::vector<SlurmArray>> read_slurm_arrays(const std::string& out);

/// One of them, by its folder.
Result<SlurmArray> read_slurm_array(const std::string& folder);

/// Writes array.json.
Result<void> write_slurm_array(const SlurmArray& array);

/// The runs `todo` in parts for array tasks, those of one trace and one input beside each other.
std::vector<std::vector<std::uint64_t>> split_into_tasks(const SweepPlan& plan, std::vector<std::uint64_t> todo);

/// The command that submits an array of that many tasks. Error: options of sbatch that a sweep needs itself, a quote
/// that is not closed.
Result<std::vector<std::string>> sbatch_command(const SweepPlan& plan, const SlurmArray& array, std::size_t tasks);

/// Makes an array of these tasks and submits it; nothing of it stays where that fails. Errors: what sbatch says; a
/// folder that cannot be written; more tasks than Slurm takes.
Result<SlurmArray> submit_slurm_array(const SweepPlan& plan, const std::vector<std::vector<std::uint64_t>>& tasks);

/// What Slurm knows of the array's tasks, by number; one that is not there has left the queue. Where the number of the
/// job was not known, it is afterwards. Error: what squeue says.
Result<std::map<std::size_t, SlurmTaskState>> slurm_queue(SlurmArray& array);

/// What the accounting database knows of tasks that have left the queue; nothing where the site has none.
std::map<std::size_t, SlurmTaskState> slurm_accounting(const SlurmArray& array);

}  // namespace gpusched
