// SPDX-License-Identifier: Apache-2.0
// For paired_tests_oracle.py. "pratt" or "wilcox": "p positive negative" of each line of differences. "runs": the
// probability of improvement and the interquartile mean of our runs, a line a run, an empty line, and theirs.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/paired_tests.hpp"

namespace {

std::vector<double> numbers_in(const std::string& line) {
  std::istringstream words(line);
  std::vector<double> values;
  for (double value = 0; words >> value;) values.push_back(value);
  return values;
}

}  // namespace

int main(int count, char** words) {
  const std::string how = count == 2 ? words[1] : "";
  gpusched::RunScores sides[2];
  std::size_t side = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<double> values = numbers_in(line);
    if (how == "runs") {
      values.empty() ? void(side = 1) : sides[side].push_back(values);
      continue;
    }
    const auto found = gpusched::signed_rank_test(
        values, how == "pratt" ? gpusched::ZeroDifferences::pratt : gpusched::ZeroDifferences::wilcoxon);
    std::printf("%.17g %.17g %.17g\n", found.p, found.positive, found.negative);
  }
  if (how != "runs") return 0;
  const gpusched::RunScores ones{std::vector<double>(sides[0].front().size(), 1.0)};
  std::printf("%.17g %.17g\n", gpusched::probability_below(sides[0], sides[1]),
              *gpusched::normalised_interquartile_mean(sides[0], ones));
  return 0;
}
