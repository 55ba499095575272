// SPDX-License-Identifier: Apache-2.0
// pbs: the accounting logs of PBS Professional, OpenPBS and Torque (server_priv/accounting/YYYYMMDD; PBS Professional
// Administrator's Guide, "Accounting log"): a record a line,
//   03/03/2025 09:00:30;E;4001.pbs1;user=ana queue=gpuq ctime=1740988800 ... start=1740988830 end=1740992430 ...
// of date, type, job and what is known of it as NAME=VALUE. E is the end of a run, R a run that is put back; Q, S, D
// and A tell of jobs that had not ended, or were deleted before they ran. Other types are no jobs.
//
// - A job counts from etime (eligible), else qtime, else ctime; it ran from start to end.
// - GPUs are Resource_List.ngpus, else those of the chunks of Resource_List.select or (Torque) Resource_List.nodes,
// else
//   naccelerators or gpus. The chunks with GPUs are tasks of one gang, where they are alike.
// - resources that name a type of GPU (gpu_type, gpu_model, accelerator_model) are the job's GPU type.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "src/base/name_text.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/logged_runs.hpp"
#include "traces/core/slurm_gpus.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

using PbsValues = std::map<std::string, std::string, std::less<>>;

std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t stop = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, stop);
  text.remove_prefix(std::min(stop + 1, text.size()));
  return part;
}

// "user=ana account="some words" end=5": a value may stand in quotes; a word without '=' goes on with the value before.
PbsValues values_of(std::string_view text) {
  PbsValues values;
  std::string* last = nullptr;
  while (!(text = trim(text)).empty()) {
    const std::size_t stop = std::min(text.find_first_of(" \t"), text.size());
    const std::size_t equals = text.find('=');
    if (equals >= stop) {
      if (last != nullptr) *last += " " + std::string(text.substr(0, stop));
      text.remove_prefix(stop);
      continue;
    }
    std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    std::string_view value = text.substr(0, end);
    if (text.starts_with('"')) {
      const std::size_t quote = text.find('"', 1);
      end = quote == std::string_view::npos ? text.size() : quote + 1;
      value = text.substr(1, end - (quote == std::string_view::npos ? 1 : 2));
    }
    last = &(values[std::move(name)] = std::string(value));
    text.remove_prefix(end);
  }
  return values;
}

// "64gb", "870400kb", "5b" -> MiB, rounded up; 0 where it is no size. A word (w) is 8 bytes.
std::int64_t size_mib(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = parse_number(text.substr(0, digits));
  if (!number || *number < 0) return 0;
  std::string_view unit = text.substr(digits);
  double bytes = unit.ends_with('w') || unit.ends_with('W') ? 8 : 1;
  constexpr std::string_view prefixes = "kmgtp";
  if (!unit.empty()) {
    const char first = static_cast<char>(unit.front() | 0x20);
    if (const std::size_t power = prefixes.find(first); power != std::string_view::npos) {
      for (std::size_t i = 0; i <= power; ++i) bytes *= 1024;
    }
  }
  const double mib = std::ceil(*number * bytes / (1024.0 * 1024));
  return mib > 1e12 ? 1'000'000'000'000 : static_cast<std::int64_t>(mib);
}

bool names_gpu_type(std::string_view name) {
  return name == "gpu_type" || name == "gpu_model" || name == "gputype" || name == "accelerator_model";
}
bool counts_gpus(std::string_view name) {
  return name == "ngpus" || name == "gpus" || name == "gpu" || name == "naccelerators";
}

// What the chunks of "2:ncpus=8:ngpus=4+1:ncpus=4" (PBS) or "2:ppn=8:gpus=4+node7:ppn=2" (Torque) ask for together.
struct Chunks {
  std::int64_t count = 0;                      // all
  std::int64_t gpus = 0, with_gpus = 0;        // GPUs, and chunks that have some
  std::int64_t least_gpus = 0, most_gpus = 0;  // of one chunk with GPUs
  std::int64_t cores = 0;
  std::string gpu_type;
};

