// SPDX-License-Identifier: Apache-2.0
// The JSON form of SyntheticModel, its rules, and the models compiled in.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/base/json_fields.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "traces/synthetic/builtin_models.hpp"
#include "traces/synthetic/quantile_table.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {
namespace {

Unexpected wrong(std::string path, std::string message) {
  return {Error{.message = std::move(message), .field = std::move(path)}};
}

std::string index_path(const std::string& path, std::size_t i) { return path + "/" + std::to_string(i); }

// Every key of a model must be there but those that are called optional.
template <class T>
void read_needed(JsonFields& fields, const std::string& key, T& value) {
  fields.require(key);
  fields.read(key, value);
}

void read_needed(JsonFields& fields, const std::string& key, std::vector<double>& values) {
  fields.require(key);
  fields.read(key, values, 0);
}

void read_needed(JsonFields& fields, const std::string& key, double& value) {
  fields.require(key);
  fields.read(key, value, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max());
}

template <std::size_t n>
void read_needed(JsonFields& fields, const std::string& key, std::array<double, n>& values) {
  std::vector<double> list;
  fields.require(key);
  fields.read(key, list, n);
  if (list.size() == n) std::copy(list.begin(), list.end(), values.begin());
}

// A table is a list of [probability, value] pairs.
void read_needed(JsonFields& fields, const std::string& key, QuantileTable& table) {
  fields.require(key);
  const Json* list = fields.read_array(key);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& pair = (*list)[i];
    const bool good = pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
    if (!good) return fields.refuse(index_path(key, i), "a [probability, value] pair of numbers");
    table.probability.push_back(pair[0].get<double>());
    table.value.push_back(pair[1].get<double>());
  }
}

constexpr std::array<JobStatus, 4> statuses{JobStatus::unknown, JobStatus::passed, JobStatus::failed,
                                            JobStatus::killed};

void read_class(JsonFields& fields, JobClass& job_class) {
  read_needed(fields, "max_gpus", job_class.max_gpus);
  read_needed(fields, "run_s", job_class.run_s);
  read_needed(fields, "session_jobs", job_class.session_jobs);
  read_needed(fields, "attempt_weights", job_class.attempt_weights);
  fields.require("status_weights");
  fields.read_object("status_weights", [&](JsonFields& weights) {
    job_class.status_weights = {};
    for (const JobStatus status : statuses) {
      double& weight = job_class.status_weights[static_cast<std::size_t>(status)];
      weights.read(to_string(status), weight, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max());
    }
  });
}

void read_calendar(JsonFields& fields, Calendar& calendar) {
  read_needed(fields, "period_s", calendar.period_s);
  read_needed(fields, "span_s", calendar.span_s);
  fields.require("entries");
  fields.read_objects("entries", [&](JsonFields& own, std::size_t) {
    CalendarEntry& entry = calendar.entries.emplace_back();
    read_needed(own, "period", entry.period);
    read_needed(own, "gpus", entry.gpus);
    read_needed(own, "jobs", entry.jobs);
    read_needed(own, "work_s", entry.work_s);
    read_needed(own, "run_s", entry.run_s);
  });
}

void read_sources(JsonFields& fields, SyntheticModel& model) {
  fields.require("sources");
  fields.read_members("sources", [&](JsonFields& sources, const std::string& name, const Json& text) {
    if (!text.is_string()) return sources.refuse(name, "a text");
    model.sources[name] = text.get<std::string>();
  });
}

