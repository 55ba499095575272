// SPDX-License-Identifier: Apache-2.0
#include "src/rl/ppo/torch_learner.hpp"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <malloc.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

namespace gpusched {
namespace {

using torch::Tensor;

// OpenBLAS, which some builds of Torch use, has threads of its own that at::set_num_threads() does not reach. They spin
// for work: on two cores a minibatch takes four times as long with them.
void use_one_blas_thread() {
  using SetThreads = void (*)(int);
  if (const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(1);
}

// A copy on the device. For CUDA it goes through page-locked memory and is not waited for: Torch's allocator hands a
// page-locked block out again only when the copies from it are over, so that a minibatch is prepared while the last one
// is still on its way.
Tensor to_device(const void* data, at::IntArrayRef sizes, torch::ScalarType type, const torch::Device& device) {
  // Torch does not write through the pointer: the tensor is copied before it is used.
  const Tensor borrowed = torch::from_blob(const_cast<void*>(data), sizes, type);
  if (!device.is_cuda()) return borrowed.clone();
  return borrowed.pin_memory().to(device, /*non_blocking=*/true);
}

Tensor rows_of(const std::vector<float>& values, std::int64_t columns, const torch::Device& device) {
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  return to_device(values.data(), {rows, columns}, torch::kFloat32, device);
}

Tensor indices_of(const std::vector<std::int64_t>& values, const torch::Device& device) {
  return to_device(values.data(), {static_cast<std::int64_t>(values.size())}, torch::kInt64, device);
}

Tensor column_of(const std::vector<float>& values, const torch::Device& device) {
  return rows_of(values, 1, device).squeeze(1);
}

// States of about as many tokens, which are padded to the longest of them: queues differ in length by a factor of ten
// and more, and attention costs the square of it.
struct Bucket {
  std::int64_t states = 0, most = 0;
  Tensor present;  // [states x most]
};

// A ragged batch with the index tensors that pad it: each padded place names a row, the last row being padding.
struct BatchTensors {
  Tensor jobs, prior, groups, global, critic;
  std::vector<Bucket> buckets;
  std::vector<std::int64_t> bucket_places;  // states x most of each
  Tensor pad_jobs;                          // rows of jobs, the places of one bucket after the other
  Tensor token_place;                       // [tokens] its place among these
  Tensor state_place;                       // [states] its place among the buckets' states
  Tensor pad_groups;                        // [states x most groups]
  Tensor action_source;       // [states x most actions] row among token logits and, behind them, WAIT logits
  Tensor token_state;         // [tokens] state of each token
  Tensor count, group_count;  // [states x 1], at least 1
  Tensor allowed;             // [states x most actions]
  std::int64_t states = 0, most_groups = 0, most_actions = 0;
};

// The least of 8, 12, 16, 24, 32, 48, ... that is not below `tokens`.
std::int64_t bucket_of(std::int64_t tokens) {
  std::int64_t size = 8;
  while (size < tokens) size = (size & (size - 1)) == 0 ? size + size / 2 : size / 3 * 4;
  return size;
}

// Shares the states out to buckets and notes where each state and token lies.
void fill_buckets(const Observation& seen, const torch::Device& device, BatchTensors& batch) {
  const std::int64_t tokens = seen.job_begin.back();
  std::map<std::int64_t, std::vector<std::uint32_t>> states_of;
  for (std::uint32_t s = 0; s < seen.count(); ++s) states_of[bucket_of(seen.tokens(s))].push_back(s);
  std::vector<std::int64_t> pad_jobs, token_place(tokens), state_place(seen.count());
  std::int64_t states = 0;
  for (const auto& [size, members] : states_of) {
    Bucket bucket{.states = static_cast<std::int64_t>(members.size()), .most = 1, .present = {}};
    for (const std::uint32_t s : members) bucket.most = std::max<std::int64_t>(bucket.most, seen.tokens(s));
    std::vector<float> present(bucket.states * bucket.most, 0.0f);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::uint32_t s = members[i];
      state_place[s] = states++;
      std::fill_n(present.begin() + static_cast<std::int64_t>(i) * bucket.most, seen.tokens(s), 1.0f);
      for (std::int64_t k = 0; k < bucket.most; ++k) {
        const bool is_token = k < seen.tokens(s);
        const std::int64_t row = seen.job_begin[s] + k;
        if (is_token) token_place[row] = static_cast<std::int64_t>(pad_jobs.size());
        pad_jobs.push_back(is_token ? row : tokens);
      }
    }
    bucket.present = rows_of(present, bucket.most, device);
    batch.bucket_places.push_back(bucket.states * bucket.most);
    batch.buckets.push_back(std::move(bucket));
  }
  batch.pad_jobs = indices_of(pad_jobs, device);
  batch.token_place = indices_of(token_place, device);
  batch.state_place = indices_of(state_place, device);
}

BatchTensors tensors_of(const Observation& seen, const Normaliser& normaliser, const torch::Device& device) {
  BatchTensors batch;
  batch.states = seen.count();
  const auto tokens = static_cast<std::int64_t>(seen.job_begin.back());
  const auto group_rows = static_cast<std::int64_t>(seen.groups.size() / group_features);
  for (std::uint32_t s = 0; s < seen.count(); ++s) {
    batch.most_actions = std::max<std::int64_t>(batch.most_actions, seen.tokens(s) + 1);
    batch.most_groups = std::max<std::int64_t>(batch.most_groups, seen.group_begin[s + 1] - seen.group_begin[s]);
  }
  std::vector<std::int64_t> pad_groups(batch.states * batch.most_groups, group_rows);
  std::vector<std::int64_t> source(batch.states * batch.most_actions, 0);
  std::vector<std::int64_t> token_state(tokens);
  std::vector<float> allowed(batch.states * batch.most_actions, 0.0f);
  std::vector<float> count(batch.states), group_count(batch.states);
  std::vector<float> prior(tokens + batch.states);  // tokens, then WAITs, as the logits are joined
  for (std::int64_t s = 0; s < batch.states; ++s) {
    const std::int64_t begin = seen.job_begin[s];
    const std::int64_t own = seen.tokens(static_cast<std::uint32_t>(s));
    for (std::int64_t i = 0; i < own; ++i) {
      prior[begin + i] = seen.prior[begin + s + i];
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
  fill_buckets(seen, device, batch);
  batch.pad_groups = indices_of(pad_groups, device);
  batch.action_source = indices_of(source, device);
  batch.token_state = indices_of(token_state, device);
  batch.allowed = rows_of(allowed, batch.most_actions, device);
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
    if (spec_.kind == NetworkKind::sc20_kernel) {
      scores = sc20_kernel(batch.jobs.slice(1, 0, sc20_kernel_features));
      wait = sc20_kernel(torch::zeros({1, sc20_kernel_features}, batch.jobs.options())).expand({batch.states});
    } else if (spec_.kind == NetworkKind::kernel) {
      std::tie(scores, wait) = kernel_scores(batch);
    } else if (spec_.kind == NetworkKind::index) {
      std::tie(scores, wait) = index_scores(batch);
    } else {
      std::tie(scores, wait) = set_scores(batch);
    }
    const Tensor alpha = parameters_.select(0, static_cast<std::int64_t>(layout_.alpha));
    const Tensor all = torch::cat({scores, wait}) + alpha * batch.prior;
    const Tensor padded = all.index_select(0, batch.action_source).view({batch.states, batch.most_actions});
    return padded.masked_fill(batch.allowed == 0, static_cast<double>(masked_logit));
  }

  // Of a network that steers: what it adds to the weights in each state.
  [[nodiscard]] Tensor departure(const BatchTensors& batch) const {
    return dense(layout_.steer2, torch::tanh(dense(layout_.steer1, batch.global)));
  }
  // The logarithm of the density of each step's weights.
  [[nodiscard]] Tensor log_density(const BatchTensors& batch, const Tensor& weights) const {
    const Tensor z = (weights - base() - departure(batch)) / torch::exp(log_deviation());
    return (-0.5 * torch::square(z) - log_deviation() - 0.5 * std::log(2 * std::numbers::pi)).sum(1);
  }
  // The KL divergence of its weights' distribution from that of another network, in each state.
  [[nodiscard]] Tensor steering_divergence(const BatchTensors& batch, const TorchNetwork& from) const {
    const Tensor moved = base() + departure(batch) - from.base() - from.departure(batch);
    const Tensor log_ratio = log_deviation() - from.log_deviation();
    const Tensor variance = torch::exp(-2 * from.log_deviation());
    return (0.5 * (torch::exp(2 * log_ratio) - 1 + torch::square(moved) * variance) - log_ratio).sum(1);
  }
  // A mean entropy of its weights.
  [[nodiscard]] Tensor steering_entropy() const {
    return log_deviation().mean() + 0.5 * std::log(2 * std::numbers::pi * std::numbers::e);
  }
  [[nodiscard]] std::int64_t steered() const { return static_cast<std::int64_t>(layout_.steered); }

  [[nodiscard]] Tensor values(const BatchTensors& batch) const {
    const Tensor hidden = torch::tanh(dense(layout_.critic1, batch.critic));
    return dense(layout_.critic3, torch::tanh(dense(layout_.critic2, hidden))).squeeze(1);
  }

 private:
  [[nodiscard]] Tensor base() const {
    return parameters_.narrow(0, static_cast<std::int64_t>(layout_.steered_begin), steered());
  }
  [[nodiscard]] Tensor log_deviation() const {
    return parameters_.narrow(0, static_cast<std::int64_t>(layout_.log_deviation), steered());
  }
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

  [[nodiscard]] Tensor score_encoded(const Tensor& encoded) const {
    const Tensor hidden = dense_relu(layout_.score1, dense_relu(layout_.encode2, encoded));
    return dense(layout_.score2, hidden).squeeze(1);
  }
  [[nodiscard]] Tensor sc20_kernel(const Tensor& input) const {
    return score_encoded(dense_relu(layout_.encode1, input));
  }

  [[nodiscard]] std::pair<Tensor, Tensor> kernel_scores(const BatchTensors& batch) const {
    const Tensor first = weights(layout_.encode1);
    const Tensor shared = torch::matmul(batch.global, first.slice(1, job_features).t()) + biases(layout_.encode1);
    const Tensor own = torch::matmul(batch.jobs, first.slice(1, 0, job_features).t());
    return {score_encoded(torch::relu(own + shared.index_select(0, batch.token_state))),
            score_encoded(torch::relu(shared))};
  }

  [[nodiscard]] std::pair<Tensor, Tensor> index_scores(const BatchTensors& batch) const {
    const Tensor global = batch.global.index_select(0, batch.token_state);
    std::vector<Tensor> products;
    for (const IndexTerm& term : index_terms) {
      const Tensor feature = batch.jobs.select(1, term.feature);
      products.push_back(term.times == IndexTerm::one   ? feature
                         : term.times == IndexTerm::job ? feature * batch.jobs.select(1, term.by)
                                                        : feature * global.select(1, term.by));
    }
    std::vector<Tensor> inputs;
    for (const std::uint8_t feature : index_wait_features) inputs.push_back(batch.global.select(1, feature));
    return {dense(layout_.score2, torch::stack(products, 1)).squeeze(1),
            dense(layout_.wait, torch::stack(inputs, 1)).squeeze(1)};
  }

  // Rows gathered by place; padding is a row of zeros.
  static Tensor gathered(const Tensor& rows, const Tensor& places) {
    return torch::cat({rows, torch::zeros({1, rows.size(1)}, rows.options())}).index_select(0, places);
  }

  // The tokens of each bucket: [states x most x width].
  static std::vector<Tensor> in_buckets(const BatchTensors& batch, const Tensor& tokens) {
    const std::vector<Tensor> parts = gathered(tokens, batch.pad_jobs).split_with_sizes(batch.bucket_places, 0);
    std::vector<Tensor> sets;
    for (std::size_t b = 0; b < parts.size(); ++b) {
      sets.push_back(parts[b].view({batch.buckets[b].states, batch.buckets[b].most, tokens.size(1)}));
    }
    return sets;
  }

  [[nodiscard]] std::pair<Tensor, Tensor> set_scores(const BatchTensors& batch) const {
    const std::int64_t width = spec_.width;
    Tensor own = dense_relu(layout_.encode2, dense_relu(layout_.encode1, batch.jobs));
    if (spec_.kind == NetworkKind::attention) own = attend(batch, own);
    // Encoded tokens are not negative, so that padding with zeros changes no maximum.
    std::vector<Tensor> sums, maxima;
    for (const Tensor& set : in_buckets(batch, own)) {
      sums.push_back(set.sum(1));
      maxima.push_back(set.amax(1));
    }
    const auto by_state = [&](const std::vector<Tensor>& parts) {
      return torch::cat(parts).index_select(0, batch.state_place);
    };
    const Tensor encoded = dense_relu(layout_.group, batch.groups);
    const Tensor groups = gathered(encoded, batch.pad_groups).view({batch.states, batch.most_groups, encoded.size(1)});
    const Tensor pooled = torch::cat(
        {by_state(sums) / batch.count, by_state(maxima), groups.sum(1) / batch.group_count, batch.global}, 1);
    const Tensor context = dense_relu(layout_.context, pooled);
    const Tensor score_weights = weights(layout_.score1);
    const Tensor shared = torch::matmul(context, score_weights.slice(1, width).t()) + biases(layout_.score1);
    const Tensor hidden = torch::relu(torch::matmul(own, score_weights.slice(1, 0, width).t()) +
                                      shared.index_select(0, batch.token_state));
    return {dense(layout_.score2, hidden).squeeze(1), dense(layout_.wait, context).squeeze(1)};
  }

  // Each token with what it makes of the others of its state. Queries, keys and values are worked out once, without
  // padding.
  [[nodiscard]] Tensor attend(const BatchTensors& batch, const Tensor& own) const {
    const std::int64_t width = spec_.width;
    const std::int64_t size = spec_.width / spec_.heads;
    const Tensor all_weights = torch::cat({weights(layout_.query), weights(layout_.key), weights(layout_.value)});
    const Tensor all_biases = torch::cat({biases(layout_.query), biases(layout_.key), biases(layout_.value)});
    const std::vector<Tensor> sets = in_buckets(batch, torch::addmm(all_biases, own, all_weights.t()));
    std::vector<Tensor> joined;
    for (std::size_t b = 0; b < sets.size(); ++b) {
      const Bucket& bucket = batch.buckets[b];
      // [query, key or value] x [states x heads x tokens x size]
      const Tensor heads = sets[b].view({bucket.states, bucket.most, 3, spec_.heads, size}).permute({2, 0, 3, 1, 4});
      const Tensor query = heads.select(0, 0) / std::sqrt(static_cast<double>(size));
      const Tensor absent = bucket.present.view({bucket.states, 1, 1, bucket.most}) == 0;
      const Tensor weight = torch::matmul(query, heads.select(0, 1).transpose(2, 3))
                                .masked_fill(absent, static_cast<double>(masked_logit));
      const Tensor seen = torch::matmul(torch::softmax(weight, 3), heads.select(0, 2));
      joined.push_back(seen.transpose(1, 2).reshape({bucket.states * bucket.most, width}));
    }
    return own + dense_relu(layout_.mix, torch::cat(joined).index_select(0, batch.token_place));
  }

  NetworkSpec spec_;
  NetworkLayout layout_;
  Tensor parameters_;
};

}  // namespace

struct TorchLearner::Impl {
  NetworkSpec spec;
  Normaliser normaliser;
  torch::Device device = torch::kCPU;
  Tensor parameters, first, second;
  Tensor start;  // of set_start()
  std::int64_t steps = 0, policy_steps = 0;
  // Of the batch that is being added.
  Lesson lesson = Lesson::improve;
  Tensor gradient;  // [parameters]
  Tensor told;      // [Told]
  // The policy's, since take_gradient_cosine().
  std::array<Tensor, 2> half_gradients;

  enum Told : std::uint8_t { policy_loss, value_loss, entropy, kl, clip_fraction, start_kl, told_count };
  using Numbers = std::array<Tensor, told_count>;

  [[nodiscard]] std::int64_t policy_size() const { return static_cast<std::int64_t>(layout_of(spec).policy_size); }
  [[nodiscard]] Tensor zero() const { return torch::zeros({}, parameters.options()); }

  static void accumulate(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term.clone(); }

  void add(const Tensor& total, const Numbers& numbers, double share, std::uint32_t half) {
    parameters.mutable_grad() = Tensor();
    (total * share).backward();
    const torch::NoGradGuard no_gradient;
    accumulate(gradient, parameters.grad());
    accumulate(told, torch::stack(std::vector<Tensor>(numbers.begin(), numbers.end())) * share);
    if (lesson != Lesson::critic) {
      accumulate(half_gradients[half], parameters.grad().narrow(0, 0, policy_size()));
    }
  }

  // The numbers with the norms of the policy's and the critic's gradient, all read at once: the only time that a step
  // waits for the device.
  [[nodiscard]] detail::LearnedNumbers read() const {
    const std::int64_t policy = policy_size();
    const Tensor norms = torch::stack(
        {gradient.narrow(0, 0, policy).norm(), gradient.narrow(0, policy, gradient.size(0) - policy).norm()});
    const Tensor read = torch::cat({told.detach(), norms}).to(torch::kCPU, torch::kFloat64);
    const double* const values = read.data_ptr<double>();
    return {.policy_loss = values[policy_loss],
            .value_loss = values[value_loss],
            .entropy = values[entropy],
            .start_kl = values[start_kl],
            .kl = values[kl],
            .clip_fraction = values[clip_fraction],
            .gradient_norm = values[told_count],
            .critic_gradient_norm = values[told_count + 1]};
  }

