// SPDX-License-Identifier: Apache-2.0
#include "src/rl/direct_search.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "src/base/atomic_file.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/number_text.hpp"
#include "src/base/parallel.hpp"
#include "src/base/statistics.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/policies/learned/window_checks.hpp"
#include "src/rl/cma_es.hpp"
#include "src/rl/constraints.hpp"
#include "src/rl/es_gradient.hpp"
#include "src/rl/event_file.hpp"
#include "src/rl/failed_run.hpp"
#include "src/rl/initial_parameters.hpp"
#include "src/rl/random_search.hpp"
#include "src/rl/run_clock.hpp"
#include "src/rl/training_windows.hpp"

namespace gpusched {
namespace {

constexpr const char* csv_header =
    "generation,episodes,loss,heuristic_loss,validation_loss,validation_heuristic_loss,step,seconds";

// Only how long the run lasts and on how many threads may differ.
bool continues(const std::string& before, const TrainConfig& now) {
  auto earlier = read_train_config(before, "");
  if (!earlier) return false;
  earlier->search.generations = now.search.generations;
  earlier->search.time_limit_s = now.search.time_limit_s;
  earlier->threads = now.threads;
  return train_config_json(*earlier) == train_config_json(now);
}

// What proposes candidates and learns from their losses.
using Optimiser = std::variant<CmaEs, EsGradient, RandomSearch>;

Optimiser optimiser_of(const TrainConfig& config, std::span<const double> start) {
  const SearchOptions& search = config.search;
  const Rng rng = Rng(config.seed).split("candidates");
  if (config.method == Method::cma_es) {
    CmaEsOptions options{.population = search.population};
    if (search.step > 0) options.step = search.step;
    return CmaEs(start, options, rng);
  }
  if (config.method == Method::random) {
    RandomSearchOptions options;
    if (search.step > 0) options.step = search.step;
    if (search.population > 0) options.population = search.population;
    return RandomSearch(start, options, rng);
  }
  EsOptions options{.learning_rate = search.learning_rate};
  if (search.step > 0) options.step = search.step;
  if (search.population > 0) options.pairs = search.population / 2;
  return EsGradient(start, options, rng);
}

std::vector<double> centre_of(const Optimiser& optimiser) {
  return std::visit([](const auto& method) -> std::vector<double> { return method.mean(); }, optimiser);
}

// The optimiser's part of search.json.
Json json_of(const CmaEsState& state) {
  return {{"mean", state.mean}, {"covariance", state.covariance}, {"path", state.path}, {"step_path", state.step_path},
          {"step", state.step}, {"generation", state.generation}, {"rng", state.rng}};
}
Json json_of(const EsState& state) {
  return {{"mean", state.mean}, {"momentum", state.momentum}, {"power", state.power}, {"generation", state.generation}};
}
Json json_of(const RandomSearchState& state) { return {{"mean", state.mean}, {"generation", state.generation}}; }

// Below it a window has hardly any queue, and its loss no logarithm.
constexpr double least_loss = 1e-9;

constexpr double any_number = 1e300;
constexpr double any_integer = 18446744073709551615.0;

void take_up(JsonFields& fields, CmaEs& search) {
  CmaEsState state;
  std::vector<std::uint64_t> rng{0, 0};
  fields.read("mean", state.mean, 0);
  fields.read("covariance", state.covariance, 0);
  fields.read("path", state.path, 0);
  fields.read("step_path", state.step_path, 0);
  fields.read("step", state.step, 0, any_number);
  fields.read("generation", state.generation, 0, any_integer);
  fields.require("rng");
  fields.read("rng", rng, 2);
  if (!search.fits(state)) return fields.fail("mean", "is of a search of other dimensions");
  state.rng = {rng[0], rng[1]};
  search.restore(state);
}
void take_up(JsonFields& fields, EsGradient& search) {
  EsState state;
  fields.read("mean", state.mean, 0);
  fields.read("momentum", state.momentum, 0);
  fields.read("power", state.power, 0);
  fields.read("generation", state.generation, 0, any_integer);
  if (!search.fits(state)) return fields.fail("mean", "is of a search of other dimensions");
  search.restore(std::move(state));
}
void take_up(JsonFields& fields, RandomSearch& search) {
  RandomSearchState state;
  fields.read("mean", state.mean, 0);
  fields.read("generation", state.generation, 0, any_integer);
  if (!search.fits(state)) return fields.fail("mean", "is of a search of other dimensions");
  search.restore(std::move(state));
}

// Untrained, or what `start` has learned: its parameters are the first of a network that has hidden units besides.
std::vector<float> first_parameters(const TrainConfig& config, const std::optional<TrainedModel>& start) {
  std::vector<float> parameters = initial_parameters(config.network, Rng(config.seed).split("parameters"));
  if (!start) return parameters;
  const auto learned = static_cast<std::ptrdiff_t>(layout_of(start->network).policy_size);
  std::copy(start->parameters.begin(), start->parameters.begin() + learned, parameters.begin());
  return parameters;
}

// Why a search cannot start from that model.
std::optional<std::string> mismatch(const TrainedModel& model, const TrainConfig& config) {
  const auto name = [](const NetworkSpec& network) {
    return std::string(name_of(network_kind_names, network.kind)) + " with " + std::to_string(network.hidden) +
           " hidden units";
  };
  const bool extends = model.network.hidden == 0 || model.network.hidden == config.network.hidden;
  if (model.network.kind != config.network.kind || !extends) {
    return "holds the network " + name(model.network) + ", which does not begin that of this run, " +
           name(config.network);
  }
  if (model.network.steers()) return "steers (network/hold_s or hold_jobs), which only ppo goes on with";
  if (model.agenda == config.env.agenda) return std::nullopt;
  return "was trained with another mode, knowledge, heuristic or other choice of env than this run";
}

// The model that the configuration names, or, of a run that goes on, the one that it has kept: inputs stay normalised
// as they were.
Result<std::optional<TrainedModel>> model_to_start_from(const TrainConfig& config, const std::string& folder,
                                                        bool resume) {
  if (config.init.empty()) return std::optional<TrainedModel>();
  auto model = load_model(resume ? folder : config.init);
  if (!model) return Unexpected{model.error()};
  if (const auto wrong = mismatch(*model, config)) {
    return Unexpected{Error{.message = "the model in " + config.init + " " + *wrong, .field = "/init"}};
  }
  return std::optional(*std::move(model));
}

// Those of the training windows and of the validation windows.
struct PartConstraints {
  Constraints train, validation;
};

Result<PartConstraints> constraints_of(const TrainConfig& config, const Cluster& cluster,
                                       const TrainingWindows& windows) {
  auto train = Constraints::of(config, cluster, windows.train);
  if (!train) return Unexpected{train.error()};
  auto validation = Constraints::of(config, cluster, windows.validation);
  if (!validation) return Unexpected{validation.error()};
  return PartConstraints{*std::move(train), *std::move(validation)};
}

class Search {
 public:
  Search(const TrainConfig& config, std::vector<Cluster> clusters, std::string folder, TrainingWindows windows,
         const std::optional<TrainedModel>& start, PartConstraints constraints)
      : config_(config),
        clusters_(std::move(clusters)),
        folder_(std::move(folder)),
        windows_(std::move(windows)),
        constraints_(std::move(constraints)),
        parameters_(first_parameters(config, start)),
        average_(parameters_.begin(),
                 parameters_.begin() + static_cast<std::ptrdiff_t>(layout_of(config.network).policy_size)),
        start_(average_),
        optimiser_(optimiser_of(config, average_)),
        population_(std::visit([](const auto& method) { return method.population(); }, optimiser_)),
        multipliers_(constraints_.train.size(), config.constraints.multiplier),
        best_excess_(multipliers_.size()) {
    // CMA-ES compares all candidates with each other, the gradient those of a pair.
    sharing_ = config.method == Method::es ? 2 : population_;
    episodes_ = config.search.windows > 0 ? config.search.windows : config.method == Method::es ? 1 : 48;
    if (start) {
      normaliser_ = start->normaliser;
    } else {
      fit_normaliser();
    }
    for (const Cluster& cluster : clusters_) {
      heuristic_.push_back(heuristic_losses(cluster, windows_.train));
      mean_heuristic_.push_back(std::max(mean_of(heuristic_.back()), least_loss));
      validation_heuristic_.push_back(mean_of(heuristic_losses(cluster, windows_.validation)));
    }
    summary_.validation_heuristic = has_scales() ? 1 : validation_heuristic_.front();
    summary_.device = "cpu";
    best_ratios_.resize(has_scales() ? clusters_.size() : 0);
    metrics_ = csv_header;
    for (std::size_t c = 0; c < best_ratios_.size(); ++c) metrics_ += "," + scale_name(c) + "_ratio";
    for (std::size_t k = 0; k < multipliers_.size(); ++k) {
      metrics_ += "," + name(k) + "_ratio," + name(k) + "_multiplier";
    }
    if (config_.search.shrink.size() > 1) metrics_ += ",shrink";
    metrics_ += "\n";
  }

