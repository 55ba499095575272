// SPDX-License-Identifier: Apache-2.0
// swf: the Standard Workload Format of the Parallel Workloads Archive (version 2.2), 18 blank-separated numbers a job,
// -1 for unknown, comments from ';'. A processor plays the part of a GPU. Processors are field 8 (requested), or field
// 5 (used) where that is larger or field 8 unknown. Jobs without a run time or processors never ran, and codes 2 to 4
// are parts of a job that another line sums up; they are left out. A job waits for the end of that in field 17, and
// for the think time behind it (field 18). Fields beyond the 18 that some archives add are not read.
#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr std::size_t swf_fields = 18;
constexpr std::int64_t swf_day_s = 86400;

// "; MaxProcs: 256" -> 256, for the header line of that name.
std::int64_t header_number(std::string_view line, std::string_view name) {
  line.remove_prefix(1);
  line = trim(line);
  if (!line.starts_with(name)) return 0;
  line = trim(line.substr(name.size()));
  if (!line.starts_with(':')) return 0;
  return parse_integer(line.substr(1)).value_or(0);
}

void split_blanks(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (!(line = trim(line)).empty()) {
    const std::size_t stop = std::min(line.find_first_of(" \t"), line.size());
    fields.push_back(line.substr(0, stop));
    line.remove_prefix(stop);
  }
}

// The fields by their number in the format's description, so [1] is the job number.
using SwfRow = std::array<double, swf_fields + 1>;

enum SwfField : std::size_t {
  submit_field = 2,
  wait_field = 3,
  run_field = 4,
  used_processors = 5,
  requested_processors = 8,
  requested_time = 9,
  status_field = 11,
  user_field = 12,
  group_field = 13,
  queue_field = 15,
  preceding_job = 17,
  think_time = 18
};

Result<SwfRow> parse_row(const std::vector<std::string_view>& fields) {
  if (fields.size() < swf_fields) {
    return Unexpected{Error{.message = "expected 18 fields, found " + std::to_string(fields.size()), .field = "row"}};
  }
  const double most = to_seconds(end_of_time);  // of everything but times more than there is
  SwfRow row{};
  for (std::size_t i = 1; i <= swf_fields; ++i) {
    const auto value = parse_number(fields[i - 1]);
    const bool unknown = value && *value == -1 && i != submit_field;
    if (!value || *value > most || (*value < 0 && !unknown)) {
      return Unexpected{Error{.message = "expected a number >= 0" + std::string(i == submit_field ? "" : " or -1") +
                                         ", found '" + excerpt(fields[i - 1]) + "'",
                              .field = "field " + std::to_string(i)}};
    }
    row[i] = *value;
  }
  if (std::max(row[used_processors], row[requested_processors]) > 1e9) {
    return Unexpected{Error{.message = "expected at most 1000000000 processors", .field = "field 8"}};
  }
  return row;
}

double processors(const SwfRow& row) { return std::max(row[used_processors], row[requested_processors]); }

// Null: the row is a job that ran.
const char* why_left_out(const SwfRow& row) {
  const double status = row[status_field];
  if (status >= 2 && status <= 4) return "part of a job (another line sums it up)";
  if (row[run_field] < 0) return "no run time";
  if (processors(row) < 1) return "no processors";
  return nullptr;
}

JobStatus swf_status(std::int64_t code) {
  switch (code) {
    case 1: return JobStatus::passed;
    case 0: return JobStatus::failed;
    case 5: return JobStatus::killed;
    default: return JobStatus::unknown;
  }
}

LoggedTimes times_of(const SwfRow& row) {
  LoggedTimes times{.submit = from_seconds(row[submit_field]),
                    .elapsed = from_seconds(row[run_field]),
                    .has_start = false,
                    .cancelled = row[status_field] == 5};
  times.held_nothing = times.cancelled && row[used_processors] <= 0;
  if (row[wait_field] >= 0) times.start = later_by(times.submit, from_seconds(row[wait_field]));
  return times;
}

