// SPDX-License-Identifier: Apache-2.0
/// Measured throughputs of job families by GPU type, and the RuntimeModel that they give.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "src/calibration/profile/calibrated_runtime.hpp"
#include "src/calibration/profile/span_speeds.hpp"

namespace gpusched {

/// Throughputs as a file gives them, in any unit that the GPU types of a row share.
struct ThroughputTable {
  std::string file;                    ///< for messages
  std::vector<std::string> gpu_types;  ///< in order of first appearance
  /// By family and GPUs of the gang (0: a gang of any size), by GPU type; none or 0: it cannot run there.
  std::map<std::pair<std::string, std::uint32_t>, std::map<std::string, double>> rows;
  /// Throughputs at each Span wider than a node, by the keys of `rows`; 0: not measured.
  std::map<std::pair<std::string, std::uint32_t>, std::map<std::string, std::array<double, span_count>>> apart = {};
  /// By a family and the one beside it, by GPU type: the first's throughput while a task of each shares a GPU; none or
  /// 0: they cannot, or were not measured.
  std::map<std::pair<std::string, std::string>, std::map<std::string, double>> pairs = {};

  /// The row of a gang: its own, else that of any size; null where there is neither.
  [[nodiscard]] const std::map<std::string, double>* row(const std::string& family, std::uint32_t gpus) const;
};

/// A csv file of the columns family, gpu_type, throughput and, where the size of the gang matters, gpus and, where it
/// matters how far apart its tasks are, span (a name of span_names; node where the cell is empty), and, where the GPU
/// is shared with a task of another family, beside; or the JSON of Gavel's artifact (simulation_throughputs.json), of
/// which the throughputs of jobs alone are read, consolidated ones and, as of span `nodes`, unconsolidated ones, and
/// those of pairs of jobs of one GPU; or a folder of step times as Pollux and Sia measured them (step_times.hpp), of
/// which `families` says the batch sizes that are wanted. Errors: it cannot be read, lacks a column, or has a number
/// that is none, with file, line and field.
Result<ThroughputTable> read_throughput_table(const std::string& path, const NameTable* families = nullptr);

/// What stands for a throughput that the table does not have.
enum class ThroughputFallback : std::uint8_t {
  none,       ///< nothing: it is an error
  datasheet,  ///< what was measured on the reference (or else on the table's first type where something was), times the
              ///< ratio of memory bandwidths on the data sheets of the shipped profiles; 0 stays "cannot run there"
};
inline constexpr std::array<NamedValue<ThroughputFallback>, 2> throughput_fallback_names{
    {{"none", ThroughputFallback::none}, {"datasheet", ThroughputFallback::datasheet}}};

/// How fast these jobs, with the sizes that `changes` give them, run on the cluster's GPU types, relative to
/// `reference`, the GPU type that the jobs' durations are of (empty: the table's first). GPU types such as
/// A100-40GB_1g.5gb are MIG instances of the cluster's A100-40GB. With the data sheets used and a note of how many
/// kinds of gangs took them. Errors: a job that may use a GPU type on which its family has no throughput, or has none
/// on the reference, or no data sheet of one of them, each in one line.
Result<CalibratedRuntime> runtime_model_from_throughputs(const ThroughputTable& table, const std::string& reference,
                                                         const JobTable& jobs, const Cluster& cluster,
                                                         ThroughputFallback fallback = ThroughputFallback::none,
                                                         const JobChanges& changes = {});

/// Sets how much jobs that share a GPU slow each other: a task's time grows by alone / beside - 1 for each neighbour.
/// Of a pair that was not measured on a GPU type each takes as long again (equal turns: assumed, with a note). Error:
/// the table has no throughput of any pair. Precondition: the runtime is runtime_model_from_throughputs() of the table.
Result<void> add_measured_pairs(CalibratedRuntime& runtime, const ThroughputTable& table, const JobTable& jobs,
                                const Cluster& cluster);

/// How fast these jobs, with the sizes that `changes` give them, are at each span, by the throughputs there over those
/// on one node of the same GPU type. A span that was not measured is as slow as the next narrower one. Error: the table
/// has no throughput at any wider span.
Result<SpanModel> span_model_of_throughputs(const ThroughputTable& table, SpanReference reference, const JobTable& jobs,
                                            const Cluster& cluster, const JobChanges& changes = {});

}  // namespace gpusched