  /// Goes on from search.json in the folder, which the same configuration must have written.
  Result<void> take_up() {
    const std::string file = folder_ + "/" + search_state_file;
    const auto text = read_text_file(file);
    if (!text) return Unexpected{text.error()};
    const auto json = parse_json_strictly(*text, file);
    if (!json) return Unexpected{json.error()};
    std::string config;
    std::vector<double> average;
    JsonFields fields(*json, file);
    fields.read("iterations", summary_.iterations);
    fields.read("steps", summary_.steps);
    fields.read("seconds", summary_.seconds);
    fields.read("best_iteration", summary_.best_iteration);
    fields.read("best_validation", summary_.best_validation, -any_number, any_number);
    fields.read("validation", validation_.loss, -any_number, any_number);
    fields.read("average", average, average_.size());
    fields.read("metrics_csv", metrics_);
    if (has_scales()) fields.read("best_ratios", best_ratios_, best_ratios_.size());
    if (!multipliers_.empty()) {
      fields.read("multipliers", multipliers_, multipliers_.size());
      fields.read("best_excess", best_excess_, multipliers_.size());
    }
    fields.read("config", config);
    for (const char* key : {"iterations", "average", "config"}) fields.require(key);
    // That of another method has other fields; the configuration says so better than they do.
    const bool same_run = continues(config, config_);
    if (same_run) std::visit([&](auto& method) { gpusched::take_up(fields, method); }, optimiser_);
    auto done = fields.finish();
    if (!same_run) {
      return Unexpected{
          Error{.message = "was made with another configuration than config.json beside it", .file = file}};
    }
    if (!done) return done;
    average_ = std::move(average);
    return {};
  }

  /// Searches until the generations or the time of all its runs are used up.
  Result<TrainSummary> run(const std::function<void(const TrainProgress&)>& watch) {
    const SearchOptions& options = config_.search;
    const auto begin = RunClock::now();
    const double before_s = summary_.seconds;
    const auto spent_s = [&] { return before_s + seconds_since(begin); };
    EventFile events(folder_, wall_time_s());
    if (summary_.iterations == 0) {
      if (auto done = validate(); !done) return failed_run(done.error());
    }
    while (summary_.iterations < options.generations &&
           !(options.time_limit_s > 0 && spent_s() >= options.time_limit_s)) {
      const auto generation_begin = RunClock::now();
      const TrainProgress result = evolve();
      if (!is_sound()) {
        return unexpected("generation " + std::to_string(summary_.iterations) +
                          " has a parameter or loss that is not a number; the last good model and state stay in " +
                          folder_);
      }
      const bool last = summary_.iterations == options.generations;
      const bool validated = last || summary_.iterations % options.validate_every == 0;
      if (validated) {
        if (auto done = validate(); !done) return failed_run(done.error());
      }
      summary_.seconds = spent_s();
      const TrainProgress progress = progress_of(result, seconds_since(generation_begin), validated);
      if (auto done = record(progress, events); !done) return failed_run(done.error());
      if (auto done = save(); !done) return failed_run(done.error());
      watch(progress);
    }
    for (std::size_t c = 0; c < best_ratios_.size(); ++c) {
      summary_.scales.push_back({.scale = config_.cluster_scales[c], .ratio = best_ratios_[c]});
    }
    for (std::size_t k = 0; k < best_excess_.size(); ++k) {
      const Constraints& constraints = constraints_.validation;
      summary_.bounds.push_back({.figure = name_of(constraints[k]),
                                 .ratio = constraints.ratio(k, best_excess_[k]),
                                 .most = constraints.most(k)});
    }
    return summary_;
  }

