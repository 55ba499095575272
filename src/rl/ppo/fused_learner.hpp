// SPDX-License-Identifier: Apache-2.0
/// The learner of small networks, without LibTorch: loss, gradient and Adam in one pass over blocks of tokens that fit
/// the caches, on the processor's vectors (lane_kernels.hpp). One thread; the same bits on every instruction set.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "src/policies/learned/lanes/lane_stack.hpp"
#include "src/rl/ppo/learner.hpp"

namespace gpusched {

class FusedLearner final : public Learner {
 public:
  /// Precondition: learns_on_lanes(spec).
  FusedLearner(const NetworkSpec& spec, const Normaliser& normaliser, const LaneKernels& kernels = lane_kernels());

  void set_state(std::span<const float> parameters, const AdamState& adam) override;
  void set_start(std::span<const float> parameters) override { start_.assign(parameters.begin(), parameters.end()); }
  [[nodiscard]] std::vector<float> parameters() const override { return parameters_; }
  [[nodiscard]] AdamState adam() const override { return adam_; }
  [[nodiscard]] std::string device() const override { return "cpu"; }
  void add(const Minibatch& part, std::size_t steps, std::uint32_t half, Lesson lesson,
           const PpoOptions& options) override;
  Result<UpdateReport> step(const PpoOptions& options, double learning_rate) override;
  double take_gradient_cosine() override;

 private:
  // The part of a batch that add() is at.
  struct Task {
    const Minibatch& part;
    Lesson lesson;
    const PpoOptions& options;
    double weight;  // of a step in the batch's means
    [[nodiscard]] bool penalised() const { return lesson == Lesson::improve && options.start_kl > 0; }
  };
  // Consecutive states whose tokens are columns of one sheet; a kernel network's have WAIT behind them.
  struct Block {
    std::uint32_t first = 0, end = 0;  // states
    std::size_t tokens = 0, columns = 0;
  };
  // A state's choice before and after the loss.
  struct Choice {
    std::uint32_t state;
    std::size_t begin;   // of its logits in Observation::mask
    std::size_t column;  // of its first token
    std::uint32_t tokens;
  };
  // A softmax over a choice's row: logits less the greatest, their exponentials, and the sums of these.
  struct Distribution {
    float *shifted, *powers;
    double power, log_power, weighted;
    [[nodiscard]] double log_probability(std::size_t i) const { return static_cast<double>(shifted[i]) - log_power; }
  };

  void learn_values(const Task& task);
  void learn_choices(const Task& task);
  void learn_block(const Task& task, const Block& block);
  void fill_inputs(const Observation& seen, const Block& block);
  void fill_index_terms(const Observation& seen, const Block& block, float* sheet);
  // Scores and the prior become logits, and these a softmax in the two buffers.
  Distribution distribution_of(const Task& task, const Block& block, const Choice& choice,
                               const std::vector<float>& parameters, const float* scores, LaneBuffer& row,
                               LaneBuffer& powers) const;
  // The gradient by the scores of a choice, written to `gradient`. `start`: what training began with, or null.
  void learn_choice(const Task& task, const Choice& choice, const Distribution& own, const Distribution* start,
                    float* gradient);
  // The logarithm of a number of choices.
  [[nodiscard]] double most_entropy(std::size_t choices);
  // Adds the gradient of the penalty by the logits over the temperature.
  void stay_near_start(const Task& task, const Choice& choice, const Distribution& own, const Distribution& start,
                       float* gradient);
  void learn_steering(const Task& task);
  // Notes the loss of a step of the policy and gives its derivative by the logarithm of the action's probability.
  double note_policy_loss(const Task& task, std::size_t step, double log_probability);

  // Of the network index.
  [[nodiscard]] float wait_score(const std::vector<float>& parameters, const Observation& seen,
                                 std::uint32_t state) const;
  [[nodiscard]] float global_of(const Observation& seen, std::uint32_t state, std::uint32_t feature) const;
  void descend(std::size_t begin, std::size_t count, double norm, double most, std::int64_t steps, double rate);

  NetworkSpec spec_;
  NetworkLayout layout_;
  Normaliser normaliser_;
  const LaneKernels* kernels_;
  LaneStack scorer_, critic_;
  std::vector<float> parameters_, start_;
  AdamState adam_;

  // Of the batch that is being added.
  Lesson lesson_ = Lesson::improve;
  detail::LearnedNumbers told_;
  std::vector<float> gradient_;
  std::array<std::vector<float>, 2> half_gradients_;  // the policy's, since take_gradient_cosine()

  // Of the part that is being added.
  LaneBuffer sums_;             // [parameters x lanes]
  std::vector<double> single_;  // [parameters]: what does not pass through sheets
  std::vector<float> own_gradient_;
  // Scratch.
  LaneBuffer score_gradient_, prior_, tokens_, row_, powers_, start_scores_, start_row_, start_powers_;
  std::vector<float> wait_gradient_;  // by the columns behind a block's tokens
  std::vector<float> critic_rows_;
  std::vector<double> most_entropies_;  // by number of choices, as far as it was asked
};

}  // namespace gpusched
