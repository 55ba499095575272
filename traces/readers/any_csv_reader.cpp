// SPDX-License-Identifier: Apache-2.0
// csv: any file whose lines hold fields; --columns says which column is what (ColumnMapping):
//   submit=COLUMN[:UNIT],gpus=COLUMN,duration=COLUMN[:UNIT]  (instead of duration: end=COLUMN, with start=COLUMN if it
//   is not the submit) and, if there are, start, id, user, group, vc, name, family, estimate, deadline, tasks, cpu
//   (cores a task), memory (MiB a task), gpu_type, gpu_memory (GiB that each GPU must have), priority, qos, status,
//   after (ids joined by ';').
// Times are seconds or calendar times. With tasks, gpus counts for one task; without, the job is a gang of single GPUs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "traces/core/cluster_units.hpp"
#include "traces/core/column_mapping.hpp"
#include "traces/core/slurm_tres.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr MilliGpu most_gpus_of_job = 1'000'000 * whole_gpu;

// As GpuDemand takes it.
std::string gpu_memory_text(double gib) {
  const auto mib = static_cast<std::int64_t>(std::ceil(gib * mib_per_gib));
  return mib == 0 ? "" : "@" + std::to_string(mib) + "MiB";
}

// GPUs, and of which types where the field says it.
struct Gpus {
  MilliGpu milli = 0;
  std::string types = {};
  bool is_unknown_share = false;
};

Gpus of_resources(const SlurmTres& resources) {
  Gpus gpus{.milli = resources.gpu_count() * whole_gpu};
  gpus.is_unknown_share = resources.shares && gpus.milli == 0;
  std::set<std::string> types;
  for (const SlurmGpus& kind : resources.gpus) {
    types.insert(kind.model + (kind.model.empty() || kind.profile.empty() ? "" : "_") + kind.profile);
  }
  if (types.contains("")) return gpus;
  for (const std::string& type : types) gpus.types += (gpus.types.empty() ? "" : "|") + type;
  return gpus;
}

Gpus read_gpus(RowReader& row, Column column, GpuText form) {
  const std::string_view text = row.text(column);
  const bool names_gpus = text.starts_with("gpu") || text.find("gres") != std::string_view::npos;
  if (form == GpuText::gres || form == GpuText::tres || (form == GpuText::number && names_gpus)) {
    if (row.is_blank(column) || text == "(null)") return {};
    const auto resources = text.find('=') != std::string_view::npos ? parse_slurm_tres(text) : parse_slurm_gres(text);
    if (!resources) row.expect(column, "resources like gpu:a100:2 or cpu=8,gres/gpu=2");
    Gpus gpus = resources ? of_resources(*resources) : Gpus{};
    if (gpus.milli > most_gpus_of_job) row.expect(column, "at most 1000000 GPUs");
    return gpus;
  }
  if (row.is_blank(column)) row.expect(column, "a number of GPUs (behind gpus=COLUMN:gres no value is no GPU)");
  const double count = row.number(column) / (form == GpuText::milli ? static_cast<double>(whole_gpu) : 1.0);
  const auto milli = static_cast<MilliGpu>(std::llround(count * static_cast<double>(whole_gpu)));
  if (count > 0 && milli < 1) row.expect(column, "0 or at least 0.001 GPUs");
  if (milli > whole_gpu && milli % whole_gpu != 0) row.expect(column, "a whole number of GPUs, or a share below 1");
  if (milli > most_gpus_of_job) row.expect(column, "at most 1000000 GPUs");
  return {.milli = milli};
}

Result<void> begin_rows(RowReader& rows, ReadContext& context, const ColumnMapping& mapping) {
  if (!mapping.by_position()) return rows.read_header();
  if (std::string_view header; mapping.has_header() && context.file.next_line(header)) {
    context.report.notes.emplace_back(
        "the first line is taken as a header; header=no among --columns reads it as a job");
  }
  std::vector<std::string> positions;
  for (std::size_t i = 1; i <= mapping.width(); ++i) positions.push_back(std::to_string(i));
  return rows.use_header(std::move(positions));
}

}  // namespace

