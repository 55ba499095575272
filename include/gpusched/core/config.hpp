// SPDX-License-Identifier: Apache-2.0
/// Build-wide switches: the version and the assertion that guards against misuse.
///
/// Misuse (an id out of range, a call out of order) is a programming error and asserts; bad input is data and
/// returns a Result (result.hpp). The assertion is active without NDEBUG or with GPUSCHED_VALIDATE.
#pragma once

#include <cstdio>
#include <cstdlib>

#define GPUSCHED_VERSION_MAJOR 0
#define GPUSCHED_VERSION_MINOR 1
#define GPUSCHED_VERSION_PATCH 0
#define GPUSCHED_VERSION "0.1.0"

/// Of a function that few runs need: it is kept out of those that call it, which stay short and fast.
#define GPUSCHED_RARE [[gnu::noinline]]
/// Of a short function that every event or choice passes through: it becomes part of those that call it. Compilers
/// leave it out where they see it called from many places, though most of these are rare.
#define GPUSCHED_HOT [[gnu::always_inline]]

namespace gpusched {

/// Called with the failed condition, a message and its place; the default prints one line and aborts.
using AssertHandler = void (*)(const char* condition, const char* message, const char* file, int line);

namespace detail {

inline void default_assert_handler(const char* condition, const char* message, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: %s (%s)\n", file, line, message, condition);
  std::abort();
}

inline AssertHandler assert_handler = default_assert_handler;

}  // namespace detail

/// Replaces the assertion handler for the whole process (not thread-safe: call it before any engine runs).
inline void set_assert_handler(AssertHandler handler) {
  detail::assert_handler = handler != nullptr ? handler : detail::default_assert_handler;
}

}  // namespace gpusched

#if defined(GPUSCHED_OWN_POLICY)
#include "gpusched/core/policy_misuse.hpp"
#elif defined(NDEBUG) && !defined(GPUSCHED_VALIDATE)
#define GPUSCHED_ASSERT(condition, message) static_cast<void>(sizeof(static_cast<bool>(condition)))  // not evaluated
#else
#define GPUSCHED_ASSERT(condition, message)            \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::gpusched::detail::assert_handler(#condition, message, __FILE__, __LINE__))
#endif

// Ids and the like that are used in the innermost loops: checked in policies outside the tree alone.
#ifndef GPUSCHED_OWN_POLICY
#define GPUSCHED_CHECKED(id, column, message) id
#define GPUSCHED_JOB(job) index(job)
#define GPUSCHED_NODE(node) index(node)
#define GPUSCHED_CHANGE(change, left) change
#define GPUSCHED_NOTE_VACATED(grants) grants
#endif
