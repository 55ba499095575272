// SPDX-License-Identifier: Apache-2.0
// openb: the pod lists of Alibaba's GPU-sharing cluster (cluster-trace-gpu-v2023, FGD, ATC'23). A pod is one task on
// one node: num_gpu whole GPUs, or gpu_milli of one GPU when num_gpu is 1. It runs from scheduled_time to
// deletion_time; pods that were never scheduled have no run time and are left out. openb-pods: the same list as a bag
// of demands, every row whatever became of it, all submitted at 0 with no work: what packing experiments draw from.
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

// The demand of a pod: the columns that both forms read.
struct PodColumns {
  Column name, cpu, memory, gpus, milli, spec, qos;
};

PodColumns find_pod_columns(RowReader& rows) {
  return {.name = rows.require({"name"}),
          .cpu = rows.require({"cpu_milli"}),
          .memory = rows.require({"memory_mib"}),
          .gpus = rows.require({"num_gpu"}),
          .milli = rows.require({"gpu_milli"}),
          .spec = rows.find({"gpu_spec"}),
          .qos = rows.find({"qos"})};
}

JobRecord read_pod(RowReader& row, const PodColumns& columns) {
  JobRecord job{.id = row.text(columns.name)};
  job.shape.cpu_milli_per_task = row.integer(columns.cpu);
  job.shape.memory_mib_per_task = row.integer(columns.memory);
  const std::int64_t count = row.integer(columns.gpus);
  const std::int64_t share = row.integer(columns.milli);
  if (count == 1 && (share < 1 || share > whole_gpu)) row.expect(columns.milli, "1 to 1000 thousandths of a GPU");
  job.shape.gpu_milli_per_task = count == 1 ? share : count * whole_gpu;
  job.gpu_spec = row.text(columns.spec);
  job.group = row.text(columns.qos);
  return job;
}

}  // namespace

Result<void> read_openb(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const PodColumns pod = find_pod_columns(rows);
  const Column created = rows.require({"creation_time"});
  const Column deleted = rows.require({"deletion_time"});
  const Column scheduled = rows.require({"scheduled_time"});
  const Column phase = rows.find({"pod_phase"});
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job = read_pod(row, pod);
    job.submit = row.seconds(created);
    const std::string_view ending = row.text(phase);
    job.status = ending == "Running" ? JobStatus::unknown : status_from_word(ending);
    const LoggedTimes times{.submit = job.submit, .start = row.instant_if(scheduled), .end = row.instant_if(deleted)};
    if (!row.take_times(job, times, {created, scheduled, deleted})) return;
    row.add(job);
  });
}

Result<void> read_openb_pods(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const PodColumns pod = find_pod_columns(rows);
  return for_each_row(rows, context, [&](RowReader& row) {
    const JobRecord job = read_pod(row, pod);
    if (!row.bad()) row.add(job);
  });
}

}  // namespace gpusched
