// SPDX-License-Identifier: Apache-2.0
// philly-csv: one line a job, job_id,submit_s,num_gpus,duration_s[,vc,run_s]. The run time is duration_s (last
// attempt's end minus first attempt's start); run_s, the sum of the attempts, is not known for every job and is not
// used.
#include "traces/core/trace_reader.hpp"

namespace gpusched {

Result<void> read_philly_csv(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const Column id = rows.require({"job_id"});
  const Column submit = rows.require({"submit_s"});
  const Column gpus = rows.require({"num_gpus"});
  const Column duration = rows.require({"duration_s"});
  const Column vc = rows.find({"vc"});
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(id), .submit = row.seconds(submit), .work = row.seconds(duration)};
    job.shape = gang_of(row.integer(gpus, 1));
    job.vc = row.text(vc);
    if (!row.bad()) row.add(job);
  });
}

}  // namespace gpusched