void read_all(JsonFields& fields, SyntheticModel& model) {
  read_needed(fields, "name", model.name);
  read_needed(fields, "about", model.about);
  read_sources(fields, model);
  read_needed(fields, "default_cluster", model.default_cluster);
  read_needed(fields, "default_jobs", model.default_jobs);
  if (fields.find("default_load") != nullptr) read_needed(fields, "default_load", model.default_load.emplace());
  read_needed(fields, "jobs_per_hour", model.jobs_per_hour);
  read_needed(fields, "hour_weights", model.hour_weights);
  read_needed(fields, "day_weights", model.day_weights);
  read_needed(fields, "session_gap_s", model.session_gap_s);
  read_needed(fields, "gap_correlation", model.gap_correlation);
  read_needed(fields, "run_correlation", model.run_correlation);
  fields.require("users");
  fields.read_object("users", [&](JsonFields& users) {
    read_needed(users, "count", model.users.count);
    read_needed(users, "zipf_exponent", model.users.zipf_exponent);
  });
  read_needed(fields, "gpu_counts", model.gpu_counts);
  if (fields.find("task_splits") != nullptr) {
    fields.read_objects("task_splits", [&](JsonFields& own, std::size_t) {
      TaskSplit& split = model.task_splits.emplace_back();
      read_needed(own, "gpus", split.gpus);
      read_needed(own, "tasks", split.tasks);
      read_needed(own, "weight", split.weight);
    });
  }
  if (fields.find("requests") != nullptr) {
    fields.read_objects("requests", [&](JsonFields& own, std::size_t) {
      RequestMix& request = model.requests.emplace_back();
      read_needed(own, "gpus", request.gpus);
      read_needed(own, "share", request.share);
      read_needed(own, "ratio", request.ratio);
      read_needed(own, "longest_s", request.longest_s);
    });
  }
  fields.require("vcs");
  fields.read_objects("vcs", [&](JsonFields& vc, std::size_t) {
    VcMix& mix = model.vcs.emplace_back();
    read_needed(vc, "name", mix.name);
    mix.name = name_text(mix.name);
    read_needed(vc, "weight", mix.weight);
    read_needed(vc, "gpu_weights", mix.gpu_weights);
  });
  fields.require("classes");
  fields.read_objects("classes", [&](JsonFields& own, std::size_t) { read_class(own, model.classes.emplace_back()); });
  if (const Json* calendar = fields.find("calendar")) {
    fields.read_nested("calendar", *calendar, [&](JsonFields& own) { read_calendar(own, model.calendar); });
  }
}

template <class Weights>
Result<void> check_weights(const std::string& path, const Weights& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i])) return wrong(index_path(path, i), "expected a number >= 0");
    sum += weights[i];
  }
  if (!(sum > 0)) return wrong(path, "expected at least one weight above 0");
  return {};
}

Result<void> check_table(const std::string& path, const QuantileTable& table, double most) {
  const std::size_t n = table.probability.size();
  if (n < 2 || table.value.size() != n) return wrong(path, "expected at least two [probability, value] pairs");
  if (table.probability.front() != 0 || table.probability.back() != 1) {
    return wrong(path, "expected probabilities from 0 to 1");
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!(table.value[i] >= 0) || !(table.value[i] <= most)) {
      return wrong(index_path(path, i),
                   "expected a value from 0 to " + std::to_string(static_cast<std::int64_t>(most)));
    }
    if (i == 0) continue;
    if (!(table.probability[i] > table.probability[i - 1]))
      return wrong(index_path(path, i), "expected ascending probabilities");
    if (table.value[i] < table.value[i - 1]) return wrong(index_path(path, i), "expected values that do not fall");
  }
  return {};
}

Result<void> check_correlation(const std::string& path, double value) {
  if (!(value >= 0 && value <= 1)) return wrong(path, "expected a number from 0 to 1");
  return {};
}

Result<void> check_gpu_counts(const std::vector<double>& counts) {
  if (counts.empty()) return wrong("/gpu_counts", "expected at least one GPU count");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool share = counts[i] >= 0.001 && counts[i] < 1;
    const bool whole = counts[i] >= 1 && counts[i] <= 1e6 && counts[i] == std::floor(counts[i]);
    if (!share && !whole) {
      return wrong(index_path("/gpu_counts", i),
                   "expected a whole number from 1 to 1000000, or a share from 0.001 to 1");
    }
    if (i > 0 && counts[i] <= counts[i - 1])
      return wrong(index_path("/gpu_counts", i), "expected ascending GPU counts");
  }
  return {};
}

