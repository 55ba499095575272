// SPDX-License-Identifier: Apache-2.0
#include "src/rl/train_config.hpp"

#include <algorithm>

#include "src/base/json_fields.hpp"
#include "src/base/parallel.hpp"
#include "src/policies/learned/network_config.hpp"
#include "src/sim/failures.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {
namespace {

constexpr double most_count = 4e9;

void read_periodic_checkpoints(JsonFields& fields, PreemptionCost& cost) {
  double interval_s = 0;
  double write_s = 0;
  fields.read("checkpoint_interval_s", interval_s, 0, 1e9);
  fields.read("checkpoint_write_s", write_s, 0, 1e9);
  fields.read_word("checkpoint_rule", cost.rule, checkpoint_rule_names);
  cost.checkpoint_interval = from_seconds(interval_s);
  cost.periodic_checkpoint = from_seconds(write_s);
}

void read_env(JsonFields& fields, TrainConfig& config) {
  EnvOptions& env = config.env;
  AgendaOptions& agenda = env.agenda;
  double starvation_s = 0;
  double checkpoint_s = 0;
  double restart_s = 0;
  std::string placement;
  fields.read_word("mode", agenda.mode, action_mode_names);
  fields.read_word("knowledge", agenda.knowledge, runtime_knowledge_names);
  fields.read_word("heuristic", agenda.heuristic, heuristic_names);
  fields.read("max_jobs", agenda.max_jobs, 4, 1024);
  fields.read("choose_nodes", agenda.choose_nodes);
  fields.read("node_speeds", agenda.node_speeds);
  fields.read("sc20_backfill", agenda.sc20_backfill);
  fields.read("starvation_s", starvation_s, 0, 1e9);
  if (starvation_s > 0) agenda.starvation = from_seconds(starvation_s);
  fields.read("placement", placement);
  config.count_gpus_only = placement == count_placement;
  if (!placement.empty() && !config.count_gpus_only) {
    if (const auto rule = placement_from_name(placement)) {
      env.engine.placement = *rule;
    } else {
      fields.fail("placement", "expected one of " + joined(placement_words(), "|"));
    }
  }
  fields.read("one_event_a_step", env.engine.one_event_a_step);
  fields.read("checkpoint_cost_s", checkpoint_s, 0, 1e9);
  fields.read("restart_cost_s", restart_s, 0, 1e9);
  env.engine.preemption = {.checkpoint = from_seconds(checkpoint_s), .restart = from_seconds(restart_s)};
  read_periodic_checkpoints(fields, env.engine.preemption);
  fields.read_object("weights", [&](JsonFields& weights) {
    for (std::size_t term = 0; term < reward_terms; ++term) {
      weights.read(std::string(reward_names[term]), env.weights[term], 0, 1e9);
    }
  });
  fields.read("idle_gpu_w", env.idle_gpu_w, 0, 1e5);
  fields.read("busy_gpu_w", env.busy_gpu_w, 0, 1e5);
  if (const auto wrong = contradiction(agenda)) fields.fail("mode", std::string(*wrong));
}

void read_windows(JsonFields& fields, TrainConfig& config) {
  WindowOptions& windows = config.windows;
  ShuffleOptions& shuffle = config.shuffle;
  fields.read("jobs", windows.jobs, 1, most_count);
  fields.read("warm_up_jobs", windows.warm_up_jobs, 0, most_count);
  fields.read("empty_share", config.empty_share, 0, 1);
  fields.read("validation_jobs", config.validation_jobs, 0, most_count);
  fields.read("stride", windows.stride, 1, most_count);
  fields.read("first_fraction", windows.first_fraction, 0, 1);
  fields.read("train_fraction", windows.train_fraction, 0, 1);
  fields.read("validation_fraction", windows.validation_fraction, 0, 1);
  fields.read("arrival_scale", windows.arrival_scale, 1e-6, 1e6);
  fields.read("truncate", windows.truncate);
  fields.read("history", windows.history);
  fields.read("shuffled", shuffle.windows, 0, 1e6);
  fields.read("stretch", shuffle.stretch, 0, 3);
  fields.read("cluster_scales", config.cluster_scales, 0);
  const auto is_scale = [](double scale) { return scale >= 0.01 && scale <= 100; };
  if (config.cluster_scales.empty() ||
      !std::all_of(config.cluster_scales.begin(), config.cluster_scales.end(), is_scale)) {
    fields.fail("cluster_scales", "expected a list of numbers from 0.01 to 100");
  }
}

// An order's name, or rl:FOLDER.
void read_teacher(JsonFields& fields, PpoOptions& ppo) {
  std::string teacher(name_of(heuristic_names, ppo.teacher));
  fields.read("teacher", teacher);
  if (teacher.size() > 3 && teacher.starts_with("rl:")) {
    ppo.teacher_model = model_folder(teacher);
  } else if (const auto order = value_from_name(heuristic_names, teacher)) {
    ppo.teacher = *order;
  } else {
    fields.fail("teacher", "expected one of fcfs|sjf|saf|f1|rl:FOLDER");
  }
}

void read_ppo(JsonFields& fields, PpoOptions& ppo) {
  fields.read("iterations", ppo.iterations, 1, most_count);
  fields.read("time_limit_s", ppo.time_limit_s, 0, 1e9);
  fields.read("windows", ppo.windows, 1, 65536);
  fields.read("group", ppo.group, 1, 4096);
  fields.read("epochs", ppo.epochs, 1, 1000);
  fields.read("minibatch", ppo.minibatch, 1, 1e7);
  fields.read("piece", ppo.piece, 1, 1e7);
  fields.read("resimulate", ppo.resimulate);
  fields.read("learning_rate", ppo.learning_rate, 1e-9, 1);
  fields.read("adapt_learning_rate", ppo.adapt_learning_rate);
  fields.read("least_learning_rate", ppo.least_learning_rate, 1e-9, 1);
  fields.read("most_learning_rate", ppo.most_learning_rate, 1e-9, 1);
  fields.read("desired_kl", ppo.desired_kl, 1e-6, 1);
  fields.read("start_kl", ppo.start_kl, 0, 1e6);
  fields.read("kl_stop", ppo.kl_stop, 0, 1e6);
  fields.read("anneal", ppo.anneal, 0, most_count);
  fields.read("clip", ppo.clip, 1e-3, 1);
  fields.read("entropy", ppo.entropy, 0, 10);
  fields.read("value", ppo.value, 0, 10);
  fields.read("temperature", ppo.temperature, 1e-3, 1e3);
  fields.read("sampling_cost", ppo.sampling_cost, 0, 1e3);
  fields.read("clip_value", ppo.clip_value);
  fields.read("max_gradient_norm", ppo.max_gradient_norm, 1e-6, 1e6);
  fields.read("max_critic_gradient_norm", ppo.max_critic_gradient_norm, 1e-6, 1e6);
  fields.read("lambda", ppo.lambda, 0, 1);
  fields.read("lambda_time_s", ppo.lambda_time_s, 1e-6, 1e9);
  fields.read("mean_lifetime_s", ppo.mean_lifetime_s, 0, 1e12);
  fields.read("average_reward", ppo.average_reward);
  fields.read("horizon_jobs", ppo.horizon_jobs, 0, most_count);
  fields.read("horizon_iterations", ppo.horizon_iterations, 0, most_count);
  fields.read_word("baseline", ppo.baseline, baseline_names);
  fields.read_word("reward_scale", ppo.reward_scale, reward_scale_names);
  fields.read("imitate_iterations", ppo.imitate_iterations, 0, most_count);
  fields.read("critic_warm_up", ppo.critic_warm_up, 0, most_count);
  read_teacher(fields, ppo);
  if (contradiction({.heuristic = ppo.teacher}))
    fields.fail("teacher", "las, srtf and gittins rank running jobs: no teachers");
  fields.read("validate_every", ppo.validate_every, 1, most_count);
  fields.read("validation_windows", ppo.validation_windows, 1, most_count);
  if (ppo.baseline == Baseline::group && ppo.group < 2)
    fields.fail("group", "expected at least 2 for a group baseline");
  if (ppo.least_learning_rate > ppo.most_learning_rate)
    fields.fail("least_learning_rate", "expected at most most_learning_rate");
  if (ppo.anneal > 0 && ppo.adapt_learning_rate)
    fields.fail("anneal", "expected 0 unless adapt_learning_rate is false: only one of them can set the rate");
  if (ppo.average_reward && ppo.mean_lifetime_s > 0)
    fields.fail("average_reward", "expected false with a mean_lifetime_s: differential returns are not discounted");
  if ((ppo.horizon_jobs == 0) != (ppo.horizon_iterations == 0))
    fields.fail("horizon_jobs", "expected both of horizon_jobs and horizon_iterations, or none");
}

void read_search(JsonFields& fields, SearchOptions& search) {
  fields.read("generations", search.generations, 1, most_count);
  fields.read("time_limit_s", search.time_limit_s, 0, 1e9);
  fields.read("population", search.population, 0, 1e6);
  fields.read("windows", search.windows, 0, 1e6);
  fields.read("step", search.step, 0, 1e6);
  fields.read("learning_rate", search.learning_rate, 0, 1e6);
  fields.read("average", search.average, 0, 0.9999);
  fields.read_one_or_more("shrink", search.shrink);
  const auto is_share = [](double share) { return share >= 0.01 && share <= 1; };
  if (search.shrink.empty() || !std::all_of(search.shrink.begin(), search.shrink.end(), is_share)) {
    fields.fail("shrink", "expected a number from 0.01 to 1, or a list of them");
  }
  fields.read_word("objective", search.objective, search_objective_names);
  fields.read("validate_every", search.validate_every, 1, most_count);
  if (search.population == 1) fields.fail("population", "expected 0 or at least 2");
  if (search.step > 0 && search.step < 1e-6) fields.fail("step", "expected 0 or a number from 1e-06 to 1000000");
}

void check_steering(JsonFields& fields, const TrainConfig& config) {
  const bool steers = config.network.steers();
  if (config.method != Method::ppo) {
    if (steers) fields.fail("network", "hold_s and hold_jobs go with method ppo");
    return;
  }
  if (config.env.agenda.mode == ActionMode::preempt && !steers) {
    fields.fail("method",
                "ppo learns the order of mode preempt only by steering: expected a network/hold_s or hold_jobs, or "
                "cma_es or es");
  }
  if (!steers) return;
  if (config.ppo.imitate_iterations > 0) {
    fields.fail("ppo", "imitate_iterations: expected 0 with an agent that steers: a teacher has no weights to imitate");
  }
  if (config.ppo.baseline == Baseline::self_critic) {
    fields.fail("ppo", "baseline: self_critic does not go with an agent that steers");
  }
  if (config.ppo.temperature != 1 || config.ppo.sampling_cost > 0) {
    fields.fail("ppo",
                "temperature, sampling_cost: expected 1 and 0 with an agent that steers, which draws weights by "
                "network/deviation");
  }
  if (config.ppo.resimulate) {
    fields.fail("ppo", "resimulate: expected false with an agent that steers, whose few states are kept");
  }
}

// What training on measured throughputs cannot do.
void check_speeds(JsonFields& fields, const TrainConfig& config) {
  if (config.network.places && config.method == Method::ppo && !config.network.steers()) {
    fields.fail("method",
                "ppo learns the network index with env/node_speeds only by steering: expected a network/hold_s or "
                "hold_jobs, or cma_es or es, or another network");
  }
  if (config.throughputs.empty()) {
    if (!config.reference_type.empty()) {
      fields.fail("reference_type", "is a GPU type of measured throughputs; add throughputs");
    }
    return;
  }
  if (config.shuffle.windows > 0) {
    fields.fail("windows", "shuffled: expected 0 with throughputs, which are of the families of the trace as it is");
  }
  if (config.test_at_end) fields.fail("test_at_end", "expected false with throughputs; compare with gpusched evaluate");
}

// What failures of nodes need, and what training under them cannot do.
void check_failures(JsonFields& fields, const TrainConfig& config) {
  const PreemptionCost& cost = config.env.engine.preemption;
  const bool by_rule = cost.rule != CheckpointRule::fixed;
  if (by_rule && config.failures.empty()) fields.fail("env/checkpoint_rule", "needs failures; add failures");
  if (by_rule && cost.periodic_checkpoint == Time{}) {
    fields.fail("env/checkpoint_write_s", "expected above 0 with checkpoint_rule");
  }
  if (by_rule && cost.checkpoint_interval > Time{}) {
    fields.fail("env/checkpoint_interval_s", "expected 0 with checkpoint_rule");
  }
  if (!by_rule && cost.periodic_checkpoint > Time{} && cost.checkpoint_interval == Time{}) {
    fields.fail("env/checkpoint_write_s", "expected checkpoint_interval_s or checkpoint_rule with it");
  }
  if (config.failures.empty()) return;
  if (config.count_gpus_only)
    fields.fail("env/placement", "expected another than count, which knows no nodes that fail");
  if (config.cluster_scales != std::vector<double>{1}) {
    fields.fail("windows/cluster_scales", "expected [1] with failures, which are of one cluster's nodes");
  }
  if (config.test_at_end) fields.fail("test_at_end", "expected false with failures; compare with gpusched evaluate");
}

void read_constraints(JsonFields& fields, ConstraintOptions& constraints) {
  fields.read("reference", constraints.reference);
  for (std::size_t figure = 0; figure < bounded_figures; ++figure) {
    fields.read(std::string(bounded_figure_names[figure]), constraints.most[figure], 0, 1e6);
  }
  fields.read("margin", constraints.margin, 0, 1);
  fields.read("multiplier", constraints.multiplier, 0, 1e6);
  fields.read("rate", constraints.rate, 0, 1e6);
  const bool bounds = constraints.most != BoundedFigures{};
  if (bounds && constraints.reference.empty()) {
    fields.fail("reference", "is missing: a limit is a multiple of a policy's figure");
  }
  if (!bounds && !constraints.reference.empty()) {
    fields.fail("reference", "bounds nothing without a limit, such as \"avg_jct_s\": 1");
  }
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
  config.env.engine.preemption.restart = whole_seconds(60);
  config.env.weights = {};
  config.env.weights[reward_jct] = 1;
  config.windows = default_windows(jobs);
  config.network = {.kind = NetworkKind::rank, .alpha = 1};
  config.method = Method::cma_es;
  config.search = {.generations = 30, .windows = 12, .validate_every = 5};
  config.test_at_end = true;
  return config;
}

Result<TrainConfig> read_train_config(std::string_view text, const std::string& file, const std::string& trace) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  TrainConfig config;
  JsonFields fields(*json, file);
  if (trace.empty()) fields.require("trace");
  fields.read("trace", config.trace);
  if (!trace.empty()) config.trace = trace;
  fields.read("trace_format", config.trace_format);
  fields.read("trace_columns", config.trace_columns);
  fields.read("trace_where", config.trace_where);
  fields.read("drop_bad_rows", config.drop_bad_rows);
  fields.read("cluster", config.cluster);
  fields.read("throughputs", config.throughputs);
  fields.read("reference_type", config.reference_type);
  fields.read("failures", config.failures);
  fields.read_object("env", [&](JsonFields& env) { read_env(env, config); });
  fields.read_object("windows", [&](JsonFields& windows) { read_windows(windows, config); });
  fields.read_object("network", [&](JsonFields& network) { read_network_spec(network, config.network); });
  fields.read("init", config.init);
  config.init = model_folder(config.init);
  fields.read_word("method", config.method, method_names);
  fields.read_object("search", [&](JsonFields& search) { read_search(search, config.search); });
  fields.read_object("ppo", [&](JsonFields& ppo) { read_ppo(ppo, config.ppo); });
  fields.read_object("constraints",
                     [&](JsonFields& constraints) { read_constraints(constraints, config.constraints); });
  fields.read("seed", config.seed);
  fields.read("threads", config.threads, 0, most_threads);
  fields.read("device", config.device);
  fields.read("test_at_end", config.test_at_end);
  if (config.device != "auto" && config.device != "cpu" && config.device != "cuda") {
    fields.fail("device", "expected one of auto|cpu|cuda");
  }
  if (!matches(config.network.kind, config.env.agenda.mode)) {
    fields.fail("network", "the network rank goes with env/mode preempt, and no other does");
  }
  if (config.method == Method::ppo && config.network.hidden > 0) {
    fields.fail("network/hidden", "expected 0 with method ppo, which does not learn them");
  }
  if (config.method == Method::ppo && !config.constraints.reference.empty()) {
    fields.fail("constraints", "expected none with method ppo, which cannot keep them");
  }
  if (config.cluster_scales.size() > 1 && !config.constraints.reference.empty()) {
    fields.fail("constraints", "expected none with several windows/cluster_scales: their limits are of one cluster");
  }
  if (config.validation_jobs > 0 && config.empty_share > 0 && config.empty_share < 1 &&
      !config.constraints.reference.empty()) {
    fields.fail("windows/validation_jobs", "expected 0: with an empty_share limits hold in two kinds of windows");
  }
  if (config.method == Method::es && config.search.population % 2 != 0) {
    fields.fail("search/population", "expected an even number: method es draws candidates in pairs");
  }
  config.network = for_agenda(config.network, config.env.agenda);
  check_steering(fields, config);
  check_speeds(fields, config);
  check_failures(fields, config);
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (config.ppo.mean_lifetime_s > 0) config.env.discount_per_s = 1 / config.ppo.mean_lifetime_s;
  return config;
}

