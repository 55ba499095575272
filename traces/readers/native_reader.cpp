// SPDX-License-Identifier: Apache-2.0
// native: gpusched's own csv, which `gpusched trace convert` writes and which keeps everything a JobTable holds:
// job_id,submit_s,work_s,tasks,gpu_milli_per_task, then optionally cpu_milli_per_task,memory_mib_per_task,gpu_spec,
// estimate_s,start_s,deadline_s,user,group,vc,name,family,status,priority,attempts_s (work of each attempt joined by
// ';'),after (ids of the jobs that must have ended before, joined by ';'),after_delay_s (and how long ago).
#include <limits>

#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t most_milli = 1'000'000'000'000;  // 10^9 GPUs, as in every other format

// "60;120" -> the work of each attempt, which is `whole` together.
void read_attempts(RowReader& row, Column column, Time whole, std::vector<Time>& works) {
  works.clear();
  Time left = whole;
  for (std::string_view rest = row.text(column); !rest.empty() && !row.bad();) {
    const std::size_t stop = std::min(rest.find(';'), rest.size());
    const auto value = parse_seconds(rest.substr(0, stop));
    if (!value || *value < Time{}) {
      row.expect(column, "seconds joined by ';'");
    } else if (*value > left) {
      row.expect(column, "attempts that add up to work_s");
    } else {
      works.push_back(*value);
      left = left - *value;
    }
    rest.remove_prefix(std::min(stop + 1, rest.size()));
  }
  if (!works.empty() && left > Time{}) row.expect(column, "attempts that add up to work_s");
}

}  // namespace

Result<void> read_native(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const Column id = rows.require({"job_id"});
  const Column submit = rows.require({"submit_s"});
  const Column work = rows.require({"work_s"});
  const Column tasks = rows.require({"tasks"});
  const Column milli = rows.require({"gpu_milli_per_task"});
  const Column cpu = rows.find({"cpu_milli_per_task"}), memory = rows.find({"memory_mib_per_task"}),
               spec = rows.find({"gpu_spec"}), estimate = rows.find({"estimate_s"}), start = rows.find({"start_s"}),
               deadline = rows.find({"deadline_s"}), user = rows.find({"user"}), group = rows.find({"group"}),
               vc = rows.find({"vc"}), qos = rows.find({"qos"}), name = rows.find({"name"}),
               family = rows.find({"family", "class"}), status = rows.find({"status"}),
               priority = rows.find({"priority"}), attempts = rows.find({"attempts_s"}), after = rows.find({"after"}),
               after_delay = rows.find({"after_delay_s"});
  std::vector<Time> attempt_works;
  std::vector<std::string> predecessors;
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(id), .submit = row.instant(submit), .work = row.seconds(work)};
    job.shape.tasks = static_cast<std::uint32_t>(row.integer(tasks, 1));
    job.shape.gpu_milli_per_task = row.integer(milli, 0, most_milli);
    if (job.shape.gpu_milli_per_task > whole_gpu && job.shape.is_share()) {
      row.expect(milli, "a share below 1000 or a multiple of 1000");
    }
    if (job.shape.gpu_milli_per_task > most_milli / job.shape.tasks)
      row.expect(milli, "at most 1000000000 GPUs in all");
    if (cpu && !row.is_blank(cpu)) job.shape.cpu_milli_per_task = row.integer(cpu);
    if (memory && !row.is_blank(memory)) job.shape.memory_mib_per_task = row.integer(memory);
    if (estimate && !row.is_blank(estimate)) job.estimate = row.seconds(estimate);
    job.status = status_from_word(row.text(status));
    const LoggedTimes times{.submit = job.submit,
                            .start = row.instant_if(start),
                            .elapsed = job.work,
                            .has_start = false,
                            .cancelled = job.status == JobStatus::killed};
    if (deadline && !row.is_blank(deadline)) job.deadline = row.instant(deadline);
    if (qos && !context.qos.empty()) job.priority = context.qos.priority(row.text(qos));
    if (priority && !row.is_blank(priority)) {
      const auto value = parse_integer(row.text(priority));
      using Limits = std::numeric_limits<std::int32_t>;  // Kubernetes' system-node-critical is 2000001000
      if (!value || *value < Limits::min() || *value > Limits::max()) row.expect(priority, "an integer");
      job.priority = static_cast<std::int32_t>(value.value_or(0));
    }
    read_attempts(row, attempts, job.work, attempt_works);
    job.attempts = attempt_works;
    row.read_after(after, after_delay, predecessors, job);
    job.gpu_spec = row.text(spec);
    job.user = row.text(user);
    job.group = row.text(group);
    job.vc = row.text(vc);
    job.qos = row.text(qos);
    job.name = row.text(name);
    job.family = row.text(family);
    if (row.take_times(job, times, {submit, start, {}})) row.add(job);
  });
}

}  // namespace gpusched
