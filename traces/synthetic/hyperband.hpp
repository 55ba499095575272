// SPDX-License-Identifier: Apache-2.0
/// Searches for hyperparameters as a workload: many short trials with early stopping, by Hyperband or successive
/// halving (L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh and A. Talwalkar, "Hyperband: A Novel Bandit-Based Approach
/// to Hyperparameter Optimization", JMLR 18(185), 2018, Algorithm 1). docs/generator.md gives the formulas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/field_table.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {

/// The model's parameters. JSON form: read_hyperband() and write_hyperband().
struct HyperbandModel {
  std::string about;  ///< one paragraph for people
  std::uint64_t default_jobs = 10'000;
  std::uint64_t eta = 3;        ///< of each rung's trials one in so many goes on, for so many times as long
  double least_s = 120;         ///< run time of the shortest trials, r
  double most_s = 3240;         ///< of the longest, R
  bool halving = false;         ///< successive halving alone: the bracket with the most trials
  bool resume = true;           ///< who goes on has a checkpoint; false: it trains from the beginning again
  std::uint64_t gpus = 1;       ///< of a trial
  double speed_sigma = 0.3;     ///< of the logarithm of the factor by which a configuration is slower; assumed
  double studies_per_hour = 1;  ///< Poisson arrivals; assumed
  std::uint64_t users = 20;     ///< who start a study, each as often; assumed

  friend bool operator==(const HyperbandModel&, const HyperbandModel&) = default;
};

/// Where the studies of the default model, one an hour, use about two thirds of the GPUs. Assumed.
inline constexpr std::string_view hyperband_cluster = "2x8";

/// The trials of one rung of a study.
struct HyperbandRung {
  std::uint32_t bracket = 0;  ///< s of Algorithm 1
  std::uint32_t trials = 0;   ///< n_i
  double run_s = 0;           ///< r_i

  friend bool operator==(const HyperbandRung&, const HyperbandRung&) = default;
};

/// The rungs of a study in their order: the first of a bracket has bracket 0, or another number than the one before.
std::vector<HyperbandRung> rungs_of_study(const HyperbandModel& model);

/// The parameters as written behind `hyperband{...}` and in files, with their ranges; the rows point into `model`.
FieldTable hyperband_fields(HyperbandModel& model);
/// The model that "eta=4,gpus=2" describes. Errors: not such a text, or as check_hyperband().
Result<HyperbandModel> hyperband_model(std::string_view settings);
/// Success, or the first thing wrong with the model, with its parameter.
Result<void> check_hyperband(const HyperbandModel& model);
/// Whether a JSON text says that it is a HyperbandModel.
bool is_hyperband(std::string_view json);
/// Reads the JSON text of a model, strictly. The result has passed check_hyperband().
Result<HyperbandModel> read_hyperband(std::string_view json, const std::string& file);
/// The JSON text of a model; read_hyperband() gives back an equal one.
std::string write_hyperband(const HyperbandModel& model);

/// Draws a trace from time 0 on. All jobs of a study are submitted at once; those of a rung wait for all jobs of the
/// rung before. `user` started the study, `group` is the study, `name` the trial. A shorter trace is the beginning of
/// a longer one. With an offered load, the gaps between studies are multiplied by one factor. Errors: options out of
/// range, a trace of more than 1e8 hours, a load of jobs that are all of one study, or a model that check_hyperband()
/// refuses.
Result<JobTable> generate_hyperband(const HyperbandModel& model, const SyntheticOptions& options);

}  // namespace gpusched
