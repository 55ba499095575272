// SPDX-License-Identifier: Apache-2.0
/// Reads what nodes draw, emit and cost (PowerModel), from a file or by the name of a ready model. Compiled part.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/power_model.hpp"

namespace gpusched {

/// A model made for one cluster and one table of jobs.
struct PowerOfRun {
  PowerModel model = {};
  std::string file = {};                ///< or the name of a ready model; empty: of GPUs alone, as power_of_gpus()
  std::vector<std::string> notes = {};  ///< names of the file that nobody has, values that signals lack

  /// Nodes are known, not only their GPUs.
  [[nodiscard]] bool is_of_nodes() const { return !file.empty(); }
};

/// A ready model.
struct ReadyPower {
  std::string_view name;
  std::string_view meaning;  ///< with its source
  std::string_view json;
};
/// All of them.
std::span<const ReadyPower> ready_powers();

/// Reads what `--power` names: a ready model or a JSON object, of which docs/energy.md describes every key:
///   {"gpus": {"V100": {"idle_w": 30, "full_w": 300, "load": "linear", "limits": "summary_power_v100.csv"}},
///    "families": {"bert": {"V100": {"full_w": 280, "busy_share": 0.9}}},
///    "nodes": {"base_w": 150, "cpus": 2, "cpu": {"idle_w": 20, "full_w": 205}, "of": {"V100": {"base_w": 200}},
///              "sleep": {"after_s": 600, "asleep_w": 10, "wake_s": 120, "wake_j": 30000}},
///    "pue": 1.3, "carbon": "carbon.csv", "usd_per_mwh": {"file": "price.csv", "begins": "with_jobs"},
///    "rent": {"usd_per_gpu_h": {"V100": 2.5}, "paid": "always"},
///    "caps": [{"w": 20000}, {"w": "budget.csv", "racks": [0]}], "cap_rule": "uniform", "cap_latency_s": 0}
/// `measured`: `gpus` and `families` of device profiles, for the GPU types of which the file says nothing; may be
/// empty. Files that it names are relative to its folder. Signals are on the trace's clock or begin with its first job.
/// Errors: file and JSON path, or file and line, and what was expected there; a GPU type of the cluster of which
/// nothing is said; a cap that stays below what its nodes draw idle.
Result<PowerOfRun> read_power(const std::string& path, const Cluster& cluster, const JobTable& jobs,
                              const PowerModel& measured = {});

/// The same from the text itself; `file` is for messages, and the folder of the files that it names.
Result<PowerOfRun> power_from_json(std::string_view text, const std::string& file, const Cluster& cluster,
                                   const JobTable& jobs, const PowerModel& measured = {});

/// What GPUs alone draw, as `measured`: nothing of nodes. Empty where nothing was measured.
PowerModel power_of_gpus(const PowerModel& measured, const Cluster& cluster);

/// The files that read_power() reads, `path` among them: for manifests. None for a ready model.
std::vector<std::string> files_of_power(const std::string& path);

}  // namespace gpusched
