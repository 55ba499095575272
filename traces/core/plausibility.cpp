// SPDX-License-Identifier: Apache-2.0
#include "traces/core/plausibility.hpp"

#include <algorithm>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

constexpr Time short_run = whole_seconds(10);
constexpr Time long_run = whole_seconds(30 * 86400);
constexpr double seconds_per_year = 365.25 * 86400;

std::string years(Time span) { return formatted("%.0f years", to_seconds(span) / seconds_per_year); }

}  // namespace

std::vector<std::string> plausibility_notes(const JobTable& jobs) {
  std::vector<std::string> notes;
  const bool no_gpu = std::all_of(jobs.shapes().begin(), jobs.shapes().end(),
                                  [](const Shape& shape) { return shape.gpu_milli_per_task == 0; });
  if (no_gpu) notes.emplace_back("no job has a GPU");
  const Time span = jobs.submits().back() - jobs.submits().front();
  if (span == Time{} && jobs.size() > 1) notes.emplace_back("all jobs are submitted at the same instant");
  if (to_seconds(span) > 20 * seconds_per_year) {
    notes.push_back("submissions span " + years(span) + ": are the times in another unit than seconds?");
  }
  std::vector<Time> runs(jobs.works().begin(), jobs.works().end());
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end());
  const Time median = *middle, longest = *std::max_element(runs.begin(), runs.end());
  const std::string of_median = "the median run time is " + human_duration(to_seconds(median)) + ": ";
  if (longest == Time{}) {
    notes.emplace_back("no job takes any time");
  } else if (median < short_run) {
    notes.push_back(of_median + "are the run times in minutes or hours, not in seconds?");
  } else if (median > long_run) {
    notes.push_back(of_median + "are the run times in milliseconds, not in seconds?");
  }
  if (to_seconds(longest) > 10 * seconds_per_year) notes.push_back("the longest job runs for " + years(longest));
  return notes;
}

}  // namespace gpusched