constexpr double most_seconds = 3.2e9;  // a century: far above any job, far below what Time holds
constexpr double most_session_jobs = 1e5;
constexpr double most_gap_seconds = 1e6;  // 12 days

Result<void> check_class(const std::string& path, const JobClass& job_class) {
  if (auto good = check_table(path + "/run_s", job_class.run_s, most_seconds); !good) return good;
  if (!(job_class.run_s.value.back() > 0)) return wrong(path + "/run_s", "expected a run time above 0");
  if (auto good = check_table(path + "/session_jobs", job_class.session_jobs, most_session_jobs); !good) return good;
  if (auto good = check_weights(path + "/attempt_weights", job_class.attempt_weights); !good) return good;
  return check_weights(path + "/status_weights", job_class.status_weights);
}

Result<void> check_mix(const SyntheticModel& model) {
  if (auto good = check_gpu_counts(model.gpu_counts); !good) return good;
  if (model.vcs.empty()) return wrong("/vcs", "expected at least one virtual cluster (its name may be empty)");
  std::vector<double> weights;
  for (std::size_t i = 0; i < model.vcs.size(); ++i) {
    const std::string path = index_path("/vcs", i) + "/gpu_weights";
    if (model.vcs[i].gpu_weights.size() != model.gpu_counts.size()) {
      return wrong(path,
                   "expected " + std::to_string(model.gpu_counts.size()) + " numbers, one for each of gpu_counts");
    }
    if (auto good = check_weights(path, model.vcs[i].gpu_weights); !good) return good;
    weights.push_back(model.vcs[i].weight);
  }
  if (auto good = check_weights("/vcs (weight)", weights); !good) return good;
  if (model.classes.empty()) return wrong("/classes", "expected at least one class");
  for (std::size_t i = 0; i < model.classes.size(); ++i) {
    if (i > 0 && !(model.classes[i].max_gpus > model.classes[i - 1].max_gpus)) {
      return wrong(index_path("/classes", i) + "/max_gpus", "expected ascending max_gpus");
    }
    if (auto good = check_class(index_path("/classes", i), model.classes[i]); !good) return good;
  }
  if (!(model.classes.back().max_gpus >= model.gpu_counts.back())) {
    return wrong("/classes", "expected the last max_gpus to cover the largest GPU count");
  }
  return {};
}

bool has_count(const SyntheticModel& model, double gpus) {
  return std::binary_search(model.gpu_counts.begin(), model.gpu_counts.end(), gpus);
}

Result<void> check_demands(const SyntheticModel& model) {
  for (std::size_t i = 0; i < model.task_splits.size(); ++i) {
    const TaskSplit& split = model.task_splits[i];
    const std::string path = index_path("/task_splits", i);
    if (!has_count(model, split.gpus)) return wrong(path + "/gpus", "expected one of gpu_counts");
    if (!gang_of_tasks(split.gpus, split.tasks)) {
      return wrong(path + "/tasks", "expected tasks that have as many whole GPUs each, or the same share of one");
    }
    if (!(split.weight > 0) || !std::isfinite(split.weight))
      return wrong(path + "/weight", "expected a number above 0");
    const auto key = [](const TaskSplit& one) { return std::pair(one.gpus, one.tasks); };
    if (i > 0 && !(key(model.task_splits[i - 1]) < key(split))) {
      return wrong(path, "expected task_splits by GPUs, then tasks, none twice");
    }
  }
  for (std::size_t i = 0; i < model.requests.size(); ++i) {
    const RequestMix& request = model.requests[i];
    const std::string path = index_path("/requests", i);
    if (!has_count(model, request.gpus)) return wrong(path + "/gpus", "expected one of gpu_counts");
    if (!(request.share >= 0 && request.share <= 1)) return wrong(path + "/share", "expected a number from 0 to 1");
    if (!(request.longest_s >= 0 && request.longest_s <= most_seconds)) {
      return wrong(path + "/longest_s", "expected a number from 0 to 3200000000");
    }
    if (auto good = check_table(path + "/ratio", request.ratio, most_seconds); !good) return good;
    if (i > 0 && !(model.requests[i - 1].gpus < request.gpus))
      return wrong(path, "expected requests by GPUs, none twice");
  }
  return {};
}

