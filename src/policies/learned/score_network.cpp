// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/score_network.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "src/policies/learned/lane_networks.hpp"

namespace gpusched {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::RowVectorXf;
using MatrixMap = Eigen::Map<const Matrix>;
using VectorMap = Eigen::Map<const Vector>;

MatrixMap weights(std::span<const float> parameters, const DenseLayer& layer) {
  return {parameters.data() + layer.offset, layer.outputs, layer.inputs};
}

VectorMap biases(std::span<const float> parameters, const DenseLayer& layer) {
  return {parameters.data() + layer.bias(), layer.outputs};
}

template <class Input>
Matrix dense(std::span<const float> parameters, const DenseLayer& layer, const Input& input) {
  Matrix out = input * weights(parameters, layer).transpose();
  out.rowwise() += biases(parameters, layer);
  return out;
}

template <class Input>
Matrix dense_relu(std::span<const float> parameters, const DenseLayer& layer, const Input& input) {
  return dense(parameters, layer, input).cwiseMax(0.0f);
}

Matrix normalised(std::span<const float> values, const std::vector<float>& mean, const std::vector<float>& scale) {
  const auto columns = static_cast<Eigen::Index>(mean.size());
  Matrix out = MatrixMap(values.data(), static_cast<Eigen::Index>(values.size()) / columns, columns);
  out.rowwise() -= VectorMap(mean.data(), columns);
  out.array().rowwise() *= VectorMap(scale.data(), columns).array();
  return out;
}

// Multi-head attention among the tokens of one state, added to them.
Matrix attend(std::span<const float> parameters, const NetworkSpec& spec, const NetworkLayout& layout,
              const Matrix& tokens) {
  const Matrix query = dense(parameters, layout.query, tokens);
  const Matrix key = dense(parameters, layout.key, tokens);
  const Matrix value = dense(parameters, layout.value, tokens);
  const Eigen::Index size = spec.width / spec.heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(size));
  Matrix heads(tokens.rows(), tokens.cols());
  for (Eigen::Index h = 0; h < static_cast<Eigen::Index>(spec.heads); ++h) {
    Matrix weight = query.middleCols(h * size, size) * key.middleCols(h * size, size).transpose() * scale;
    for (Eigen::Index row = 0; row < weight.rows(); ++row) {
      weight.row(row).array() = (weight.row(row).array() - weight.row(row).maxCoeff()).exp();
      weight.row(row) /= weight.row(row).sum();
    }
    heads.middleCols(h * size, size) = weight * value.middleCols(h * size, size);
  }
  return tokens + dense_relu(parameters, layout.mix, heads);
}

// Rows of the terms' values for the tokens of one state.
Matrix products_of(std::span<const IndexTerm> terms, const Eigen::Ref<const Matrix>& jobs, const Vector& global) {
  Matrix products(jobs.rows(), static_cast<Eigen::Index>(terms.size()));
  float* product = products.data();
  for (Eigen::Index row = 0; row < jobs.rows(); ++row) {
    const float* job = jobs.row(row).data();
    for (const IndexTerm& term : terms) {
      float value = job[term.feature];
      if (term.times == IndexTerm::job) value *= job[term.by];
      if (term.times == IndexTerm::global) value *= global(term.by);
      *product++ = value;
    }
  }
  return products;
}

Vector wait_inputs(std::span<const std::uint8_t> features, const Vector& global) {
  Vector inputs(static_cast<Eigen::Index>(features.size()));
  for (std::size_t i = 0; i < features.size(); ++i) {
    inputs(static_cast<Eigen::Index>(i)) = global(features[i]);
  }
  return inputs;
}

// Adds what the hidden units make of the terms and of `shared`, which is the same for all tokens.
void add_correction(std::span<const float> parameters, const NetworkLayout& layout, const Matrix& terms,
                    const Vector& shared, Matrix& scores) {
  if (layout.correct1.outputs == 0) return;
  const MatrixMap weight = weights(parameters, layout.correct1);
  Vector same = biases(parameters, layout.correct1);
  if (shared.size() > 0) same += shared * weight.rightCols(shared.size()).transpose();
  Matrix hidden = terms * weight.leftCols(terms.cols()).transpose();
  hidden.rowwise() += same;
  scores += dense(parameters, layout.correct2, hidden.cwiseMax(0.0f));
}

DenseLayer add_layer(std::size_t& size, std::uint32_t inputs, std::uint32_t outputs) {
  const DenseLayer layer{inputs, outputs, size};
  size = layer.end();
  return layer;
}

