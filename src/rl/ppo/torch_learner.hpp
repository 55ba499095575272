// SPDX-License-Identifier: Apache-2.0
/// The learner on LibTorch: every network, on the CPU or a CUDA device. No Torch type shows here, so that few files pay
/// for its headers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/rl/ppo/learner.hpp"

namespace gpusched {

class TorchLearner final : public Learner {
 public:
  /// `device` is auto, cpu or cuda. Error: cuda was asked for and is not there.
  static Result<std::unique_ptr<TorchLearner>> create(const NetworkSpec& spec, const Normaliser& normaliser,
                                                      const std::string& device);
  ~TorchLearner() override;

  void set_state(std::span<const float> parameters, const AdamState& adam) override;
  void set_start(std::span<const float> parameters) override;
  [[nodiscard]] std::vector<float> parameters() const override;
  [[nodiscard]] AdamState adam() const override;
  [[nodiscard]] std::string device() const override;
  void add(const Minibatch& part, std::size_t steps, std::uint32_t half, Lesson lesson,
           const PpoOptions& options) override;
  Result<UpdateReport> step(const PpoOptions& options, double learning_rate) override;
  double take_gradient_cosine() override;

  /// Torch's own forward pass, to compare with forward_policy() and forward_critic().
  [[nodiscard]] std::vector<float> logits(const Observation& observation) const;
  [[nodiscard]] std::vector<float> values(const Observation& observation) const;

 private:
  struct Impl;
  explicit TorchLearner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpusched
