// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluation_notes.hpp"

#include <cstdint>
#include <optional>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

// Where limits refuse jobs, or the policy cancels some, windows of one policy have other jobs than those of another.
void note_left_out(const Contestant& contestant, const char* what, std::optional<double> Metrics::*jobs,
                   std::vector<std::string>& notes) {
  const double all = left_out_jobs(contestant, jobs);
  if (all == 0) return;
  notes.push_back(contestant.name + ": " + what + " " + counted(static_cast<std::uint64_t>(all), "job") +
                  " of its windows, which no average counts: means are of other jobs than another policy's");
}

// Of deadlines where no job has one, of trials where none reported a loss.
void note_unknown(const Contestant& contestant, const MetricInfo& figure, std::vector<std::string>& notes) {
  const std::size_t finished = contestant.finished_windows().size();
  const std::size_t unknown = finished - contestant.windows_with(figure).size();
  if (unknown == 0) return;
  notes.push_back(contestant.name + ": " + figure.name + " is not known in " + std::to_string(unknown) + " of " +
                  counted(finished, "window") + ", and its mean leaves these out");
}

}  // namespace

std::vector<std::string> window_notes(const Contestant& contestant, const ReportOptions& options) {
  std::vector<std::string> notes;
  note_left_out(contestant, "limits refuse", &Metrics::refused_jobs, notes);
  note_left_out(contestant, "it cancels", &Metrics::policy_cancelled_jobs, notes);
  const std::size_t saturated = contestant.saturated_windows();
  if (saturated > 0) {
    notes.push_back(contestant.name + ": saturated, the queue grows for as long as jobs arrive, in " +
                    std::to_string(saturated) + " of " + counted(contestant.finished_windows().size(), "window") +
                    ": means depend on their length");
  }
  note_unknown(contestant, *options.figure, notes);
  for (const SideFigure& figure : options.beside) note_unknown(contestant, *figure.metric, notes);
  return notes;
}

}  // namespace gpusched
