// SPDX-License-Identifier: Apache-2.0
/// Portfolio: the present state is played forward under each member, and the best takes over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "src/policies/meta/candidates.hpp"
#include "src/policies/meta/figure.hpp"
#include "src/policies/meta/members.hpp"
#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

struct PortfolioOptions {
  Time every = whole_seconds(3600);  ///< between two evaluations, at least
  double load_change = 0;  ///< evaluates earlier when the GPUs asked for are so many times more or fewer; 0: never
  Time horizon = whole_seconds(86400);  ///< how far is played
  bool exact = false;                   ///< true run times: clairvoyant
  bool resamples = false;               ///< arrivals are drawn from those of late
  std::uint64_t budget_events = 0;      ///< of an evaluation; 0: no limit
  double smart_share = 0.6;             ///< as Candidates
  double switch_cost = 0;               ///< in units of the figure: a member that would take over counts so much worse
  bool ties_stay = false;               ///< equal values leave the run to who has it; else to the member named last
};

/// At the first instant at which jobs wait since before, or ask for more than is free, and then at the first one
/// `every` after each evaluation, the state is copied once for each member. On the copy no job comes, or one like a job
/// of late at each of the distances at which jobs came of late (resamples; alike for every member), no node fails or
/// comes back, and no user changes a job; jobs run for as long as is predicted (or truly, exact). Who has the run goes
/// on as it is, the others join as they would in the run. Each plays until all jobs are done or the horizon is reached;
/// jobs that are not done then count with their age. The member with the least figure over the jobs that wait or run
/// now has the run from then on. With one member nothing is evaluated.
class Portfolio {
 public:
  Portfolio(Members members, WeightedFigure figure, AnyDurationEstimator estimator, PortfolioOptions options, Rng rng,
            bool holds_jobs_back);

  [[nodiscard]] std::string_view name() const { return "portfolio"; }
  [[nodiscard]] bool clairvoyant() const;
  void decide(const OracleView& view, Decision& decision);

  /// portfolio.csv: of each evaluation, a row for each member.
  [[nodiscard]] std::string notes() const;

 private:
  // What an evaluation says of a member.
  struct Estimate {
    std::optional<double> value;  // none: it was not tried, or not to the end
    std::uint64_t events = 0;     // of its trial
    Candidates::Set set = Candidates::Set::smart;
  };
  struct Evaluation {
    Time time{};
    std::size_t chosen = 0;
    std::vector<Estimate> members;
  };

  [[nodiscard]] bool is_due(const View& view) const;
  [[nodiscard]] std::size_t evaluate(const OracleView& view);
  [[nodiscard]] std::size_t best_of(const std::vector<Estimate>& members) const;
  // The work left of the jobs that wait, run or wait for others.
  [[nodiscard]] std::vector<Belief> beliefs(const OracleView& view);
  // Draws the jobs of the time to come into the rows behind those that were submitted; how many.
  [[nodiscard]] std::uint32_t draw_arrivals(const OracleView& view);
  [[nodiscard]] Estimate play(Engine engine, std::size_t member, const std::vector<JobId>& jobs,
                              const std::vector<Time>& lengths) const;

  Members members_;
  WeightedFigure figure_;
  AnyDurationEstimator estimator_;
  PortfolioOptions options_;
  Candidates candidates_;
  Rng rng_;
  bool holds_jobs_back_;  // behind others, or at limits
  std::vector<Evaluation> evaluations_;
  MilliGpu asked_ = 0;  // at the last evaluation
};

}  // namespace gpusched