 private:
  // A window on one of the clusters.
  struct Place {
    std::size_t window = 0, cluster = 0;
  };

  [[nodiscard]] bool has_scales() const { return clusters_.size() > 1; }
  [[nodiscard]] std::string scale_name(std::size_t cluster) const {
    return formatted("scale_%g", config_.cluster_scales[cluster]);
  }
  [[nodiscard]] std::string name(std::size_t constraint) const { return name_of(constraints_.train[constraint]); }

  void fit_normaliser() {
    constexpr std::uint32_t most_windows = 16;
    VectorEnv env(windows_.train, {}, std::span<const Cluster>(clusters_),
                  {.env = config_.env, .autoreset = AutoresetMode::disabled, .environments = most_windows});
    const std::uint64_t seed = Rng(config_.seed).split("normaliser").state()[0];
    const Heuristic heuristic = config_.env.agenda.heuristic;
    std::vector<Observation> seen;
    if (config_.env.agenda.mode == ActionMode::preempt) {
      seen.push_back(states_of_ranking(env, heuristic, seed));
    } else {
      for (Episode& episode : collect_episodes(env, {}, Acting::heuristic, heuristic, seed, Keep::states)) {
        seen.push_back(std::move(episode.observation));
      }
    }
    normaliser_ = Normaliser::fit(seen);
  }

  // What an order sees in one episode of every environment.
  static Observation states_of_ranking(VectorEnv& env, Heuristic heuristic, std::uint64_t seed) {
    Observation seen;
    const Batch* batch = &env.reset(seed);
    for (bool any = true; any;) {
      any = false;
      for (std::uint32_t e = 0; e < env.size(); ++e) {
        if (env.is_done(e)) continue;
        append_state(seen, batch->observation, e);
        any = true;
      }
      if (any) batch = &env.step(heuristic);
    }
    return seen;
  }

  // What an episode costs: its loss, and each constraint's excess.
  struct Cost {
    double loss = 0;
    std::vector<double> excess;
  };

  // A whole episode by the policy of these parameters, which sees and chooses as RlPolicy does.
  [[nodiscard]] Cost play(std::span<const double> policy, const Constraints& constraints,
                          std::span<const Window> windows, Place place) const {
    const std::vector<float> parameters(policy.begin(), policy.end());
    const auto [w, cluster] = place;
    Env env(clusters_[cluster], config_.env);
    Observation seen;
    std::vector<float> logits;
    for (StepResult result = env.reset(windows[w]); !result.done(); result = env.step(logits, best_action)) {
      env.agenda().make_room(seen);
      env.encode(seen.slot(0));
      forward_policy(config_.network, parameters, normaliser_, seen, logits);
    }
    Cost cost{.loss = loss_of(env.totals(), config_.env, windows[w]), .excess = {}};
    if (constraints.size() > 0) cost.excess = constraints.excess(figures_of(env.engine(), windows[w]), w);
    return cost;
  }

