// SPDX-License-Identifier: Apache-2.0
#include "src/rl/learner.hpp"

#include <ATen/Parallel.h>
#include <malloc.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <cmath>
#include <cstdlib>
#include <utility>

namespace gpusched {
namespace {

using torch::Tensor;

Tensor rows_of(const std::vector<float>& values, std::int64_t columns, const torch::Device& device) {
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  // Torch does not write through the pointer: the tensor is copied before it is used.
  return torch::from_blob(const_cast<float*>(values.data()), {rows, columns}, torch::kFloat32).to(device, false, true);
}

Tensor column_of(const std::vector<float>& values, const torch::Device& device) {
  return rows_of(values, 1, device).squeeze(1);
}

// A ragged batch with the index tensors that pad it: each padded place names a row, the last row being padding.
struct BatchTensors {
  Tensor jobs, prior, groups, global, critic;
  Tensor pad_jobs;            // [states x most tokens] rows of jobs
  Tensor pad_groups;          // [states x most groups]
  Tensor action_source;       // [states x most actions] row among token logits and, behind them, WAIT logits
  Tensor token_state;         // [tokens] state of each token
  Tensor count, group_count;  // [states x 1], at least 1
  Tensor allowed;             // [states x most actions]
  Tensor present;             // [states x most tokens]
  std::int64_t states = 0, most_tokens = 0, most_groups = 0, most_actions = 0;
};

BatchTensors tensors_of(const Observation& seen, const Normaliser& normaliser, const torch::Device& device) {
  BatchTensors batch;
  batch.states = seen.count();
  const auto tokens = static_cast<std::int64_t>(seen.job_begin.back());
  const auto group_rows = static_cast<std::int64_t>(seen.groups.size() / group_features);
  for (std::uint32_t s = 0; s < seen.count(); ++s) {
    batch.most_tokens = std::max<std::int64_t>(batch.most_tokens, seen.tokens(s));
    batch.most_groups = std::max<std::int64_t>(batch.most_groups, seen.group_begin[s + 1] - seen.group_begin[s]);
  }
  batch.most_actions = batch.most_tokens + 1;
  std::vector<std::int64_t> pad_jobs(batch.states * batch.most_tokens, tokens);
  std::vector<std::int64_t> pad_groups(batch.states * batch.most_groups, group_rows);
  std::vector<std::int64_t> source(batch.states * batch.most_actions, 0);
  std::vector<std::int64_t> token_state(tokens);
  std::vector<float> allowed(batch.states * batch.most_actions, 0.0f), present(batch.states * batch.most_tokens, 0.0f);
  std::vector<float> count(batch.states), group_count(batch.states);
  std::vector<float> prior(tokens + batch.states);  // tokens, then WAITs, as the logits are joined
  for (std::int64_t s = 0; s < batch.states; ++s) {
    const std::int64_t begin = seen.job_begin[s];
    const std::int64_t own = seen.tokens(static_cast<std::uint32_t>(s));
    for (std::int64_t i = 0; i < own; ++i) {
      pad_jobs[s * batch.most_tokens + i] = begin + i;
      prior[begin + i] = seen.prior[begin + s + i];
      present[s * batch.most_tokens + i] = 1.0f;
      token_state[begin + i] = s;
      source[s * batch.most_actions + i] = begin + i;
      allowed[s * batch.most_actions + i] = seen.mask[begin + s + i] != 0 ? 1.0f : 0.0f;
    }
    source[s * batch.most_actions + own] = tokens + s;
    prior[tokens + s] = seen.prior[begin + s + own];
    allowed[s * batch.most_actions + own] = seen.mask[begin + s + own] != 0 ? 1.0f : 0.0f;
    count[s] = static_cast<float>(std::max<std::int64_t>(1, own));
    const std::int64_t own_groups = seen.group_begin[s + 1] - seen.group_begin[s];
    for (std::int64_t g = 0; g < own_groups; ++g) pad_groups[s * batch.most_groups + g] = seen.group_begin[s] + g;
    group_count[s] = static_cast<float>(std::max<std::int64_t>(1, own_groups));
  }
  const auto to_index = [&](std::vector<std::int64_t>& values) {
    return torch::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, torch::kInt64)
        .to(device, false, true);
  };
  batch.pad_jobs = to_index(pad_jobs);
  batch.pad_groups = to_index(pad_groups);
  batch.action_source = to_index(source);
  batch.token_state = to_index(token_state);
  batch.allowed = rows_of(allowed, batch.most_actions, device);
  batch.present = rows_of(present, std::max<std::int64_t>(1, batch.most_tokens), device);
  batch.count = rows_of(count, 1, device);
  batch.group_count = rows_of(group_count, 1, device);
  const auto normalise = [&](const std::vector<float>& values, const std::vector<float>& mean,
                             const std::vector<float>& scale) {
    const auto columns = static_cast<std::int64_t>(mean.size());
    return (rows_of(values, columns, device) - column_of(mean, device)) * column_of(scale, device);
  };
  batch.jobs = normalise(seen.jobs, normaliser.job_mean, normaliser.job_scale);
  batch.global = normalise(seen.global, normaliser.global_mean, normaliser.global_scale);
  batch.groups = rows_of(seen.groups, group_features, device);
  batch.prior = column_of(prior, device);
  std::vector<float> critic;
  critic_features(normaliser, seen, critic);
  batch.critic = rows_of(critic, critic_inputs, device);
  return batch;
}

// The formulas of score_network.cpp on Torch.
class TorchNetwork {
 public:
  TorchNetwork(const NetworkSpec& spec, Tensor parameters)
      : spec_(spec), layout_(layout_of(spec)), parameters_(std::move(parameters)) {}

