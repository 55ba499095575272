// SPDX-License-Identifier: Apache-2.0
/// A trained scheduler as a policy: `--policy rl:DIR`. Needs no Torch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/learn/agenda.hpp"
#include "src/policies/learned/held_action.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Chooses, at every instant, the action of the greatest logit until it waits or nothing is left to choose; or draws
/// from the policy's distribution. In mode preempt the logits rank the jobs. A model that steers sets the weights of
/// its index anew after each NetworkSpec::hold_s or hold_jobs. O(waiting jobs x network) a choice. A model of
/// AgendaOptions::node_speeds throws PolicyFailure where nothing tells how fast jobs run on the cluster's GPU types.
class RlPolicy {
 public:
  /// `true_runs`: JobTable::works() for a model that was trained with RuntimeKnowledge::oracle, else unused. `history`:
  /// as Agenda.
  RlPolicy(std::string name, TrainedModel model, std::span<const Time> true_runs, bool sample, std::uint64_t seed,
           JobHistory history = {})
      : name_(std::move(name)),
        model_(std::move(model)),
        agenda_(model_.agenda, true_runs, std::move(history)),
        sample_(sample),
        rng_(Rng(seed).split("rl policy")) {}

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool clairvoyant() const { return model_.agenda.clairvoyant(); }

  void decide(const View& view, Decision& decision);

 private:
  void see(const View& view);
  void steer(const View& view);

  std::string name_;
  TrainedModel model_;
  Agenda agenda_;
  bool sample_;
  Rng rng_;
  bool began_ = false;
  Observation observation_;
  std::vector<float> logits_;
  HeldAction held_;  // of a model that steers
  std::vector<float> action_;
};

/// softmax(logits), worked out once.
class ActionDistribution {
 public:
  /// Precondition: one logit is not masked.
  void set(std::span<const float> logits);
  /// Natural logarithm of the probability of `action`.
  [[nodiscard]] double log_probability(std::uint32_t action) const;
  /// Never a masked action.
  std::uint32_t sample(Rng& rng) const;

 private:
  std::vector<float> shifted_, powers_;  // logit - greatest; exp() of that, 0 behind the last action
  double sum_ = 1;                       // of powers_
};

/// An action drawn from softmax(logits); masked ones are never drawn. Precondition: one is not masked.
std::uint32_t sample_action(std::span<const float> logits, Rng& rng);
/// The first action of the greatest logit.
std::uint32_t best_action(std::span<const float> logits);
/// Natural logarithm of the probability of `action`.
double log_probability(std::span<const float> logits, std::uint32_t action);

}  // namespace gpusched
