// SPDX-License-Identifier: Apache-2.0
// The learners: what a step of them does; and Torch's network against the one that acts.
#include "src/rl/ppo/learner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <ostream>
#include <vector>

#include "src/policies/learned/rl_policy.hpp"
#include "src/rl/ppo/fused_learner.hpp"
#ifdef GPUSCHED_HAS_TORCH_LEARNER
#include "src/rl/ppo/torch_learner.hpp"
#endif
#include "src/rl/rollout.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

struct LearnerCase {
  NetworkKind kind;
  bool torch;  // else the fused learner
};
void PrintTo(const LearnerCase& of, std::ostream* out) { *out << name_of(network_kind_names, of.kind) << of.torch; }

class EveryNetwork : public testing::TestWithParam<LearnerCase> {
 protected:
  [[nodiscard]] static NetworkSpec spec() {
    return {.kind = GetParam().kind, .width = 16, .heads = 4, .critic_width = 16};
  }
  [[nodiscard]] static Normaliser normaliser() {
    const std::vector<Observation> seen{test::random_observation(20, 9)};
    return Normaliser::fit(seen);
  }
  [[nodiscard]] static std::unique_ptr<Learner> learner() {
#ifdef GPUSCHED_HAS_TORCH_LEARNER
    if (GetParam().torch) return *TorchLearner::create(spec(), normaliser(), "cpu");
#endif
    return std::make_unique<FusedLearner>(spec(), normaliser());
  }
  [[nodiscard]] static std::unique_ptr<Learner> learner_with(const std::vector<float>& parameters) {
    auto made = learner();
    made->set_state(parameters,
                    {.first = std::vector<float>(parameters.size()), .second = std::vector<float>(parameters.size())});
    return made;
  }
  // Nothing is clipped or stopped, so that Adam's memory after one step is a tenth of the gradient.
  [[nodiscard]] static PpoOptions unbounded() {
    PpoOptions options;
    options.kl_stop = 0;
    options.max_gradient_norm = options.max_critic_gradient_norm = 1e6;
    return options;
  }
  [[nodiscard]] static std::size_t policy_size() { return layout_of(spec()).policy_size; }
  [[nodiscard]] static std::vector<float> policy_of(const std::vector<float>& all) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(policy_size())};
  }
  [[nodiscard]] static std::vector<float> critic_of(const std::vector<float>& all) {
    return {all.begin() + static_cast<std::ptrdiff_t>(policy_size()), all.end()};
  }
  [[nodiscard]] static Minibatch minibatch() {
    Minibatch batch;
    batch.observation = test::random_observation(24, 4);
    for (int s = 0; s < 24; ++s) {
      batch.actions.push_back(s % 2);
      batch.old_log_probability.push_back(-1.0f);
      batch.advantage.push_back(s % 3 == 0 ? 1.0f : -0.5f);
      batch.value_target.push_back(0.1f * static_cast<float>(s));
      batch.old_value.push_back(0.0f);
    }
    return batch;
  }
};

