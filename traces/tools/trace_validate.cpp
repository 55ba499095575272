// SPDX-License-Identifier: Apache-2.0
#include "traces/tools/trace_validate.hpp"

#include <algorithm>

#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/plausibility.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

std::vector<TraceOddity> twin_ids(std::vector<ReadLog::Job> jobs) {
  std::erase_if(jobs, [](const ReadLog::Job& job) { return job.id.empty(); });
  std::stable_sort(jobs.begin(), jobs.end(), [](const ReadLog::Job& a, const ReadLog::Job& b) { return a.id < b.id; });
  std::vector<TraceOddity> found;
  for (std::size_t i = 1, first = 0; i < jobs.size(); ++i) {
    if (jobs[i].id != jobs[first].id) {
      first = i;
      continue;
    }
    found.push_back(
        {"twin id", jobs[i].line,
         "job id '" + excerpt(jobs[i].id) + "' is already used at line " + std::to_string(jobs[first].line)});
  }
  return found;
}

void check_job(const ReadLog::Job& job, const ReadLog::Job* above, std::int64_t machine_gpus,
               std::vector<TraceOddity>& oddities) {
  const std::string who = "job '" + excerpt(job.id) + "' ";
  if (above != nullptr && job.submit < above->submit) {
    oddities.push_back({"out of order", job.line,
                        who + "is submitted " + human_duration(to_seconds(above->submit - job.submit)) +
                            " before the job of the line above"});
  }
  if (job.work == Time{}) oddities.push_back({"no work", job.line, who + "runs for 0 s"});
  if (job.longest > job.estimate) {
    oddities.push_back({"work above estimate", job.line,
                        who + "runs " + exact_seconds(job.longest) + " s, above its estimate of " +
                            exact_seconds(job.estimate) + " s"});
  }
  if (machine_gpus > 0 && job.gpu_milli > mul_div(machine_gpus, whole_gpu, 1)) {
    oddities.push_back({"larger than the machine", job.line,
                        who + "asks for " + std::to_string(job.gpu_milli / whole_gpu) + " of the machine's " +
                            std::to_string(machine_gpus)});
  }
}

constexpr const char* kinds[] = {"no job",           "bad value", "twin id",
                                 "wrong dependency", "left out",  "larger than the machine",
                                 "out of order",     "no work",   "work above estimate"};

// What makes a replay refuse the trace.
bool is_refusal(const TraceOddity& oddity) {
  constexpr std::string_view refused[] = {"no job", "bad value", "twin id", "wrong dependency"};
  return std::find(std::begin(refused), std::end(refused), oddity.kind) != std::end(refused);
}

}  // namespace

Result<TraceValidation> validate_trace(const std::string& path, const ReadOptions& options) {
  TraceValidation validation;
  ReadOptions tolerant = options;
  tolerant.drop_bad_rows = true;
  JobTableBuilder jobs;
  ReadLog log;
  if (auto outcome = read_jobs(path, tolerant, jobs, validation.report, &log); !outcome) {
    return Unexpected{outcome.error()};
  }
  validation.report.kept = jobs.size();
  validation.oddities = twin_ids(log.jobs);
  if (jobs.size() < validation.report.rows) jobs.ignore_missing_predecessors();
  if (const auto table = std::move(jobs).build(); table && table->size() > 0) {
    if (auto fits = check_times(*table, path); !fits) return Unexpected{fits.error()};
    for (std::string& note : plausibility_notes(*table)) validation.report.notes.push_back(std::move(note));
  } else if (table) {
    validation.oddities.push_back({"no job", 0, "holds no job"});
  } else if (table.error().field == "after") {
    validation.oddities.push_back(
        {"wrong dependency", line_of_wrong_after(log, table.error().message), table.error().message});
  } else if (validation.oddities.empty()) {  // the id of a job that names none, which has that of its row
    validation.oddities.push_back({"twin id", 0, table.error().message});
  }
  for (const ReadLog::Row& row : log.left_out) {
    validation.oddities.push_back({row.bad ? "bad value" : "left out", row.line, row.reason});
  }
  for (std::size_t i = 0; i < log.jobs.size(); ++i) {
    check_job(log.jobs[i], i == 0 ? nullptr : &log.jobs[i - 1], validation.report.machine_gpus, validation.oddities);
  }
  std::stable_sort(validation.oddities.begin(), validation.oddities.end(),
                   [](const TraceOddity& a, const TraceOddity& b) { return a.line < b.line; });
  validation.refusals =
      static_cast<std::uint64_t>(std::count_if(validation.oddities.begin(), validation.oddities.end(), is_refusal));
  return validation;
}

std::string validation_text(const TraceValidation& validation, std::size_t most) {
  const TraceReport& report = validation.report;
  std::string text = report.path + ": " + report.format + ", " + counted(report.rows, "row") + ", " +
                     counted(report.kept, "job") + "; ";
  text += validation.refusals == 0
              ? "it can be replayed\n"
              : counted(validation.refusals, "irregularity prevents", "irregularities prevent") + " a replay\n";
  if (validation.oddities.empty()) text += "nothing odd found\n";
  for (const char* kind : kinds) {
    std::size_t count = 0;
    std::string lines;
    for (const TraceOddity& oddity : validation.oddities) {
      if (oddity.kind != kind || ++count > most) continue;
      lines += oddity.line == 0 ? "  " : "  line " + std::to_string(oddity.line) + ": ";
      lines += oddity.message + "\n";
    }
    if (count == 0) continue;
    text += std::string(kind) + ": " + human_count(count) + "\n" + lines;
    if (count > most) text += "  and " + human_count(count - most) + " more\n";
  }
  for (const std::string& note : report.notes) text += "note: " + note + "\n";
  return text;
}

std::string validation_json(const TraceValidation& validation) {
  nlohmann::ordered_json json = {{"path", validation.report.path},  {"format", validation.report.format},
                                 {"rows", validation.report.rows},  {"kept", validation.report.kept},
                                 {"refusals", validation.refusals}, {"oddities", nlohmann::ordered_json::array()}};
  for (const TraceOddity& oddity : validation.oddities) {
    json["oddities"].push_back({{"kind", oddity.kind}, {"line", oddity.line}, {"message", oddity.message}});
  }
  // Text of the trace may be no valid UTF-8.
  return json_text(json);
}

}  // namespace gpusched
