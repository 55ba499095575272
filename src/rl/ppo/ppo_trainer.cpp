// SPDX-License-Identifier: Apache-2.0
#include "src/rl/ppo/ppo_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/number_text.hpp"
#include "src/base/parallel.hpp"
#include "src/base/statistics.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/policies/learned/window_checks.hpp"
#include "src/rl/episode_states.hpp"
#include "src/rl/event_file.hpp"
#include "src/rl/failed_run.hpp"
#include "src/rl/initial_parameters.hpp"
#include "src/rl/ppo/checkpoint.hpp"
#include "src/rl/ppo/learner.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/run_clock.hpp"
#include "src/rl/training_windows.hpp"

namespace gpusched {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// What an update of the policy and the critic came to.
struct UpdateSummary {
  double policy_loss = nothing, entropy = nothing, kl = nothing, clip_fraction = nothing, gradient_norm = nothing;
  double start_kl = nothing;
  double value_loss = nothing, critic_gradient_norm = nothing;
  double gradient_cosine = nothing;  // between the halves of the iteration's episodes
  double policy_steps = nothing;     // of the learner
};

// What an iteration is logged with; a number that is none is left blank.
struct Measures {
  double loss = nothing, heuristic_loss = nothing;
  double validation_loss = nothing, validation_heuristic_loss = nothing;
  double sampled_over_best = nothing;  // validation loss of sampled actions over that of the best ones
  UpdateSummary update;
  double explained_variance = nothing;
  double learning_rate = 0, temperature = 1;
  double steps_per_s = nothing;
  double iteration_s = nothing;
  RolloutTime rollout = {nothing, nothing};
  double learner_s = nothing;
};

struct Metric {
  const char* column;  // of metrics.csv
  const char* tag;     // of TensorBoard: those that CleanRL's users know
  double value;
};

std::vector<Metric> metrics_of(const Measures& m, const PpoOptions& options) {
  const UpdateSummary& update = m.update;
  std::vector<Metric> metrics{
      {"loss", "charts/loss_per_job", m.loss},
      {"heuristic_loss", "charts/heuristic_loss_per_job", m.heuristic_loss},
      {"validation_loss", "charts/validation_loss_per_job", m.validation_loss},
      {"validation_heuristic_loss", "charts/validation_heuristic_loss_per_job", m.validation_heuristic_loss},
      {"sampled_over_best", "charts/sampled_over_best", m.sampled_over_best},
      {"policy_loss", "losses/policy_loss", update.policy_loss},
      {"value_loss", "losses/value_loss", update.value_loss},
      {"entropy", "losses/entropy", update.entropy},
      {"approx_kl", "losses/approx_kl", update.kl},
      {"clip_fraction", "losses/clipfrac", update.clip_fraction},
      {"gradient_norm", "losses/gradient_norm", update.gradient_norm},
      {"critic_gradient_norm", "losses/critic_gradient_norm", update.critic_gradient_norm},
      {"gradient_cosine", "losses/gradient_cosine", update.gradient_cosine},
      {"policy_steps", "losses/policy_steps", update.policy_steps},
      {"explained_variance", "losses/explained_variance", m.explained_variance},
      {"learning_rate", "charts/learning_rate", m.learning_rate},
      {"steps_per_s", "charts/SPS", m.steps_per_s},
      {"iteration_s", "time/iteration_s", m.iteration_s},
      {"environment_share", "time/environment_share", m.rollout.environment_s / m.iteration_s},
      {"inference_share", "time/inference_share", m.rollout.inference_s / m.iteration_s},
      {"learner_share", "time/learner_share", m.learner_s / m.iteration_s}};
  if (options.start_kl > 0) metrics.push_back({"start_kl", "losses/start_kl", update.start_kl});
  if (options.sampling_cost > 0) metrics.push_back({"temperature", "charts/temperature", m.temperature});
  return metrics;
}

std::string csv_header(const PpoOptions& options) {
  std::string header = "iteration,steps";
  for (const Metric& metric : metrics_of({}, options)) header += std::string(",") + metric.column;
  return header + "\n";
}

// One row of metrics.csv.
std::string csv_row(std::uint32_t iteration, std::uint64_t steps, std::span<const Metric> metrics) {
  std::string row = std::to_string(iteration) + "," + std::to_string(steps);
  for (const Metric& metric : metrics) {
    row += std::isfinite(metric.value) ? formatted(",%.6g", metric.value) : ",";
  }
  return row + "\n";
}

class Trainer {
 public:
  Trainer(const TrainConfig& config, const Cluster& cluster, std::string folder, std::unique_ptr<Learner> learner,
          TrainingWindows windows)
      : config_(config),
        ppo_(config.ppo),
        cluster_(cluster),
        folder_(std::move(folder)),
        learner_(std::move(learner)),
        windows_(std::move(windows.train)),
        validation_(std::move(windows.validation)) {}

