// SPDX-License-Identifier: Apache-2.0
// sacct-json: what
//   sacct -a -D -S START -E END --json
// prints, of Slurm 20.11 and later (slurm.schedmd.com/rest_api.html, "dbv0.0.36" to "v0.0.42"): an object whose list
// `jobs` has an object a run. Versions differ in how they write numbers (60, or {"set", "infinite", "number"}), states
// (a text or a list of them) and names that are not there (null or ""). What the runs mean is what it is in text
// (sacct_reader.cpp); steps are part of their job's object and are not read.
#include <algorithm>

#include "traces/core/json_records.hpp"
#include "traces/core/logged_runs.hpp"
#include "traces/core/slurm_rows.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

// The time there, in seconds since 1970; Time::max() where there is none.
Time json_time(const JsonRecord& job, std::string_view path) {
  const auto seconds = json_count(job, path);
  const bool is_time = seconds && *seconds > 0 && *seconds < end_of_time.us / microseconds_per_second;
  return is_time ? whole_seconds(*seconds) : Time::max();
}

// The first of the states that says what became of the run: a list may add flags, such as COMPLETING.
std::string state_of(const JsonRecord& job) {
  const JsonRecord* const current = find_json(job, "state/current");
  if (current == nullptr) return json_word(job, "state");
  if (current->is_string()) return current->get<std::string>();
  std::string state;
  if (!current->is_array()) return state;
  for (const JsonRecord& entry : *current) {
    if (!entry.is_string()) continue;
    const std::string word = entry.get<std::string>();
    const bool decides = word.starts_with("REQUEUE") || word.starts_with("PREEMPT") || word == "RESIZING";
    if (state.empty() || decides) state = word;
  }
  return state;
}

// Nothing where an entry is none, or counts what cannot be.
std::optional<SlurmTres> tres_of(const JsonRecord& job, std::string_view path) {
  SlurmTresParts parts;
  const JsonRecord* const list = find_json(job, path);
  if (list == nullptr || list->is_null()) return parts.finish();
  if (list->is_string()) return parse_slurm_tres(list->get<std::string>());
  if (!list->is_array()) return std::nullopt;
  for (const JsonRecord& entry : *list) {
    const std::string type = json_word(entry, "type"), name = json_word(entry, "name");
    const auto count = json_count(entry, "count");
    if (type.empty()) return std::nullopt;
    if (!count || *count < 0) continue;  // not set
    if (type == "mem") {
      parts.set_memory_mib(std::min<std::int64_t>(*count, 1'000'000'000'000));
    } else if (!parts.add(name.empty() ? type : type + "/" + name, *count)) {
      return std::nullopt;
    }
  }
  return parts.finish();
}

// "31", "31_7", "31_[3-9%2]" or, of a heterogeneous job, "31" and its component.
bool take_id(const JsonRecord& job, LoggedRun& run) {
  const auto own = json_count(job, "job_id");
  if (!own) return false;
  run.id = std::to_string(*own);
  if (const auto array = json_count(job, "array/job_id"); array && *array > 0) {
    const auto task = json_count(job, "array/task_id");
    const std::string waiting = json_word(job, "array/task");
    run.id = std::to_string(*array);
    if (task) {
      run.id += "_" + std::to_string(*task);
    } else if (!waiting.empty()) {
      run.id += "_[" + waiting + "]";
    }
  }
  if (const auto joint = json_count(job, "het/job_id"); joint && *joint > 0) {
    run.id = std::to_string(*joint);
    run.component = std::max<std::int64_t>(json_count(job, "het/job_offset").value_or(0), 0);
  }
  return true;
}

std::string first_word(const JsonRecord& job, std::initializer_list<std::string_view> paths) {
  for (const std::string_view path : paths) {
    if (std::string word = json_word(job, path); !word.empty()) return word;
  }
  return {};
}

class SacctJsonReader {
 public:
  explicit SacctJsonReader(ReadContext& context) : context_(context), runs_(context) {}

  void take(const JsonRecord& job, std::uint64_t line) {
    LoggedRun run{.id = {}, .line = line};
    const auto wrong = [&](const char* field, const char* expected) {
      ++context_.report.rows;
      context_.bad_row(
          {.message = std::string("expected ") + expected, .file = context_.file.path(), .line = line, .field = field});
    };
    if (!take_id(job, run)) return wrong("job_id", "a number");
    run.cluster = first_word(job, {"cluster", "association/cluster"});
    run.user = first_word(job, {"user", "association/user"});
    run.account = first_word(job, {"account", "association/account"});
    run.partition = json_word(job, "partition");
    run.partition = run.partition.substr(0, run.partition.find(','));
    run.qos = json_word(job, "qos");
    run.name = first_word(job, {"name", "job_name"});
    run.state = state_of(job);
    run.eligible = json_time(job, "time/eligible");
    const auto limit = json_count(job, "time/limit");
    if (limit && *limit >= 0 && *limit < 1'000'000'000) run.estimate = whole_seconds(*limit * 60);
    const auto requested = tres_of(job, "tres/requested"), allocated = tres_of(job, "tres/allocated");
    if (!requested) return wrong("tres/requested", "a list of resources with type, name and count");
    if (!allocated) return wrong("tres/allocated", "a list of resources with type, name and count");
    run.demand = slurm_demand(*requested, *allocated, json_count(job, "allocation_nodes").value_or(0));

    run.times = {.submit = json_time(job, "time/submission"),
                 .start = json_time(job, "time/start"),
                 .end = json_time(job, "time/end")};
    if (run.times.submit == Time::max()) return wrong("time/submission", "seconds since 1970");
    take_slurm_state(run.state, run.times);
    const bool ended = run.times.end != Time::max();
    run.times.runs = run.times.runs || (!ended && run.times.start != Time::max());
    const auto elapsed = json_count(job, "time/elapsed");
    if (elapsed && *elapsed >= 0 && *elapsed < 1'000'000'000'000) run.times.elapsed = whole_seconds(*elapsed);
    run.times.held_nothing =
        json_word(job, "nodes") == "None assigned" ||
        (allocated->cores == 0 && allocated->nodes == 0 && allocated->gpu_count() == 0 && requested->cores > 0);
    runs_.take(std::move(run), {.file = context_.file.path(),
                                .line = line,
                                .submit = "time/submission",
                                .start = "time/start",
                                .end = "time/end"});
  }

  Result<void> bind_filter() { return runs_.bind_filter(); }
  void finish() { runs_.finish(); }

 private:
  ReadContext& context_;
  LoggedRuns runs_;
};

}  // namespace

bool is_sacct_json(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || head[start] != '{') return false;
  return head.find("\"jobs\"") != std::string_view::npos && (head.find("\"submission\"") != std::string_view::npos ||
                                                             head.find("\"association\"") != std::string_view::npos);
}

Result<void> read_sacct_json(ReadContext& context) {
  SacctJsonReader reader(context);
  if (auto bound = reader.bind_filter(); !bound) return bound;
  const auto read = for_each_json_record(context.file, "jobs",
                                         [&](const JsonRecord& job, std::uint64_t line) { reader.take(job, line); });
  if (read) reader.finish();
  return read;
}

}  // namespace gpusched
