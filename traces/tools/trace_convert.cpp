// SPDX-License-Identifier: Apache-2.0
#include "traces/tools/trace_convert.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "src/base/atomic_file.hpp"
#include "src/base/csv_text.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

std::string csv_quoted(const std::string& text) {
  std::string field;
  append_csv_field(field, text);
  return field;
}

std::string seconds_or_blank(Time t) { return t == Time::max() ? std::string() : exact_seconds(t); }

// Of the native clock, whose second 0 is at midnight.
std::string clock_or_blank(const JobTable& jobs, Time t) {
  return t == Time::max() ? std::string() : exact_seconds(t + jobs.midnight_to_zero());
}

std::string attempts_text(const JobTable& jobs, JobId job) {
  std::string text;
  if (jobs.attempts(job) < 2) return text;
  for (std::uint32_t k = 0; k < jobs.attempts(job); ++k) {
    text += (k == 0 ? "" : ";") + exact_seconds(jobs.attempt_work(job, k));
  }
  return text;
}

std::string after_text(const JobTable& jobs, JobId job) {
  std::string text;
  for (const JobId other : jobs.dependencies().of(job)) text += (text.empty() ? "" : ";") + jobs.external_id(other);
  return csv_quoted(text);
}

// A column that native may leave out.
struct OptionalColumn {
  const char* name;
  bool is_there;
  std::string (*value)(const JobTable& jobs, JobId job);
};

std::vector<OptionalColumn> optional_columns(const JobTable& jobs) {
  const auto any_shape = [&](auto has) { return std::any_of(jobs.shapes().begin(), jobs.shapes().end(), has); };
  return {
      {"cpu_milli_per_task", any_shape([](const Shape& shape) { return shape.cpu_milli_per_task > 0; }),
       [](const JobTable& table, JobId job) { return std::to_string(table.shape(job).cpu_milli_per_task); }},
      {"memory_mib_per_task", any_shape([](const Shape& shape) { return shape.memory_mib_per_task > 0; }),
       [](const JobTable& table, JobId job) { return std::to_string(table.shape(job).memory_mib_per_task); }},
      {"gpu_spec", jobs.gpu_specs().size() > 1,
       [](const JobTable& table, JobId job) { return csv_quoted(table.gpu_specs()[table.shape(job).gpu_spec]); }},
      {"estimate_s", jobs.has_estimates(),
       [](const JobTable& table, JobId job) { return seconds_or_blank(table.estimate(job)); }},
      {"start_s", jobs.has_starts(),
       [](const JobTable& table, JobId job) { return clock_or_blank(table, table.start(job)); }},
      {"deadline_s", jobs.has_deadlines(),
       [](const JobTable& table, JobId job) { return clock_or_blank(table, table.deadline(job)); }},
      {"user", jobs.has_users(),
       [](const JobTable& table, JobId job) { return csv_quoted(table.users()[table.user(job)]); }},
      {"group", jobs.has_groups(),
       [](const JobTable& table, JobId job) { return csv_quoted(table.groups()[table.group(job)]); }},
      {"vc", jobs.has_vcs(), [](const JobTable& table, JobId job) { return csv_quoted(table.vcs()[table.vc(job)]); }},
      {"qos", jobs.has_qos(),
       [](const JobTable& table, JobId job) { return csv_quoted(table.qos_names()[table.qos(job)]); }},
      {"name", jobs.has_names(),
       [](const JobTable& table, JobId job) { return csv_quoted(table.names()[table.name(job)]); }},
      {"family", jobs.families().size() > 1,
       [](const JobTable& table, JobId job) { return csv_quoted(table.families()[table.family(job)]); }},
      {"status", jobs.has_statuses(),
       [](const JobTable& table, JobId job) { return std::string(to_string(table.status(job))); }},
      {"priority", jobs.has_priorities(),
       [](const JobTable& table, JobId job) { return std::to_string(table.priority(job)); }},
      {"attempts_s", jobs.has_attempts(), attempts_text},
      {"after", !jobs.dependencies().is_empty(), after_text},
      {"after_delay_s", jobs.dependencies().has_delays(),
       [](const JobTable& table, JobId job) { return exact_seconds(table.dependencies().delay(job)); }},
  };
}

constexpr std::uint64_t most_swf_number = end_of_time.us / microseconds_per_second;  // that readers take

// Every id as a positive number, or none when one of them is not or is larger than readers take, or two are the same.
std::vector<std::uint64_t> numeric_ids(const JobTable& jobs) {
  std::vector<std::uint64_t> ids;
  std::set<std::uint64_t> seen;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const auto number = parse_exact<std::uint64_t>(jobs.external_id(JobId{i}));
    if (!number || *number == 0 || *number > most_swf_number || !seen.insert(*number).second) return {};
    ids.push_back(*number);
  }
  return ids;
}

