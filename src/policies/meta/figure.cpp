// SPDX-License-Identifier: Apache-2.0
#include "src/policies/meta/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gpusched/core/slowdown_bound.hpp"
#include "gpusched/watch/percentile.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"

namespace gpusched {
namespace {

double average(const std::vector<JobResult>& jobs, double (*of)(const JobResult&)) {
  double sum = 0;
  for (const JobResult& job : jobs) sum += of(job);
  return sum / static_cast<double>(jobs.size());
}

double average_jct_s(const std::vector<JobResult>& jobs) {
  return average(jobs, [](const JobResult& job) { return to_seconds(job.age); });
}

double average_wait_s(const std::vector<JobResult>& jobs) {
  return average(jobs, [](const JobResult& job) { return to_seconds(job.waited); });
}

double average_slowdown(const std::vector<JobResult>& jobs) {
  return average(jobs, [](const JobResult& job) {
    const Time bound = std::max(job.length, slowdown_bound);
    return std::max(1.0, static_cast<double>(job.age.us) / static_cast<double>(bound.us));
  });
}

double late_wait_s(const std::vector<JobResult>& jobs) {
  std::vector<std::int64_t> waits;
  for (const JobResult& job : jobs) waits.push_back(job.waited.us);
  return detail::percentile(waits, 0.99) / static_cast<double>(microseconds_per_second);
}

struct FigureKind {
  const char* name;
  double (*of)(const std::vector<JobResult>&);
};
constexpr std::array<FigureKind, 4> figure_kinds{{{"avg_jct_s", average_jct_s},
                                                  {"avg_wait_s", average_wait_s},
                                                  {"avg_bounded_slowdown", average_slowdown},
                                                  {"p99_wait_s", late_wait_s}}};

std::vector<std::string> weighted_figure_names() {
  std::vector<std::string> names;
  for (const FigureKind& kind : figure_kinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace

Result<WeightedFigure> WeightedFigure::parse(std::string_view text) {
  WeightedFigure figure;
  while (true) {
    const std::size_t end = std::min(text.find('+'), text.size());
    std::string_view name = text.substr(0, end);
    Term term;
    if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
      const auto weight = parse_number(name.substr(0, colon));
      if (!weight || !(*weight > 0) || !std::isfinite(*weight)) {
        return unexpected("expected a positive weight before ':' in '" + std::string(name) + "'");
      }
      term.weight = *weight;
      name = name.substr(colon + 1);
    }
    const std::vector<std::string> names = weighted_figure_names();
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) {
      return unexpected("expected " + joined(names, "|") + ", or a sum as 1:avg_jct_s+600:avg_bounded_slowdown, not '" +
                        std::string(name) + "'" + suggest_nearest(std::string(name), names));
    }
    term.kind = static_cast<std::size_t>(known - names.begin());
    figure.terms_.push_back(term);
    if (end == text.size()) return figure;
    text = text.substr(end + 1);
  }
}

double WeightedFigure::of(const std::vector<JobResult>& jobs) const {
  double sum = 0;
  if (jobs.empty()) return sum;
  for (const Term& term : terms_) sum += term.weight * figure_kinds[term.kind].of(jobs);
  return sum;
}

const std::array<WeightedFigure, 3>& limited_figures() {
  static const std::array<WeightedFigure, 3> figures{*WeightedFigure::parse("avg_jct_s"),
                                                     *WeightedFigure::parse("p99_wait_s"),
                                                     *WeightedFigure::parse("avg_bounded_slowdown")};
  return figures;
}

ParameterInfo figure_parameter() {
  return {.name = "figure",
          .fallback = std::string("avg_jct_s"),
          .meaning = "what is to be low: " + joined(weighted_figure_names(), "|") +
                     ", or 1:avg_jct_s+600:avg_bounded_slowdown"};
}

}  // namespace gpusched
