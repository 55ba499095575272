// SPDX-License-Identifier: Apache-2.0
#include "src/rl/direct_search.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/parallel.hpp"
#include "src/base/statistics.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/cma_es.hpp"
#include "src/rl/event_file.hpp"
#include "src/rl/failed_run.hpp"
#include "src/rl/run_clock.hpp"
#include "src/rl/training_windows.hpp"

namespace gpusched {
namespace {

constexpr const char* csv_header =
    "generation,episodes,loss,heuristic_loss,validation_loss,validation_heuristic_loss,step,seconds\n";

// Only how long the run lasts and on how many threads may differ.
bool continues(const std::string& before, const TrainConfig& now) {
  auto earlier = read_train_config(before, "");
  if (!earlier) return false;
  earlier->search.generations = now.search.generations;
  earlier->search.time_limit_s = now.search.time_limit_s;
  earlier->threads = now.threads;
  return train_config_json(*earlier) == train_config_json(now);
}

class Search {
 public:
  Search(const TrainConfig& config, const Cluster& cluster, std::string folder, TrainingWindows windows)
      : config_(config),
        cluster_(cluster),
        folder_(std::move(folder)),
        windows_(std::move(windows)),
        parameters_(initial_parameters(config.network, Rng(config.seed).split("parameters"))),
        average_(parameters_.begin(),
                 parameters_.begin() + static_cast<std::ptrdiff_t>(layout_of(config.network).policy_size)),
        cma_(average_, {.step = config.search.step, .population = config.search.population},
             Rng(config.seed).split("candidates")) {
    fit_normaliser();
    heuristic_ = heuristic_losses(pointers_to(windows_.train));
    summary_.validation_heuristic = mean_of(heuristic_losses(pointers_to(windows_.validation)));
    summary_.device = "cpu";
    metrics_ = csv_header;
  }

  /// Goes on from search.json in the folder, which the same configuration must have written.
  Result<void> take_up() {
    const std::string file = folder_ + "/" + search_state_file;
    const auto text = read_text_file(file);
    if (!text) return Unexpected{text.error()};
    const auto json = parse_json_strictly(*text, file);
    if (!json) return Unexpected{json.error()};
    CmaEsState state;
    std::string config;
    std::vector<double> average;
    std::vector<std::uint64_t> rng;
    JsonFields fields(*json, file);
    constexpr double any = 1e300;
    constexpr double any_integer = 18446744073709551615.0;
    fields.read("iterations", summary_.iterations);
    fields.read("steps", summary_.steps);
    fields.read("seconds", summary_.seconds);
    fields.read("best_iteration", summary_.best_iteration);
    fields.read("best_validation", summary_.best_validation, -any, any);
    fields.read("validation", validation_, -any, any);
    fields.read("average", average, average_.size());
    fields.read("mean", state.mean, 0);
    fields.read("covariance", state.covariance, 0);
    fields.read("path", state.path, 0);
    fields.read("step_path", state.step_path, 0);
    fields.read("step", state.step, 0, any);
    fields.read("generation", state.generation, 0, any_integer);
    fields.read("rng", rng, 2);
    fields.read("metrics_csv", metrics_);
    fields.read("config", config);
    for (const char* key : {"iterations", "average", "rng", "config"}) fields.require(key);
    if (!cma_.fits(state)) fields.fail("mean", "is of a search of other dimensions");
    if (auto done = fields.finish(); !done) return done;
    if (!continues(config, config_)) {
      return Unexpected{
          Error{.message = "was made with another configuration than config.json beside it", .file = file}};
    }
    state.rng = {rng[0], rng[1]};
    cma_.restore(state);
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
    return summary_;
  }

