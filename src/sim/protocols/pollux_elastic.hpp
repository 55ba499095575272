// SPDX-License-Identifier: Apache-2.0
/// A workload of the Pollux artifact as a trace with elastic jobs, for the engine: what was measured of each
/// application becomes run times and speed-up curves.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/sim/protocols/pollux_protocol.hpp"

namespace gpusched {

/// What chooses batch sizes.
enum class PolluxBatches : std::uint8_t {
  fixed,  ///< the file does, as under the artifact's Tiresias and Optimus
  tuned,  ///< the job does, at each size and in each epoch, as under Pollux
};

/// Two texts.
struct PolluxElasticFiles {
  std::string jobs_csv;      ///< native: a family for each application, number of GPUs and batch size
  std::string elastic_json;  ///< as read_elastic() takes it
};

/// A job's run time is that with the GPUs and the batch size of its row, on as few nodes as can be. Its curve has a
/// phase for each epoch and a point for each size that was measured, up to `most_gpus`. Error: a row whose own size was
/// not measured.
Result<PolluxElasticFiles> pollux_elastic(const std::vector<PolluxJob>& jobs, const PolluxProfiles& profiles,
                                          PolluxBatches batches, std::int64_t gpus_per_node, std::int64_t most_gpus);

}  // namespace gpusched