// Short and long queues are padded in buckets of their own, which must show in nothing: the gradient of a minibatch is
// the mean of its halves', whatever buckets the other half makes.
TEST_P(EveryNetwork, TheGradientOfAMinibatchIsTheMeanOfItsHalves) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  Rng rng(3);
  const auto states_of = [&](std::initializer_list<std::uint32_t> sizes) {
    Minibatch batch;
    const std::vector<std::uint32_t> tokens(sizes);
    const auto count = static_cast<std::uint32_t>(tokens.size());
    batch.observation.shape(count, [&](std::uint32_t e) { return std::pair{tokens[e], 1 + e % 3}; });
    Observation& seen = batch.observation;
    for (auto* values : {&seen.jobs, &seen.prior, &seen.groups, &seen.global, &seen.privileged}) {
      for (float& value : *values) value = static_cast<float>(rng.normal());
    }
    std::fill(seen.mask.begin(), seen.mask.end(), std::uint8_t{1});
    for (std::uint32_t e = 0; e < count; ++e) {
      batch.actions.push_back(e % tokens[e]);
      batch.old_log_probability.push_back(-2.0f);
      batch.advantage.push_back(static_cast<float>(rng.normal()));
      batch.value_target.push_back(static_cast<float>(rng.normal()));
      batch.old_value.push_back(0.0f);
    }
    return batch;
  };
  const auto joined = [](const Minibatch& a, const Minibatch& b) {
    Minibatch all;
    for (std::uint32_t e = 0; e < a.actions.size(); ++e) {  // one of each in turn
      for (const Minibatch* from : {&a, &b}) {
        append_state(all.observation, from->observation, e);
        all.actions.push_back(from->actions[e]);
        all.old_log_probability.push_back(from->old_log_probability[e]);
        all.advantage.push_back(from->advantage[e]);
        all.value_target.push_back(from->value_target[e]);
        all.old_value.push_back(from->old_value[e]);
      }
    }
    return all;
  };
  const auto gradient = [&](const Minibatch& batch) {
    const auto learner = learner_with(parameters);
    EXPECT_TRUE(learner->improve(batch, unbounded(), 1e-3));
    return learner->adam().first;
  };
  const Minibatch few = states_of({1, 2, 8, 9, 12});
  const Minibatch many = states_of({70, 3, 13, 40, 16});
  const std::vector<float> of_few = gradient(few);
  const std::vector<float> of_many = gradient(many);
  const std::vector<float> of_both = gradient(joined(few, many));
  const auto in_parts = learner_with(parameters);
  in_parts->add(few, 10, 0, Lesson::improve, unbounded());
  in_parts->add(many, 10, 1, Lesson::improve, unbounded());
  ASSERT_TRUE(in_parts->step(unbounded(), 1e-3));
  for (std::size_t i = 0; i < of_both.size(); ++i) {
    const double mean = 0.5 * (static_cast<double>(of_few[i]) + static_cast<double>(of_many[i]));
    EXPECT_NEAR(of_both[i], mean, 1e-5 * std::max(1.0, std::fabs(mean))) << i;
    EXPECT_NEAR(in_parts->adam().first[i], mean, 1e-5 * std::max(1.0, std::fabs(mean))) << i;
  }
}

// The first step of Adam moves every parameter by the learning rate against its gradient's sign, so that a small one
// must lower the loss that it reports.
TEST_P(EveryNetwork, AStepLowersTheLoss) {
  const auto learner = learner_with(test::random_parameters(spec(), 7));
  PpoOptions options = unbounded();
  options.entropy = 0;
  const auto before = learner->improve(minibatch(), options, 1e-4);
  ASSERT_TRUE(before);
  const auto after = learner->improve(minibatch(), options, 1e-4);
  ASSERT_TRUE(after);
  EXPECT_LT(after->policy_loss + options.value * after->value_loss,
            before->policy_loss + options.value * before->value_loss);
  const auto imitated = learner->imitate(minibatch(), options, 1e-2);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(learner->imitate(minibatch(), options, 1e-2));
  EXPECT_LT(learner->imitate(minibatch(), options, 1e-2)->policy_loss, 0.9 * imitated->policy_loss);
}

// With one clip for both, a critic that is far off took the policy's step away.
TEST_P(EveryNetwork, TheCriticsGradientDoesNotClipThePolicys) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  PpoOptions options;
  options.kl_stop = 0;
  const auto policy_memory = [&](float target_factor) {
    Minibatch batch = minibatch();
    for (float& target : batch.value_target) target *= target_factor;
    const auto learner = learner_with(parameters);
    const auto report = learner->improve(batch, options, 1e-3);
    EXPECT_TRUE(report);
    EXPECT_GT(report->critic_gradient_norm,
              100 * options.max_critic_gradient_norm * (target_factor - 1) / target_factor);
    return policy_of(learner->adam().first);
  };
  EXPECT_EQ(policy_memory(1), policy_memory(1e5f));
}