  // Everything that is a function of the configuration alone.
  Result<void> prepare(const JobTable& jobs) {
    if (ppo_.imitate_iterations > 0 && !ppo_.teacher_model.empty()) {
      auto teacher = load_kin(ppo_.teacher_model, "/ppo/teacher");
      if (!teacher) return Unexpected{teacher.error()};
      if (teacher->network.steers()) {
        return Unexpected{Error{.message = "is a model that steers, whose choices are no lesson",
                                .file = ppo_.teacher_model,
                                .field = "/ppo/teacher"}};
      }
      teacher_ = *std::move(teacher);
    }
    auto clusters = training_clusters(config_, jobs, cluster_);
    if (!clusters) return Unexpected{clusters.error()};
    clusters_ = *std::move(clusters);
    if (auto checked = check_choices(windows_, clusters_, config_.env, "/env/mode"); !checked) return checked;
    for (const Window& window : windows_) ends_.push_back(window.end);
    heuristic_loss_ = losses(windows_, Acting::heuristic);
    validation_heuristic_ = mean_of(losses(validation_, Acting::heuristic));
    // Windows without a queue would divide by nearly nothing.
    const double mean = std::max(1e-9, mean_of(heuristic_loss_));
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      const auto count = static_cast<double>(windows_[w].jobs.size() - windows_[w].first_scored);
      const double own = std::max(heuristic_loss_[w], 0.02 * mean);
      double unit = own;
      if (ppo_.reward_scale == RewardScale::mean) unit = mean;
      if (ppo_.reward_scale == RewardScale::root) unit = std::sqrt(own * mean);
      scales_.push_back(1 / (unit * count));
    }
    VectorEnvOptions options{.env = config_.env,
                             .autoreset = AutoresetMode::disabled,
                             .environments = ppo_.windows * ppo_.group,
                             .environments_per_window = ppo_.group,
                             .threads = threads()};
    env_.emplace(windows_, scales_, std::span<const Cluster>(clusters_), options);
    if (ppo_.baseline == Baseline::self_critic) {  // one episode of each window: the same seed draws the same
      options.environments = ppo_.windows;
      options.environments_per_window = 1;
      rivals_env_.emplace(windows_, scales_, std::span<const Cluster>(clusters_), options);
    }
    return {};
  }

  // The untrained network and the inputs' scales from the heuristic's own states; or what the configuration starts
  // from.
  Result<void> start_afresh() {
    state_.parameters = initial_parameters(config_.network, Rng(config_.seed).split("parameters"));
    state_.adam.first.assign(state_.parameters.size(), 0.0f);
    state_.adam.second = state_.adam.first;
    state_.learning_rate = ppo_.learning_rate;
    state_.temperature = ppo_.temperature;
    state_.config = train_config_json(config_);
    state_.metrics_csv = csv_header(ppo_);
    const std::uint64_t seed = seed_of("normaliser");
    // A network that steers does untrained what the heuristic does, and sees what it will.
    const std::vector<Episode> episodes =
        config_.network.steers()
            ? steer_episodes(*env_, actor(), Acting::best, seed, threads())
            : collect_episodes(*env_, actor(), Acting::heuristic, config_.env.agenda.heuristic, seed, keep());
    const EpisodeStates states = states_of(episodes);
    NormaliserFit fit;
    Observation room;
    for (std::uint32_t e = 0; e < episodes.size(); ++e) fit.add(states.of(e, room));
    state_.normaliser = fit.normaliser();
    if (!config_.init.empty()) {
      auto model = load_kin(config_.init, "/init");
      if (!model) return Unexpected{model.error()};
      if (auto done = start_from(*model); !done) return done;
    }
    if (ppo_.start_kl > 0) state_.start = state_.parameters;
    return {};
  }

  void take_up(Checkpoint state) { state_ = std::move(state); }
  [[nodiscard]] const Checkpoint& state() const { return state_; }
  [[nodiscard]] double validation_heuristic() const { return validation_heuristic_; }

  Result<void> open_learner() {
    auto learner = make_learner(config_.network, state_.normaliser, config_.device);
    if (!learner) return Unexpected{learner.error()};
    learner_ = *std::move(learner);
    learner_->set_state(state_.parameters, state_.adam);
    if (ppo_.start_kl > 0) learner_->set_start(state_.start);
    return {};
  }

