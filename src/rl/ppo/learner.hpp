// SPDX-License-Identifier: Apache-2.0
/// The learner: gradient steps of PPO or of imitation over the flat parameter vector of score_network.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/learn/observation.hpp"
#include "src/policies/learned/score_network.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {

/// Steps to learn from. `actions` index the state's part of Observation::mask.
struct Minibatch {
  Observation observation;
  std::vector<std::int64_t> actions;
  std::vector<float> weights;  ///< of a network that steers, instead: [steps x layout.steered]
  std::vector<float> old_log_probability;
  std::vector<float> advantage;     ///< normalised
  std::vector<float> value_target;  ///< in the critic's units
  std::vector<float> old_value;
};

/// What a step teaches.
enum class Lesson : std::uint8_t {
  improve,  ///< the policy by PPO's clipped objective, and the critic
  imitate,  ///< the policy by cross entropy to the actions, and the critic
  critic,   ///< the critic alone
};

/// What a step reports; means over its batch.
struct UpdateReport {
  double policy_loss = 0, value_loss = 0, entropy = 0;  ///< entropy over the logarithm of the number of choices
  double start_kl = 0;  ///< from the policy of set_start(); 0 unless PpoOptions::start_kl
  double kl = 0;        ///< approximate, as of before the step: mean of (r - 1) - log r (Schulman's k3)
  double clip_fraction = 0;
  double gradient_norm = 0;         ///< of the policy, before clipping
  double critic_gradient_norm = 0;  ///< before clipping
  bool moved_policy = false;        ///< not with Lesson::critic, nor when kl exceeds PpoOptions::kl_stop
};

/// Adam's memory (Kingma & Ba, 2015), in the order of the parameters.
struct AdamState {
  std::vector<float> first, second;
  std::int64_t steps = 0;         ///< of the critic
  std::int64_t policy_steps = 0;  ///< fewer: the critic is warmed up, and learns on when the policy stops
};

/// The parameters as they are trained. Deterministic on CPU: the same calls give the same bits.
class Learner {
 public:
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  virtual void set_state(std::span<const float> parameters, const AdamState& adam) = 0;
  /// The parameters of the policy that PpoOptions::start_kl keeps near. Precondition of Lesson::improve with it.
  virtual void set_start(std::span<const float> parameters) = 0;
  [[nodiscard]] virtual std::vector<float> parameters() const = 0;
  [[nodiscard]] virtual AdamState adam() const = 0;
  [[nodiscard]] virtual std::string device() const = 0;

  /// Adds the gradient of steps that are a part of a batch of `steps` steps: a batch of any size is learned from in
  /// parts that fit the memory. `half` (0 or 1) matters to take_gradient_cosine() alone. All parts of a batch have one
  /// lesson.
  virtual void add(const Minibatch& part, std::size_t steps, std::uint32_t half, Lesson lesson,
                   const PpoOptions& options) = 0;
  /// One step of Adam by what was added since the last one; policy and critic are clipped apart. Error: a loss or
  /// gradient that is not finite, by name; then nothing has changed.
  virtual Result<UpdateReport> step(const PpoOptions& options, double learning_rate) = 0;
  /// The cosine between the policy's gradients that were added to the two halves since the last call: how much of a
  /// gradient is signal. Not a number when a half has none.
  virtual double take_gradient_cosine() = 0;

  /// add() of a whole batch and step().
  Result<UpdateReport> improve(const Minibatch& batch, const PpoOptions& options, double learning_rate);
  Result<UpdateReport> imitate(const Minibatch& batch, const PpoOptions& options, double learning_rate);
};

/// FusedLearner where it learns the network (learns_on_lanes()) and the device is auto or cpu, else TorchLearner.
/// `device` is auto, cpu or cuda. Error: this build has no LibTorch, or cuda was asked for and is not there.
Result<std::unique_ptr<Learner>> make_learner(const NetworkSpec& spec, const Normaliser& normaliser,
                                              const std::string& device);

namespace detail {

/// Means over a batch, as a learner adds them up, and the norms of its gradient.
struct LearnedNumbers {
  double policy_loss = 0, value_loss = 0, entropy = 0, start_kl = 0, kl = 0, clip_fraction = 0;
  double gradient_norm = 0, critic_gradient_norm = 0;
};

/// What Learner::step() reports of them, and whether the policy is to move. Error: one is not finite, by name.
Result<UpdateReport> report_of(const LearnedNumbers& numbers, Lesson lesson, const PpoOptions& options);

/// Adam's constants, which every learner shares.
inline constexpr double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-5;

}  // namespace detail

}  // namespace gpusched
