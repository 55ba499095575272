// SPDX-License-Identifier: Apache-2.0
/// The simulator of the Pollux artifact (Qiao et al., OSDI'21; github.com/petuum/adaptdl, branch osdi21-artifact,
/// folder simulator) with its Tiresias and its Optimus: elastic training jobs whose speed is measured by placement and
/// batch size, and whose statistical efficiency is measured by epoch.
///
/// It is not the engine: progress is a floating-point number, ends are whole seconds. Rules, quirks included:
///  - jobs advance in rounds of 60 s; a policy decides at their ends, the first of which is at 60 s. GPUs of a job that
///    ends in a round are idle until its end;
///  - a start or a new allocation, the first included, costs 30 s, in which the GPUs are held;
///  - goodput = gain / (step time + accumulation steps x (step time - synchronisation time)), in steps at the smallest
///    batch size a second, with gain = (var + sqr) / (var / scale + sqr), scale = batch size / smallest batch size; var
///    and sqr, of the gradient, are those of the job's epoch, linear between measured batch sizes (paper, section 3.1);
///  - the batch a GPU is the job's batch size over its GPUs, rounded up, in as many accumulation steps as keep it
///  within
///    what a GPU holds; a batch larger than the smallest on one GPU takes at least two;
///  - an epoch ends where its progress, the least of all batch sizes, is reached; the time to that is rounded to
///  seconds,
///    halves to even. A job ends with its last epoch;
///  - a gang takes the node with most idle GPUs first, the first of equals, and keeps its nodes for as long as it keeps
///    its number of GPUs.
///
/// Tiresias: two queues at 16 hours of GPU time, no promotion, in order of demotion; passes over what does not fit; the
/// number of GPUs of the file. Optimus: a GPU each in order of submission, then one GPU at a time to the job with the
/// largest gain, (step time - step time with one GPU more) x steps left; jobs of few GPUs are placed first. "ncf" has
/// at most one GPU under Optimus, "yolov3" at most 8 samples a GPU and step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// A row of a workload of the artifact.
struct PolluxJob {
  std::string name;
  std::string application;
  std::int64_t submit_s = 0;
  std::int64_t gpus = 1;  ///< under Tiresias
  std::int64_t batch_size = 1;
};

/// Seconds of a step of training.
struct PolluxStep {
  double step_s = 0;
  double sync_s = 0;  ///< of which synchronisation
};

/// What was measured of an application.
struct PolluxApplication {
  struct Epoch {
    double progress = 0;    ///< at its end, in steps at the smallest batch size
    double iterations = 0;  ///< at its end, in steps
    double grad_sqr = 0, grad_var = 0;
  };
  using Curve = std::map<std::int64_t, PolluxStep>;  ///< by samples a GPU and step

  std::map<std::int64_t, std::vector<Epoch>> training;  ///< by batch size
  std::vector<double> progress;                         ///< at the end of each epoch, of all batch sizes the least
  std::int64_t most_samples = 0;                        ///< a GPU and step
  std::int64_t least_samples = 0;
  std::map<std::string, Curve> exact;       ///< step_times.csv, by placement
  std::map<std::string, Curve> placements;  ///< placements.csv
  /// By nodes and GPUs: scalability.csv, and the mean of the placements.
  std::map<std::pair<std::int64_t, std::int64_t>, Curve> sizes;

  [[nodiscard]] std::int64_t smallest_batch() const { return training.begin()->first; }
  [[nodiscard]] std::int64_t largest_batch() const { return training.rbegin()->first; }
  /// Of a gang with so many GPUs on each node: as step_times.csv has it; else linear in the samples between those of
  /// placements.csv; else linear between those of gangs of as many nodes, first in samples, then in GPUs. None outside
  /// of what was measured. The artifact interpolates the last over a triangulation, which differs a little.
  [[nodiscard]] std::optional<PolluxStep> step(const std::vector<std::int64_t>& gpus_on_nodes,
                                               std::int64_t samples) const;
};

using PolluxProfiles = std::map<std::string, PolluxApplication>;

/// A folder with a folder for each application, which holds placements.csv, validation-BATCH.csv and, optionally,
/// scalability.csv; beside them, optionally, step_times.csv. Errors carry file, line and column.
Result<PolluxProfiles> read_pollux_profiles(const std::string& folder);

/// Columns name, time, application, num_replicas, batch_size. Errors: those of reading, no such application, a batch
/// size that was not measured.
Result<std::vector<PolluxJob>> read_pollux_jobs(const std::string& path, const PolluxProfiles& profiles);

enum class PolluxPolicy : std::uint8_t { tiresias, optimus };

/// Every policy by the name of the artifact.
inline constexpr std::array<std::pair<std::string_view, PolluxPolicy>, 2> pollux_policies{
    {{"tiresias", PolluxPolicy::tiresias}, {"optimus", PolluxPolicy::optimus}}};

/// The artifact's experiment by default.
struct PolluxOptions {
  std::int64_t nodes = 16;
  std::int64_t gpus_per_node = 4;  ///< at most 9
  std::int64_t round_s = 60;
  std::int64_t restart_s = 30;
};

struct PolluxResult {
  std::vector<std::int64_t> jct_s;  ///< in order of the jobs
  double avg_jct_s = 0;
  std::int64_t starts = 0;           ///< the first of each job, and each new allocation
  std::int64_t allocated_gpu_s = 0;  ///< of which:
  std::int64_t restart_gpu_s = 0;    ///< held while jobs start
  std::int64_t tail_gpu_s = 0;       ///< held from the end of a job to the end of its round
};

/// Progress of training a second in that epoch, in steps at the smallest batch size, with a batch of that size on a
/// gang with so many GPUs on each node; none outside of what was measured.
std::optional<double> pollux_goodput(const PolluxApplication& application, std::size_t epoch,
                                     const std::vector<std::int64_t>& gpus_on_nodes, std::int64_t batch_size);

/// Runs a workload to the end. Errors: a job that wants more GPUs than the cluster has, a step time that was not
/// measured, jobs that are not done after ten years.
Result<PolluxResult> run_pollux(const std::vector<PolluxJob>& jobs, const PolluxProfiles& profiles, PolluxPolicy policy,
                                const PolluxOptions& options);

}  // namespace gpusched