Result<void> check_calendar(const SyntheticModel& model) {
  const Calendar& calendar = model.calendar;
  if (calendar.entries.empty()) return {};
  if (!(calendar.period_s >= 60 && calendar.period_s <= most_seconds)) {
    return wrong("/calendar/period_s", "expected at least 60 seconds");
  }
  if (!(calendar.span_s > 0 && calendar.span_s <= most_seconds)) {
    return wrong("/calendar/span_s", "expected a number above 0");
  }
  const auto key = [](const CalendarEntry& entry) { return std::pair(entry.period, entry.gpus); };
  for (std::size_t i = 0; i < calendar.entries.size(); ++i) {
    const CalendarEntry& entry = calendar.entries[i];
    const std::string path = index_path("/calendar/entries", i);
    if (entry.period >= calendar.periods()) return wrong(path + "/period", "expected a period within span_s");
    if (i > 0 && !(key(calendar.entries[i - 1]) < key(entry))) {
      return wrong(path, "expected entries by period, then GPUs, none twice");
    }
    if (!has_count(model, entry.gpus)) return wrong(path + "/gpus", "expected one of gpu_counts");
    if (entry.jobs < 1 || entry.jobs > 10'000'000) return wrong(path + "/jobs", "expected 1 to 10000000");
    if (!(entry.work_s >= 0 && entry.work_s <= most_seconds * entry.jobs)) {
      return wrong(path + "/work_s", "expected a number >= 0");
    }
    if (auto good = check_table(path + "/run_s", entry.run_s, most_seconds); !good) return good;
  }
  return {};
}

Json table_json(const QuantileTable& table) {
  Json pairs = Json::array();
  for (std::size_t i = 0; i < table.value.size(); ++i) pairs.push_back({table.probability[i], table.value[i]});
  return pairs;
}

Json class_json(const JobClass& job_class) {
  Json status = Json::object();
  for (const JobStatus s : statuses) {
    const double weight = job_class.status_weights[static_cast<std::size_t>(s)];
    if (weight > 0) status[std::string(to_string(s))] = weight;
  }
  return {{"max_gpus", job_class.max_gpus},
          {"run_s", table_json(job_class.run_s)},
          {"session_jobs", table_json(job_class.session_jobs)},
          {"attempt_weights", job_class.attempt_weights},
          {"status_weights", std::move(status)}};
}

/// One key a line; objects of a list, and keys of an object in such a list, one a line as well; lists of numbers
/// inline.
void write_lines(const Json& value, const std::string& indent, std::string& text) {
  const bool object = value.is_object();
  const bool list_of_objects = value.is_array() && !value.empty() && value.front().is_object();
  if (!object && !list_of_objects) {
    text += value.dump();
    return;
  }
  text += object ? "{" : "[";
  const char* separator = "\n";
  for (const auto& [key, item] : value.items()) {
    text += separator + indent + "  ";
    if (object) text += Json(key).dump() + ": ";
    write_lines(item, indent + "  ", text);
    separator = ",\n";
  }
  text += "\n" + indent + (object ? "}" : "]");
}

}  // namespace

Result<void> check_model(const SyntheticModel& model) {
  if (!(model.jobs_per_hour > 0) || !(model.jobs_per_hour <= 1e9)) {
    return wrong("/jobs_per_hour", "expected a number above 0, at most 1e9");
  }
  if (model.default_jobs < 2) return wrong("/default_jobs", "expected at least 2");
  if (gpus_of_size(model.default_cluster) == 0) return wrong("/default_cluster", "expected NODESxGPUS, such as 40x8");
  if (model.default_load && (!(*model.default_load > 0) || *model.default_load > 1000)) {
    return wrong("/default_load", "expected a number in (0, 1000]");
  }
  if (auto good = check_weights("/hour_weights", model.hour_weights); !good) return good;
  if (auto good = check_weights("/day_weights", model.day_weights); !good) return good;
  if (auto good = check_table("/session_gap_s", model.session_gap_s, most_gap_seconds); !good) return good;
  if (auto good = check_correlation("/gap_correlation", model.gap_correlation); !good) return good;
  if (auto good = check_correlation("/run_correlation", model.run_correlation); !good) return good;
  if (model.users.count > 10'000'000) return wrong("/users/count", "expected at most 10000000");
  if (!(model.users.zipf_exponent >= 0 && model.users.zipf_exponent <= 10)) {
    return wrong("/users/zipf_exponent", "expected a number from 0 to 10");
  }
  if (auto good = check_mix(model); !good) return good;
  if (auto good = check_demands(model); !good) return good;
  return check_calendar(model);
}

