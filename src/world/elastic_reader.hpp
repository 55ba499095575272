// SPDX-License-Identifier: Apache-2.0
/// Reads which jobs may run at another size than they ask for, and how fast they are then (ElasticModel). Compiled
/// part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A model made for a table of jobs.
struct ElasticJobs {
  ElasticModel model;
  std::uint32_t elastic = 0;  ///< jobs that have a curve
  std::uint32_t outside = 0;  ///< jobs that stay rigid, because their family's curve does not hold what they ask for
  std::vector<std::string> notes = {};  ///< families of the file that no job has
};

/// A JSON object: {"families": {"resnet50": ENTRY, ...}, "others": ENTRY}, of which an ENTRY has "min_gpus" and
/// "max_gpus" (the ends of its curve, where absent) and one of
///   "speedup": [[1, 1], [2, 1.9], [4, 3.4], [8, 3.2]]            speed, in any unit, by GPUs; linear between points
///   "phases": [{"until": 0.3, "speedup": [...]}, {"until": 1, "speedup": [...]}]      the same by share of the work
///   "goodput": {"initial_batch": 128, "most_batch": 4096, "most_batch_per_gpu": 256, "gpus_per_node": 4,
///               "gradient_s": [0.1, 0.002], "sync_s": [0.02, 0.001], "sync_nodes_s": [0.05, 0.002], "gamma": 2,
///               "noise_scale": [[0.5, 300], [1, 3000]]}
/// The last is Pollux's (Qiao et al., OSDI 2021, section 3, equations 4 to 11): a step with batch m on K GPUs takes
/// (T_grad^gamma + T_sync^gamma)^(1/gamma) seconds with T_grad = a + b m / K and, for K > 1, T_sync = a + b (K - 2), by
/// sync_s on one node and sync_nodes_s on several; it is worth (phi + m0) / (phi + m), where m0 is the initial batch
/// and phi the gradient noise scale, given until each share of the work. At each size the best batch is taken. At most
/// 4,096 GPUs (1,024 with a goodput), 1,000 phases and 100 noise scales.
///
/// A job is elastic when its tasks hold whole GPUs and its family (or "others") has a curve that holds what it asks
/// for; its speed is relative to that. A family that no job has is noted: one file may serve many traces. Errors: file
/// and JSON path, and what was expected there.
Result<ElasticJobs> read_elastic(const std::string& path, const JobTable& jobs);
/// The same from the text itself; `file` is for messages only.
Result<ElasticJobs> elastic_from_json(std::string_view text, const std::string& file, const JobTable& jobs);

}  // namespace gpusched
