// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_run.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/parallel.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {

std::string path_in(const Sweep& sweep, const std::string& name) { return sweep.out + "/" + name; }

std::vector<std::uint64_t> runs_to_do(const SweepPlan& plan, const std::unordered_map<std::string, RunStatus>& states,
                                      bool retry, const std::unordered_set<std::string>& queued) {
  std::vector<std::uint64_t> todo;
  for (std::uint64_t i = 0; i < plan.runs.size(); ++i) {
    const auto state = states.find(plan.runs[i].key);
    bool stored = state != states.end() && (!retry || state->second == RunStatus::done);
    if (stored && plan.sweep.files && state->second == RunStatus::done) {
      std::error_code ignored;
      const std::string folder = path_in(plan.sweep, "runs/" + run_folder_name(plan.runs[i]));
      stored = std::filesystem::exists(folder + "/" + manifest_name, ignored);
    }
    if (!stored && !queued.contains(plan.runs[i].key)) todo.push_back(i);
  }
  return todo;
}

Result<SweepOutcome> SweepFiles::write() {
  const auto begin = Clock::now();
  SweepOutcome outcome;
  const auto tables = sweep_tables(plan_, store_, outcome);
  if (!tables) return Unexpected{tables.error()};
  for (const auto& [name, text] :
       {std::pair(sweep_csv_name, &tables->runs), std::pair(sweep_comparison_name, &tables->comparisons)}) {
    if (auto done = replace_file(path_in(plan_.sweep, name), *text); !done) return Unexpected{done.error()};
  }
  Execution execution = execution_;
  execution.wall_s = std::chrono::duration<double>(Clock::now() - begin_).count();
  execution.peak_memory_bytes = peak_memory_bytes();
  const std::string manifest = sweep_manifest(plan_, outcome, execution);
  if (auto done = replace_file(path_in(plan_.sweep, manifest_name), manifest); !done) return Unexpected{done.error()};
  // Of the time of the sweep, 2 % at most goes into files that the next ones replace.
  const auto end = Clock::now();
  next_ = end + std::max<Clock::duration>(std::chrono::milliseconds(500), 50 * (end - begin));
  return outcome;
}

Result<void> SweepFiles::write_if_due() {
  if (Clock::now() < next_) return {};
  const auto written = write();
  return written ? Result<void>{} : Result<void>{Unexpected{written.error()}};
}

Result<void> run_here(const SweepPlan& plan, const PolicyRegistry& registry, SweepStore& store,
                      const std::vector<std::uint64_t>& todo, SweepFiles& files, SweepProgress& progress) {
  const WorkerOptions options{.workers = plan.sweep.threads == 0 ? thread_count(0) : plan.sweep.threads,
                              .time_limit_s = to_seconds(plan.sweep.time_limit),
                              .run_folders = plan.sweep.files ? path_in(plan.sweep, "runs") : ""};
  return run_points(plan, registry, todo, options, progress, [&](std::uint64_t number, const SweepResult& result) {
    const auto point = plan.sweep.point(number);
    if (!point) return Result<void>{Unexpected{point.error()}};
    auto stored = store.put({plan.runs[number].key, json_text(sweep_point_json(*point), -1), plan.program}, result);
    return stored ? files.write_if_due() : stored;
  });
}

}  // namespace gpusched