TEST_P(EveryNetwork, APolicyThatHasMovedTooFarStaysWhileItsCriticLearns) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  const auto learner = learner_with(parameters);
  PpoOptions options = unbounded();
  const auto moved = learner->improve(minibatch(), options, 1e-3);
  ASSERT_TRUE(moved);
  EXPECT_TRUE(moved->moved_policy);
  ASSERT_GT(moved->kl, 1e-3);
  const std::vector<float> before = learner->parameters();
  EXPECT_NE(policy_of(before), policy_of(parameters));
  options.kl_stop = 1e-3;
  const auto stopped = learner->improve(minibatch(), options, 1e-3);
  ASSERT_TRUE(stopped);
  EXPECT_FALSE(stopped->moved_policy);
  EXPECT_EQ(policy_of(learner->parameters()), policy_of(before));
  EXPECT_NE(critic_of(learner->parameters()), critic_of(before));
  EXPECT_EQ(learner->adam().policy_steps, 1);
  EXPECT_EQ(learner->adam().steps, 2);
}

// Without anything else to learn, the policy goes back to where training began.
TEST_P(EveryNetwork, ThePenaltyLeadsBackToTheStart) {
  const std::vector<float> start = test::random_parameters(spec(), 7);
  std::vector<float> moved = start;
  Rng rng(5);
  for (std::size_t i = 0; i < policy_size(); ++i) moved[i] += static_cast<float>(0.2 * rng.normal());
  const auto learner = learner_with(moved);
  learner->set_start(start);
  PpoOptions options = unbounded();
  options.entropy = 0;
  options.start_kl = 1;
  options.temperature = 2;
  Minibatch batch = minibatch();
  batch.advantage.assign(batch.advantage.size(), 0.0f);
  // Worked out from what acts: the mean over states of sum p log(p / p of the start), at this temperature.
  const auto probabilities = [&](const std::vector<float>& parameters) {
    std::vector<float> logits;
    forward_policy(spec(), parameters, normaliser(), batch.observation, logits);
    for (float& logit : logits) logit = logit > masked_logit ? logit / 2 : logit;
    return logits;
  };
  const std::vector<float> of_start = probabilities(start);
  const std::vector<float> of_moved = probabilities(moved);
  double expected = 0;
  for (std::uint32_t s = 0; s < 24; ++s) {
    const std::size_t begin = batch.observation.job_begin[s] + s;
    const std::size_t count = batch.observation.tokens(s) + 1;
    const auto p = std::span(of_moved).subspan(begin, count);
    const auto q = std::span(of_start).subspan(begin, count);
    for (std::uint32_t a = 0; a < count; ++a) {
      if (p[a] <= masked_logit) continue;
      expected += std::exp(log_probability(p, a)) * (log_probability(p, a) - log_probability(q, a)) / 24;
    }
  }
  const auto first = learner->improve(batch, options, 3e-3);
  ASSERT_TRUE(first);
  EXPECT_NEAR(first->start_kl, expected, 1e-4 * std::max(0.01, expected));
  Result<UpdateReport> last = first;
  for (int step = 0; step < 100; ++step) last = learner->improve(batch, options, 3e-3);
  ASSERT_TRUE(last);
  EXPECT_LT(last->start_kl, 0.3 * first->start_kl);
}

// Logits of a higher temperature: those of a network whose last layer and prior are so much smaller.
TEST_P(EveryNetwork, ATemperatureDividesTheLogits) {
  const NetworkLayout layout = layout_of(spec());
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  std::vector<float> cooler = parameters;
  cooler[layout.alpha] /= 2;
  for (const DenseLayer& layer : {layout.score2, layout.wait}) {
    for (std::size_t i = layer.offset; i < layer.end(); ++i) cooler[i] /= 2;
  }
  PpoOptions options = unbounded();
  const auto plain = learner_with(cooler)->improve(minibatch(), options, 1e-3);
  options.temperature = 2;
  const auto tempered = learner_with(parameters)->improve(minibatch(), options, 1e-3);
  ASSERT_TRUE(plain && tempered);
  EXPECT_NEAR(plain->policy_loss, tempered->policy_loss, 1e-5);
  EXPECT_NEAR(plain->kl, tempered->kl, 1e-4);
  EXPECT_NEAR(plain->entropy, tempered->entropy, 1e-5);
}

