// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/rl_policy.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"
#include "src/policies/learned/shipped_models.hpp"

namespace gpusched {

std::uint32_t best_action(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

namespace {

double log_sum_exp(std::span<const float> logits) {
  const double greatest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) {
    if (logit > masked_logit) sum += std::exp(static_cast<double>(logit) - greatest);
  }
  return greatest + std::log(sum);
}

}  // namespace

double log_probability(std::span<const float> logits, std::uint32_t action) {
  return static_cast<double>(logits[action]) - log_sum_exp(logits);
}

std::uint32_t sample_action(std::span<const float> logits, Rng& rng) {
  const double total = log_sum_exp(logits);
  double left = rng.uniform();
  std::uint32_t last = best_action(logits);
  for (std::uint32_t action = 0; action < logits.size(); ++action) {
    if (logits[action] <= masked_logit) continue;
    left -= std::exp(static_cast<double>(logits[action]) - total);
    last = action;
    if (left < 0) break;
  }
  return last;  // rounding may leave a rest: the last allowed action takes it
}

void RlPolicy::decide(const View& view, Decision& decision) {
  agenda_.observe(view);
  const bool steers = model_.network.hold_s > 0;
  while (agenda_.open(view, decision)) {
    if (steers && held_.is_over(view.now())) steer(view);
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
  observation_.shape(1, [&](std::uint32_t) { return std::pair{agenda_.size(), agenda_.group_count()}; });
  agenda_.encode(view, observation_.slot(0));
}

// All jobs are ranked by the new weights, not only those that are asked for.
void RlPolicy::steer(const View& view) {
  agenda_.change_hands(view);
  see(view);
  forward_steering(model_.network, model_.parameters, model_.normaliser, observation_, action_);
  if (sample_) draw_action(model_.network, model_.parameters, action_, rng_);
  held_.hold(model_.network, model_.parameters, action_, view.now());
}

namespace {

// "rl:runs/one" -> "runs/one".
std::string folder_of(const std::string& name) { return name.substr(name.find(':') + 1); }

// A row whose model `read` gives, from what the policy is called.
PolicyInfo trained_policy_info(std::function<Result<TrainedModel>(const std::string& name)> read) {
  return {.name = "",
          .summary = "",
          .source = "",
          .complexity = "O(waiting jobs x network) a choice; mode preempt: O(jobs that enter a level x network)",
          .parameters =
              {{.name = "sample",
                .fallback = false,
                .meaning = "draw actions from the policy's distribution instead of taking the likeliest"},
               {.name = "seed", .fallback = 0.0, .meaning = "of the draws, beside the run's own seed", .most = 1e15}},
          .make = [read = std::move(read)](const PolicyParameters& parameters,
                                           const PolicyContext& context) -> Result<AnyPolicy> {
            const std::string& name = context.spec_name;
            auto model = read(name);
            if (!model) return Unexpected{model.error()};
            if (model->agenda.mode == ActionMode::preempt && model->network.hold_s == 0 && parameters.flag("sample")) {
              return unexpected("policy '" + name +
                                "', parameter 'sample': an agent of mode preempt that does not steer draws nothing");
            }
            const bool oracle = model->agenda.knowledge == RuntimeKnowledge::oracle;
            const auto works = oracle ? context.jobs->works() : std::span<const Time>{};
            const std::uint64_t seed =
                Rng(context.seed).split(static_cast<std::uint64_t>(parameters.number("seed"))).state()[0];
            return AnyPolicy(RlPolicy(name, *std::move(model), works, parameters.flag("sample"), seed));
          },
          .preemptive = true,
          .agent = true};
}

}  // namespace

namespace {

constexpr std::string_view builtin = "builtin/";

Result<TrainedModel> load_named(const std::string& name) {
  const std::string folder = folder_of(name);
  if (!folder.starts_with(builtin) || std::filesystem::exists(folder)) return load_model(folder);
  std::vector<std::string> known;
  for (const ShippedModel& shipped : shipped_models()) known.emplace_back(shipped.name);
  const std::string wanted = folder.substr(builtin.size());
  return unexpected("policy '" + name + "': no model '" + wanted + "' comes with the program; expected one of " +
                    joined(known, "|") + suggest_nearest(wanted, known));
}

}  // namespace

// The row of every `rl:DIR`; DIR is read when the policy is made.
PolicyInfo rl_policy_info() {
  PolicyInfo row = trained_policy_info(load_named);
  row.name = "rl:";
  row.summary = "a scheduler trained by `gpusched train`, read from the folder behind rl:";
  row.source = "this project's trainer; docs/train.md";
  row.files = [](const PolicySpec& spec) {
    const std::string folder = folder_of(spec.name);
    return std::vector<std::string>{folder + "/model.json", folder + "/weights.bin"};
  };
  return row;
}

// The row of `rl:builtin/NAME`.
PolicyInfo shipped_policy_info(const ShippedModel& shipped) {
  const std::string place = std::string(builtin) + std::string(shipped.name);
  PolicyInfo row = trained_policy_info(
      [shipped, place](const std::string&) { return parse_model(shipped.model_json, shipped.weights, place); });
  const std::size_t summary = shipped.card.find('\n');
  row.name = "rl:" + place;
  row.summary = shipped.card.substr(0, summary);
  row.source = trim(shipped.card.substr(summary));
  return row;
}

}  // namespace gpusched
