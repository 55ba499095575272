// SPDX-License-Identifier: Apache-2.0
/// What a search may not make others pay: figures that stay within a multiple of a reference policy's in the same
/// windows, by Lagrange multipliers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/learn/env.hpp"
#include "gpusched/learn/window.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {

/// The scored jobs' figures at an episode's end. A job that has not finished by then counts with what it has spent so
/// far, so that it costs more the longer it was left waiting; one that was not submitted by then does not count.
BoundedFigures figures_of(const Engine& engine, const Window& window);

/// Those of the reference policy, which runs the window alone, warm-up jobs too, until the window ends. Error: the
/// policy is unknown, cannot be made for these jobs, or leaves jobs waiting for ever.
Result<BoundedFigures> reference_figures(const TrainConfig& config, const Cluster& cluster, const Window& window);

/// The reference's figures in the windows of a part, and how far others are above what is allowed.
class Constraints {
 public:
  /// Nothing is bounded.
  Constraints() = default;
  /// Runs the reference in every window. Errors: as reference_figures().
  static Result<Constraints> of(const TrainConfig& config, const Cluster& cluster, std::span<const Window> windows);

  /// Number of bounded figures.
  [[nodiscard]] std::size_t size() const { return bounded_.size(); }
  /// One value for each bounded figure of an episode in window `w`, 0 at the limit, above it beyond: with
  /// SearchObjective::geometric the logarithm of the ratio to the limit in this window, with `mean` the figure's share
  /// of the reference's mean over all windows, less the limit.
  [[nodiscard]] std::vector<double> excess(const BoundedFigures& figures, std::size_t w) const;
  /// The mean excess of windows as a multiple of the reference's figure.
  [[nodiscard]] double ratio(std::size_t bound, double mean_excess) const;
  /// The bounded figure, and the limit of its ratio.
  [[nodiscard]] BoundedFigure figure(std::size_t bound) const { return bounded_[bound]; }
  [[nodiscard]] double most(std::size_t bound) const { return most_[bounded_[bound]]; }

 private:
  SearchObjective objective_ = SearchObjective::geometric;
  std::vector<BoundedFigure> bounded_;
  BoundedFigures most_{};
  std::vector<BoundedFigures> reference_;  // by window
  BoundedFigures mean_{};                  // of it
};

}  // namespace gpusched