// 1 for halves that say the same, -1 for halves that say the opposite.
TEST_P(EveryNetwork, TheGradientCosineComparesTheHalves) {
  const auto learner = learner_with(test::random_parameters(spec(), 7));
  PpoOptions options = unbounded();
  options.entropy = 0;
  options.clip = 1;  // the objective is linear in the advantage where no ratio leaves 0 to 2
  Minibatch batch = minibatch();
  batch.old_log_probability.assign(batch.actions.size(), 0.0f);
  Minibatch opposite = batch;
  for (float& advantage : opposite.advantage) advantage = -advantage;
  const auto cosine = [&](const Minibatch& a, const Minibatch& b) {
    learner->add(a, 48, 0, Lesson::improve, options);
    learner->add(b, 48, 1, Lesson::improve, options);
    return learner->take_gradient_cosine();
  };
  EXPECT_NEAR(cosine(batch, batch), 1, 1e-5);
  EXPECT_NEAR(cosine(batch, opposite), -1, 1e-5);
  learner->add(batch, 24, 0, Lesson::improve, options);
  EXPECT_TRUE(std::isnan(learner->take_gradient_cosine()));
}

TEST_P(EveryNetwork, ALossThatIsNoNumberChangesNothing) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  const auto learner = learner_with(parameters);
  Minibatch batch = minibatch();
  batch.advantage[3] = std::numeric_limits<float>::quiet_NaN();
  auto result = learner->improve(batch, {}, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "the policy loss is not a number");
  batch = minibatch();
  batch.value_target[3] = std::numeric_limits<float>::infinity();
  result = learner->improve(batch, {}, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "the value loss is not a number");
  EXPECT_EQ(learner->parameters(), parameters);
  EXPECT_EQ(learner->adam().steps, 0);
}

#ifdef GPUSCHED_HAS_TORCH_LEARNER
using TorchNetworks = EveryNetwork;

TEST_P(TorchNetworks, TorchAndEigenAgree) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  const auto learner = TorchLearner::create(spec(), normaliser(), "cpu");
  ASSERT_TRUE(learner);
  (*learner)->set_state(parameters, {.first = parameters, .second = parameters});
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Observation seen = test::random_observation(8, seed);
    std::vector<float> logits, values;
    forward_policy(spec(), parameters, normaliser(), seen, logits);
    forward_critic(spec(), parameters, normaliser(), seen, values);
    const std::vector<float> torch_logits = (*learner)->logits(seen);
    const std::vector<float> torch_values = (*learner)->values(seen);
    ASSERT_EQ(logits.size(), torch_logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(logits[i], torch_logits[i], 1e-5 * std::max(1.0f, std::fabs(logits[i])));
      EXPECT_EQ(logits[i] == masked_logit, seen.mask[i] == 0);
    }
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], torch_values[i], 1e-5);
  }
}

// The same parameters and steps, three times over: what the device makes of them is what the CPU does.
TEST_P(TorchNetworks, AFixedUpdateOnTheGpuIsTheCpus) {
  auto on_device = TorchLearner::create(spec(), normaliser(), "cuda");
  if (!on_device) GTEST_SKIP() << on_device.error().to_string();
  EXPECT_EQ((*on_device)->device().substr(0, 4), "cuda");
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  const std::vector<float> zeros(parameters.size());
  (*on_device)->set_state(parameters, {.first = zeros, .second = zeros});
  const auto on_cpu = learner_with(parameters);
  const Minibatch batch = minibatch();
  constexpr double rate = 1e-3;
  for (int step = 0; step < 3; ++step) {
    const auto cpu = on_cpu->improve(batch, unbounded(), rate);
    const auto gpu = (*on_device)->improve(batch, unbounded(), rate);
    ASSERT_TRUE(cpu && gpu);
    EXPECT_NEAR(cpu->policy_loss, gpu->policy_loss, 1e-5);
    EXPECT_NEAR(cpu->value_loss, gpu->value_loss, 1e-5 * std::max(1.0, cpu->value_loss));
    EXPECT_NEAR(cpu->gradient_norm, gpu->gradient_norm, 1e-4 * cpu->gradient_norm);
  }
  const std::vector<float> cpu = on_cpu->parameters();
  const std::vector<float> gpu = (*on_device)->parameters();
  double largest = 0;
  for (std::size_t i = 0; i < cpu.size(); ++i) largest = std::max<double>(largest, std::fabs(cpu[i] - gpu[i]));
  // Three steps of Adam move a parameter by up to 3 rates: agreement to a hundredth of that.
  EXPECT_LE(largest, 0.03 * rate);
  std::printf("largest difference of a parameter: %.3g after moves of up to %.3g\n", largest, 3 * rate);
}

