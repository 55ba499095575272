// SPDX-License-Identifier: Apache-2.0
/// Members: the policies between which another one chooses, one of which has the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/believed_jobs.hpp"
#include "gpusched/policy/adopted_policy.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// A value. The first member has the run from the beginning; others join in mid-run (AdoptedPolicy), made anew each
/// time. What a member that joins predicts rests on the latest jobs that ended in this run; members whose makers read
/// files, agents apart, and those of shared libraries, join as they were made before the run.
class Members {
 public:
  /// The jobs that a member which joins learns from.
  struct Memory {
    /// At most so many that ended last.
    std::size_t most = 2048;
    /// As long as fewer ended in this run, what was known before it says more.
    std::size_t enough = 256;
  };

  /// The members of these names, which the policy `owner` holds. Errors: none is named, one is named twice, cannot be
  /// made, holds policies itself, or is a process.
  static Result<Members> make(const std::string& owner, const std::vector<std::string>& names,
                              const PolicyContext& context, const Memory& memory);
  /// Those that the parameter `policies` names.
  static Result<Members> make(const std::string& owner, const PolicyParameters& parameters,
                              const PolicyContext& context) {
    return make(owner, parameters.policies("policies"), context, {});
  }

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  /// A member's name as written.
  [[nodiscard]] const std::string& name(std::size_t member) const { return members_[member].spec.text; }
  /// As it was made before the run.
  [[nodiscard]] const AnyPolicy& made(std::size_t member) const { return members_[member].made; }
  /// Some member reads true run times.
  [[nodiscard]] bool clairvoyant() const;
  /// Who has the run.
  [[nodiscard]] std::size_t active() const { return active_; }
  /// Somebody was asked already. Until then whoever is asked begins, and nobody joins.
  [[nodiscard]] bool began() const { return began_; }
  /// As it is.
  [[nodiscard]] const AdoptedPolicy& policy() const { return policy_; }

  /// Every job had ended before this instant: whoever asked to be woken has nothing to decide.
  [[nodiscard]] bool was_over() const { return was_over_; }
  /// The present instant, or the last at which not every job had ended before.
  [[nodiscard]] Time last() const { return last_; }

  /// Notes the jobs that ended. Comes once an instant, before the others.
  void observe(const View& view);
  /// A member that is to join at this instant.
  [[nodiscard]] AdoptedPolicy fresh(std::size_t member) const;
  /// Lets the member decide, which takes over if another one had the run.
  void decide(std::size_t member, const OracleView& view, Decision& decision);
  /// What is believed of jobs: of those that ended what they ran; of the others, what who holds the members notes.
  [[nodiscard]] BelievedJobs& believed() { return jobs_; }

 private:
  struct Member {
    PolicySpec spec;
    AnyPolicy made;  // before the run
    bool is_remade = false;
  };
  Members(std::vector<Member> members, const PolicyContext& context, const Memory& memory);

  std::vector<Member> members_;
  Memory memory_;
  PolicyContext context_;  // without what is borrowed for a call
  Cluster cluster_;
  bool has_past_ = false;             // before the run
  BelievedJobs jobs_;                 // those that ended, with what they ran
  std::vector<std::uint32_t> ended_;  // jobs of the run, in order of their ends
  std::size_t active_ = 0;
  AdoptedPolicy policy_;
  bool began_ = false, is_over_ = false, was_over_ = false;
  Time last_{};
};

/// The parameter `policies`.
ParameterInfo members_parameter(std::vector<std::string> fallback);

/// The files that the policies read which a parameter of a policy as written names.
std::vector<std::string> files_of_policies(const PolicySpec& spec, const std::string& parameter);
/// Of the parameter `policies`.
std::vector<std::string> files_of_members(const PolicySpec& spec);

}  // namespace gpusched
