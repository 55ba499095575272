// SPDX-License-Identifier: Apache-2.0
/// BelievedJobs: a table of jobs as somebody sees them who does not know how long they run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

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

  /// In the row of a job to come stands one like another, submitted at `submit`, whose work is believed to be `work`,
  /// until forget_drawn().
  void draw(JobId row, JobId like, Time submit, Time work) {
    drawn_.emplace_back(row, row_of(row));
    Row other = row_of(like);
    if (other.deadline != Time::max()) other.deadline += submit - other.submit;
    other.submit = submit;
    other.work = work;
    put(row, other);
  }
  /// Drawn jobs are those of the other table again.
  void forget_drawn() {
    for (const auto& [row, was] : drawn_) put(row, was);
    drawn_.clear();
  }

 private:
  // What a row says of a job.
  struct Row {
    Time submit{}, work{}, estimate{}, deadline{};
    std::uint32_t shape = 0, user = 0, group = 0, vc = 0, qos = 0, name = 0, family = 0;
    std::int32_t priority = 0;
  };

  [[nodiscard]] Row row_of(JobId job) const {
    return {.submit = table_.submit(job),
            .work = table_.work(job),
            .estimate = table_.estimate(job),
            .deadline = table_.deadline(job),
            .shape = table_.shape_id(job),
            .user = table_.user(job),
            .group = table_.group(job),
            .vc = table_.vc(job),
            .qos = table_.qos(job),
            .name = table_.name(job),
            .family = table_.family(job),
            .priority = table_.priority(job)};
  }
  void put(JobId job, const Row& row) {
    const std::uint32_t at = index(job);
    table_.submit_[at] = row.submit;
    table_.work_[at] = row.work;
    table_.shape_[at] = row.shape;
    set(table_.estimate_, at, row.estimate);
    set(table_.deadline_, at, row.deadline);
    set(table_.user_, at, row.user);
    set(table_.group_, at, row.group);
    set(table_.vc_, at, row.vc);
    set(table_.qos_, at, row.qos);
    set(table_.name_, at, row.name);
    set(table_.family_, at, row.family);
    set(table_.priority_, at, row.priority);
  }
  // Columns without values are empty.
  template <class T>
  static void set(std::vector<T>& column, std::uint32_t at, T value) {
    if (!column.empty()) column[at] = value;
  }

  JobTable table_;
  std::vector<std::pair<JobId, Row>> drawn_;  // rows, with what they said
};

}  // namespace gpusched
