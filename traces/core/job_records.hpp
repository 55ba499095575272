// SPDX-License-Identifier: Apache-2.0
/// Records of jobs: their names as every reader gives them, and a table's jobs as the records that it was built from.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// Gives every name of a record by the one rule for names (src/base/name_text.hpp).
class NamedRecord {
 public:
  /// The record borrows from this object until the next call.
  JobRecord operator()(JobRecord job);

 private:
  std::array<std::string, 8> changed_;
};

/// Everything that a table holds of its jobs, one at a time.
class TableRecord {
 public:
  /// Borrows the table.
  explicit TableRecord(const JobTable& jobs) : jobs_(&jobs) {}
  /// The record borrows from the table, and from this object until the next call.
  JobRecord operator()(JobId job);

 private:
  const JobTable* jobs_;
  std::string id_;
  std::vector<Time> attempts_;
  std::vector<std::string> after_;
};

/// The ids of "a;b", as names.
void split_ids(std::string_view text, std::vector<std::string>& ids);

/// The jobs that `where` asks for (JobFilter); the others are counted as dropped. Errors: not such a text, or no job is
/// left.
Result<Trace> keep_jobs(Trace trace, const std::string& where);

}  // namespace gpusched
