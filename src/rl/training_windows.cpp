// SPDX-License-Identifier: Apache-2.0
#include "src/rl/training_windows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

std::vector<Window> thinned(std::vector<Window> windows, std::size_t most) {
  if (windows.size() <= most) return windows;
  std::vector<Window> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(std::move(windows[i * windows.size() / most]));
  return kept;
}

// A job like `from`, submitted at another time; its deadline keeps its distance.
void add_job(JobTableBuilder& jobs, const JobTable& trace, JobId from, Time submit) {
  std::vector<Time> attempts(trace.attempts(from));
  for (std::uint32_t k = 0; k < attempts.size(); ++k) attempts[k] = trace.attempt_work(from, k);
  const Time deadline = trace.deadline(from);
  jobs.add({.submit = submit,
            .work = trace.work(from),
            .estimate = trace.estimate(from),
            .shape = trace.shape(from),
            .user = trace.users()[trace.user(from)],
            .group = trace.groups()[trace.group(from)],
            .vc = trace.vcs()[trace.vc(from)],
            .qos = trace.qos_names()[trace.qos(from)],
            .name = trace.names()[trace.name(from)],
            .gpu_spec = trace.gpu_specs()[trace.shape(from).gpu_spec],
            .family = trace.families()[trace.family(from)],
            .status = trace.status(from),
            .priority = trace.priority(from),
            .deadline = deadline == Time::max() ? deadline : submit + (deadline - trace.submit(from)),
            .attempts = attempts});
}

Window shuffled_window(const TrainConfig& config, const JobTable& trace, TracePart part, Rng rng) {
  const WindowOptions& options = config.windows;
  const std::uint32_t length = options.warm_up_jobs + options.jobs;
  const auto first = part.begin + static_cast<std::uint32_t>(rng.below(part.end - part.begin - length + 1));
  const double stretch = std::exp(config.shuffle.stretch * (2 * rng.uniform() - 1));
  const JobTable arrivals = trace.slice(first, length, options.arrival_scale * stretch);
  JobTableBuilder jobs;
  jobs.reserve(length);
  for (const Time submit : arrivals.submits()) {
    const auto from = part.begin + static_cast<std::uint32_t>(rng.below(part.end - part.begin));
    add_job(jobs, trace, JobId{from}, submit);
  }
  // Jobs without ids are numbered: no id is there twice, so that the table cannot fail.
  Window window{.jobs = std::move(jobs).build().value(),
                .first_scored = options.warm_up_jobs,
                .start = first + options.warm_up_jobs,
                .history = {}};
  if (options.truncate) window.end = arrivals.submits().back();
  return window;
}

Result<std::vector<Window>> windows_of(const TrainConfig& config, const JobTable& trace, Split split) {
  if (config.shuffle.windows == 0) {
    WindowOptions options = config.windows;
    options.service_history = config.env.agenda.mode == ActionMode::preempt;
    return make_windows(trace, options, split);
  }
  const auto part = jobs_of(trace, config.windows, split);
  if (!part) return Unexpected{part.error()};
  const Rng rng = Rng(config.seed).split("shuffled windows").split(to_string(split));
  std::vector<Window> windows;
  for (std::uint32_t i = 0; i < config.shuffle.windows; ++i) {
    windows.push_back(shuffled_window(config, trace, *part, rng.split(i)));
  }
  return windows;
}

// The configuration of the validation windows, which may be logs of another length, side by side.
TrainConfig for_validation(const TrainConfig& config) {
  TrainConfig result = config;
  if (config.validation_jobs == 0) return result;
  result.windows.jobs = result.windows.stride = config.validation_jobs;
  result.windows.warm_up_jobs = 0;
  return result;
}

// Takes their warm-up jobs from an evenly spaced share of the windows.
void begin_empty(std::vector<Window>& windows, double share) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto so_far = [share](std::size_t count) { return std::floor(share * static_cast<double>(count)); };
    Window& window = windows[i];
    if (so_far(i + 1) == so_far(i) || window.first_scored == 0) continue;
    window.jobs = window.jobs.slice(window.first_scored, window.jobs.size() - window.first_scored);
    window.first_scored = 0;
    if (window.end != Time::max()) window.end = window.jobs.submits().back();
  }
}

