// SPDX-License-Identifier: Apache-2.0
/// Contestants on windows compared with the reference, all of an evaluation at once: corrected for their number, and
/// beside what running the whole log gives.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/sim/evaluation.hpp"
#include "src/sim/log_evaluation.hpp"

namespace gpusched {

/// All contestants on the windows of one trace.
struct TraceEvaluation {
  std::string trace;    ///< as given
  std::string cluster;  ///< name
  EvaluationWindows windows;
  std::vector<std::uint32_t> starts;  ///< of the windows: first measured jobs
  std::vector<Contestant> contestants;
  std::optional<LogEvaluation> log = {};  ///< the same contestants on the whole log, where it was run
};

/// What is compared with whom.
struct ReportOptions {
  const MetricInfo* figure = nullptr;   ///< what is compared
  std::vector<SideFigure> beside = {};  ///< shown, not compared
  std::size_t reference = 0;            ///< contestant that the others are compared with
  std::string backfill;                 ///< as given, "none" for none
  std::uint64_t seed = 0;               ///< of the bootstrap
  WindowMean mean = WindowMean::arithmetic;

  /// For windows of which so many overlap.
  [[nodiscard]] ComparisonOptions with_overlap(std::size_t overlap) const { return {overlap, seed, mean}; }
};

/// What the whole log gives of a figure, and the reference there; nothing where a run did not end, or knows it not.
struct LogValues {
  std::optional<double> own, other;

  /// As a share of the other's.
  [[nodiscard]] std::optional<double> difference() const {
    if (!own || !other) return std::nullopt;
    if (*own == *other) return 0;
    return *other > 0 ? std::optional(*own / *other - 1) : std::nullopt;
  }
};

/// True of a verdict that tells which is better.
inline bool is_verdict(std::string_view text) { return text == is_better || text == is_worse; }

/// One contestant against the reference on one trace; of the reference itself the values alone.
struct WindowComparison {
  Comparison pair;                         ///< alone
  std::optional<double> p_holm;            ///< of its interval, corrected for all comparisons of the evaluation
  std::optional<BlockedSignedRank> ranks;  ///< of the windows
  std::optional<double> ranks_holm;        ///< its p, corrected for all such tests of the evaluation
  LogValues log;
  /// Better or worse only where p_holm is at most 0.05; windows_and_log_disagree where the whole log says the opposite.
  std::string verdict;
  /// "more windows better", or "more windows better, the log worse", where the ranks tell and the means do not; else
  /// empty.
  std::string typical;
  std::string why;  ///< why windows and log disagree, a sentence; else empty
};

inline constexpr std::string_view windows_and_log_disagree = "windows and log disagree";
/// The verdict where limits refuse, or the policies cancel, other jobs under one than under the other.
inline constexpr std::string_view other_jobs = "other jobs";

/// [trace][contestant]. Preconditions: the same contestants on each trace; logs ran without warm-up and further starts.
std::vector<std::vector<WindowComparison>> compare_windows(const std::vector<TraceEvaluation>& evaluations,
                                                           const ReportOptions& options);

}  // namespace gpusched
