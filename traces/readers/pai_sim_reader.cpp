// SPDX-License-Identifier: Apache-2.0
// pai-sim: the columns of the PAI simulator's input (alibaba/clusterdata, cluster-trace-gpu-v2020/simulator):
// job_id,user,submit_time,duration,num_inst,num_gpu,num_cpu,user_dur,...,group_dur,...,gpu_type. num_gpu is what one
// instance asks for, in GPUs, and may be a fraction; a whole number of GPUs may come from several machines. The
// simulator shrinks durations to integers of at least 1; here they stay as written.
#include <cmath>

#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

Shape instance_gang(double gpus, std::int64_t instances, double cpus) {
  const auto milli = static_cast<MilliGpu>(std::llround(gpus * static_cast<double>(whole_gpu)));
  Shape shape;
  const bool whole = milli > 0 && milli % whole_gpu == 0;
  const std::int64_t tasks_per_instance = whole ? milli / whole_gpu : 1;
  shape.tasks = static_cast<std::uint32_t>(instances * tasks_per_instance);
  shape.gpu_milli_per_task = whole ? whole_gpu : milli;
  // CPUs are spread over the instance's GPUs, rounded up so that the gang never asks for less than the trace says.
  shape.cpu_milli_per_task =
      static_cast<std::int64_t>(std::ceil(cpus * 1000 / static_cast<double>(tasks_per_instance)));
  return shape;
}

}  // namespace

Result<void> read_pai_sim(ReadContext& context) {
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return header;
  const Column id = rows.require({"job_id"});
  const Column submit = rows.require({"submit_time"});
  const Column duration = rows.require({"duration"});
  const Column gpus = rows.require({"num_gpu"});
  const Column user = rows.find({"user"});
  const Column instances = rows.find({"num_inst"});
  const Column cpus = rows.find({"num_cpu"});
  const Column estimate = rows.find({"user_dur"});
  const Column gpu_type = rows.find({"gpu_type"});
  const Column group = rows.find({"group"});
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(id), .submit = row.seconds(submit), .work = row.seconds(duration)};
    const double gpus_per_instance = row.number(gpus);
    if (gpus_per_instance > 0 && gpus_per_instance < 0.001) row.expect(gpus, "0 or at least 0.001 GPUs");
    if (gpus_per_instance > 1 && gpus_per_instance != std::floor(gpus_per_instance)) {
      row.expect(gpus, "a whole number of GPUs, or a share below 1");
    }
    const std::int64_t count = instances && !row.is_blank(instances) ? row.integer(instances, 1) : 1;
    const double cores = cpus && !row.is_blank(cpus) ? row.number(cpus, most_cores) : 0;
    if (estimate && !row.is_blank(estimate)) job.estimate = row.seconds(estimate);
    if (gpus_per_instance * static_cast<double>(count) > 1e9) row.expect(gpus, "at most 1000000000 GPUs in all");
    if (row.bad()) return;
    job.shape = instance_gang(gpus_per_instance, count, cores);
    job.user = row.text(user);
    job.group = row.text(group);
    const std::string_view type = row.text(gpu_type);
    job.gpu_spec = type == "MISC" || type == "CPU" ? std::string_view() : type;  // MISC: any of the older GPUs
    row.add(job);
  });
}

}  // namespace gpusched