Result<void> read_any_csv(ReadContext& context) {
  if (context.options.columns.empty()) {
    return unexpected("format csv needs --columns submit=COLUMN,gpus=COLUMN,duration=COLUMN");
  }
  auto mapping = ColumnMapping::parse(context.options.columns);
  if (!mapping) return Unexpected{mapping.error()};
  if (auto looked = mapping->look_at(context.file.head()); !looked) return looked;
  RowReader rows(context, mapping->style());
  if (auto header = begin_rows(rows, context, *mapping); !header) return header;
  if (auto resolved = mapping->resolve(rows); !resolved) return resolved;
  const auto column_of = [&](const char* role) { return mapping->column(role); };
  const auto factor_of = [&](const char* role) { return column_of(role) ? mapping->role(role).factor : 1; };
  const Column submit = column_of("submit"), gpus = column_of("gpus"), duration = column_of("duration"),
               start = column_of("start"), end = column_of("end"), id = column_of("id"), user = column_of("user"),
               group = column_of("group"), vc = column_of("vc"), name = column_of("name"), family = column_of("family"),
               estimate = column_of("estimate"), deadline = column_of("deadline"), tasks = column_of("tasks"),
               cpu = column_of("cpu"), memory = column_of("memory"), gpu_type = column_of("gpu_type"),
               gpu_memory = column_of("gpu_memory"), priority = column_of("priority"), qos = column_of("qos"),
               status = column_of("status"), after = column_of("after"), after_delay = column_of("after_delay");
  const GpuText gpu_text = mapping->role("gpus").gpus;
  const double cores = factor_of("cpu"), mib = factor_of("memory"), gib = factor_of("gpu_memory");
  std::vector<std::string> predecessors;
  return for_each_row(rows, context, [&](RowReader& row) {
    JobRecord job{.id = row.text(id), .submit = row.instant(submit), .status = status_from_word(row.text(status))};
    LoggedTimes times{.submit = job.submit,
                      .start = row.instant_if(start),
                      .end = row.instant_if(end),
                      .has_start = bool(start),
                      .cancelled = job.status == JobStatus::killed};
    // Without a run time a job may have none because it never started; any other lacks what it needs.
    const bool may_lack_duration = end || (start && row.is_blank(start));
    if (duration && !(may_lack_duration && row.is_blank(duration))) times.elapsed = row.seconds(duration);
    const Gpus demand = read_gpus(row, gpus, gpu_text);
    if (demand.is_unknown_share) return row.drop(unknown_share);
    if (tasks) {
      job.shape.tasks = static_cast<std::uint32_t>(row.integer(tasks, 1));
      job.shape.gpu_milli_per_task = demand.milli;
    } else if (demand.milli >= whole_gpu) {
      job.shape = gang_of(demand.milli / whole_gpu);
    } else {
      job.shape.gpu_milli_per_task = demand.milli;
    }
    const auto rounded_up = [&](Column column, double factor, double most) {
      return static_cast<std::int64_t>(std::ceil(row.number(column, most / factor) * factor));
    };
    if (cpu) job.shape.cpu_milli_per_task = rounded_up(cpu, cores * 1000, most_cores * 1000);
    if (memory) job.shape.memory_mib_per_task = rounded_up(memory, mib, most_memory_mib);
    job.estimate = row.seconds_if(estimate);
    job.deadline = row.instant_if(deadline);
    const auto name_in = [&row](Column column) { return row.is_blank(column) ? std::string_view() : row.text(column); };
    if (qos) job.priority = context.qos.priority(name_in(qos));
    if (priority && !row.is_blank(priority)) {
      using Limits = std::numeric_limits<std::int32_t>;
      job.priority = static_cast<std::int32_t>(row.integer(priority, Limits::min(), Limits::max()));
    }
    job.user = name_in(user);
    job.group = name_in(group);
    job.vc = name_in(vc);
    job.qos = name_in(qos);
    job.name = name_in(name);
    job.family = name_in(family);
    std::string gpu_spec(gpu_type && !row.is_blank(gpu_type) ? row.text(gpu_type) : std::string_view(demand.types));
    if (gpu_memory && !row.is_blank(gpu_memory)) gpu_spec += gpu_memory_text(row.number(gpu_memory, 1e6 / gib) * gib);
    job.gpu_spec = gpu_spec;
    row.read_after(after, after_delay, predecessors, job);
    if (row.take_times(job, times, {submit, start, end})) row.add(job);
  });
}

}  // namespace gpusched
