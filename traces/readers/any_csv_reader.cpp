// SPDX-License-Identifier: Apache-2.0
// csv: any file with a header line; --columns says which column is what:
//   submit=COLUMN,gpus=COLUMN,duration=COLUMN  (instead of duration: end=COLUMN, with start=COLUMN if it is not the
//   submit) and, if there are, start, id, user, group, vc, name, family, estimate, tasks, cpu (cores a task), memory
//   (MiB a task), gpu_type, gpu_memory (GiB that each GPU must have), priority, status.
// Times are seconds or calendar times. With tasks, gpus counts for one task; without, the job is a gang of single GPUs.
#include <algorithm>
#include <cmath>
#include <map>

#include "src/base/nearest_name.hpp"
#include "traces/core/cluster_units.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

const std::vector<std::string>& roles() {
  static const std::vector<std::string> names = {
      "submit", "gpus",     "duration", "start", "end",    "id",       "user",       "group",    "vc",    "name",
      "family", "estimate", "tasks",    "cpu",   "memory", "gpu_type", "gpu_memory", "priority", "status"};
  return names;
}

Result<std::map<std::string, std::string>> parse_mapping(const std::string& text) {
  std::map<std::string, std::string> mapping;
  CsvSplitter splitter;
  if (!splitter.split(text)) return unexpected("--columns: a quote is not closed");
  for (const std::string_view pair : splitter.fields()) {
    const std::size_t equals = pair.find('=');
    const std::string role(trim(pair.substr(0, equals)));
    if (equals == std::string_view::npos || std::find(roles().begin(), roles().end(), role) == roles().end()) {
      return unexpected("--columns: expected ROLE=COLUMN, found '" + std::string(pair) + "'" +
                        suggest_nearest(role, roles()));
    }
    mapping[role] = trim(pair.substr(equals + 1));
  }
  for (const char* role : {"submit", "gpus"}) {
    if (!mapping.contains(role)) return unexpected(std::string("--columns: ") + role + "=COLUMN is missing");
  }
  if (!mapping.contains("duration") && !mapping.contains("end")) {
    return unexpected("--columns: duration=COLUMN (or end=COLUMN) is missing");
  }
  return mapping;
}

// As GpuDemand takes it.
std::string gpu_memory_text(double gib) {
  const auto mib = static_cast<std::int64_t>(std::ceil(gib * mib_per_gib));
  return mib == 0 ? "" : "@" + std::to_string(mib) + "MiB";
}

}  // namespace

Result<void> read_any_csv(ReadContext& context) {
  if (context.options.columns.empty()) {
    return unexpected("format csv needs --columns submit=COLUMN,gpus=COLUMN,duration=COLUMN");
  }
  const auto mapping = parse_mapping(context.options.columns);
  if (!mapping) return Unexpected{mapping.error()};
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  std::map<std::string, Column> columns;
  for (const auto& [role, name] : *mapping) {
    columns[role] = rows.require({name});
  }
  const auto column_of = [&](const char* role) {
    const auto place = columns.find(role);
    return place == columns.end() ? Column{} : place->second;
  };
  const Column submit = column_of("submit"), gpus = column_of("gpus"), duration = column_of("duration"),
               start = column_of("start"), end = column_of("end"), id = column_of("id"), user = column_of("user"),
               group = column_of("group"), vc = column_of("vc"), name = column_of("name"), family = column_of("family"),
               estimate = column_of("estimate"), tasks = column_of("tasks"), cpu = column_of("cpu"),
               memory = column_of("memory"), gpu_type = column_of("gpu_type"), gpu_memory = column_of("gpu_memory"),
               priority = column_of("priority"), status = column_of("status");
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(id), .submit = row.instant(submit)};
    if (start && !row.is_blank(start)) job.start = row.instant(start);
    if (duration) {
      job.work = row.seconds(duration);
    } else {
      const Time from = start ? row.instant(start) : job.submit;
      const Time until = row.instant(end);
      if (until < from) row.expect(end, "an end not before the start");
      job.work = until - from;
    }
    const double count = row.number(gpus);
    const auto milli = static_cast<MilliGpu>(std::llround(count * static_cast<double>(whole_gpu)));
    if (count > 0 && milli < 1) row.expect(gpus, "0 or at least 0.001 GPUs");
    if (milli > whole_gpu && milli % whole_gpu != 0) row.expect(gpus, "a whole number of GPUs, or a share below 1");
    if (milli > 1'000'000 * whole_gpu) row.expect(gpus, "at most 1000000 GPUs");
    if (tasks) {
      job.shape.tasks = static_cast<std::uint32_t>(row.integer(tasks, 1));
      job.shape.gpu_milli_per_task = milli;
    } else if (milli >= whole_gpu) {
      job.shape = gang_of(milli / whole_gpu);
    } else {
      job.shape.gpu_milli_per_task = milli;
    }
    if (cpu) job.shape.cpu_milli_per_task = static_cast<std::int64_t>(std::ceil(row.number(cpu, most_cores) * 1000));
    if (memory)
      job.shape.memory_mib_per_task = static_cast<std::int64_t>(std::ceil(row.number(memory, most_memory_mib)));
    if (estimate && !row.is_blank(estimate)) job.estimate = row.seconds(estimate);
    if (priority && !row.is_blank(priority)) job.priority = static_cast<std::int32_t>(row.integer(priority));
    job.user = row.text(user);
    job.group = row.text(group);
    job.vc = row.text(vc);
    job.name = row.text(name);
    job.family = row.text(family);
    std::string gpu_spec(row.text(gpu_type));
    if (gpu_memory && !row.is_blank(gpu_memory)) gpu_spec += gpu_memory_text(row.number(gpu_memory, 1e6));
    job.gpu_spec = gpu_spec;
    job.status = status_from_word(row.text(status));
    if (!row.bad()) row.add(job);
  });
}

}  // namespace gpusched
