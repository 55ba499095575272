// SPDX-License-Identifier: Apache-2.0
#include "src/rl/trainer.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include "src/base/build_info.hpp"
#include "src/policies/learned/lane_networks.hpp"
#include "src/rl/direct_search.hpp"
#include "src/rl/training_conditions.hpp"
#include "src/rl/training_windows.hpp"

namespace gpusched {

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
  if (auto conditions = load_training_conditions(config, jobs, cluster); !conditions) {
    return Unexpected{conditions.error()};
  }
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