  [[nodiscard]] std::string device() const { return learner_->device(); }

  [[nodiscard]] bool finished(RunClock::time_point begin) const {
    return state_.iteration >= ppo_.iterations ||
           (ppo_.time_limit_s > 0 && trained_before_ + seconds_since(begin) >= ppo_.time_limit_s);
  }

  void remember_time() { trained_before_ = state_.trained_s; }

  // One iteration; on an error state_ is as before it.
  Result<TrainProgress> iterate(RunClock::time_point begin) {
    const auto rollout_begin = RunClock::now();
    const std::uint64_t seed = seed_of("rollout", state_.iteration);
    const Lesson lesson = lesson_of(state_.iteration);
    if (!set_horizon(state_.iteration)) {
      return Unexpected{Error{.message = "no training window has a choice before its end; expected more jobs",
                              .field = "/ppo/horizon_jobs"}};
    }
    // A function of the iteration's number and parameters, so that it is found again where a run goes on.
    if (ppo_.sampling_cost > 0 && state_.iteration % ppo_.validate_every == 0) state_.temperature = find_temperature();
    Measures measures;
    measures.rollout = {};
    std::vector<Episode> episodes = roll_out(lesson, seed, measures.rollout);
    EpisodeStates states = states_of(episodes);
    Checkpoint next = state_;
    Rivals rivals = collect_rivals(seed, measures.rollout);
    if (ppo_.average_reward) {
      const double now = mean_reward_per_s(episodes);
      next.reward_per_s = state_.iteration == 0 ? now : state_.reward_per_s + 0.1 * (now - state_.reward_per_s);
      make_differential(episodes, next.reward_per_s);
      make_differential(rivals.episodes, next.reward_per_s);
    }
    const auto values_begin = RunClock::now();
    std::vector<std::vector<double>> values = critic_values(episodes, states);
    measures.rollout.inference_s += seconds_since(values_begin);
    const Advantages advantages = advantages_of(episodes, values, ppo_.group, config_.env.discount_per_s, ppo_, rivals);

    const auto learner_begin = RunClock::now();
    if (ppo_.anneal > 0) next.learning_rate = annealed_rate();
    scale_returns(next, advantages.value_target);
    const auto update = learn(next, episodes, states, values, advantages, lesson);
    if (!update) {
      return Unexpected{Error{.message = update.error().message + " in iteration " +
                                         std::to_string(state_.iteration + 1) +
                                         "; the last good checkpoint and model are kept in " + folder_}};
    }
    next.parameters = learner_->parameters();
    next.adam = learner_->adam();
    ++next.iteration;
    std::size_t steps = 0;
    for (const Episode& episode : episodes) steps += episode.size();
    next.steps += steps;
    state_ = std::move(next);
    measures.learner_s = seconds_since(learner_begin) - states.simulated_s();
    measures.rollout.environment_s += states.simulated_s();
    measures.iteration_s = seconds_since(rollout_begin);
    measures.update = *update;
    measures.explained_variance = explained_variance(values, advantages);
    measures.steps_per_s = static_cast<double>(steps) / measures.iteration_s;

    const bool validate = state_.iteration % ppo_.validate_every == 0 || state_.iteration == ppo_.iterations;
    if (validate) {
      if (auto done = run_validation(measures); !done) return Unexpected{done.error()};
    }
    state_.trained_s = trained_before_ + seconds_since(begin);
    const TrainProgress progress = progress_of(episodes, measures.steps_per_s, begin, validate);
    measures.loss = progress.metric;
    measures.heuristic_loss = progress.heuristic;
    log(measures);
    return progress;
  }

  // The untrained model is the first candidate.
  Result<void> validate_untrained() {
    Measures measures;
    if (auto done = run_validation(measures); !done) return done;
    log(measures);
    return {};
  }

  Result<void> save() {
    if (auto done = save_checkpoint(state_, folder_ + "/checkpoint.bin"); !done) return done;
    return replace_file(folder_ + "/metrics.csv", state_.metrics_csv);
  }

  // Of the last iteration, for TensorBoard.
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& scalars() const { return scalars_; }