  // Logits of the padded actions [states x most actions], masked ones at masked_logit.
  [[nodiscard]] Tensor logits(const BatchTensors& batch) const {
    Tensor scores, wait;
    if (spec_.kind == NetworkKind::kernel) {
      scores = kernel(batch.jobs.slice(1, 0, kernel_features));
      wait = kernel(torch::zeros({1, kernel_features}, batch.jobs.options())).expand({batch.states});
    } else {
      std::tie(scores, wait) = set_scores(batch);
    }
    const Tensor alpha = parameters_.select(0, static_cast<std::int64_t>(layout_.alpha));
    const Tensor all = torch::cat({scores, wait}) + alpha * batch.prior;
    const Tensor padded = all.index_select(0, batch.action_source).view({batch.states, batch.most_actions});
    return padded.masked_fill(batch.allowed == 0, static_cast<double>(masked_logit));
  }

  [[nodiscard]] Tensor values(const BatchTensors& batch) const {
    const Tensor hidden = torch::tanh(dense(layout_.critic1, batch.critic));
    return dense(layout_.critic3, torch::tanh(dense(layout_.critic2, hidden))).squeeze(1);
  }

 private:
  [[nodiscard]] Tensor weights(const DenseLayer& layer) const {
    return parameters_
        .narrow(0, static_cast<std::int64_t>(layer.offset), static_cast<std::int64_t>(layer.bias() - layer.offset))
        .view({static_cast<std::int64_t>(layer.outputs), static_cast<std::int64_t>(layer.inputs)});
  }
  [[nodiscard]] Tensor biases(const DenseLayer& layer) const {
    return parameters_.narrow(0, static_cast<std::int64_t>(layer.bias()), layer.outputs);
  }
  [[nodiscard]] Tensor dense(const DenseLayer& layer, const Tensor& input) const {
    return torch::matmul(input, weights(layer).t()) + biases(layer);
  }
  [[nodiscard]] Tensor dense_relu(const DenseLayer& layer, const Tensor& input) const {
    return torch::relu(dense(layer, input));
  }

  [[nodiscard]] Tensor kernel(const Tensor& input) const {
    const Tensor hidden = dense_relu(layout_.score1, dense_relu(layout_.encode2, dense_relu(layout_.encode1, input)));
    return dense(layout_.score2, hidden).squeeze(1);
  }

  // Rows gathered to [states x most x width]; padding is a row of zeros.
  static Tensor padded(const Tensor& rows, const Tensor& places, std::int64_t states, std::int64_t most) {
    const Tensor zero = torch::zeros({1, rows.size(1)}, rows.options());
    return torch::cat({rows, zero}).index_select(0, places).view({states, most, rows.size(1)});
  }

  [[nodiscard]] std::pair<Tensor, Tensor> set_scores(const BatchTensors& batch) const {
    const std::int64_t width = spec_.width;
    Tensor own = dense_relu(layout_.encode2, dense_relu(layout_.encode1, batch.jobs));
    Tensor sets = padded(own, batch.pad_jobs, batch.states, batch.most_tokens);
    if (spec_.kind == NetworkKind::attention) {
      sets = attend(sets, batch.present);
      own = sets.view({batch.states * batch.most_tokens, width})
                .index_select(0, torch::nonzero(batch.present.view({-1})).squeeze(1));
    }
    // Encoded tokens are not negative, so that padding with zeros changes no maximum.
    const Tensor groups =
        padded(dense_relu(layout_.group, batch.groups), batch.pad_groups, batch.states, batch.most_groups);
    const Tensor pooled =
        torch::cat({sets.sum(1) / batch.count, sets.amax(1), groups.sum(1) / batch.group_count, batch.global}, 1);
    const Tensor context = dense_relu(layout_.context, pooled);
    const Tensor score_weights = weights(layout_.score1);
    const Tensor shared = torch::matmul(context, score_weights.slice(1, width).t()) + biases(layout_.score1);
    const Tensor hidden = torch::relu(torch::matmul(own, score_weights.slice(1, 0, width).t()) +
                                      shared.index_select(0, batch.token_state));
    return {dense(layout_.score2, hidden).squeeze(1), dense(layout_.wait, context).squeeze(1)};
  }

