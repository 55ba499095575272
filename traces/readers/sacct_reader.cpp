// SPDX-License-Identifier: Apache-2.0
// sacct: what `sacct -aXP --format=JobID,Submit,Start,End,Elapsed,Timelimit,ReqTRES,AllocTRES,NNodes,User,Account,
// Partition,JobName,State` prints (slurm.schedmd.com/sacct.html): fields joined by '|' under a header line. Needed are
// JobID, Submit, a TRES column and the run time (ElapsedRaw in seconds, else Elapsed, else End - Start). Steps
// ("17.batch") and jobs that never started or still run are left out. GPUs are gres/gpu of ReqTRES, else of AllocTRES;
// a job on several nodes that divide its GPUs is one task a node. The time limit is the user's estimate.
#include <algorithm>
#include <cmath>

#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

// "billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,mem=64G,node=1". Numbers that are not there stay at 0.
struct Tres {
  std::int64_t gpus = 0;
  std::int64_t cores = 0;
  std::int64_t memory_mib = 0;
  std::int64_t nodes = 0;
};

// "64G" -> MiB; a number alone is megabytes.
std::optional<std::int64_t> parse_memory_mib(std::string_view text) {
  if (text.empty()) return std::nullopt;
  constexpr std::string_view units = "KMGTP";
  double mib = 1;
  if (const std::size_t unit = units.find(text.back()); unit != std::string_view::npos) {
    mib = std::pow(1024.0, static_cast<double>(unit) - 1);
    text.remove_suffix(1);
  }
  const auto number = parse_number(text);
  if (!number || *number < 0 || *number * mib > 1e15) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(*number * mib));
}

// Nothing when a part is not NAME=VALUE with a value of the kind that the name has.
std::optional<Tres> parse_tres(std::string_view text) {
  Tres tres;
  std::int64_t typed_gpus = 0;  // gres/gpu:TYPE, which usually repeats gres/gpu
  while (!text.empty()) {
    const std::string_view part = text.substr(0, std::min(text.find(','), text.size()));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = part.substr(equals + 1);
    const bool counts = name == "cpu" || name == "node" || name == "gres/gpu" || name.starts_with("gres/gpu:");
    const std::int64_t count = counts ? parse_integer(value).value_or(-1) : 0;
    if (count < 0 || count > 1'000'000'000) return std::nullopt;
    if (name == "cpu") tres.cores = count;
    if (name == "node") tres.nodes = count;
    if (name == "gres/gpu") tres.gpus = count;
    if (name.starts_with("gres/gpu:")) typed_gpus += count;
    if (name == "mem") {
      const auto memory = parse_memory_mib(value);
      if (!memory) return std::nullopt;
      tres.memory_mib = *memory;
    }
  }
  tres.gpus = std::max(tres.gpus, typed_gpus);
  return tres;
}

bool is_unknown(std::string_view text) { return text.empty() || text == "Unknown" || text == "None"; }

struct SacctColumns {
  Column id, submit, start, end, elapsed_raw, elapsed, limit_raw, limit, requested, allocated, nodes, user, account,
      partition, name, state;
};

// What the row asks for: ReqTRES, or AllocTRES where that has no GPU.
Tres demand_of(RowReader& row, const SacctColumns& columns) {
  Tres found;
  for (const Column column : {columns.requested, columns.allocated}) {
    const auto tres = parse_tres(row.text(column));
    if (!tres) {
      row.expect(column, "resources like cpu=8,mem=64G,gres/gpu=4");
      return found;
    }
    if (found.gpus > 0) break;
    if (tres->gpus > 0 || found.cores == 0) found = *tres;
  }
  if (columns.nodes && !row.is_blank(columns.nodes)) found.nodes = row.integer(columns.nodes);
  return found;
}

Time run_time(RowReader& row, const SacctColumns& columns) {
  if (columns.elapsed_raw) return row.seconds(columns.elapsed_raw);
  if (columns.elapsed) {
    const auto span = parse_slurm_span(row.text(columns.elapsed));
    if (!span) row.expect(columns.elapsed, "a span like 1-02:03:04");
    return span.value_or(Time{});
  }
  const Time start = row.instant(columns.start);
  const Time end = row.instant(columns.end);
  if (end < start) row.expect(columns.end, "an end not before Start");
  return end < start ? Time{} : end - start;
}

Time time_limit(RowReader& row, const SacctColumns& columns) {
  if (columns.limit_raw && !is_unknown(row.text(columns.limit_raw))) {
    const auto minutes = parse_integer(row.text(columns.limit_raw));
    const bool is_limit = minutes && *minutes >= 0 && *minutes < 1'000'000'000;
    return is_limit ? whole_seconds(*minutes * 60) : Time::max();  // UNLIMITED, Partition_Limit
  }
  const auto span = columns.limit ? parse_slurm_span(row.text(columns.limit)) : std::nullopt;
  return span.value_or(Time::max());
}

// Null: a job that ran.
const char* why_left_out(const RowReader& row, const SacctColumns& columns) {
  const std::string_view state = row.text(columns.state);
  if (row.text(columns.id).find('.') != std::string_view::npos) return "step of a job";
  if (columns.start && is_unknown(row.text(columns.start))) return "never started";
  if (state.starts_with("PENDING")) return "never started";
  if (state.starts_with("RUNNING") || state.starts_with("SUSPENDED")) return "still running";
  if (columns.end && is_unknown(row.text(columns.end))) return "still running";
  return nullptr;
}

}  // namespace

