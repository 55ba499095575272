// SPDX-License-Identifier: Apache-2.0
#include "src/sim/wait_figures.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <numeric>
#include <utility>

#include "gpusched/watch/metrics.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/base/wrapped_text.hpp"

namespace gpusched {
namespace {

// Of the virtual clusters that measured jobs belong to.
std::vector<WaitFigures::Queue> queue_waits(const Engine& engine, const MeasureWindow& window) {
  const JobTable& jobs = engine.jobs();
  std::map<std::string, WaitFigures::Queue> queues;
  for (std::uint32_t i = window.first; i < window.end(jobs.size()); ++i) {
    const JobId job{i};
    if (engine.may_be_cancelled(job)) continue;
    const std::string& name = jobs.vcs()[jobs.vc(job)];
    WaitFigures::Queue& queue = queues.try_emplace(name, WaitFigures::Queue{.name = name}).first->second;
    const double wait_s = to_seconds(detail::JobOutcome(engine, job).wait);
    ++queue.jobs;
    if (wait_s < 3600) ++queue.under_an_hour;
    queue.longest_wait_s = std::max(queue.longest_wait_s, wait_s);
  }
  std::vector<WaitFigures::Queue> list;
  for (auto& [name, queue] : queues) list.push_back(std::move(queue));
  return list;
}

}  // namespace

WaitFigures wait_figures(const Engine& engine, const IdleLog& idle, const MeasureWindow& window) {
  WaitFigures figures{.queues = queue_waits(engine, window)};
  for (const auto& entry : wait_cause_names) {
    figures.idle_gpu_hours[static_cast<std::size_t>(entry.value)] = idle.gpu_hours(entry.value);
  }
  return figures;
}

double WaitFigures::all_idle_gpu_hours() const {
  return std::accumulate(idle_gpu_hours.begin(), idle_gpu_hours.end(), 0.0);
}

Json waits_json(const WaitFigures& waits) {
  Json causes = Json::object(), queues = Json::array();
  for (const auto& entry : wait_cause_names) {
    causes[std::string(entry.name)] = waits.idle_gpu_hours[static_cast<std::size_t>(entry.value)];
  }
  for (const WaitFigures::Queue& queue : waits.queues) {
    queues.push_back({{"queue", queue.name},
                      {"jobs", queue.jobs},
                      {"under_an_hour", static_cast<double>(queue.under_an_hour) / static_cast<double>(queue.jobs)},
                      {"longest_wait_s", queue.longest_wait_s}});
  }
  return {{"idle_gpu_hours_while_jobs_waited", waits.all_idle_gpu_hours()},
          {"idle_gpu_hours_by_cause", std::move(causes)},
          {"queues", std::move(queues)}};
}

std::string waits_tables(const std::vector<NamedWaits>& runs, const TextStyle& style) {
  const bool are_capped = std::any_of(runs.begin(), runs.end(), [](const NamedWaits& run) {
    return run.waits->idle_gpu_hours[static_cast<std::size_t>(WaitCause::power_cap)] > 0;
  });
  std::vector<std::string> columns{"policy", "free GPU-h", "kept"};
  if (are_capped) columns.push_back("power");
  columns.insert(columns.end(), {"limits", "fragments", "type", "queue", "nodes", "too few"});
  TextTable idle(std::move(columns));
  TextTable queues({"queue", "policy", "jobs", "under 1 h", "longest wait"}, 2);
  for (const NamedWaits& run : runs) {
    const auto share = [&](std::initializer_list<WaitCause> causes) {
      double hours = 0;
      for (const WaitCause cause : causes) hours += run.waits->idle_gpu_hours[static_cast<std::size_t>(cause)];
      const double all = run.waits->all_idle_gpu_hours();
      return percent_text(all > 0 ? hours / all : 0);
    };
    std::vector<std::string> row{run.policy,
                                 human_count(static_cast<std::uint64_t>(std::llround(run.waits->all_idle_gpu_hours()))),
                                 share({WaitCause::policy})};
    if (are_capped) row.push_back(share({WaitCause::power_cap}));
    row.insert(row.end(),
               {share({WaitCause::limit}), share({WaitCause::fragmentation}), share({WaitCause::gpu_type}),
                share({WaitCause::queue_nodes, WaitCause::quota}), share({WaitCause::cpu_memory, WaitCause::placement}),
                share({WaitCause::no_gpus, WaitCause::nodes_out})});
    idle.add(std::move(row));
    for (const WaitFigures::Queue& queue : run.waits->queues) {
      queues.add({queue.name.empty() ? "(none)" : queue.name, run.policy, human_count(queue.jobs),
                  percent_text(static_cast<double>(queue.under_an_hour) / static_cast<double>(queue.jobs)),
                  human_duration(queue.longest_wait_s)});
    }
  }
  const std::string legend =
      "GPU time free while jobs waited, by why. kept: a job that waits fits, and the policy keeps the GPUs (order, "
      "reservations); " +
      std::string(are_capped ? "power: caps refuse all that fit; " : "") +
      "limits: they hold back all that wait; else why the smallest job that waits does not fit: fragments of nodes, "
      "GPU type, nodes or quota of its queue, CPU, memory or placement on nodes, too few GPUs";
  return "\n" + idle.text(style) + wrapped(legend, terminal_columns) + "\n\n" + queues.text(style);
}

}  // namespace gpusched
