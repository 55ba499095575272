// SPDX-License-Identifier: Apache-2.0
/// Duration estimators: a scheduler's estimates of run times, behind one interface. Those that learn see a View only,
/// and so learn from finished jobs alone.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// `estimate` gives the run time of the job's present attempt in whole; it may ask for true run times by taking an
/// OracleView. An estimator that learns also has `observe(view)`, called once an instant before any estimate; one that
/// rests on another has `clairvoyant()`.
template <class E>
concept DurationEstimator = std::copyable<E> && requires(E estimator, const OracleView& view, JobId job) {
  { estimator.estimate(view, job) } -> std::same_as<Time>;
};

/// Any estimator, by value.
class AnyDurationEstimator {
 public:
  template <class E>
  requires(!std::same_as<E, AnyDurationEstimator>) && DurationEstimator<E> explicit AnyDurationEstimator(E estimator)
      : self_(std::make_unique<Model<E>>(std::move(estimator))) {}

  AnyDurationEstimator(const AnyDurationEstimator& other) : self_(other.self_->clone()) {}
  AnyDurationEstimator(AnyDurationEstimator&&) noexcept = default;
  AnyDurationEstimator& operator=(AnyDurationEstimator other) noexcept {
    self_ = std::move(other.self_);
    return *this;
  }
  ~AnyDurationEstimator() = default;

  /// Learns from what finished at this instant.
  void observe(const View& view) { self_->observe(view); }
  /// Believed run time of the job's present attempt; never negative.
  [[nodiscard]] Time estimate(const OracleView& view, JobId job) { return self_->estimate(view, job); }
  /// True when estimates come from true run times, which no real scheduler has.
  [[nodiscard]] bool clairvoyant() const { return self_->clairvoyant(); }

 private:
  struct Concept {
    virtual ~Concept() = default;
    [[nodiscard]] virtual std::unique_ptr<Concept> clone() const = 0;
    virtual void observe(const View& view) = 0;
    virtual Time estimate(const OracleView& view, JobId job) = 0;
    [[nodiscard]] virtual bool clairvoyant() const = 0;
  };

  template <class E>
  struct Model final : Concept {
    explicit Model(E e) : estimator(std::move(e)) {}
    [[nodiscard]] std::unique_ptr<Concept> clone() const override { return std::make_unique<Model>(estimator); }
    void observe(const View& view) override {
      if constexpr (requires { estimator.observe(view); }) estimator.observe(view);
    }
    Time estimate(const OracleView& view, JobId job) override { return estimator.estimate(view, job); }
    [[nodiscard]] bool clairvoyant() const override {
      if constexpr (requires { estimator.clairvoyant(); }) return estimator.clairvoyant();
      return !requires(E e, const View& view, JobId job) { e.estimate(view, job); };
    }
    E estimator;
  };

  std::unique_ptr<Concept> self_;
};

/// The true run time.
struct ExactDuration {
  [[nodiscard]] Time estimate(const OracleView& view, JobId job) const {
    if (view.phase(job) == JobPhase::running) return view.expected_end(job) - view.running_since(job);
    return std::min(view.remaining(job), view.limit_left(job));
  }
};

/// Always 0: for orders that look at no run time.
struct NoDuration {
  [[nodiscard]] Time estimate(const View&, JobId) const { return {}; }
};

/// What another estimator says, as time on the fastest GPU type that the job may use: its estimate divided by the best
/// of View::speeds().
class AtBestSpeed {
 public:
  explicit AtBestSpeed(AnyDurationEstimator inner) : inner_(std::move(inner)) {}
  void observe(const View& view) { inner_.observe(view); }
  [[nodiscard]] Time estimate(const OracleView& view, JobId job);
  [[nodiscard]] bool clairvoyant() const { return inner_.clairvoyant(); }

 private:
  AnyDurationEstimator inner_;
};

/// The job's speed on the GPU type where it is fastest, of those that the cluster has and the job may use.
RatePpm best_speed(const View& view, JobId job);

/// One row of the table of estimators.
struct DurationEstimatorInfo {
  std::string name;
  std::string summary;  ///< what it does and needs, one line
};

/// Every estimator by its command-line name.
const std::vector<DurationEstimatorInfo>& duration_estimators();

/// Which estimator, and its parameters.
struct DurationEstimatorOptions {
  std::string name = "requested";
  double noise_sigma = 0.5;  ///< "noisy": standard deviation of the logarithm of the error
  double quantile = 0.5;     ///< "quantile": the conditional quantile that is predicted
  double seed = 0;           ///< "noisy": of its draws, beside the run's own (seed_parameter.hpp)
  /// "history", "requested": of RecentRuns; 0: RuntimePredictor, to which all jobs count alike. Chosen on first parts
  /// of logs (experiments/predictions).
  double half_life_jobs = 300;
};

/// The estimator for a run over `context.jobs`, random draws coming from `context.seed`. Errors on an unknown name, and
/// names the column that the jobs lack.
Result<AnyDurationEstimator> make_duration_estimator(const DurationEstimatorOptions& options,
                                                     const PolicyContext& context);

/// The parameters estimate (with the given default), noise_sigma, seed, quantile and half_life_jobs, for every policy
/// that uses estimates.
std::vector<ParameterInfo> estimate_parameters(const std::string& fallback);

/// The estimator that those parameters name.
Result<AnyDurationEstimator> make_duration_estimator(const PolicyParameters& parameters, const PolicyContext& context);

}  // namespace gpusched
