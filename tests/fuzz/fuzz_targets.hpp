// SPDX-License-Identifier: Apache-2.0
/// The table of fuzz targets: what reads bytes that a user or an attacker may give. libFuzzer drives one of them
/// (fuzz_main.cpp); a test runs each over its corpus (fuzz_corpus_test.cpp).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

namespace gpusched::test {

/// One target. Its corpus is the folder `corpus/NAME`.
struct FuzzTarget {
  std::string_view name;
  /// Reads the bytes as the program would and checks what comes out. Reads from memory alone and writes nothing. Ends
  /// the process when something that must hold does not.
  void (*run)(std::string_view bytes);
};

/// Every target, in the order of scripts/fuzz.sh.
const std::vector<FuzzTarget>& fuzz_targets();

/// The parts of the table, a file each.
/// \{
std::span<const FuzzTarget> trace_fuzz_targets();
std::span<const FuzzTarget> file_fuzz_targets();
std::span<const FuzzTarget> policy_fuzz_targets();
/// \}

/// Ends the process with a message unless `holds`.
inline void must_hold(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz target: does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace gpusched::test
