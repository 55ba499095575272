// SPDX-License-Identifier: Apache-2.0
// pai: the tables of Alibaba's PAI cluster, July and August 2020 (cluster-trace-gpu-v2020, NSDI'22), in a folder (each
// as NAME.csv, NAME.csv.gz or NAME.tar.gz) or together in one tar archive. The csv files have no header line;
// NAME.header beside them names the columns, else those published are taken. pai_job_table and pai_task_table are
// needed; pai_instance_table gives sharper run times, and pai_group_tag_table groups, wanted GPU types and workloads.
//
// A job is submitted at its start_time in the job table. It runs from the first start to the last end of its instances,
// or of its tasks where the instances are not known. Its tasks (roles) may differ; this simulator's gangs are of equal
// tasks, so the role with the most GPUs stands for the job: its plan per instance, and as many instances as hold the
// GPUs of all roles. Jobs without a GPU are represented by the role with the most cores. plan_gpu and plan_cpu are
// percent of one; a plan above one GPU is rounded up to whole GPUs.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "src/base/number_text.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

struct TableInfo {
  const char* name;
  std::vector<std::string> columns;  // as published
};

const TableInfo& job_table_info() {
  static const TableInfo info{"pai_job_table", {"job_name", "inst_id", "user", "status", "start_time", "end_time"}};
  return info;
}
const TableInfo& task_table_info() {
  static const TableInfo info{"pai_task_table",
                              {"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
                               "plan_mem", "plan_gpu", "gpu_type"}};
  return info;
}
const TableInfo& instance_table_info() {
  static const TableInfo info{
      "pai_instance_table",
      {"job_name", "task_name", "inst_name", "worker_name", "inst_id", "status", "start_time", "end_time", "machine"}};
  return info;
}
const TableInfo& tag_table_info() {
  static const TableInfo info{"pai_group_tag_table", {"inst_id", "user", "gpu_type_spec", "group", "workload"}};
  return info;
}

// A span that grows to cover instants.
struct CoveredTime {
  Time first = Time::max();
  Time last{};
  [[nodiscard]] bool known() const { return first != Time::max(); }
  void cover(Time start, Time end) {
    first = std::min(first, start);
    last = std::max(last, end);
  }
};

struct PaiJob {
  std::string name, inst_id, user, status, gpu_type;
  Time submit{};
  CoveredTime tasks, instances;
  double gpu_percent = 0;          // of all roles together
  double instances_of_main = 0;    // the role that stands for the job
  double gpu_percent_of_main = 0;  // an instance
  double cpu_percent_of_main = 0;  // an instance
  double memory_gib_of_main = 0;   // an instance
  std::uint32_t roles_with_gpus = 0;
  std::uint64_t line = 0;  // in the job table
};

// Where the tables are, and how to open one.
class PaiTables {
 public:
  explicit PaiTables(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    is_folder_ = std::filesystem::is_directory(path_, ignored);
  }

  [[nodiscard]] bool has(const TableInfo& table) const {
    return is_folder_ ? !file_of(table).empty() : InputFile::has_entry(path_, std::string(table.name) + ".csv");
  }
  [[nodiscard]] Result<InputFile> open(const TableInfo& table) const {
    if (!is_folder_) return InputFile::open(path_, std::string(table.name) + ".csv");
    const std::string file = file_of(table);
    if (!file.empty()) return InputFile::open(file);
    return Unexpected{
        Error{.message = "has no " + std::string(table.name) + ".csv (or .csv.gz, .tar.gz)", .file = path_}};
  }
  // Column names from NAME.header, else as published.
  [[nodiscard]] std::vector<std::string> columns(const TableInfo& table) const {
    const std::string entry = std::string(table.name) + ".header";
    std::error_code ignored;
    const std::string beside = (std::filesystem::path(path_) / entry).string();
    const bool is_there = is_folder_ ? std::filesystem::exists(beside, ignored) : InputFile::has_entry(path_, entry);
    if (!is_there) return table.columns;
    auto file = is_folder_ ? InputFile::open(beside) : InputFile::open(path_, entry);
    std::string_view line;
    CsvSplitter splitter;
    if (!file || !file->next_line(line) || !splitter.split(line)) return table.columns;
    std::vector<std::string> names;
    for (const std::string_view name : splitter.fields()) names.emplace_back(trim(name));
    return names;
  }

