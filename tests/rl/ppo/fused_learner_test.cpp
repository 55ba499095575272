// SPDX-License-Identifier: Apache-2.0
// The fused learner: loss, gradients and steps as Torch has them, and the same bits from every instruction set.
#include "src/rl/ppo/fused_learner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#ifdef GPUSCHED_HAS_TORCH_LEARNER
#include "src/rl/ppo/torch_learner.hpp"
#endif
#include "src/rl/rollout.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

struct FusedCase {
  const char* name;
  NetworkSpec spec;
};
void PrintTo(const FusedCase& of, std::ostream* out) { *out << of.name; }

const FusedCase fused_cases[] = {
    {"kernel", {.kind = NetworkKind::kernel}},
    {"kernel_sc20", {.kind = NetworkKind::sc20_kernel}},
    {"kernel_narrow_critic", {.kind = NetworkKind::kernel, .critic_width = 7}},
    {"index", {.kind = NetworkKind::index}},
    {"steered_index", {.kind = NetworkKind::index, .width = 10, .heads = 1, .hold_s = 60}},
    {"steered_by_jobs", {.kind = NetworkKind::index, .width = 8, .heads = 2, .hold_jobs = 10}},
    {"steered_rank", {.kind = NetworkKind::rank, .width = 16, .hold_s = 60}},
};

class Fused : public testing::TestWithParam<FusedCase> {
 protected:
  [[nodiscard]] static const NetworkSpec& spec() { return GetParam().spec; }
  [[nodiscard]] static NetworkLayout layout() { return layout_of(spec()); }
  [[nodiscard]] static Normaliser normaliser() {
    const std::vector<Observation> seen{test::random_observation(20, 9)};
    return Normaliser::fit(seen);
  }
  [[nodiscard]] static AdamState no_memory() {
    const std::vector<float> zeros(layout().size);
    return {.first = zeros, .second = zeros};
  }
  // States of 2 to 12 tokens and, at times, one of 300, which no block of others has room for.
  [[nodiscard]] static Minibatch minibatch(std::uint32_t states, std::uint64_t seed) {
    Rng rng = Rng(seed).split("minibatch");
    Minibatch batch;
    for (std::uint32_t s = 0; s < states; ++s) {
      Observation one = test::random_observation(1, seed * 1000 + s);
      if (s % 29 == 28) one = long_queue(rng);
      append_state(batch.observation, one, 0);
      std::uint32_t action = 0;
      do action = static_cast<std::uint32_t>(rng.below(one.mask.size()));
      while (one.mask[action] == 0);
      batch.actions.push_back(action);
      for (std::size_t w = 0; w < layout().steered; ++w) batch.weights.push_back(static_cast<float>(rng.normal()));
      batch.old_log_probability.push_back(static_cast<float>(rng.uniform() * -3 - (layout().steered > 0 ? 30 : 0)));
      batch.advantage.push_back(static_cast<float>(rng.normal()));
      batch.value_target.push_back(static_cast<float>(rng.normal()));
      batch.old_value.push_back(static_cast<float>(0.5 * rng.normal()));
    }
    return batch;
  }
  [[nodiscard]] static Observation long_queue(Rng& rng) {
    Observation seen;
    seen.shape(1, [](std::uint32_t) { return std::pair{300u, 2u}; });
    for (auto* values : {&seen.jobs, &seen.prior, &seen.groups, &seen.global, &seen.privileged}) {
      for (float& value : *values) value = static_cast<float>(rng.normal());
    }
    for (std::uint8_t& mask : seen.mask) mask = rng.below(2) == 0 ? 1 : 0;
    seen.mask.front() = 1;
    return seen;
  }
};

