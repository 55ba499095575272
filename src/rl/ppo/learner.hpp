// SPDX-License-Identifier: Apache-2.0
/// The learner: one gradient step of PPO or of imitation on Torch, over the flat parameter vector of score_network.hpp.
/// No Torch type shows here, so that few files pay for its headers.
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
  std::vector<float> old_log_probability;
  std::vector<float> advantage;     ///< normalised
  std::vector<float> value_target;  ///< in the critic's units
  std::vector<float> old_value;
};

/// What an update reports; means over its minibatch.
struct UpdateReport {
  double policy_loss = 0, value_loss = 0, entropy = 0;  ///< entropy over the logarithm of the number of choices
  double kl = 0;                                        ///< approximate: mean of (r - 1) - log r (Schulman's k3)
  double clip_fraction = 0;
  double gradient_norm = 0;  ///< before clipping
};

/// Adam's memory (Kingma & Ba, 2015), in the order of the parameters.
struct AdamState {
  std::vector<float> first, second;
  std::int64_t steps = 0;
};

/// The parameters as they are trained, on a device. Deterministic on CPU: the same calls give the same bits.
class Learner {
 public:
  /// `device` is auto, cpu or cuda. Error: cuda was asked for and is not there.
  static Result<Learner> create(const NetworkSpec& spec, const Normaliser& normaliser, const std::string& device);
  Learner(Learner&&) noexcept;
  Learner& operator=(Learner&&) noexcept;
  ~Learner();

  void set_state(std::span<const float> parameters, const AdamState& adam);
  [[nodiscard]] std::vector<float> parameters() const;
  [[nodiscard]] AdamState adam() const;
  [[nodiscard]] std::string device() const;

  /// One step of PPO. Error: a loss or gradient that is not finite, by name; then nothing has changed.
  Result<UpdateReport> improve(const Minibatch& batch, const PpoOptions& options, double learning_rate);
  /// One step towards the actions (cross entropy), the critic learning along. Errors as improve().
  Result<UpdateReport> imitate(const Minibatch& batch, const PpoOptions& options, double learning_rate);

  /// Torch's own forward pass, to compare with forward_policy() and forward_critic().
  [[nodiscard]] std::vector<float> logits(const Observation& observation) const;
  [[nodiscard]] std::vector<float> values(const Observation& observation) const;

 private:
  struct Impl;
  explicit Learner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpusched
