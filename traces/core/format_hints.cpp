// SPDX-License-Identifier: Apache-2.0
#include "traces/core/format_hints.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/csv_splitter.hpp"
#include "traces/core/kubernetes_json.hpp"
#include "traces/core/row_reader.hpp"

namespace gpusched {
namespace {

constexpr const char* by_columns =
    "; name it with --format, or say which column is which with --columns submit=NAME,gpus=NAME,duration=NAME";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view first_word(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  return start == std::string_view::npos ? std::string_view() : first_line(head.substr(start));
}

// ---- known things that are not read ----

std::optional<std::string> advice_for_json(std::string_view head) {
  if (is_kubernetes(head, "Node")) return ": lists the nodes of a Kubernetes cluster; give it to --cluster";
  if (has(head, "\"apiVersion\"")) {
    return ": objects of Kubernetes other than pods; export these: kubectl get pods -A -o json > pods.json";
  }
  if (has(head, "\"job_state\"")) {
    return ": squeue --json tells of the present alone; export what ended: sacct -a -D -S START -E END --json > "
           "log.json";
  }
  if (has(head, "\"nb_res\"") && has(head, "\"profiles\"")) {
    return ": a workload of Batsim, whose run times are in its profiles; write a csv and name its columns with "
           "--columns";
  }
  if (has(head, "\"application_model\"")) {
    return ": a workload of ElastiSim, whose run times its models give; write a csv and name its columns with "
           "--columns";
  }
  return std::nullopt;
}

// "31|COMPLETED|2025-03-03T08:00:00|...": sacct without its header.
bool is_headerless_sacct(std::string_view line) {
  for (const char separator : {'|', ';', ','}) {
    CsvSplitter splitter(separator);
    if (!splitter.split(line) || splitter.fields().size() < 4) continue;
    const std::string_view id = splitter.fields().front();
    const bool is_id = !id.empty() && id.front() >= '0' && id.front() <= '9';
    constexpr std::string_view states[] = {"COMPLETED", "FAILED",    "CANCELLED", "TIMEOUT",  "RUNNING",
                                           "PENDING",   "NODE_FAIL", "OUT_OF_ME", "PREEMPTED"};
    const bool has_state = std::any_of(splitter.fields().begin(), splitter.fields().end(), [&](std::string_view field) {
      return std::any_of(std::begin(states), std::end(states),
                         [&](std::string_view s) { return field.starts_with(s); });
    });
    if (is_id && has_state) return true;
  }
  return false;
}

std::optional<std::string> advice_for_lines(std::string_view head) {
  const std::string_view line = first_word(head);
  if (is_headerless_sacct(line)) {
    return ": looks like sacct without its header line; export without -n, or name its columns in order: --format "
           "sacct "
           "--columns JobID,State,Submit,...";
  }
  if (line.starts_with("apiVersion:") || line.starts_with("---")) {
    return ": YAML; export as JSON: kubectl get pods -A -o json > pods.json";
  }
  if (line.starts_with("*** Offset") || has(line, "ClusterId = ") || has(line, "MyType = \"Job\"")) {
    return ": looks like HTCondor's history; export columns: condor_history -af:h, ClusterId Owner QDate JobStartDate "
           "CompletionDate RequestGPUs > log.csv, and name them with --columns";
  }
  CsvSplitter colons(':', false);
  if (colons.split(line) && colons.fields().size() >= 43 && parse_integer(colons.fields()[8])) {
    return ": looks like Grid Engine's accounting; name its columns by position: --columns delimiter=:,header=no,id=6,"
           "user=4,submit=9,start=10,end=11,gpus=...";
  }
  if (line.starts_with("NodeName=") || line.starts_with("NODELIST")) {
    return ": lists the nodes of a Slurm cluster; give it to --cluster";
  }
  if (line.starts_with("JobId=")) {
    return ": scontrol show jobs tells of the present alone; export what ended: sacct -a -X -D -P -S START -E END -o "
           "JobID,User,Partition,State,Submit,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES,NNodes,JobName";
  }
  if (header_has(head, {"collection_id", "time", "type"})) {
    return ": events of Google's cluster trace; a row a job is needed, which a query over its events gives";
  }
  return std::nullopt;
}

// ---- columns ----

struct KnownColumns {
  const char* format;
  std::array<const char*, 6> names;  // null: no more
};
constexpr KnownColumns known_columns[] = {
    {"native", {"job_id", "submit_s", "work_s", "tasks", "gpu_milli_per_task"}},
    {"philly-csv", {"job_id", "submit_s", "num_gpus", "duration_s"}},
    {"pai-sim", {"job_id", "submit_time", "num_gpu", "num_inst", "duration"}},
    {"openb", {"cpu_milli", "gpu_milli", "num_gpu", "creation_time", "deletion_time", "scheduled_time"}},
    {"openb-pods", {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}},
    {"tiresias", {"num_gpu", "submit_time", "iterations", "model_name", "duration"}},
    {"acme", {"gpu_num", "node_num", "type", "submit_time", "duration"}},
    {"helios", {"gpu_num", "submit_time", "duration", "state"}},
};

// The formats with most of these columns, and what they lack.
std::string nearest_by_columns(const std::vector<std::string>& names) {
  std::string text;
  for (const KnownColumns& known : known_columns) {
    std::vector<std::string> lacking;
    std::size_t all = 0;
    for (const char* name : known.names) {
      if (name == nullptr) break;
      ++all;
      if (std::find(names.begin(), names.end(), name) == names.end()) lacking.emplace_back(name);
    }
    if (lacking.size() * 2 > all) continue;
    const std::string how =
        lacking.empty() ? "has its columns: --format " + std::string(known.format) : "lacks " + joined(lacking, ", ");
    text += (text.empty() ? "; nearest: " : ", ") + std::string(known.format) + " (" + how + ")";
  }
  return text;
}

// "time_end", "EndTime" and "job.end" have the word "end", "pending" has not; "ngpus" has the word "gpu".
bool has_word(const std::string& name, std::string_view word) {
  const std::string lower = lower_case(name);
  const auto is_letter = [&](std::size_t at) { return lower[at] >= 'a' && lower[at] <= 'z'; };
  for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
    if (at == 0 || !is_letter(at - 1) || name[at] != lower[at] || word == "gpu") return true;
  }
  return false;
}

// A column in whose name one of these words stands. A limit tells how long a job may run, not how long it did.
std::string guess(const std::vector<std::string>& names, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    for (const std::string& name : names) {
      if (has_word(name, word) && !has(lower_case(name), "limit")) return name;
    }
  }
  return {};
}