  // One step of Adam of `count` parameters, with their gradient clipped to `most`.
  void descend(std::int64_t begin, std::int64_t count, double norm, double most, std::int64_t step_number,
               double learning_rate) {
    constexpr double beta1 = detail::adam_beta1;
    constexpr double beta2 = detail::adam_beta2;
    const Tensor own = gradient.narrow(0, begin, count);
    const Tensor clipped = norm > most ? own * (most / norm) : own;
    const Tensor mean = first.narrow(0, begin, count);
    const Tensor square = second.narrow(0, begin, count);
    mean.mul_(beta1).add_(clipped, 1 - beta1);
    square.mul_(beta2).addcmul_(clipped, clipped, 1 - beta2);
    const double correction1 = 1 - std::pow(beta1, static_cast<double>(step_number));
    const double correction2 = 1 - std::pow(beta2, static_cast<double>(step_number));
    parameters.narrow(0, begin, count)
        .sub_(mean / correction1 / (torch::sqrt(square / correction2) + detail::adam_epsilon) * learning_rate);
  }

  [[nodiscard]] Tensor to_tensor(const std::vector<float>& values) const { return column_of(values, device); }

  [[nodiscard]] Tensor actions_of(const Minibatch& batch) const { return indices_of(batch.actions, device); }

  [[nodiscard]] Tensor critic_loss(const Tensor& value, const Minibatch& batch, const PpoOptions& options) const {
    const Tensor target = to_tensor(batch.value_target);
    const Tensor loss = torch::square(value - target);
    if (!options.clip_value) return 0.5 * loss.mean();
    const Tensor old = to_tensor(batch.old_value);
    const Tensor clipped = old + torch::clamp(value - old, -options.clip, options.clip);
    return 0.5 * torch::maximum(loss, torch::square(clipped - target)).mean();
  }