// Without nodes where the scale leaves none. Precondition: no virtual clusters.
Cluster scaled(const Cluster& cluster, double scale) {
  const auto times = [scale](std::int64_t count) { return std::llround(static_cast<double>(count) * scale); };
  Cluster result = cluster;
  if (cluster.nodes.size() == 1) {
    Node& node = result.nodes.front();
    node.gpus = static_cast<std::uint32_t>(times(node.gpus));
    if (node.cpu_milli != unlimited) node.cpu_milli = times(node.cpu_milli);
    if (node.memory_mib != unlimited) node.memory_mib = times(node.memory_mib);
    if (node.gpus == 0) result.nodes.clear();
    return result;
  }
  const auto count = static_cast<std::size_t>(times(static_cast<std::int64_t>(cluster.nodes.size())));
  result.nodes.clear();
  for (std::size_t i = 0; i < count; ++i) result.nodes.push_back(cluster.nodes[i * cluster.nodes.size() / count]);
  return result;
}

// What users do to the jobs of each window.
void add_changes(std::vector<Window>& windows, const JobChanges* changes) {
  if (changes == nullptr) return;
  for (Window& window : windows) {
    window.changes = changes->slice(window.start - window.first_scored, window.jobs.size());
  }
}

}  // namespace

Result<void> check_windows(const TrainConfig& config, const JobTable& jobs) {
  if (auto part = jobs_of(jobs, config.windows, Split::train); !part) return Unexpected{part.error()};
  const TrainConfig validation = for_validation(config);
  if (auto part = jobs_of(jobs, validation.windows, Split::validation); !part) return Unexpected{part.error()};
  return {};
}

Result<TrainingWindows> training_windows(const TrainConfig& config, const JobTable& jobs) {
  auto train = windows_of(config, jobs, Split::train);
  if (!train) return Unexpected{train.error()};
  auto validation = windows_of(for_validation(config), jobs, Split::validation);
  if (!validation) return Unexpected{validation.error()};
  TrainingWindows windows{*std::move(train), thinned(*std::move(validation), config.ppo.validation_windows)};
  begin_empty(windows.train, config.empty_share);
  begin_empty(windows.validation, config.empty_share);
  add_changes(windows.train, config.env.inputs.changes);
  add_changes(windows.validation, config.env.inputs.changes);
  return windows;
}

Result<std::vector<Cluster>> training_clusters(const TrainConfig& config, const JobTable& jobs,
                                               const Cluster& cluster) {
  const auto fail = [](std::string message) {
    return Unexpected{Error{.message = std::move(message), .field = "windows.cluster_scales"}};
  };
  std::vector<Cluster> clusters;
  for (const double scale : config.cluster_scales) {
    if (scale == 1) {
      clusters.push_back(cluster);
      continue;
    }
    if (!cluster.vcs.empty()) return fail("a cluster of virtual clusters cannot be scaled");
    clusters.push_back(scaled(cluster, scale));
    if (clusters.back().nodes.empty()) return fail(formatted("%g", scale) + " times the cluster is nothing");
    const auto fits = [&](const Shape& shape) {
      return ClusterState::fits_when_empty(clusters.back(), jobs.gpu_specs(), shape, 0);
    };
    if (!std::all_of(jobs.shapes().begin(), jobs.shapes().end(), fits)) {
      return fail("a job of the trace does not fit the cluster at its smallest; expected larger scales");
    }
  }
  return clusters;
}

Time horizon_end(const PpoOptions& options, std::uint32_t iteration, const Window& window) {
  const std::uint32_t scored = window.jobs.size() - window.first_scored;
  if (iteration >= options.horizon_iterations || options.horizon_jobs >= scored) return window.end;
  const std::uint64_t more = std::uint64_t{scored - options.horizon_jobs} * iteration / options.horizon_iterations;
  const auto jobs = options.horizon_jobs + static_cast<std::uint32_t>(more);
  return std::min(window.end, window.jobs.submit(JobId{window.first_scored + jobs - 1}));
}

double loss_of(const RewardVector& totals, const EnvOptions& options, const Window& window) {
  double sum = 0;
  for (std::size_t term = 0; term < reward_terms; ++term) sum -= options.weights[term] * totals[term];
  return sum / static_cast<double>(window.jobs.size() - window.first_scored);
}

std::vector<double> window_losses(std::span<const Window* const> windows, const Cluster& cluster,
                                  const EnvOptions& options, const Actor& actor, Acting acting, std::uint64_t seed) {
  const std::vector<RewardVector> totals =
      evaluate_windows(windows, cluster, options, actor, acting, options.agenda.heuristic, seed);
  std::vector<double> losses;
  for (std::size_t w = 0; w < windows.size(); ++w) losses.push_back(loss_of(totals[w], options, *windows[w]));
  return losses;
}

std::vector<const Window*> pointers_to(std::span<const Window> windows) {
  std::vector<const Window*> pointers;
  for (const Window& window : windows) pointers.push_back(&window);
  return pointers;
}

}  // namespace gpusched
