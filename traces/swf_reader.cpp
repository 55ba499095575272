// SPDX-License-Identifier: Apache-2.0
// swf: the Standard Workload Format of the Parallel Workloads Archive (version 2.2), 18 blank-separated numbers a job,
// -1 for unknown, comments from ';'. A processor plays the part of a GPU. Processors are field 8 (requested), or field
// 5 (used) where that is larger or field 8 unknown. Jobs without a run time or processors never ran; they are left out.
#include <algorithm>

#include "traces/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr std::size_t swf_fields = 18;

// "; MaxProcs: 256" -> 256, for the header line of that name.
std::int64_t header_number(std::string_view line, std::string_view name) {
  line.remove_prefix(1);
  line = trim(line);
  if (!line.starts_with(name)) return 0;
  line = trim(line.substr(name.size()));
  if (!line.starts_with(':')) return 0;
  return parse_integer(line.substr(1)).value_or(0);
}

bool split_blanks(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (!(line = trim(line)).empty()) {
    const std::size_t stop = std::min(line.find_first_of(" \t"), line.size());
    fields.push_back(line.substr(0, stop));
    line.remove_prefix(stop);
  }
  return fields.size() == swf_fields;
}

JobStatus swf_status(std::int64_t code) {
  switch (code) {
    case 1: return JobStatus::passed;
    case 0: return JobStatus::failed;
    case 5: return JobStatus::killed;
    default: return JobStatus::unknown;
  }
}

}  // namespace

Result<void> read_swf(ReadContext& context) {
  std::string_view line;
  std::vector<std::string_view> fields;
  std::int64_t nodes = 0;
  const auto fail = [&](const std::string& field, const std::string& message) {
    return Unexpected{
        Error{.message = message, .file = context.file.path(), .line = context.file.line_number(), .field = field}};
  };
  while (context.file.next_line(line)) {
    if (trim(line).empty()) continue;
    if (line.starts_with(';')) {
      context.report.machine_gpus = std::max(context.report.machine_gpus, header_number(line, "MaxProcs"));
      nodes = std::max(nodes, header_number(line, "MaxNodes"));
      continue;
    }
    ++context.report.rows;
    const bool complete = split_blanks(line, fields);
    double values[swf_fields] = {};
    std::size_t bad = swf_fields;
    for (std::size_t i = 0; complete && i < swf_fields && bad == swf_fields; ++i) {
      const auto value = parse_number(fields[i]);
      if (!value) bad = i;
      values[i] = value.value_or(0);
    }
    if (!complete || bad < swf_fields || values[1] < 0) {
      if (context.options.drop_bad_rows) {
        context.report.drop("bad row", context.file.line_number());
        continue;
      }
      if (!complete) return fail("row", "expected 18 fields, found " + std::to_string(fields.size()));
      if (bad < swf_fields) {
        return fail("field " + std::to_string(bad + 1), "expected a number, found '" + std::string(fields[bad]) + "'");
      }
      return fail("field 2 (submit)", "expected seconds >= 0, found '" + std::string(fields[1]) + "'");
    }
    const auto processors = static_cast<std::int64_t>(std::max(values[4], values[7]));
    if (values[3] < 0) {
      context.report.drop("no run time", context.file.line_number());
      continue;
    }
    if (processors < 1) {
      context.report.drop("no processors", context.file.line_number());
      continue;
    }
    JobRecord job{.id = fields[0], .submit = from_seconds(values[1]), .work = from_seconds(values[3])};
    if (values[8] >= 0) job.estimate = from_seconds(values[8]);
    job.shape = gang_of(processors);
    job.status = swf_status(static_cast<std::int64_t>(values[10]));
    job.user = values[11] >= 0 ? fields[11] : std::string_view();
    job.group = values[12] >= 0 ? fields[12] : std::string_view();
    job.vc = values[14] >= 0 ? fields[14] : std::string_view();
    context.jobs.add(job);
  }
  if (context.report.machine_gpus == 0) context.report.machine_gpus = nodes;
  if (context.file.failure()) return Unexpected{*context.file.failure()};
  return {};
}

}  // namespace gpusched
