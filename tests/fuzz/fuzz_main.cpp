// SPDX-License-Identifier: Apache-2.0
// The fuzzer: libFuzzer on one target.
//   gpusched_fuzz --target=NAME [libFuzzer's options] CORPUS...
//   gpusched_fuzz --list
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_targets.hpp"

namespace {

using gpusched::test::fuzz_targets;
using gpusched::test::FuzzTarget;

const FuzzTarget* chosen = nullptr;

void list_targets() {
  for (const FuzzTarget& target : fuzz_targets()) std::printf("%s\n", std::string(target.name).c_str());
}

void choose(std::string_view name) {
  for (const FuzzTarget& target : fuzz_targets()) {
    if (target.name == name) chosen = &target;
  }
}

}  // namespace

// libFuzzer leaves options that begin with "--" to the program.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view option = "--target=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument == "--list") {
      list_targets();
      std::exit(0);
    }
    if (argument.starts_with(option)) choose(argument.substr(option.size()));
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "gpusched_fuzz: expected --target= and one of these:\n");
  list_targets();
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
