// SPDX-License-Identifier: Apache-2.0
#include "src/rl/train_config.hpp"

#include <algorithm>
#include <utility>

#include "src/base/json_fields.hpp"
#include "src/base/parallel.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/learned/agent_fields.hpp"
#include "src/sim/run_fields.hpp"

namespace gpusched {
namespace {

constexpr double most_count = 4e9;

// A row without a flag.
Field row(std::string path, std::string meaning, FieldTarget target) {
  return {.path = std::move(path), .flag = "", .meaning = std::move(meaning), .target = std::move(target)};
}
Field row(std::string path, std::string meaning, FieldTarget target, double least, double most) {
  Field field = row(std::move(path), std::move(meaning), std::move(target));
  field.range = Field::Range{least, most};
  return field;
}
Field in_unit(Field field, std::string unit) {
  field.unit = std::move(unit);
  return field;
}

FieldTable input_rows(TrainConfig& c) {
  FieldTable fields{
      {"trace.path", "--trace", "trace file, - for standard input, or synthetic:NAME", &c.trace},
      {"trace.format", "--format", "format of the trace; auto looks at its first lines", &c.format},
      {"trace.columns", "--columns", "columns of a csv: submit=NAME[:UNIT],gpus=NAME,duration=NAME,...", &c.columns},
  };
  append_fields(fields, reading_fields(c));
  append_fields(fields,
                {{"cluster", "--cluster",
                  "NAME, FILE, NODESxGPUS[:TYPE] or GPUS; by default what the trace states; jobs larger than it "
                  "are left out",
                  &c.cluster}});
  return fields;
}

FieldTable env_rows(EnvOptions& env) {
  FieldTable fields = agenda_fields(env.agenda, "env.", 1024);
  append_fields(fields,
                {row("env.one_event_a_step",
                     "the events of an instant come one at a time, with a decision between any two, as in RLScheduler",
                     &env.engine.one_event_a_step)});
  for (std::size_t term = 0; term < reward_terms; ++term) {
    fields.push_back(row("env.weights." + std::string(reward_names[term]),
                         "weight of this term in the reward (environment.md)", &env.weights[term], 0, 1e9));
  }
  append_fields(fields,
                {in_unit(row("env.idle_gpu_w", "of an idle GPU, for the term energy", &env.idle_gpu_w, 0, 1e5), "W"),
                 in_unit(row("env.busy_gpu_w", "of a GPU that a job holds", &env.busy_gpu_w, 0, 1e5), "W")});
  return fields;
}

FieldTable window_rows(TrainConfig& c) {
  WindowOptions& windows = c.windows;
  return {
      row("windows.jobs", "scored jobs of a window", &windows.jobs, 1, most_count),
      row("windows.warm_up_jobs", "jobs before them that fill the cluster", &windows.warm_up_jobs, 0, most_count),
      row("windows.empty_share", "share of the windows that begin on an empty cluster, without their warm-up jobs",
          &c.empty_share, 0, 1),
      row("windows.validation_jobs",
          "jobs of a validation window, which then begins on an empty cluster, side by side; 0: as the training "
          "windows",
          &c.validation_jobs, 0, most_count),
      row("windows.stride", "jobs between the starts of windows", &windows.stride, 1, most_count),
      row("windows.first_fraction", "share of the trace's jobs that is left out at its start", &windows.first_fraction,
          0, 1),
      row("windows.train_fraction", "of the jobs used", &windows.train_fraction, 0, 1),
      row("windows.validation_fraction", "the next ones; the rest is the test part", &windows.validation_fraction, 0,
          1),
      row("windows.arrival_scale", "factor on the time between arrivals", &windows.arrival_scale, 1e-6, 1e6),
      row("windows.truncate", "end a window at its last submission", &windows.truncate),
      row("windows.history", "predictions know the jobs that had ended before the window, in the verdict too",
          &windows.history),
      row("windows.shuffled", "0: windows are cut from the trace; else so many shuffled ones of each part",
          &c.shuffle.windows, 0, 1e6),
      row("windows.stretch",
          "the time between their arrivals is multiplied by a factor drawn between e^-stretch and e^stretch",
          &c.shuffle.stretch, 0, 3),
      row("windows.cluster_scales",
          "episodes are on the cluster times one of these: whole nodes, or GPUs of a cluster of one node",
          &c.cluster_scales, 0.01, 100),
  };
}

FieldTable search_rows(SearchOptions& search) {
  return {
      row("search.generations", "of a direct search", &search.generations, 1, most_count),
      row("search.time_limit_s", "stop after this wall time; 0: none", &search.time_limit_s, 0, 1e9),
      row("search.population", "candidates of a generation; 0: cma_es 4 + 3 ln parameters, es 1024, random 16",
          &search.population, 0, 1e6),
      row("search.windows", "episodes of a candidate; 0: cma_es and random 48, es 1", &search.windows, 0, 1e6),
      row("search.step", "standard deviation of every parameter; 0: cma_es 0.3 initially, es 0.05, random 0.1",
          &search.step, 0, 1e6),
      row("search.learning_rate", "of es", &search.learning_rate, 0, 1e6),
      row("search.average", "weight that the running average of the centre keeps in a generation", &search.average, 0,
          0.9999),
      row("search.shrink", "shares of the way from the start to that average; each validation takes the best",
          &search.shrink, 0.01, 1),
      word_field("search.objective", "",
                 "mean of a candidate's losses: geometric, all windows count alike, or arithmetic, by their load",
                 search.objective, search_objective_names),
      row("search.validate_every", "generations between validations", &search.validate_every, 1, most_count),
  };
}

// An order's name, or rl:FOLDER.
TextTarget teacher_of(PpoOptions& ppo) {
  return {.get =
              [&ppo] {
                return ppo.teacher_model.empty() ? std::string(name_of(heuristic_names, ppo.teacher))
                                                 : "rl:" + ppo.teacher_model;
              },
          .set =
              [&ppo](std::string_view text) {
                const bool is_model = text.size() > 3 && text.starts_with("rl:");
                const auto order = value_from_name(heuristic_names, text);
                if (!is_model && (!order || contradiction({.heuristic = *order}))) return false;
                ppo.teacher_model = is_model ? model_folder(std::string(text)) : "";
                if (order) ppo.teacher = *order;
                return true;
              }};
}

FieldTable ppo_rows(PpoOptions& ppo) {
  Field teacher =
      row("ppo.teacher", "what is imitated: fcfs, sjf, saf or f1, or rl:FOLDER, a trained model", teacher_of(ppo));
  teacher.expected = "fcfs, sjf, saf, f1 or rl:FOLDER";
  return {
      row("ppo.iterations", "of PPO", &ppo.iterations, 1, most_count),
      row("ppo.time_limit_s", "stop after this wall time; 0: none", &ppo.time_limit_s, 0, 1e9),
      row("ppo.windows", "windows of an iteration", &ppo.windows, 1, 65536),
      row("ppo.group", "episodes on each of them", &ppo.group, 1, 4096),
      row("ppo.epochs", "passes over an iteration's steps", &ppo.epochs, 1, 1000),
      row("ppo.minibatch", "steps of the environment in a step of the learner", &ppo.minibatch, 1, 1e7),
      row("ppo.piece", "so many of them in memory at once", &ppo.piece, 1, 1e7),
      row("ppo.resimulate", "keep the actions alone, and simulate the states again when the learner needs them",
          &ppo.resimulate),
      row("ppo.learning_rate", "initial", &ppo.learning_rate, 1e-9, 1),
      row("ppo.adapt_learning_rate", "times or over 1.5, so that an update's KL divergence stays near desired_kl",
          &ppo.adapt_learning_rate),
      row("ppo.least_learning_rate", "of the adapted rate", &ppo.least_learning_rate, 1e-9, 1),
      row("ppo.most_learning_rate", "of the adapted rate", &ppo.most_learning_rate, 1e-9, 1),
      row("ppo.desired_kl", "of an update", &ppo.desired_kl, 1e-6, 1),
      row("ppo.start_kl", "weight of the KL divergence from the policy that training began with; 0: no penalty",
          &ppo.start_kl, 0, 1e6),
      row("ppo.kl_stop", "a minibatch of a larger KL divergence stops the policy's update; 0: never", &ppo.kl_stop, 0,
          1e6),
      row("ppo.anneal", "iterations over which the rate falls linearly to a hundredth; 0: it does not", &ppo.anneal, 0,
          most_count),
      row("ppo.clip", "of the ratio of probabilities", &ppo.clip, 1e-3, 1),
      row("ppo.entropy", "weight of the entropy, as a share of the most it can be", &ppo.entropy, 0, 10),
      row("ppo.value", "weight of the critic's loss", &ppo.value, 0, 10),
      row("ppo.temperature", "logits are divided by it where actions are drawn and learned from", &ppo.temperature,
          1e-3, 1e3),
      row("ppo.sampling_cost",
          "above 0: the temperature is sought at which drawn actions lose at most this share more than the best ones",
          &ppo.sampling_cost, 0, 1e3),
      row("ppo.clip_value", "clip the critic's change too", &ppo.clip_value),
      row("ppo.max_gradient_norm", "of the policy", &ppo.max_gradient_norm, 1e-6, 1e6),
      row("ppo.max_critic_gradient_norm", "of the critic, clipped apart", &ppo.max_critic_gradient_norm, 1e-6, 1e6),
      row("ppo.lambda", "of generalised advantage estimation, for a span of lambda_time_s", &ppo.lambda, 0, 1),
      row("ppo.lambda_time_s", "of simulated time", &ppo.lambda_time_s, 1e-6, 1e9),
      row("ppo.mean_lifetime_s", "1 / discount rate; 0: no discount", &ppo.mean_lifetime_s, 0, 1e12),
      row("ppo.average_reward", "differential returns: the average reward a second is taken off (Decima)",
          &ppo.average_reward),
      row("ppo.horizon_jobs", "the first iteration's episodes end when so many scored jobs were submitted; 0: whole",
          &ppo.horizon_jobs, 0, most_count),
      row("ppo.horizon_iterations", "iterations until episodes are whole windows", &ppo.horizon_iterations, 0,
          most_count),
      word_field(
          "ppo.baseline", "",
          "what an advantage is measured against: the critic, the mean of the group's other episodes at the same "
          "time, both, or the heuristic's episode in the same window",
          ppo.baseline, baseline_names),
      word_field("ppo.reward_scale", "", "windows count alike (window), by their load (mean), or in between (root)",
                 ppo.reward_scale, reward_scale_names),
      row("ppo.imitate_iterations", "first iterations that imitate the teacher", &ppo.imitate_iterations, 0,
          most_count),
      row("ppo.critic_warm_up", "iterations behind these in which the critic alone learns", &ppo.critic_warm_up, 0,
          most_count),
      std::move(teacher),
      row("ppo.validate_every", "iterations between validations", &ppo.validate_every, 1, most_count),
      row("ppo.validation_windows", "at most, evenly spaced; of every method", &ppo.validation_windows, 1, most_count),
  };
}

FieldTable constraint_rows(ConstraintOptions& constraints) {
  FieldTable fields{row("constraints.reference",
                        "a policy, as --policy takes it: direct search may not make other figures worse than its",
                        &constraints.reference)};
  for (std::size_t figure = 0; figure < bounded_figures; ++figure) {
    fields.push_back(row("constraints." + std::string(bounded_figure_names[figure]),
                         "most of this figure, as a multiple of the reference's; 0: not bounded",
                         &constraints.most[figure], 0, 1e6));
  }
  append_fields(fields, {row("constraints.margin", "the search aims so far below each limit, as a share of it",
                             &constraints.margin, 0, 1),
                         row("constraints.multiplier", "initial weight of a figure's excess over its limit",
                             &constraints.multiplier, 0, 1e6),
                         row("constraints.rate", "by how much of the excess it rises a generation; 0: it stays",
                             &constraints.rate, 0, 1e6)});
  return fields;
}

FieldTable own_rows(TrainConfig& c) {
  return {
      {"init", "--init", "folder of a trained model to start from, or rl:FOLDER; empty: untrained",
       TextTarget{.get = [&c] { return c.init; },
                  .set =
                      [&c](std::string_view text) {
                        c.init = model_folder(std::string(text));
                        return true;
                      }}},
      {"seed", "--seed", "of the training", &c.seed},
      {.path = "threads",
       .flag = "--threads",
       .meaning = "threads that play episodes; 0: one for each processor; changes no result",
       .target = &c.threads,
       .range = Field::Range{0, most_threads}},
      {"device", "--device", "where PPO learns", &c.device, {"auto", "cpu", "cuda"}},
      {"test_at_end", "--test-at-end",
       "compare with plain policies on the test part at the end; each look at it makes it less independent",
       &c.test_at_end},
  };
}

// ---- what cannot be seen field by field ----

Result<void> check_ppo(const PpoOptions& ppo) {
  if (ppo.baseline == Baseline::group && ppo.group < 2) {
    return bad_option("ppo.group", "expected at least 2 for a group baseline");
  }
  if (ppo.least_learning_rate > ppo.most_learning_rate) {
    return bad_option("ppo.least_learning_rate", "expected at most most_learning_rate");
  }
  if (ppo.anneal > 0 && ppo.adapt_learning_rate) {
    return bad_option("ppo.anneal",
                      "expected 0 unless adapt_learning_rate is false: only one of them can set the rate");
  }
  if (ppo.average_reward && ppo.mean_lifetime_s > 0) {
    return bad_option("ppo.average_reward",
                      "expected false with a mean_lifetime_s: differential returns are not discounted");
  }
  if ((ppo.horizon_jobs == 0) != (ppo.horizon_iterations == 0)) {
    return bad_option("ppo.horizon_jobs", "expected both of horizon_jobs and horizon_iterations, or none");
  }
  return {};
}

Result<void> check_search(const TrainConfig& config) {
  const SearchOptions& search = config.search;
  if (search.population == 1) return bad_option("search.population", "expected 0 or at least 2");
  if (search.step > 0 && search.step < 1e-6) {
    return bad_option("search.step", "expected 0 or a number from 1e-06 to 1000000");
  }
  if (config.method == Method::es && search.population % 2 != 0) {
    return bad_option("search.population", "expected an even number: method es draws candidates in pairs");
  }
  return {};
}

Result<void> check_constraints(const TrainConfig& config) {
  const ConstraintOptions& constraints = config.constraints;
  for (std::size_t figure = bounded_energy; figure < bounded_figures; ++figure) {
    if (constraints.most[figure] == 0 || !config.conditions.power.empty()) continue;
    return bad_option("constraints." + std::string(bounded_figure_names[figure]),
                      "expected 0 without power, whose file says what is drawn");
  }
  const bool bounds = constraints.most != BoundedFigures{}, given = !constraints.reference.empty();
  if (bounds && !given) {
    return bad_option("constraints.reference", "is missing: a limit is a multiple of a policy's figure");
  }
  if (!bounds && given) {
    return bad_option("constraints.reference", "bounds nothing without a limit, such as \"avg_jct_s\": 1");
  }
  if (!given) return {};
  if (config.method == Method::ppo) {
    return bad_option("constraints.reference", "expected none with method ppo, which cannot keep limits");
  }
  if (config.cluster_scales.size() > 1) {
    return bad_option("constraints.reference",
                      "expected none with several windows/cluster_scales: its limits are of one cluster");
  }
  if (config.validation_jobs > 0 && config.empty_share > 0 && config.empty_share < 1) {
    return bad_option("windows.validation_jobs", "expected 0: with an empty_share limits hold in two kinds of windows");
  }
  return {};
}

Result<void> check_network(const TrainConfig& config) {
  if (const auto error = network_contradiction(config.network)) {
    return bad_option("network." + error->field, error->message);
  }
  if (!matches(config.network.kind, config.env.agenda.mode)) {
    return bad_option("network.kind", "the network rank goes with env/mode preempt, and no other does");
  }
  if (config.method == Method::ppo && config.network.hidden > 0) {
    return bad_option("network.hidden", "expected 0 with method ppo, which does not learn them");
  }
  return {};
}

Result<void> check_steering(const TrainConfig& config) {
  const bool steers = config.network.steers();
  const PpoOptions& ppo = config.ppo;
  if (config.method != Method::ppo) {
    if (steers) return bad_option("network.hold_s", "hold_s and hold_jobs go with method ppo");
    return {};
  }
  if (config.env.agenda.mode == ActionMode::preempt && !steers) {
    return bad_option(
        "method",
        "ppo learns the order of mode preempt only by steering: expected a network/hold_s or hold_jobs, or "
        "cma_es or es");
  }
  if (!steers) return {};
  if (ppo.imitate_iterations > 0) {
    return bad_option("ppo.imitate_iterations",
                      "expected 0 with an agent that steers: a teacher has no weights to imitate");
  }
  if (ppo.baseline == Baseline::self_critic) {
    return bad_option("ppo.baseline", "self_critic does not go with an agent that steers");
  }
  if (ppo.temperature != 1 || ppo.sampling_cost > 0) {
    return bad_option(ppo.temperature != 1 ? "ppo.temperature" : "ppo.sampling_cost",
                      "expected 1 and 0 with an agent that steers, which draws weights by network/deviation");
  }
  if (ppo.resimulate) {
    return bad_option("ppo.resimulate", "expected false with an agent that steers, whose few states are kept");
  }
  return {};
}

Result<void> check_weights(const TrainConfig& config) {
  const RewardVector& weights = config.env.weights;
  if (weights == RewardVector{}) {
    return bad_option("env.weights", "expected a weight above 0: the reward is 0 everywhere");
  }
  for (const RewardTerm term : {reward_carbon, reward_money, reward_peak}) {
    if (weights[term] == 0 || !config.conditions.power.empty()) continue;
    return bad_option("env.weights." + std::string(reward_names[term]),
                      "expected 0 without power: what it weighs is 0 then");
  }
  return {};
}

// What windows of many times, or made of jobs in another order, cannot have.
Result<void> check_conditions(const TrainConfig& config) {
  const ConditionOptions& conditions = config.conditions;
  if (auto good = check_condition_options(conditions); !good) return good;
  if (config.network.places && config.method == Method::ppo && !config.network.steers()) {
    return bad_option(
        "method",
        "ppo learns the network index with env/node_speeds only by steering: expected a network/hold_s or "
        "hold_jobs, or cma_es or es, or another network");
  }
  const bool reads_signals = config.env.agenda.signals;
  if (reads_signals && conditions.power.empty()) return bad_option("env.signals", "expected false without power");
  if (reads_signals && config.network.kind != NetworkKind::index) {
    return bad_option("env.signals", "expected false with a network other than index, which does not read them");
  }
  if (reads_signals && config.method == Method::ppo && !config.network.steers()) {
    return bad_option("method",
                      "ppo learns the network index with env/signals only by steering: expected a network/hold_s or "
                      "hold_jobs, or cma_es or es");
  }
  const std::pair<const char*, bool> by_job[] = {{"fidelity.throughputs", !conditions.speeds.throughputs.empty()},
                                                 {"fidelity.profiles", !conditions.speeds.profiles.empty()},
                                                 {"fidelity.communication", !conditions.speeds.communication.empty()},
                                                 {"stages", !conditions.stages.empty()},
                                                 {"elastic", !conditions.elastic.empty()},
                                                 {"changes", !conditions.changes.empty()},
                                                 {"power", !conditions.power.empty()}};
  for (const auto& [path, given] : by_job) {
    if (given && config.shuffle.windows > 0) {
      return bad_option("windows.shuffled", "expected 0 with " + std::string(path) + ", which is of the trace's jobs");
    }
  }
  if (!conditions.changes.empty() && config.windows.arrival_scale != 1) {
    return bad_option("windows.arrival_scale", "expected 1 with changes, whose times it would not move");
  }
  const std::pair<const char*, bool> by_node[] = {
      {"failures, which are of one cluster's nodes", !conditions.failures.empty()},
      {"changes, whose sizes fit one cluster", !conditions.changes.empty()},
      {"power, which is of one cluster's nodes", !conditions.power.empty()}};
  for (const auto& [what, given] : by_node) {
    if (given && config.cluster_scales != std::vector<double>{1}) {
      return bad_option("windows.cluster_scales", "expected [1] with " + std::string(what));
    }
  }
  return {};
}

}  // namespace

std::string model_folder(const std::string& name) { return name.starts_with("rl:") ? name.substr(3) : name; }

WindowOptions default_windows(std::uint32_t trace_jobs) {
  const std::uint32_t jobs = std::clamp(trace_jobs / 100, 10u, 1000u);
  return {.jobs = jobs,
          .warm_up_jobs = jobs,
          .stride = std::max(1u, jobs / 4),
          .train_fraction = 0.3,
          .validation_fraction = 0.1,
          .history = false};
}

TrainConfig default_train_config() {
  TrainConfig config;
  // So long that the test part has windows enough for a verdict, on so few GPUs that jobs queue: without a queue there
  // is nothing to learn. The agent starts as the order of the best plain policy that knows no run times.
  constexpr std::uint32_t jobs = 100'000;
  config.trace = "synthetic:philly:" + std::to_string(jobs);
  config.cluster = "16x8";
  config.env.agenda = {.mode = ActionMode::preempt, .heuristic = Heuristic::las};
  config.conditions.preemption.restart = whole_seconds(60);
  config.env.weights = {};
  config.env.weights[reward_jct] = 1;
  config.windows = default_windows(jobs);
  config.network = {.kind = NetworkKind::rank, .alpha = 1};
  config.method = Method::cma_es;
  config.search = {.generations = 30, .windows = 12, .validate_every = 5};
  config.test_at_end = true;
  return config;
}

FieldTable train_fields(TrainConfig& config) {
  FieldTable fields = input_rows(config);
  append_fields(fields, condition_fields(config.conditions, "train"));
  append_fields(fields, env_rows(config.env));
  append_fields(fields, window_rows(config));
  append_fields(fields, network_fields(config.network, "network."));
  append_fields(fields, {word_field("method", "--method",
                                    "ppo: by gradients, any network; cma_es, es, random: direct search over whole "
                                    "episodes, networks index and rank",
                                    config.method, method_names)});
  append_fields(fields, search_rows(config.search));
  append_fields(fields, ppo_rows(config.ppo));
  append_fields(fields, constraint_rows(config.constraints));
  append_fields(fields, own_rows(config));
  return fields;
}

Result<Json> read_train_fields(TrainConfig& config, std::string_view text, const std::string& file) {
  std::vector<MovedKey> moved = moved_training_conditions();
  moved.push_back({"trace_format", "trace.format"});
  moved.push_back({"trace_columns", "trace.columns"});
  moved.push_back({"trace_where", "trace.where"});
  moved.push_back({"drop_bad_rows", "trace.drop_bad_rows"});
  return read_fields(train_fields(config), text, file, moved);
}

Result<void> check_train_config(TrainConfig& config) {
  if (config.trace.empty()) return bad_option("trace.path", "is missing");
  if (const auto error = contradiction(config.env.agenda)) return bad_option("env.mode", std::string(*error));
  auto done = check_network(config);
  config.network = for_agenda(config.network, config.env.agenda);
  if (done) done = check_ppo(config.ppo);
  if (done) done = check_search(config);
  if (done) done = check_constraints(config);
  if (done) done = check_steering(config);
  if (done) done = check_conditions(config);
  if (done) done = check_weights(config);
  if (config.ppo.mean_lifetime_s > 0) config.env.discount_per_s = 1 / config.ppo.mean_lifetime_s;
  return done;
}

Result<TrainConfig> read_train_config(std::string_view text, const std::string& file, const std::string& trace) {
  TrainConfig config;
  const auto json = read_train_fields(config, text, file);
  if (!json) return Unexpected{json.error()};
  if (!trace.empty()) config.trace = trace;
  if (auto checked = check_train_config(config); !checked) {
    const FieldTable fields = train_fields(config);
    FieldSources sources{.file = file};
    for (const Field& field : fields) sources.from_file.insert(field.path);
    return Unexpected{named_error(checked.error(), fields, sources)};
  }
  return config;
}

std::string train_config_json(const TrainConfig& config) {
  TrainConfig copy = config;
  return fields_json(train_fields(copy), true);
}

std::string train_schema() {
  TrainConfig defaults;
  return fields_schema(train_fields(defaults), "gpusched training",
                       "What `gpusched train --config FILE` takes. Every key but trace is optional.");
}

}  // namespace gpusched