Result<SyntheticModel> read_model(std::string_view json, const std::string& file) {
  const auto parsed = parse_json_strictly(json, file);
  if (!parsed) return Unexpected{parsed.error()};
  SyntheticModel model;
  JsonFields fields(*parsed, file);
  read_all(fields, model);
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (auto good = check_model(model); !good) {
    Error error = good.error();
    error.file = file;
    return Unexpected{std::move(error)};
  }
  return model;
}

std::string write_model(const SyntheticModel& model) {
  Json json{{"name", model.name},
            {"about", model.about},
            {"sources", model.sources},
            {"default_cluster", model.default_cluster},
            {"default_jobs", model.default_jobs}};
  if (model.default_load) json["default_load"] = *model.default_load;
  json["jobs_per_hour"] = model.jobs_per_hour;
  json["hour_weights"] = model.hour_weights;
  json["day_weights"] = model.day_weights;
  json["session_gap_s"] = table_json(model.session_gap_s);
  json["gap_correlation"] = model.gap_correlation;
  json["run_correlation"] = model.run_correlation;
  json["users"] = {{"count", model.users.count}, {"zipf_exponent", model.users.zipf_exponent}};
  json["gpu_counts"] = model.gpu_counts;
  for (const TaskSplit& split : model.task_splits) {
    json["task_splits"].push_back({{"gpus", split.gpus}, {"tasks", split.tasks}, {"weight", split.weight}});
  }
  for (const RequestMix& request : model.requests) {
    json["requests"].push_back({{"gpus", request.gpus},
                                {"share", request.share},
                                {"ratio", table_json(request.ratio)},
                                {"longest_s", request.longest_s}});
  }
  json["vcs"] = Json::array();
  for (const VcMix& vc : model.vcs) {
    json["vcs"].push_back({{"name", vc.name}, {"weight", vc.weight}, {"gpu_weights", vc.gpu_weights}});
  }
  json["classes"] = Json::array();
  for (const JobClass& job_class : model.classes) json["classes"].push_back(class_json(job_class));
  if (!model.calendar.entries.empty()) {
    Json entries = Json::array();
    for (const CalendarEntry& entry : model.calendar.entries) {
      entries.push_back({{"period", entry.period},
                         {"gpus", entry.gpus},
                         {"jobs", entry.jobs},
                         {"work_s", entry.work_s},
                         {"run_s", table_json(entry.run_s)}});
    }
    json["calendar"] = {{"period_s", model.calendar.period_s}, {"span_s", model.calendar.span_s}};
    json["calendar"]["entries"] = std::move(entries);
  }
  std::string text;
  write_lines(json, "", text);
  return text + "\n";
}

std::vector<std::string> builtin_model_names() {
  std::vector<std::string> names;
  names.reserve(builtin_models.size());
  for (const BuiltinModel& model : builtin_models) names.emplace_back(model.name);
  return names;
}

Result<SyntheticModel> builtin_model(std::string_view name) {
  for (const BuiltinModel& model : builtin_models) {
    if (model.name == name) return read_model(model.json, "traces/" + std::string(name) + ".json (built in)");
  }
  const std::vector<std::string> names = builtin_model_names();
  return unexpected("no synthetic model '" + std::string(name) + "'" + suggest_nearest(name, names) +
                    "; there are: " + joined(names, ", "));
}

}  // namespace gpusched
