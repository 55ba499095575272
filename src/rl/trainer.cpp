// SPDX-License-Identifier: Apache-2.0
#include "src/rl/trainer.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "src/base/build_info.hpp"
#include "src/policies/learned/lane_networks.hpp"
#include "src/rl/direct_search.hpp"
#include "src/rl/training_conditions.hpp"
#include "src/rl/training_windows.hpp"

namespace gpusched {
namespace {

// Why a term of the reward is 0 in every window; empty: it need not be.
std::string why_zero(std::size_t term, const EnvOptions& env, const TrainingConditions& under) {
  const PowerModel& power = under.conditions.power.model;
  const JobTable& jobs = under.jobs;
  if (term == reward_energy && power.is_empty() && env.idle_gpu_w == 0 && env.busy_gpu_w == 0) {
    return "idle_gpu_w and busy_gpu_w are 0";
  }
  if (term == reward_fairness) {
    for (std::uint32_t i = 1; i < jobs.size(); ++i) {
      if (jobs.user(JobId{i}) != jobs.user(JobId{0})) return "";
    }
    return "the trace tells no two users apart";
  }
  if (term == reward_carbon && !power.knows_carbon()) return "the power file has no carbon signal";
  if (term == reward_money && !power.knows_money()) return "the power file has no prices";
  if (term == reward_peak && power.is_empty()) return "the power file says nothing of what is drawn";
  return "";
}

// Error: every term that has a weight is 0 everywhere, so that there is nothing to learn.
Result<void> check_reward(const EnvOptions& env, const TrainingConditions& under) {
  std::optional<Unexpected> wrong;
  for (std::size_t term = 0; term < reward_terms; ++term) {
    if (env.weights[term] == 0) continue;
    const std::string why = why_zero(term, env, under);
    if (why.empty()) return {};
    if (wrong) continue;
    wrong = bad_option("env.weights." + std::string(reward_names[term]),
                       "the reward is 0 everywhere, as " + why + "; expected a weight of another term");
  }
  if (wrong) return *wrong;
  return {};
}

}  // namespace

Result<void> check_method(const TrainConfig& config, bool with_torch) {
  if (config.method != Method::ppo || with_torch) return {};
  const bool on_cuda = config.device == "cuda";
  if (!on_cuda && learns_on_lanes(config.network)) return {};
  const std::string what =
      on_cuda ? "on device cuda" : "the network " + std::string(name_of(network_kind_names, config.network.kind));
  return unexpected("this build cannot train " + what +
                    " by ppo, which needs LibTorch (configure with -DGPUSCHED_WITH_TORCH=ON where it is installed); on "
                    "the CPU the networks kernel, kernel@sc20 and index and an agent that steers need none");
}

bool has_checkpoint(const std::string& folder) {
  return std::filesystem::exists(folder + "/checkpoint.bin") ||
         std::filesystem::exists(folder + "/" + search_state_file);
}

Result<TrainSummary> learn(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder, bool resume,
                           const std::function<void(const TrainProgress&)>& watch, TrainingMethod* ppo) {
  if (auto known = check_method(config, build_info().with_torch); !known) return Unexpected{known.error()};
  if (config.test_at_end) {  // better refused now than after training
    if (auto fits = check_test_part(config, jobs); !fits) return Unexpected{fits.error()};
  }
  TrainingMethod* const method = config.method == Method::ppo ? ppo : search;
  const auto conditions = load_training_conditions(config, jobs, cluster);
  if (!conditions) return Unexpected{conditions.error()};
  TrainConfig under = conditions->apply_to(config);
  under.network = for_agenda(config.network, config.env.agenda);
  return method(under, conditions->jobs, cluster, folder, resume, watch);
}

Result<void> check_training(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster) {
  if (auto known = check_method(config, build_info().with_torch); !known) return known;
  const auto conditions = load_training_conditions(config, jobs, cluster);
  if (!conditions) return Unexpected{conditions.error()};
  if (auto good = check_reward(config.env, *conditions); !good) return good;
  if (auto fit = check_windows(config, jobs); !fit) return fit;
  if (auto clusters = training_clusters(config, jobs, cluster); !clusters) return Unexpected{clusters.error()};
  return config.test_at_end ? check_test_part(config, jobs) : Result<void>{};
}

Result<TrainSummary> train(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder, bool resume,
                           const std::function<void(const TrainProgress&)>& watch, TrainingMethod* ppo) {
  auto summary = learn(config, jobs, cluster, folder, resume, watch, ppo);
  if (!summary || !config.test_at_end) return summary;
  auto tested = test_models(config, jobs, cluster, "rl:" + folder, {&folder, 1});
  if (!tested) return Unexpected{tested.error()};
  summary->held_out = *std::move(tested);
  return summary;
}

Result<RunInput> load_train_input(const TrainConfig& config) {
  // Built field by field: GCC 12 at -O3 takes a nested aggregate's strings for uninitialised.
  InputRequest request;
  request.trace = config.trace;
  request.reading.format = config.format;
  request.reading.columns = config.columns;
  request.reading.where = config.where;
  request.reading.drop_bad_rows = config.drop_bad_rows;
  request.reading.backlog = config.backlog;
  request.reading.qos = config.qos;
  request.cluster = config.cluster;
  request.placement = config.conditions.placement;
  request.oversize = Oversize::drop;
  return load_input(request);
}

}  // namespace gpusched