// Columns of a sheet: what the kernel network makes of so many tokens fits the first cache.
constexpr std::size_t most_columns = 128;

// A kernel network over whole states at a time: put(state, its tokens' scores, WAIT's score).
template <class Put>
void score_alone(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                 const Observation& observation, Put put) {
  LaneStack scorer = kernel_scorer(layout_of(spec), lane_kernels());
  const std::vector<std::uint32_t>& begins = observation.job_begin;
  const std::uint32_t states = observation.count();
  for (std::uint32_t first = 0, end = 0; first < states; first = end) {
    end = first + 1;
    while (end < states && kernel_columns(spec, observation, first, end + 1) <= most_columns) ++end;
    const std::size_t columns = whole_lanes(kernel_columns(spec, observation, first, end));
    fill_kernel_inputs(spec, observation, first, end, normaliser, columns, scorer.inputs(columns));
    const float* const scores = scorer.forward(parameters);
    for (std::uint32_t s = first; s < end; ++s) {
      put(s, scores + (begins[s] - begins[first]), scores[wait_column(spec, observation, first, end, s)]);
    }
  }
}

// Weights of any size give an allowed action a finite logit above masked_logit.
float bounded_logit(float logit) {
  constexpr float largest = -masked_logit / 10;
  return std::isnan(logit) ? -largest : std::clamp(logit, -largest, largest);
}

}  // namespace

LaneStack kernel_scorer(const NetworkLayout& layout, const LaneKernels& kernels) {
  return {kernels,
          {{layout.encode1, Activation::relu},
           {layout.encode2, Activation::relu},
           {layout.score1, Activation::relu},
           {layout.score2, Activation::none}}};
}

LaneStack critic_stack(const NetworkLayout& layout, const LaneKernels& kernels) {
  return {kernels,
          {{layout.critic1, Activation::tanh}, {layout.critic2, Activation::tanh}, {layout.critic3, Activation::none}}};
}

void fill_kernel_inputs(const NetworkSpec& spec, const Observation& seen, std::uint32_t first, std::uint32_t end,
                        const Normaliser& normaliser, std::size_t columns, float* sheet) {
  const bool sees_globals = spec.kind == NetworkKind::kernel;
  const std::size_t features = sees_globals ? std::size_t{job_features} : sc20_kernel_features;
  const std::size_t begin = seen.job_begin[first];
  const std::size_t tokens = seen.job_begin[end] - begin;
  lane_kernels().transpose(seen.jobs.data() + begin * job_features, job_features, tokens, features,
                           normaliser.job_mean.data(), normaliser.job_scale.data(), columns, sheet);
  clear_columns(sheet, features, tokens, columns);
  if (!sees_globals) return;
  float* row = sheet + features * columns;
  for (std::size_t feature = 0; feature < global_features; ++feature, row += columns) {
    for (std::uint32_t s = first; s < end; ++s) {
      const float value = (seen.global[std::size_t{s} * global_features + feature] - normaliser.global_mean[feature]) *
                          normaliser.global_scale[feature];
      std::fill_n(row + (seen.job_begin[s] - begin), seen.tokens(s), value);
      row[tokens + (s - first)] = value;
    }
    std::fill(row + tokens + (end - first), row + columns, 0.0f);
  }
}

void fill_critic_inputs(const float* features, std::size_t states, float* sheet) {
  lane_kernels().transpose(features, critic_inputs, states, critic_inputs, nullptr, nullptr, whole_lanes(states),
                           sheet);
  clear_columns(sheet, critic_inputs, states, whole_lanes(states));
}

NetworkLayout layout_of(const NetworkSpec& spec) {
  GPUSCHED_ASSERT(spec.width > 0 && spec.width % 2 == 0 && spec.heads > 0 && spec.width % spec.heads == 0,
                  "width must be even and a multiple of the heads");
  NetworkLayout layout;
  layout.alpha = 0;
  layout.size = 1;
  const auto add = [&](std::uint32_t inputs, std::uint32_t outputs) { return add_layer(layout.size, inputs, outputs); };
  // Behind the linear score, so that the parameters of a network without hidden units begin those of one with them.
  const auto correct = [&](std::uint32_t inputs) {
    if (spec.hidden == 0) return;
    layout.correct1 = add(inputs, spec.hidden);
    layout.correct2 = add(spec.hidden, 1);
  };
  const std::uint32_t width = spec.width;
  if (spec.kind == NetworkKind::kernel || spec.kind == NetworkKind::sc20_kernel) {
    constexpr std::uint32_t all = std::uint32_t{job_features} + std::uint32_t{global_features};
    layout.encode1 = add(spec.kind == NetworkKind::kernel ? all : sc20_kernel_features, 32);
    layout.encode2 = add(32, 16);
    layout.score1 = add(16, 8);
    layout.score2 = add(8, 1);
  } else if (spec.kind == NetworkKind::index) {
    layout.score2 = add(static_cast<std::uint32_t>(index_terms.size()), 1);
    layout.wait = add(static_cast<std::uint32_t>(index_wait_features.size()), 1);
    if (spec.signals) {
      layout.signal_wait = add(signal_features, 1);
      layout.signal_known = add(signal_features, 1);
    }
    if (spec.places) {
      layout.place = add(static_cast<std::uint32_t>(place_terms.size()), 1);
      layout.place_wait = add(static_cast<std::uint32_t>(place_wait_features.size()), 1);
    }
    correct(static_cast<std::uint32_t>(index_terms.size()) + std::uint32_t{global_features});
  } else if (spec.kind == NetworkKind::rank) {
    layout.score2 = add(static_cast<std::uint32_t>(rank_terms.size()), 1);
    correct(static_cast<std::uint32_t>(rank_terms.size()));
  } else {
    layout.encode1 = add(job_features, width);
    layout.encode2 = add(width, width);
    if (spec.kind == NetworkKind::attention) {
      layout.query = add(width, width);
      layout.key = add(width, width);
      layout.value = add(width, width);
      layout.mix = add(width, width);
    }
    layout.group = add(group_features, width / 2);
    layout.context = add(2 * width + width / 2 + global_features, width);
    layout.score1 = add(2 * width, width);
    layout.score2 = add(width, 1);
    layout.wait = add(width, 1);
  }
  if (spec.steers()) {
    layout.steered_begin = layout.score2.offset;
    const DenseLayer& last = spec.places                       ? layout.place_wait
                             : spec.signals                    ? layout.signal_known
                             : spec.kind == NetworkKind::index ? layout.wait
                                                               : layout.score2;
    layout.steered = last.end() - layout.steered_begin;
    layout.steer1 = add(global_features, width);
    layout.steer2 = add(width, static_cast<std::uint32_t>(layout.steered));
    layout.log_deviation = layout.size;
    layout.size += layout.steered;
  }
  layout.policy_size = layout.size;
  layout.critic1 = add(critic_inputs, spec.critic_width);
  layout.critic2 = add(spec.critic_width, spec.critic_width);
  layout.critic3 = add(spec.critic_width, 1);
  return layout;
}

void NormaliserFit::add(const std::vector<float>& values, Columns& columns) {
  const std::size_t width = columns.sum.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    columns.sum[i % width] += value;
    columns.squares[i % width] += value * value;
  }
  const std::size_t count = values.size() / width;
  columns.rows += static_cast<double>(count);
}

void NormaliserFit::add(const Observation& observation) {
  add(observation.jobs, jobs_);
  add(observation.global, global_);
}

void NormaliserFit::scale(const Columns& columns, std::vector<float>& mean, std::vector<float>& scale) {
  if (columns.rows == 0) return;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double average = columns.sum[c] / columns.rows;
    const double deviation = std::sqrt(std::max(0.0, columns.squares[c] / columns.rows - average * average));
    mean[c] = static_cast<float>(average);
    constexpr double hardly_varies = 0.01;
    scale[c] = deviation > hardly_varies ? static_cast<float>(1 / deviation) : 1.0f;
  }
}

Normaliser NormaliserFit::normaliser() const {
  Normaliser fitted;
  scale(jobs_, fitted.job_mean, fitted.job_scale);
  scale(global_, fitted.global_mean, fitted.global_scale);
  return fitted;
}

Normaliser Normaliser::fit(std::span<const Observation> observations) {
  NormaliserFit fit;
  for (const Observation& observation : observations) fit.add(observation);
  return fit.normaliser();
}

void forward_policy(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                    const Observation& observation, std::vector<float>& logits) {
  const NetworkLayout layout = layout_of(spec);
  const std::uint32_t states = observation.count();
  const float alpha = parameters[layout.alpha];
  logits.assign(observation.mask.size(), masked_logit);
  const auto put_scores = [&](std::uint32_t state, const float* scores, float wait_score) {
    const std::uint32_t begin = observation.job_begin[state];
    const std::uint32_t tokens = observation.tokens(state);
    const std::size_t first = std::size_t{begin} + state;
    for (std::uint32_t i = 0; i < tokens; ++i) {
      if (observation.mask[first + i] != 0) {
        logits[first + i] = bounded_logit(alpha * observation.prior[first + i] + scores[i]);
      }
    }
    if (observation.mask[first + tokens] != 0) {
      logits[first + tokens] = bounded_logit(alpha * observation.prior[first + tokens] + wait_score);
    }
  };
  if (is_kernel(spec)) return score_alone(spec, parameters, normaliser, observation, put_scores);

  const Matrix jobs = normalised(observation.jobs, normaliser.job_mean, normaliser.job_scale);
  const auto put = [&](std::uint32_t state, const Matrix& scores, float wait_score) {
    put_scores(state, scores.data(), wait_score);
  };

  if (spec.kind == NetworkKind::rank) {
    const Matrix terms = products_of(rank_terms, jobs, Vector());
    Matrix scores = dense(parameters, layout.score2, terms);
    add_correction(parameters, layout, terms, Vector(), scores);
    for (std::uint32_t s = 0; s < states; ++s) {
      put(s, scores.middleRows(observation.job_begin[s], observation.tokens(s)), 0.0f);
    }
    return;
  }

  if (spec.kind == NetworkKind::index) {
    const Matrix global = normalised(observation.global, normaliser.global_mean, normaliser.global_scale);
    for (std::uint32_t s = 0; s < states; ++s) {
      const Vector context = global.row(s);
      const auto own = jobs.middleRows(observation.job_begin[s], observation.tokens(s));
      const float* const first = observation.jobs.data() + std::size_t{observation.job_begin[s]} * job_features;
      if (spec.places && observation.tokens(s) > 0 && is_placing(first)) {
        put(s, dense(parameters, layout.place, products_of(place_terms, own, context)),
            dense(parameters, layout.place_wait, wait_inputs(place_wait_features, context))(0, 0));
        continue;
      }
      const Matrix terms = products_of(index_terms, own, context);
      Matrix scores = dense(parameters, layout.score2, terms);
      add_correction(parameters, layout, terms, context, scores);
      float wait = dense(parameters, layout.wait, wait_inputs(index_wait_features, context))(0, 0);
      if (spec.signals) {
        const MatrixMap signals(observation.signals.data() + std::size_t{s} * signal_features, 1, signal_features);
        wait += dense(parameters, layout.signal_wait, signals)(0, 0);
        scores += own.col(log_known) * dense(parameters, layout.signal_known, signals);
      }
      put(s, scores, wait);
    }
    return;
  }

  const auto width = static_cast<Eigen::Index>(spec.width);
  const Matrix encoded = dense_relu(parameters, layout.encode2, dense_relu(parameters, layout.encode1, jobs));
  const Matrix groups =
      dense_relu(parameters, layout.group,
                 MatrixMap(observation.groups.data(),
                           static_cast<Eigen::Index>(observation.groups.size()) / group_features, group_features));
  const Matrix global = normalised(observation.global, normaliser.global_mean, normaliser.global_scale);
  const MatrixMap score_weights = weights(parameters, layout.score1);
  for (std::uint32_t s = 0; s < states; ++s) {
    const std::uint32_t tokens = observation.tokens(s);
    if (tokens == 0) continue;
    Matrix own = encoded.middleRows(observation.job_begin[s], tokens);
    if (spec.kind == NetworkKind::attention) own = attend(parameters, spec, layout, own);
    Vector pooled(layout.context.inputs);
    pooled.segment(0, width) = own.colwise().mean();
    pooled.segment(width, width) = own.colwise().maxCoeff();
    const std::uint32_t group_count = observation.group_begin[s + 1] - observation.group_begin[s];
    pooled.segment(2 * width, width / 2).setZero();
    if (group_count > 0) {
      pooled.segment(2 * width, width / 2) =
          groups.middleRows(observation.group_begin[s], group_count).colwise().mean();
    }
    pooled.tail(global_features) = global.row(s);
    const Matrix context = dense_relu(parameters, layout.context, pooled);
    const Vector shared = context * score_weights.rightCols(width).transpose() + biases(parameters, layout.score1);
    Matrix hidden = own * score_weights.leftCols(width).transpose();
    hidden.rowwise() += shared;
    put(s, dense(parameters, layout.score2, Matrix(hidden.cwiseMax(0.0f))),
        dense(parameters, layout.wait, context)(0, 0));
  }
}

