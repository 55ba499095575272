// SPDX-License-Identifier: Apache-2.0
/// What Slurm's accounting says that a job asks for or got: TRES ("cpu=8,gres/gpu:a100=4,mem=64G,node=1") and GRES
/// ("gpu:a100:2").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// GPUs of one kind.
struct SlurmGpus {
  std::string model = {};  ///< empty: any
  MilliGpu milli = whole_gpu;
  std::int64_t count = 0;
  std::string profile = {};  ///< of a MIG slice
};

/// Numbers that are not said stay at 0.
struct SlurmTres {
  std::vector<SlurmGpus> gpus = {};  ///< none of count 0
  std::int64_t cores = 0;
  std::int64_t memory_mib = 0;
  std::int64_t nodes = 0;
  bool of_job = false;  ///< of parse_slurm_gres(): what the whole job asks for, where others say what a node does
  bool shares = false;  ///< gres/shard or gres/mps, whose size the log does not tell
  bool exceeds_request = false;  ///< of slurm_demand(): what the job was given, more GPUs than it asked for

  [[nodiscard]] std::int64_t gpu_count() const;
  /// Whether the GPUs' types are said, or that they are slices.
  [[nodiscard]] bool names_types() const;
};

/// Puts a TRES together from its parts, NAME and count, in any order. `gres/gpu:TYPE` usually repeats a part of
/// `gres/gpu`.
class SlurmTresParts {
 public:
  /// False when the count is none that such a resource has. Unknown names are left out.
  bool add(std::string_view name, std::int64_t count);
  /// The memory of the whole job.
  void set_memory_mib(std::int64_t mib) { tres_.memory_mib = mib; }
  [[nodiscard]] SlurmTres finish();

 private:
  SlurmTres tres_;
  std::int64_t gpus_ = 0;
  std::vector<SlurmGpus> by_type_;
};

/// Reads "billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,mem=64G,node=1"; also by the numbers of the database
/// ("1=8,2=64000,4=1,1001=4"), where 1001, the first generic resource, is taken as the GPU. Nothing when a part is not
/// NAME=VALUE with a value of the kind that the name has.
std::optional<SlurmTres> parse_slurm_tres(std::string_view text);

/// Reads the GPUs of "gpu:2", "gpu:a100:2(S:0-1),shard:4", "gpu(IDX:0,2)", "gpu=2", "PER_NODE:gpu:4" or
/// "PER_JOB:gpu:a100:2"; an entry without a count is one. Nothing when a count is none, an entry is a number alone, or
/// it is of a socket or task, whose number the log does not tell.
std::optional<SlurmTres> parse_slurm_gres(std::string_view text);

/// Why a job is left out that asks for `shares` and no GPU.
inline constexpr const char* unknown_share =
    "asks for gres/shard or gres/mps: how much of a GPU that is, the log does not tell";

/// "64G" -> MiB; a number alone is megabytes. With the `n` (a node) or `c` (a core) of older ReqMem left out.
std::optional<std::int64_t> parse_slurm_memory_mib(std::string_view text);

}  // namespace gpusched
