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

/// A figure that is bounded in all windows or, where some begin on an empty cluster and some after warm-up jobs, in
/// those of one kind: else what is lost in one kind could be made up for in the other.
struct FigureBound {
  enum class In : std::uint8_t { all, empty, warm };
  BoundedFigure figure{};
  In in = In::all;
  double weight = 1;  ///< number of all windows over that of its kind
};

/// The name in configurations and, of a kind of windows, "_empty" or "_warm".
std::string name_of(const FigureBound& bound);

/// The reference's figures in the windows of a part, and how far others are above what is allowed.
class Constraints {
 public:
  /// Nothing is bounded.
  Constraints() = default;
  /// Runs the reference in every window. Errors: as reference_figures().
  static Result<Constraints> of(const TrainConfig& config, const Cluster& cluster, std::span<const Window> windows);

  /// Number of bounds.
  [[nodiscard]] std::size_t size() const { return bounded_.size(); }
  /// One value for each bound of an episode in window `w`, 0 at the limit, above it beyond: with
  /// SearchObjective::geometric the logarithm of the ratio to the limit in this window, with `mean` the figure's share
  /// of the reference's mean over the bound's windows, less the limit. Times FigureBound::weight, and 0 in other
  /// windows, so that the mean over all windows is the mean over the bound's.
  [[nodiscard]] std::vector<double> excess(const BoundedFigures& figures, std::size_t w) const;
  /// The mean excess of windows as a multiple of the reference's figure.
  [[nodiscard]] double ratio(std::size_t bound, double mean_excess) const;
  /// The bound, and the limit of its ratio.
  [[nodiscard]] const FigureBound& operator[](std::size_t bound) const { return bounded_[bound]; }
  [[nodiscard]] double most(std::size_t bound) const { return most_[bounded_[bound].figure]; }

 private:
  SearchObjective objective_ = SearchObjective::geometric;
  void add_bounds();
  [[nodiscard]] bool holds_in(const FigureBound& bound, std::size_t w) const;

  std::vector<FigureBound> bounded_;
  BoundedFigures most_{};
  std::vector<BoundedFigures> reference_;  // by window
  std::vector<bool> empty_;                // by window: it begins on an empty cluster
  std::vector<double> mean_;               // of each bound's figure
};

}  // namespace gpusched