  // Means over these windows.
  [[nodiscard]] Cost mean_cost(std::span<const double> policy, const Constraints& constraints,
                               std::span<const Window> windows, std::span<const Place> chosen) const {
    std::vector<Cost> costs(chosen.size());
    for_each_index(chosen.size(), config_.threads,
                   [&](std::size_t i) { costs[i] = play(policy, constraints, windows, chosen[i]); });
    return mean_of_costs(costs, constraints.size());
  }

  static Cost mean_of_costs(std::span<const Cost> costs, std::size_t constraints) {
    Cost mean{.loss = 0, .excess = std::vector<double>(constraints)};
    for (const Cost& cost : costs) {
      mean.loss += cost.loss / static_cast<double>(costs.size());
      for (std::size_t k = 0; k < constraints; ++k) {
        mean.excess[k] += cost.excess[k] / static_cast<double>(costs.size());
      }
    }
    return mean;
  }

  // As single precision has them, in which the network reads them.
  [[nodiscard]] bool is_sound() const {
    const auto finite = [](double value) { return std::isfinite(static_cast<float>(value)); };
    const std::vector<double> centre = centre_of(optimiser_);
    return sound_losses_ && std::all_of(centre.begin(), centre.end(), finite);
  }

  [[nodiscard]] std::vector<double> heuristic_losses(const Cluster& cluster, std::span<const Window> windows) const {
    std::vector<double> result(windows.size());
    for_each_index(windows.size(), config_.threads, [&](std::size_t w) {
      const Window* const window = &windows[w];
      result[w] = window_losses({&window, 1}, cluster, config_.env, {}, Acting::heuristic).front();
    });
    return result;
  }

  // The places of a generation: `episodes_` for all candidates that are compared with each other, then those of the
  // next such candidates. Clusters take turns, through all generations.
  std::vector<Place> draw_places() const {
    Rng draw = Rng(config_.seed).split("windows").split(summary_.iterations);
    std::vector<Place> drawn(std::size_t{population_ / sharing_} * episodes_);
    std::size_t turn = summary_.iterations * drawn.size();
    for (Place& place : drawn) {
      place = {.window = draw.below(windows_.train.size()), .cluster = turn++ % clusters_.size()};
    }
    return drawn;
  }

  // One generation. Every episode is a piece of work of its own, so that no thread waits for another's candidate.
  TrainProgress evolve() {
    const std::vector<Place> drawn = draw_places();
    TrainProgress progress;
    for (const auto [w, cluster] : drawn) {
      progress.heuristic += heuristic_[cluster][w] / static_cast<double>(drawn.size());
    }
    const auto& candidates = std::visit(
        [](auto& method) -> const auto& { return method.ask(); }, optimiser_);
    std::vector<std::vector<Cost>> each(candidates.size(), std::vector<Cost>(episodes_));
    for_each_index(candidates.size() * episodes_, config_.threads, [&](std::size_t i) {
      const std::size_t candidate = i / episodes_, episode = i % episodes_;
      const Place place = drawn[candidate / sharing_ * episodes_ + episode];
      each[candidate][episode] = play(candidates[candidate], constraints_.train, windows_.train, place);
    });
    std::vector<double> scores, means;
    for (std::size_t i = 0; i < each.size(); ++i) {
      scores.push_back(score_of(each[i], std::span(drawn).subspan(i / sharing_ * episodes_, episodes_)));
      means.push_back(mean_of_costs(each[i], 0).loss);
    }
    progress.metric = config_.method == Method::es ? mean_of(means) : *std::min_element(means.begin(), means.end());
    sound_losses_ = std::all_of(scores.begin(), scores.end(), [](double score) { return std::isfinite(score); });
    ++summary_.iterations;
    if (!sound_losses_) return progress;
    std::visit([&](auto& method) { method.tell(scores); }, optimiser_);
    summary_.steps += std::uint64_t{population_} * episodes_;
    ascend(drawn);
    // The centre follows the noise of each generation's windows; its running average does so less.
    const double kept = std::min(config_.search.average, 1 - 1.0 / summary_.iterations);
    const std::vector<double> centre = centre_of(optimiser_);
    for (std::size_t i = 0; i < average_.size(); ++i) average_[i] = kept * average_[i] + (1 - kept) * centre[i];
    return progress;
  }

