// SPDX-License-Identifier: Apache-2.0
#include "src/rl/trainer.hpp"

#include <utility>

#include "src/rl/direct_search.hpp"

namespace gpusched {
Result<void> check_method(const TrainConfig& config, TrainingMethod* ppo) {
  if (config.method != Method::ppo || ppo != nullptr) return {};
  return unexpected(
      "this build cannot train by ppo, which needs LibTorch (configure with -DGPUSCHED_WITH_TORCH=ON where it is "
      "installed); \"method\": \"cma_es\" and \"es\" need none");
}

Result<TrainSummary> train(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder, bool resume,
                           const std::function<void(const TrainProgress&)>& watch, TrainingMethod* ppo) {
  if (auto known = check_method(config, ppo); !known) return Unexpected{known.error()};
  if (config.test_at_end) {  // better refused now than after training
    if (auto fits = check_test_part(config, jobs); !fits) return Unexpected{fits.error()};
  }
  TrainingMethod* const method = config.method == Method::ppo ? ppo : search;
  auto summary = method(config, jobs, cluster, folder, resume, watch);
  if (!summary || !config.test_at_end) return summary;
  auto tested = test_model(config, jobs, cluster, folder);
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