// Nothing when a number is none.
std::optional<Chunks> read_chunks(std::string_view text) {
  constexpr std::int64_t most = 1'000'000;
  Chunks chunks;
  while (!text.empty()) {
    std::string_view chunk = take_until(text, '+');
    const std::string_view first = take_until(chunk, ':');
    const bool is_count = first.find('=') == std::string_view::npos;
    std::int64_t copies = is_count ? parse_integer(first).value_or(1) : 1;  // Torque: or the name of a node
    if (copies < 0 || copies > most) return std::nullopt;
    std::int64_t gpus = 0, cores = 0;
    std::string_view rest =
        is_count ? chunk : std::string_view(first.data(), first.size() + (chunk.empty() ? 0 : chunk.size() + 1));
    while (!rest.empty()) {
      std::string_view value = take_until(rest, ':');
      const std::string_view name = take_until(value, '=');
      const auto number = parse_integer(value);
      if (counts_gpus(name)) {
        if (!number || *number < 0 || *number > most) return std::nullopt;
        gpus = *number;
      }
      if ((name == "ncpus" || name == "ppn") && number && *number >= 0 && *number <= most) cores = *number;
      if (names_gpu_type(name)) chunks.gpu_type = value;
    }
    chunks.count += copies;
    chunks.cores += copies * cores;
    if (gpus == 0 || copies == 0) continue;
    chunks.least_gpus = chunks.with_gpus == 0 ? gpus : std::min(chunks.least_gpus, gpus);
    chunks.most_gpus = std::max(chunks.most_gpus, gpus);
    chunks.with_gpus += copies;
    chunks.gpus += copies * gpus;
  }
  return chunks;
}

// One record, looked at.
struct PbsRecord {
  char type = ' ';
  std::string id;
  PbsValues values;
  std::uint64_t line = 0;
};

class PbsReader {
 public:
  explicit PbsReader(ReadContext& context) : context_(context), runs_(context) {}

  Result<void> bind_filter() { return runs_.bind_filter(); }

  void take_line(std::string_view text, std::uint64_t line) {
    constexpr std::string_view of_jobs = "QSERDA";
    PbsRecord record{.type = ' ', .id = {}, .values = {}, .line = line};
    std::string_view rest = text;
    const std::string_view date = take_until(rest, ';');
    const std::string_view type = take_until(rest, ';');
    record.id = name_text(take_until(rest, ';'));
    if (date.size() < 10 || type.size() != 1 || record.id.empty()) {
      ++context_.report.rows;
      return wrong(line, "row", "expected DATE;TYPE;JOB;NAME=VALUE..., found '" + excerpt(text) + "'");
    }
    record.type = type.front();
    if (of_jobs.find(record.type) == std::string_view::npos) return;
    if (record.id.find("[]") != std::string::npos) return;  // an array as a whole: its jobs have records of their own
    record.values = values_of(rest);
    if (record.type == 'E' || record.type == 'R') {
      ended_.insert(record.id);
      open_.erase(record.id);
      return take_run(record);
    }
    PbsRecord& open = open_.try_emplace(record.id, record).first->second;
    for (auto& [name, value] : record.values) open.values[name] = std::move(value);
    if (record.type == 'S' || open.type != 'S') open.type = record.type;
  }

  // Jobs that had no end in the log, in the order of their first lines.
  void finish() {
    std::vector<const PbsRecord*> left;
    for (const auto& [id, record] : open_) {
      if (!ended_.contains(id)) left.push_back(&record);
    }
    std::sort(left.begin(), left.end(), [](const PbsRecord* a, const PbsRecord* b) { return a->line < b->line; });
    for (const PbsRecord* record : left) take_run(*record);
    runs_.finish();
  }

 private:
  void wrong(std::uint64_t line, std::string field, std::string message) {
    context_.bad_row(
        {.message = std::move(message), .file = context_.file.path(), .line = line, .field = std::move(field)});
  }

  static std::string_view value(const PbsRecord& record, std::string_view name) {
    const auto place = record.values.find(name);
    return place == record.values.end() ? std::string_view() : std::string_view(place->second);
  }
  // Seconds since 1970; Time::max() for none and for 0.
  static Time time(const PbsRecord& record, std::string_view name) {
    const auto seconds = parse_seconds(value(record, name));
    return seconds && *seconds > Time{} ? *seconds : Time::max();
  }

  void take_run(const PbsRecord& record) {
    LoggedRun run{.id = record.id, .line = record.line};
    const Time created = time(record, "ctime"), queued = time(record, "qtime"), eligible = time(record, "etime");
    run.times = {
        .submit = queued != Time::max() ? queued : created, .start = time(record, "start"), .end = time(record, "end")};
    if (run.times.submit == Time::max()) run.times.submit = eligible;
    if (run.times.submit == Time::max()) {
      // Torque's Q, D and A tell nothing but that there was a job.
      ++context_.report.rows;
      if (record.type == 'D' || record.type == 'A') return context_.drop(never_started, record.line);
      if (record.type == 'Q') return context_.drop(still_waiting, record.line);
      return wrong(record.line, "qtime", "expected the time of the submission in qtime, ctime or etime");
    }
    run.eligible = eligible;
    run.times.waits = record.type == 'Q';
    run.times.runs = record.type == 'S';
    if (!take_demand(record, run.demand)) {
      ++context_.report.rows;
      return;
    }
    run.user = value(record, "user");
    run.account = value(record, "account").empty() ? value(record, "project") : value(record, "account");
    if (run.account.empty() || run.account == "_pbs_project_default") run.account = value(record, "group");
    run.partition = value(record, "queue");
    run.name = value(record, "jobname");
    run.state = record.type == 'R' ? "REQUEUED" : state_of(value(record, "Exit_status"), record.type);
    run.times.cancelled = record.type == 'D' || record.type == 'A';
    run.times.held_nothing = value(record, "exec_host").empty() && value(record, "exec_vnode").empty();
    const auto limit = parse_slurm_span_or_seconds(value(record, "Resource_List.walltime"));
    run.estimate = limit.value_or(Time::max());
    runs_.take(std::move(run),
               {.file = context_.file.path(), .line = record.line, .submit = "qtime", .start = "start", .end = "end"});
  }

