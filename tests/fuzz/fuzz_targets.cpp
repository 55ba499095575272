// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_targets.hpp"

namespace gpusched::test {

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> table = [] {
    std::vector<FuzzTarget> all;
    for (const auto part : {trace_fuzz_targets(), file_fuzz_targets(), policy_fuzz_targets()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

}  // namespace gpusched::test