  [[nodiscard]] Tensor attend(const Tensor& sets, const Tensor& present) const {
    const std::int64_t states = sets.size(0);
    const std::int64_t most = sets.size(1);
    const std::int64_t size = spec_.width / spec_.heads;
    const auto split = [&](const DenseLayer& layer) {
      return dense(layer, sets).view({states, most, spec_.heads, size}).transpose(1, 2);
    };
    Tensor weight =
        torch::matmul(split(layout_.query), split(layout_.key).transpose(2, 3)) / std::sqrt(static_cast<double>(size));
    weight = weight.masked_fill(present.view({states, 1, 1, most}) == 0, static_cast<double>(masked_logit));
    const Tensor heads = torch::matmul(torch::softmax(weight, 3), split(layout_.value));
    const Tensor joined = heads.transpose(1, 2).reshape({states, most, static_cast<std::int64_t>(spec_.width)});
    return (sets + dense_relu(layout_.mix, joined)) * present.unsqueeze(2);
  }

  NetworkSpec spec_;
  NetworkLayout layout_;
  Tensor parameters_;
};

}  // namespace

struct Learner::Impl {
  NetworkSpec spec;
  Normaliser normaliser;
  torch::Device device = torch::kCPU;
  Tensor parameters, first, second;
  std::int64_t steps = 0;

  // Backward pass, clipping and one step of Adam; `losses` are named for the error.
  Result<double> descend(std::initializer_list<std::pair<const char*, Tensor>> losses, const Tensor& total,
                         const PpoOptions& options, double learning_rate) {
    for (const auto& [name, loss] : losses) {
      if (!std::isfinite(loss.item<double>())) return unexpected(std::string("the ") + name + " is not a number");
    }
    parameters.mutable_grad() = Tensor();
    total.backward();
    const torch::NoGradGuard no_gradient;
    Tensor gradient = parameters.grad();
    const double norm = gradient.norm().item<double>();
    if (!std::isfinite(norm)) return unexpected("the gradient is not a number");
    if (norm > options.max_gradient_norm) gradient = gradient * (options.max_gradient_norm / norm);
    constexpr double beta1 = 0.9;
    constexpr double beta2 = 0.999;
    constexpr double epsilon = 1e-5;
    ++steps;
    first.mul_(beta1).add_(gradient, 1 - beta1);
    second.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
    const double correction1 = 1 - std::pow(beta1, static_cast<double>(steps));
    const double correction2 = 1 - std::pow(beta2, static_cast<double>(steps));
    parameters.sub_(first / correction1 / (torch::sqrt(second / correction2) + epsilon) * learning_rate);
    return norm;
  }

  [[nodiscard]] Tensor to_tensor(const std::vector<float>& values) const { return column_of(values, device); }

  [[nodiscard]] Tensor actions_of(const Minibatch& batch) const {
    return torch::from_blob(const_cast<std::int64_t*>(batch.actions.data()),
                            {static_cast<std::int64_t>(batch.actions.size())}, torch::kInt64)
        .to(device, false, true);
  }

  [[nodiscard]] Tensor value_loss(const Tensor& value, const Minibatch& batch, const PpoOptions& options) const {
    const Tensor target = to_tensor(batch.value_target);
    const Tensor loss = torch::square(value - target);
    if (!options.clip_value) return 0.5 * loss.mean();
    const Tensor old = to_tensor(batch.old_value);
    const Tensor clipped = old + torch::clamp(value - old, -options.clip, options.clip);
    return 0.5 * torch::maximum(loss, torch::square(clipped - target)).mean();
  }
};

Learner::Learner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Learner::Learner(Learner&&) noexcept = default;
Learner& Learner::operator=(Learner&&) noexcept = default;
Learner::~Learner() = default;

Result<Learner> Learner::create(const NetworkSpec& spec, const Normaliser& normaliser, const std::string& device) {
  const bool has_cuda = torch::cuda::is_available();
  if (device == "cuda" && !has_cuda) return unexpected("device cuda: Torch sees no CUDA device");
  at::set_num_threads(1);  // more threads slow small networks down, and one gives the same bits everywhere
  // Activations of a few megabytes come and go at every step: kept by the allocator instead of being given back to the
  // kernel and cleared again (2.6 to 2.9 times faster, measured with glibc).
  constexpr int keep_bytes = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, keep_bytes);
  mallopt(M_TRIM_THRESHOLD, keep_bytes);
  mallopt(M_TOP_PAD, 64 << 20);
  auto impl = std::make_unique<Impl>();
  impl->spec = spec;
  impl->normaliser = normaliser;
  if (device != "cpu" && has_cuda) impl->device = torch::kCUDA;
  return Learner(std::move(impl));
}

