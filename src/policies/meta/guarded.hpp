// SPDX-License-Identifier: Apache-2.0
/// Guarded: an agent has the run only while it would have done clearly better than plain policies on the log so far.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/policies/meta/figure.hpp"
#include "src/policies/meta/guard_rule.hpp"
#include "src/policies/meta/members.hpp"
#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

/// When the past is replayed, and what is asked of an agent.
struct GuardOptions {
  std::uint32_t first_jobs = 1000;           ///< submitted before the first evaluation
  double growth = 1.5;                       ///< each comes when so many times as many are
  std::size_t stretches = 10;                ///< of the past, between which differences vary
  double margin = 0.02;                      ///< may_replace()
  std::uint64_t budget_events = 20'000'000;  ///< of a replay of one policy, which is given up then
};

/// The first policy begins, and is in charge. An evaluation replays the log so far, from its first submission until all
/// of its jobs are done, under each policy as it was made before the run: on the whole empty cluster, by the run's
/// rules of placement, preemption and speed, without failures and changes, and with rigid jobs. Jobs that are done run
/// there for as long as they did, others for as long as is predicted. Of the plain policies that may_replace() the one
/// in charge, the one of the least figure takes charge. The run goes to it or, of the agents that may_replace() it and
/// are better than every plain policy, to the best. With one policy nothing is evaluated.
class Guarded {
 public:
  /// The members from number `plain` on are agents. `runtime` is borrowed; null: reference rates.
  Guarded(Members members, std::size_t plain, WeightedFigure figure, AnyDurationEstimator estimator,
          const GuardOptions& options, Cluster cluster, const RuntimeModel* runtime);

  /// As any policy.
  /// \{
  [[nodiscard]] std::string_view name() const { return "guarded"; }
  [[nodiscard]] bool clairvoyant() const { return members_.clairvoyant() || estimator_.clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);
  /// \}
  /// guarded.csv: of each evaluation, a row for each policy.
  [[nodiscard]] std::string notes() const;

 private:
  struct Estimate {
    std::optional<PastFigures> figures;  // none: the replay was given up, or left jobs waiting
    std::uint64_t events = 0;            // of it
    std::optional<double> difference;    // highest_difference() from the plain policy in charge
  };
  struct Evaluation {
    Time time{};
    std::uint32_t jobs = 0;
    std::size_t chosen = 0;
    std::vector<Estimate> members;
  };

  [[nodiscard]] std::size_t evaluate(const OracleView& view);
  // The jobs submitted so far, with what is known or believed of their run times.
  [[nodiscard]] BelievedJobs past(const OracleView& view);
  [[nodiscard]] Estimate replay(std::size_t member, const JobTable& jobs, const EngineOptions& options) const;
  [[nodiscard]] std::size_t choose(std::vector<Estimate>& members);

  Members members_;
  std::size_t plain_;
  WeightedFigure figure_;
  AnyDurationEstimator estimator_;
  GuardOptions options_;
  Cluster cluster_;
  const RuntimeModel* runtime_;
  std::size_t in_charge_ = 0;    // the plain policy that goes on where no agent does
  std::uint32_t next_;           // jobs submitted at the next evaluation
  std::vector<bool> was_clear_;  // by member: at the last evaluation it might have taken over
  std::vector<Evaluation> evaluations_;
  std::map<JobId, Time> given_up_;  // by a member: how long each job was believed to run in all
};

}  // namespace gpusched
