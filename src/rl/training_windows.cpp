// SPDX-License-Identifier: Apache-2.0
#include "src/rl/training_windows.hpp"

#include <utility>

namespace gpusched {
namespace {

std::vector<Window> thinned(std::vector<Window> windows, std::size_t most) {
  if (windows.size() <= most) return windows;
  std::vector<Window> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(std::move(windows[i * windows.size() / most]));
  return kept;
}

}  // namespace

Result<TrainingWindows> training_windows(const TrainConfig& config, const JobTable& jobs) {
  auto train = make_windows(jobs, config.windows, Split::train);
  if (!train) return Unexpected{train.error()};
  auto validation = make_windows(jobs, config.windows, Split::validation);
  if (!validation) return Unexpected{validation.error()};
  return TrainingWindows{*std::move(train), thinned(*std::move(validation), config.ppo.validation_windows)};
}

double loss_of(const RewardVector& totals, const EnvOptions& options, const Window& window) {
  double sum = 0;
  for (std::size_t term = 0; term < reward_terms; ++term) sum -= options.weights[term] * totals[term];
  return sum / static_cast<double>(window.jobs.size() - window.first_scored);
}

std::vector<double> window_losses(std::span<const Window* const> windows, const Cluster& cluster,
                                  const EnvOptions& options, const Actor& actor, Acting acting) {
  const std::vector<RewardVector> totals =
      evaluate_windows(windows, cluster, options, actor, acting, options.agenda.heuristic);
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