void Learner::set_state(std::span<const float> parameters, const AdamState& adam) {
  const auto load = [&](std::span<const float> values) {
    Tensor tensor = torch::zeros({static_cast<std::int64_t>(parameters.size())}, torch::kFloat32);
    std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
    return tensor.to(impl_->device);
  };
  impl_->parameters = load(parameters).detach().requires_grad_(true);
  impl_->first = load(adam.first);
  impl_->second = load(adam.second);
  impl_->steps = adam.steps;
}

namespace {
std::vector<float> copy_of(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(torch::kCPU).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}
}  // namespace

std::vector<float> Learner::parameters() const { return copy_of(impl_->parameters); }
AdamState Learner::adam() const { return {copy_of(impl_->first), copy_of(impl_->second), impl_->steps}; }
std::string Learner::device() const { return impl_->device.str(); }

Result<UpdateReport> Learner::improve(const Minibatch& batch, const PpoOptions& options, double learning_rate) {
  const BatchTensors tensors = tensors_of(batch.observation, impl_->normaliser, impl_->device);
  const TorchNetwork network(impl_->spec, impl_->parameters);
  const Tensor log_all = torch::log_softmax(network.logits(tensors), 1);
  const Tensor log_chosen = log_all.gather(1, impl_->actions_of(batch).unsqueeze(1)).squeeze(1);
  const Tensor log_ratio = log_chosen - impl_->to_tensor(batch.old_log_probability);
  const Tensor ratio = torch::exp(log_ratio);
  const Tensor advantage = impl_->to_tensor(batch.advantage);
  const Tensor clipped = torch::clamp(ratio, 1 - options.clip, 1 + options.clip);
  const Tensor policy_loss = -torch::minimum(ratio * advantage, clipped * advantage).mean();
  const Tensor choices = torch::clamp_min(tensors.allowed.sum(1), 2);
  const Tensor entropy = (-(torch::exp(log_all) * log_all).sum(1) / torch::log(choices)).mean();
  const Tensor value_loss = impl_->value_loss(network.values(tensors), batch, options);
  const Tensor total = policy_loss + options.value * value_loss - options.entropy * entropy;
  const auto norm = impl_->descend({{"policy loss", policy_loss}, {"value loss", value_loss}, {"entropy", entropy}},
                                   total, options, learning_rate);
  if (!norm) return Unexpected{norm.error()};
  const torch::NoGradGuard no_gradient;
  return UpdateReport{.policy_loss = policy_loss.item<double>(),
                      .value_loss = value_loss.item<double>(),
                      .entropy = entropy.item<double>(),
                      .kl = ((ratio - 1) - log_ratio).mean().item<double>(),
                      .clip_fraction = ((ratio - 1).abs() > options.clip).to(torch::kFloat32).mean().item<double>(),
                      .gradient_norm = *norm};
}

Result<UpdateReport> Learner::imitate(const Minibatch& batch, const PpoOptions& options, double learning_rate) {
  const BatchTensors tensors = tensors_of(batch.observation, impl_->normaliser, impl_->device);
  const TorchNetwork network(impl_->spec, impl_->parameters);
  const Tensor log_all = torch::log_softmax(network.logits(tensors), 1);
  const Tensor loss = -log_all.gather(1, impl_->actions_of(batch).unsqueeze(1)).mean();
  const Tensor value_loss = impl_->value_loss(network.values(tensors), batch, options);
  const auto norm = impl_->descend({{"imitation loss", loss}, {"value loss", value_loss}},
                                   loss + options.value * value_loss, options, learning_rate);
  if (!norm) return Unexpected{norm.error()};
  return UpdateReport{
      .policy_loss = loss.item<double>(), .value_loss = value_loss.item<double>(), .gradient_norm = *norm};
}

std::vector<float> Learner::logits(const Observation& observation) const {
  const torch::NoGradGuard no_gradient;
  const BatchTensors tensors = tensors_of(observation, impl_->normaliser, impl_->device);
  const std::vector<float> padded = copy_of(TorchNetwork(impl_->spec, impl_->parameters).logits(tensors));
  std::vector<float> ragged;
  for (std::uint32_t s = 0; s < observation.count(); ++s) {
    const auto row = padded.begin() + s * tensors.most_actions;
    ragged.insert(ragged.end(), row, row + observation.tokens(s) + 1);
  }
  return ragged;
}

std::vector<float> Learner::values(const Observation& observation) const {
  const torch::NoGradGuard no_gradient;
  return copy_of(
      TorchNetwork(impl_->spec, impl_->parameters).values(tensors_of(observation, impl_->normaliser, impl_->device)));
}

}  // namespace gpusched
