// SPDX-License-Identifier: Apache-2.0
/// jobs.csv: a row a job, wherever it ran.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/interval_log.hpp"
#include "src/sim/power_report.hpp"

namespace gpusched {

/// What the file says of each job.
struct JobFile {
  std::function<const Engine&(JobId)> engine;  ///< where it ran
  std::function<Time(JobId)> eligible;         ///< submitted, and the jobs that it waits for had ended
  MeasureWindow window = {};
  std::span<const Time> estimates = {};         ///< of run times, by job; may be empty
  std::vector<std::string> gpu_types = {};      ///< that it ran on, by job: add_gpu_types()
  BillColumns bills = {};                       ///< may be empty
  std::string more_names = {};                  ///< columns of one's own, each with a comma before it
  std::function<std::string(JobId)> more = {};  ///< their cells, likewise
};

/// The file's text. Precondition: every job has ended.
std::string jobs_csv(const JobFile& file);

/// Adds the GPU types that jobs ran on, in order of first use, with '|' between them; nothing where nodes name none.
void add_gpu_types(const Cluster& cluster, std::span<const Interval> intervals, std::vector<std::string>& all);

}  // namespace gpusched
