// SPDX-License-Identifier: Apache-2.0
/// BelievedJobs: a table of jobs as somebody sees them who does not know how long they run.
#pragma once

#include <algorithm>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// The jobs of another table with the work that somebody believes them to have, in one attempt. Nothing else of a table
/// tells what became of its jobs: external ids, recorded starts and statuses are left out.
class BelievedJobs {
 public:
  /// The work of every job is 0 until believe(). O(jobs).
  explicit BelievedJobs(const JobTable& jobs) : table_(jobs) {
    std::fill(table_.work_.begin(), table_.work_.end(), Time{});
    table_.start_.clear();
    table_.status_.clear();
    table_.attempt_begin_.clear();
    table_.attempt_work_.clear();
    table_.number_.clear();
    table_.text_begin_.clear();
    table_.text_.clear();
  }

  /// The job is believed to have so much work in all.
  void believe(JobId job, Time work) { table_.work_[index(job)] = work; }
  /// The jobs; valid while this object lives.
  [[nodiscard]] const JobTable& table() const { return table_; }

 private:
  JobTable table_;
};

}  // namespace gpusched
