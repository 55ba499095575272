// SPDX-License-Identifier: Apache-2.0
/// The simulator of Alibaba's PAI-2020 trace (Weng et al., "MLaaS in the Wild", NSDI'22;
/// github.com/alibaba/clusterdata, cluster-trace-gpu-v2020/simulator): its sample of jobs and its five orders, on the
/// cluster as one large node.
///
/// It is not the engine: jobs ask for hundredths of GPUs and cores as the file writes them (1.5 GPUs too), equal keys
/// go by the file's own job id, and means count a job once an instance. Quirks, all kept:
///  - every order is greedy, "FIFO" too: a job that does not fit is passed over;
///  - a pass ends when no GPU and no core is idle, even if a job that wants neither waits;
///  - jobs that ask for more than the cluster are shrunk to it, an instance at a time;
///  - the makespan is one second after the last end.
/// The program moves second by second, and skips passes that can start nothing; nothing changes between arrivals and
/// ends, so that looking at those alone gives the same figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// A row of the simulator's input.
struct PaiJob {
  std::int64_t rank = 0;  ///< position by job id: as numbers when both are, else as text
  std::int64_t submit_s = 0;
  std::int64_t duration_s = 1;                                  ///< rounded down, at least 1
  std::int64_t instances = 1;                                   ///< started together
  std::int64_t gpu_percent = 0;                                 ///< of one instance, in hundredths of a GPU
  std::int64_t cpu_percent = 0;                                 ///< the same, of a core
  double user_dur_s = 0, group_dur_s = 0, group_gpu_dur_s = 0;  ///< the file's estimates
};

/// The authors' experiment by default.
struct PaiOptions {
  std::int64_t gpus = 6500;
  std::size_t jobs = 20'000;     ///< drawn from the file; all of them, unshuffled, when it has fewer
  std::int64_t arrivals = 1000;  ///< jobs that arrive together; 0: the file's submission times
  std::int64_t interval_s = 60;  ///< between such arrivals
  std::uint64_t seed = 42;       ///< of Python's random

  /// Cores of the cluster: 23.22 a GPU, rounded.
  [[nodiscard]] std::int64_t cpus() const;
};

/// Reads the file as the simulator does: no more than 10 x options.jobs + 1 rows. Errors carry file, line and field.
Result<std::vector<PaiJob>> read_pai_jobs(const std::string& path, const PaiOptions& options);

/// The sample that one run simulates: Python's shuffle, the first options.jobs, by (submission, id) the k-th at
/// k / arrivals x interval_s, shrunk to the cluster.
std::vector<PaiJob> draw_pai_jobs(std::vector<PaiJob> jobs, const PaiOptions& options);

enum class PaiOrder : std::uint8_t { sjf, sju, sjg, sjgg, fifo };

/// Every order by the name that the simulator prints.
struct PaiOrderName {
  std::string_view name;
  PaiOrder order;
};
inline constexpr PaiOrderName pai_orders[] = {{"SJF", PaiOrder::sjf},
                                              {"SJU", PaiOrder::sju},
                                              {"SJG", PaiOrder::sjg},
                                              {"SJGG", PaiOrder::sjgg},
                                              {"FIFO", PaiOrder::fifo}};

struct PaiResult {
  double avg_jct_s = 0;
  double avg_wait_s = 0;
  std::int64_t makespan_s = 0;
};

/// Runs a sample. Error: a job whose instances together can never fit.
Result<PaiResult> run_pai(const std::vector<PaiJob>& sample, PaiOrder order, const PaiOptions& options);

}  // namespace gpusched
