// SPDX-License-Identifier: Apache-2.0
#include "src/rl/trainer.hpp"

#include <utility>

#include "src/base/statistics.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/rl/direct_search.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/training_windows.hpp"

namespace gpusched {
namespace {

// Those that share no job with the one before.
std::vector<Window> apart(std::vector<Window> windows) {
  std::vector<Window> kept;
  for (Window& window : windows) {
    const bool overlaps = !kept.empty() && window.start < kept.back().start + window.jobs.size();
    if (!overlaps) kept.push_back(std::move(window));
  }
  return kept;
}

Result<HeldOut> test_model(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder) {
  auto windows = make_windows(jobs, config.windows, Split::test);
  if (!windows) return Unexpected{windows.error()};
  const std::vector<Window> tested = apart(*std::move(windows));
  const auto model = load_model(folder);
  if (!model) return Unexpected{model.error()};
  const Actor agent{&model->network, &model->normaliser, model->parameters};
  const auto losses = [&](Acting acting, Heuristic heuristic) {
    EnvOptions env = config.env;
    if (acting == Acting::heuristic) env.agenda.heuristic = heuristic;
    return window_losses(pointers_to(tested), cluster, env, agent, acting);
  };
  const std::vector<double> own = losses(Acting::best, config.env.agenda.heuristic);
  HeldOut result{.windows = static_cast<std::uint32_t>(tested.size()), .agent = mean_of(own), .rows = {}};
  for (const auto& [name, heuristic] : heuristic_names) {
    AgendaOptions agenda = config.env.agenda;
    agenda.heuristic = heuristic;
    if (contradiction(agenda)) continue;
    const std::vector<double> theirs = losses(Acting::heuristic, heuristic);
    HeldOutRow row{
        .heuristic = heuristic, .loss = mean_of(theirs), .interval = {}, .verdict = std::string(too_few_windows)};
    row.interval = paired_intervals({own}, {theirs}, 1, Rng(config.seed).split("bootstrap"));
    if (row.interval) row.verdict = verdict(row.interval->relative);
    result.rows.push_back(std::move(row));
  }
  return result;
}

}  // namespace

Result<void> check_method(const TrainConfig& config, const TrainingMethod* ppo) {
  if (config.method == Method::cma_es || ppo != nullptr) return {};
  return unexpected(
      "this build cannot train by ppo, which needs LibTorch (configure with -DGPUSCHED_WITH_TORCH=ON where it is "
      "installed); \"method\": \"cma_es\" needs none");
}

Result<TrainSummary> train(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder, bool resume,
                           const std::function<void(const TrainProgress&)>& watch, TrainingMethod* ppo) {
  if (auto known = check_method(config, ppo); !known) return Unexpected{known.error()};
  if (config.test_at_end) {  // better refused now than after training
    if (auto test = make_windows(jobs, config.windows, Split::test); !test) return Unexpected{test.error()};
  }
  TrainingMethod* const method = config.method == Method::cma_es ? search : ppo;
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