  // The Lagrangian of a candidate's episodes.
  [[nodiscard]] double score_of(std::span<const Cost> each, std::span<const Place> places) const {
    double sum = 0;
    for (std::size_t i = 0; i < each.size(); ++i) {
      const Cost& cost = each[i];
      sum += config_.search.objective == SearchObjective::mean ? cost.loss / mean_heuristic_[places[i].cluster]
                                                               : std::log(std::max(cost.loss, least_loss));
      for (std::size_t k = 0; k < multipliers_.size(); ++k) sum += multipliers_[k] * cost.excess[k];
    }
    return sum / static_cast<double>(each.size());
  }

  // Multipliers rise where the centre is above a limit, and fall, at most to 0, where it is below. Candidates are worse
  // than the centre that they are drawn around, so that it plays again, in some of the generation's windows.
  void ascend(std::span<const Place> drawn) {
    if (multipliers_.empty() || config_.constraints.rate == 0) return;
    constexpr std::size_t most_windows = 64;
    const auto checked = drawn.first(std::min(most_windows, drawn.size()));
    const Cost cost = mean_cost(centre_of(optimiser_), constraints_.train, windows_.train, checked);
    summary_.steps += checked.size();
    for (std::size_t k = 0; k < multipliers_.size(); ++k) {
      multipliers_[k] =
          std::max(0.0, multipliers_[k] + config_.constraints.rate * (cost.excess[k] + config_.constraints.margin));
    }
  }

  // By how much limits are exceeded, together.
  static double violation(std::span<const double> excess) {
    double sum = 0;
    for (const double value : excess) sum += std::max(0.0, value);
    return sum;
  }

  // The running average, or what is `share` of the way to it from the start (SearchOptions::shrink).
  [[nodiscard]] std::vector<double> shrunk_average(double share) const {
    if (share == 1) return average_;
    std::vector<double> model(average_.size());
    for (std::size_t i = 0; i < model.size(); ++i) model[i] = start_[i] + share * (average_[i] - start_[i]);
    return model;
  }

  // What a model reaches in the validation windows.
  struct Validation {
    double share = 1;  // of the way from the start: shrunk_average()
    double loss = 0;
    std::vector<double> excess;  // of the constraints
    std::vector<double> ratios;  // by cluster, where there are several: to the heuristic's loss
  };

  // On several clusters the loss is the geometric mean of the ratios to the heuristic's.
  [[nodiscard]] Validation measure(std::span<const double> model) const {
    Validation result;
    for (std::size_t c = 0; c < clusters_.size(); ++c) {
      std::vector<Place> all;
      for (std::size_t w = 0; w < windows_.validation.size(); ++w) all.push_back({.window = w, .cluster = c});
      Cost cost = mean_cost(model, constraints_.validation, windows_.validation, all);
      result.loss = cost.loss;
      result.excess = std::move(cost.excess);
      if (has_scales()) result.ratios.push_back(cost.loss / std::max(validation_heuristic_[c], least_loss));
    }
    if (!has_scales()) return result;
    double sum = 0;
    for (const double ratio : result.ratios) sum += std::log(std::max(ratio, least_loss));
    result.loss = std::exp(sum / static_cast<double>(result.ratios.size()));
    return result;
  }

  // By how much the worst of the ratios to the heuristic's loss is above what chance explains: a log that begins one
  // job later can change it by a percent.
  static double violation_by_cluster(std::span<const double> ratios) {
    constexpr double chance = 0.005;
    double worst = 1 + chance;
    for (const double ratio : ratios) worst = std::max(worst, ratio);
    return worst - (1 + chance);
  }