 private:
  void fit_normaliser() {
    constexpr std::uint32_t most_windows = 16;
    VectorEnv env(windows_.train, {}, cluster_,
                  {.env = config_.env, .autoreset = AutoresetMode::disabled, .environments = most_windows});
    const std::uint64_t seed = Rng(config_.seed).split("normaliser").state()[0];
    const Heuristic heuristic = config_.env.agenda.heuristic;
    std::vector<Observation> seen;
    if (config_.env.agenda.mode == ActionMode::preempt) {
      seen.push_back(states_of_ranking(env, heuristic, seed));
    } else {
      for (Episode& episode : collect_episodes(env, {}, Acting::heuristic, heuristic, seed, true)) {
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

  // Every parameter, with these for the policy's part.
  [[nodiscard]] std::vector<float> with_policy(std::span<const double> policy) const {
    std::vector<float> parameters = parameters_;
    for (std::size_t i = 0; i < policy.size(); ++i) parameters[i] = static_cast<float>(policy[i]);
    return parameters;
  }

  [[nodiscard]] std::vector<double> losses(std::span<const float> parameters,
                                           std::span<const Window* const> windows) const {
    return window_losses(windows, cluster_, config_.env, {&config_.network, &normaliser_, parameters}, Acting::best);
  }

  [[nodiscard]] std::vector<double> heuristic_losses(std::span<const Window* const> windows) const {
    std::vector<double> result(windows.size());
    for_each_index(windows.size(), config_.threads, [&](std::size_t w) {
      result[w] = window_losses(windows.subspan(w, 1), cluster_, config_.env, {}, Acting::heuristic).front();
    });
    return result;
  }

  // One generation; its candidates meet the same windows.
  TrainProgress evolve() {
    Rng draw = Rng(config_.seed).split("windows").split(summary_.iterations);
    std::vector<const Window*> windows;
    TrainProgress progress;
    for (std::uint32_t i = 0; i < config_.search.windows; ++i) {
      const std::uint64_t w = draw.below(windows_.train.size());
      windows.push_back(&windows_.train[w]);
      progress.heuristic += heuristic_[w] / config_.search.windows;
    }
    const std::vector<std::vector<double>>& candidates = cma_.ask();
    std::vector<double> scores(candidates.size()), means(candidates.size());
    for_each_index(candidates.size(), config_.threads, [&](std::size_t i) {
      const std::vector<double> each = losses(with_policy(candidates[i]), windows);
      means[i] = mean_of(each);
      scores[i] = score_of(each);
    });
    progress.metric = *std::min_element(means.begin(), means.end());
    cma_.tell(scores);
    ++summary_.iterations;
    summary_.steps += std::uint64_t{cma_.population()} * config_.search.windows;
    // The centre follows the noise of each generation's windows; its running average does so less.
    const double kept = std::min(config_.search.average, 1 - 1.0 / summary_.iterations);
    const std::vector<double> centre = cma_.mean();
    for (std::size_t i = 0; i < average_.size(); ++i) average_[i] = kept * average_[i] + (1 - kept) * centre[i];
    return progress;
  }

  [[nodiscard]] double score_of(std::span<const double> each) const {
    if (config_.search.objective == SearchObjective::mean) return mean_of(each);
    double sum = 0;
    constexpr double no_queue = 1e-9;  // a window without waiting has no logarithm
    for (const double loss : each) sum += std::log(std::max(loss, no_queue));
    return sum / static_cast<double>(each.size());
  }

  // Keeps the model when it is the best so far; the untrained one comes first.
  Result<void> validate() {
    const std::vector<float> parameters = with_policy(average_);
    validation_ = mean_of(losses(parameters, pointers_to(windows_.validation)));
    if (summary_.iterations > 0 && validation_ >= summary_.best_validation) return {};
    summary_.best_iteration = summary_.iterations;
    summary_.best_validation = validation_;
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
    progress.validation = validation_;
    progress.validated = validated;
    progress.validation_heuristic = summary_.validation_heuristic;
    return progress;
  }

  Result<void> save() const {
    const CmaEsState state = cma_.state();
    const Json json{{"iterations", summary_.iterations},
                    {"steps", summary_.steps},
                    {"seconds", summary_.seconds},
                    {"best_iteration", summary_.best_iteration},
                    {"best_validation", summary_.best_validation},
                    {"validation", validation_},
                    {"average", average_},
                    {"mean", state.mean},
                    {"covariance", state.covariance},
                    {"path", state.path},
                    {"step_path", state.step_path},
                    {"step", state.step},
                    {"generation", state.generation},
                    {"rng", state.rng},
                    {"metrics_csv", metrics_},
                    {"config", train_config_json(config_)}};
    return replace_file(folder_ + "/" + search_state_file, json.dump() + "\n");
  }

  Result<void> record(const TrainProgress& progress, EventFile& events) {
    std::vector<std::pair<std::string, double>> scalars{{"charts/loss_per_job", progress.metric},
                                                        {"charts/heuristic_loss_per_job", progress.heuristic}};
    char row[256];
    std::snprintf(row, sizeof row, "%u,%llu,%.6g,%.6g,", progress.iteration,
                  static_cast<unsigned long long>(progress.steps), progress.metric, progress.heuristic);
    metrics_ += row;
    if (progress.validated) {
      scalars.emplace_back("charts/validation_loss_per_job", progress.validation);
      scalars.emplace_back("charts/validation_heuristic_loss_per_job", progress.validation_heuristic);
      std::snprintf(row, sizeof row, "%.6g,%.6g", progress.validation, progress.validation_heuristic);
      metrics_ += row;
    } else {
      metrics_ += ",";
    }
    std::snprintf(row, sizeof row, ",%.6g,%.1f\n", cma_.step(), summary_.seconds);
    metrics_ += row;
    events.write(wall_time_s(), progress.iteration, scalars);
    return replace_file(folder_ + "/metrics.csv", metrics_);
  }

  const TrainConfig& config_;
  const Cluster& cluster_;
  std::string folder_;
  TrainingWindows windows_;
  std::vector<double> heuristic_;  // its loss in each training window
  Normaliser normaliser_;
  std::vector<float> parameters_;  // untrained
  std::vector<double> average_;    // of the policy's part
  CmaEs cma_;
  double validation_ = 0;
  TrainSummary summary_;
  std::string metrics_;
};

}  // namespace

Result<TrainSummary> search(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                            const std::string& folder, bool resume,
                            const std::function<void(const TrainProgress&)>& watch) {
  if (config.network.kind != NetworkKind::index && config.network.kind != NetworkKind::rank) {
    return Unexpected{Error{.message = "method cma_es searches the networks index and rank", .field = "/network/kind"}};
  }
  auto windows = training_windows(config, jobs);
  if (!windows) return Unexpected{windows.error()};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return Unexpected{Error{.message = "the folder cannot be made", .file = folder}};
  Search search(config, cluster, folder, *std::move(windows));
  if (resume) {
    if (auto done = search.take_up(); !done) return Unexpected{done.error()};
  } else if (auto done = replace_file(folder + "/config.json", train_config_json(config)); !done) {
    return failed_run(done.error());
  }
  return search.run(watch);
}

}  // namespace gpusched