Result<void> read_sacct(ReadContext& context) {
  RowReader rows(context, '|');
  if (auto header = rows.read_header(); !header) return header;
  const SacctColumns columns{.id = rows.require({"JobID"}),
                             .submit = rows.require({"Submit"}),
                             .start = rows.find({"Start"}),
                             .end = rows.find({"End"}),
                             .elapsed_raw = rows.find({"ElapsedRaw"}),
                             .elapsed = rows.find({"Elapsed"}),
                             .limit_raw = rows.find({"TimelimitRaw"}),
                             .limit = rows.find({"Timelimit"}),
                             .requested = rows.find({"ReqTRES"}),
                             .allocated = rows.find({"AllocTRES"}),
                             .nodes = rows.find({"NNodes", "AllocNodes"}),
                             .user = rows.find({"User"}),
                             .account = rows.find({"Account"}),
                             .partition = rows.find({"Partition"}),
                             .name = rows.find({"JobName"}),
                             .state = rows.find({"State"})};
  rows.require({"ReqTRES", "AllocTRES"});
  rows.require({"ElapsedRaw", "Elapsed", "End"});
  rows.require({"ElapsedRaw", "Elapsed", "Start"});
  return for_each_row(rows, context, [&](RowReader& row) {
    if (const char* reason = why_left_out(row, columns)) return row.drop(reason);
    JobRecord job{.id = row.text(columns.id), .submit = row.instant(columns.submit), .work = run_time(row, columns)};
    if (columns.start && row.instant(columns.start) < job.submit) {
      row.expect(columns.start, "a start not before Submit");
    }
    const Tres demand = demand_of(row, columns);
    if (row.bad()) return;
    job.estimate = time_limit(row, columns);
    job.shape = gang_on_nodes(demand.gpus, demand.nodes);
    const std::int64_t tasks = job.shape.tasks;
    job.shape.cpu_milli_per_task = (demand.cores * 1000 + tasks - 1) / tasks;
    job.shape.memory_mib_per_task = (demand.memory_mib + tasks - 1) / tasks;
    job.user = row.text(columns.user);
    job.group = row.text(columns.account);
    job.vc = row.text(columns.partition);
    job.name = row.text(columns.name);
    job.status = status_from_word(row.text(columns.state));
    row.add(job);
  });
}

}  // namespace gpusched
