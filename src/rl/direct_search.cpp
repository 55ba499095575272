// SPDX-License-Identifier: Apache-2.0
#include "src/rl/direct_search.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "src/policies/trained_model.hpp"
#include "src/rl/cma_es.hpp"
#include "src/rl/event_file.hpp"
#include "src/rl/run_clock.hpp"
#include "src/rl/training_windows.hpp"
#include "src/sim/atomic_file.hpp"
#include "src/sim/statistics.hpp"

namespace gpusched {
namespace {

constexpr const char* csv_header =
    "generation,episodes,loss,heuristic_loss,validation_loss,validation_heuristic_loss,step,seconds\n";

class Search {
 public:
  Search(const TrainConfig& config, const Cluster& cluster, std::string folder, TrainingWindows windows)
      : config_(config), cluster_(cluster), folder_(std::move(folder)), windows_(std::move(windows)) {
    parameters_ = initial_parameters(config.network, Rng(config.seed).split("parameters"));
    fit_normaliser();
    const auto policy_size = static_cast<std::ptrdiff_t>(layout_of(config.network).policy_size);
    average_.assign(parameters_.begin(), parameters_.begin() + policy_size);
    heuristic_ = window_losses(pointers_to(windows_.train), cluster_, config_.env, {}, Acting::heuristic);
    summary_.validation_heuristic =
        mean_of(window_losses(pointers_to(windows_.validation), cluster_, config_.env, {}, Acting::heuristic));
    summary_.device = "cpu";
    metrics_ = csv_header;
  }

  Result<TrainSummary> run(const std::function<void(const TrainProgress&)>& watch) {
    const SearchOptions& options = config_.search;
    const auto begin = RunClock::now();
    CmaEs cma(average_, {.step = options.step, .population = options.population},
              Rng(config_.seed).split("candidates"));
    EventFile events(folder_, wall_time_s());
    if (auto done = validate(); !done) return Unexpected{done.error()};
    while (summary_.iterations < options.generations &&
           !(options.time_limit_s > 0 && seconds_since(begin) >= options.time_limit_s)) {
      const auto generation_begin = RunClock::now();
      const TrainProgress result = evolve(cma);
      const bool last = summary_.iterations == options.generations;
      const bool validated = last || summary_.iterations % options.validate_every == 0;
      if (validated) {
        if (auto done = validate(); !done) return Unexpected{done.error()};
      }
      summary_.seconds = seconds_since(begin);
      const TrainProgress progress = progress_of(result, seconds_since(generation_begin), validated);
      if (auto done = record(progress, cma.step(), events); !done) return Unexpected{done.error()};
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

  // The losses of these policy parameters.
  std::vector<double> losses(std::span<const double> policy, std::span<const Window* const> windows) {
    for (std::size_t i = 0; i < policy.size(); ++i) parameters_[i] = static_cast<float>(policy[i]);
    return window_losses(windows, cluster_, config_.env, {&config_.network, &normaliser_, parameters_}, Acting::best);
  }

  // One generation; its candidates meet the same windows.
  TrainProgress evolve(CmaEs& cma) {
    Rng draw = Rng(config_.seed).split("windows").split(summary_.iterations);
    std::vector<const Window*> windows;
    TrainProgress progress{.metric = std::numeric_limits<double>::infinity()};
    for (std::uint32_t i = 0; i < config_.search.windows; ++i) {
      const std::uint64_t w = draw.below(windows_.train.size());
      windows.push_back(&windows_.train[w]);
      progress.heuristic += heuristic_[w] / config_.search.windows;
    }
    std::vector<double> scores;
    for (const std::vector<double>& candidate : cma.ask()) {
      const std::vector<double> each = losses(candidate, windows);
      progress.metric = std::min(progress.metric, mean_of(each));
      scores.push_back(score_of(each));
    }
    cma.tell(scores);
    ++summary_.iterations;
    summary_.steps += std::uint64_t{cma.population()} * config_.search.windows;
    // The centre follows the noise of each generation's windows; its running average does so less.
    const double kept = std::min(config_.search.average, 1 - 1.0 / summary_.iterations);
    const std::vector<double> centre = cma.mean();
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
    validation_ = mean_of(losses(average_, pointers_to(windows_.validation)));
    if (summary_.iterations > 0 && validation_ >= summary_.best_validation) return {};
    summary_.best_iteration = summary_.iterations;
    summary_.best_validation = validation_;
    return save_model({.agenda = config_.env.agenda,
                       .network = config_.network,
                       .normaliser = normaliser_,
                       .parameters = parameters_},
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

  Result<void> record(const TrainProgress& progress, double step, EventFile& events) {
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
    std::snprintf(row, sizeof row, ",%.6g,%.1f\n", step, summary_.seconds);
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
  std::vector<float> parameters_;  // the critic's part stays untrained
  std::vector<double> average_;    // of the policy's part
  double validation_ = 0;
  TrainSummary summary_;
  std::string metrics_;
};

}  // namespace

Result<TrainSummary> search(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                            const std::string& folder, const std::function<void(const TrainProgress&)>& watch) {
  if (config.network.kind != NetworkKind::index && config.network.kind != NetworkKind::rank) {
    return Unexpected{Error{.message = "method cma_es searches the networks index and rank", .field = "/network/kind"}};
  }
  auto windows = training_windows(config, jobs);
  if (!windows) return Unexpected{windows.error()};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return Unexpected{Error{.message = "the folder cannot be made", .file = folder}};
  if (auto done = replace_file(folder + "/config.json", train_config_json(config)); !done) {
    return Unexpected{done.error()};
  }
  return Search(config, cluster, folder, *std::move(windows)).run(watch);
}

}  // namespace gpusched
