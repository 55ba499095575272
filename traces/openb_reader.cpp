// SPDX-License-Identifier: Apache-2.0
// openb: the pod lists of Alibaba's GPU-sharing cluster (cluster-trace-gpu-v2023, FGD, ATC'23). A pod is one task on
// one node: num_gpu whole GPUs, or gpu_milli of one GPU when num_gpu is 1. It runs from scheduled_time to
// deletion_time; pods that were never scheduled have no run time and are left out.
#include "traces/trace_reader.hpp"

namespace gpusched {

Result<void> read_openb(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const auto name = rows.require({"name"});
  const auto cpu = rows.require({"cpu_milli"});
  const auto memory = rows.require({"memory_mib"});
  const auto gpus = rows.require({"num_gpu"});
  const auto milli = rows.require({"gpu_milli"});
  const auto created = rows.require({"creation_time"});
  const auto deleted = rows.require({"deletion_time"});
  const auto scheduled = rows.require({"scheduled_time"});
  for (const auto* column : {&name, &cpu, &memory, &gpus, &milli, &created, &deleted, &scheduled}) {
    if (!*column) return Unexpected{column->error()};
  }
  const Column spec = rows.find({"gpu_spec"});
  const Column qos = rows.find({"qos"});
  const Column phase = rows.find({"pod_phase"});
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(*name), .submit = row.seconds(*created)};
    job.shape.cpu_milli_per_task = row.integer(*cpu);
    job.shape.memory_mib_per_task = row.integer(*memory);
    const std::int64_t count = row.integer(*gpus);
    const std::int64_t share = row.integer(*milli);
    if (count == 1 && (share < 1 || share > whole_gpu)) row.expect(*milli, "1 to 1000 thousandths of a GPU");
    job.shape.gpu_milli_per_task = count == 1 ? share : count * whole_gpu;
    if (row.bad()) return;
    if (row.is_blank(*scheduled)) return row.drop("never scheduled");
    if (row.is_blank(*deleted)) return row.drop("still running at the end of the trace");
    const Time start = row.seconds(*scheduled);
    const Time end = row.seconds(*deleted);
    if (end < start) row.expect(*deleted, "a deletion not before scheduled_time");
    if (row.bad()) return;
    job.work = end - start;
    job.gpu_spec = row.text(spec);
    job.group = row.text(qos);
    const std::string_view ending = row.text(phase);
    job.status = ending == "Running" ? JobStatus::unknown : status_from_word(ending);
    context.jobs.add(job);
  });
}

}  // namespace gpusched
