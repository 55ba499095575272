// SPDX-License-Identifier: Apache-2.0
/// A Slurm cluster as Slurm prints it: `scontrol show nodes` (with -o or without) and `sinfo -N -o
/// "%N|%P|%c|%m|%G|%T"`.
#pragma once

#include <string_view>

#include "gpusched/core/result.hpp"
#include "src/world/slurm_machines.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {

/// True when the text begins like the output of one of the two.
bool looks_like_slurm_nodes(std::string_view head);

/// Reads either output. Partitions are virtual clusters (scheduling queues); a node of several serves them all. GPUs
/// and their types are those of Gres; MIG instances become cards that are cut so (mig_layout.hpp), beside whole ones of
/// their model; a node with cards of several types becomes a node each, with its part of the cores and memory. Nodes
/// that are down, drained, failing or planned are left out unless `with_down`; so is what is in no partition. Errors
/// carry file, line and field.
Result<SlurmCluster> read_slurm_nodes(InputFile& file, bool with_down = false);

}  // namespace gpusched
