// SPDX-License-Identifier: Apache-2.0
/// What the golden tests share: columns of published files, and averages over a run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {

/// The cells of a comma-separated file, by column name. For files known to be well-formed.
class CsvColumns {
 public:
  explicit CsvColumns(const std::string& path) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      std::vector<std::string> cells;
      std::istringstream parts(line + ',');
      for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
      rows_.push_back(cells);
    }
  }
  [[nodiscard]] std::size_t size() const { return rows_.size() - 1; }
  [[nodiscard]] const std::string& text(std::size_t row, const std::string& column) const {
    const auto& names = rows_.front();
    const auto at = std::find(names.begin(), names.end(), column) - names.begin();
    return rows_[row + 1][static_cast<std::size_t>(at)];
  }
  [[nodiscard]] std::int64_t integer(std::size_t row, const std::string& column) const {
    return std::stoll(text(row, column));
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// The figures of a run that the published tables contain.
struct RunFigures {
  double avg_jct_s = 0;
  double avg_pending_s = 0;
  double last_end_s = 0;
  std::uint64_t preemptions = 0;
};

inline RunFigures figures_of(const Engine& engine) {
  RunFigures figures;
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    const JobId job{i};
    const Time jct = engine.end(job) - engine.jobs().submit(job);
    figures.avg_jct_s += to_seconds(jct) / engine.jobs().size();
    figures.avg_pending_s += to_seconds(jct - engine.ran(job)) / engine.jobs().size();
    figures.last_end_s = std::max(figures.last_end_s, to_seconds(engine.end(job)));
    figures.preemptions += engine.preemptions(job);
  }
  return figures;
}

}  // namespace gpusched::test
