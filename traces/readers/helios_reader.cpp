// SPDX-License-Identifier: Apache-2.0
// helios: cluster_log.csv of SenseTime's Helios clusters (S-Lab-System-Group/HeliosData, SC'21):
// job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue. Times are calendar
// times, duration and queue are seconds. gpu_num is the job's total; with node_num > 0 that divides it, it is that many
// equal tasks, else a gang of single GPUs.
#include "traces/core/trace_reader.hpp"

namespace gpusched {

Result<void> read_helios(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const Column id = rows.require({"job_id"});
  const Column gpus = rows.require({"gpu_num"});
  const Column submit = rows.require({"submit_time"});
  const Column duration = rows.require({"duration"});
  const Column user = rows.find({"user"});
  const Column vc = rows.find({"vc"});
  const Column nodes = rows.find({"node_num"});
  const Column cpus = rows.find({"cpu_num"});
  const Column state = rows.find({"state"});
  const Column start = rows.find({"start_time"});
  const Column end = rows.find({"end_time"});
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(id), .submit = row.instant(submit)};
    const std::int64_t count = row.integer(gpus);
    job.status = status_from_word(row.text(state));
    LoggedTimes times{.submit = job.submit,
                      .start = row.instant_if(start),
                      .end = row.instant_if(end),
                      .has_start = bool(start),
                      .cancelled = job.status == JobStatus::killed};
    if (!row.is_blank(duration)) {
      times.elapsed = row.seconds(duration);
    } else if (!start || !row.is_blank(start)) {
      return row.drop("no duration");
    }
    const std::int64_t node_count = nodes && !row.is_blank(nodes) ? row.integer(nodes) : 0;
    const std::int64_t cores = cpus && !row.is_blank(cpus) ? row.integer(cpus) : 0;
    if (!row.take_times(job, times, {submit, start, end})) return;
    job.shape = gang_on_nodes(count, node_count);
    job.shape.cpu_milli_per_task = (cores * 1000 + job.shape.tasks - 1) / job.shape.tasks;
    job.user = row.text(user);
    job.vc = row.text(vc);
    row.add(job);
  });
}

}  // namespace gpusched
