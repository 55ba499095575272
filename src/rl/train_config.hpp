// SPDX-License-Identifier: Apache-2.0
/// What a training run is: trace, conditions, environment, windows, network, method. Like a Scenario, one table of
/// fields serves its file, its flags, the configuration that a run keeps and the JSON Schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/learn/env.hpp"
#include "gpusched/learn/window.hpp"
#include "src/base/field_table.hpp"
#include "src/conditions/condition_options.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

/// What the advantage of a step is measured against.
enum class Baseline : std::uint8_t {
  critic,       ///< generalised advantage estimation on the privileged critic (Schulman et al., 2016)
  group,        ///< return to go minus the mean of the group's other episodes at the same simulated time (Decima, 2019)
  both,         ///< the critic's advantage minus the group's mean at the same time
  self_critic,  ///< return to go minus the heuristic's in the same window at the same time (SCST, Rennie et al., 2017)
};
inline constexpr std::array<NamedValue<Baseline>, 4> baseline_names{{
    {"critic", Baseline::critic},
    {"group", Baseline::group},
    {"both", Baseline::both},
    {"self_critic", Baseline::self_critic},
}};

/// How rewards of windows of different load are made comparable.
enum class RewardScale : std::uint8_t {
  window,  ///< divided by what the heuristic gets in the same window: every window weighs alike
  mean,    ///< divided by the mean of that over the training windows: heavy windows weigh more, as in the metric
  root,    ///< divided by the geometric mean of the two
};
inline constexpr std::array<NamedValue<RewardScale>, 3> reward_scale_names{{
    {"window", RewardScale::window},
    {"mean", RewardScale::mean},
    {"root", RewardScale::root},
}};

struct PpoOptions {
  std::uint32_t iterations = 100;
  double time_limit_s = 0;          ///< stop after this wall time; 0 = none
  std::uint32_t windows = 4;        ///< arrival windows of an iteration
  std::uint32_t group = 4;          ///< episodes of each window
  std::uint32_t epochs = 4;         ///< passes over an iteration's steps
  std::uint32_t minibatch = 512;    ///< steps of the environment that one step of the learner is made from
  std::uint32_t piece = 4096;       ///< so many of them at once: gradients of pieces add up, memory does not
  bool resimulate = false;          ///< states are not kept, but simulated again when they are learned from
  double learning_rate = 1e-3;      ///< initial
  bool adapt_learning_rate = true;  ///< by desired_kl: times or over 1.5 (rsl_rl)
  double least_learning_rate = 1e-5, most_learning_rate = 1e-2;  ///< of the adapted rate
  double desired_kl = 0.01;
  double start_kl = 0;       ///< weight of the policy's KL divergence from the model that training began with
  double kl_stop = 0.05;     ///< the policy stays for the rest of an update once a minibatch shows it so far; 0 = never
  std::uint32_t anneal = 0;  ///< iterations over which the rate falls linearly to a hundredth; 0 = it does not
  double clip = 0.2;
  double entropy = 0.003;    ///< weight of entropy / log(number of choices)
  double value = 0.5;        ///< weight of the critic's loss
  double temperature = 1;    ///< logits are divided by it where actions are drawn and learned from
  double sampling_cost = 0;  ///< above 0: the temperature is sought below that, so that drawn actions lose only this
                             ///< share more than the best ones
  bool clip_value = false;
  double max_gradient_norm = 0.5;         ///< of the policy
  double max_critic_gradient_norm = 0.5;  ///< the critic is clipped apart: its gradient is larger by far at first
  double lambda = 0.97;                   ///< of GAE, for a span of lambda_time_s
  double lambda_time_s = 60;
  double mean_lifetime_s = 0;   ///< 1 / discount rate; 0 = no discount
  bool average_reward = false;  ///< differential returns: what the average reward a second would have brought is taken
                                ///< off (Decima, 2019)
  std::uint32_t horizon_jobs = 0;        ///< episodes of the first iteration end when so many scored jobs were
                                         ///< submitted; 0 = whole windows from the start
  std::uint32_t horizon_iterations = 0;  ///< after so many iterations episodes are whole windows
  Baseline baseline = Baseline::both;
  RewardScale reward_scale = RewardScale::root;
  std::uint32_t imitate_iterations = 0;  ///< first iterations that copy the teacher
  std::uint32_t critic_warm_up = 2;      ///< iterations, behind these, in which the critic alone learns
  Heuristic teacher = Heuristic::sjf;
  std::string teacher_model;              ///< folder of a trained model that is the teacher instead; empty = none
  std::uint32_t validate_every = 5;       ///< iterations between runs over the validation windows
  std::uint32_t validation_windows = 32;  ///< at most, evenly spaced; of every method
};

/// Windows made of a part's jobs instead of cut from it (training_windows.hpp).
struct ShuffleOptions {
  std::uint32_t windows = 0;  ///< so many of each of the parts train and validation; 0 = windows are cut
  double stretch = 0;         ///< arrivals are stretched by e^-stretch to e^stretch
};

/// How parameters are found.
enum class Method : std::uint8_t {
  ppo,     ///< by gradients, step by step; any network
  cma_es,  ///< by direct search over whole episodes; the networks index and rank
  es,      ///< by gradients estimated from whole episodes; the networks index and rank
  random,  ///< by random search over whole episodes; the networks index and rank
};
inline constexpr std::array<NamedValue<Method>, 4> method_names{{
    {"ppo", Method::ppo},
    {"cma_es", Method::cma_es},
    {"es", Method::es},
    {"random", Method::random},
}};