// "--columns submit=arrival_time,gpus=n,duration=length", where the names tell.
std::string guessed_mapping(const std::vector<std::string>& names) {
  const std::string submit = guess(names, {"submi", "arriv", "creat", "queued"}), gpus = guess(names, {"gpu", "gres"}),
                    duration = guess(names, {"durat", "elapsed", "runtime", "run_time", "length", "wall"}),
                    end = guess(names, {"end", "finish", "complet"}), start = guess(names, {"start", "sched"});
  if (submit.empty() || (duration.empty() && end.empty())) return {};
  std::string text = "submit=" + submit + ",gpus=" + (gpus.empty() ? "NAME" : gpus);
  text += duration.empty() ? ",end=" + end : ",duration=" + duration;
  if (!start.empty()) text += ",start=" + start;
  return text;
}

std::string advice_for_table(std::string_view head) {
  std::vector<std::string> names;
  for (const char separator : {',', ';', '\t', '|'}) {
    CsvSplitter splitter(separator);
    if (!splitter.split(first_line(head)) || splitter.fields().size() <= names.size()) continue;
    names.clear();
    for (const std::string_view name : splitter.fields()) names.emplace_back(trim(name));
  }
  if (names.size() < 2) return by_columns;
  const std::string mapping = guessed_mapping(names);
  if (mapping.empty()) return nearest_by_columns(names) + by_columns;
  return nearest_by_columns(names) + "; name it with --format, or say which column is which, perhaps --columns " +
         excerpt(mapping, 200);
}

}  // namespace

std::string advice_for_unrecognised(std::string_view head) {
  const std::string_view line = first_word(head);
  if (line.starts_with('{') || line.starts_with('[')) {
    return advice_for_json(head).value_or(std::string(": JSON of a kind that no reader knows") + by_columns);
  }
  if (const auto advice = advice_for_lines(head)) return *advice;
  return advice_for_table(head);
}

}  // namespace gpusched