 private:
  [[nodiscard]] std::string file_of(const TableInfo& table) const {
    std::error_code ignored;
    for (const char* ending : {".csv", ".csv.gz", ".csv.zst", ".csv.xz", ".tar.gz"}) {
      std::string file = (std::filesystem::path(path_) / (table.name + std::string(ending))).string();
      if (std::filesystem::exists(file, ignored)) return file;
    }
    return {};
  }

  std::string path_;
  bool is_folder_ = false;
};

// The jobs while the tables are read and joined by job_name.
class PaiJoin {
 public:
  PaiJoin(const PaiTables& tables, JobSink& sink) : tables_(tables), sink_(sink), report_(sink.report) {}

  Result<void> read() {
    if (auto outcome = read_job_table(); !outcome) return outcome;
    report_.rows = jobs_.size() + report_.rows;
    if (auto outcome = read_task_table(); !outcome) return outcome;
    if (tables_.has(instance_table_info())) {
      if (auto outcome = read_instance_table(); !outcome) return outcome;
    }
    if (tables_.has(tag_table_info())) {
      if (auto outcome = read_tag_table(); !outcome) return outcome;
    }
    add_jobs();
    if (orphans_ > 0)
      report_.notes.push_back(counted(orphans_, "row of other tables belongs", "rows of other tables belong") +
                              " to no job that is kept");
    if (mixed_ > 0) {
      report_.notes.push_back(counted(mixed_, "job has", "jobs have") +
                              " GPU roles of several sizes; the largest size is used for all");
    }
    return {};
  }

 private:
  // Opens a table and calls `use(rows, columns...)` for each row; rows left out count in the report.
  template <class Prepare>
  Result<void> each_row(const TableInfo& table, Prepare prepare) {
    auto file = tables_.open(table);
    if (!file) return Unexpected{file.error()};
    JobTableBuilder no_jobs;
    TraceReport table_report;
    ReadContext context(*file, sink_.options, no_jobs, table_report, sink_.log);
    RowReader rows(context);
    rows.set_header(tables_.columns(table));
    auto outcome = prepare(rows, context);
    sink_.take_bad_rows(context);
    for (const DroppedRows& dropped : table_report.dropped) {
      report_.drop(std::string(table.name) + ": " + dropped.reason, dropped.first_line, dropped.rows);
      if (table.name == job_table_info().name) report_.rows += dropped.rows;
    }
    if (!outcome) {
      Error error = outcome.error();
      if (error.file.empty()) error.file = file->path();
      return Unexpected{std::move(error)};
    }
    return {};
  }

  Result<void> read_job_table() {
    return each_row(job_table_info(), [&](RowReader& rows, ReadContext& context) -> Result<void> {
      job_table_file_ = context.file.path();
      const Column name = rows.require({"job_name"});
      const Column start = rows.require({"start_time"});
      const Column status = rows.require({"status"});
      const Column inst_id = rows.find({"inst_id"});
      const Column user = rows.find({"user"});
      return for_each_row(rows, context, [&](RowReader& row) {
        PaiJob job{.name = std::string(row.text(name)),
                   .inst_id = std::string(row.text(inst_id)),
                   .user = std::string(row.text(user)),
                   .status = std::string(row.text(status)),
                   .gpu_type = {},
                   .tasks = {},
                   .instances = {},
                   .line = row.line()};
        if (job.status == "Waiting" || row.is_blank(start)) return row.drop(never_started);
        if (job.status == "Running") return row.drop(still_running);
        job.submit = row.seconds(start);
        if (by_name_.contains(job.name)) row.expect(name, "a name not given above");
        if (row.bad()) return;
        by_name_.emplace(job.name, static_cast<std::uint32_t>(jobs_.size()));
        jobs_.push_back(std::move(job));
      });
    });
  }