// What each of these makes of a step of the learner.
struct Update {
  const char* name;
  Lesson lesson = Lesson::improve;
  PpoOptions options = {};
};
PpoOptions with(void (*change)(PpoOptions&)) {
  PpoOptions options;
  options.kl_stop = 0;
  change(options);
  return options;
}
std::vector<Update> updates(const NetworkSpec& spec) {
  std::vector<Update> all{{"plain", Lesson::improve, with([](PpoOptions&) {})},
                          {"no clips", Lesson::improve,
                           with([](PpoOptions& o) { o.max_gradient_norm = o.max_critic_gradient_norm = 1e9; })},
                          {"entropy", Lesson::improve, with([](PpoOptions& o) { o.entropy = 1; })},
                          {"clipped values", Lesson::improve, with([](PpoOptions& o) { o.clip_value = true; })},
                          {"penalty", Lesson::improve, with([](PpoOptions& o) { o.start_kl = 2; })},
                          {"critic", Lesson::critic, with([](PpoOptions& o) { o.start_kl = 2; })}};
  if (spec.steers()) return all;
  all.push_back({"imitation", Lesson::imitate, with([](PpoOptions&) {})});
  all.push_back({"warm imitation", Lesson::imitate, with([](PpoOptions& o) {
                   o.temperature = 2.5;
                   o.start_kl = 2;
                 })});
  all.push_back({"cool", Lesson::improve, with([](PpoOptions& o) {
                   o.temperature = 0.7;
                   o.entropy = 0.3;
                 })});
  all.push_back({"warm, with a penalty", Lesson::improve, with([](PpoOptions& o) {
                   o.temperature = 2.5;
                   o.start_kl = 0.4;
                 })});
  return all;
}

#ifdef GPUSCHED_HAS_TORCH_LEARNER

// The largest difference as a share of the largest value.
double distance(const std::vector<float>& a, const std::vector<float>& b, std::size_t begin, std::size_t end) {
  double largest = 0, difference = 0;
  for (std::size_t i = begin; i < end; ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
    difference = std::max(difference, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest > 0 ? difference / largest : difference;
}

void expect_same(const UpdateReport& own, const UpdateReport& torch) {
  const auto near = [](double a, double b, const char* what) {
    EXPECT_NEAR(a, b, 1e-5 * std::max(1.0, std::fabs(b))) << what;
  };
  near(own.policy_loss, torch.policy_loss, "policy loss");
  near(own.value_loss, torch.value_loss, "value loss");
  near(own.entropy, torch.entropy, "entropy");
  near(own.start_kl, torch.start_kl, "kl from the start");
  near(own.kl, torch.kl, "kl");
  EXPECT_NEAR(own.clip_fraction, torch.clip_fraction, 1e-6);
  near(own.gradient_norm, torch.gradient_norm, "gradient norm");
  near(own.critic_gradient_norm, torch.critic_gradient_norm, "critic gradient norm");
  EXPECT_EQ(own.moved_policy, torch.moved_policy);
}

// Adam's first memory after one step without clips is a tenth of the gradient.
TEST_P(Fused, LossAndGradientsAreTorchs) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<float> parameters = test::random_parameters(spec(), seed);
    const std::vector<float> start = test::random_parameters(spec(), seed + 100);
    for (const Update& update : updates(spec())) {
      SCOPED_TRACE(update.name);
      FusedLearner own(spec(), normaliser());
      const auto torch = TorchLearner::create(spec(), normaliser(), "cpu");
      ASSERT_TRUE(torch);
      own.set_state(parameters, no_memory());
      (*torch)->set_state(parameters, no_memory());
      const Minibatch batch = minibatch(64, seed);
      for (Learner* const learner : {static_cast<Learner*>(&own), static_cast<Learner*>(torch->get())}) {
        learner->set_start(start);
        learner->add(batch, batch.actions.size(), 0, update.lesson, update.options);
      }
      const auto of_own = own.step(update.options, 1e-3);
      const auto of_torch = (*torch)->step(update.options, 1e-3);
      ASSERT_TRUE(of_own) << of_own.error().to_string();
      ASSERT_TRUE(of_torch);
      expect_same(*of_own, *of_torch);
      const AdamState memory = own.adam();
      const AdamState expected = (*torch)->adam();
      const std::size_t policy = layout().policy_size;
      EXPECT_LE(distance(memory.first, expected.first, 0, policy), 1e-5);
      EXPECT_LE(distance(memory.first, expected.first, policy, layout().size), 1e-5);
      EXPECT_EQ(memory.steps, expected.steps);
      EXPECT_EQ(memory.policy_steps, expected.policy_steps);
      // Each layer for itself, so that a large one hides no other.
      for (const DenseLayer& layer :
           {layout().encode1, layout().encode2, layout().score1, layout().score2, layout().wait, layout().steer1,
            layout().steer2, layout().critic1, layout().critic2, layout().critic3}) {
        if (layer.outputs == 0) continue;
        EXPECT_LE(distance(memory.first, expected.first, layer.offset, layer.end()), 2e-5) << layer.offset;
      }
      EXPECT_LE(distance(memory.first, expected.first, 0, 1), 1e-3) << "alpha, whose terms may cancel";
    }
  }
}

