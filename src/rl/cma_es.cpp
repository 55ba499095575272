// SPDX-License-Identifier: Apache-2.0
#include "src/rl/cma_es.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpusched/core/config.hpp"

namespace gpusched {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// Names are the tutorial's, in words.
struct CmaEs::Impl {
  Impl(std::span<const double> start, const CmaEsOptions& options, Rng stream)
      : mean(Eigen::Map<const Vector>(start.data(), static_cast<Eigen::Index>(start.size()))),
        step(options.step),
        rng(stream) {
    const auto n = static_cast<double>(mean.size());
    population = options.population > 0 ? options.population
                                        : std::max(12u, 4 + static_cast<std::uint32_t>(std::floor(3 * std::log(n))));
    parents = std::max(1u, population / 2);
    weights.resize(parents);
    for (Eigen::Index i = 0; i < weights.size(); ++i) {
      weights[i] = std::log(parents + 0.5) - std::log(static_cast<double>(i) + 1);
    }
    weights /= weights.sum();
    effective = 1 / weights.squaredNorm();
    path_rate = (4 + effective / n) / (n + 4 + 2 * effective / n);
    step_rate = (effective + 2) / (n + effective + 5);
    rank_one_rate = 2 / ((n + 1.3) * (n + 1.3) + effective);
    rank_many_rate = std::min(1 - rank_one_rate, 2 * (effective - 2 + 1 / effective) / ((n + 2) * (n + 2) + effective));
    step_damping = 1 + 2 * std::max(0.0, std::sqrt((effective - 1) / (n + 1)) - 1) + step_rate;
    expected_norm = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
    covariance = Matrix::Identity(mean.size(), mean.size());
    path = Vector::Zero(mean.size());
    step_path = path;
  }

  const std::vector<std::vector<double>>& ask() {
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(covariance);
    basis = solver.eigenvectors();
    constexpr double least_variance = 1e-20;
    scale = solver.eigenvalues().cwiseMax(least_variance).cwiseSqrt();
    moves.resize(mean.size(), population);
    candidates.clear();
    for (Eigen::Index i = 0; i < moves.cols(); ++i) {
      Vector normal(mean.size());
      for (double& value : normal) value = rng.normal();
      moves.col(i) = basis * scale.cwiseProduct(normal);
      const Vector candidate = mean + step * moves.col(i);
      candidates.emplace_back(candidate.begin(), candidate.end());
    }
    return candidates;
  }

  void tell(std::span<const double> losses) {
    std::vector<Eigen::Index> order(losses.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) {
      return losses[static_cast<std::size_t>(a)] < losses[static_cast<std::size_t>(b)];
    });
    Matrix best(mean.size(), weights.size());
    for (Eigen::Index i = 0; i < weights.size(); ++i) best.col(i) = moves.col(order[static_cast<std::size_t>(i)]);
    const Vector shift = best * weights;
    mean += step * shift;

    ++generation;
    const Vector whitened = basis * scale.cwiseInverse().cwiseProduct(basis.transpose() * shift);
    step_path = (1 - step_rate) * step_path + std::sqrt(step_rate * (2 - step_rate) * effective) * whitened;
    const double memory = std::sqrt(1 - std::pow(1 - step_rate, 2 * static_cast<double>(generation)));
    const double limit = (1.4 + 2 / (static_cast<double>(mean.size()) + 1)) * expected_norm;
    // A step size that grows fast would blow the covariance up through the path: the path then stands still.
    const double moving = step_path.norm() / memory < limit ? 1 : 0;
    path = (1 - path_rate) * path + moving * std::sqrt(path_rate * (2 - path_rate) * effective) * shift;
    const double lost = (1 - moving) * rank_one_rate * path_rate * (2 - path_rate);
    covariance = (1 - rank_one_rate - rank_many_rate + lost) * covariance + rank_one_rate * path * path.transpose() +
                 rank_many_rate * best * weights.asDiagonal() * best.transpose();
    step *= std::exp(step_rate / step_damping * (step_path.norm() / expected_norm - 1));
  }

  Vector mean;
  double step;
  Rng rng;
  std::uint32_t population = 0, parents = 0;
  Vector weights;
  double effective = 0;  // number of parents that equal weights would make
  double path_rate = 0, step_rate = 0, rank_one_rate = 0, rank_many_rate = 0, step_damping = 0, expected_norm = 0;
  Matrix covariance, basis, moves;
  Vector scale, path, step_path;
  std::vector<std::vector<double>> candidates;
  std::uint64_t generation = 0;
};

CmaEs::CmaEs(std::span<const double> start, const CmaEsOptions& options, Rng rng) {
  GPUSCHED_ASSERT(!start.empty(), "nothing to search");
  impl_ = std::make_unique<Impl>(start, options, rng);
}
CmaEs::CmaEs(CmaEs&&) noexcept = default;
CmaEs& CmaEs::operator=(CmaEs&&) noexcept = default;
CmaEs::~CmaEs() = default;

std::uint32_t CmaEs::population() const { return impl_->population; }
const std::vector<std::vector<double>>& CmaEs::ask() { return impl_->ask(); }
void CmaEs::tell(std::span<const double> losses) {
  GPUSCHED_ASSERT(losses.size() == impl_->candidates.size(), "one loss for each candidate");
  impl_->tell(losses);
}
std::vector<double> CmaEs::mean() const { return {impl_->mean.begin(), impl_->mean.end()}; }
double CmaEs::step() const { return impl_->step; }

CmaEsState CmaEs::state() const {
  const auto flat = [](const auto& matrix) {
    return std::vector<double>(matrix.data(), matrix.data() + matrix.size());
  };
  return {.mean = flat(impl_->mean),
          .covariance = flat(impl_->covariance),
          .path = flat(impl_->path),
          .step_path = flat(impl_->step_path),
          .step = impl_->step,
          .generation = impl_->generation,
          .rng = impl_->rng.state()};
}

bool CmaEs::fits(const CmaEsState& state) const {
  const auto n = static_cast<std::size_t>(impl_->mean.size());
  return state.mean.size() == n && state.covariance.size() == n * n && state.path.size() == n &&
         state.step_path.size() == n;
}

void CmaEs::restore(const CmaEsState& state) {
  GPUSCHED_ASSERT(fits(state), "the state of a search of other dimensions");
  const Eigen::Index n = impl_->mean.size();
  impl_->mean = Eigen::Map<const Vector>(state.mean.data(), n);
  impl_->covariance = Eigen::Map<const Matrix>(state.covariance.data(), n, n);
  impl_->path = Eigen::Map<const Vector>(state.path.data(), n);
  impl_->step_path = Eigen::Map<const Vector>(state.step_path.data(), n);
  impl_->step = state.step;
  impl_->generation = state.generation;
  impl_->rng = Rng::restore(state.rng);
}

}  // namespace gpusched
