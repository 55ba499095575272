// SPDX-License-Identifier: Apache-2.0
/// Training runs of one configuration that differ by their seed, and what they say together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/text_style.hpp"
#include "src/policies/learned/seed_folders.hpp"
#include "src/rl/trainer.hpp"

namespace gpusched {

/// How the run of one seed ended.
struct SeedRun {
  std::uint64_t seed = 0;
  Result<TrainSummary> summary;  ///< without the verdict, which is that of all seeds

  [[nodiscard]] bool ended() const { return summary.has_value(); }
};

/// All of them, in the order of the seeds.
struct SeedRuns {
  std::string folder;
  std::vector<SeedRun> runs;
  std::optional<Result<HeldOut>> held_out = {};  ///< with TrainConfig::test_at_end: of the seeds that ended, as a group

  /// The validation losses of the runs that ended.
  [[nodiscard]] std::vector<double> losses() const;
};

/// Trains one run for each seed into seed_folder(folder, seed), each as train() does with that seed and on one thread,
/// up to config.threads of them side by side; the results do not depend on that number. A run that fails leaves the
/// others alone. With `resume`, goes on where each of them stopped. `watch` is called by one thread at a time.
SeedRuns train_seeds(const TrainConfig& config, const Seeds& seeds, const JobTable& jobs, const Cluster& cluster,
                     const std::string& folder, bool resume,
                     const std::function<void(std::uint64_t seed, const TrainProgress&)>& watch, TrainingMethod* ppo);

/// A row a seed, their mean and interquartile mean, and the verdict. Precondition: a run ended.
std::string seed_table(const SeedRuns& runs, const TextStyle& style = {});
/// The figures of seed_table() in full precision: a row a seed.
std::string seeds_csv(const SeedRuns& runs);
/// The seeds' figures with means, and the verdict's every comparison.
std::string seeds_json(const SeedRuns& runs);

}  // namespace gpusched
