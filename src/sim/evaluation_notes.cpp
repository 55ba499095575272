// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluation_notes.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

// Jobs of its windows, over all runs.
void note_left_out(const Contestant& contestant, const LeftOutJobs& left_out, std::vector<std::string>& notes) {
  double all = 0;
  for (const PolicyScores& run : contestant.runs) {
    for (const std::optional<Metrics>& window : run.windows) all += window ? ((*window).*left_out.jobs).value_or(0) : 0;
  }
  if (all == 0) return;
  notes.push_back(contestant.name + ": " + std::string(left_out.reason) + " " +
                  counted(static_cast<std::uint64_t>(all), "job") + " of its windows" +
                  (contestant.runs.size() > 1 ? ", over all seeds" : "") + ", which no average counts");
}

// Of deadlines where no job has one, of trials where none reported a loss, of averages where no job is averaged.
void note_unknown(const Contestant& contestant, const MetricInfo& figure, std::vector<std::string>& notes) {
  const std::size_t finished = contestant.finished_windows().size();
  const std::size_t known = contestant.windows_with(figure).size();
  if (known == finished) return;
  notes.push_back(contestant.name + ": " + figure.name +
                  (known == 0 ? " is not known in any window"
                              : " is not known in " + std::to_string(finished - known) + " of " +
                                    counted(finished, "window") + ", and its mean leaves these out"));
}

// Windows that one of both does not know are in neither mean of a comparison, but in the mean of the reference's own
// row.
void note_common(const Contestant& contestant, const Contestant& reference, const MetricInfo& figure,
                 std::vector<std::string>& notes) {
  const std::size_t common = common_windows(contestant, reference, figure).size();
  const std::size_t ours = contestant.windows_with(figure).size(), theirs = reference.windows_with(figure).size();
  if (common == 0 || (common == ours && common == theirs)) return;
  notes.push_back(contestant.name + ": " + figure.name + " and its difference from " + reference.name + " are of the " +
                  counted(common, "window") + " that both know");
}

}  // namespace

std::vector<std::string> window_notes(const Contestant& contestant, const Contestant& reference,
                                      const ReportOptions& options) {
  std::vector<std::string> notes;
  for (const LeftOutJobs& left_out : left_out_jobs()) note_left_out(contestant, left_out, notes);
  const std::size_t saturated = contestant.saturated_windows();
  if (saturated > 0) {
    notes.push_back(contestant.name + ": saturated, the queue grows for as long as jobs arrive, in " +
                    std::to_string(saturated) + " of " + counted(contestant.finished_windows().size(), "window") +
                    ": means depend on their length");
  }
  std::vector<const MetricInfo*> figures{options.figure};
  for (const SideFigure& figure : options.beside) {
    if (std::find(figures.begin(), figures.end(), figure.metric) == figures.end()) figures.push_back(figure.metric);
  }
  for (const MetricInfo* figure : figures) {
    note_unknown(contestant, *figure, notes);
    note_common(contestant, reference, *figure, notes);
  }
  return notes;
}

}  // namespace gpusched