/// What a candidate's losses in its windows are made into.
enum class SearchObjective : std::uint8_t {
  mean,       ///< their mean: heavy windows decide
  geometric,  ///< their geometric mean: every window weighs alike
};
inline constexpr std::array<NamedValue<SearchObjective>, 2> search_objective_names{{
    {"mean", SearchObjective::mean},
    {"geometric", SearchObjective::geometric},
}};

/// Of the methods cma_es and es (direct_search.hpp).
struct SearchOptions {
  std::uint32_t generations = 300;
  double time_limit_s = 0;       ///< stop after this wall time; 0 = none
  std::uint32_t population = 0;  ///< candidates of a generation; 0 = CmaEsOptions' default, es: EsOptions' pairs
  std::uint32_t windows = 0;     ///< episodes of a candidate, drawn anew every generation, es: for every pair; 0 = 48,
                                 ///< es: 1
  double step = 0;               ///< standard deviation of every parameter, cma_es: the initial one; 0 = CmaEsOptions'
                                 ///< default, es: EsOptions'
  double learning_rate = 0.01;   ///< es
  double average = 0.9;          ///< weight that the running average of the centre keeps a generation
  std::vector<double> shrink = {1};  ///< shares of the way from the start to that average: the model goes the best
  SearchObjective objective = SearchObjective::geometric;
  std::uint32_t validate_every = 10;  ///< generations between runs over the validation windows
};

/// Figures of an episode's scored jobs that constraints may bound, each as the metric of its name.
enum BoundedFigure : std::uint8_t {
  bounded_avg_jct,
  bounded_avg_wait,
  bounded_p99_wait,
  bounded_max_wait,
  bounded_slowdown,
  bounded_energy,  ///< this and what follows need a power model
  bounded_carbon,
  bounded_cost,
  bounded_peak,
  bounded_figures,
};
/// One value for each BoundedFigure.
using BoundedFigures = std::array<double, bounded_figures>;
inline constexpr std::array<std::string_view, bounded_figures> bounded_figure_names{
    "avg_jct_s",  "avg_wait_s", "p99_wait_s", "max_wait_s", "avg_bounded_slowdown",
    "energy_kwh", "carbon_kg",  "cost_usd",   "peak_kw"};

/// What the methods cma_es and es may not make others pay (constraints.hpp).
struct ConstraintOptions {
  std::string reference;  ///< a policy, as --policy takes it
  BoundedFigures most{};  ///< so many times the reference's figure; 0 = not bounded
  double margin = 0;      ///< the search aims so far below each limit, as a share of it
  double multiplier = 1;  ///< initial weight of a figure's excess in the loss
  double rate = 10;       ///< a multiplier rises by this times the excess a generation; 0 = it stays: a penalty
};

struct TrainConfig {
  std::string trace;  ///< a file or synthetic:NAME
  std::string format = "auto";
  std::string columns, where, qos;  ///< as ReadOptions takes them
  bool drop_bad_rows = false, backlog = false;
  std::string cluster;
  ConditionOptions conditions = {};  ///< of every window; learn() puts what they hold into `env`
  EnvOptions env = {};               ///< without the conditions and placement
  WindowOptions windows = {};
  ShuffleOptions shuffle = {};
  double empty_share = 0;             ///< of the windows that begin on an empty cluster, without their warm-up jobs
  std::uint32_t validation_jobs = 0;  ///< jobs of a validation window, which then begins on an empty cluster; 0 = as
                                      ///< the training windows
  std::vector<double> cluster_scales = {1};  ///< each episode is on the cluster times one of these
  NetworkSpec network = {};
  std::string init;  ///< folder of a model that training starts from; empty = untrained
  Method method = Method::ppo;
  PpoOptions ppo = {};
  SearchOptions search = {};
  ConstraintOptions constraints = {};
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;    ///< environment threads, 0 = one for each processor; changes no result
  std::string device = "auto";  ///< auto, cpu or cuda
  bool test_at_end = false;     ///< compare with the fixed orders on the test part; every look at it counts
};

/// Windows of a trace of so many jobs that nobody gave windows for: enough of them for a verdict in the test part, each
/// of at most 1,000 jobs after as many that fill the cluster.
WindowOptions default_windows(std::uint32_t trace_jobs);

/// What `gpusched train` without a configuration does: direct search for an order that preempts, on a synthetic trace.
TrainConfig default_train_config();

/// Every field of `config`, in the order of a file. The pointers live as long as `config`.
FieldTable train_fields(TrainConfig& config);

/// Sets what a JSON text gives, or the "config" of a manifest, and leaves the rest; gives the document back. Errors: as
/// read_fields(); a key of an earlier version, with its present name.
Result<nlohmann::ordered_json> read_train_fields(TrainConfig& config, std::string_view text, const std::string& file);

/// What cannot be seen field by field, and what follows from several fields is set. Error: values that exclude each
/// other; its field is a path in train_fields().
Result<void> check_train_config(TrainConfig& config);

/// Both together. `trace`, unless empty, stands in place of the text's, which may be missing then.
Result<TrainConfig> read_train_config(std::string_view text, const std::string& file, const std::string& trace = {});

/// The folder of a model that is named as --policy names it (rl:FOLDER) or by its folder.
std::string model_folder(const std::string& name);

/// The effective configuration as JSON that read_train_config() takes.
std::string train_config_json(const TrainConfig& config);

/// The JSON Schema (draft 2020-12) of such files; docs/train.schema.json is this text.
std::string train_schema();

}  // namespace gpusched
