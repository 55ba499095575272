// SPDX-License-Identifier: Apache-2.0
// acme: trace_seren.csv and trace_kalos.csv of Shanghai AI Laboratory's Acme data centre (InternLM/AcmeTrace, NSDI'24):
// job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time (Kalos names
// nodes and GPUs the same way, and may add mem_per_pod_GB and others). The job type ("Pretrain", "Evaluation"...)
// becomes the family.
#include "traces/core/trace_reader.hpp"

namespace gpusched {

Result<void> read_acme(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const Column id = rows.require({"job_id"});
  const Column gpus = rows.require({"gpu_num"});
  const Column submit = rows.require({"submit_time"});
  const Column duration = rows.require({"duration"});
  const Column user = rows.find({"user"});
  const Column nodes = rows.find({"node_num"});
  const Column type = rows.find({"type"});
  const Column state = rows.find({"state"});
  const Column start = rows.find({"start_time"});
  const Column end = rows.find({"end_time"});
  return for_each_row(rows, context, [&](RowReader& row) {
    if (row.is_blank(duration)) return row.drop(never_started);
    JobRecord job{.id = row.text(id), .submit = row.instant(submit), .status = status_from_word(row.text(state))};
    const LoggedTimes times{.submit = job.submit,
                            .start = row.instant_if(start),
                            .end = row.instant_if(end),
                            .elapsed = row.seconds(duration),
                            .has_start = bool(start),
                            .cancelled = job.status == JobStatus::killed};
    const std::int64_t count = row.integer(gpus);
    const std::int64_t node_count = nodes && !row.is_blank(nodes) ? row.integer(nodes) : 0;
    if (!row.take_times(job, times, {submit, start, end})) return;
    job.shape = gang_on_nodes(count, node_count);
    job.user = row.text(user);
    job.family = row.text(type);
    row.add(job);
  });
}

}  // namespace gpusched
