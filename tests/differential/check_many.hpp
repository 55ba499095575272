// SPDX-License-Identifier: Apache-2.0
/// rapidcheck with the number of cases said at the place, and the names of parameterised tests.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cctype>
#include <sstream>
#include <string>

#include "tests/support/random_runs.hpp"

namespace gpusched::test {

/// Fails the test, with a shrunk example, unless `property` holds for `cases` random cases or more (random_runs.hpp).
template <class Property>
void check_many(int cases, Property property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (!rapidcheck_is_told()) params.maxSuccess = static_cast<int>(random_runs(static_cast<std::uint64_t>(cases)));
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
