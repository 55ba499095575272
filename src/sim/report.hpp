// SPDX-License-Identifier: Apache-2.0
/// Report: what a replay found, as a table for people, JSON for programs, and files for later. The same runs give the
/// same bytes, apart from the manifest's "execution", the two wall-clock metrics of --json, and decision times.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/text_style.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/scenario.hpp"

namespace gpusched {

/// A policy of the scenario that has no result.
struct MissingPolicy {
  std::string policy;  ///< as written
  std::string why;     ///< "left 2 jobs waiting for ever", "was interrupted"
};

/// How the process did; the only part of a report that differs between equal runs.
struct Execution {
  std::string started;  ///< "2026-01-31T12:00:00Z"
  double wall_s = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::vector<MissingPolicy> missing = {};  ///< whom the report leaves out
};

/// Takes the runs without a result out of `runs`.
std::vector<MissingPolicy> take_missing(std::vector<PolicyRun>& runs);

/// Rows that reading left out, by reason, and other notes about it, one line each.
std::vector<std::string> left_out_lines(const TraceReport& report);

/// That jobs belong to no virtual cluster of `cluster`, where some do.
std::vector<std::string> outside_vcs_lines(const Cluster& cluster, std::uint32_t jobs_outside_vcs);

/// "execution" of a manifest.
nlohmann::ordered_json execution_json(const Execution& execution, std::uint64_t threads, const std::string& out);

/// The file that says which others in a folder of results belong together.
inline constexpr const char* manifest_name = "manifest.json";

/// Writes these files (name in the folder, content) into `folder`, all of them or none. Error: a file cannot be
/// written.
Result<void> write_files(OutputFolder& folder, const std::vector<std::pair<std::string, std::string>>& files);

/// Things a user should know before using the numbers, one line each: rows left out, jobs outside the virtual clusters,
/// saturation, clairvoyance.
std::vector<std::string> report_warnings(const ReplayInput& input, const std::vector<PolicyRun>& runs);

/// The comparison, one line a policy, and the splits asked for.
std::string comparison_table(const Scenario& scenario, const ReplayInput& input, const std::vector<PolicyRun>& runs,
                             const TextStyle& style = {});

/// {"manifest": {...}, "runs": [{"policy", "trace", "cluster", "metrics"}]}, and in each run "splits" and
/// "decision_times" where the scenario asks for them.
std::string json_report(const Scenario& scenario, const ReplayInput& input, const std::vector<PolicyRun>& runs,
                        const Execution& execution);

/// Writes summary.json, jobs.csv and intervals.csv (of slurm: terms.csv too; with a GpuLog: trace_events.json; with
/// levels: timeline.csv, and power.csv with --power) into the policy's folder in `folder`: all of them or none.
/// Precondition: the run kept its job_files and splits. Error: a file cannot be written.
Result<void> write_policy_files(OutputFolder& folder, const ReplayInput& input, const PolicyRun& run);

/// Writes manifest.json into `folder`. Error: it cannot be written.
Result<void> write_manifest(OutputFolder& folder, const Scenario& scenario, const ReplayInput& input,
                            const std::vector<PolicyRun>& runs, const Execution& execution);

}  // namespace gpusched