  // Less is better: the least loss of the models within all limits or, as long as none is, the least violation; on
  // several clusters, of those that are no worse than the heuristic on any.
  static std::tuple<double, double, double> rank(std::span<const double> excess, std::span<const double> ratios,
                                                 double loss) {
    return {violation(excess), violation_by_cluster(ratios), loss};
  }
  static std::tuple<double, double, double> rank(const Validation& of) { return rank(of.excess, of.ratios, of.loss); }

  // The best of the models on the way from the start to the average; before generation 1 they are one.
  [[nodiscard]] Validation best_on_the_way() const {
    std::optional<Validation> best;
    for (const double share : config_.search.shrink) {
      Validation model = measure(shrunk_average(share));
      model.share = share;
      if (!best || rank(model) < rank(*best)) best = std::move(model);
      if (summary_.iterations == 0) break;
    }
    return *std::move(best);
  }

  // Keeps the model when it is the best so far. The untrained one comes first.
  Result<void> validate() {
    validation_ = best_on_the_way();
    if (summary_.iterations > 0 && rank(validation_) >= rank(best_excess_, best_ratios_, summary_.best_validation)) {
      return {};
    }
    summary_.best_iteration = summary_.iterations;
    summary_.best_validation = validation_.loss;
    best_excess_ = validation_.excess;
    best_ratios_ = validation_.ratios;
    const std::vector<double> model = shrunk_average(validation_.share);
    std::vector<float> parameters = parameters_;
    std::transform(model.begin(), model.end(), parameters.begin(),
                   [](double value) { return static_cast<float>(value); });
    return save_model(
        {.agenda = config_.env.agenda, .network = config_.network, .normaliser = normaliser_, .parameters = parameters},
        folder_);
  }

  [[nodiscard]] TrainProgress progress_of(TrainProgress progress, double generation_s, bool validated) const {
    const SearchOptions& options = config_.search;
    progress.iteration = summary_.iterations;
    progress.iterations = options.generations;
    progress.steps = summary_.steps;
    progress.steps_per_s = static_cast<double>(summary_.steps) / summary_.iterations / generation_s;
    progress.seconds_left =
        summary_.seconds / summary_.iterations * static_cast<double>(options.generations - summary_.iterations);
    if (options.time_limit_s > 0) {
      progress.seconds_left = std::min(progress.seconds_left, options.time_limit_s - summary_.seconds);
    }
    progress.validation = validation_.loss;
    progress.validated = validated;
    progress.validation_heuristic = summary_.validation_heuristic;
    return progress;
  }

  Result<void> save() const {
    Json json{{"iterations", summary_.iterations},
              {"steps", summary_.steps},
              {"seconds", summary_.seconds},
              {"best_iteration", summary_.best_iteration},
              {"best_validation", summary_.best_validation},
              {"validation", validation_.loss},
              {"average", average_},
              {"metrics_csv", metrics_},
              {"config", train_config_json(config_)}};
    if (has_scales()) json["best_ratios"] = best_ratios_;
    if (!multipliers_.empty()) {
      json["multipliers"] = multipliers_;
      json["best_excess"] = best_excess_;
    }
    json.update(std::visit([](const auto& method) { return json_of(method.state()); }, optimiser_));
    return replace_file(folder_ + "/" + search_state_file, json.dump() + "\n");
  }

