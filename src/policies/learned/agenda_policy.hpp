// SPDX-License-Identifier: Apache-2.0
/// The decision process of learned schedulers under a fixed order: what an agent is compared with, choice for choice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "gpusched/learn/agenda.hpp"
#include "gpusched/learn/known_runs.hpp"
#include "src/policies/learned/agenda_backfill.hpp"
#include "src/policies/queues/job_heaps.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The estimator that knows what an agent of that knowledge does (KnownRuns), as `estimate` calls it; "" for none.
std::string estimator_name(RuntimeKnowledge knowledge);

/// An error where the cluster has limits (Cluster::limits) and an agent of that mode, named in it, does not take them.
Result<void> check_limits(const std::string& agent, ActionMode mode, const PolicyContext& context);

/// Makes every choice that an Agenda offers as its heuristic prefers. In the modes fit_or_wait and inspect that starts
/// the first job that fits, again and again; in select_blocking the first job, and nothing else until it has started.
/// These modes keep waiting jobs in heaps, without the Agenda's list of them: O(shapes + log n) a start. Modes backfill
/// and reserve and sc20_backfill use AgendaBackfill; mode preempt costs what PreemptiveOrder does.
class AgendaPolicy {
 public:
  /// `true_runs` and `history`: as Agenda.
  AgendaPolicy(const AgendaOptions& options, std::span<const Time> true_runs, const JobHistory& history = {});

  [[nodiscard]] std::string_view name() const { return "agenda"; }
  [[nodiscard]] bool clairvoyant() const { return agenda_.options().clairvoyant(); }
  void decide(const View& view, Decision& decision);

 private:
  // How the preferred choice is found.
  enum class Way : std::uint8_t { choices, key, backfill };

  static Way way_of(const AgendaOptions& options);
  void observe(const View& view);
  void wait(const View& view, JobId job);
  void withdraw(const View& view, JobId job);
  void start_by_key(const View& view, Decision& decision);

  Agenda agenda_;
  Way way_;
  // Used where the Agenda is not.
  KnownRuns known_;
  AgendaBackfill backfill_;
  // All queues in one order; equal keys go to the job that began to wait first.
  JobHeaps<std::pair<double, std::uint32_t>> waiting_{true};
  std::uint32_t waits_ = 0;  // how many jobs began to wait so far
  JobId chosen_ = no_job;    // select_blocking
};

}  // namespace gpusched
