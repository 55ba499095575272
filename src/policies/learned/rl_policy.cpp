// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/rl_policy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/policies/learned/agenda_policy.hpp"
#include "src/policies/learned/lanes/lane_stack.hpp"
#include "src/policies/learned/shipped_models.hpp"
#include "src/policies/seam/policy_failure.hpp"

namespace gpusched {

std::uint32_t best_action(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

namespace {

// In memory that a thread keeps: rows of logits are short, and there is one for each choice.
const ActionDistribution& distribution_of(std::span<const float> logits) {
  thread_local ActionDistribution distribution;
  distribution.set(logits);
  return distribution;
}

}  // namespace

double log_probability(std::span<const float> logits, std::uint32_t action) {
  return distribution_of(logits).log_probability(action);
}

std::uint32_t sample_action(std::span<const float> logits, Rng& rng) { return distribution_of(logits).sample(rng); }

void ActionDistribution::set(std::span<const float> logits) {
  const std::size_t count = whole_lanes(logits.size());
  shifted_.resize(count);
  powers_.resize(count);
  std::fill(std::copy(logits.begin(), logits.end(), shifted_.begin()), shifted_.end(), masked_logit);
  sum_ = static_cast<double>(lane_kernels().softmax(shifted_.data(), powers_.data(), count).power);
}

double ActionDistribution::log_probability(std::uint32_t action) const {
  return static_cast<double>(shifted_[action]) - std::log(sum_);
}

std::uint32_t ActionDistribution::sample(Rng& rng) const {
  double left = rng.uniform() * sum_;
  const auto count = static_cast<std::uint32_t>(powers_.size());
  for (std::uint32_t action = 0; action < count; ++action) {
    left -= static_cast<double>(powers_[action]);
    if (left < 0) return action;  // never one without a power, which leaves `left` as it was
  }
  // Rounding may leave a rest: the last action that can be drawn takes it.
  std::uint32_t last = count - 1;
  while (last > 0 && powers_[last] == 0) --last;
  return last;
}

namespace {

bool has_several_gpu_types(const ClusterState& cluster) {
  for (std::uint32_t node = 1; node < cluster.node_count(); ++node) {
    if (cluster.node_gpu_type(NodeId{node}) != cluster.node_gpu_type(NodeId{0})) return true;
  }
  return false;
}

// All types would look equally fast, and the model would choose between them by nothing.
void check_speeds(const View& view) {
  if (!has_several_gpu_types(view.cluster())) return;
  for (std::uint32_t job = 0; job < view.job_count(); ++job) {
    if (!view.speeds(JobId{job}).empty()) return;
  }
  throw PolicyFailure(
      "was trained to choose GPU types by how fast jobs run there, of which this run tells nothing; "
      "add --throughputs or --profile");
}

void check_signals(const View& view) {
  if (view.knows_power()) return;
  throw PolicyFailure(
      "was trained to read carbon, prices and power caps, of which this run tells nothing; add --power");
}

}  // namespace

void RlPolicy::decide(const View& view, Decision& decision) {
  if (!std::exchange(began_, true)) {
    if (model_.agenda.node_speeds) check_speeds(view);
    if (model_.agenda.signals) check_signals(view);
  }
  agenda_.observe(view);
  const bool steers = model_.network.steers();
  while (agenda_.open(view, decision)) {
    if (steers && held_.is_over(view)) steer(view);
    see(view);
    forward_policy(model_.network, steers ? held_.parameters() : model_.parameters, model_.normaliser, observation_,
                   logits_);
    const auto pick = [&](std::span<const float> logits) {
      return sample_ && !steers ? sample_action(logits, rng_) : best_action(logits);
    };
    agenda_.act(logits_, pick, view, decision);
  }
}

void RlPolicy::see(const View& view) {
  agenda_.make_room(observation_);
  agenda_.encode(view, observation_.slot(0));
}

// All jobs are ranked by the new weights, not only those that are asked for.
void RlPolicy::steer(const View& view) {
  agenda_.change_hands(view);
  see(view);
  forward_steering(model_.network, model_.parameters, model_.normaliser, observation_, action_);
  if (sample_) draw_action(model_.network, model_.parameters, action_, rng_);
  held_.hold(model_.network, model_.parameters, action_, view);
}

namespace {

// "rl:runs/one" -> "runs/one".
std::string folder_of(const std::string& name) { return name.substr(name.find(':') + 1); }

// In mode preempt weights rank jobs; only where they are actions themselves (steering) is something drawn.
bool draws(const TrainedModel& model) { return model.agenda.mode != ActionMode::preempt || model.network.steers(); }

Result<AnyPolicy> make_trained(const std::string& name, bool sample, double draw_seed, const PolicyContext& context) {
  auto model = load_model(folder_of(name));
  if (!model) return Unexpected{model.error()};
  if (sample && !draws(*model)) {
    return unexpected("policy '" + name +
                      "', parameter 'sample': an agent of mode preempt that does not steer draws nothing");
  }
  if (auto done = check_limits(name, model->agenda.mode, context); !done) return Unexpected{done.error()};
  const bool oracle = model->agenda.knowledge == RuntimeKnowledge::oracle;
  const auto works = oracle ? context.jobs->works() : std::span<const Time>{};
  const std::uint64_t seed = Rng(context.seed).split(static_cast<std::uint64_t>(draw_seed)).state()[0];
  JobHistory history = JobHistory::of(context.past, model->agenda.mode == ActionMode::preempt);
  return AnyPolicy(RlPolicy(name, *std::move(model), works, sample, seed, std::move(history)));
}

}  // namespace

// The row of every `rl:DIR`; DIR is read when the policy is made.
PolicyInfo rl_policy_info() {
  return {.name = "rl:",
          .summary = "a scheduler trained by `gpusched train`, read from the folder behind rl:",
          .source = "this project's trainer; docs/train.md",
          .complexity = "O(waiting jobs x network) a choice; mode preempt: O(jobs that enter a level x network)",
          .parameters = {{.name = "sample",
                          .fallback = false,
                          .meaning = "draw actions from the policy's distribution instead of taking the likeliest"},
                         {.name = "seed",
                          .fallback = 0.0,
                          .meaning = "of the draws, beside the run's own seed",
                          .most = 1e15,
                          .is_count = true}},
          .make =
              [](const PolicyParameters& parameters, const PolicyContext& context) {
                return make_trained(context.spec_name, parameters.flag("sample"), parameters.number("seed"), context);
              },
          .preemptive = true,
          .agent = true,
          .knowledge =
              [](const PolicyParameters&, const std::string& name) {
                const auto model = load_model(folder_of(name));
                return model ? estimator_name(model->agenda.knowledge) : "";
              },
          .files =
              [](const PolicySpec& spec) {
                const std::string folder = folder_of(spec.name);
                return std::vector<std::string>{folder + "/model.json", folder + "/weights.bin"};
              },
          .asymmetries = {{Symmetry::time_scale, "networks read logarithms of seconds"}}};
}

// The row of `rl:builtin/NAME`.
PolicyInfo shipped_policy_info(const ShippedModel& shipped) {
  const std::string folder = std::string(builtin_model_prefix) + std::string(shipped.name);
  const std::size_t summary = shipped.card.find('\n');
  PolicyInfo row = rl_policy_info();
  row.name = "rl:" + folder;
  row.summary = shipped.card.substr(0, summary);
  row.source = shipped.card.substr(summary + 1);
  while (row.source.ends_with('\n')) row.source.pop_back();
  row.files = {};
  const auto model = load_model(folder);
  if (model && !draws(*model)) {
    row.parameters.clear();
    row.make = [](const PolicyParameters&, const PolicyContext& context) {
      return make_trained(context.spec_name, false, 0, context);
    };
  }
  return row;
}

}  // namespace gpusched
