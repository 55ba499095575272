// SPDX-License-Identifier: Apache-2.0
/// How misuse is found in a policy outside the tree (gpusched/plugin/policy_plugin.hpp): it throws, so that the program
/// can report it. Included by config.hpp where GPUSCHED_OWN_POLICY is defined, and by nobody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace gpusched::detail {

/// Ends a decision: the library that holds the policy catches it.
[[noreturn]] inline void throw_misuse(const char* condition, const char* message) {
  throw std::logic_error(std::string(message) + " (" + condition + ")");
}

/// `id`, which is below `count`; throws otherwise.
inline std::uint32_t checked(std::uint32_t id, std::size_t count, const char* message) {
  if (id < count) return id;
  throw std::logic_error(std::string(message) + ": " + std::to_string(id) + " of " + std::to_string(count));
}

/// `change`, which leaves some work or none but not less; throws otherwise.
template <class Time>
Time checked_change(Time change, Time left) {
  if (change.us < 0 ? change.us < -left.us : change.us > 4'600'000'000'000'000'000) {
    throw std::logic_error("the work left must lie between 0 and the end of time");
  }
  return change;
}

/// Whether a job of the open decision was vacated: only then is it worth asking whether all were placed again.
inline thread_local bool any_vacated = false;

inline std::uint32_t note_vacated(std::uint32_t grants) {
  any_vacated = true;
  return grants;
}

}  // namespace gpusched::detail

#define GPUSCHED_ASSERT(condition, message) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::gpusched::detail::throw_misuse(#condition, message))
#define GPUSCHED_CHECKED(id, column, message) ::gpusched::detail::checked(id, (column).size(), message)
// In JobTable and Capacity.
#define GPUSCHED_JOB(job) ::gpusched::detail::checked(index(job), size(), "no such job")
#define GPUSCHED_NODE(node) ::gpusched::detail::checked(index(node), nodes_.size(), "no such node")
// In Decision.
#define GPUSCHED_CHANGE(change, left) ::gpusched::detail::checked_change(change, left)
#define GPUSCHED_NOTE_VACATED(grants) ::gpusched::detail::note_vacated(grants)