  PaiJob* find(std::string_view name) {
    key_.assign(name);
    const auto place = by_name_.find(key_);
    return place == by_name_.end() ? nullptr : &jobs_[place->second];
  }

  // start_time and end_time of a row, where both are known.
  static void cover(RowReader& row, Column start, Column end, CoveredTime& span) {
    if (row.is_blank(start) || row.is_blank(end)) return;
    const Time from = row.seconds(start);
    const Time until = row.seconds(end);
    if (judge_times({.submit = from, .start = from, .end = until}).fate == JobFate::bad) {
      row.expect(end, "an end not before start_time");
    }
    if (!row.bad()) span.cover(from, until);
  }

  Result<void> read_task_table() {
    return each_row(task_table_info(), [&](RowReader& rows, ReadContext& context) -> Result<void> {
      const Column name = rows.require({"job_name"});
      const Column count = rows.require({"inst_num"});
      const Column gpu = rows.require({"plan_gpu"});
      const Column start = rows.require({"start_time"});
      const Column end = rows.require({"end_time"});
      const Column cpu = rows.find({"plan_cpu"});
      const Column memory = rows.find({"plan_mem"});
      const Column type = rows.find({"gpu_type"});
      const auto number_or_0 = [](RowReader& row, Column column, double most) {
        return !column || row.is_blank(column) ? 0.0 : row.number(column, most);
      };
      return for_each_row(rows, context, [&](RowReader& row) {
        PaiJob* const job = find(row.text(name));
        if (job == nullptr) {
          ++orphans_;
          return;
        }
        const double instances = row.is_blank(count) ? 1 : row.number(count);
        const double gpu_percent = number_or_0(row, gpu, 1e6);
        const double cpu_percent = number_or_0(row, cpu, most_cores * 100);
        const double memory_gib = number_or_0(row, memory, most_memory_mib / 1024);
        if (instances < 1 || instances > 1e6) row.expect(count, "1 to 1000000 instances");
        cover(row, start, end, job->tasks);
        if (row.bad()) return;
        add_role(*job, instances, gpu_percent, cpu_percent, memory_gib, row.text(type));
      });
    });
  }

  static void add_role(PaiJob& job, double instances, double gpu_percent, double cpu_percent, double memory_gib,
                       std::string_view type) {
    job.gpu_percent += instances * gpu_percent;
    if (gpu_percent > 0) ++job.roles_with_gpus;
    const double gpus_of_main = job.instances_of_main * job.gpu_percent_of_main;
    const double cpus_of_main = job.instances_of_main * job.cpu_percent_of_main;
    const bool more_gpus = instances * gpu_percent > gpus_of_main;
    const bool more_cpus = gpus_of_main == 0 && instances * cpu_percent > cpus_of_main;
    if (job.instances_of_main > 0 && !more_gpus && !more_cpus) return;
    job.instances_of_main = instances;
    job.gpu_percent_of_main = gpu_percent;
    job.cpu_percent_of_main = cpu_percent;
    job.memory_gib_of_main = memory_gib;
    job.gpu_type = type;
  }

  Result<void> read_instance_table() {
    return each_row(instance_table_info(), [&](RowReader& rows, ReadContext& context) -> Result<void> {
      const Column name = rows.require({"job_name"});
      const Column start = rows.require({"start_time"});
      const Column end = rows.require({"end_time"});
      return for_each_row(rows, context, [&](RowReader& row) {
        if (PaiJob* const job = find(row.text(name))) {
          cover(row, start, end, job->instances);
        } else {
          ++orphans_;
        }
      });
    });
  }

  struct Tag {
    std::string gpu_type, group, workload;
  };

  Result<void> read_tag_table() {
    return each_row(tag_table_info(), [&](RowReader& rows, ReadContext& context) -> Result<void> {
      const Column inst_id = rows.require({"inst_id"});
      const Column type = rows.find({"gpu_type_spec"});
      const Column group = rows.find({"group"});
      const Column workload = rows.find({"workload"});
      return for_each_row(rows, context, [&](RowReader& row) {
        tags_.try_emplace(std::string(row.text(inst_id)), Tag{std::string(row.text(type)), std::string(row.text(group)),
                                                              std::string(row.text(workload))});
      });
    });
  }