#endif

std::string name_of_case(const testing::TestParamInfo<LearnerCase>& test) {
  std::string name(name_of(network_kind_names, test.param.kind));
  std::replace(name.begin(), name.end(), '@', '_');
  return name + (test.param.torch ? "_torch" : "_fused");
}

INSTANTIATE_TEST_SUITE_P(Fused, EveryNetwork,
                         testing::Values(LearnerCase{NetworkKind::kernel, false},
                                         LearnerCase{NetworkKind::sc20_kernel, false},
                                         LearnerCase{NetworkKind::index, false}),
                         name_of_case);
#ifdef GPUSCHED_HAS_TORCH_LEARNER
const auto on_torch = testing::Values(LearnerCase{NetworkKind::kernel, true}, LearnerCase{NetworkKind::deepsets, true},
                                      LearnerCase{NetworkKind::attention, true}, LearnerCase{NetworkKind::index, true},
                                      LearnerCase{NetworkKind::sc20_kernel, true});
INSTANTIATE_TEST_SUITE_P(Torch, EveryNetwork, on_torch, name_of_case);
INSTANTIATE_TEST_SUITE_P(Torch, TorchNetworks, on_torch, name_of_case);
#endif

// A network that steers: 26 weights are its action.
class SteeringLearner : public testing::Test {
 protected:
  static constexpr NetworkSpec spec_{
      .kind = NetworkKind::index, .width = 8, .heads = 2, .critic_width = 8, .hold_jobs = 10};
  [[nodiscard]] static Minibatch minibatch(float advantage) {
    Minibatch batch;
    batch.observation = test::random_observation(6, 4);
    const std::size_t steered = layout_of(spec_).steered;
    Rng rng(5);
    for (int s = 0; s < 6; ++s) {
      batch.actions.push_back(0);
      for (std::size_t i = 0; i < steered; ++i) batch.weights.push_back(static_cast<float>(0.4 * rng.normal()));
      batch.old_log_probability.push_back(-10.0f);
      batch.advantage.push_back(advantage);
      batch.value_target.push_back(0.0f);
      batch.old_value.push_back(0.0f);
    }
    return batch;
  }
  // Against a sum over all weights of the divergence between two normal distributions, from what acts.
  static void expect_divergence(Learner& learner) {
    const NetworkLayout layout = layout_of(spec_);
    const std::vector<float> start = test::random_parameters(spec_, 3);
    const std::vector<float> now = test::random_parameters(spec_, 7);
    const std::vector<float> zeros(now.size());
    learner.set_state(now, {.first = zeros, .second = zeros});
    learner.set_start(start);
    PpoOptions options;
    options.start_kl = 0.5;
    const Minibatch batch = minibatch(0);
    std::vector<float> mean_start, mean_now;
    forward_steering(spec_, start, {}, batch.observation, mean_start);
    forward_steering(spec_, now, {}, batch.observation, mean_now);
    double expected = 0;
    for (std::size_t i = 0; i < mean_now.size(); ++i) {
      const std::size_t at = layout.log_deviation + i % layout.steered;
      const double s0 = std::exp(start[at]);
      const double s1 = std::exp(now[at]);
      const double moved = mean_now[i] - mean_start[i];
      expected += std::log(s0 / s1) + (s1 * s1 + moved * moved) / (2 * s0 * s0) - 0.5;
    }
    expected /= 6;
    const auto report = learner.improve(batch, options, 1e-9);
    ASSERT_TRUE(report);
    EXPECT_NEAR(report->start_kl, expected, 1e-4 * expected);
  }
};

TEST_F(SteeringLearner, ItsDivergenceFromTheStartIsThatOfItsWeights) {
  FusedLearner learner(spec_, {});
  expect_divergence(learner);
}

#ifdef GPUSCHED_HAS_TORCH_LEARNER
TEST_F(SteeringLearner, ItsDivergenceOnTorchIsThatOfItsWeights) {
  const auto learner = TorchLearner::create(spec_, {}, "cpu");
  ASSERT_TRUE(learner);
  expect_divergence(**learner);
}
#endif

}  // namespace
}  // namespace gpusched