  // PPO's policy loss with what tells how far the policy has moved, from the logarithms of the actions' probabilities.
  void clipped_objective(const Tensor& log_probability, const Minibatch& batch, const PpoOptions& options,
                         Numbers& numbers) const {
    const Tensor log_ratio = log_probability - to_tensor(batch.old_log_probability);
    const Tensor ratio = torch::exp(log_ratio);
    const Tensor advantage = to_tensor(batch.advantage);
    const Tensor clipped = torch::clamp(ratio, 1 - options.clip, 1 + options.clip);
    numbers[policy_loss] = -torch::minimum(ratio * advantage, clipped * advantage).mean();
    numbers[kl] = ((ratio - 1) - log_ratio).mean();
    numbers[clip_fraction] = ((ratio - 1).abs() > options.clip).to(torch::kFloat32).mean();
  }
};

namespace {

// Masked logits stay what no action is drawn by.
Tensor tempered(const Tensor& logits, const PpoOptions& options) {
  return options.temperature == 1 ? logits : logits / options.temperature;
}

// The policy's KL divergence from the one that training began with, a mean over the states. `log_all`: of the choices'
// probabilities; unused by a network that steers.
Tensor divergence_from_start(const NetworkSpec& spec, const Tensor& start, const TorchNetwork& network,
                             const BatchTensors& batch, const Tensor& log_all, const PpoOptions& options) {
  const TorchNetwork from(spec, start);
  if (spec.steers()) return network.steering_divergence(batch, from).mean();
  const Tensor log_start = torch::log_softmax(tempered(from.logits(batch), options), 1);
  return (torch::exp(log_all) * (log_all - log_start)).sum(1).mean();
}

}  // namespace

TorchLearner::TorchLearner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchLearner::~TorchLearner() = default;

Result<std::unique_ptr<TorchLearner>> TorchLearner::create(const NetworkSpec& spec, const Normaliser& normaliser,
                                                           const std::string& device) {
  const bool has_cuda = torch::cuda::is_available();
  if (device == "cuda" && !has_cuda) return unexpected("device cuda: Torch sees no CUDA device");
  at::set_num_threads(1);  // more threads slow small networks down, and one gives the same bits everywhere
  use_one_blas_thread();
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
  return std::unique_ptr<TorchLearner>(new TorchLearner(std::move(impl)));
}

void TorchLearner::set_state(std::span<const float> parameters, const AdamState& adam) {
  const auto load = [&](std::span<const float> values) {
    Tensor tensor = torch::zeros({static_cast<std::int64_t>(parameters.size())}, torch::kFloat32);
    std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
    return tensor.to(impl_->device);
  };
  impl_->parameters = load(parameters).detach().requires_grad_(true);
  impl_->first = load(adam.first);
  impl_->second = load(adam.second);
  impl_->steps = adam.steps;
  impl_->policy_steps = adam.policy_steps;
  impl_->gradient = impl_->told = Tensor();
  impl_->half_gradients = {};
}

void TorchLearner::set_start(std::span<const float> parameters) {
  // Torch does not write through the pointer: it is cloned.
  impl_->start = torch::from_blob(const_cast<float*>(parameters.data()), {static_cast<std::int64_t>(parameters.size())},
                                  torch::kFloat32)
                     .clone()
                     .to(impl_->device);
}

namespace {
std::vector<float> copy_of(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(torch::kCPU).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}
}  // namespace

std::vector<float> TorchLearner::parameters() const { return copy_of(impl_->parameters); }
AdamState TorchLearner::adam() const {
  return {copy_of(impl_->first), copy_of(impl_->second), impl_->steps, impl_->policy_steps};
}
std::string TorchLearner::device() const { return impl_->device.str(); }

void TorchLearner::add(const Minibatch& part, std::size_t steps, std::uint32_t half, Lesson lesson,
                       const PpoOptions& options) {
  Impl& impl = *impl_;
  impl.lesson = lesson;
  const BatchTensors tensors = tensors_of(part.observation, impl.normaliser, impl.device);
  const TorchNetwork network(impl.spec, impl.parameters);
  Impl::Numbers numbers;
  numbers.fill(impl.zero());
  numbers[Impl::value_loss] = impl.critic_loss(network.values(tensors), part, options);
  Tensor total = options.value * numbers[Impl::value_loss];
  const auto stay_near_start = [&](const Tensor& log_all) {
    if (options.start_kl == 0) return;
    numbers[Impl::start_kl] = divergence_from_start(impl.spec, impl.start, network, tensors, log_all, options);
    total = total + options.start_kl * numbers[Impl::start_kl];
  };
  if (lesson == Lesson::improve && impl.spec.steers()) {
    numbers[Impl::entropy] = network.steering_entropy();
    const Tensor weights = rows_of(part.weights, network.steered(), impl.device);
    impl.clipped_objective(network.log_density(tensors, weights), part, options, numbers);
    stay_near_start({});
    total = total + numbers[Impl::policy_loss] - options.entropy * numbers[Impl::entropy];
  } else if (lesson != Lesson::critic) {
    const Tensor log_all = torch::log_softmax(tempered(network.logits(tensors), options), 1);
    const Tensor log_chosen = log_all.gather(1, impl.actions_of(part).unsqueeze(1)).squeeze(1);
    if (lesson == Lesson::imitate) {
      numbers[Impl::policy_loss] = -log_chosen.mean();
    } else {
      const Tensor choices = torch::clamp_min(tensors.allowed.sum(1), 2);
      numbers[Impl::entropy] = (-(torch::exp(log_all) * log_all).sum(1) / torch::log(choices)).mean();
      impl.clipped_objective(log_chosen, part, options, numbers);
      stay_near_start(log_all);
    }
    total = total + numbers[Impl::policy_loss] - options.entropy * numbers[Impl::entropy];
  }
  for (Tensor& number : numbers) number = number.detach();
  impl.add(total, numbers, static_cast<double>(part.actions.size()) / static_cast<double>(steps), half);
}

Result<UpdateReport> TorchLearner::step(const PpoOptions& options, double learning_rate) {
  Impl& impl = *impl_;
  const torch::NoGradGuard no_gradient;
  const auto report = detail::report_of(impl.read(), impl.lesson, options);
  if (report) {
    const std::int64_t policy = impl.policy_size();
    if (report->moved_policy) {
      impl.descend(0, policy, report->gradient_norm, options.max_gradient_norm, ++impl.policy_steps, learning_rate);
    }
    impl.descend(policy, impl.gradient.size(0) - policy, report->critic_gradient_norm, options.max_critic_gradient_norm,
                 ++impl.steps, learning_rate);
  }
  impl.gradient = impl.told = Tensor();
  return report;
}

double TorchLearner::take_gradient_cosine() {
  const torch::NoGradGuard no_gradient;
  const auto halves = std::exchange(impl_->half_gradients, {});
  if (!halves[0].defined() || !halves[1].defined()) return std::numeric_limits<double>::quiet_NaN();
  return (halves[0].dot(halves[1]) / (halves[0].norm() * halves[1].norm())).item<double>();
}

std::vector<float> TorchLearner::logits(const Observation& observation) const {
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

std::vector<float> TorchLearner::values(const Observation& observation) const {
  const torch::NoGradGuard no_gradient;
  return copy_of(
      TorchNetwork(impl_->spec, impl_->parameters).values(tensors_of(observation, impl_->normaliser, impl_->device)));
}

}  // namespace gpusched
