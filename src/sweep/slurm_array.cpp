// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/slurm_array.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/number_text.hpp"
#include "src/base/process_info.hpp"
#include "src/base/sha256.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/subprocess.hpp"
#include "src/sweep/sweep_report.hpp"

namespace gpusched {
namespace {

namespace fs = std::filesystem;

constexpr const char* array_file_name = "array.json";

// "/a/b/tasks".
std::string tasks_folder(const std::string& out) {
  return fs::absolute(out).lexically_normal().string() + "/" + sweep_tasks_name;
}

std::string task_file(const SlurmArray& array, const std::string& task) {
  return array.folder + "/task_" + task + ".json";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// Runs one of Slurm's commands. Error: its own words, in one line.
Result<std::string> ask_slurm(const std::vector<std::string>& command) {
  auto output = run_program(command);
  if (!output) return Unexpected{output.error()};
  if (output->exit_code == 0) return std::move(output->out);
  std::string words;
  for (const std::string& line : lines_of(output->err)) words += (words.empty() ? "" : "; ") + line;
  if (words.empty()) words = command.front() + " ended with exit code " + std::to_string(output->exit_code);
  return unexpected(words.starts_with(command.front()) ? words : command.front() + ": " + words);
}

// The part of `line` before the next bar, which both lose.
std::string take_cell(std::string& line) {
  const std::size_t bar = std::min(line.find('|'), line.size());
  const std::string cell = line.substr(0, bar);
  line.erase(0, bar + 1);
  return cell;
}

// A sweep of these runs alone: what they have in common under "base", what varies under "list". Their keys are the
// same, as they depend on the values of each run only.
Result<std::string> task_text(const SweepPlan& plan, const std::vector<std::uint64_t>& runs) {
  const std::vector<std::string>& columns = plan.sweep.columns;
  const auto varies = [&](const std::string& path) {
    return std::find(columns.begin(), columns.end(), path) != columns.end();
  };
  Json base = Json::object(), list = Json::array();
  for (const std::uint64_t run : runs) {
    const auto point = plan.sweep.point(run);
    if (!point) return Unexpected{point.error()};
    Json entry = Json::object();
    const Json values = sweep_point_json(*point);
    for (const auto& [path, value] : values.items()) (varies(path) ? entry : base)[path] = value;
    list.push_back(std::move(entry));
  }
  Sweep copy = plan.sweep;
  const FieldTable own = sweep_own_fields(copy);
  Json document = {{"base", std::move(base)},
                   {"list", std::move(list)},
                   {"out", fs::absolute(plan.sweep.out).lexically_normal().string()}};
  for (const char* const path : {"threads", "time_limit_s", "files"})
    document[path] = field_json(*find_field(own, path));
  return json_text(document, -1);
}

std::string job_script(const SlurmArray& array) {
  return "#!/bin/sh\n# One task of a gpusched sweep's job array.\nexec " + shell_quoted(program_path("gpusched")) +
         " sweep " + shell_quoted(array.folder + "/task_") + "\"$SLURM_ARRAY_TASK_ID\".json --array-task " +
         "\"$SLURM_ARRAY_TASK_ID\"\n";
}

// Slurm replaces what stands behind a % in names of files (man sbatch, "filename pattern").
std::string without_patterns(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

// The option of sbatch that `word` gives or abbreviates, where it is one that a sweep gives itself.
std::optional<std::string> reserved_option(const std::string& word) {
  static constexpr std::pair<std::string_view, std::string_view> reserved[] = {
      {"--array", "-a"},   {"--job-name", "-J"}, {"--chdir", "-D"}, {"--clusters", "-M"}, {"--cluster", ""},
      {"--parsable", ""},  {"--wrap", ""},       {"--wait", "-W"},  {"--help", "-h"},     {"--usage", ""},
      {"--version", "-V"}, {"--test-only", ""},  {"--output", "-o"}};
  const std::string name = word.substr(0, word.find('='));
  for (const auto& [option, letter] : reserved) {
    const bool is_letter = !letter.empty() && word.starts_with(letter);
    const bool is_long = name == option || (name.size() > 4 && name.starts_with("--") && option.starts_with(name));
    if (is_letter || is_long) return std::string(option);
  }
  return std::nullopt;
}

// How many tasks an array may have, where Slurm tells: the highest number is one below MaxArraySize (man slurm.conf).
std::optional<std::uint64_t> most_array_tasks() {
  const auto settings = ask_slurm({"scontrol", "show", "config"});
  if (!settings) return std::nullopt;
  for (const std::string& line : lines_of(*settings)) {
    if (!line.starts_with("MaxArraySize")) continue;
    return parse_exact<std::uint64_t>(line.substr(line.find_last_of(" =") + 1));
  }
  return std::nullopt;
}

Result<void> check_size(const SweepPlan& plan, const std::vector<std::vector<std::uint64_t>>& tasks) {
  const auto most = most_array_tasks();
  if (!most || tasks.size() <= *most) return {};
  std::uint64_t runs = 0;
  for (const auto& task : tasks) runs += task.size();
  if (*most == 0) return unexpected("Slurm takes no job arrays here (MaxArraySize)");
  return Unexpected{Error{.message = human_count(tasks.size()) + " array tasks, and Slurm takes " + human_count(*most) +
                                     " (MaxArraySize); give " + std::to_string((runs + *most - 1) / *most) + " or more",
                          .file = plan.sweep.file,
                          .field = "/slurm/runs_per_task"}};
}

Result<void> write_array_files(const SweepPlan& plan, const std::vector<std::vector<std::uint64_t>>& tasks,
                               const SlurmArray& array) {
  std::error_code why;
  fs::create_directories(array.results(), why);
  if (why) return Unexpected{Error{.message = "cannot make the folder: " + why.message(), .file = array.results()}};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto text = task_text(plan, tasks[i]);
    if (!text) return Unexpected{text.error()};
    if (auto done = replace_file(task_file(array, std::to_string(i)), *text); !done) return done;
  }
  if (auto done = replace_file(array.folder + "/job.sh", job_script(array)); !done) return done;
  return write_slurm_array(array);  // last: from now on another start looks for the job
}

// A folder that no array of this sweep has, and a name that no other job has.
Result<SlurmArray> new_array(const std::string& out) {
  const auto known = read_slurm_arrays(out);
  if (!known) return Unexpected{known.error()};
  std::uint64_t number = 1;
  for (const SlurmArray& array : *known) {
    number = std::max(number, parse_exact<std::uint64_t>(fs::path(array.folder).filename().string()).value_or(0) + 1);
  }
  std::string digits = std::to_string(number);
  digits.insert(0, 4 - std::min<std::size_t>(digits.size(), 4), '0');
  SlurmArray array;
  array.folder = tasks_folder(out) + "/" + digits;
  std::error_code ignored;
  fs::remove_all(array.folder, ignored);  // of a start that was killed before it had written the whole
  array.name = "gpusched-" + sha256_text(array.folder + utc_now()).substr(0, 12);
  return array;
}

}  // namespace

bool SlurmTaskState::has_ended() const {
  static constexpr std::string_view ended[] = {"",          "COMPLETED", "FAILED",        "TIMEOUT",
                                               "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL",
                                               "DEADLINE",  "PREEMPTED", "REVOKED"};
  return std::find(std::begin(ended), std::end(ended), state) != std::end(ended);
}

Result<SlurmArray> read_slurm_array(const std::string& folder) {
  const std::string file = folder + "/" + array_file_name;
  const auto text = read_text_file(file);
  if (!text) return Unexpected{text.error()};
  const auto json = parse_json_strictly(*text, file);
  if (!json) return Unexpected{json.error()};
  try {
    return SlurmArray{.folder = folder,
                      .name = json->at("name").get<std::string>(),
                      .job = json->at("job").get<std::string>(),
                      .tasks = json->at("tasks").get<std::vector<std::vector<std::string>>>(),
                      .closed = json->at("closed").get<bool>()};
  } catch (const Json::exception&) {
    return Unexpected{Error{.message = "does not describe the job array of a sweep", .file = file}};
  }
}

Result<std::vector<SlurmArray>> read_slurm_arrays(const std::string& out) {
  std::vector<std::string> folders;
  std::error_code why;
  for (fs::directory_iterator entry(tasks_folder(out), why), end; !why && entry != end; entry.increment(why)) {
    if (fs::exists(entry->path() / array_file_name)) folders.push_back(entry->path().string());
  }
  if (why && why != std::errc::no_such_file_or_directory) {
    return Unexpected{Error{.message = "cannot be read: " + why.message(), .file = tasks_folder(out)}};
  }
  std::sort(folders.begin(), folders.end());
  std::vector<SlurmArray> arrays;
  for (const std::string& folder : folders) {
    auto array = read_slurm_array(folder);
    if (!array) return Unexpected{array.error()};
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

Result<void> write_slurm_array(const SlurmArray& array) {
  return replace_file(
      array.folder + "/" + array_file_name,
      json_text({{"name", array.name}, {"job", array.job}, {"closed", array.closed}, {"tasks", array.tasks}}, -1));
}

std::vector<std::vector<std::uint64_t>> split_into_tasks(const SweepPlan& plan, std::vector<std::uint64_t> todo) {
  std::stable_sort(todo.begin(), todo.end(), [&](std::uint64_t a, std::uint64_t b) {
    return std::tuple(plan.runs[a].trace, plan.runs[a].input) < std::tuple(plan.runs[b].trace, plan.runs[b].input);
  });
  const std::uint64_t per_task = plan.sweep.runs_per_task > 0
                                     ? plan.sweep.runs_per_task
                                     : (todo.size() + most_default_tasks - 1) / most_default_tasks;
  std::vector<std::vector<std::uint64_t>> tasks;
  for (std::size_t i = 0; i < todo.size(); i += per_task) {
    tasks.emplace_back(todo.begin() + static_cast<std::ptrdiff_t>(i),
                       todo.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(i + per_task, todo.size())));
  }
  return tasks;
}

Result<std::vector<std::string>> sbatch_command(const SweepPlan& plan, const SlurmArray& array, std::size_t tasks) {
  const auto wrong = [&](const std::string& message) {
    return Unexpected{Error{.message = message, .file = plan.sweep.file, .field = "/slurm/options"}};
  };
  const auto options = split_words(plan.sweep.slurm_options);
  if (!options) return wrong(options.error().message);
  std::vector<std::string> command{"sbatch", "--parsable", "--array=0-" + std::to_string(tasks - 1),
                                   "--job-name=" + array.name,
                                   "--output=" + without_patterns(array.folder) + "/%a.log"};
  if (plan.sweep.threads > 1) command.push_back("--cpus-per-task=" + std::to_string(plan.sweep.threads));
  for (const std::string& word : *options) {
    if (const auto own = reserved_option(word)) return wrong(*own + " is the sweep's own option of sbatch");
    command.push_back(word);
  }
  command.push_back(array.folder + "/job.sh");
  return command;
}

Result<SlurmArray> submit_slurm_array(const SweepPlan& plan, const std::vector<std::vector<std::uint64_t>>& tasks) {
  if (auto fits = check_size(plan, tasks); !fits) return Unexpected{fits.error()};
  auto array = new_array(plan.sweep.out);
  if (!array) return array;
  for (const auto& task : tasks) {
    array->tasks.emplace_back();
    for (const std::uint64_t run : task) array->tasks.back().push_back(plan.runs[run].key);
  }
  const auto give_up = [&](const Error& error) {
    std::error_code ignored;
    fs::remove_all(array->folder, ignored);
    fs::remove(fs::path(array->folder).parent_path(), ignored);  // stays where it is not empty
    return Unexpected{error};
  };
  const auto command = sbatch_command(plan, *array, tasks.size());
  if (!command) return Unexpected{command.error()};
  if (auto written = write_array_files(plan, tasks, *array); !written) return give_up(written.error());
  const auto answer = ask_slurm(*command);
  if (!answer) return give_up(answer.error());
  array->job = answer->substr(0, answer->find_first_not_of("0123456789"));
  if (array->job.empty()) return give_up({.message = "sbatch gave no job number but: " + *answer});
  if (auto written = write_slurm_array(*array); !written) return Unexpected{written.error()};
  return array;
}

Result<std::map<std::size_t, SlurmTaskState>> slurm_queue(SlurmArray& array) {
  const auto answer =
      ask_slurm({"squeue", "--noheader", "--array", "--states=all", "--name=" + array.name, "--format=%F|%K|%T|%r"});
  if (!answer) return Unexpected{answer.error()};
  std::map<std::size_t, SlurmTaskState> states;
  for (std::string line : lines_of(*answer)) {
    const std::string job = take_cell(line);
    const auto task = parse_exact<std::size_t>(take_cell(line));
    if (!task || *task >= array.tasks.size()) continue;
    const std::string state = take_cell(line);
    states[*task] = {.state = state, .reason = line};
    array.job = job;
  }
  return states;
}

std::map<std::size_t, SlurmTaskState> slurm_accounting(const SlurmArray& array) {
  std::map<std::size_t, SlurmTaskState> states;
  if (array.job.empty()) return states;
  const auto answer = ask_slurm({"sacct", "--noheader", "--parsable2", "--allocations", "--array",
                                 "--jobs=" + array.job, "--name=" + array.name, "--format=JobID,State"});
  if (!answer) return states;
  for (std::string line : lines_of(*answer)) {
    const std::string id = take_cell(line);  // 12_3
    const auto task = parse_exact<std::size_t>(id.substr(id.find('_') + 1));
    if (!task || *task >= array.tasks.size()) continue;
    states[*task] = {.state = line.substr(0, line.find(' ')), .reason = {}};  // "CANCELLED by 0"
  }
  return states;
}

}  // namespace gpusched
