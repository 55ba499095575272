// SPDX-License-Identifier: Apache-2.0
#include "src/rl/constraints.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/base/parallel.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

// Figures have logarithms from here on: a wait below a second is none, nor is what no meter shows.
constexpr double least_of(BoundedFigure figure) { return figure < bounded_energy ? 1 : 1e-6; }

// What was drawn, emitted, paid and drawn at most in the measured span so far.
void read_meter(const Engine& engine, BoundedFigures& figures) {
  if (!engine.knows_power()) return;
  const detail::Power& power = engine.power();
  const Time now = engine.view().now();
  const Bill bill = power.measured_until(now);
  figures[bounded_energy] = bill.kwh();
  figures[bounded_carbon] = bill.carbon_kg();
  figures[bounded_cost] = bill.usd();
  figures[bounded_peak] = power.meter_kw(power.peak_mw_until(now));
}

Unexpected bad_reference(std::string message) {
  return Unexpected{Error{.message = std::move(message), .field = "/constraints/reference"}};
}

// Until the window ends; whether every job finished or will be counted as it is.
bool run_until_end(Engine& engine, AnyPolicy& policy, Time end) {
  if (end == Time::max()) return simulate(engine, policy);
  Decision decision = engine.decision();
  while (engine.advance_to(end)) {
    policy.decide(engine.view(), decision);
    engine.apply();
  }
  return true;
}

}  // namespace

BoundedFigures figures_of(const Engine& engine, const Window& window) {
  const OracleView view = engine.view();
  std::vector<std::int64_t> waits;
  BoundedFigures figures{};
  read_meter(engine, figures);
  for (std::uint32_t i = window.first_scored; i < window.jobs.size(); ++i) {
    const JobId job{i};
    if (view.phase(job) == JobPhase::future) continue;
    const bool is_done = view.phase(job) == JobPhase::done && !engine.is_cancelled_by_policy(job);  // that waits on
    const Time until = is_done ? engine.end(job) : view.now();
    const Time jct = until - window.jobs.submit(job);
    const Time wait = std::max(Time{}, jct - engine.ran(job));
    waits.push_back(wait.us);
    figures[bounded_avg_jct] += to_seconds(jct);
    figures[bounded_avg_wait] += to_seconds(wait);
    figures[bounded_slowdown] +=
        std::max(1.0, to_seconds(jct) / to_seconds(std::max(detail::length_of(engine, job), slowdown_bound)));
  }
  if (waits.empty()) return figures;
  for (const BoundedFigure figure : {bounded_avg_jct, bounded_avg_wait, bounded_slowdown}) {
    figures[figure] /= static_cast<double>(waits.size());
  }
  figures[bounded_max_wait] = to_seconds(Time{*std::max_element(waits.begin(), waits.end())});
  figures[bounded_p99_wait] = detail::percentile(waits, 0.99) / static_cast<double>(microseconds_per_second);
  return figures;
}

Result<BoundedFigures> reference_figures(const TrainConfig& config, const Cluster& cluster, const Window& window) {
  static const PolicyRegistry registry = PolicyRegistry::standard();
  const std::string& reference = config.constraints.reference;
  const auto specs = parse_policies(registry, reference);
  if (!specs) return bad_reference(specs.error().to_string());
  if (specs->size() != 1) return bad_reference("expected one policy, not " + reference);
  auto policy = make_policy(registry, specs->front(),
                            {.jobs = &window.jobs,
                             .cluster = &cluster,
                             .seed = config.seed,
                             .runtime = config.env.inputs.runtime,
                             .power = config.env.inputs.power});
  if (!policy) return bad_reference(policy.error().to_string());
  Engine engine(window.jobs, cluster, engine_options(config.env, window), run_inputs(config.env, window));
  if (!run_until_end(engine, *policy, window.end)) {
    return bad_reference("policy " + reference + " leaves jobs waiting for ever");
  }
  return figures_of(engine, window);
}

std::string name_of(const FigureBound& bound) {
  std::string figure(bounded_figure_names[bound.figure]);
  if (bound.in == FigureBound::In::all) return figure;
  return figure + (bound.in == FigureBound::In::empty ? "_empty" : "_warm");
}

Result<Constraints> Constraints::of(const TrainConfig& config, const Cluster& cluster,
                                    std::span<const Window> windows) {
  Constraints result;
  result.objective_ = config.search.objective;
  result.most_ = config.constraints.most;
  if (result.most_ == BoundedFigures{}) return result;
  std::vector<std::optional<Result<BoundedFigures>>> runs(windows.size());
  for_each_index(windows.size(), config.threads,
                 [&](std::size_t w) { runs[w] = reference_figures(config, cluster, windows[w]); });
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (!*runs[w]) return Unexpected{runs[w]->error()};
    result.reference_.push_back(**runs[w]);
    result.empty_.push_back(windows[w].first_scored == 0);
  }
  result.add_bounds();
  return result;
}

void Constraints::add_bounds() {
  const auto all = static_cast<double>(empty_.size());
  const auto empty = static_cast<double>(std::count(empty_.begin(), empty_.end(), true));
  std::vector<FigureBound> kinds{{.figure = {}, .in = FigureBound::In::all, .weight = 1}};
  if (empty > 0 && empty < all) {
    kinds = {{.figure = {}, .in = FigureBound::In::empty, .weight = all / empty},
             {.figure = {}, .in = FigureBound::In::warm, .weight = all / (all - empty)}};
  }
  for (std::uint8_t figure = 0; figure < bounded_figures; ++figure) {
    if (most_[figure] == 0) continue;
    for (FigureBound bound : kinds) {
      bound.figure = static_cast<BoundedFigure>(figure);
      double mean = 0;
      for (std::size_t w = 0; w < reference_.size(); ++w) {
        if (holds_in(bound, w)) mean += reference_[w][figure] * bound.weight / all;
      }
      bounded_.push_back(bound);
      mean_.push_back(mean);
    }
  }
}

bool Constraints::holds_in(const FigureBound& bound, std::size_t w) const {
  return bound.in == FigureBound::In::all || (bound.in == FigureBound::In::empty) == empty_[w];
}

std::vector<double> Constraints::excess(const BoundedFigures& figures, std::size_t w) const {
  std::vector<double> result(bounded_.size());
  for (std::size_t k = 0; k < bounded_.size(); ++k) {
    if (!holds_in(bounded_[k], w)) continue;
    const BoundedFigure figure = bounded_[k].figure;
    const double least = least_of(figure);
    const double ours = std::max(figures[figure], least);
    const double excess = objective_ == SearchObjective::mean
                              ? ours / std::max(mean_[k], least) - most_[figure]
                              : std::log(ours / std::max(reference_[w][figure], least) / most_[figure]);
    result[k] = bounded_[k].weight * excess;
  }
  return result;
}

double Constraints::ratio(std::size_t bound, double mean_excess) const {
  return objective_ == SearchObjective::mean ? mean_excess + most(bound) : std::exp(mean_excess) * most(bound);
}

}  // namespace gpusched