  // The gang that stands for the job; nothing when it has more tasks than are counted.
  static std::optional<Shape> shape_of(const PaiJob& job) {
    constexpr double milli_per_percent = 10, most_instances = 1e9;
    Shape shape;
    auto milli = static_cast<MilliGpu>(std::llround(job.gpu_percent_of_main * milli_per_percent));
    if (job.gpu_percent_of_main > 0) milli = std::max<MilliGpu>(milli, 1);
    if (milli > whole_gpu) milli = (milli + whole_gpu - 1) / whole_gpu * whole_gpu;
    shape.gpu_milli_per_task = milli;
    const double instances =
        milli == 0 ? job.instances_of_main : job.gpu_percent * milli_per_percent / static_cast<double>(milli);
    if (instances > most_instances) return std::nullopt;
    constexpr double rounding = 1e-9;  // 3 x 33.3 is no more than 99.9
    shape.tasks = static_cast<std::uint32_t>(std::max(1.0, std::ceil(instances - rounding)));
    shape.cpu_milli_per_task = std::llround(job.cpu_percent_of_main * milli_per_percent);
    shape.memory_mib_per_task = std::llround(std::ceil(job.memory_gib_of_main * 1024 - rounding));
    return shape;
  }

  void add_jobs() {
    for (const PaiJob& job : jobs_) {
      const CoveredTime& span = job.instances.known() ? job.instances : job.tasks;
      if (job.instances_of_main == 0) {
        sink_.drop("no row in pai_task_table", job.line);
        continue;
      }
      if (!span.known()) {
        sink_.drop("no task with start and end", job.line);
        continue;
      }
      const auto shape = shape_of(job);
      if (!shape) {
        sink_.drop("more than 1,000,000,000 instances", job.line);
        continue;
      }
      const auto tag = tags_.find(job.inst_id);
      JobRecord record{.id = job.name, .submit = job.submit, .shape = *shape};
      record.user = job.user;
      record.status = status_from_word(job.status);
      if (tag != tags_.end()) {
        record.group = tag->second.group;
        record.family = tag->second.workload;
        record.gpu_spec = tag->second.gpu_type;
      } else if (tags_.empty() && job.gpu_type != "CPU") {
        record.gpu_spec = job.gpu_type;
      }
      if (record.gpu_spec == "MISC" || record.shape.gpu_milli_per_task == 0) record.gpu_spec = {};  // MISC: older GPUs
      if (job.roles_with_gpus > 1 && job.gpu_percent > job.instances_of_main * job.gpu_percent_of_main) ++mixed_;
      const LoggedTimes times{.submit = job.submit, .start = span.first, .end = span.last};
      if (sink_.take_times(record, times, place_of(job))) sink_.add(record, job.line);
    }
  }

  [[nodiscard]] RecordPlace place_of(const PaiJob& job) const {
    return {.file = job_table_file_,
            .line = job.line,
            .submit = "start_time of the job",
            .start = "start_time of the tasks",
            .end = "end_time of the tasks"};
  }

  const PaiTables& tables_;
  JobSink& sink_;
  TraceReport& report_;
  std::string job_table_file_;
  std::vector<PaiJob> jobs_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::unordered_map<std::string, Tag> tags_;  // by inst_id
  std::string key_;
  std::uint64_t orphans_ = 0;
  std::uint64_t mixed_ = 0;
};

}  // namespace

bool has_pai_tables(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return PaiTables(path).has(job_table_info());
  const std::string name = std::filesystem::path(path).filename().string();
  const bool is_tar = name.find(".tar") != std::string::npos || name.ends_with(".tgz");
  return is_tar && PaiTables(path).has(job_table_info());
}

Result<void> read_pai_tables(const std::string& path, JobSink& sink) {
  const PaiTables tables(path);
  return PaiJoin(tables, sink).read();
}

}  // namespace gpusched
