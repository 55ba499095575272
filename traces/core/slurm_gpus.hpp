// SPDX-License-Identifier: Apache-2.0
/// What Slurm's names of GPUs say: the type in `gres/gpu:TYPE` of TRES and in `gpu:TYPE:COUNT` of Gres.
#pragma once

#include <string>
#include <string_view>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A GPU, or a slice of one.
struct SlurmGpu {
  std::string_view model;      ///< as Slurm writes it, without the profile of a slice; empty: not said
  MilliGpu milli = whole_gpu;  ///< what one of them is of a GPU
  std::string profile = {};    ///< of a MIG slice, "1g.5gb"; empty: a whole GPU
};

/// Reads a type such as "a100", "a100_1g.5gb" or "3g.20gb". A MIG slice is the share of the card's compute slices that
/// its profile names (docs.nvidia.com, MIG user guide): of seven, on an A30 (1g.6gb, 2g.12gb, 4g.24gb) of four, rounded
/// down, so that a card holds as many as it has.
SlurmGpu slurm_gpu(std::string_view type);

/// Whatever the format: a job whose GPU demand names a MIG profile ("1g.5gb") and which asks for whole GPUs counts
/// slices, as Slurm does. Its shape becomes a gang of one-slice tasks; other shapes stay.
void count_mig_slices(Shape& shape, std::string_view gpu_spec);

}  // namespace gpusched