// The number of each job in the file; 0: it asks for no GPU and is left out. `ids`: of numeric_ids().
std::vector<std::uint64_t> swf_job_numbers(const JobTable& jobs, const std::vector<std::uint64_t>& ids) {
  std::vector<std::uint64_t> numbers;
  std::uint64_t written = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const bool is_left_out = jobs.shape(JobId{i}).gpu_milli_per_task == 0;
    written += is_left_out ? 0 : 1;
    numbers.push_back(is_left_out ? 0 : ids.empty() ? written : ids[i]);
  }
  return numbers;
}

// The format's code: 1 completed, 0 failed, 5 cancelled, -1 unknown.
int swf_status(JobStatus status) {
  switch (status) {
    case JobStatus::passed: return 1;
    case JobStatus::failed: return 0;
    case JobStatus::killed: return 5;
    case JobStatus::unknown: break;
  }
  return -1;
}

// What stands for each name: the name itself where all are distinct numbers, else 1, 2, ... Entry 0 of every name table
// is "unknown", which is -1 here.
std::vector<std::string> swf_names(const NameTable& names) {
  std::vector<std::string> same{"-1"}, counted_up{"-1"};
  std::set<std::uint64_t> seen;
  for (std::uint32_t name = 1; name < names.size(); ++name) {
    const auto number = parse_exact<std::uint64_t>(names[name]);
    if (number && *number <= most_swf_number && seen.insert(*number).second) same.push_back(std::to_string(*number));
    counted_up.push_back(std::to_string(name));
  }
  return same.size() == counted_up.size() ? same : counted_up;
}

// Field 10: KiB of a processor; of a task of several GPUs each has its part, rounded up.
std::string swf_memory(const Shape& shape) {
  const std::int64_t processors = (shape.gpu_milli_per_task + whole_gpu - 1) / whole_gpu;
  const auto most = static_cast<std::int64_t>(most_swf_number);
  const std::int64_t kib = std::min(shape.memory_mib_per_task, most / 1024) * 1024;
  return kib == 0 ? "-1" : std::to_string((kib + processors - 1) / processors);
}

// Whom a job is written to wait for. Of several that are written the one that ends last in the log, where all their
// starts are recorded.
std::optional<JobId> swf_predecessor(const JobTable& jobs, JobId job, const std::vector<std::uint64_t>& numbers) {
  std::optional<JobId> last;
  Time last_end{};
  bool is_known = true;
  for (const JobId other : jobs.dependencies().of(job)) {
    if (numbers[index(other)] == 0) continue;
    const Time start = jobs.start(other);
    const Time end = start == Time::max() ? start : start + std::min(jobs.work(other), Time::max() - start);
    if (last) is_known = is_known && last_end != Time::max() && end != Time::max();
    if (last && end <= last_end) continue;
    last = other;
    last_end = end;
  }
  return is_known ? last : std::nullopt;
}

// `one` and `several` as counted() takes them.
void note(std::vector<std::string>& notes, std::uint64_t jobs, const char* one, const char* several,
          const std::string& what) {
  if (jobs > 0) notes.push_back(counted(jobs, one, several) + " " + what);
}

// What a job may have that the format has no field for.
void note_without_field(std::vector<std::string>& notes, const JobTable& jobs) {
  const auto add = [&](const std::string& what, auto has) {
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      count += jobs.shape(JobId{i}).gpu_milli_per_task > 0 && has(JobId{i}) ? 1 : 0;
    }
    note(notes, count, "job has", "jobs have", what + ", which SWF cannot express");
  };
  add("a demand of CPU", [&](JobId job) { return jobs.shape(job).cpu_milli_per_task > 0; });
  add("a priority", [&](JobId job) { return jobs.priority(job) != 0; });
  add("a quality of service", [&](JobId job) { return jobs.qos(job) != 0; });
  add("a deadline", [&](JobId job) { return jobs.deadline(job) != Time::max(); });
  add("a name", [&](JobId job) { return jobs.name(job) != 0; });
  add("a family", [&](JobId job) { return jobs.family(job) != 0; });
}

// The whole second in which `t` lies, also before 1970.
Time second_of(Time t) {
  const std::int64_t within = (t.us % microseconds_per_second + microseconds_per_second) % microseconds_per_second;
  return t - Time{within};
}

}  // namespace

TraceText write_native(const JobTable& jobs) {
  std::vector<OptionalColumn> columns = optional_columns(jobs);
  std::erase_if(columns, [](const OptionalColumn& column) { return !column.is_there; });
  std::string text = "job_id,submit_s,work_s,tasks,gpu_milli_per_task";
  for (const OptionalColumn& column : columns) text += std::string(",") + column.name;
  text += "\n";
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Shape& shape = jobs.shape(job);
    text += csv_quoted(jobs.external_id(job)) + "," + clock_or_blank(jobs, jobs.submit(job)) + "," +
            exact_seconds(jobs.work(job)) + "," + std::to_string(shape.tasks) + "," +
            std::to_string(shape.gpu_milli_per_task);
    for (const OptionalColumn& column : columns) text += "," + column.value(jobs, job);
    text += "\n";
  }
  return {.text = std::move(text), .jobs = jobs.size(), .notes = {}};
}

