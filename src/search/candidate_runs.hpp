// SPDX-License-Identifier: Apache-2.0
/// CandidateRuns: policies on windows of the search's trace, by the workers and the store of a sweep.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/search/search_file.hpp"
#include "src/sim/replay.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_store.hpp"
#include "src/sweep/sweep_workers.hpp"
#include "src/world/sites_reader.hpp"

namespace gpusched {

/// What a policy reaches in a set of windows.
struct PolicyFigures {
  std::vector<double> means;  ///< one for each objective, over the windows; empty where a run has no figures
  std::string failure = {};   ///< why
};

/// First measured jobs of windows: of each part those that lie in it with their warm-up, evenly spaced. No two windows
/// share a job, so that none that is held out shares one with a training window.
struct SearchWindows {
  std::vector<std::uint32_t> train, held_out;
};

/// Error: a part is too short; the message says how many windows fit.
Result<SearchWindows> search_windows(const Search& search, std::uint32_t trace_jobs);

/// The database in a search's folder.
inline constexpr const char* search_database_name = "search.sqlite";

class CandidateRuns {
 public:
  /// Reads the trace once to place the windows, and checks every policy of `compare`. Errors are the user's.
  static Result<CandidateRuns> load(const Search& search, const PolicyRegistry& registry);

  /// Opens the store in the search's folder. Precondition of score().
  Result<void> open_store();

  [[nodiscard]] const SearchWindows& windows() const { return windows_; }
  [[nodiscard]] std::uint32_t trace_jobs() const { return input_->trace.jobs.size(); }
  [[nodiscard]] const RunInput& input() const { return *input_; }
  /// What every run has.
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  /// Policies of `compare`, each as written in full.
  [[nodiscard]] const std::vector<std::string>& heuristics() const { return heuristics_; }
  /// Files that runs read, as far as runs were planned.
  [[nodiscard]] const std::vector<SweepInputFile>& files() const { return files_; }
  /// Whether a policy reads true run times. Precondition: it can be made.
  [[nodiscard]] bool clairvoyant(const std::string& policy) const;
  /// Runs that were carried out, and those that the store had.
  [[nodiscard]] std::uint64_t ran() const { return ran_; }
  [[nodiscard]] std::uint64_t stored() const { return stored_; }

  /// Takes the store away again that open_store() made new: of a search that was refused.
  void discard_new_store();
  /// Of each policy what score() gives, as far as it is stored. Precondition: open_store().
  std::vector<std::optional<PolicyFigures>> stored_figures(std::span<const std::string> policies,
                                                           std::span<const std::uint32_t> windows);

  /// Errors: the policy cannot be made for these jobs on this cluster; its conditions cannot be read, or do not fit.
  Result<void> check(const std::string& policy) const;

  /// The figures of each policy in the windows whose first measured jobs are given. What the store has is not run
  /// again. Errors: `stop` became true; results cannot be stored.
  Result<std::vector<PolicyFigures>> score(std::span<const std::string> policies,
                                           std::span<const std::uint32_t> windows, const std::atomic<bool>* stop);

 private:
  CandidateRuns(const Search& search, const PolicyRegistry& registry) : search_(&search), registry_(&registry) {}
  Result<void> read_input(const SweepPoint& point);
  Result<void> check_figures() const;
  Result<void> check_conditions(const SweepPoint& point) const;
  Result<SweepPlan> plan(std::span<const std::string> policies, std::span<const std::uint32_t> windows);
  Result<void> run_missing(const SweepPlan& plan, const std::atomic<bool>* stop);
  Result<PolicyFigures> figures_of(const SweepPlan& plan, std::size_t policy, std::size_t policies,
                                   std::size_t windows) const;

  const Search* search_;
  const PolicyRegistry* registry_;
  std::unique_ptr<RunInput> input_;
  Scenario scenario_;
  std::unique_ptr<SitesOfRun> sites_;  // of the base; null: one cluster
  std::string router_;                 // of those that name none
  SearchWindows windows_;
  std::vector<std::string> heuristics_;
  mutable std::set<std::string> tried_;  // conditions
  std::optional<SweepStore> store_;
  bool is_new_store_ = false;
  std::vector<SweepInputFile> files_;
  std::uint64_t ran_ = 0, stored_ = 0;
};

}  // namespace gpusched
