// SPDX-License-Identifier: Apache-2.0
/// LoggedRuns: makes jobs of the runs that the accounting of a batch system lists (Slurm, PBS, LSF), whatever form they
/// are read from.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/core/job_sink.hpp"
#include "traces/core/slurm_tres.hpp"

namespace gpusched {

/// One run of a job, or of one component of a heterogeneous job.
struct LoggedRun {
  std::string id;              ///< of the job, without component: "17", "17_3", "17_[4-9%2]" of an array that waits
  std::int64_t component = 0;  ///< the number behind '+' in "17+1"
  std::string cluster = {}, user = {}, account = {}, partition = {}, qos = {}, name = {};
  std::string state = {};  ///< how it ended, in the words of Slurm
  LoggedTimes times = {};
  Time eligible = Time::max();  ///< when it might have run first; Time::max(): not said
  Time estimate = Time::max();
  SlurmTres demand = {};
  std::uint64_t line = 0;
  bool wanted = true;       ///< the filter takes a job that ends with this run
  JudgedTimes judged = {};  ///< filled by LoggedRuns

  /// The instant from which the job could have run. A start before it is Slurm's own rounding.
  [[nodiscard]] Time queued() const;
};

/// Collects runs and gives the sink their jobs.
///
/// - The rows of one id, user and cluster are runs of one job if each follows another that was requeued, failed or
///   preempted, asks for as many GPUs, starts after that one's end and was queued within an hour of it (requeued jobs
///   are queued at once). Other runs of the id are other jobs, since Slurm uses ids again after a reset of its
///   database.
/// - Jobs whose ids are the same are told apart: CLUSTER/ID where the log has several clusters, and ID#2, ID#3 by
///   submission after that.
/// - A row that an overlapping export repeats counts once: the one that knows most.
/// - The components of a heterogeneous job are one gang. A component is a task a node, where the nodes divide its GPUs,
///   else a task a GPU; a gang's tasks are equal, so that where the components' tasks differ, they are cut into what
///   they have in common: 8 and 4 GPUs a node into tasks of 4. Components without GPUs add their cores and memory,
///   spread evenly. Slices of several sizes in one job become whole GPUs.
/// - Of an array that waits, ReadOptions::backlog takes each task. How many may run at once ("%2") is not kept; a note
///   says so.
class LoggedRuns {
 public:
  explicit LoggedRuns(JobSink& sink) : sink_(sink) {}

  /// For logs without columns: says which names --where may use beside those of jobs (JobID, Cluster, User, Account,
  /// Partition, QOS, State, JobName).
  Result<void> bind_filter();
  /// What differs between the runs of a job, the filter asks of its last one. Precondition: it is bound to `header`.
  void ask_last_runs(const std::vector<std::string>& header);
  /// Counts and judges a run of such a log and takes it, unless the filter leaves it out or its times are bad. `place`
  /// names the times.
  void take(LoggedRun run, const RecordPlace& place);

  /// Takes a run whose times are not bad: `judged` is what judge_times() says of them.
  void add(LoggedRun run, const JudgedTimes& judged);
  /// Gives the sink the jobs, in the order of their first rows, and the report its notes.
  void finish();

 private:
  // The rows of one id, user and cluster.
  struct Rows {
    std::string id, user, cluster;
    std::vector<LoggedRun> runs;
  };
  // One job of them: a vector for each attempt, of the components that ran.
  using Attempts = std::vector<std::vector<const LoggedRun*>>;
  struct Job {
    const Rows* rows = nullptr;
    std::vector<const LoggedRun*> runs;
    std::string id;
  };

  std::vector<Job> split(Rows& rows);
  void leave_out_unwanted(std::vector<Job>& jobs);
  void name_jobs(std::vector<Job>& jobs) const;
  void join(Job job);
  void leave_out_those_put_back(Job& job);
  void add_backlog(const Job& job);
  void add_job(const Job& job, const Attempts& attempts);
  void drop(const Job& job, const char* reason);

  JobSink& sink_;
  std::vector<Rows> rows_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
  std::uint64_t requeued_ = 0, heterogeneous_ = 0, mixed_ = 0, resized_ = 0, exceeding_ = 0;
  std::set<std::string> throttled_ = {};      // arrays of which so many tasks may run at once
  std::set<std::string> with_throttle_ = {};  // those of them that have jobs
};

}  // namespace gpusched
