// SPDX-License-Identifier: Apache-2.0
#include "traces/core/trace_reader.hpp"

#include <algorithm>

#include "src/base/letter_case.hpp"

namespace gpusched {

JobStatus status_from_word(std::string_view word) {
  const std::string lower = lower_case(word);
  const auto is_any = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return lower.starts_with(w); });
  };
  if (is_any({"pass", "completed", "succe", "terminated"})) return JobStatus::passed;
  // Fixed widths cut OUT_OF_MEMORY.
  if (is_any({"fail", "node_fail", "out_of_me", "timeout", "boot_fail"})) return JobStatus::failed;
  if (is_any({"kill", "cancel", "preempted", "revoked", "deadline"})) return JobStatus::killed;
  return JobStatus::unknown;
}

}  // namespace gpusched
