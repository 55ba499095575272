// SPDX-License-Identifier: Apache-2.0
#include "src/rl/trainer.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include "src/base/build_info.hpp"
#include "src/policies/learned/lane_networks.hpp"
#include "src/rl/direct_search.hpp"
#include "src/sim/fidelity.hpp"
#include "src/world/failure_reader.hpp"

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

namespace {

// Of the jobs of every window: these keep the numbers of the trace's families.
Result<CalibratedRuntime> speeds_of(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster) {
  Fidelity fidelity;
  fidelity.throughputs = config.throughputs;
  fidelity.reference_type = config.reference_type;
  auto runtime = runtime_of(fidelity, jobs, cluster);
  if (runtime) return runtime;
  Error error = runtime.error();
  if (error.file.empty()) error.field = "/throughputs";
  return Unexpected{std::move(error)};
}

// A log of outages has times on the clock of the whole trace, which windows leave.
Result<NodeFailures> laws_of(const TrainConfig& config, const Cluster& cluster) {
  if (config.failures.empty()) return NodeFailures{};
  auto failures = read_failures(config.failures, cluster, Time{}, config.seed);
  if (failures && !failures->changes().empty()) {
    return Unexpected{Error{.message = "expected laws alone; a log of outages is of one time, and windows are of many",
                            .file = config.failures}};
  }
  return failures;
}

}  // namespace

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
  TrainConfig at_speeds = config;
  at_speeds.network = for_agenda(config.network, config.env.agenda);
  const auto failures = laws_of(config, cluster);
  if (!failures) return Unexpected{failures.error()};
  if (!config.failures.empty()) at_speeds.env.failures = &*failures;
  if (config.throughputs.empty()) return method(at_speeds, jobs, cluster, folder, resume, watch);
  const auto runtime = speeds_of(config, jobs, cluster);
  if (!runtime) return Unexpected{runtime.error()};
  at_speeds.env.runtime = &runtime->model;
  return method(at_speeds, jobs, cluster, folder, resume, watch);
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

Result<RunInput> load_train_input(const TrainConfig& config, const InputFieldNames& names) {
  // Built field by field: GCC 12 at -O3 takes a nested aggregate's strings for uninitialised.
  InputRequest request;
  request.trace = config.trace;
  request.reading.format = config.trace_format;
  request.reading.columns = config.trace_columns;
  request.reading.where = config.trace_where;
  request.reading.drop_bad_rows = config.drop_bad_rows;
  request.cluster = config.cluster;
  request.placement = placement_word(config);
  request.oversize = Oversize::drop;
  return load_input(request, names);
}

}  // namespace gpusched