 private:
  // A model that sees the same states and the same prior; `field` names it in the configuration.
  [[nodiscard]] Result<TrainedModel> load_kin(const std::string& model_folder, const std::string& field) const {
    auto model = load_model(model_folder);
    if (!model) return model;
    const AgendaOptions& own = config_.env.agenda;
    const AgendaOptions& its = model->agenda;
    if (its.mode == own.mode && its.knowledge == own.knowledge && its.heuristic == own.heuristic &&
        its.choose_nodes == own.choose_nodes && its.node_speeds == own.node_speeds && its.signals == own.signals &&
        its.forecast == own.forecast) {
      return model;
    }
    return Unexpected{Error{.message = "is a model of another env/mode, knowledge, heuristic or choose_nodes",
                            .file = model_folder,
                            .field = field}};
  }

  // Takes a model's policy over. One that does not steer gives one that does its weights to start from.
  Result<void> start_from(const TrainedModel& model) {
    const AgendaOptions& agenda = config_.env.agenda;
    const NetworkLayout own = layout_of(config_.network);
    const std::size_t size = layout_of(model.network).policy_size;
    const bool fits = size == own.policy_size || (own.steered > 0 && size == own.steered_begin + own.steered);
    const bool same_heads =
        model.network.kind != NetworkKind::attention || model.network.heads == config_.network.heads;
    const bool same_hidden = model.network.hidden == config_.network.hidden;
    if (model.network.kind != config_.network.kind || !same_heads || !same_hidden || !fits)
      return Unexpected{Error{.message = "is a model of another network", .file = config_.init, .field = "/init"}};
    std::copy_n(model.parameters.begin(), size, state_.parameters.begin());
    state_.normaliser.job_mean = model.normaliser.job_mean;
    state_.normaliser.job_scale = model.normaliser.job_scale;
    // In mode preempt a model that does not steer has seen no global features to speak of, and reads none.
    if (agenda.mode != ActionMode::preempt || model.network.steers()) state_.normaliser = model.normaliser;
    return {};
  }

  [[nodiscard]] std::uint32_t threads() const { return thread_count(config_.threads); }

  std::vector<Episode> roll_out(Lesson lesson, std::uint64_t seed, RolloutTime& time) {
    if (config_.network.steers()) return steer_episodes(*env_, actor(), Acting::sample, seed, threads(), &time);
    if (lesson == Lesson::imitate && teacher_) {
      const Actor teacher{&teacher_->network, &teacher_->normaliser, teacher_->parameters};
      return collect_episodes(*env_, teacher, Acting::best, ppo_.teacher, seed, keep(), &time);
    }
    const Acting acting = lesson == Lesson::imitate ? Acting::heuristic : Acting::sample;
    return collect_episodes(*env_, actor(), acting, ppo_.teacher, seed, keep(), &time);
  }

  [[nodiscard]] Keep keep() const { return ppo_.resimulate ? Keep::steps : Keep::states; }

  // Of episodes that env_ has just played.
  [[nodiscard]] EpisodeStates states_of(const std::vector<Episode>& episodes) const {
    return {episodes, *env_, windows_, scales_, threads()};
  }

  [[nodiscard]] Actor actor() const {
    return {&config_.network, &state_.normaliser, state_.parameters, state_.temperature};
  }

  // The highest temperature, up to the configured one, at which sampled actions cost no more than they may: on training
  // windows, with the same draws at each temperature.
  [[nodiscard]] double find_temperature() const {
    const std::vector<const Window*> all = pointers_to(windows_);
    const std::size_t count = std::min<std::size_t>(all.size(), ppo_.validation_windows);
    std::vector<const Window*> some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
    const double best = mean_of(window_losses(some, cluster_, config_.env, actor(), Acting::best));
    const auto is_cheap = [&](double temperature) {
      Actor sampling = actor();
      sampling.temperature = temperature;
      const double sampled = mean_of(window_losses(some, cluster_, config_.env, sampling, Acting::sample,
                                                   seed_of("temperature", state_.iteration)));
      return sampled <= (1 + ppo_.sampling_cost) * best;
    };
    if (is_cheap(ppo_.temperature)) return ppo_.temperature;
    double low = ppo_.temperature / 1024;
    double high = ppo_.temperature;
    for (int halving = 0; halving < 6; ++halving) {  // to within an eighth
      const double middle = std::sqrt(low * high);
      (is_cheap(middle) ? low : high) = middle;
    }
    return low;
  }

  [[nodiscard]] std::uint64_t seed_of(std::string_view purpose, std::uint64_t index = 0) const {
    return Rng(config_.seed).split(purpose).split(index).state()[0];
  }

  [[nodiscard]] std::vector<double> losses(const std::vector<Window>& windows, Acting acting) const {
    return window_losses(pointers_to(windows), cluster_, config_.env, actor(), acting);
  }

