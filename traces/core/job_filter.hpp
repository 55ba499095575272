// SPDX-License-Identifier: Apache-2.0
/// JobFilter: which jobs of a trace to read, as `--where` says it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// Conditions that a job must meet, all of them. Without conditions every job does.
class JobFilter {
 public:
  /// Reads "vc=gpu|long,user!=ann,gpus>=8": a column, one of = != < <= > >=, and a value, or values joined by a bar of
  /// which one must do (for != none). A column is one of the file's header, or what a job has: id, user, group
  /// (account), vc (partition, queue), name, family, gpu_type, status, priority, gpus, tasks, submit, duration,
  /// estimate (seconds). Values and the file's texts are compared as names (src/base/name_text.hpp). Error: not such a
  /// text.
  static Result<JobFilter> parse(const std::string& text);

  [[nodiscard]] bool empty() const { return conditions_.empty(); }

  /// Says what the file's columns are called. A condition on one of them looks at the file's text; upper and lower case
  /// are the same where no job has anything of that name. Error: a condition on what neither has.
  Result<void> bind(const std::vector<std::string>& header);

  /// Rows are runs of jobs: conditions on columns but these, which are alike in all of a job's (but for the components
  /// of a gang), are asked of the run that a job ended with (keeps_run), no longer of each row. Precondition: bind().
  void ask_last_runs(std::span<const std::string_view> alike, const std::vector<std::string>& header);
  [[nodiscard]] bool asks_last_runs() const;

  /// Whether a row of the file meets the conditions on its columns. Precondition: bind().
  [[nodiscard]] bool keeps_row(const std::vector<std::string_view>& fields) const { return keeps(fields, false); }
  /// The same of those that are asked of last runs.
  [[nodiscard]] bool keeps_run(const std::vector<std::string_view>& fields) const { return keeps(fields, true); }
  /// Whether a job meets the others.
  [[nodiscard]] bool keeps_job(const JobRecord& job) const;

 private:
  enum class Operator : std::uint8_t { equal, unequal, less, at_most, more, at_least };
  struct Condition {
    std::string column;  // as written
    std::string role;    // what a job has, by its main name; empty: a column of the file
    Operator compare = Operator::equal;
    std::vector<std::string> values;
    std::uint32_t field = no_index;  // of the file's columns
    bool of_last_run = false;
  };

  [[nodiscard]] bool keeps(const std::vector<std::string_view>& fields, bool of_last_run) const;

  static Result<Condition> parse_condition(std::string_view text);
  static bool holds(const Condition& condition, std::string_view text);
  static bool holds(const Condition& condition, double number);

  std::vector<Condition> conditions_;
};

/// The reason under which rows that a filter leaves out are counted.
inline constexpr const char* left_out_by_filter = "not what --where asks for";

}  // namespace gpusched
