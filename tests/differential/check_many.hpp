// SPDX-License-Identifier: Apache-2.0
/// rapidcheck with the number of cases said at the place, and the names of parameterised tests.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <sstream>
#include <string>

#include "tests/support/random_runs.hpp"

namespace gpusched::test {

/// Fails the test, with a shrunk example, unless `property` holds for a quarter of `cases` random cases, a hundred of
/// them at least; for all of them and more where more runs are asked for (random_runs.hpp), as scripts/deep_test.sh
/// does.
template <class Property>
void check_many(int cases, Property property) {
  constexpr int least = 100;
  const int usual = std::min(cases, std::max(least, cases / 4));
  const auto all = static_cast<std::uint64_t>(cases), drawn = random_runs(static_cast<std::uint64_t>(usual));
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (!rapidcheck_is_told()) {
    params.maxSuccess = static_cast<int>(drawn > static_cast<std::uint64_t>(usual) ? std::max(all, drawn) : drawn);
  }
  const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata(), params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  FAIL() << message.str();
}

/// A policy's name as gtest may print it: letters, digits and '_' alone.
inline std::string readable(std::string name) {
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

}  // namespace gpusched::test
