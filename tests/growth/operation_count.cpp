// SPDX-License-Identifier: Apache-2.0
// Compiled without instrumentation: the compiler calls the first function at each basic block of what has it, and the
// linker gives the others in the place of the C library's (--wrap).
#include "tests/growth/operation_count.hpp"

#include <cstddef>

namespace {

std::uint64_t counted = 0;

constexpr std::uint64_t words(std::size_t bytes) { return bytes / sizeof(std::uint64_t); }

}  // namespace

// The names are the compiler's and the linker's.
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
extern "C" {

void __sanitizer_cov_trace_pc();
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memset(void* to, int byte, std::size_t bytes);
void* __wrap_memmove(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes);
void* __wrap_memset(void* to, int byte, std::size_t bytes);

void __sanitizer_cov_trace_pc() { ++counted; }

void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  counted += words(bytes);
  return __real_memmove(to, from, bytes);
}

void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  counted += words(bytes);
  return __real_memcpy(to, from, bytes);
}

void* __wrap_memset(void* to, int byte, std::size_t bytes) {
  counted += words(bytes);
  return __real_memset(to, byte, bytes);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)

namespace gpusched::test {

std::uint64_t operations() { return counted; }

}  // namespace gpusched::test
