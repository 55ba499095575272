// SPDX-License-Identifier: Apache-2.0
/// Fits a SyntheticModel to a trace: `gpusched trace generate --like FILE`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {

/// How to fit.
struct FitOptions {
  /// Any Monday 00:00 in the trace's time; only the phase of the rhythm depends on it.
  Time week_start{};
  /// Jobs submitted earlier count nowhere: a way past the slow start of a trace.
  std::optional<Time> from = std::nullopt;
  /// At most so many jobs count, from the first that does.
  std::uint32_t jobs = no_index;
  /// A longer pause of one virtual cluster, user and GPU count ends a session.
  Time session_gap = whole_seconds(900);
};

/// The jobs that the fit counts, as the model sees them: with GPUs, the first options.jobs of those submitted at `from`
/// or later, with their tasks and requested times, without demands on processors, memory or GPU types.
JobTable fitted_jobs(const JobTable& jobs, const FitOptions& options = {});

/// The model whose calendar, sessions, rhythm, mixes, run times, attempts, statuses, tasks and requested times are
/// those of `jobs`. Jobs without a GPU are left out; a gang counts by its total of GPUs, rounded up to whole ones above
/// one (of single GPUs then). Errors: fewer than 100 jobs, or all submitted at once.
Result<SyntheticModel> fit_model(const JobTable& jobs, const FitOptions& options = {});

/// What `jobs` have and a twin has not, in words, such as "memory" or "12 jobs without a GPU". `of_users`: a twin of
/// fit_model(); false: of fit_lublin().
std::vector<std::string> missing_in_twins(const JobTable& jobs, const FitOptions& options, bool of_users);

}  // namespace gpusched