  // "02:00:00", or seconds.
  static std::optional<Time> parse_slurm_span_or_seconds(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const auto span = text.find(':') == std::string_view::npos ? parse_seconds(text) : parse_span(text);
    if (span) return *span >= Time{} ? span : std::nullopt;
    const auto minutes = parse_slurm_span(text);  // "30:00"
    return minutes;
  }

  // 0 is success, 256 and more a signal, less than 0 what PBS did.
  static std::string state_of(std::string_view exit_status, char type) {
    if (type == 'D' || type == 'A') return "CANCELLED";
    const auto code = parse_integer(exit_status);
    if (!code) return "";
    if (*code == 0) return "COMPLETED";
    return *code >= 256 ? "CANCELLED" : "FAILED";
  }

  bool take_demand(const PbsRecord& record, SlurmTres& demand) {
    const std::string_view select = value(record, "Resource_List.select");
    const std::string_view nodes = value(record, "Resource_List.nodes");
    const char* const list = !select.empty() ? "Resource_List.select" : "Resource_List.nodes";
    const auto chunks = read_chunks(!select.empty() ? select : nodes);
    if (!chunks) {
      wrong(record.line, list,
            "expected chunks like 2:ncpus=8:ngpus=4, found '" + excerpt(!select.empty() ? select : nodes) + "'");
      return false;
    }
    std::int64_t gpus = chunks->gpus;
    for (const char* name : {"Resource_List.ngpus", "Resource_List.naccelerators", "Resource_List.gpus"}) {
      const std::string_view text = value(record, name);
      if (text.empty()) continue;
      const auto count = parse_integer(text);
      if (!count || *count < 0 || *count > 1'000'000) {
        wrong(record.line, name, "expected a number of GPUs, found '" + excerpt(text) + "'");
        return false;
      }
      gpus = *count;
      break;
    }
    demand.nodes =
        std::clamp<std::int64_t>(parse_integer(value(record, "Resource_List.nodect")).value_or(0), 0, 1'000'000);
    // Alike chunks are tasks, wherever they stand.
    const bool alike = chunks->with_gpus > 0 && chunks->least_gpus == chunks->most_gpus && gpus == chunks->gpus;
    if (alike) demand.nodes = chunks->with_gpus;
    if (demand.nodes == 0) demand.nodes = chunks->count;
    demand.cores = std::clamp<std::int64_t>(parse_integer(value(record, "Resource_List.ncpus")).value_or(chunks->cores),
                                            0, 1'000'000'000);
    demand.memory_mib = size_mib(value(record, "Resource_List.mem"));
    if (gpus == 0) return true;
    std::string type = chunks->gpu_type;
    for (const auto& [name, text] : record.values) {
      constexpr std::string_view resources = "Resource_List.";
      if (name.starts_with(resources) && names_gpu_type(std::string_view(name).substr(resources.size()))) type = text;
    }
    const SlurmGpu kind = slurm_gpu(type);
    demand.gpus.push_back({std::string(kind.model), kind.milli, gpus, kind.profile});
    return true;
  }

  ReadContext& context_;
  LoggedRuns runs_;
  std::map<std::string, PbsRecord> open_;  // jobs that had not ended, as they are known
  std::set<std::string> ended_;
};

// "03/03/2025 08:00:00;Q;"
bool is_pbs_line(std::string_view line) {
  const std::size_t first = line.find(';');
  return first == 19 && line.size() > 22 && line[2] == '/' && line[5] == '/' && line[13] == ':' && line[21] == ';';
}

}  // namespace

bool is_pbs(std::string_view head) { return is_pbs_line(first_line(head)); }

Result<void> read_pbs(ReadContext& context) {
  PbsReader reader(context);
  if (auto bound = reader.bind_filter(); !bound) return bound;
  std::string_view line;
  while (context.file.next_line(line)) {
    if (!trim(line).empty()) reader.take_line(line, context.file.line_number());
  }
  if (context.file.failure()) return Unexpected{*context.file.failure()};
  reader.finish();
  return {};
}

}  // namespace gpusched