TraceText write_swf(const JobTable& jobs, std::int64_t machine_gpus) {
  const std::vector<std::uint64_t> ids = numeric_ids(jobs);
  const Time first = jobs.size() == 0 ? Time{} : second_of(jobs.submits().front());
  std::string rows;
  const std::vector<std::uint64_t> numbers = swf_job_numbers(jobs, ids);
  const std::vector<std::string> users = swf_names(jobs.users()), groups = swf_names(jobs.groups()),
                                 queues = swf_names(jobs.vcs());
  std::uint64_t written = 0, without_gpu = 0, shares = 0, typed = 0, attempts = 0, waits_less = 0, waits_not = 0,
                several_gpus_a_task = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Shape& shape = jobs.shape(job);
    if (shape.gpu_milli_per_task == 0) {
      ++without_gpu;
      continue;
    }
    const std::int64_t processors =
        std::int64_t{shape.tasks} * ((shape.gpu_milli_per_task + whole_gpu - 1) / whole_gpu);
    shares += shape.is_share() ? 1 : 0;
    typed += shape.gpu_spec != 0 ? 1 : 0;
    attempts += jobs.attempts(job) > 1 ? 1 : 0;
    const auto before = jobs.dependencies().of(job);
    const auto follows = swf_predecessor(jobs, job, numbers);
    waits_less += follows && before.size() > 1 ? 1 : 0;
    waits_not += before.empty() || follows ? 0 : 1;
    several_gpus_a_task += shape.gpu_milli_per_task > whole_gpu ? 1 : 0;
    ++written;
    const std::string processors_text = std::to_string(processors);
    const bool has_estimate = jobs.estimate(job) != Time::max();
    const bool has_start = jobs.start(job) != Time::max();
    rows += std::to_string(numbers[i]) + " " + exact_seconds(jobs.submit(job) - first) + " " +
            (has_start ? exact_seconds(std::max(jobs.start(job) - jobs.submit(job), Time{})) : "-1") + " " +
            exact_seconds(jobs.work(job)) + " " + processors_text + " -1 -1 " + processors_text + " " +
            (has_estimate ? exact_seconds(jobs.estimate(job)) : "-1") + " " + swf_memory(shape) + " " +
            std::to_string(swf_status(jobs.status(job))) + " " + users[jobs.user(job)] + " " + groups[jobs.group(job)] +
            " -1 " + queues[jobs.vc(job)] + " -1 " +
            (follows ? std::to_string(numbers[index(*follows)]) + " " + exact_seconds(jobs.dependencies().delay(job))
                     : "-1 -1") +
            "\n";
  }
  TraceText swf{.text = "; Version: 2.2\n; Conversion: gpusched, one processor for each GPU\n; MaxJobs: " +
                        std::to_string(written) + "\n; MaxRecords: " + std::to_string(written) +
                        (machine_gpus > 0 ? "\n; MaxProcs: " + std::to_string(machine_gpus) : std::string()) +
                        "\n; UnixStartTime: " + exact_seconds(first + jobs.midnight_to_zero()) + "\n" + rows,
                .jobs = written,
                .notes = {}};
  if (ids.empty() && jobs.size() > 0)
    swf.notes.emplace_back("ids are not distinct positive numbers; jobs are renumbered from 1");
  note(swf.notes, without_gpu, "job asks", "jobs ask", "for no GPU, left out");
  note(swf.notes, shares, "job asks", "jobs ask", "for a share of a GPU, rounded up to a whole processor");
  note(swf.notes, several_gpus_a_task, "job has", "jobs have", "tasks of several GPUs, which become single processors");
  note(swf.notes, typed, "job asks", "jobs ask", "for a GPU type, which SWF cannot express");
  note(swf.notes, waits_less, "job waits", "jobs wait", "for the end of several others, of which SWF names one");
  note(swf.notes, waits_not, "job waits", "jobs wait",
       "for the end of others that SWF cannot name; no wait is written");
  note(swf.notes, attempts, "job has", "jobs have", "several attempts, which become one");
  note_without_field(swf.notes, jobs);
  return swf;
}

std::vector<std::string> writable_trace_formats() { return {"native", "swf"}; }

Result<TraceText> convert_trace(const JobTable& jobs, const std::string& format, const std::string& path,
                                std::int64_t machine_gpus) {
  if (format != "native" && format != "swf") {
    return unexpected("cannot write format '" + format + "'" + suggest_nearest(format, writable_trace_formats()) +
                      "; expected native or swf");
  }
  TraceText trace = format == "swf" ? write_swf(jobs, machine_gpus) : write_native(jobs);
  if (auto written = write_output(path, trace.text); !written) return Unexpected{written.error()};
  return trace;
}

}  // namespace gpusched