  [[nodiscard]] Lesson lesson_of(std::uint32_t iteration) const {
    if (iteration < ppo_.imitate_iterations) return Lesson::imitate;
    return iteration - ppo_.imitate_iterations < ppo_.critic_warm_up ? Lesson::critic : Lesson::improve;
  }

  [[nodiscard]] double annealed_rate() const {
    const double left = 1 - static_cast<double>(state_.iteration) / ppo_.anneal;
    return ppo_.learning_rate * std::max(0.01, left);
  }

  // Lets the episodes of an iteration end where its horizon is. False when not one of them would have a choice.
  bool set_horizon(std::uint32_t iteration) {
    if (ppo_.horizon_iterations == 0 || horizon_is_open_) return true;
    horizon_is_open_ = iteration >= ppo_.horizon_iterations;
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      windows_[w].end = ends_[w];
      windows_[w].end = horizon_end(ppo_, iteration, windows_[w]);
    }
    Env probe(clusters_.front(), config_.env);
    return std::any_of(windows_.begin(), windows_.end(),
                       [&](const Window& window) { return !probe.reset(window).done(); });
  }

  // The heuristic's episodes of this iteration, for Baseline::self_critic.
  Rivals collect_rivals(std::uint64_t seed, RolloutTime& time) {
    Rivals rivals;
    if (!rivals_env_) return rivals;
    rivals.episodes = collect_episodes(*rivals_env_, actor(), Acting::heuristic, config_.env.agenda.heuristic, seed,
                                       Keep::steps, &time);
    for (const Episode& rival : rivals.episodes) rivals.last_value.push_back(last_value(rival));
    return rivals;
  }

  // In units of reward.
  void append_values(const Observation& seen, std::vector<double>& to) const {
    std::vector<float> values;
    forward_critic(config_.network, state_.parameters, state_.normaliser, seen, values);
    for (const float value : values) {
      to.push_back(static_cast<double>(value) * state_.return_scale + state_.return_mean);
    }
  }

  // Of the final observation; 0 for an episode that ended.
  [[nodiscard]] double last_value(const Episode& episode) const {
    if (episode.final_observation.count() == 0) return 0;
    std::vector<double> values;
    append_values(episode.final_observation, values);
    return values.front();
  }

  // Of each step, with last_value() behind.
  [[nodiscard]] std::vector<std::vector<double>> critic_values(const std::vector<Episode>& episodes,
                                                               const EpisodeStates& states) const {
    std::vector<std::vector<double>> result(episodes.size());
    for_each_index(episodes.size(), threads(), [&](std::size_t e) {
      Observation room;
      append_values(states.of(static_cast<std::uint32_t>(e), room), result[e]);
      result[e].push_back(last_value(episodes[e]));
    });
    return result;
  }

  // Moves the critic's units towards the mean and deviation of these targets.
  static void scale_returns(Checkpoint& state, const std::vector<std::vector<double>>& targets) {
    double sum = 0;
    double squares = 0;
    double count = 0;
    for (const auto& episode : targets) {
      for (const double target : episode) {
        sum += target;
        squares += target * target;
        count += 1;
      }
    }
    const double mean = sum / count;
    const double deviation = std::max(1e-6, std::sqrt(std::max(0.0, squares / count - mean * mean)));
    const double rate = state.iteration == 0 ? 1.0 : 0.1;
    state.return_mean += rate * (mean - state.return_mean);
    state.return_scale += rate * (deviation - state.return_scale);
  }

  // What an iteration's episodes teach, in units that a network learns well.
  struct Material {
    const std::vector<Episode>& episodes;
    EpisodeStates& states;
    const std::vector<std::vector<double>>& values;
    const Advantages& advantages;
    double mean, deviation;            // of the advantages
    double return_mean, return_scale;  // the critic's units

    // Makes `batch` the steps of `places`, in the memory that it has.
    void fill(std::span<const StepPlace> places, Minibatch& batch) const {
      const auto in_units = [&](double value) { return static_cast<float>((value - return_mean) / return_scale); };
      states.at(places, batch.observation);
      batch.actions.clear();
      batch.weights.clear();
      for (auto* const column : {&batch.old_log_probability, &batch.advantage, &batch.value_target, &batch.old_value}) {
        column->clear();
      }
      for (const auto [e, k] : places) {
        batch.actions.push_back(episodes[e].actions[k]);
        const std::size_t steered = episodes[e].weights.size() / episodes[e].size();  // 0 unless the network steers
        const auto weights = std::span(episodes[e].weights).subspan(k * steered, steered);
        batch.weights.insert(batch.weights.end(), weights.begin(), weights.end());
        batch.old_log_probability.push_back(episodes[e].log_probability[k]);
        batch.advantage.push_back(static_cast<float>((advantages.advantage[e][k] - mean) / deviation));
        batch.value_target.push_back(in_units(advantages.value_target[e][k]));
        batch.old_value.push_back(in_units(values[e][k]));
      }
    }
  };

  static Material material_of(const Checkpoint& next, const std::vector<Episode>& episodes, EpisodeStates& states,
                              const std::vector<std::vector<double>>& values, const Advantages& advantages,
                              std::vector<StepPlace>& places) {
    double sum = 0;
    double squares = 0;
    for (std::uint32_t e = 0; e < episodes.size(); ++e) {
      for (std::uint32_t k = 0; k < episodes[e].size(); ++k) {
        places.push_back({e, k});
        sum += advantages.advantage[e][k];
        squares += advantages.advantage[e][k] * advantages.advantage[e][k];
      }
    }
    const auto count = static_cast<double>(places.size());
    const double mean = sum / count;
    return {.episodes = episodes,
            .states = states,
            .values = values,
            .advantages = advantages,
            .mean = mean,
            .deviation = std::sqrt(std::max(0.0, squares / count - mean * mean)) + 1e-8,
            .return_mean = next.return_mean,
            .return_scale = next.return_scale};
  }

  // Episodes of one window share their luck, so that halves are made of whole groups where there are two.
  [[nodiscard]] std::uint32_t half_of(const StepPlace& place) const {
    return (ppo_.windows > 1 ? place.episode / ppo_.group : place.episode) % 2;
  }

  // Adds a minibatch's gradient in pieces; with `halves`, those of the two halves of the episodes apart. Several pieces
  // take the steps in order, so that each episode is simulated once (EpisodeStates::at).
  void add_in_pieces(const Material& material, std::span<StepPlace> minibatch, bool halves, Lesson lesson,
                     const PpoOptions& options) {
    if (minibatch.size() > ppo_.piece) {
      std::sort(minibatch.begin(), minibatch.end(), [](const StepPlace& a, const StepPlace& b) {
        return std::tie(a.episode, a.step) < std::tie(b.episode, b.step);
      });
    }
    const auto second = halves ? std::stable_partition(minibatch.begin(), minibatch.end(),
                                                       [&](const StepPlace& place) { return half_of(place) == 0; })
                               : minibatch.end();
    const auto first_half = static_cast<std::size_t>(second - minibatch.begin());
    for (const std::uint32_t half : {0u, 1u}) {
      const std::span<const StepPlace> places = half == 0 ? minibatch.first(first_half) : minibatch.subspan(first_half);
      for (std::size_t at = 0; at < places.size(); at += ppo_.piece) {
        const auto piece = places.subspan(at, std::min<std::size_t>(ppo_.piece, places.size() - at));
        material.fill(piece, piece_);
        learner_->add(piece_, minibatch.size(), half, lesson, options);
      }
    }
  }

  // Epochs over an iteration's steps. When the policy has moved too far, it stays, and the critic learns on.
  Result<UpdateSummary> learn(Checkpoint& next, const std::vector<Episode>& episodes, EpisodeStates& states,
                              const std::vector<std::vector<double>>& values, const Advantages& advantages,
                              Lesson lesson) {
    std::vector<StepPlace> places;
    const Material material = material_of(next, episodes, states, values, advantages, places);
    PpoOptions options = ppo_;
    options.temperature = state_.temperature;
    UpdateSummary summary;
    summary.policy_steps = 0;
    const auto state_before = learner_->adam();
    learner_->take_gradient_cosine();
    for (std::uint32_t epoch = 0; epoch < ppo_.epochs; ++epoch) {
      Rng order(seed_of("order", std::uint64_t{state_.iteration} * ppo_.epochs + epoch));
      order.shuffle(places.data(), places.size());
      std::vector<UpdateReport> of_policy, of_critic;
      for (std::size_t first = 0; first < places.size(); first += ppo_.minibatch) {
        const std::size_t count = std::min<std::size_t>(ppo_.minibatch, places.size() - first);
        if (count < 2) break;
        add_in_pieces(material, std::span(places).subspan(first, count), epoch == 0, lesson, options);
        const auto report = learner_->step(ppo_, next.learning_rate);
        if (!report) {
          learner_->set_state(state_.parameters, state_before);
          return Unexpected{report.error()};
        }
        of_critic.push_back(*report);
        if (lesson == Lesson::critic) continue;
        of_policy.push_back(*report);
        summary.policy_steps += report->moved_policy ? 1 : 0;
        if (!report->moved_policy) lesson = Lesson::critic;
      }
      summarise(of_policy, of_critic, summary);
      if (epoch == 0) summary.gradient_cosine = learner_->take_gradient_cosine();
      if (ppo_.adapt_learning_rate && lesson != Lesson::imitate && !of_policy.empty()) {
        adapt(next.learning_rate, summary.kl);
      }
    }
    return summary;
  }

  // The means of an epoch's steps; the policy's stay those of the last epoch in which it learned.
  static void summarise(std::span<const UpdateReport> of_policy, std::span<const UpdateReport> of_critic,
                        UpdateSummary& summary) {
    const auto mean = [](std::span<const UpdateReport> reports, double UpdateReport::*field) {
      double sum = 0;
      for (const UpdateReport& report : reports) sum += report.*field;
      return sum / static_cast<double>(reports.size());
    };
    if (!of_critic.empty()) {
      summary.value_loss = mean(of_critic, &UpdateReport::value_loss);
      summary.critic_gradient_norm = mean(of_critic, &UpdateReport::critic_gradient_norm);
    }
    if (of_policy.empty()) return;
    summary.policy_loss = mean(of_policy, &UpdateReport::policy_loss);
    summary.entropy = mean(of_policy, &UpdateReport::entropy);
    summary.start_kl = mean(of_policy, &UpdateReport::start_kl);
    summary.kl = mean(of_policy, &UpdateReport::kl);
    summary.clip_fraction = mean(of_policy, &UpdateReport::clip_fraction);
    summary.gradient_norm = mean(of_policy, &UpdateReport::gradient_norm);
  }

  void adapt(double& learning_rate, double kl) const {
    constexpr double factor = 1.5;
    if (kl > 2 * ppo_.desired_kl) learning_rate = std::max(ppo_.least_learning_rate, learning_rate / factor);
    if (kl < ppo_.desired_kl / 2) learning_rate = std::min(ppo_.most_learning_rate, learning_rate * factor);
  }

  static double explained_variance(const std::vector<std::vector<double>>& values, const Advantages& advantages) {
    double sum = 0;
    double squares = 0;
    double residual = 0;
    double residual_squares = 0;
    double count = 0;
    for (std::size_t e = 0; e < advantages.value_target.size(); ++e) {
      for (std::size_t k = 0; k < advantages.value_target[e].size(); ++k) {
        const double target = advantages.value_target[e][k];
        const double error = target - values[e][k];
        sum += target;
        squares += target * target;
        residual += error;
        residual_squares += error * error;
        count += 1;
      }
    }
    const double variance = squares / count - sum / count * (sum / count);
    const double error_variance = residual_squares / count - residual / count * (residual / count);
    return variance > 0 ? 1 - error_variance / variance : 0;
  }

  // Keeps the model when it is the best so far. Sampled actions are measured beside the best ones: what exploring
  // costs.
  Result<void> run_validation(Measures& measures) {
    validation_loss_ = mean_of(losses(validation_, Acting::best));
    measures.validation_loss = validation_loss_;
    measures.validation_heuristic_loss = validation_heuristic_;
    const double sampled = mean_of(window_losses(pointers_to(validation_), cluster_, config_.env, actor(),
                                                 Acting::sample, seed_of("validation", state_.iteration)));
    measures.sampled_over_best = sampled / validation_loss_;
    if (validation_loss_ >= state_.best_validation) return {};
    state_.best_iteration = state_.iteration;
    state_.best_validation = validation_loss_;
    return save_model({.agenda = config_.env.agenda,
                       .network = config_.network,
                       .normaliser = state_.normaliser,
                       .parameters = state_.parameters},
                      folder_);
  }

  [[nodiscard]] TrainProgress progress_of(const std::vector<Episode>& episodes, double steps_per_s,
                                          RunClock::time_point begin, bool validated) const {
    TrainProgress progress{.iteration = state_.iteration,
                           .iterations = ppo_.iterations,
                           .steps = state_.steps,
                           .steps_per_s = steps_per_s,
                           .validation = validation_loss_,
                           .validation_heuristic = validation_heuristic_,
                           .validated = validated};
    for (const Episode& episode : episodes) {
      const auto count = static_cast<double>(episodes.size());
      progress.metric += loss_of(episode.totals, config_.env, windows_[episode.window]) / count;
      progress.heuristic += heuristic_loss_[episode.window] / count;
    }
    const double spent = trained_before_ + seconds_since(begin);
    progress.seconds_left = spent / state_.iteration * (ppo_.iterations - state_.iteration);
    if (ppo_.time_limit_s > 0) progress.seconds_left = std::min(progress.seconds_left, ppo_.time_limit_s - spent);
    return progress;
  }

  // A row of metrics.csv, and the same for TensorBoard.
  void log(Measures measures) {
    measures.learning_rate = state_.learning_rate;
    measures.temperature = state_.temperature;
    const std::vector<Metric> metrics = metrics_of(measures, ppo_);
    state_.metrics_csv += csv_row(state_.iteration, state_.steps, metrics);
    scalars_.clear();
    for (const Metric& metric : metrics) {
      if (std::isfinite(metric.value)) scalars_.emplace_back(metric.tag, metric.value);
    }
  }

  const TrainConfig& config_;
  const PpoOptions& ppo_;
  const Cluster& cluster_;
  std::string folder_;
  std::unique_ptr<Learner> learner_;
  Minibatch piece_;  // that the learner is given; kept for its memory
  std::optional<TrainedModel> teacher_;
  std::vector<Window> windows_, validation_;
  std::vector<double> scales_, heuristic_loss_;
  double validation_heuristic_ = 0;
  double validation_loss_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<Time> ends_;  // of the whole windows
  bool horizon_is_open_ = false;
  std::vector<Cluster> clusters_;
  std::optional<VectorEnv> env_, rivals_env_;
  Checkpoint state_;
  double trained_before_ = 0;
  std::vector<std::pair<std::string, double>> scalars_;
};

