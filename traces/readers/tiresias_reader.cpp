// SPDX-License-Identifier: Apache-2.0
// tiresias: job_id,num_gpu,submit_time,iterations,model_name,[batch_size,]duration,interval, whole seconds (the
// Tiresias simulator's 60_job.csv). muri: the same with iteration_time and resource times, in MILLISECONDS (Muri,
// SIGCOMM'22 artifact, trace-data). Muri's simulator divides submit_time and iteration_time by 1000, takes iterations x
// iteration_time x 1.015 as the work (1.015 is its measured overhead of running alone, simulator/jobs.py) and ignores
// duration.
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

// Iterations x iteration time (ms) x 1.015, exact: 1 ms x 1.015 = 1015 us.
Time muri_work(std::int64_t iterations, Time iteration_ms_as_seconds) {
  return {mul_div(iterations * 1015, iteration_ms_as_seconds.us, microseconds_per_second)};
}

}  // namespace

Result<void> read_tiresias(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const Column id = rows.require({"job_id"});
  const Column gpus = rows.require({"num_gpu"});
  const Column submit = rows.require({"submit_time"});
  const Column duration = rows.require({"duration"});
  const Column iterations = rows.find({"iterations"});
  const Column iteration_time = rows.find({"iteration_time"});
  const Column model = rows.find({"model_name"});
  const Column priority = rows.find({"priority"});
  if (iteration_time && iterations) context.report.notes.emplace_back("times are milliseconds (Muri)");
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(id), .submit = row.seconds(submit)};
    job.shape = gang_of(row.integer(gpus, 1));
    job.family = row.text(model);
    if (iteration_time && iterations) {
      job.submit = {row.seconds(submit).us / 1000};
      const std::int64_t count = row.integer(iterations);
      const Time each = row.seconds(iteration_time);
      if (static_cast<double>(count) * to_seconds(each) > 1e15) {
        row.expect(iteration_time, "at most 1e15 ms for all iterations");
      } else {
        job.work = muri_work(count, each);
      }
      if (priority) job.priority = static_cast<std::int32_t>(row.integer(priority));
    } else {
      job.work = row.seconds(duration);
    }
    if (!row.bad()) row.add(job);
  });
}

}  // namespace gpusched