// A whole update: epochs of minibatches in pieces, of which the first keeps the halves apart.
TEST_P(Fused, AWholeUpdateIsTorchs) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  FusedLearner own(spec(), normaliser());
  const auto torch = TorchLearner::create(spec(), normaliser(), "cpu");
  ASSERT_TRUE(torch);
  own.set_state(parameters, no_memory());
  (*torch)->set_state(parameters, no_memory());
  const PpoOptions options = with([](PpoOptions&) {});
  constexpr double rate = 1e-3;
  constexpr int epochs = 2, minibatches = 4;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint64_t m = 0; m < minibatches; ++m) {
      const Minibatch parts[] = {minibatch(40, 10 + m), minibatch(24, 20 + m)};
      for (Learner* const learner : {static_cast<Learner*>(&own), static_cast<Learner*>(torch->get())}) {
        learner->add(parts[0], 64, 0, Lesson::improve, options);
        learner->add(parts[1], 64, 1, Lesson::improve, options);
      }
      const auto of_own = own.step(options, rate);
      const auto of_torch = (*torch)->step(options, rate);
      ASSERT_TRUE(of_own && of_torch);
      EXPECT_NEAR(of_own->policy_loss, of_torch->policy_loss, 1e-4 * std::max(1.0, std::fabs(of_torch->policy_loss)));
      EXPECT_NEAR(of_own->value_loss, of_torch->value_loss, 1e-4 * std::max(1.0, of_torch->value_loss));
    }
    const double cosine = (*torch)->take_gradient_cosine();
    EXPECT_NEAR(own.take_gradient_cosine(), cosine, 1e-4);
  }
  // Steps of Adam move a parameter by up to a rate each: agreement to a hundredth of one step.
  const std::vector<float> after = own.parameters();
  const std::vector<float> expected = (*torch)->parameters();
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], expected[i], 0.01 * rate) << i;
}

#endif

// What an update leaves: the parameters and Adam's memory.
std::vector<float> bits_after(FusedLearner& learner) {
  std::vector<float> all = learner.parameters();
  const AdamState adam = learner.adam();
  all.insert(all.end(), adam.first.begin(), adam.first.end());
  all.insert(all.end(), adam.second.begin(), adam.second.end());
  return all;
}

TEST_P(Fused, EveryInstructionSetGivesTheSameBits) {
  const std::vector<float> parameters = test::random_parameters(spec(), 7);
  std::vector<float> expected;
  int sets = 0;
  for (std::size_t number = 0; number < most_lane_sets; ++number) {
    const LaneKernels* const kernels = lane_kernels_of(number);
    if (kernels == nullptr) continue;
    FusedLearner learner(spec(), normaliser(), *kernels);
    learner.set_state(parameters, no_memory());
    learner.set_start(test::random_parameters(spec(), 8));
    const PpoOptions options = with([](PpoOptions& o) {
      o.entropy = 0.1;
      o.start_kl = 0.2;
      o.temperature = 0.9;
    });
    for (std::uint64_t m = 0; m < 3; ++m) ASSERT_TRUE(learner.improve(minibatch(70, m), options, 1e-3));
    const std::vector<float> bits = bits_after(learner);
    if (++sets == 1) expected = bits;
    EXPECT_EQ(bits, expected) << "instruction set " << number;
  }
  std::printf("%d instruction sets\n", sets);
}

INSTANTIATE_TEST_SUITE_P(Learner, Fused, testing::ValuesIn(fused_cases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace gpusched
