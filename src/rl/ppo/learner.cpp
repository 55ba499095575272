// SPDX-License-Identifier: Apache-2.0
#include "src/rl/ppo/learner.hpp"

#include <cmath>

#include "src/policies/learned/lane_networks.hpp"
#include "src/rl/ppo/fused_learner.hpp"
#ifdef GPUSCHED_HAS_TORCH_LEARNER
#include "src/rl/ppo/torch_learner.hpp"
#endif

namespace gpusched {

Result<UpdateReport> Learner::improve(const Minibatch& batch, const PpoOptions& options, double learning_rate) {
  add(batch, batch.actions.size(), 0, Lesson::improve, options);
  return step(options, learning_rate);
}

Result<UpdateReport> Learner::imitate(const Minibatch& batch, const PpoOptions& options, double learning_rate) {
  add(batch, batch.actions.size(), 0, Lesson::imitate, options);
  return step(options, learning_rate);
}

Result<std::unique_ptr<Learner>> make_learner(const NetworkSpec& spec, const Normaliser& normaliser,
                                              const std::string& device) {
  if (device != "cuda" && learns_on_lanes(spec)) return std::unique_ptr<Learner>(new FusedLearner(spec, normaliser));
#ifdef GPUSCHED_HAS_TORCH_LEARNER
  auto learner = TorchLearner::create(spec, normaliser, device);
  if (!learner) return Unexpected{learner.error()};
  return std::unique_ptr<Learner>(*std::move(learner));
#else
  return unexpected("ppo: this build has no LibTorch, which this network or device needs");  // check_method() says more
#endif
}

namespace detail {

Result<UpdateReport> report_of(const LearnedNumbers& numbers, Lesson lesson, const PpoOptions& options) {
  const struct {
    double value;
    const char* name;
  } checks[] = {{numbers.policy_loss, lesson == Lesson::imitate ? "imitation loss" : "policy loss"},
                {numbers.value_loss, "value loss"},
                {numbers.entropy, "entropy"},
                {numbers.gradient_norm, "gradient"},
                {numbers.critic_gradient_norm, "gradient"}};
  for (const auto& [value, name] : checks) {
    if (!std::isfinite(value)) return unexpected(std::string("the ") + name + " is not a number");
  }
  UpdateReport report{.policy_loss = numbers.policy_loss,
                      .value_loss = numbers.value_loss,
                      .entropy = numbers.entropy,
                      .start_kl = numbers.start_kl,
                      .kl = numbers.kl,
                      .clip_fraction = numbers.clip_fraction,
                      .gradient_norm = numbers.gradient_norm,
                      .critic_gradient_norm = numbers.critic_gradient_norm};
  const bool too_far = options.kl_stop > 0 && report.kl > options.kl_stop;
  report.moved_policy = lesson != Lesson::critic && !too_far;
  return report;
}

}  // namespace detail

}  // namespace gpusched
