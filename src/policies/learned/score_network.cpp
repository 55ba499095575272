// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/score_network.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>

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

Vector index_wait_inputs(const Vector& global) {
  Vector inputs(static_cast<Eigen::Index>(index_wait_features.size()));
  for (std::size_t i = 0; i < index_wait_features.size(); ++i) {
    inputs(static_cast<Eigen::Index>(i)) = global(index_wait_features[i]);
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

void initialise(std::vector<float>& parameters, const DenseLayer& layer, double gain, Rng rng) {
  if (layer.outputs == 0) return;
  const auto rows = static_cast<Eigen::Index>(layer.outputs);
  const auto columns = static_cast<Eigen::Index>(layer.inputs);
  const Eigen::Index most = std::max(rows, columns);
  Eigen::MatrixXd gaussian(most, std::min(rows, columns));
  for (Eigen::Index i = 0; i < gaussian.size(); ++i) gaussian.data()[i] = rng.normal();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(gaussian);
  Eigen::MatrixXd orthogonal = qr.householderQ() * Eigen::MatrixXd::Identity(gaussian.rows(), gaussian.cols());
  for (Eigen::Index column = 0; column < orthogonal.cols(); ++column) {
    if (qr.matrixQR()(column, column) < 0) orthogonal.col(column) *= -1;  // makes the distribution uniform
  }
  if (rows < columns) orthogonal.transposeInPlace();
  Eigen::Map<Matrix>(parameters.data() + layer.offset, rows, columns) = (gain * orthogonal).cast<float>();
}

// Weights of any size give an allowed action a finite logit above masked_logit.
float bounded_logit(float logit) {
  constexpr float largest = -masked_logit / 10;
  return std::isnan(logit) ? -largest : std::clamp(logit, -largest, largest);
}

}  // namespace

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
  if (spec.kind == NetworkKind::kernel) {
    layout.encode1 = add(kernel_features, 32);
    layout.encode2 = add(32, 16);
    layout.score1 = add(16, 8);
    layout.score2 = add(8, 1);
  } else if (spec.kind == NetworkKind::index) {
    layout.score2 = add(static_cast<std::uint32_t>(index_terms.size()), 1);
    layout.wait = add(static_cast<std::uint32_t>(index_wait_features.size()), 1);
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
  if (spec.hold_s > 0) {
    layout.steered_begin = layout.score2.offset;
    layout.steered = (spec.kind == NetworkKind::index ? layout.wait : layout.score2).end() - layout.steered_begin;
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

std::vector<float> initial_parameters(const NetworkSpec& spec, Rng rng) {
  const NetworkLayout layout = layout_of(spec);
  std::vector<float> parameters(layout.size, 0.0f);
  parameters[layout.alpha] = static_cast<float>(spec.alpha);
  const double hidden = std::sqrt(2.0);
  std::uint64_t number = 0;
  for (const DenseLayer* layer :
       {&layout.encode1, &layout.encode2, &layout.query, &layout.key, &layout.value, &layout.mix, &layout.group,
        &layout.context, &layout.score1, &layout.critic1, &layout.critic2}) {
    initialise(parameters, *layer, hidden, rng.split(number++));
  }
  initialise(parameters, layout.critic3, 1.0, rng.split(number++));
  initialise(parameters, layout.correct1, hidden, rng.split(number++));
  initialise(parameters, layout.steer1, hidden, rng.split(number++));
  std::fill_n(parameters.begin() + static_cast<std::ptrdiff_t>(layout.log_deviation), layout.steered,
              static_cast<float>(std::log(spec.deviation)));
  return parameters;
}

Normaliser Normaliser::fit(std::span<const Observation> observations) {
  Normaliser fitted;
  const auto fit_columns = [&](std::vector<float> Observation::*values, std::vector<float>& mean,
                               std::vector<float>& scale) {
    const std::size_t columns = mean.size();
    std::vector<double> sum(columns), squares(columns);
    double rows = 0;
    for (const Observation& observation : observations) {
      const std::vector<float>& flat = observation.*values;
      for (std::size_t i = 0; i < flat.size(); ++i) {
        sum[i % columns] += static_cast<double>(flat[i]);
        squares[i % columns] += static_cast<double>(flat[i]) * static_cast<double>(flat[i]);
      }
      const std::size_t count = flat.size() / columns;
      rows += static_cast<double>(count);
    }
    if (rows == 0) return;
    for (std::size_t c = 0; c < columns; ++c) {
      const double average = sum[c] / rows;
      const double deviation = std::sqrt(std::max(0.0, squares[c] / rows - average * average));
      mean[c] = static_cast<float>(average);
      constexpr double hardly_varies = 0.01;
      scale[c] = deviation > hardly_varies ? static_cast<float>(1 / deviation) : 1.0f;
    }
  };
  fit_columns(&Observation::jobs, fitted.job_mean, fitted.job_scale);
  fit_columns(&Observation::global, fitted.global_mean, fitted.global_scale);
  return fitted;
}

void forward_policy(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                    const Observation& observation, std::vector<float>& logits) {
  const NetworkLayout layout = layout_of(spec);
  const std::uint32_t states = observation.count();
  const float alpha = parameters[layout.alpha];
  logits.assign(observation.mask.size(), masked_logit);
  const Matrix jobs = normalised(observation.jobs, normaliser.job_mean, normaliser.job_scale);
  const auto put = [&](std::uint32_t state, const auto& scores, float wait_score) {
    const std::uint32_t begin = observation.job_begin[state];
    const std::uint32_t tokens = observation.tokens(state);
    const std::size_t first = std::size_t{begin} + state;
    for (std::uint32_t i = 0; i < tokens; ++i) {
      if (observation.mask[first + i] != 0) {
        logits[first + i] =
            bounded_logit(alpha * observation.prior[first + i] + scores(static_cast<Eigen::Index>(i), 0));
      }
    }
    if (observation.mask[first + tokens] != 0) {
      logits[first + tokens] = bounded_logit(alpha * observation.prior[first + tokens] + wait_score);
    }
  };

  if (spec.kind == NetworkKind::kernel) {
    const auto score = [&](const auto& input) {
      return dense(parameters, layout.score2,
                   dense_relu(parameters, layout.score1,
                              dense_relu(parameters, layout.encode2, dense_relu(parameters, layout.encode1, input))));
    };
    const Matrix scores = score(Matrix(jobs.leftCols(kernel_features)));
    const float wait = score(Matrix(Matrix::Zero(1, kernel_features)))(0, 0);
    for (std::uint32_t s = 0; s < states; ++s) {
      put(s, scores.middleRows(observation.job_begin[s], observation.tokens(s)), wait);
    }
    return;
  }

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
      const Matrix terms = products_of(index_terms, own, context);
      Matrix scores = dense(parameters, layout.score2, terms);
      add_correction(parameters, layout, terms, context, scores);
      put(s, scores, dense(parameters, layout.wait, index_wait_inputs(context))(0, 0));
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

void critic_features(const Normaliser& normaliser, const Observation& observation, std::vector<float>& out) {
  const std::uint32_t states = observation.count();
  out.assign(std::size_t{states} * critic_inputs, 0.0f);
  for (std::uint32_t s = 0; s < states; ++s) {
    float* row = out.data() + std::size_t{s} * critic_inputs;
    const auto add_mean = [](float* sum, const std::vector<float>& values, std::uint32_t begin, std::uint32_t end,
                             std::uint32_t columns) {
      for (std::uint32_t i = begin; i < end; ++i) {
        for (std::uint32_t c = 0; c < columns; ++c) {
          sum[c] += values[std::size_t{i} * columns + c] / static_cast<float>(end - begin);
        }
      }
    };
    add_mean(row, observation.jobs, observation.job_begin[s], observation.job_begin[s + 1], job_features);
    for (std::uint32_t c = 0; c < job_features; ++c)
      row[c] = (row[c] - normaliser.job_mean[c]) * normaliser.job_scale[c];
    row += job_features;
    add_mean(row, observation.groups, observation.group_begin[s], observation.group_begin[s + 1], group_features);
    row += group_features;
    for (std::uint32_t c = 0; c < global_features; ++c) {
      const float value = observation.global[std::size_t{s} * global_features + c];
      row[c] = (value - normaliser.global_mean[c]) * normaliser.global_scale[c];
    }
    row += global_features;
    for (std::uint32_t c = 0; c < privileged_features; ++c) {
      row[c] = observation.privileged[std::size_t{s} * privileged_features + c];
    }
  }
}

void forward_critic(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                    const Observation& observation, std::vector<float>& values) {
  const NetworkLayout layout = layout_of(spec);
  std::vector<float> features;
  critic_features(normaliser, observation, features);
  const MatrixMap input(features.data(), observation.count(), critic_inputs);
  const Matrix hidden = dense(parameters, layout.critic1, input).array().tanh();
  const Matrix deeper = dense(parameters, layout.critic2, hidden).array().tanh();
  const Matrix value = dense(parameters, layout.critic3, deeper);
  values.assign(value.data(), value.data() + value.size());
}

}  // namespace gpusched