  Result<void> record(const TrainProgress& progress, EventFile& events) {
    std::vector<std::pair<std::string, double>> scalars{{"charts/loss_per_job", progress.metric},
                                                        {"charts/heuristic_loss_per_job", progress.heuristic}};
    metrics_ += std::to_string(progress.iteration) + "," + std::to_string(progress.steps);
    metrics_ += formatted(",%.6g", progress.metric) + formatted(",%.6g,", progress.heuristic);
    if (progress.validated) {
      scalars.emplace_back("charts/validation_loss_per_job", progress.validation);
      scalars.emplace_back("charts/validation_heuristic_loss_per_job", progress.validation_heuristic);
      metrics_ += formatted("%.6g", progress.validation) + formatted(",%.6g", progress.validation_heuristic);
    } else {
      metrics_ += ",";
    }
    metrics_ += formatted(",%.6g", std::visit([](const auto& method) { return method.step(); }, optimiser_)) +
                formatted(",%.1f", summary_.seconds);
    const auto note = [&](const std::string& tag, double value) {
      metrics_ += formatted(",%.6g", value);
      scalars.emplace_back(tag, value);
    };
    const auto note_validated = [&](const std::string& tag, const auto& value) {
      if (progress.validated) return note(tag, value());
      metrics_ += ",";
    };
    for (std::size_t c = 0; c < best_ratios_.size(); ++c) {
      note_validated("validation/" + scale_name(c) + "_ratio", [&] { return validation_.ratios[c]; });
    }
    for (std::size_t k = 0; k < multipliers_.size(); ++k) {
      note_validated("constraints/" + name(k) + "_ratio",
                     [&] { return constraints_.validation.ratio(k, validation_.excess[k]); });
      note("constraints/" + name(k) + "_multiplier", multipliers_[k]);
    }
    if (config_.search.shrink.size() > 1) note_validated("validation/shrink", [&] { return validation_.share; });
    metrics_ += "\n";
    events.write(wall_time_s(), progress.iteration, scalars);
    return replace_file(folder_ + "/metrics.csv", metrics_);
  }

  const TrainConfig& config_;
  std::vector<Cluster> clusters_;  // of TrainConfig::cluster_scales
  std::string folder_;
  TrainingWindows windows_;
  PartConstraints constraints_;
  std::vector<std::vector<double>> heuristic_;  // by cluster: its loss in each training window
  std::vector<double> mean_heuristic_;          // by cluster: the mean of that
  std::vector<double> validation_heuristic_;    // by cluster: the same in the validation windows
  Normaliser normaliser_;
  std::vector<float> parameters_;  // untrained
  std::vector<double> average_;    // of the policy's part
  std::vector<double> start_;      // the same before generation 1
  Optimiser optimiser_;
  std::uint32_t population_, sharing_ = 1;  // candidates of a generation, and that share windows
  std::uint32_t episodes_ = 1;              // of a candidate
  std::vector<double> multipliers_;         // of the constraints
  bool sound_losses_ = true;
  Validation validation_;                          // the latest
  std::vector<double> best_excess_, best_ratios_;  // those of the best
  TrainSummary summary_;
  std::string metrics_;
};

}  // namespace

Result<TrainSummary> search(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                            const std::string& folder, bool resume,
                            const std::function<void(const TrainProgress&)>& watch) {
  if (config.network.kind != NetworkKind::index && config.network.kind != NetworkKind::rank) {
    return Unexpected{Error{.message = "method " + std::string(name_of(method_names, config.method)) +
                                       " searches the networks index and rank",
                            .field = "/network/kind"}};
  }
  const auto start = model_to_start_from(config, folder, resume);
  if (!start) return Unexpected{start.error()};
  auto windows = training_windows(config, jobs);
  if (!windows) return Unexpected{windows.error()};
  auto clusters = training_clusters(config, jobs, cluster);
  if (!clusters) return Unexpected{clusters.error()};
  if (auto checked = check_choices(windows->train, *clusters, config.env, "/env/mode"); !checked) {
    return Unexpected{checked.error()};
  }
  auto constraints = constraints_of(config, clusters->front(), *windows);
  if (!constraints) return Unexpected{constraints.error()};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return Unexpected{Error{.message = "the folder cannot be made", .file = folder}};
  Search search(config, *std::move(clusters), folder, *std::move(windows), *start, *std::move(constraints));
  if (resume) {
    if (auto done = search.take_up(); !done) return Unexpected{done.error()};
  }
  if (auto done = replace_file(folder + "/config.json", train_config_json(config)); !done) {
    return failed_run(done.error());
  }
  return search.run(watch);
}

}  // namespace gpusched