// Only how long the run lasts and on how many threads may differ.
bool continues(const std::string& before, const TrainConfig& now) {
  auto earlier = read_train_config(before, "");
  if (!earlier) return false;
  earlier->ppo.iterations = now.ppo.iterations;
  earlier->ppo.time_limit_s = now.ppo.time_limit_s;
  earlier->threads = now.threads;
  return train_config_json(*earlier) == train_config_json(now);
}

}  // namespace

Result<TrainSummary> train_by_ppo(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                                  const std::string& folder, bool resume,
                                  const std::function<void(const TrainProgress&)>& watch) {
  auto windows = training_windows(config, jobs);
  if (!windows) return Unexpected{windows.error()};
  auto learner = make_learner(config.network, {}, config.device);
  if (!learner) return Unexpected{learner.error()};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return Unexpected{Error{.message = "the folder cannot be made", .file = folder}};

  Trainer trainer(config, cluster, folder, *std::move(learner), *std::move(windows));
  if (auto done = trainer.prepare(jobs); !done) return Unexpected{done.error()};
  if (resume) {
    auto state = load_checkpoint(folder + "/checkpoint.bin", config.network);
    if (!state) return Unexpected{state.error()};
    if (!continues(state->config, config)) {
      return Unexpected{Error{.message = "was made with another configuration than config.json beside it",
                              .file = folder + "/checkpoint.bin"}};
    }
    state->config = train_config_json(config);
    trainer.take_up(*std::move(state));
  } else {
    if (auto done = trainer.start_afresh(); !done) return Unexpected{done.error()};
  }
  if (auto done = replace_file(folder + "/config.json", train_config_json(config)); !done) {
    return failed_run(done.error());
  }
  if (auto done = trainer.open_learner(); !done) return Unexpected{done.error()};
  trainer.remember_time();

  EventFile events(folder, wall_time_s());
  if (!resume) {
    if (auto done = trainer.validate_untrained(); !done) return failed_run(done.error());
    events.write(wall_time_s(), 0, trainer.scalars());
  }
  const auto begin = RunClock::now();
  while (!trainer.finished(begin)) {
    const auto progress = trainer.iterate(begin);
    if (!progress) return failed_run(progress.error());
    if (auto done = trainer.save(); !done) return failed_run(done.error());
    events.write(wall_time_s(), static_cast<std::int64_t>(progress->steps), trainer.scalars());
    watch(*progress);
  }
  const Checkpoint& state = trainer.state();
  return TrainSummary{.iterations = state.iteration,
                      .steps = state.steps,
                      .seconds = state.trained_s,
                      .best_iteration = state.best_iteration,
                      .best_validation = state.best_validation,
                      .validation_heuristic = trainer.validation_heuristic(),
                      .device = trainer.device(),
                      .held_out = {}};
}

}  // namespace gpusched
