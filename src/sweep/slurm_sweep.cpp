// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/slurm_sweep.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/base/strict_json.hpp"
#include "src/sweep/sweep_workers.hpp"

namespace gpusched {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view result_ending = ".json";

// A node's file may be seen that much later: NFS clients keep what they know of a folder for up to a minute
// (acdirmax, man 5 nfs).
constexpr std::chrono::seconds latest_file{65};

// Keys of the results that are there.
Result<std::vector<std::string>> results_in(const std::string& folder) {
  std::vector<std::string> keys;
  std::error_code why;
  for (fs::directory_iterator entry(folder, why), end; !why && entry != end; entry.increment(why)) {
    const std::string name = entry->path().filename().string();
    if (name.size() == 64 + result_ending.size() && name.ends_with(result_ending)) keys.push_back(name.substr(0, 64));
  }
  if (why && why != std::errc::no_such_file_or_directory) {
    return Unexpected{Error{.message = "cannot be read: " + why.message(), .file = folder}};
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// The last line of a task's log: gpusched and Slurm tell there what was wrong. Empty where there is none.
std::string last_line(const std::string& file) {
  const auto text = read_text_file(file);
  if (!text) return "";
  const std::size_t end = text->find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t before = text->find_last_of('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text->substr(begin, std::min<std::size_t>(end + 1 - begin, 500));
}

// Whether the runs of a task that Slurm ended are at fault, or the machine or a person.
bool blames_runs(const std::string& state) {
  return state == "FAILED" || state == "OUT_OF_MEMORY" || state == "TIMEOUT" || state == "COMPLETED" || state.empty();
}

std::string why_text(const SlurmArray& array, std::size_t task, const std::string& state) {
  std::string text = array.task_name(task);
  if (state == "TIMEOUT") return text + " reached Slurm's time limit";
  text += state.empty() ? " ended, and Slurm does not tell how" : " ended as " + state + " without a result";
  const std::string said = last_line(array.log_of(task));
  return said.empty() ? text : text + ": " + said;
}

}  // namespace

Result<SlurmSweep> SlurmSweep::open(const SweepPlan& plan) {
  auto arrays = read_slurm_arrays(plan.sweep.out);
  if (!arrays) return Unexpected{arrays.error()};
  SlurmSweep sweep(plan);
  for (std::uint64_t i = 0; i < plan.runs.size(); ++i) sweep.run_of_key_[plan.runs[i].key] = i;
  for (SlurmArray& array : *arrays) sweep.add(std::move(array));
  return sweep;
}

void SlurmSweep::add(SlurmArray array) {
  std::vector<Task> tasks(array.tasks.size());
  if (array.closed) {
    for (Task& task : tasks) task.settled = true;
  }
  arrays_.push_back({.array = std::move(array), .tasks = std::move(tasks), .taken = {}});
}

Result<void> SlurmSweep::ask() {
  for (Array& array : arrays_) {
    if (array.array.closed) continue;
    if (auto asked = ask(array); !asked) return asked;
  }
  return {};
}

Result<void> SlurmSweep::ask(Array& array) {
  const bool was_known = !array.array.job.empty();
  const auto states = slurm_queue(array.array);
  if (!states) return Unexpected{states.error()};
  if (!was_known && !array.array.job.empty()) {
    if (auto done = write_slurm_array(array.array); !done) return done;
  }
  const auto now = std::chrono::steady_clock::now();
  std::optional<std::map<std::size_t, SlurmTaskState>> accounting;
  for (std::size_t i = 0; i < array.tasks.size(); ++i) {
    Task& task = array.tasks[i];
    if (task.ended) continue;
    if (const auto found = states->find(i); found != states->end()) {
      task.state = found->second;
    } else {
      if (!accounting) accounting = slurm_accounting(array.array);
      task.state = (*accounting)[i];
    }
    if (task.state.has_ended()) task.ended = now;
  }
  return {};
}

Result<void> SlurmSweep::gather(SweepStore& store) {
  for (Array& array : arrays_) {
    if (auto taken = take_results(array, store); !taken) return taken;
    if (auto settled = settle(array, store); !settled) return settled;
  }
  const auto is_gone = [](const Array& array) {
    std::error_code ignored;
    return array.array.closed && !fs::exists(array.array.folder, ignored);
  };
  arrays_.erase(std::remove_if(arrays_.begin(), arrays_.end(), is_gone), arrays_.end());
  return {};
}

Result<void> SlurmSweep::take_results(Array& array, SweepStore& store) {
  const auto keys = results_in(array.array.results());
  if (!keys) return Unexpected{keys.error()};
  for (const std::string& key : *keys) {
    if (array.taken.count(key) > 0) continue;
    const std::string file = array.array.results() + "/" + key + std::string(result_ending);
    const auto text = read_text_file(file);
    if (!text) return Unexpected{text.error()};
    const auto result = read_result_text(*text, file);
    if (!result) return Unexpected{result.error()};
    const auto known = store.find(key);
    if (!known) return Unexpected{known.error()};
    const bool replaces = !*known || (*known)->status != RunStatus::done || result->second.status == RunStatus::done;
    if (replaces) {
      if (auto put = store.put(result->first, result->second); !put) return put;
    }
    array.taken.insert(key);
    if (array.array.closed) {  // it came late
      std::error_code ignored;
      fs::remove(file, ignored);
    }
  }
  return {};
}

bool SlurmSweep::may_come_late(const Task& task) const {
  return task.state.state == "COMPLETED" && (!lingers_ || std::chrono::steady_clock::now() - *task.ended < latest_file);
}

Result<void> SlurmSweep::settle(Array& array, SweepStore& store) {
  if (array.array.closed) return {};
  bool all = true;
  for (std::size_t i = 0; i < array.tasks.size(); ++i) {
    Task& task = array.tasks[i];
    if (task.ended && !task.settled) {
      std::vector<std::string> missing;
      for (const std::string& key : array.array.tasks[i]) {
        if (array.taken.count(key) == 0) missing.push_back(key);
      }
      if (missing.empty() || !may_come_late(task)) {
        if (auto done = settle(array, i, missing, store); !done) return done;
        task.settled = true;
      }
    }
    all = all && task.settled;
  }
  return all ? close(array) : Result<void>{};
}

// Runs that had begun are recorded as ended with their task. Those that had not are recorded only where none had, so
// that the task itself does not work: otherwise the next start submits them.
Result<void> SlurmSweep::settle(Array& array, std::size_t task, const std::vector<std::string>& missing,
                                SweepStore& store) {
  const std::string& state = array.tasks[task].state.state;
  if (missing.empty() || array.array.job.empty() || !blames_runs(state)) return {};
  const auto begun = [&](const std::string& key) {
    std::error_code ignored;
    return fs::exists(array.array.results() + "/" + key + ".begun", ignored);
  };
  const bool none_begun = std::none_of(missing.begin(), missing.end(), begun) &&
                          missing.size() == array.array.tasks[task].size() && !state.empty();
  const SweepResult result{.status = state == "TIMEOUT" ? RunStatus::timeout : RunStatus::failed,
                           .message = why_text(array.array, task, state)};
  for (const std::string& key : missing) {
    const auto run = run_of_key_.find(key);
    if (run == run_of_key_.end() || (!none_begun && !begun(key))) continue;
    const auto known = store.find(key);
    if (!known) return Unexpected{known.error()};
    if (*known && (*known)->status == RunStatus::done) continue;
    const auto point = plan_->sweep.point(run->second);
    if (!point) return Unexpected{point.error()};
    const SweepRow row{.key = key, .point = json_text(sweep_point_json(*point), -1), .program = plan_->program};
    if (auto put = store.put(row, result); !put) return put;
  }
  return {};
}

// Nothing is kept of an array whose runs have all come, or that a killed start did not submit; of another one its logs,
// and what may still come.
Result<void> SlurmSweep::close(Array& array) {
  array.array.closed = true;
  std::size_t runs = 0;
  for (const auto& task : array.array.tasks) runs += task.size();
  std::error_code ignored;
  if (array.taken.size() == runs || array.array.job.empty()) {
    fs::remove_all(array.array.folder, ignored);
    fs::remove(fs::path(array.array.folder).parent_path(), ignored);  // stays where it is not empty
    return {};
  }
  for (const std::string& key : array.taken) {
    fs::remove(array.array.results() + "/" + key + std::string(result_ending), ignored);
  }
  return write_slurm_array(array.array);
}

Result<void> SlurmSweep::submit(const std::vector<std::uint64_t>& todo) {
  auto array = submit_slurm_array(*plan_, split_into_tasks(*plan_, todo));
  if (!array) return Unexpected{array.error()};
  add(*std::move(array));
  return {};
}

std::unordered_set<std::string> SlurmSweep::queued() const {
  std::unordered_set<std::string> keys;
  for (const Array& array : arrays_) {
    for (std::size_t i = 0; i < array.tasks.size(); ++i) {
      if (array.tasks[i].settled) continue;
      for (const std::string& key : array.array.tasks[i]) {
        if (array.taken.count(key) == 0) keys.insert(key);
      }
    }
  }
  return keys;
}

SlurmTaskCount SlurmSweep::count() const {
  SlurmTaskCount count;
  for (const Array& array : arrays_) {
    for (const Task& task : array.tasks) {
      if (task.settled || task.ended) continue;
      const bool waits = task.state.state == "PENDING";
      ++(waits ? count.waiting : count.running);
      if (waits && !task.state.reason.empty()) count.reasons.insert(task.state.reason);
    }
  }
  return count;
}

bool SlurmSweep::is_open() const {
  return std::any_of(arrays_.begin(), arrays_.end(), [](const Array& array) { return !array.array.closed; });
}

std::string SlurmSweep::jobs() const {
  std::string text;
  for (const Array& array : arrays_) {
    if (array.array.closed || array.array.job.empty()) continue;
    text += (text.empty() ? "" : " ") + array.array.job;
  }
  return text;
}

}  // namespace gpusched