std::string placement_word(const TrainConfig& config) {
  if (config.count_gpus_only) return std::string(count_placement);
  for (const PlacementName& rule : placement_names) {
    if (rule.placement == config.env.engine.placement) return std::string(rule.name);
  }
  return "";
}

std::string train_config_json(const TrainConfig& config) {
  const AgendaOptions& agenda = config.env.agenda;
  Json weights = Json::object();
  for (std::size_t term = 0; term < reward_terms; ++term) {
    weights[std::string(reward_names[term])] = config.env.weights[term];
  }
  Json constraints{{"reference", config.constraints.reference},
                   {"margin", config.constraints.margin},
                   {"multiplier", config.constraints.multiplier},
                   {"rate", config.constraints.rate}};
  for (std::size_t figure = 0; figure < bounded_figures; ++figure) {
    constraints[std::string(bounded_figure_names[figure])] = config.constraints.most[figure];
  }
  const PpoOptions& ppo = config.ppo;
  const SearchOptions& search = config.search;
  const Json json{{"trace", config.trace},
                  {"trace_format", config.trace_format},
                  {"trace_columns", config.trace_columns},
                  {"trace_where", config.trace_where},
                  {"drop_bad_rows", config.drop_bad_rows},
                  {"cluster", config.cluster},
                  {"throughputs", config.throughputs},
                  {"reference_type", config.reference_type},
                  {"failures", config.failures},
                  {"env",
                   {{"mode", name_of(action_mode_names, agenda.mode)},
                    {"knowledge", name_of(runtime_knowledge_names, agenda.knowledge)},
                    {"heuristic", name_of(heuristic_names, agenda.heuristic)},
                    {"max_jobs", agenda.max_jobs},
                    {"choose_nodes", agenda.choose_nodes},
                    {"node_speeds", agenda.node_speeds},
                    {"sc20_backfill", agenda.sc20_backfill},
                    {"starvation_s", agenda.starvation == Time::max() ? 0.0 : to_seconds(agenda.starvation)},
                    {"placement", placement_word(config)},
                    {"one_event_a_step", config.env.engine.one_event_a_step},
                    {"checkpoint_cost_s", to_seconds(config.env.engine.preemption.checkpoint)},
                    {"restart_cost_s", to_seconds(config.env.engine.preemption.restart)},
                    {"checkpoint_interval_s", to_seconds(config.env.engine.preemption.checkpoint_interval)},
                    {"checkpoint_write_s", to_seconds(config.env.engine.preemption.periodic_checkpoint)},
                    {"checkpoint_rule", name_of(checkpoint_rule_names, config.env.engine.preemption.rule)},
                    {"weights", weights},
                    {"idle_gpu_w", config.env.idle_gpu_w},
                    {"busy_gpu_w", config.env.busy_gpu_w}}},
                  {"windows",
                   {{"jobs", config.windows.jobs},
                    {"warm_up_jobs", config.windows.warm_up_jobs},
                    {"empty_share", config.empty_share},
                    {"validation_jobs", config.validation_jobs},
                    {"stride", config.windows.stride},
                    {"first_fraction", config.windows.first_fraction},
                    {"train_fraction", config.windows.train_fraction},
                    {"validation_fraction", config.windows.validation_fraction},
                    {"arrival_scale", config.windows.arrival_scale},
                    {"truncate", config.windows.truncate},
                    {"history", config.windows.history},
                    {"shuffled", config.shuffle.windows},
                    {"stretch", config.shuffle.stretch},
                    {"cluster_scales", config.cluster_scales}}},
                  {"network",
                   {{"kind", name_of(network_kind_names, config.network.kind)},
                    {"width", config.network.width},
                    {"heads", config.network.heads},
                    {"critic_width", config.network.critic_width},
                    {"alpha", config.network.alpha},
                    {"hidden", config.network.hidden},
                    {"hold_s", config.network.hold_s},
                    {"hold_jobs", config.network.hold_jobs},
                    {"deviation", config.network.deviation}}},
                  {"method", name_of(method_names, config.method)},
                  {"search",
                   {{"generations", search.generations},
                    {"time_limit_s", search.time_limit_s},
                    {"population", search.population},
                    {"windows", search.windows},
                    {"step", search.step},
                    {"learning_rate", search.learning_rate},
                    {"average", search.average},
                    {"shrink", search.shrink},
                    {"objective", name_of(search_objective_names, search.objective)},
                    {"validate_every", search.validate_every}}},
                  {"ppo",
                   {{"iterations", ppo.iterations},
                    {"time_limit_s", ppo.time_limit_s},
                    {"windows", ppo.windows},
                    {"group", ppo.group},
                    {"epochs", ppo.epochs},
                    {"minibatch", ppo.minibatch},
                    {"piece", ppo.piece},
                    {"resimulate", ppo.resimulate},
                    {"learning_rate", ppo.learning_rate},
                    {"adapt_learning_rate", ppo.adapt_learning_rate},
                    {"least_learning_rate", ppo.least_learning_rate},
                    {"most_learning_rate", ppo.most_learning_rate},
                    {"desired_kl", ppo.desired_kl},
                    {"start_kl", ppo.start_kl},
                    {"kl_stop", ppo.kl_stop},
                    {"anneal", ppo.anneal},
                    {"clip", ppo.clip},
                    {"entropy", ppo.entropy},
                    {"value", ppo.value},
                    {"temperature", ppo.temperature},
                    {"sampling_cost", ppo.sampling_cost},
                    {"clip_value", ppo.clip_value},
                    {"max_gradient_norm", ppo.max_gradient_norm},
                    {"max_critic_gradient_norm", ppo.max_critic_gradient_norm},
                    {"lambda", ppo.lambda},
                    {"lambda_time_s", ppo.lambda_time_s},
                    {"mean_lifetime_s", ppo.mean_lifetime_s},
                    {"average_reward", ppo.average_reward},
                    {"horizon_jobs", ppo.horizon_jobs},
                    {"horizon_iterations", ppo.horizon_iterations},
                    {"baseline", name_of(baseline_names, ppo.baseline)},
                    {"reward_scale", name_of(reward_scale_names, ppo.reward_scale)},
                    {"imitate_iterations", ppo.imitate_iterations},
                    {"critic_warm_up", ppo.critic_warm_up},
                    {"teacher", ppo.teacher_model.empty() ? std::string(name_of(heuristic_names, ppo.teacher))
                                                          : "rl:" + ppo.teacher_model},
                    {"validate_every", ppo.validate_every},
                    {"validation_windows", ppo.validation_windows}}},
                  {"constraints", constraints},
                  {"init", config.init},
                  {"seed", config.seed},
                  {"threads", config.threads},
                  {"device", config.device},
                  {"test_at_end", config.test_at_end}};
  return json.dump(2) + "\n";
}

}  // namespace gpusched
