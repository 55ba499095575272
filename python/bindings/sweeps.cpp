// SPDX-License-Identifier: Apache-2.0
// sweep(): the runs of a grid on processes of this machine, as `gpusched sweep` does them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "python/bindings/common.hpp"
#include "python/bindings/keywords.hpp"
#include "src/base/held_folder.hpp"
#include "src/sweep/sweep_run.hpp"

namespace gpusched::python {
namespace {

struct SweepEnd {
  SweepOutcome outcome = {};
  std::size_t stored_before = 0;
  std::uint64_t runs = 0;
  std::string list = {};                // with dry_run
  std::vector<std::string> names = {};  // of the runs that failed
};

Result<SweepPlan> plan_of(const std::string& text, const std::string& file, const std::string& keywords,
                          const PolicyRegistry& registry) {
  auto sweep = text.empty() ? read_sweep_file(file) : read_sweep_json(text, file);
  if (!sweep) return Unexpected{sweep.error()};
  set_keywords(sweep_own_fields(*sweep), keywords);
  if (sweep->launcher != "local") {
    return unexpected("launcher: sweep() runs on processes of this machine; `gpusched sweep` submits to " +
                      sweep->launcher);
  }
  return plan_sweep(*std::move(sweep), registry);
}

Result<SweepEnd> list_of(const SweepPlan& plan) {
  std::unordered_map<std::string, RunStatus> states;
  if (!plan.sweep.out.empty()) {
    const auto store = SweepStore::open_existing(path_in(plan.sweep, sweep_database_name));
    if (!store) return Unexpected{store.error()};
    if (*store) {
      auto known = (*store)->states();
      if (!known) return Unexpected{known.error()};
      states = *std::move(known);
    }
  }
  SweepEnd end{.runs = plan.runs.size(), .list = sweep_list(plan, states)};
  end.stored_before = plan.runs.size() - runs_to_do(plan, states, false).size();
  return end;
}

Result<SweepEnd> run_all(const SweepPlan& plan, const PolicyRegistry& registry, bool retry, SweepProgress& progress,
                         ToldProgress& told) {
  if (plan.sweep.out.empty()) return unexpected("out: expected a folder for the results");
  const auto folder = HeldFolder::open(plan.sweep.out);
  if (!folder) return Unexpected{folder.error()};
  auto store = SweepStore::open(path_in(plan.sweep, sweep_database_name));
  if (!store) return Unexpected{store.error()};
  SweepFiles files(plan, *store);
  if (const auto begun = files.write(); !begun) return Unexpected{begun.error()};
  const auto states = store->states();
  if (!states) return Unexpected{states.error()};
  const std::vector<std::uint64_t> todo = runs_to_do(plan, *states, retry);
  told.follow(progress.ended, todo.size());
  const auto ran = run_here(plan, registry, *store, todo, files, progress);
  auto outcome = files.write();
  if (!ran) return Unexpected{ran.error()};
  if (!outcome) return Unexpected{outcome.error()};
  SweepEnd end{
      .outcome = *std::move(outcome), .stored_before = plan.runs.size() - todo.size(), .runs = plan.runs.size()};
  for (const RunFailure& failure : end.outcome.failures) {
    const auto point = plan.sweep.point(failure.number);
    end.names.push_back(point ? point_name(plan.sweep, *point) : "");
  }
  return end;
}

nb::dict sweep(const std::string& text, const std::string& file, const std::string& keywords, bool retry, bool dry_run,
               const nb::object& told) {
  refuse_keywords(keywords, {{"slurm_options", "of `gpusched sweep --launcher slurm`"},
                             {"runs_per_task", "of `gpusched sweep --launcher slurm`"}});
  const PolicyRegistry registry = PolicyRegistry::standard();
  std::atomic<bool> stop = false;
  std::optional<Result<SweepPlan>> plan;
  std::optional<Result<SweepEnd>> end;
  SweepProgress progress;
  progress.stop = &stop;
  ToldProgress progress_told(told);
  run_unlocked(
      stop,
      [&] {
        plan.emplace(plan_of(text, file, keywords, registry));
        if (*plan) end.emplace(dry_run ? list_of(**plan) : run_all(**plan, registry, retry, progress, progress_told));
      },
      &progress_told);
  check(*plan ? Result<void>{} : Unexpected{plan->error()});
  const SweepEnd done = value_or_raise(*std::move(end));
  nb::list failures;
  for (std::size_t i = 0; i < done.outcome.failures.size(); ++i) {
    const RunFailure& failure = done.outcome.failures[i];
    failures.append(nb::make_tuple(failure.number + 1, done.names[i], failure.message));
  }
  nb::dict result;
  result["out"] = (*plan)->sweep.out;
  result["runs"] = done.runs;
  result["stored_before"] = done.stored_before;
  result["done"] = done.outcome.done;
  result["failed"] = done.outcome.failed;
  result["timeouts"] = done.outcome.timeouts;
  result["failures"] = failures;
  result["list"] = done.list;
  return result;
}

}  // namespace

void bind_sweeps(nb::module_& module) {
  module.def("sweep_keywords", [] {
    Sweep sweep;
    return keywords_of(sweep_own_fields(sweep));
  });
  module.def("sweep", &sweep, nb::arg("text"), nb::arg("file"), nb::arg("keywords"), nb::arg("retry"),
             nb::arg("dry_run"), nb::arg("progress").none());
}

}  // namespace gpusched::python