void forward_steering(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                      const Observation& observation, std::vector<float>& means) {
  const NetworkLayout layout = layout_of(spec);
  const Matrix global = normalised(observation.global, normaliser.global_mean, normaliser.global_scale);
  const Matrix hidden = dense(parameters, layout.steer1, global).array().tanh();
  Matrix mean = dense(parameters, layout.steer2, hidden);
  mean.rowwise() += VectorMap(parameters.data() + layout.steered_begin, static_cast<Eigen::Index>(layout.steered));
  means.assign(mean.data(), mean.data() + mean.size());
}

std::vector<float> held_parameters(const NetworkSpec& spec, std::span<const float> parameters,
                                   std::span<const float> action) {
  const NetworkLayout layout = layout_of(spec);
  std::vector<float> held(parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(layout.policy_size));
  std::copy(action.begin(), action.end(), held.begin() + static_cast<std::ptrdiff_t>(layout.steered_begin));
  return held;
}

void draw_action(const NetworkSpec& spec, std::span<const float> parameters, std::span<float> mean, Rng& rng) {
  const std::size_t deviations = layout_of(spec).log_deviation;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double deviation = std::exp(static_cast<double>(parameters[deviations + i]));
    mean[i] = static_cast<float>(static_cast<double>(mean[i]) + deviation * rng.normal());
  }
}

double log_density(const NetworkSpec& spec, std::span<const float> parameters, std::span<const float> mean,
                   std::span<const float> action) {
  const std::size_t deviations = layout_of(spec).log_deviation;
  double sum = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const auto log_deviation = static_cast<double>(parameters[deviations + i]);
    const double z = (static_cast<double>(action[i]) - static_cast<double>(mean[i])) / std::exp(log_deviation);
    sum -= 0.5 * z * z + log_deviation + 0.5 * std::log(2 * std::numbers::pi);
  }
  return sum;
}

namespace {

// The mean of `count` rows of `columns` floats, 0 of none.
template <std::size_t columns>
std::array<float, columns> mean_row(const float* rows, std::size_t count) {
  std::array<float, columns> sum{};
  for (std::size_t i = 0; i < count; ++i, rows += columns) {
    for (std::size_t c = 0; c < columns; ++c) sum[c] += rows[c];
  }
  const float share = count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
  for (float& value : sum) value *= share;
  return sum;
}

}  // namespace

void critic_features(const Normaliser& normaliser, const Observation& observation, std::vector<float>& out) {
  const std::uint32_t states = observation.count();
  out.resize(std::size_t{states} * critic_inputs);
  float* row = out.data();
  for (std::uint32_t s = 0; s < states; ++s) {
    const auto jobs = mean_row<job_features>(
        observation.jobs.data() + std::size_t{observation.job_begin[s]} * job_features, observation.tokens(s));
    for (std::size_t c = 0; c < jobs.size(); ++c) {
      *row++ = (jobs[c] - normaliser.job_mean[c]) * normaliser.job_scale[c];
    }
    const auto groups =
        mean_row<group_features>(observation.groups.data() + std::size_t{observation.group_begin[s]} * group_features,
                                 observation.group_begin[s + 1] - observation.group_begin[s]);
    row = std::copy(groups.begin(), groups.end(), row);
    const float* const global = observation.global.data() + std::size_t{s} * global_features;
    for (std::size_t c = 0; c < global_features; ++c) {
      *row++ = (global[c] - normaliser.global_mean[c]) * normaliser.global_scale[c];
    }
    row = std::copy_n(observation.privileged.data() + std::size_t{s} * privileged_features, privileged_features, row);
  }
}

void forward_critic(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                    const Observation& observation, std::vector<float>& values) {
  std::vector<float> features;
  critic_features(normaliser, observation, features);
  LaneStack critic = critic_stack(layout_of(spec), lane_kernels());
  const std::size_t states = observation.count();
  values.clear();
  for (std::size_t first = 0; first < states; first += most_columns) {
    const std::size_t count = std::min(most_columns, states - first);
    fill_critic_inputs(features.data() + first * critic_inputs, count, critic.inputs(whole_lanes(count)));
    const float* const own = critic.forward(parameters);
    values.insert(values.end(), own, own + count);
  }
}

}  // namespace gpusched
