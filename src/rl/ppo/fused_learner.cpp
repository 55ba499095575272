// SPDX-License-Identifier: Apache-2.0
#include "src/rl/ppo/fused_learner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "src/policies/learned/lane_networks.hpp"

namespace gpusched {
namespace {

// Columns of a sheet: the values and gradients of the kernel network's layers for so many fit the second cache.
constexpr std::size_t most_columns = 256;

LaneStack scorer_of(const NetworkSpec& spec, const NetworkLayout& layout, const LaneKernels& kernels) {
  if (spec.steers()) {
    return {kernels, {{layout.steer1, Activation::tanh}, {layout.steer2, Activation::none}}};
  }
  if (spec.kind == NetworkKind::index) return {kernels, {{layout.score2, Activation::none}}};
  return kernel_scorer(layout, kernels);
}

}  // namespace

FusedLearner::FusedLearner(const NetworkSpec& spec, const Normaliser& normaliser, const LaneKernels& kernels)
    : spec_(spec),
      layout_(layout_of(spec)),
      normaliser_(normaliser),
      kernels_(&kernels),
      scorer_(scorer_of(spec, layout_, kernels)),
      critic_(critic_stack(layout_, kernels)) {
  GPUSCHED_ASSERT(learns_on_lanes(spec), "a network that the fused learner does not learn");
}

void FusedLearner::set_state(std::span<const float> parameters, const AdamState& adam) {
  parameters_.assign(parameters.begin(), parameters.end());
  adam_ = adam;
  gradient_.assign(layout_.size, 0.0f);
  told_ = {};
  half_gradients_ = {};
}

void FusedLearner::add(const Minibatch& part, std::size_t steps, std::uint32_t half, Lesson lesson,
                       const PpoOptions& options) {
  lesson_ = lesson;
  std::fill_n(sums_.room(layout_.size * lanes), layout_.size * lanes, 0.0f);
  single_.assign(layout_.size, 0.0);
  const Task task{.part = part, .lesson = lesson, .options = options, .weight = 1.0 / static_cast<double>(steps)};
  learn_values(task);
  if (lesson != Lesson::critic && spec_.steers()) learn_steering(task);
  if (lesson != Lesson::critic && !spec_.steers()) learn_choices(task);
  own_gradient_.resize(layout_.size);
  kernels_->fold(sums_.data(), layout_.size, own_gradient_.data());
  for (std::size_t i = 0; i < layout_.size; ++i) {
    own_gradient_[i] += static_cast<float>(single_[i]);
    gradient_[i] += own_gradient_[i];
  }
  if (lesson == Lesson::critic) return;
  std::vector<float>& of_half = half_gradients_[half];
  of_half.resize(layout_.policy_size, 0.0f);
  for (std::size_t i = 0; i < layout_.policy_size; ++i) of_half[i] += own_gradient_[i];
}

void FusedLearner::learn_values(const Task& task) {
  const Minibatch& part = task.part;
  const PpoOptions& options = task.options;
  critic_features(normaliser_, part.observation, critic_rows_);
  const std::size_t states = part.observation.count();
  double loss = 0;
  for (std::size_t first = 0; first < states; first += most_columns) {
    const std::size_t count = std::min(most_columns, states - first);
    const std::size_t columns = whole_lanes(count);
    fill_critic_inputs(critic_rows_.data() + first * critic_inputs, count, critic_.inputs(columns));
    const float* const values = critic_.forward(parameters_);
    float* const gradient = score_gradient_.room(columns);
    clear_columns(gradient, 1, count, columns);
    for (std::size_t i = 0; i < count; ++i) {
      const auto target = static_cast<double>(part.value_target[first + i]);
      const auto value = static_cast<double>(values[i]);
      double error = value - target;
      double square = error * error;
      const double moved = value - static_cast<double>(part.old_value[first + i]);
      if (options.clip_value && std::fabs(moved) > options.clip) {
        const double clipped = error - moved + std::copysign(options.clip, moved);
        if (clipped * clipped > square) {
          square = clipped * clipped;
          error = 0;  // the clipped loss does not change with the value
        }
      }
      loss += 0.5 * square;
      gradient[i] = static_cast<float>(options.value * task.weight * error);
    }
    critic_.backward(parameters_, gradient, sums_.data());
  }
  told_.value_loss += loss * task.weight;
}

double FusedLearner::note_policy_loss(const Task& task, std::size_t step, double log_probability) {
  const double weight = task.weight;
  if (task.lesson == Lesson::imitate) {
    told_.policy_loss -= weight * log_probability;
    return -weight;
  }
  const double clip = task.options.clip;
  const double log_ratio = log_probability - static_cast<double>(task.part.old_log_probability[step]);
  const double ratio = std::exp(log_ratio);
  const auto advantage = static_cast<double>(task.part.advantage[step]);
  const double whole = ratio * advantage;
  const double clipped = std::clamp(ratio, 1 - clip, 1 + clip) * advantage;
  told_.policy_loss -= weight * (clipped < whole ? clipped : whole);  // keeps what is not a number
  told_.kl += weight * ((ratio - 1) - log_ratio);
  told_.clip_fraction += std::fabs(ratio - 1) > clip ? weight : 0;
  return clipped < whole ? 0 : -weight * whole;
}

// ---- choices --------------------------------------------------------------------------------------------------------

void FusedLearner::learn_choices(const Task& task) {
  const Observation& seen = task.part.observation;
  const std::uint32_t states = seen.count();
  for (Block block; block.first < states; block.first = block.end) {
    block.end = block.first + 1;
    // The network index leaves the column of WAIT empty.
    while (block.end < states && kernel_columns(spec_, seen, block.first, block.end + 1) <= most_columns) ++block.end;
    block.tokens = seen.job_begin[block.end] - seen.job_begin[block.first];
    block.columns = whole_lanes(kernel_columns(spec_, seen, block.first, block.end));
    learn_block(task, block);
  }
}

void FusedLearner::learn_block(const Task& task, const Block& block) {
  const Observation& seen = task.part.observation;
  fill_inputs(seen, block);
  if (task.penalised()) {
    float* const of_start = start_scores_.room(block.columns);
    std::copy_n(scorer_.forward(start_), block.columns, of_start);
  }
  const float* const scores = scorer_.forward(parameters_);
  // A state's row may reach beyond its tokens: the next state's overwrites that.
  float* const gradient = score_gradient_.room(block.columns + whole_lanes(block.tokens + 1));
  float* const prior = prior_.room(block.columns);
  wait_gradient_.assign(block.columns - block.tokens, 0.0f);
  for (std::uint32_t s = block.first; s < block.end; ++s) {
    const Choice choice{.state = s,
                        .begin = std::size_t{seen.job_begin[s]} + s,
                        .column = seen.job_begin[s] - seen.job_begin[block.first],
                        .tokens = seen.tokens(s)};
    const Distribution own = distribution_of(task, block, choice, parameters_, scores, row_, powers_);
    float* const of_choice = gradient + choice.column;
    if (task.penalised()) {
      const Distribution start =
          distribution_of(task, block, choice, start_, start_scores_.data(), start_row_, start_powers_);
      learn_choice(task, choice, own, &start, of_choice);
    } else {
      learn_choice(task, choice, own, nullptr, of_choice);
    }
    std::copy_n(seen.prior.data() + choice.begin, choice.tokens, prior + choice.column);
    const auto of_wait = static_cast<double>(of_choice[choice.tokens]);
    if (of_wait == 0) continue;
    single_[layout_.alpha] += of_wait * static_cast<double>(seen.prior[choice.begin + choice.tokens]);
    if (is_kernel(spec_)) {
      wait_gradient_[wait_column(spec_, seen, block.first, block.end, s) - block.tokens] += of_choice[choice.tokens];
      continue;
    }
    for (std::size_t i = 0; i < index_wait_features.size(); ++i) {
      single_[layout_.wait.offset + i] += of_wait * static_cast<double>(global_of(seen, s, index_wait_features[i]));
    }
    single_[layout_.wait.bias()] += of_wait;
  }
  clear_columns(gradient, 1, block.tokens, block.columns);
  clear_columns(prior, 1, block.tokens, block.columns);
  std::array<float, lanes> unused{};
  kernels_->outer(gradient, 1, prior, 1, block.columns, sums_.data() + layout_.alpha * lanes, unused.data());
  std::copy(wait_gradient_.begin(), wait_gradient_.end(), gradient + block.tokens);
  scorer_.backward(parameters_, gradient, sums_.data());
}

void FusedLearner::fill_inputs(const Observation& seen, const Block& block) {
  float* const sheet = scorer_.inputs(block.columns);
  if (spec_.kind == NetworkKind::index) return fill_index_terms(seen, block, sheet);
  fill_kernel_inputs(spec_, seen, block.first, block.end, normaliser_, block.columns, sheet);
}

void FusedLearner::fill_index_terms(const Observation& seen, const Block& block, float* sheet) {
  const std::size_t columns = block.columns;
  float* const jobs = tokens_.room(columns * job_features);
  kernels_->transpose(seen.jobs.data() + std::size_t{seen.job_begin[block.first]} * job_features, job_features,
                      block.tokens, job_features, normaliser_.job_mean.data(), normaliser_.job_scale.data(), columns,
                      jobs);
  for (const IndexTerm& term : index_terms) {
    const float* const feature = jobs + term.feature * columns;
    const float* const by = jobs + term.by * columns;
    switch (term.times) {
      case IndexTerm::one: std::copy_n(feature, block.tokens, sheet); break;
      case IndexTerm::job:
        for (std::size_t i = 0; i < block.tokens; ++i) sheet[i] = feature[i] * by[i];
        break;
      case IndexTerm::global:
        for (std::uint32_t s = block.first; s < block.end; ++s) {
          const float global = global_of(seen, s, term.by);
          const std::size_t begin = seen.job_begin[s] - seen.job_begin[block.first];
          for (std::size_t i = begin; i < begin + seen.tokens(s); ++i) sheet[i] = feature[i] * global;
        }
        break;
    }
    std::fill(sheet + block.tokens, sheet + columns, 0.0f);
    sheet += columns;
  }
}

float FusedLearner::global_of(const Observation& seen, std::uint32_t state, std::uint32_t feature) const {
  const float value = seen.global[std::size_t{state} * global_features + feature];
  return (value - normaliser_.global_mean[feature]) * normaliser_.global_scale[feature];
}

float FusedLearner::wait_score(const std::vector<float>& parameters, const Observation& seen,
                               std::uint32_t state) const {
  float score = parameters[layout_.wait.bias()];
  for (std::size_t i = 0; i < index_wait_features.size(); ++i) {
    score += parameters[layout_.wait.offset + i] * global_of(seen, state, index_wait_features[i]);
  }
  return score;
}

FusedLearner::Distribution FusedLearner::distribution_of(const Task& task, const Block& block, const Choice& choice,
                                                         const std::vector<float>& parameters, const float* scores,
                                                         LaneBuffer& row, LaneBuffer& powers) const {
  const Observation& seen = task.part.observation;
  const std::size_t count = whole_lanes(choice.tokens + 1);
  float* const logits = row.room(count);
  const float alpha = parameters[layout_.alpha];
  const auto temperature = static_cast<float>(task.options.temperature);
  const float* const prior = seen.prior.data() + choice.begin;
  const std::uint8_t* const mask = seen.mask.data() + choice.begin;
  const float wait = is_kernel(spec_) ? scores[wait_column(spec_, seen, block.first, block.end, choice.state)]
                                      : wait_score(parameters, seen, choice.state);
  for (std::uint32_t i = 0; i < choice.tokens; ++i) {
    const float logit = (scores[choice.column + i] + alpha * prior[i]) / temperature;
    logits[i] = mask[i] != 0 ? logit : masked_logit;
  }
  logits[choice.tokens] = mask[choice.tokens] != 0 ? (wait + alpha * prior[choice.tokens]) / temperature : masked_logit;
  std::fill(logits + choice.tokens + 1, logits + count, masked_logit);
  float* const exponentials = powers.room(count);
  const RowSums sums = kernels_->softmax(logits, exponentials, count);
  return {.shifted = logits,
          .powers = exponentials,
          .power = static_cast<double>(sums.power),
          .log_power = std::log(static_cast<double>(sums.power)),
          .weighted = static_cast<double>(sums.weighted)};
}

void FusedLearner::learn_choice(const Task& task, const Choice& choice, const Distribution& own,
                                const Distribution* start, float* gradient) {
  const auto action = static_cast<std::size_t>(task.part.actions[choice.state]);
  const double of_chosen = note_policy_loss(task, choice.state, own.log_probability(action)) / task.options.temperature;
  const double entropy = own.log_power - own.weighted / own.power;
  double of_entropy = 0;
  if (task.lesson == Lesson::improve) {
    const std::uint8_t* const mask = task.part.observation.mask.data() + choice.begin;
    const auto allowed = std::accumulate(mask, mask + choice.tokens + 1, 0u);
    const double most = most_entropy(std::max(2u, allowed));
    told_.entropy += task.weight * entropy / most;
    of_entropy = task.weight * task.options.entropy / most / task.options.temperature;
  }
  kernels_->softmax_back(own.shifted, own.powers, whole_lanes(choice.tokens + 1),
                         static_cast<float>(of_entropy / own.power), static_cast<float>(entropy - own.log_power),
                         static_cast<float>(-of_chosen / own.power), gradient);
  gradient[action] += static_cast<float>(of_chosen);
  if (start != nullptr) stay_near_start(task, choice, own, *start, gradient);
}

double FusedLearner::most_entropy(std::size_t choices) {
  for (std::size_t n = most_entropies_.size(); n <= choices; ++n) {
    most_entropies_.push_back(std::log(static_cast<double>(n)));
  }
  return most_entropies_[choices];
}

void FusedLearner::stay_near_start(const Task& task, const Choice& choice, const Distribution& own,
                                   const Distribution& start, float* gradient) {
  const double shift = start.log_power - own.log_power;
  const auto log_ratio = [&](std::uint32_t i) {
    return static_cast<double>(own.shifted[i]) - static_cast<double>(start.shifted[i]) + shift;
  };
  const auto probability = [&](std::uint32_t i) { return static_cast<double>(own.powers[i]) / own.power; };
  double divergence = 0;
  for (std::uint32_t i = 0; i <= choice.tokens; ++i) divergence += probability(i) * log_ratio(i);
  told_.start_kl += task.weight * divergence;
  const double weight = task.weight * task.options.start_kl / task.options.temperature;
  for (std::uint32_t i = 0; i <= choice.tokens; ++i) {
    gradient[i] += static_cast<float>(weight * probability(i) * (log_ratio(i) - divergence));
  }
}

// ---- steering -------------------------------------------------------------------------------------------------------

void FusedLearner::learn_steering(const Task& task) {
  const Minibatch& part = task.part;
  const std::size_t states = part.actions.size();
  const std::size_t steered = layout_.steered;
  const float* const base = parameters_.data() + layout_.steered_begin;
  const float* const log_deviation = parameters_.data() + layout_.log_deviation;
  const float* const start_base = task.penalised() ? start_.data() + layout_.steered_begin : nullptr;
  const float* const start_log_deviation = task.penalised() ? start_.data() + layout_.log_deviation : nullptr;
  const double penalty = task.weight * task.options.start_kl;
  double* const of_base = single_.data() + layout_.steered_begin;
  double* const of_deviation = single_.data() + layout_.log_deviation;
  const double unit = 0.5 * std::log(2 * std::numbers::pi);
  std::vector<double> z(steered);
  for (std::size_t first = 0; first < states; first += most_columns) {
    const std::size_t count = std::min(most_columns, states - first);
    const std::size_t columns = whole_lanes(count);
    float* const inputs = scorer_.inputs(columns);
    kernels_->transpose(part.observation.global.data() + first * global_features, global_features, count,
                        global_features, normaliser_.global_mean.data(), normaliser_.global_scale.data(), columns,
                        inputs);
    clear_columns(inputs, global_features, count, columns);
    const std::size_t outputs = steered * columns;
    float* const start_moves = start_scores_.room(outputs);
    if (task.penalised()) std::copy_n(scorer_.forward(start_), outputs, start_moves);
    const float* const moves = scorer_.forward(parameters_);
    float* const gradient = score_gradient_.room(outputs);
    clear_columns(gradient, steered, count, columns);
    for (std::size_t i = 0; i < count; ++i) {
      const float* const weights = part.weights.data() + (first + i) * steered;
      double log_density = 0;
      for (std::size_t w = 0; w < steered; ++w) {
        const auto deviation = static_cast<double>(log_deviation[w]);
        const double mean = static_cast<double>(base[w]) + static_cast<double>(moves[w * columns + i]);
        z[w] = (static_cast<double>(weights[w]) - mean) / std::exp(deviation);
        log_density -= 0.5 * z[w] * z[w] + deviation + unit;
      }
      const double of_density = note_policy_loss(task, first + i, log_density);
      for (std::size_t w = 0; w < steered; ++w) {
        const double of_mean = of_density * z[w] / std::exp(static_cast<double>(log_deviation[w]));
        gradient[w * columns + i] = static_cast<float>(of_mean);
        of_base[w] += of_mean;
        of_deviation[w] += of_density * (z[w] * z[w] - 1);
      }
      if (!task.penalised()) continue;
      // The divergence between two normal distributions, weight by weight.
      for (std::size_t w = 0; w < steered; ++w) {
        const std::size_t at = w * columns + i;
        const double moved = static_cast<double>(base[w]) + static_cast<double>(moves[at]) -
                             static_cast<double>(start_base[w]) - static_cast<double>(start_moves[at]);
        const auto start_deviation = static_cast<double>(start_log_deviation[w]);
        const double log_ratio = static_cast<double>(log_deviation[w]) - start_deviation;
        const double of_moved = moved * std::exp(-2 * start_deviation);
        told_.start_kl += task.weight * (0.5 * (std::expm1(2 * log_ratio) + moved * of_moved) - log_ratio);
        const double of_mean = penalty * of_moved;
        gradient[at] += static_cast<float>(of_mean);
        of_base[w] += of_mean;
        of_deviation[w] += penalty * std::expm1(2 * log_ratio);
      }
    }
    scorer_.backward(parameters_, gradient, sums_.data());
  }
  const double share = static_cast<double>(states) * task.weight;
  const double mean = std::accumulate(log_deviation, log_deviation + steered, 0.0) / static_cast<double>(steered);
  told_.entropy += share * (mean + unit + 0.5);
  for (std::size_t w = 0; w < steered; ++w) {
    of_deviation[w] -= share * task.options.entropy / static_cast<double>(steered);
  }
}

// ---- the step -------------------------------------------------------------------------------------------------------

Result<UpdateReport> FusedLearner::step(const PpoOptions& options, double learning_rate) {
  const std::size_t policy = layout_.policy_size;
  const std::size_t critic = layout_.size - policy;
  told_.gradient_norm = std::sqrt(kernels_->square_sum(gradient_.data(), policy));
  told_.critic_gradient_norm = std::sqrt(kernels_->square_sum(gradient_.data() + policy, critic));
  auto report = detail::report_of(told_, lesson_, options);
  if (report) {
    if (report->moved_policy) {
      descend(0, policy, report->gradient_norm, options.max_gradient_norm, ++adam_.policy_steps, learning_rate);
    }
    descend(policy, critic, report->critic_gradient_norm, options.max_critic_gradient_norm, ++adam_.steps,
            learning_rate);
  }
  gradient_.assign(layout_.size, 0.0f);
  told_ = {};
  return report;
}

void FusedLearner::descend(std::size_t begin, std::size_t count, double norm, double most, std::int64_t steps,
                           double rate) {
  const auto correction = [&](double beta) {
    return static_cast<float>(1 - std::pow(beta, static_cast<double>(steps)));
  };
  const AdamStep step{.clip = norm > most ? static_cast<float>(most / norm) : 1.0f,
                      .beta1 = static_cast<float>(detail::adam_beta1),
                      .beta2 = static_cast<float>(detail::adam_beta2),
                      .epsilon = static_cast<float>(detail::adam_epsilon),
                      .correction1 = correction(detail::adam_beta1),
                      .correction2 = correction(detail::adam_beta2),
                      .rate = static_cast<float>(rate)};
  kernels_->adam(step, gradient_.data() + begin, count, parameters_.data() + begin, adam_.first.data() + begin,
                 adam_.second.data() + begin);
}

double FusedLearner::take_gradient_cosine() {
  const auto halves = std::exchange(half_gradients_, {});
  if (halves[0].empty() || halves[1].empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                              [](float x, float y) { return static_cast<double>(x) * static_cast<double>(y); });
  };
  return dot(halves[0], halves[1]) / std::sqrt(dot(halves[0], halves[0]) * dot(halves[1], halves[1]));
}

}  // namespace gpusched