JobRecord job_of(const SwfRow& row, const std::vector<std::string_view>& fields) {
  const auto known = [&](SwfField field) { return row[field] >= 0 ? fields[field - 1] : std::string_view(); };
  JobRecord job{.id = fields[0], .submit = from_seconds(row[submit_field])};
  if (row[requested_time] >= 0) job.estimate = from_seconds(row[requested_time]);
  job.shape = gang_of(static_cast<std::int64_t>(processors(row)));
  job.status = swf_status(static_cast<std::int64_t>(row[status_field]));
  job.user = known(user_field);
  job.group = known(group_field);
  job.vc = known(queue_field);
  return job;
}

// A job that waits for another one.
struct Following {
  std::string job;
  bool thinks = false;
};

// Who waits for a job that was left out, or that the log does not have, does not wait.
void note_following(const std::vector<Following>& following, const std::set<std::string, std::less<>>& kept,
                    std::vector<std::string>& notes) {
  std::uint64_t waiting = 0, thinking = 0;
  for (const Following& one : following) {
    if (!kept.contains(one.job)) continue;
    ++waiting;
    thinking += one.thinks ? 1 : 0;
  }
  if (waiting > 0) {
    notes.push_back(counted(waiting, "job waits", "jobs wait") + " for the end of a preceding one (field 17)" +
                    (thinking > 0 ? ", " + std::to_string(thinking) + " of them with a think time (field 18)" : ""));
  }
  const std::uint64_t missing = following.size() - waiting;
  if (missing > 0) {
    notes.push_back(counted(missing, "job names", "jobs name") +
                    " a preceding one (field 17) that the log lacks or that is left out, and wait for nobody");
  }
}

}  // namespace

Result<void> read_swf(ReadContext& context) {
  if (auto bound = context.filter.bind({}); !bound) return bound;
  std::string_view line;
  std::vector<std::string_view> fields;
  std::vector<std::string> predecessor(1);
  std::int64_t nodes = 0, begin_s = 0, zone_s = 0;
  std::uint64_t longer = 0;
  std::vector<Following> following;
  std::set<std::string, std::less<>> kept;
  while (context.file.next_line(line)) {
    if (trim(line).empty()) continue;
    if (line.starts_with(';')) {
      context.report.machine_gpus = std::max(context.report.machine_gpus, header_number(line, "MaxProcs"));
      nodes = std::max(nodes, header_number(line, "MaxNodes"));
      if (const std::int64_t unix_s = header_number(line, "UnixStartTime"); unix_s != 0) begin_s = unix_s % swf_day_s;
      if (const std::int64_t zone = header_number(line, "TimeZone"); zone != 0) zone_s = zone % swf_day_s;
      continue;
    }
    ++context.report.rows;
    const std::uint64_t at = context.file.line_number();
    split_blanks(line, fields);
    const auto row = parse_row(fields);
    if (!row) {
      Error error = row.error();
      error.file = context.file.path();
      error.line = at;
      context.bad_row(error);
      continue;
    }
    if (const char* reason = why_left_out(*row)) {
      context.drop(reason, at);
      continue;
    }
    longer += fields.size() > swf_fields ? 1 : 0;
    JobRecord job = job_of(*row, fields);
    if ((*row)[preceding_job] > 0) {
      predecessor.front() = fields[preceding_job - 1];
      job.after = predecessor;
      if ((*row)[think_time] > 0) job.after_delay = from_seconds((*row)[think_time]);
    }
    const RecordPlace place{
        .file = context.file.path(), .line = at, .submit = "field 2", .start = "field 3", .end = "field 4"};
    if (!context.take_times(job, times_of(*row), place)) continue;
    context.add(job, at);
    kept.emplace(job.id);
    if (!job.after.empty()) following.push_back({predecessor.front(), job.after_delay > Time{}});
  }
  context.report.clock = whole_seconds((begin_s + zone_s + 2 * swf_day_s) % swf_day_s);
  if (context.report.machine_gpus == 0) context.report.machine_gpus = nodes;
  context.ignore_missing_predecessors();
  std::vector<std::string>& notes = context.report.notes;
  if (longer > 0)
    notes.push_back(counted(longer, "row has", "rows have") + " more than 18 fields; the first 18 are read");
  note_following(following, kept, notes);
  if (context.file.failure()) return Unexpected{*context.file.failure()};
  return {};
}

}  // namespace gpusched
